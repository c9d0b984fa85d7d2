"""Reads the public sources of a domain: a GTFS feed, a stops.txt alone, a lookup of postcodes."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from turnstile.errors import InputError
from turnstile.programme.domain.building import PostcodePoint, Stop
from turnstile.programme.gtfs.feed import (
    Feed,
    lacking,
    mode_of_route_type,
    read_feed,
    refuse_feed,
    seconds_of,
)

if TYPE_CHECKING:
    import pandas as pd

_STOPS_AND_STATIONS = ("", "0", "1")  # location_type; the others are entrances and the like
_POSTCODE_COLUMNS = ("postcode", "latitude", "longitude")
_ALIASES = {"lat": "latitude", "long": "longitude", "lon": "longitude", "lng": "longitude"}
_DELIVERY = "delivery area"
_SECONDS_PER_HOUR, _SECONDS_PER_MINUTE = 3600, 60
_SERVED = {
    "routes": ("route_id", "route_type"),
    "trips": ("trip_id", "route_id"),
    "stop_times": ("trip_id", "stop_id", "arrival_time", "departure_time"),
}


@dataclass(frozen=True, slots=True)
class StopList:
    """Stops of a feed and what is known of its service.

    Args:
        stops: stops, platforms and stations.
        service_hours: mode to first departure and last arrival, "HH:MM", beyond 24:00 after
            midnight, as in GTFS; empty where the feed has no times.
        feed_version: as in feed_info.txt; empty where there is none.
    """

    stops: tuple[Stop, ...]
    service_hours: Mapping[str, tuple[str, str]]
    feed_version: str


def read_stops(path: Path, mode: str | None) -> StopList:
    """Read the stops of a GTFS feed (zip or folder), or of a stops.txt alone.

    Args:
        path: feed or file.
        mode: mode of all stops, for a list alone or a feed without trips; None to take it from the
            routes that serve a stop.

    Raises:
        InputError: not there, not GTFS, or nothing says which modes serve the stops.
    """
    if not path.exists():
        _refuse(path, "file", "is not there; name a GTFS feed or a stops.txt")
    if path.suffix == ".txt":
        if mode is None:
            _refuse(path, "mode", "a list of stops alone has no modes; give --mode")
        return StopList(_stops(_table(path), {}, mode), {}, "")
    feed = read_feed(path)
    if fault := lacking(feed, {"stops": ("stop_id",)}):
        refuse_feed(path, fault)
    rows = _texts(feed.stops)
    if mode is not None:
        return StopList(_stops(rows, {}, mode), {}, _version(feed))
    served = _served(path, feed)
    modes: dict[str, set[str]] = {}
    pairs = served[["stop_id", "mode"]].drop_duplicates()
    for stop_id, of_stop in zip(pairs["stop_id"], pairs["mode"], strict=True):
        modes.setdefault(str(stop_id), set()).add(of_stop)
    return StopList(_stops(rows, modes, None), _service_hours(served), _version(feed))


def _texts(stops: pd.DataFrame) -> list[dict[str, str]]:
    """Return stops as texts, missing values as empty ones."""
    present = stops.notna()
    texts = stops.astype(str).where(present, "")
    return [
        {str(key): str(value) for key, value in row.items()} for row in texts.to_dict("records")
    ]


def _version(feed: Feed) -> str:
    """Version by the feed's own word."""
    info = feed.feed_info
    if info is None or "feed_version" not in info or info.empty:
        return ""
    return str(info["feed_version"].iloc[0])


def _served(path: Path, feed: Feed) -> pd.DataFrame:
    """Return which stop is served in which mode at which times."""
    if fault := lacking(feed, _SERVED):
        refuse_feed(path, f"{fault}, or --mode, for it does not say what serves a stop")
    routes = feed.routes.assign(mode=feed.routes["route_type"].map(mode_of_route_type))
    trips = feed.trips[["trip_id", "route_id"]].merge(routes[["route_id", "mode"]], on="route_id")
    times = feed.stop_times[["trip_id", "stop_id", "arrival_time", "departure_time"]]
    served: pd.DataFrame = times.merge(trips[["trip_id", "mode"]], on="trip_id")
    return served.dropna(subset=["mode"])


def _stops(
    rows: list[dict[str, str]], modes: Mapping[str, set[str]], mode: str | None
) -> tuple[Stop, ...]:
    """Return stops and stations; a station has the modes of its stops."""
    kept = [row for row in rows if row.get("location_type", "") in _STOPS_AND_STATIONS]
    of_station: dict[str, set[str]] = {}
    for row in kept:
        stop_modes = {mode} if mode else modes.get(row["stop_id"], set())
        for stop_id in (row["stop_id"], row.get("parent_station", "")):
            of_station.setdefault(stop_id, set()).update(stop_modes)
    return tuple(
        Stop(
            stop_id=row["stop_id"],
            name=row.get("stop_name") or row["stop_id"],
            latitude=_degrees(row.get("stop_lat", "")),
            longitude=_degrees(row.get("stop_lon", "")),
            parent=row.get("parent_station") or None,
            modes=tuple(sorted(of_station[row["stop_id"]])),
        )
        for row in kept
    )


def _degrees(text: str) -> float | None:
    """Return a coordinate; None for what is none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) <= 180 else None  # noqa: PLR2004 - degrees


def _service_hours(served: pd.DataFrame) -> dict[str, tuple[str, str]]:
    """Return first departure and last arrival of each mode."""
    times = served[["mode"]].assign(
        first=seconds_of(served["departure_time"]), last=seconds_of(served["arrival_time"])
    )
    hours = times.groupby("mode").agg({"first": "min", "last": "max"}).dropna()
    return {
        str(mode): (_clock(int(first)), _clock(int(last)))
        for mode, first, last in hours.itertuples()
    }


def _clock(seconds: int) -> str:
    """Return `HH:MM`; hours beyond 24 are after midnight, as in GTFS."""
    hours, rest = divmod(seconds, _SECONDS_PER_HOUR)
    return f"{hours:02d}:{rest // _SECONDS_PER_MINUTE:02d}"


def read_postcodes(path: Path) -> tuple[PostcodePoint, ...]:
    """Read points of postcodes from a CSV file with postcode, latitude and longitude.

    Where a column `Type` distinguishes delivery areas from post-office boxes and large receivers,
    only the areas count: the others have somebody else's coordinates.

    Raises:
        InputError: not there, or a column is missing, or no line is usable.
    """
    if not path.is_file():
        _refuse(path, "file", "is not there; name a CSV file of postcodes")
    points = []
    for row in _table(path):
        plain = {_ALIASES.get(key.lower(), key.lower()): value for key, value in row.items()}
        for column in _POSTCODE_COLUMNS:
            if column not in plain:
                _refuse(path, column, "is missing; the header needs postcode, latitude, longitude")
        latitude, longitude = _degrees(plain["latitude"]), _degrees(plain["longitude"])
        is_area = plain.get("type", _DELIVERY).lower() == _DELIVERY
        if is_area and plain["postcode"] and latitude is not None and longitude is not None:
            points.append(PostcodePoint(plain["postcode"], latitude, longitude))
    if not points:
        _refuse(path, "rows", "holds no postcode with coordinates; check the file")
    return tuple(points)


def _table(path: Path) -> list[dict[str, str]]:
    """Read a CSV file as texts."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        _refuse(path, "encoding", "is not UTF-8; save it as UTF-8")
    reader = csv.DictReader(io.StringIO(text, newline=""))
    return [{key: (value or "").strip() for key, value in row.items() if key} for row in reader]


def _refuse(path: Path, field: str, rule: str) -> NoReturn:
    """Raise the sentence."""
    raise InputError(where=path.name, field=field, rule=rule)
