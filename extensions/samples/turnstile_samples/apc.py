"""Made-up passenger events of door counters, TIDES 1.0, and the public timetable they go with.

The rides are the trips of the Opal sample (`opal.opal_rows`) on the stops of `samples.tides`: eight
lines of six stops, a vehicle trip of each every hour. Who boards or alights at a stop in one minute
is one event with a count. All 15 columns are filled.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path

from turnstile.service_calendar import ServiceWeek
from turnstile_samples.corruption import MISSING, Rows
from turnstile_samples.tides import PER_ROW, STOPS, write_feed
from turnstile_samples.writing import LandingWeek, coded, write_days

_HOURS = (5, 23)  # first and last hour in which a vehicle trip begins


def write_apc(rows: Rows, to: LandingWeek) -> tuple[Path, ...]:
    """Write events; return the files, in order of their days."""
    return write_days(rows, to, "apc", _sql)


def _sql(week: ServiceWeek, day: date) -> str:
    """One day's events as they are delivered, in the order of their time."""
    first, last = _HOURS
    stamp = f"strftime(DATE '{day}' + to_minutes(CAST(minute AS INTEGER)), '%Y-%m-%dT%H:%M:%S')"
    trip = f"'t' || stop // {PER_ROW} || '-' || greatest({first}, least({last}, minute // 60))"
    columns = {
        "passenger_event_id": f"'{day}-' || minute || '-' || stop || '-' || action",
        "service_date": f"'{day}'",
        "event_timestamp": stamp,
        "location_ping_id": "'ping-' || minute || '-' || stop",
        "trip_id_performed": f"'{day}-' || {trip}",
        "trip_id_scheduled": trip,
        "trip_stop_sequence": f"stop % {PER_ROW} + 1",
        "scheduled_stop_sequence": f"stop % {PER_ROW} + 1",
        "event_type": "'Passenger ' || action",
        "vehicle_id": f"'v' || stop // {PER_ROW}",
        "device_id": f"'d' || stop // {PER_ROW}",
        "train_car_id": "'car 1'",
        "stop_id": "'s' || stop",
        "pattern_id": f"'p' || stop // {PER_ROW}",
        "event_count": "count",
    }
    ends = f"""
        SELECT on_minute AS minute, on_place % {STOPS} AS stop, 'boarded' AS action FROM trips
        UNION ALL
        SELECT off_minute, off_place % {STOPS}, 'alighted' FROM trips WHERE off_place <> {MISSING}
    """
    trips = f"SELECT * FROM rows WHERE file_day = {(day - week.monday).days}"
    counted = f"SELECT minute, stop, action, count(*) AS count FROM ({ends}) GROUP BY ALL"
    return (
        f"WITH trips AS ({trips}) SELECT {coded(columns)} FROM ({counted}) "
        "ORDER BY minute, stop, action"
    )


def write_apc_gtfs(path: Path) -> None:
    """Write the public timetable: a route for each line, a trip of it every hour."""
    lines, (first, last) = range(STOPS // PER_ROW), _HOURS
    trips = [(line, hour) for line in lines for hour in range(first, last + 1)]
    write_feed(
        path,
        routes=[f"r{line},{line + 1},3" for line in lines],
        trips=[f"r{line},daily,t{line}-{hour},0" for line, hour in trips],
        stop_times=[
            f"t{line}-{hour},{at},{at},s{line * PER_ROW + n},{n + 1}"
            for line, hour in trips
            for n in range(PER_ROW)
            for at in (f"{hour:02d}:{8 * n:02d}:00",)
        ],
    )
