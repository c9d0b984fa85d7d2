"""The public timetable of a programme, read from its GTFS feed under `include/`.

A call is left out where nearness says nothing of lateness: at the first stop of a trip, where a
vehicle waits; at a stop that its trip serves twice; and where the feed states no time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from turnstile.errors import InputError
from turnstile.programme.domain.public_file import open_public_file, refuse
from turnstile.programme.gtfs.feed import (
    Feed,
    lacking,
    read_feed,
    refuse_feed,
    seconds_of,
    services_on_day,
)
from turnstile.programme.gtfs.scheduled_calls import Call, ScheduledCalls, scheduled_calls
from turnstile.programme.spec import Programme

_FIELD = "source.timetable"
_NEEDED = {
    "stops": ("stop_id", "stop_lat", "stop_lon"),
    "stop_times": ("trip_id", "stop_id", "stop_sequence", "arrival_time"),
    "trips": ("trip_id", "service_id"),
    "agency": ("agency_timezone",),
}


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
        services_on = [
            (service, day) for day in wanted for service in services_on_day(path, feed, day)
        ]
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


def fault_of(feed: Feed, zone: ZoneInfo) -> str | None:
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


def _calls(feed: Feed) -> Iterable[Call]:
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
