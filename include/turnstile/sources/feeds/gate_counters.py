"""Feed `gate_counters`: readings of gates' counters, which go on and on (MTA turnstiles).

A reading says how often a gate was passed since it was made. Who passed between a reading and the
gate's next one counts where and when the interval begins: the difference, at least 0 (a counter
that was set back, or runs backwards) and at most `gate_counts.MOST_OF_RECORD`. One more ride moves
every later reading of its gate by one, and so one difference by one at most, as long as no counter
begins again after its last digit, and none is set back or replaced out of sight of its readings
(FEEDS says what to deliver then; rides, R1). A reading whose time the clock passes twice that night
is none: nobody knows which of two came first. The interval of a gate's last reading ends with the
first one of the next week, if that is delivered too. Columns are those of the files of the
Metropolitan Transportation Authority where a programme names no others.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Programme
from turnstile.service_calendar import ServicePeriod
from turnstile.sources.feeds.gate_counts import (
    COLUMNS,
    NUMBERS,
    ends_made,
    fields_of,
    gates_sql,
    numbers_of,
    rows_of,
)
from turnstile.sources.feeds.layout import FeedLayout, Joined, Joining
from turnstile.sources.feeds.made_records import MadeTrip, Record, named
from turnstile.sources.feeds.zoned import changes_around

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_NAMES = (
    ("gate", "SCP"),
    ("booth", "C/A"),
    ("place", "UNIT"),
    ("tapped_at", "read_at"),
    ("tap_date", "DATE"),
    ("tap_time", "TIME"),
    ("entries", "ENTRIES"),
    ("exits", "EXITS"),
    ("mode", "mode"),
)
_FIELDS = tuple(field for field, _ in _NAMES)
_IS_READING = "(broken_rule IS NULL OR broken_rule IN ('outside_week', 'future_date'))"
_LONGEST = timedelta(days=1)  # of an interval; a longer one says not when
_LATER = timedelta(minutes=1)


def typed_sql(programme: Programme, week: ServicePeriod) -> str:
    """Return the SELECT from `raw` to readings; a gate is one of its place and booth."""
    gate = "CASE WHEN gate IS NOT NULL THEN CAST(to_json([place, booth, gate]) AS VARCHAR) END"
    readings = gates_sql(programme, week, gate, _FIELDS)
    twice = " OR ".join(
        f"(tapped_at_utc >= TIMESTAMP '{change.at_utc - timedelta(minutes=minutes)}'"
        f" AND tapped_at_utc < TIMESTAMP '{change.at_utc}')"
        for change in changes_around(programme.source.written.zone or programme.time.zone, week)
        if (minutes := change.before_minutes - change.after_minutes) > 0
    )
    if not twice:
        return readings
    rule = f"CASE WHEN {twice} THEN 'unparsable_timestamp' ELSE broken_rule END"
    return f"SELECT * REPLACE ({rule} AS broken_rule) FROM ({readings})"


def differences(connection: DuckDBPyConnection) -> Joined:
    """Turn the readings of `staged` into a row for each passenger; return what came twice."""
    entries, exits = numbers_of("riders")
    between = ", ".join(
        f"greatest(0, coalesce(lead({end}) OVER of_gate - {end}, 0)) AS {end}"
        for end in ("entries", "exits")
    )
    is_whole = (
        f"lead(tapped_at_utc) OVER of_gate - tapped_at_utc <= INTERVAL '{_LONGEST.days} days'"
    )
    return rows_of(
        connection,
        f"""
        SELECT * EXCLUDE (is_whole)
            REPLACE (CASE WHEN is_whole THEN entries ELSE 0 END AS entries,
                CASE WHEN is_whole THEN exits ELSE 0 END AS exits)
        FROM (
            SELECT * EXCLUDE (entries, exits), coalesce({is_whole}, false) AS is_whole, {between}
            FROM (
                SELECT * EXCLUDE (fields, file, riders), min(fields) AS fields, min(file) AS file,
                    max({entries}) AS entries, max({exits}) AS exits
                FROM staged WHERE {_IS_READING} AND contains(riders, '/') GROUP BY ALL
            )
            WINDOW of_gate AS (PARTITION BY card_id, mode ORDER BY tapped_at_utc, entries, exits,
                tap_on_location)
        ) WHERE broken_rule IS NULL
        """,
    )


def made(trip: MadeTrip, programme: Programme, names: Mapping[str, str]) -> list[Record]:
    """Return the readings of gates that only this ride passed: before it, and after."""
    del programme
    records = []
    for record, end in ends_made(trip):
        none: Record = dict.fromkeys(("entries", "exits"), 7)
        later = {"tapped_at": _later(str(record["tapped_at"])), end: 8}
        records += [named(record | none, names), named(record | none | later, names)]
    return records


def _later(stamp: str) -> str:
    """Return the time a minute on."""
    return f"{datetime.fromisoformat(stamp) + _LATER}"


LAYOUT = FeedLayout(
    shape=RowShape.TRIPS,
    names=_NAMES,
    fields_of=fields_of,
    typed_sql=typed_sql,
    made=made,
    joining=Joining(columns=COLUMNS, join=differences, numbers=NUMBERS),
)
