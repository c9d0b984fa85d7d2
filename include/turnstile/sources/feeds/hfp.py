"""Feed `hfp`: high-frequency positioning of Helsinki (digitransit.fi), one message a record.

A message names its event (`{"VP": {...}}`) or is the event's own object; every event says where the
vehicle is, so each is an observation. Vehicle numbers are an operator's own: a vehicle is
`OPERATOR/NUMBER`, or the number alone where a record names no operator. `dl` counts seconds ahead
of the timetable, so a delay is its opposite. Speeds are m/s, and needed where a table measures
them.
"""

from __future__ import annotations

from collections.abc import Mapping

from turnstile.duckdb_engine import name
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Programme
from turnstile.service_calendar import ServicePeriod
from turnstile.sources.feeds import unmeasured
from turnstile.sources.feeds.layout import ColumnMissing, FeedLayout
from turnstile.sources.feeds.made_records import MadeReading, Record, position_made
from turnstile.sources.ingest.identity import another_form_rule

EVENTS = (
    *("VP", "DUE", "ARR", "DEP", "ARS", "PDE", "PAS", "WAIT", "DOO", "DOC"),
    *("TLR", "TLA", "DA", "DOUT", "BA", "BOUT", "VJA", "VJOUT"),
)
_ALWAYS = ("vehicle_id", "observed_at", "latitude", "longitude")


def fields_of(columns: frozenset[str], names: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the SQL of each field: of an event's object, or of a record that is one.

    Raises:
        ColumnMissing: vehicle, time or place is in neither.
    """
    events = [name(event) for event in EVENTS if event in columns]
    sql_of_field = {field: _field_sql(columns, column, events) for field, column in names.items()}
    for field in _ALWAYS:
        if sql_of_field[field] is None:
            raise ColumnMissing(names[field])
    sql = {
        field: expression or "CAST(NULL AS VARCHAR)" for field, expression in sql_of_field.items()
    }
    late = f"CAST(-TRY_CAST({sql['delay']} AS DOUBLE) AS VARCHAR)"
    return tuple((sql | {"delay": late}).items())


def _field_sql(columns: frozenset[str], column: str, events: list[str]) -> str | None:
    """SQL of one field as text; None where no record can have it."""
    expressions = [name(column)] if column in columns else []
    if events:
        record = f"TRY_CAST(coalesce({', '.join(events)}) AS JSON)"
        expressions.append(f"json_extract_string({record}, '$.{column}')")
    return f"coalesce({', '.join(expressions)})" if expressions else None


def typed_sql(programme: Programme, week: ServicePeriod) -> str:
    """Return the SELECT from `raw` to canonical telemetry.

    An operator is a whole number, in one spelling, or the vehicle is none; a number of a vehicle
    that is of another form stays as it is, for the quarantine.
    """
    operator = "CAST(TRY_CAST(operator AS BIGINT) AS VARCHAR) || '/'"
    qualified_id = f"CASE WHEN operator IS NULL THEN vehicle_id ELSE {operator} || vehicle_id END"
    replaced = f"{qualified_id} AS vehicle_id"
    if rule := another_form_rule(programme.source):
        is_other = f"(CASE {rule} END IS NOT NULL)"
        replaced = f"CASE WHEN {is_other} THEN vehicle_id ELSE {qualified_id} END AS vehicle_id, "
        replaced += f"NOT {is_other} AS id_is_plain"
    return unmeasured.typed_sql(programme, week, f"(SELECT * REPLACE ({replaced}) FROM raw)")


def made(reading: MadeReading, programme: Programme, names: Mapping[str, str]) -> list[Record]:
    """Return a made-up message: of an event, or its object alone."""
    (record,) = position_made(reading, programme, names)
    record[names["delay"]] = -reading.delay_s
    record[names["operator"]] = (1, "1", " 01")[reading.shape % 3]
    events = EVENTS[:3]
    turn = reading.shape % (1 + len(events))
    return [record if turn == len(events) else {events[turn]: record}]


LAYOUT = FeedLayout(
    shape=RowShape.TELEMETRY,
    names=(
        ("vehicle_id", "veh"),
        ("operator", "oper"),
        ("observed_at", "tst"),
        ("speed", "spd"),
        ("latitude", "lat"),
        ("longitude", "long"),
        ("delay", "dl"),
        ("route", "route"),
        ("direction", "dir"),
        ("trip", "trip"),
        ("start_date", "oday"),
    ),
    fields_of=fields_of,
    typed_sql=typed_sql,
    made=made,
    composed={"delay_s": ("delay",), "route": ("route",), "direction": ("direction",)},
    other_columns=lambda _: EVENTS,
    spellings=lambda column: (column, *EVENTS),
)
