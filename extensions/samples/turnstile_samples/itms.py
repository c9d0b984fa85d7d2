"""Made-up bus telemetry of Surat: buses that run up and down routes along a grid of roads.

Calibrated to the tables of "Data Anonymization via Differential Privacy" (the ITMS report): four
fifths of the records between 9:00 and 21:00, cells and buses by resolution of H3, a bus in 89 pairs
of hexagon and hour a day at most, speeds up to 65 km/h. `make bench-utility` prints the report's
figures beside ours. Fleet and length of duty are not in the report; they are chosen to fit. Speeds
depend on place and hour (`field_kmh`), as much as they did in a real city: about 7 km/h by places,
0.9 km/h by hours that all places share.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import numpy.typing as npt

from turnstile.errors import InputError
from turnstile.service_calendar import ServiceWeek
from turnstile_samples.corruption import MISSING, Corruption, Rows, corrupt_days, some_of

CORRUPTIONS = tuple(kind for kind in Corruption if kind is not Corruption.UNKNOWN_MODE)
DEGREES_SCALE = 1_000_000  # coordinates are coded in millionths of a degree
SPEED_CODE_SCALE = 100  # speeds in hundredths of the unit
_BUSES_MAX = 800  # but for weeks of more observations than such a fleet makes
_OBSERVATIONS_A_BUS_DAY, _OBSERVATIONS_A_BUS_DAY_MAX = 60, 400
_CITY_ROUTES, _OUTER_ROUTES = 135, 5
_SHARE_OUTER = 0.06  # of the bus-days: a few trips a day, to places beyond the service area
_CITY_REACH, _OUTER_REACH = (0.1, 0.62), (1.2, 1.7)  # where routes end, in half widths of the area
_START_SPREAD = 0.34
_JITTER_DEGREES = 0.0003
_ROAD_KM, _ROUTE_KM_MIN = 3.0, 3.0
_ROUTE_SKEW = 0.008
_FIRST_HOUR, _LAST_HOUR = 5, 21
_DUTY_HOURS, _DUTY_SPREAD, _DUTY_HOURS_MAX = 4.3, 0.5, 11.6
_CRUISE_KM_PER_H = 11.5
_KM_PER_DEGREE = 111.2
_SHARE_STANDING = 0.23
_SPEED_MAX_KMH = 64
_SPEED_SHAPE, _SPEED_SCALE_KMH = 3.2, 7.6  # of moving buses: a gamma distribution
_CENTER, _KM_PER_DEGREE_EAST = (21.19, 72.83), 103
_USUAL_KMH = 20.5  # of the field, over the city's observations
_ROUTE_SEED = 6  # routes do not change with the seed of the sample
Floats = npt.NDArray[np.float64]


def read_area(path: Path) -> npt.NDArray[np.float64]:
    """Read the public service area: the corners (longitude, latitude) of a convex polygon.

    Raises:
        InputError: the file is missing, or is no GeoJSON polygon.
    """
    try:
        feature = json.loads(path.read_text(encoding="utf-8"))["features"][0]
        return np.array(feature["geometry"]["coordinates"][0], dtype=np.float64)
    except (OSError, ValueError, LookupError, TypeError):
        rule = "the public service area is not there or is no GeoJSON polygon"
        raise InputError(where=path.name, field="features", rule=rule) from None


def itms_rows(
    week: ServiceWeek,
    rows: int,
    seed: int,
    *,
    area: npt.NDArray[np.float64],
    corruptions: frozenset[Corruption],
) -> Rows:
    """Return one week of observations in coded columns of equal length, int64.

    Args:
        week: service week.
        rows: observations of a clean week.
        seed: any integer.
        area: corners of the service area, shape (corners, 2).
        corruptions: ways to spoil the rows.
    """
    rng = np.random.default_rng([seed, week.iso_year, week.iso_week])
    seen = _observations(rows, _routes(area), rng)
    order = np.lexsort((seen["second"], seen["day"]))
    seen = {name: values[order] for name, values in seen.items()}
    if Corruption.NULLS in corruptions:
        for column in ("bus", "latitude", "speed"):
            seen[column][some_of(seen, rng)] = MISSING
    if Corruption.OUTLIERS in corruptions:
        seen["speed"][some_of(seen, rng)] = 400 * SPEED_CODE_SCALE
        seen["speed"][some_of(seen, rng)] = -30 * SPEED_CODE_SCALE
        nowhere = some_of(seen, rng)
        seen["latitude"][nowhere] = seen["longitude"][nowhere] = 0
    if Corruption.WRONG_UNIT in corruptions:
        seen["speed"] = np.where(seen["speed"] > 0, seen["speed"] * 5 // 18, seen["speed"])
    return corrupt_days(seen, corruptions, rng)


def _routes(area: Floats) -> Floats:
    """Start, corner and end of each route, degrees, shape (routes, 3, 2); the outer ones last."""
    rng = np.random.default_rng(_ROUTE_SEED)
    center, half = area[:-1].mean(axis=0), np.ptp(area, axis=0) / 2
    half_km = half * _KM_PER_DEGREE * [np.cos(np.radians(center[1])), 1.0]
    city = _along_roads(rng, _CITY_ROUTES, _CITY_REACH, half_km)
    outer = _along_roads(rng, _OUTER_ROUTES, _OUTER_REACH, half_km)
    routes: Floats = center + half * np.concatenate([city, outer])
    return routes


def _along_roads(
    rng: np.random.Generator, routes: int, reach: tuple[float, float], half_km: Floats
) -> Floats:
    """Routes that turn once between two crossings, one near the center, in half widths."""
    tries = 100 * routes
    start = rng.normal(0, _START_SPREAD, size=(tries, 2))
    angle, far = rng.uniform(0, 2 * np.pi, size=tries), rng.uniform(*reach, size=tries)
    end = np.stack([np.cos(angle) * far, np.sin(angle) * far], axis=1)
    roads = _ROAD_KM / half_km
    start, end = np.round(start / roads) * roads, np.round(end / roads) * roads
    is_east_first = rng.random((tries, 1)).round() == 0
    corner = np.where(is_east_first == [True, False], end, start)
    ways = np.stack([start, corner, end], axis=1)
    is_inside = np.linalg.norm(ways, axis=2).max(axis=1) <= max(1.0, reach[1])
    is_long = np.abs((end - start) * half_km).sum(axis=1) > _ROUTE_KM_MIN
    chosen: Floats = ways[is_inside & is_long][:routes]
    return chosen


def _duties(
    bus_days: int, rng: np.random.Generator
) -> tuple[npt.NDArray[np.int64], Floats, Floats]:
    """Route, first hour and length in hours of each bus-day's duty.

    An outer route is run for a short while, at about its own hour.
    """
    is_outer = rng.random(bus_days) < _SHARE_OUTER
    city = (rng.geometric(_ROUTE_SKEW, size=bus_days) - 1) % _CITY_ROUTES
    outer = _CITY_ROUTES + rng.integers(_OUTER_ROUTES, size=bus_days)
    route = np.where(is_outer, outer, city)
    hours = np.clip(
        rng.lognormal(np.log(_DUTY_HOURS), _DUTY_SPREAD, bus_days), 0.7, _DUTY_HOURS_MAX
    )
    hours = np.where(is_outer, np.clip(hours / 3, 0.7, 2.5), hours)
    usual = np.random.default_rng(_ROUTE_SEED).uniform(6, 16, size=_CITY_ROUTES + _OUTER_ROUTES)
    begin = rng.uniform(_FIRST_HOUR - 0.4 * hours, _LAST_HOUR - 0.3 * hours)
    begin = np.where(is_outer, usual[route] + rng.normal(0, 1.2, size=bus_days), begin)
    end = np.minimum(begin + hours, _LAST_HOUR)
    begin = np.clip(begin, _FIRST_HOUR, _LAST_HOUR - 0.1)
    return route, begin, np.maximum(end - begin, 0.05)


def _observations(rows: int, routes: Floats, rng: np.random.Generator) -> Rows:
    """Clean observations of bus-days whose hours on duty vary a lot."""
    most = max(_BUSES_MAX, rows // (7 * _OBSERVATIONS_A_BUS_DAY_MAX))
    buses = int(np.clip(rows // (7 * _OBSERVATIONS_A_BUS_DAY), 4, most))
    bus_days = buses * 7
    route, begin, hours = _duties(bus_days, rng)
    of = np.searchsorted(np.cumsum(hours / hours.sum()), rng.random(rows)).clip(0, bus_days - 1)
    since = rng.random(rows) * hours[of]
    place = _places(routes[route], of, since, rng.random(bus_days))
    place = place + rng.normal(0, _JITTER_DEGREES, size=place.shape)
    standing = rng.random(rows) < _SHARE_STANDING
    hour = begin[of] + since
    moving = rng.gamma(_SPEED_SHAPE, _SPEED_SCALE_KMH, size=rows)
    moving *= field_kmh(place[:, 1], place[:, 0], hour) / _USUAL_KMH
    speed = np.clip(1 + moving, 1, _SPEED_MAX_KMH).astype(np.int64)
    day = of % 7
    return {
        "bus": of // 7,
        "day": day.copy(),
        "file_day": day,
        "second": (hour * 3600).astype(np.int64),
        "route": route[of],
        "trip": of * 40 + (since * 2).astype(np.int64),
        "latitude": np.round(place[:, 1] * DEGREES_SCALE).astype(np.int64),
        "longitude": np.round(place[:, 0] * DEGREES_SCALE).astype(np.int64),
        "speed": np.where(standing, 0, speed * SPEED_CODE_SCALE),
        "delay": rng.normal(300, 400, size=rows).astype(np.int64),
        "stop": rng.integers(1, 5000, size=rows),
    }


def field_kmh(latitude: Floats, longitude: Floats, hour: Floats) -> Floats:
    """Return the mean speed of a place and hour: slow in the center, and there in the peaks.

    Two peaks, about 10:00 and 18:30; blocks of a few hundred meters differ by chance.
    """
    north, east = latitude - _CENTER[0], longitude - _CENTER[1]
    far_km = np.hypot(north * _KM_PER_DEGREE, east * _KM_PER_DEGREE_EAST)
    blocks = 5 * np.sin(latitude * 400) * np.cos(longitude * 400)
    morning, evening = (hour - 10) / 1.2, (hour - 18.5) / 1.5
    peaks = np.exp(-(morning**2) / 2) + 1.2 * np.exp(-(evening**2) / 2)
    slowed = 1 - (0.06 + 0.12 * np.exp(-far_km / 8)) * peaks
    field: Floats = (14 + 1.6 * np.minimum(far_km, 30) + blocks) * slowed
    return field


def _places(ways: Floats, of: npt.NDArray[np.int64], since: Floats, started: Floats) -> Floats:
    """Where buses are that run up and down, shape (observations, 2), degrees.

    Args:
        ways: of each bus-day, shape (bus_days, 3, 2).
        of: bus-day of each observation.
        since: hours on duty, shape (observations,).
        started: where on its way each bus-day began, in lengths of the way.
    """
    legs = np.diff(ways, axis=1)
    flat = [np.cos(np.radians(ways[0, 0, 1])), 1.0]
    first_km, second_km = np.linalg.norm(legs * flat, axis=2).T * _KM_PER_DEGREE
    length_km = first_km + second_km
    way = (since * _CRUISE_KM_PER_H / (length_km + 0.5)[of] + 2 * started[of]) % 2.0
    run_km = np.where(way > 1, 2 - way, way) * length_km[of]
    on_first = np.clip(run_km / np.maximum(first_km[of], 1e-9), 0, 1)
    on_second = np.clip((run_km - first_km[of]) / np.maximum(second_km[of], 1e-9), 0, 1)
    places: Floats = (
        ways[of, 0] + legs[of, 0] * on_first[:, None] + legs[of, 1] * on_second[:, None]
    )
    return places
