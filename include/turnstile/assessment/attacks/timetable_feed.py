"""Reads the calls of a public timetable (GTFS): which run of a vehicle calls where, and when.

Times that a feed leaves out between two timed stops are spread evenly, as the format allows; runs
by headway (`frequencies.txt`) are written out one by one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from turnstile.errors import InputError
from turnstile.programme.domain_build_sources import mode_of_route_type, read_feed, sha256_of

if TYPE_CHECKING:
    import pandas as pd

_MINUTES_PER_DAY = 1440
_SECONDS_PER_MINUTE = 60
_NEEDED = ("stops", "stop_times", "trips", "routes")
_COLUMNS = ("mode", "route", "trip_id", "service_id", "stop_id", "minute")


@dataclass(frozen=True, slots=True)
class Timetable:
    """The calls of a feed on some days.

    Args:
        name: of the feed's file.
        sha256: of its bytes.
        days: service days that the calls are of; empty where the feed has no calendar.
        calls: columns service_date, mode, route, trip_id, stop_id, minute (of the clock, 0-1439).
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
    if any(getattr(feed, table) is None for table in _NEEDED):
        _refuse(path, f"lacks one of {', '.join(_NEEDED)}; give a complete feed")
    calls = _calls(feed)
    days = _days(feed, wanted)
    parts = [
        calls[calls["service_id"].isin(feed.get_trips(f"{day:%Y%m%d}")["service_id"].unique())]
        .drop(columns="service_id")
        .assign(service_date=day)
        for day in days
    ]
    if not days:
        parts = [calls.drop(columns="service_id").assign(service_date=None)]
    return Timetable(path.name, sha256_of(path), days, pd.concat(parts), _stops(feed))


def _days(feed: Any, wanted: Iterable[date]) -> tuple[date, ...]:  # noqa: ANN401 - gtfs-kit has no types
    """Return the wanted days that the feed covers, or else its first week."""
    if feed.calendar is None and feed.calendar_dates is None:
        return ()
    covered = set(feed.get_dates(as_date_obj=True))
    found = sorted(set(wanted) & covered)
    return tuple(found or feed.get_first_week(as_date_obj=True) or sorted(covered)[:7])


def _calls(feed: Any) -> pd.DataFrame:  # noqa: ANN401
    """Return every call of every run, at a minute of the clock."""
    routes = feed.routes.assign(mode=feed.routes["route_type"].map(mode_of_route_type))
    named = routes.get("route_short_name", routes["route_id"])
    routes["route"] = named.fillna(routes["route_id"]).astype(str)
    trips = feed.trips.merge(routes[["route_id", "mode", "route"]], on="route_id")
    times = feed.stop_times.sort_values(["trip_id", "stop_sequence"]).copy()
    leaving = _seconds(times["departure_time"])
    times["second"] = leaving.where(leaving.notna(), _seconds(times["arrival_time"]))
    times["second"] = times.groupby("trip_id")["second"].transform(
        lambda seconds: seconds.interpolate(limit_area="inside")
    )
    calls = times.merge(trips[["trip_id", "service_id", "mode", "route"]], on="trip_id")
    calls = _by_headway(feed, calls.dropna(subset=["mode", "second"]))
    calls["minute"] = (calls["second"] // _SECONDS_PER_MINUTE % _MINUTES_PER_DAY).astype(int)
    found: pd.DataFrame = calls[list(_COLUMNS)]
    return found


def _by_headway(feed: Any, calls: pd.DataFrame) -> pd.DataFrame:  # noqa: ANN401
    """Write runs by headway out: one run for each departure, its stops as far apart as stated."""
    import pandas as pd

    if feed.frequencies is None or feed.frequencies.empty:
        return calls
    found = [calls[~calls["trip_id"].isin(feed.frequencies["trip_id"])]]
    for row in feed.frequencies.itertuples():
        own = calls[calls["trip_id"] == row.trip_id]
        ends = _seconds(pd.Series([row.start_time, row.end_time], dtype=object))
        for start in range(int(ends[0]), int(ends[1]), max(60, int(row.headway_secs))):
            moved = own["second"] - own["second"].min() + start
            found.append(own.assign(second=moved, trip_id=f"{row.trip_id} at {start}"))
    return pd.concat(found)


def _seconds(texts: pd.Series) -> pd.Series:
    """Return seconds after midnight of `25:10:00`; nothing for what is no time."""
    import pandas as pd

    clock = texts.astype("string").str.extract(r"^\s*(\d+):(\d+):(\d+)\s*$").astype("Float64")
    seconds = clock[0] * 3600 + clock[1] * 60 + clock[2]
    return pd.to_numeric(seconds).astype("float64")


def _stops(feed: Any) -> pd.DataFrame:  # noqa: ANN401
    """Return names and places of stops, and the names of their stations."""
    stops = feed.stops
    names = dict(zip(stops["stop_id"], stops["stop_name"].fillna(""), strict=True))
    parents = stops["parent_station"] if "parent_station" in stops else stops["stop_id"]
    found: pd.DataFrame = stops[["stop_id"]].assign(
        stop_name=stops["stop_name"].fillna(""),
        station=parents.fillna(stops["stop_id"]).map(names).fillna(""),
        latitude=stops["stop_lat"],
        longitude=stops["stop_lon"],
    )
    return found


def _refuse(path: Path, rule: str) -> None:
    """Raise the sentence."""
    raise InputError(where=path.name, field="--gtfs", rule=rule)
