"""Feed `opal_trips`: one line a trip, with a card, a mode, and tap-on and tap-off by the clock.

Dates are `2016-07-25`, or as `source.date_form` says; times `08:05` or `08:05:30` of the agency's
own clock. A tap-off without a
place or without a time is UNKNOWN altogether: which of the two is lost says nothing about a trip.
Files of one mode need not name it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from turnstile.duckdb_engine import text
from turnstile.programme.source_spec import RowShape, SourceSpec
from turnstile.programme.spec import Programme
from turnstile.service_calendar import ServicePeriod
from turnstile.sources.feeds.layout import (
    FeedLayout,
    carried_sql,
    if_there,
    mode_sql,
    plain_fields,
    set_aside,
    unit_sql,
    week_rules,
)
from turnstile.sources.feeds.made_ids import spelt
from turnstile.sources.feeds.made_records import MadeTrip, Record, clock_of, named
from turnstile.sources.feeds.zoned import ServiceClock, changes_around, dated_sql
from turnstile.sources.ingest.canonical import UNKNOWN
from turnstile.sources.ingest.identity import another_form_rule

_FIELDS = (
    *("card_id", "mode", "tap_on_date", "tap_on_time", "tap_on_location"),
    *("tap_off_date", "tap_off_time", "tap_off_location"),
)


def fields_of(columns: frozenset[str], names: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the SQL of each field; of a mode, NULL where the file names none.

    Raises:
        ColumnMissing: the file lacks one of the others.
    """
    always = tuple(field for field in names if field != "mode")
    return (*plain_fields(columns, names, always), *if_there(columns, names, ("mode",)))


def _moment_sql(end: str, source: SourceSpec) -> str:
    """SQL of the day of an end of a trip, and of its minute: 24:00 is the next day's first."""
    time = f"TRY_CAST(tap_{end}_time AS TIME)"
    days = f"coalesce(hour({time}), 0) // 24"
    return f"""TRY({dated_sql(f"tap_{end}_date", source)} + CAST({days} AS INTEGER)) AS {end}_day,
        60 * (hour({time}) % 24) + minute({time}) AS {end}_minute"""


def fold_allowance_sql(programme: Programme, week: ServicePeriod) -> str:
    """Return SQL of the minutes by which a tap-off may precede its tap-on on the clock.

    That is 0, except on the night on which the clock goes back: a trip over that moment ends at an
    earlier time than it began.
    """
    branches = []
    for change in changes_around(programme.time.zone, week):
        if change.is_fold:
            gained = change.before_minutes - change.after_minutes
            local = change.at_utc + timedelta(minutes=change.before_minutes)
            end = 60 * local.hour + local.minute
            branches.append(
                f"WHEN on_day = DATE '{local.date()}' AND on_minute < {end} "
                f"AND off_minute >= {end - gained} THEN {gained}"
            )
    return f"CASE {' '.join(branches)} ELSE 0 END" if branches else "0"


def typed_sql(programme: Programme, week: ServicePeriod) -> str:
    """Return the SELECT from `raw` to canonical trips."""
    source = programme.source
    legal = ", ".join(text(mode) for mode in source.modes)
    known = f"upper(coalesce(tap_off_location, {text(UNKNOWN)})) <> {text(UNKNOWN)}"
    complete = f"({known} AND tap_off_date IS NOT NULL AND tap_off_time IS NOT NULL)"
    clock = ServiceClock(programme.time.day_starts)
    on_service_day = clock.day_of("on_day", "on_minute")
    elapsed = "1440 * (off_day - on_day) + off_minute - on_minute"
    return f"""
        SELECT unit AS card_id, own_mode AS mode, {on_service_day} AS service_date,
            {clock.minute("on_minute")} AS tap_on_minute, tap_on_location,
            CASE WHEN has_off THEN {clock.day_of("off_day", "off_minute")} END AS tap_off_date,
            CASE WHEN has_off THEN {clock.minute("off_minute")} END AS tap_off_minute,
            CASE WHEN has_off THEN tap_off_location ELSE {text(UNKNOWN)} END AS tap_off_location,
            {carried_sql(programme)}
            CASE
                WHEN on_day IS NULL OR on_minute IS NULL
                    OR (has_off AND (off_day IS NULL OR off_minute IS NULL))
                    THEN 'unparsable_timestamp'
                {week_rules(on_service_day, programme, week)}
                WHEN unit IS NULL THEN 'card_id_missing'
                {another_form_rule(source)}
                WHEN own_mode IS NULL OR own_mode NOT IN ({legal}) THEN 'unknown_mode'
                WHEN tap_on_location IS NULL THEN 'null_location'
                WHEN has_off AND {elapsed} + {fold_allowance_sql(programme, week)} < 0
                    THEN 'tap_off_before_tap_on'
            END AS broken_rule,
            {set_aside(_FIELDS)} AS fields
        FROM (
            SELECT *, {mode_sql(source)} AS own_mode,
                {complete} AS has_off,
                {unit_sql(programme, _FIELDS)} AS unit,
                {_moment_sql("on", source)}, {_moment_sql("off", source)}
            FROM raw
        )
    """


def made(trip: MadeTrip, programme: Programme, names: Mapping[str, str]) -> list[Record]:
    """Return the line of a made-up trip."""
    card = spelt(trip.card, programme.source.card_form, trip.spelling + (trip.on_second or 0))
    fields: Record = {"card_id": card, "mode": trip.mode}
    for end, second, location in (
        ("on", trip.on_second, trip.on_location),
        ("off", trip.off_second, trip.off_location),
    ):
        at = None if second is None else clock_of(trip.day, second)
        fields |= {
            f"tap_{end}_date": "" if at is None else at.date().isoformat(),
            f"tap_{end}_time": "" if at is None else at.time().isoformat("seconds"),
            f"tap_{end}_location": location,
        }
    return [named(fields | dict(trip.categories), names)]


LAYOUT = FeedLayout(
    shape=RowShape.TRIPS,
    names=tuple((field, field) for field in _FIELDS),
    fields_of=fields_of,
    typed_sql=typed_sql,
    made=made,
)
