"""Feed `gtfs_vehicle_positions`: archives of GTFS-realtime VehiclePositions as Parquet or CSV.

Archives name the fields of the message by their path (`vehicle.position.latitude`), some without
the outermost `vehicle.`, or keep `vehicle` as a nested value; each record is read in its own way.
`timestamp` is seconds since 1970 in UTC, as the specification says, or a written time with an
offset. Speeds are metres a second; a position without one, which the specification allows, goes to
quarantine.
"""

from __future__ import annotations

from collections.abc import Mapping

from turnstile.duckdb_engine import name
from turnstile.programme.source_spec import RowShape
from turnstile.sources.itms import typed_sql
from turnstile.sources.layout import ColumnMissing, FeedLayout

_FULL = "occupancy"  # which a position may leave out
_OUTERMOST, _NESTED = "vehicle.", "vehicle"


def fields_of(columns: frozenset[str], names: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the SQL of each field, whichever the archive's naming.

    Raises:
        ColumnMissing: a field is in none of its places.
    """
    found = {field: _field_sql(columns, path) for field, path in names.items() if field != _FULL}
    try:
        found[_FULL] = _field_sql(columns, names[_FULL])
    except ColumnMissing:
        found[_FULL] = "CAST(NULL AS VARCHAR)"
    return tuple((f, _stamp(sql) if f == "observed_at" else sql) for f, sql in found.items())


def _field_sql(columns: frozenset[str], path: str) -> str:
    """SQL of one field as text: of a record's first naming that has it."""
    inside = path.removeprefix(_OUTERMOST)
    found = [name(column) for column in dict.fromkeys((path, inside)) if column in columns]
    if path.startswith(_OUTERMOST) and _NESTED in columns:
        found.append(f"json_extract_string(TRY_CAST({_NESTED} AS JSON), '$.{inside}')")
    if not found:
        raise ColumnMissing(path)
    return f"coalesce({', '.join(found)})"


def _stamp(column: str) -> str:
    """SQL of a written time in UTC from seconds since 1970; other texts stay as they are."""
    seconds = f"TRY_CAST({column} AS BIGINT)"
    written = f"strftime(make_timestamp({seconds} * 1000000), '%Y-%m-%dT%H:%M:%SZ')"
    return rf"CASE WHEN regexp_matches({column}, '^\d{{9,10}}$') THEN {written} ELSE {column} END"


LAYOUT = FeedLayout(
    shape=RowShape.TELEMETRY,
    names=(
        ("vehicle_id", "vehicle.vehicle.id"),
        ("observed_at", "vehicle.timestamp"),
        ("speed", "vehicle.position.speed"),
        ("latitude", "vehicle.position.latitude"),
        ("longitude", "vehicle.position.longitude"),
        (_FULL, "vehicle.occupancy_status"),
    ),
    fields_of=fields_of,
    typed_sql=typed_sql,
    composed={_FULL: ()},
    other_columns=lambda names: (
        *(path.removeprefix(_OUTERMOST) for path in names.values()),
        _NESTED,
    ),
)
