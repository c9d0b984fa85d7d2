"""Reads the calls of a public timetable (GTFS): which run of a vehicle calls where, and when.

Times that a feed leaves out between two timed stops are spread evenly, as the format allows; runs
by headway (`frequencies.txt`) are written out one by one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from turnstile.errors import InputError
from turnstile.programme.gtfs.feed import (
    Feed,
    lacking,
    mode_of_route_type,
    read_feed,
    seconds_of,
    services_on_day,
    sha256_of,
    understood,
)

if TYPE_CHECKING:
    import pandas as pd

_MINUTES_PER_DAY = 1440
_SECONDS_PER_MINUTE = 60
_NEEDED = {
    "stops": ("stop_id", "stop_name", "stop_lat", "stop_lon"),
    "stop_times": ("trip_id", "stop_id", "stop_sequence", "arrival_time", "departure_time"),
    "trips": ("trip_id", "route_id", "service_id"),
    "routes": ("route_id", "route_type"),
}
_BY_HEADWAY = {"frequencies": ("trip_id", "start_time", "end_time", "headway_secs")}
_COLUMNS = ("mode", "trip_id", "service_id", "stop_id", "minute")


@dataclass(frozen=True, slots=True)
class Timetable:
    """The calls of a feed on some days.

    Args:
        name: of the feed's file.
        sha256: of its bytes.
        days: service days that the calls are of; empty where the feed has no calendar.
        calls: columns service_date, mode, trip_id, stop_id, minute (of the clock, 0-1439).
        stops: columns stop_id, stop_name, station, latitude, longitude.
    """

    name: str
    sha256: str
    days: tuple[date, ...]
    calls: pd.DataFrame
    stops: pd.DataFrame


def read_timetable(path: Path, wanted: Iterable[date] = ()) -> Timetable:
    """Read the calls of a feed.

    Args:
        path: GTFS feed, a zip file or a folder.
        wanted: service days; those that the feed covers are read, and its first week if it covers
            none of them.

    Raises:
        InputError: not there, no GTFS, or without runs.
    """
    import pandas as pd

    if not path.exists():
        _refuse(path, "is not there; name a GTFS feed (zip file or folder)")
    feed = read_feed(path)
    by_headway = {} if feed.frequencies is None else _BY_HEADWAY
    if fault := lacking(feed, _NEEDED | by_headway):
        _refuse(path, fault)
    calls = _calls(feed)
    days = understood(path, lambda: _days(feed, wanted))
    parts = [
        calls[calls["service_id"].isin(services_on_day(path, feed, day))]
        .drop(columns="service_id")
        .assign(service_date=day)
        for day in days
    ]
    if not days:
        parts = [calls.drop(columns="service_id").assign(service_date=None)]
    return Timetable(path.name, sha256_of(path), days, pd.concat(parts), _stops(feed))


def _days(feed: Feed, wanted: Iterable[date]) -> tuple[date, ...]:
    """Return the wanted days that the feed covers, or else its first week."""
    if feed.calendar is None and feed.calendar_dates is None:
        return ()
    covered = set(feed.get_dates(as_date_obj=True))
    days = sorted(set(wanted) & covered)
    return tuple(days or feed.get_first_week(as_date_obj=True) or sorted(covered)[:7])


def _calls(feed: Feed) -> pd.DataFrame:
    """Return every call of every run, at a minute of the clock."""
    routes = feed.routes.assign(mode=feed.routes["route_type"].map(mode_of_route_type))
    trips = feed.trips.merge(routes[["route_id", "mode"]], on="route_id")
    times = feed.stop_times.sort_values(["trip_id", "stop_sequence"]).copy()
    leaving = seconds_of(times["departure_time"])
    times["second"] = leaving.where(leaving.notna(), seconds_of(times["arrival_time"]))
    times["second"] = times.groupby("trip_id")["second"].transform(
        lambda seconds: seconds.interpolate(limit_area="inside")
    )
    calls = times.merge(trips[["trip_id", "service_id", "mode"]], on="trip_id")
    calls = _by_headway(feed, calls.dropna(subset=["mode", "second"]))
    calls["minute"] = (calls["second"] // _SECONDS_PER_MINUTE % _MINUTES_PER_DAY).astype(int)
    frame: pd.DataFrame = calls[list(_COLUMNS)]
    return frame


def _by_headway(feed: Feed, calls: pd.DataFrame) -> pd.DataFrame:
    """Write runs by headway out: one run for each departure, its stops as far apart as stated."""
    import pandas as pd

    if feed.frequencies is None:
        return calls
    runs = [calls[~calls["trip_id"].isin(feed.frequencies["trip_id"])]]
    first, last = (seconds_of(feed.frequencies[end]) for end in ("start_time", "end_time"))
    stated = feed.frequencies.assign(first=first, last=last)
    for row in stated.dropna(subset=["trip_id", "first", "last", "headway_secs"]).itertuples():
        trip_calls = calls[calls["trip_id"] == row.trip_id]
        for start in range(int(row.first), int(row.last), max(60, int(row.headway_secs))):
            moved = trip_calls["second"] - trip_calls["second"].min() + start
            runs.append(trip_calls.assign(second=moved, trip_id=f"{row.trip_id} at {start}"))
    return pd.concat(runs)


def _stops(feed: Feed) -> pd.DataFrame:
    """Return names and places of stops, and the names of their stations."""
    stops = feed.stops
    names = dict(zip(stops["stop_id"], stops["stop_name"].fillna(""), strict=True))
    parents = stops["parent_station"] if "parent_station" in stops else stops["stop_id"]
    places: pd.DataFrame = stops[["stop_id"]].assign(
        stop_name=stops["stop_name"].fillna(""),
        station=parents.fillna(stops["stop_id"]).map(names).fillna(""),
        latitude=stops["stop_lat"],
        longitude=stops["stop_lon"],
    )
    return places


def _refuse(path: Path, rule: str) -> None:
    """Raise the sentence."""
    raise InputError(where=path.name, field="--gtfs", rule=rule)
