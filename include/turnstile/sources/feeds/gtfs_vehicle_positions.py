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
from turnstile.programme.spec import Programme
from turnstile.sources.feeds.itms import typed_sql
from turnstile.sources.feeds.layout import ColumnMissing, FeedLayout
from turnstile.sources.feeds.made_records import MadeReading, Record, position_made

# which a position may leave out
_FULL, _OF_TRIP = "occupancy", ("route", "direction")
_OPTIONAL = (_FULL, *_OF_TRIP, "trip", "start_date")
_OUTERMOST, _NESTED = "vehicle.", "vehicle"


def fields_of(columns: frozenset[str], names: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the SQL of each field, whichever the archive's naming.

    Raises:
        ColumnMissing: a field is in none of its places.
    """
    sql_of_field = {}
    for field, path in names.items():
        sql = _field_sql(columns, path)
        if sql is None and field not in _OPTIONAL:
            raise ColumnMissing(path)
        sql_of_field[field] = "CAST(NULL AS VARCHAR)" if sql is None else sql
    return tuple((f, _stamp(sql) if f == "observed_at" else sql) for f, sql in sql_of_field.items())


def spellings(path: str) -> tuple[str, ...]:
    """Return the columns that may hold a path: itself, without its outermost name, the whole."""
    inside = path.removeprefix(_OUTERMOST)
    return (path,) if inside == path else (path, inside, _NESTED)


def _field_sql(columns: frozenset[str], path: str) -> str | None:
    """SQL of one field as text: of a record's first naming that has it; None where none has."""
    inside = path.removeprefix(_OUTERMOST)
    expressions = [name(column) for column in dict.fromkeys((path, inside)) if column in columns]
    if path.startswith(_OUTERMOST) and _NESTED in columns:
        expressions.append(f"json_extract_string(TRY_CAST({_NESTED} AS JSON), '$.{inside}')")
    return f"coalesce({', '.join(expressions)})" if expressions else None


def _stamp(column: str) -> str:
    """SQL of a written time in UTC from seconds since 1970; other texts stay as they are."""
    seconds = f"TRY_CAST({column} AS BIGINT)"
    written = f"strftime(make_timestamp({seconds} * 1000000), '%Y-%m-%dT%H:%M:%SZ')"
    return rf"CASE WHEN regexp_matches({column}, '^\d{{9,10}}$') THEN {written} ELSE {column} END"


def made(reading: MadeReading, programme: Programme, names: Mapping[str, str]) -> list[Record]:
    """Return a made-up position: by full path, without the outermost name, or nested."""
    (paths,) = position_made(reading, programme, names)
    if reading.shape % 3 == 0:
        return [paths]
    short = {path.removeprefix(_OUTERMOST): value for path, value in paths.items()}
    if reading.shape % 3 == 1:
        return [short]
    nested: Record = {}
    for path, value in short.items():
        *outer, last = path.split(".")
        inner = nested
        for key in outer:
            inner = inner.setdefault(key, {})  # type: ignore[assignment] # a mapping of mappings
        inner[last] = value
    return [{_NESTED: nested}]


LAYOUT = FeedLayout(
    shape=RowShape.TELEMETRY,
    names=(
        ("vehicle_id", "vehicle.vehicle.id"),
        ("observed_at", "vehicle.timestamp"),
        ("speed", "vehicle.position.speed"),
        ("latitude", "vehicle.position.latitude"),
        ("longitude", "vehicle.position.longitude"),
        (_FULL, "vehicle.occupancy_status"),
        ("route", "vehicle.trip.route_id"),
        ("direction", "vehicle.trip.direction_id"),
        ("trip", "vehicle.trip.trip_id"),
        ("start_date", "vehicle.trip.start_date"),
    ),
    fields_of=fields_of,
    typed_sql=typed_sql,
    made=made,
    composed={_FULL: (), **{field: (field,) for field in _OF_TRIP}},
    other_columns=lambda names: (
        *(path.removeprefix(_OUTERMOST) for path in names.values()),
        _NESTED,
    ),
    spellings=spellings,
)
