"""Makes a public domain of trips from public sources: a GTFS feed and a lookup of postcodes.

A bus stop is published as the postcode whose point is nearest; a stop, platform or wharf of any
other mode as its station (GTFS `parent_station`), or as itself where it has none. What does not
join is left out, so that its rows count as UNKNOWN, and is named in the report: all of it is
public. Reading the files is the business of `public_sources`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from turnstile.programme.domain.csv_text import csv_text
from turnstile.programme.domain.public_domain import UNKNOWN

HEADER = ("mode", "location", "area", "latitude", "longitude")
_EARTH_RADIUS_KM = 6371.0
_STOPS_AT_ONCE = 2000  # distances are computed in blocks of so many stops


class LocationName(StrEnum):
    """What rows call a stop."""

    STOP_ID = "stop_id"
    STOP_NAME = "stop_name"


@dataclass(frozen=True, slots=True)
class Stop:
    """A stop, platform or station of GTFS.

    Args:
        stop_id: as in the feed.
        name: for people.
        latitude: degrees; None if the feed has none.
        longitude: degrees; None if the feed has none.
        parent: stop_id of its station; None where it has none.
        modes: modes that serve it, or any stop of its station.
    """

    stop_id: str
    name: str
    latitude: float | None
    longitude: float | None
    parent: str | None
    modes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PostcodePoint:
    """A point of a postcode, degrees; a postcode may have several."""

    postcode: str
    latitude: float
    longitude: float


@dataclass(frozen=True, slots=True)
class BuildRules:
    """How stops become locations.

    Args:
        location: what rows call a stop.
        postcode_modes: modes that are published by postcode; the others by station.
        within_km: a stop farther than this from every postcode's point has none.
    """

    location: LocationName = LocationName.STOP_ID
    postcode_modes: tuple[str, ...] = ("bus",)
    within_km: float = 25.0


@dataclass(frozen=True, slots=True)
class BuiltPlace:
    """One line of a domain file."""

    mode: str
    location: str
    area: str
    latitude: float
    longitude: float


@dataclass(frozen=True, slots=True)
class BuiltDomain:
    """A domain and what did not join.

    Args:
        places: lines of the file, sorted.
        left_out: reason to stop ids, sorted; their rows will count as UNKNOWN.
    """

    places: tuple[BuiltPlace, ...]
    left_out: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def locations_by_mode(self) -> dict[str, int]:
        """Locations of each mode."""
        return dict(sorted(Counter(place.mode for place in self.places).items()))

    @property
    def areas_by_mode(self) -> dict[str, int]:
        """Areas of each mode: what is published."""
        return dict(sorted(Counter(m for m, _ in {(p.mode, p.area) for p in self.places}).items()))

    def csv(self) -> str:
        """Return the text of the domain file; equal input has equal bytes."""
        rows = (
            (p.mode, p.location, p.area, f"{p.latitude:.6f}", f"{p.longitude:.6f}")
            for p in self.places
        )
        return csv_text(HEADER, rows)


def build_domain(
    stops: Sequence[Stop], postcodes: Sequence[PostcodePoint], rules: BuildRules
) -> BuiltDomain:
    """Return the domain of stops.

    Args:
        stops: of one feed.
        postcodes: may be empty where no mode is published by postcode.
        rules: how stops become locations.
    """
    left_out: dict[str, list[str]] = {}
    positioned = [s for s in stops if s.latitude is not None and s.longitude is not None]
    known = {stop.stop_id for stop in positioned}
    left_out["without_coordinates"] = [s.stop_id for s in stops if s.stop_id not in known]
    left_out["without_service"] = [stop.stop_id for stop in positioned if not stop.modes]
    by_postcode = [s for s in positioned if set(s.modes) & set(rules.postcode_modes)]
    nearest = nearest_postcodes(by_postcode, postcodes, within_km=rules.within_km)
    left_out["far_from_postcodes"] = [s.stop_id for s in by_postcode if s.stop_id not in nearest]
    stations = _station_names(stops)
    built_places: list[tuple[str, BuiltPlace]] = []
    for stop in positioned:
        for mode in stop.modes:
            by_station = mode not in rules.postcode_modes
            area = stations[stop.stop_id] if by_station else nearest.get(stop.stop_id)
            if area is not None:
                built_places.append((stop.stop_id, _place(stop, mode, area, rules.location)))
    places, left_out["name_of_several_areas"] = _one_area_each(built_places)
    return BuiltDomain(
        places, {reason: tuple(sorted(set(ids))) for reason, ids in left_out.items() if ids}
    )


def nearest_postcodes(
    stops: Sequence[Stop], postcodes: Sequence[PostcodePoint], *, within_km: float
) -> dict[str, str]:
    """Return the postcode of the nearest point for each stop that has one near enough.

    Of points that are equally near, the lowest postcode counts. Distances are on the sphere
    (haversine), which at these lengths is right to about half a percent.

    Args:
        stops: with coordinates.
        postcodes: points.
        within_km: limit, km.
    """
    if not postcodes or not stops:
        return {}
    points = sorted(postcodes, key=lambda point: point.postcode)
    towards = _radians((point.latitude, point.longitude) for point in points)
    postcode_of_stop: dict[str, str] = {}
    for start in range(0, len(stops), _STOPS_AT_ONCE):
        block = stops[start : start + _STOPS_AT_ONCE]
        away = _radians((s.latitude or 0.0, s.longitude or 0.0) for s in block)
        distance_km = _haversine_km(away[:, None, :], towards[None, :, :])
        best = distance_km.argmin(axis=1)
        for stop, place, row in zip(block, best, distance_km, strict=True):
            if row[place] <= within_km:
                postcode_of_stop[stop.stop_id] = points[place].postcode
    return postcode_of_stop


def _radians(degrees: Iterable[tuple[float, float]]) -> NDArray[np.float64]:
    """Pairs in degrees as an array in radians, shape (n, 2)."""
    return np.radians(np.array(list(degrees), dtype=np.float64).reshape(-1, 2))


def _haversine_km(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Great-circle distance of (latitude, longitude) in radians, along the last axis."""
    half = np.sin((b - a) / 2) ** 2
    squared = half[..., 0] + np.cos(a[..., 0]) * np.cos(b[..., 0]) * half[..., 1]
    return np.asarray(2 * _EARTH_RADIUS_KM * np.arcsin(np.sqrt(np.minimum(squared, 1.0))))


def _station_names(stops: Sequence[Stop]) -> dict[str, str]:
    """Return the name of each stop's station; stations that share a name get their id beside it."""
    by_id = {stop.stop_id: stop for stop in stops}
    station_of = {stop.stop_id: by_id.get(stop.parent or "", stop) for stop in stops}
    stations = {station.stop_id: station.name for station in station_of.values()}
    shared = Counter(stations.values())
    return {
        stop_id: (
            station.name
            if shared[station.name] == 1 and station.name != UNKNOWN
            else f"{station.name} ({station.stop_id})"
        )
        for stop_id, station in station_of.items()
    }


def _place(stop: Stop, mode: str, area: str, location: LocationName) -> BuiltPlace:
    called = stop.stop_id if location is LocationName.STOP_ID else stop.name
    return BuiltPlace(mode, called, area, stop.latitude or 0.0, stop.longitude or 0.0)


def _one_area_each(
    built_places: Sequence[tuple[str, BuiltPlace]],
) -> tuple[tuple[BuiltPlace, ...], list[str]]:
    """Return one line a location; leave out names that stand for several areas of a mode."""
    areas: dict[tuple[str, str], set[str]] = {}
    for _, place in built_places:
        areas.setdefault((place.mode, place.location), set()).add(place.area)
    first: dict[tuple[str, str], BuiltPlace] = {}
    several = []
    for stop_id, place in built_places:
        if len(areas[place.mode, place.location]) > 1:
            several.append(stop_id)
        else:
            first.setdefault((place.mode, place.location), place)
    ordered = sorted(first.values(), key=lambda p: (p.mode, p.location))
    return tuple(ordered), several
