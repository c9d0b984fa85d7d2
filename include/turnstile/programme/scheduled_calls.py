"""The public timetable that positions of vehicles are held against: calls at stops, by trip.

A call is left out where nearness says nothing of lateness: at the first stop of a trip, where a
vehicle waits; at a stop that its trip serves twice; and where the feed states no time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from math import cos, radians
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from turnstile.errors import InputError
from turnstile.programme.gtfs_feed import (
    lacking,
    read_feed,
    refuse_feed,
    seconds_of,
    services_on_day,
)
from turnstile.programme.public_file import open_public_file, refuse
from turnstile.programme.spec import Programme

if TYPE_CHECKING:
    import pandas as pd

_FIELD = "source.timetable"
_NOON, _HALF_DAY = time(12), timedelta(hours=12)
_NEEDED = {
    "stops": ("stop_id", "stop_lat", "stop_lon"),
    "stop_times": ("trip_id", "stop_id", "stop_sequence", "arrival_time"),
    "trips": ("trip_id", "service_id"),
    "agency": ("agency_timezone",),
}


@dataclass(frozen=True, slots=True)
class Call:
    """A scheduled call: so many seconds after a day's noon less twelve hours, as in GTFS."""

    trip: str
    service: str
    stop: str
    latitude: float
    longitude: float
    second: int


@dataclass(frozen=True, slots=True)
class ScheduledCalls:
    """A timetable on some days.

    Args:
        sha256: of what it was read from.
        calls: columns trip, service, stop, latitude, longitude, narrowing (the cosine of the
            latitude), second.
        runs: columns service, run_date, zero_utc (naive): when second 0 of a day's trips is.
    """

    sha256: str
    calls: pd.DataFrame
    runs: pd.DataFrame


def scheduled_calls(
    found: Iterable[Call],
    services_on: Iterable[tuple[str, date]],
    zone: ZoneInfo,
    sha256: str,
) -> ScheduledCalls:
    """Return calls and days as tables.

    Args:
        found: calls.
        services_on: pairs of a service and a day that it runs on.
        zone: the agency's time zone.
        sha256: of what they were read from.
    """
    import pandas as pd

    calls = pd.DataFrame(list(found), columns=list(Call.__dataclass_fields__))
    calls["narrowing"] = [cos(radians(degrees)) for degrees in calls["latitude"]]
    runs = [(service, day, zero_of_day(day, zone)) for service, day in services_on]
    return ScheduledCalls(
        sha256, calls, pd.DataFrame(runs, columns=["service", "run_date", "zero_utc"])
    )


def zero_of_day(day: date, zone: ZoneInfo) -> datetime:
    """Return from when a day's times are counted: noon less twelve hours, in UTC, naive.

    Midnight, but on the two days a year on which the clock changes.

    Examples:
        >>> zero_of_day(date(2015, 3, 8), ZoneInfo("America/Chicago")).isoformat()
        '2015-03-08T05:00:00'
    """
    noon = datetime.combine(day, _NOON, zone).astimezone(UTC).replace(tzinfo=None)
    return noon - _HALF_DAY


def read_calls(
    programme: Programme, include: Path, days: Sequence[date] = ()
) -> ScheduledCalls | None:
    """Read the timetable that a programme names; None if it names none.

    Args:
        programme: names the feed, below `include`.
        include: folder of the public files.
        days: service days of the week; a trip of the day before may still run. None: only whether
            the feed could be used.

    Raises:
        ProgrammeError: the feed is not there, is not complete, runs by headway, is of another time
            zone, or has no trip on these days.
    """
    named = programme.source.timetable
    if named is None:
        return None
    file = open_public_file(programme, _FIELD, named, include)
    path, zone = include / named, programme.time.zone
    wanted = sorted({day - timedelta(days=before) for day in days for before in (0, 1)})
    try:
        feed = read_feed(path)
        if fault := fault_of(feed, zone):
            refuse_feed(path, fault)
        services_on = [(one, day) for day in wanted for one in services_on_day(path, feed, day)]
    except InputError as error:
        refuse(file.name, _FIELD, error.rule)
    if days and not services_on:
        refuse(
            file.name, _FIELD, f"has no trip from {days[0]} to {days[-1]}; name the feed of then"
        )
    return scheduled_calls(_calls(feed), services_on, zone, timetable_digest(programme, include))


def timetable_digest(programme: Programme, include: Path) -> str:
    """Return the SHA-256 of the feed that a programme names; empty if it names none.

    Raises:
        ProgrammeError: the feed is not there.
    """
    if (named := programme.source.timetable) is None:
        return ""
    file = open_public_file(programme, _FIELD, named, include)
    return hashlib.sha256(file.content).hexdigest()


def fault_of(feed: Any, zone: ZoneInfo) -> str | None:  # noqa: ANN401 - gtfs-kit has no types
    """Return why nobody can be late by a feed; None if somebody can."""
    if missing := lacking(feed, _NEEDED):
        return missing
    if feed.calendar is None and feed.calendar_dates is None:
        return "has no calendar, so no trip has a day; give a complete feed"
    if feed.frequencies is not None and len(feed.frequencies):
        return (
            "runs by headway (frequencies), which has no times to be late by; take those trips "
            "out, or publish measure: headway alone"
        )
    stated = str(feed.agency["agency_timezone"].iloc[0])
    if stated != zone.key:
        return f"is in the time zone {stated}; time.zone says {zone.key}"
    return None


def _calls(feed: Any) -> Iterable[Call]:  # noqa: ANN401
    """Yield the calls by which lateness can be told."""
    times = feed.stop_times[["trip_id", "stop_id", "stop_sequence", "arrival_time"]].copy()
    times["second"] = seconds_of(times["arrival_time"])
    is_first = times["stop_sequence"] == times.groupby("trip_id")["stop_sequence"].transform("min")
    is_again = times.duplicated(["trip_id", "stop_id"], keep=False)
    told = times[~is_first & ~is_again].dropna(subset=["second"])
    stops = feed.stops[["stop_id", "stop_lat", "stop_lon"]].dropna()
    told = told.merge(stops, on="stop_id").merge(
        feed.trips[["trip_id", "service_id"]], on="trip_id"
    )
    columns = ("trip_id", "service_id", "stop_id", "stop_lat", "stop_lon", "second")
    for trip, service, stop, latitude, longitude, second in zip(
        *(told[column] for column in columns), strict=True
    ):
        yield Call(str(trip), str(service), str(stop), latitude, longitude, int(second))
