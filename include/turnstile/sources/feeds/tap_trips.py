"""From taps to trips, for every feed of one record a tap: TIDES fare transactions, tap files.

The rules. A tap-on begins a trip. The next tap of the same card, mode and service day, if it is a
tap-off of at most six hours later, ends it; otherwise where and when it ended is UNKNOWN. So the
records of one card and service day decide its rows alone; a programme whose service runs past
midnight lets its days begin later (`time.day_starts`). A tap-off that ends no trip goes to
quarantine. At the same time a tap-on comes before a tap-off, others in the order of their own ids.
Two taps in one minute are two taps; a record that came twice (all its fields are equal, its id
among them) counts once. A record without a card id goes to quarantine, or its tap-on is a trip of
unknown end and a unit of its own, as the programme says (`source.without_card`). What is no tap
goes to quarantine.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from turnstile.duckdb_engine import number_of, text
from turnstile.programme.counting_chain import JOIN_OF_TAPS
from turnstile.programme.fields import categories
from turnstile.programme.source_spec import RecordStatus, RowShape, TapAction
from turnstile.programme.spec import Programme
from turnstile.service_calendar import ServicePeriod
from turnstile.sources.feeds.layout import (
    Joined,
    Joining,
    carried_sql,
    mode_sql,
    set_aside,
    unit_sql,
    week_rules,
)
from turnstile.sources.feeds.zoned import ServiceClock, stamped_sql
from turnstile.sources.ingest.canonical import UNKNOWN
from turnstile.sources.ingest.identity import another_form_rule

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

TRIP_HOURS_AT_MOST = 6
_HOURS_OF_A_DAY = 36  # of service, from its midnight on
_OWN = (("tap_id", "VARCHAR"), ("action", "VARCHAR"), ("tapped_at_utc", "TIMESTAMP"))
_ENDS = ("tap_off_date", "tap_off_minute", "tap_off_location")
# What may be one end of a trip. A tap-off stands as broken until its tap-on is found.
_HALF_OF_TRIP = "(broken_rule IS NULL OR broken_rule = 'tap_off_without_tap_on')"


@dataclass(frozen=True, slots=True)
class Taps:
    """What a feed gives, as SQL.

    Args:
        relation: with the columns `card_id`, `mode`, `action`, `place`, `tap_id`, `riders` and
            those of the next two.
        tapped_at: text column of the time of a tap.
        service_day: service day, if a record states it; None for that of the tap's time.
        fields: columns that are the row as it came.
        ends_alone: True if no tap-off has a tap-on: each is a row of its own.
        states_status: True if it has a column `status`; where that is empty a record counts.
        words: what the words of the feed's own standard say that a tap does.
    """

    relation: str
    tapped_at: str
    service_day: str | None
    fields: tuple[str, ...]
    ends_alone: bool = False
    states_status: bool = False
    words: tuple[tuple[str, TapAction], ...] = ()


def taps_sql(programme: Programme, week: ServicePeriod, taps: Taps) -> str:
    """Return the SELECT of taps, staged as trips that have one end only."""
    source, zone = programme.source, programme.time.zone
    legal = ", ".join(text(mode) for mode in source.modes)
    service = ServiceClock(programme.time.day_starts)
    clock = service.minute("(60 * hour(local) + minute(local))")
    enters, leaves, is_none = (f"own_action = {text(action)}" for action in TapAction)
    unknown = "NULL" if taps.ends_alone else text(UNKNOWN)
    is_apart = f"local < day OR local >= day + INTERVAL {_HOURS_OF_A_DAY} HOUR"
    apart = f"WHEN {is_apart} THEN 'time_of_another_day'" if taps.service_day else ""
    void = void_rules(source.status_names) if taps.states_status else ""
    needs_tap_on = "" if taps.ends_alone else f"WHEN {leaves} THEN 'tap_off_without_tap_on'"
    return f"""
        SELECT unit AS card_id, own_mode AS mode, day AS service_date,
            CASE WHEN {enters} THEN {clock} END AS tap_on_minute,
            CASE WHEN {enters} THEN place END AS tap_on_location,
            CASE WHEN {leaves} THEN {service.day("local")} END AS tap_off_date,
            CASE WHEN {leaves} THEN {clock} END AS tap_off_minute,
            CASE WHEN {leaves} THEN place ELSE {unknown} END AS tap_off_location,
            {carried_sql(programme)}
            tap_id, own_action AS action, utc AS tapped_at_utc, riders,
            CASE
                WHEN day IS NULL OR local IS NULL THEN 'unparsable_timestamp'
                {week_rules("day", programme, week)}
                {void}
                WHEN {is_none} THEN 'other_action'
                WHEN own_action IS NULL THEN 'unknown_action'
                {apart}
                WHEN TRY_CAST(riders AS DOUBLE) = 0 THEN 'no_riders'
                WHEN unit IS NULL THEN 'card_id_missing'
                {another_form_rule(source)}
                WHEN own_mode IS NULL OR own_mode NOT IN ({legal}) THEN 'unknown_mode'
                WHEN place IS NULL THEN 'null_location'
                {needs_tap_on}
            END AS broken_rule,
            {set_aside(taps.fields)} AS fields
        FROM (
            SELECT *, {taps.service_day or service.day("local")} AS day
            FROM (
                SELECT *, {mode_sql(source)} AS own_mode,
                    {action_sql((*taps.words, *source.action_names))} AS own_action,
                    {unit_sql(programme, taps.fields)} AS unit
                FROM {stamped_sql(taps.relation, taps.tapped_at, zone, week, source)}
            )
        )
    """


def void_rules(status_names: tuple[tuple[str, RecordStatus], ...]) -> str:
    """Return SQL branches for taps that did not take place, and for words that nobody explains."""
    void = ", ".join(text(word) for word, status in status_names if status is RecordStatus.VOID)
    known = ", ".join(text(word) for word, _ in status_names)
    return (
        f"WHEN status IN ({void or 'NULL'}) THEN 'other_action' "
        f"WHEN status IS NOT NULL AND coalesce(status NOT IN ({known or 'NULL'}), true) "
        "THEN 'unknown_status'"
    )


def action_sql(action_names: tuple[tuple[str, TapAction], ...]) -> str:
    """Return SQL of what a tap does; NULL for a word that nobody explains."""
    actions = {spelling: a for a in TapAction for spelling in (a.value, a.value.capitalize())}
    branches = " ".join(
        f"WHEN {text(name)} THEN {text(action)}"
        for name, action in (actions | dict(action_names)).items()
    )
    return f"CASE action {branches} END"


def join_taps(connection: DuckDBPyConnection) -> Joined:
    """Turn the taps of `staged` into trips; return what came twice and what was joined."""
    twice = take_once(connection, _HALF_OF_TRIP, "tap")
    _find_ends(connection)
    ends = ", ".join(f"CASE WHEN is_ended THEN next_{end} ELSE {end} END AS {end}" for end in _ENDS)
    excluded_columns = ", ".join(("is_ended", "is_joined", *(f"next_{end}" for end in _ENDS)))
    connection.execute(f"""
        INSERT INTO staged BY NAME
        SELECT * EXCLUDE ({excluded_columns}) REPLACE ({ends})
        FROM in_order WHERE NOT is_joined
    """)
    joined = number_of(connection, "SELECT count(*) FROM in_order WHERE is_joined")
    connection.execute("DROP TABLE tap; DROP TABLE in_order")
    return replace(twice, joined=joined)


def take_once(connection: DuckDBPyConnection, which: str, table: str) -> Joined:
    """Move records out of `staged` into a table, each once; return what came twice.

    Args:
        connection: engine.
        which: SQL of the condition that they meet.
        table: name of the table; it is made. Its column `tap_id` tells equal records apart.
    """
    count = "SELECT count(*), count(*) FILTER (WHERE tap_id IS NULL) FROM"
    before = connection.execute(f"{count} staged WHERE {which}").fetchall()[0]
    connection.execute(f"""
        CREATE TABLE {table} AS
        SELECT * EXCLUDE (fields, file), min(fields) AS fields, min(file) AS file
        FROM staged WHERE {which} GROUP BY ALL
    """)
    once = connection.execute(f"{count} {table}").fetchall()[0]
    connection.execute(f"DELETE FROM staged WHERE {which}")
    return Joined(duplicates=before[0] - once[0], joined=0, unnamed=before[1] - once[1])


def _find_ends(connection: DuckDBPyConnection) -> None:
    """Make the table `in_order`: each tap with the next one, and whether the two are one trip."""
    most = f"INTERVAL {TRIP_HOURS_AT_MOST} HOUR"
    ends = ", ".join(f"lead({end}) OVER taps AS next_{end}" for end in _ENDS)
    columns = connection.execute("DESCRIBE tap").fetchall()
    known = {field.name for field in categories(RowShape.TRIPS)}
    carried = "".join(f", {column[0]}" for column in columns if column[0] in known)
    # 'enter' is before 'exit'; ids that are numbers are in order as numbers, others as texts
    connection.execute(f"""
        CREATE TABLE in_order AS SELECT *,
            action = 'enter' AND coalesce(lead(action) OVER taps = 'exit'
                AND lead(tapped_at_utc) OVER taps <= tapped_at_utc + {most}, false) AS is_ended,
            action = 'exit' AND coalesce(lag(action) OVER taps = 'enter'
                AND tapped_at_utc <= lag(tapped_at_utc) OVER taps + {most}, false) AS is_joined,
            {ends}
        FROM tap
        WINDOW taps AS (PARTITION BY {", ".join(JOIN_OF_TAPS.within)}
            ORDER BY tapped_at_utc, action, TRY_CAST(tap_id AS BIGINT), tap_id, tap_on_location,
                tap_off_location{carried})
    """)


JOINING = Joining(columns=_OWN, join=join_taps)
