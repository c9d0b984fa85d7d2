"""Feed `gate_counts`: how many went in and out by a gate in an interval, a record each.

Gates name nobody, as door counters do: nobody's way in is joined to a way out, and what is
protected is a ride (privacy/rides.proof.md). A record of n entries and m exits is n rows that begin
and m that end at the interval's begin, at most `MOST_OF_RECORD` of each. Of records of one gate and
instant that differ in nothing but their numbers the largest count: one more ride is one row more,
or none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from turnstile.duckdb_engine import number_of
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Programme
from turnstile.service_calendar import ServicePeriod
from turnstile.sources.feeds.layout import (
    ColumnMissing,
    FeedLayout,
    Joined,
    Joining,
    if_there,
    require_columns,
)
from turnstile.sources.feeds.made_records import MadeTrip, Record, clock_of, named
from turnstile.sources.feeds.tap_trips import Taps, taps_sql
from turnstile.sources.feeds.taps import TAPPED_AT

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MOST_OF_RECORD = 10_000  # no gate turns oftener in a few hours; a larger number counts as this
COLUMNS = (("tap_id", "VARCHAR"), ("tapped_at_utc", "TIMESTAMP"), ("riders", "VARCHAR"))
_NAMES = (
    ("gate", "gate_id"),
    ("place", "station_id"),
    ("tapped_at", "interval_start"),
    ("tap_date", "date"),
    ("tap_time", "time"),
    ("entries", "entries"),
    ("exits", "exits"),
    ("mode", "mode"),
)
# whole; of floats from 10^16 on, all of which are whole, the engine prints `1.5e+16`; JSON `1e21`
_NUMBER = r"[0-9]+(\.0*)?|[0-9](\.[0-9]+)?e\+?(1[6-9]|[2-9][0-9]|[0-9]{3})"
_LARGEST = 10**30  # a larger number is this: one ride more makes no number none
_NEEDED, _ENDS = ("gate", "place", "entries", "exits"), ("entries", "exits")
_GATE = "card_id, mode, tap_on_location, side"
NUMBERS = f"""
    WITH said AS (
        SELECT DISTINCT card_id, mode, tap_on_location, service_date, tapped_at_utc,
            unnest(['entries', 'exits']) AS side,
            unnest([split_part(riders, '/', 1), split_part(riders, '/', 2)])::HUGEINT AS number
        FROM staged WHERE broken_rule IS NULL AND contains(riders, '/')
    ), step AS (
        SELECT *, number - lag(number) OVER of_gate AS of_week,
            CASE WHEN service_date = lag(service_date) OVER of_gate THEN of_week END AS of_day,
            count(*) OVER (PARTITION BY {_GATE}, tapped_at_utc) > 1 AS is_repeated
        FROM said WINDOW of_gate AS (PARTITION BY {_GATE} ORDER BY tapped_at_utc, number)
    ), beside AS (
        SELECT *, number > 0 AND (2 * number = sum(number) OVER at_place
                OR of_week > 0 AND 2 * of_week = sum(of_week) OVER at_place) AS is_sum
        FROM step WINDOW at_place AS (PARTITION BY mode, tap_on_location, side, tapped_at_utc)
    )
    SELECT count(*) AS records, count(DISTINCT service_date) AS days,
        count_if(is_repeated) AS repeated,
        count_if(of_week < 0) AS falls, count_if(of_week <> 0) AS changes,
        count_if(of_day < 0) AS falls_of_day, count_if(of_day <> 0) AS changes_of_day,
        count_if(number > 0) AS filled, count_if(is_sum) AS sums
    FROM beside GROUP BY {_GATE}
"""
"""SELECT from `staged` of how often the numbers of a gate, one way, change and fall, are two at one
time, or are the sum of all others of their place and time."""
_BY_OTHERS = ("fields", "file", "riders")


def fields_of(columns: frozenset[str], names: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the SQL of each field; NULL for columns that the file does not need to have.

    Raises:
        ColumnMissing: no gate, place, time or number.
    """
    require_columns(columns, names, _NEEDED)
    if not {names["tap_date"], names["tap_time"]} <= columns and names["tapped_at"] not in columns:
        raise ColumnMissing(names["tapped_at"], names["tap_date"], names["tap_time"])
    return if_there(columns, names, tuple(names))


def typed_sql(programme: Programme, week: ServicePeriod) -> str:
    """Return the SELECT from `raw` to records of gates, as taps that begin."""
    return gates_sql(programme, week, "gate", _FIELDS)


def gates_sql(programme: Programme, week: ServicePeriod, gate: str, fields: tuple[str, ...]) -> str:
    """Return the SELECT from `raw` to records of gates.

    Args:
        programme: says how they are written.
        week: that is read.
        gate: SQL of the gate.
        fields: columns that are the record as it came.
    """
    are_some = " AND ".join(f"regexp_full_match({end}, '{_NUMBER}')" for end in _ENDS)
    pair = " || '/' || ".join(
        f"least(coalesce(TRY_CAST({end} AS HUGEINT), {_LARGEST}), {_LARGEST})" for end in _ENDS
    )
    relation = f"""(
        SELECT * REPLACE ({TAPPED_AT} AS tapped_at),
            {gate} AS card_id, {gate} AS tap_id, 'enter' AS action,
            CASE WHEN {are_some} THEN {pair} ELSE '0' END AS riders
        FROM raw
    )"""
    return taps_sql(programme, week, Taps(relation, "tapped_at", None, fields, ends_alone=True))


def numbers_of(riders: str) -> tuple[str, str]:
    """Return SQL of entries and exits, as they are staged together."""
    entries, exits = (f"CAST(split_part({riders}, '/', {n}) AS HUGEINT)" for n in (1, 2))
    return entries, exits


def one_row_a_passenger(connection: DuckDBPyConnection) -> Joined:
    """Turn the records of `staged` into a row for each passenger; return what came twice."""
    entries, exits = numbers_of("riders")
    once = f"""
        SELECT * EXCLUDE ({", ".join(_BY_OTHERS)}), min(fields) AS fields, min(file) AS file,
            max({entries}) AS entries, max({exits}) AS exits
        FROM staged WHERE broken_rule IS NULL GROUP BY ALL
    """
    return rows_of(connection, once)


def rows_of(connection: DuckDBPyConnection, counted: str) -> Joined:
    """Put rows of passengers in the place of the records of `staged` that break no rule.

    Args:
        connection: engine.
        counted: SELECT of these, each once, with numbers `entries` and `exits`.
    """
    connection.execute(f"CREATE TABLE gate AS {counted}")
    records = number_of(connection, "SELECT count(*) FROM staged WHERE broken_rule IS NULL")
    connection.execute("DELETE FROM staged WHERE broken_rule IS NULL")
    off = "service_date AS tap_off_date, tap_on_minute AS tap_off_minute, "
    off += "tap_on_location AS tap_off_location, NULL AS tap_on_minute, NULL AS tap_on_location"
    for end, replaced in (("entries", "NULL AS tap_off_location"), ("exits", off)):
        connection.execute(f"""
            INSERT INTO staged BY NAME
            SELECT * EXCLUDE (entries, exits, number)
                REPLACE (card_id || ' {end} ' || tapped_at_utc || ' ' || number AS card_id,
                    {replaced})
            FROM (SELECT *, unnest(range(least({end}, {MOST_OF_RECORD})::BIGINT)) AS number
                FROM gate)
        """)
    once = number_of(connection, "SELECT count(*) FROM gate")
    rows = number_of(connection, "SELECT count(*) FROM staged WHERE broken_rule IS NULL")
    connection.execute("DROP TABLE gate")
    return Joined(duplicates=records - once, joined=0, added=rows - once)


def ends_made(trip: MadeTrip) -> list[tuple[Record, str]]:
    """Return the record of each end of a made-up ride, of a gate of its own, and which it is."""
    ends = (
        ("entries", trip.on_second, trip.on_location),
        ("exits", trip.off_second, trip.off_location),
    )
    return [
        (
            {
                "gate": f"{trip.card} {trip.day} {second} {location} {end}",
                "place": location,
                "tapped_at": f"{clock_of(trip.day, second)}",
                "mode": trip.mode,
                **dict(trip.categories),
            },
            end,
        )
        for end, second, location in ends
        if second is not None
    ]


def made(trip: MadeTrip, programme: Programme, names: Mapping[str, str]) -> list[Record]:
    """Return the records of a made-up ride: of one who went in, and of one who went out."""
    del programme
    none: Record = dict.fromkeys(_ENDS, 0)
    return [named(record | none | {end: 1}, names) for record, end in ends_made(trip)]


_FIELDS = tuple(field for field, _ in _NAMES)
LAYOUT = FeedLayout(
    shape=RowShape.TRIPS,
    names=_NAMES,
    fields_of=fields_of,
    typed_sql=typed_sql,
    made=made,
    joining=Joining(columns=COLUMNS, join=one_row_a_passenger, numbers=NUMBERS),
)
