"""Made-up trips that no card made, and gates that count: on the stops of the TIDES sample.

The trips are those of the Opal sample. Every stop has two gates, which people choose by chance; the
counters of gates are read every four hours, as the turnstiles of New York are.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path

from turnstile.programme.source_spec import Feed
from turnstile.service_calendar import ServiceWeek
from turnstile_samples.corruption import MISSING, Rows
from turnstile_samples.tides import STOPS
from turnstile_samples.writing import LandingWeek, coded, write_days

_GATES, _HOURS = 2, 4
_BEFORE = 5_000  # how often a gate was passed before the week
_MINUTES_A_DAY = 1440
# one end of a trip a row: minutes after the week's begin
_ENDS = f"""
    SELECT card % {_GATES} AS gate, on_place % {STOPS} AS stop, 'entries' AS way,
        day * {_MINUTES_A_DAY} + on_minute AS minute FROM rows UNION ALL
    SELECT card % {_GATES}, off_place % {STOPS}, 'exits', day * {_MINUTES_A_DAY} + off_minute
    FROM rows WHERE off_place <> {MISSING}
"""


def write_without_cards(feed: Feed, rows: Rows, to: LandingWeek) -> tuple[Path, ...]:
    """Write a file a day; return the files, in order of their days."""
    return write_days(rows, to, str(feed), _SQL[feed])


def _hired(week: ServiceWeek, day: date) -> str:
    """One day's trips, in the columns of bike-share systems."""
    number = (day - week.monday).days
    clock = "strftime(DATE '{0}' + to_minutes(CAST({1} AS INTEGER)), '%Y-%m-%d %H:%M:%S')"
    columns = {
        "ride_id": f"printf('{day:%Y%m%d}%06d', number)",
        "rideable_type": "'classic_bike'",
        "started_at": clock.format(day, "on_minute"),
        "ended_at": f"CASE WHEN off_place <> {MISSING} THEN {clock.format(day, 'off_minute')} END",
        "start_station_id": f"'s' || on_place % {STOPS}",
        "end_station_id": f"CASE WHEN off_place <> {MISSING} THEN 's' || off_place % {STOPS} END",
        "member_casual": "CASE WHEN card % 5 = 0 THEN 'casual' ELSE 'member' END",
    }
    of_day = f"SELECT *, row_number() OVER () AS number FROM rows WHERE file_day = {number}"
    return f"SELECT {coded(columns)} FROM ({of_day}) ORDER BY 3, 1"


def _counts(week: ServiceWeek, day: date) -> str:
    """One day's gates, an hour each."""
    begin = (day - week.monday).days * _MINUTES_A_DAY
    hour = f"DATE '{day}' + to_hours(CAST(hour AS INTEGER))"
    columns = {
        "gate_id": "'g' || stop || '-' || gate",
        "station_id": "'s' || stop",
        "interval_start": f"strftime({hour}, '%Y-%m-%dT%H:%M:%S')",
        "entries": "count(*) FILTER (way = 'entries')",
        "exits": "count(*) FILTER (way = 'exits')",
    }
    of_day = f"""
        SELECT *, (minute - {begin}) // 60 AS hour FROM ({_ENDS})
        WHERE minute BETWEEN {begin} AND {begin + _MINUTES_A_DAY - 1}
    """
    return f"SELECT {coded(columns)} FROM ({of_day}) GROUP BY stop, gate, hour ORDER BY hour, 1"


def _counters(week: ServiceWeek, day: date) -> str:
    """One day's readings; of the last day also the first reading of the next week."""
    number = (day - week.monday).days
    begin, step = number * _MINUTES_A_DAY, _HOURS * 60
    until = begin + _MINUTES_A_DAY - (0 if number == len(week.days) - 1 else step)
    at = f"TIMESTAMP '{week.monday}' + to_minutes(CAST(reading AS INTEGER))"
    before = f"{_BEFORE} + count(minute) FILTER (way = '{{}}' AND minute < reading)"
    columns = {
        "C/A": "printf('A%03d', stop)",
        "UNIT": "'s' || stop",
        "SCP": "printf('00-00-%02d', gate)",
        "STATION": "'STOP ' || stop",
        "DATE": f"strftime({at}, '%m/%d/%Y')",
        "TIME": f"strftime({at}, '%H:%M:%S')",
        "DESC": "'REGULAR'",
        "ENTRIES": before.format("entries"),
        "EXITS": before.format("exits"),
    }
    readings = f"""
        SELECT * FROM (SELECT unnest(range({begin}, {until + 1}, {step})) AS reading),
            (SELECT unnest(range({STOPS})) AS stop), (SELECT unnest(range({_GATES})) AS gate)
    """
    return f"""
        SELECT {coded(columns)} FROM ({readings}) LEFT JOIN ({_ENDS}) USING (stop, gate)
        GROUP BY stop, gate, reading ORDER BY stop, gate, reading
    """


_SQL = {Feed.HIRED_TRIPS: _hired, Feed.GATE_COUNTS: _counts, Feed.GATE_COUNTERS: _counters}
