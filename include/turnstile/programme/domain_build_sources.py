"""Reads the public sources of a domain: a GTFS feed, a stops.txt alone, a lookup of postcodes."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from turnstile.errors import InputError
from turnstile.programme.domain_build import PostcodePoint, Stop

if TYPE_CHECKING:
    import pandas as pd

# GTFS route_type and its extension by Google in hundreds.
_MODE_OF_TYPE = {0: "light_rail", 1: "subway", 2: "train", 3: "bus", 4: "ferry", 5: "light_rail"}
_MODE_OF_TYPE |= {11: "bus", 12: "train"}
_MODE_OF_HUNDRED = {1: "train", 2: "bus", 4: "subway", 7: "bus", 9: "light_rail", 10: "ferry"}
_MODE_OF_HUNDRED |= {12: "ferry"}
_STOPS_AND_STATIONS = ("", "0", "1")  # location_type; the others are entrances and the like
_POSTCODE_COLUMNS = ("postcode", "latitude", "longitude")
_ALIASES = {"lat": "latitude", "long": "longitude", "lon": "longitude", "lng": "longitude"}
_DELIVERY = "delivery area"
_SECONDS_PER_HOUR, _SECONDS_PER_MINUTE = 3600, 60


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


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, or of the files of a folder in the order of their names."""
    digest = hashlib.sha256()
    for file in sorted(path.glob("*.txt")) if path.is_dir() else [path]:
        digest.update(file.read_bytes())
    return digest.hexdigest()


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
    rows = _texts(feed.stops)
    if mode is not None:
        return StopList(_stops(rows, {}, mode), {}, _version(feed))
    served = _served(path, feed)
    modes: dict[str, set[str]] = {}
    pairs = served[["stop_id", "mode"]].drop_duplicates()
    for stop_id, of_stop in zip(pairs["stop_id"], pairs["mode"], strict=True):
        modes.setdefault(str(stop_id), set()).add(of_stop)
    return StopList(_stops(rows, modes, None), _service_hours(served), _version(feed))


def read_feed(path: Path) -> Any:  # noqa: ANN401 - gtfs-kit has no types
    """Read a feed with gtfs-kit."""
    import gtfs_kit

    try:
        feed = gtfs_kit.read_feed(path, dist_units="km")
    except Exception as error:  # noqa: BLE001 - whatever the library meets in a foreign file
        _refuse(path, "feed", f"does not read as GTFS ({type(error).__name__}); check the feed")
    if feed.stops is None:  # the library passes over what it cannot find or unpack
        _refuse(path, "feed", "holds no stops.txt that can be read; check the feed")
    return feed


def _texts(stops: pd.DataFrame) -> list[dict[str, str]]:
    """Return stops as texts, missing values as empty ones."""
    present = stops.notna()
    texts = stops.astype(str).where(present, "")
    return [
        {str(key): str(value) for key, value in row.items()} for row in texts.to_dict("records")
    ]


def _version(feed: Any) -> str:  # noqa: ANN401
    """Version by the feed's own word."""
    info = feed.feed_info
    if info is None or "feed_version" not in info or info.empty:
        return ""
    return str(info["feed_version"].iloc[0])


def _served(path: Path, feed: Any) -> pd.DataFrame:  # noqa: ANN401
    """Return which stop is served in which mode at which times."""
    if feed.stop_times is None or feed.trips is None or feed.routes is None:
        _refuse(path, "stop_times", "the feed does not say what serves a stop; give --mode")
    routes = feed.routes.assign(mode=feed.routes["route_type"].map(mode_of_route_type))
    trips = feed.trips[["trip_id", "route_id"]].merge(routes[["route_id", "mode"]], on="route_id")
    times = feed.stop_times[["trip_id", "stop_id", "arrival_time", "departure_time"]]
    served: pd.DataFrame = times.merge(trips[["trip_id", "mode"]], on="trip_id")
    return served.dropna(subset=["mode"])


def mode_of_route_type(route_type: float) -> str | None:
    """Return the mode of a route type; None for gondolas, funiculars, taxis and the like."""
    number = int(route_type)
    if number in _MODE_OF_TYPE:
        return _MODE_OF_TYPE[number]
    return _MODE_OF_HUNDRED.get(number // 100)


def _stops(
    rows: list[dict[str, str]], modes: Mapping[str, set[str]], mode: str | None
) -> tuple[Stop, ...]:
    """Return stops and stations; a station has the modes of its stops."""
    kept = [row for row in rows if row.get("location_type", "") in _STOPS_AND_STATIONS]
    of_station: dict[str, set[str]] = {}
    for row in kept:
        own = {mode} if mode else modes.get(row["stop_id"], set())
        for stop_id in (row["stop_id"], row.get("parent_station", "")):
            of_station.setdefault(stop_id, set()).update(own)
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
    found = {}
    for mode, times in served.groupby("mode"):
        first = min(_seconds(text) for text in times["departure_time"].dropna().unique())
        last = max(_seconds(text) for text in times["arrival_time"].dropna().unique())
        found[str(mode)] = (_clock(first), _clock(last))
    return found


def _seconds(text: str) -> int:
    """Return seconds after midnight of `25:10:00`."""
    hours, minutes, seconds = (int(part) for part in str(text).split(":"))
    return hours * _SECONDS_PER_HOUR + minutes * _SECONDS_PER_MINUTE + seconds


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
