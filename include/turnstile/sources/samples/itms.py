"""Made-up bus telemetry of Surat: buses that run up and down straight routes of the service area.

Calibrated to "Data Anonymization via Differential Privacy" (the ITMS report): operation from 5:00
to 21:00, some 800 buses, some 120 H3 cells of resolution 7, a bus in some 15 hexagon-and-hour
pairs a day and in 89 at most, speeds up to 65 km/h.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import numpy.typing as npt

from turnstile.errors import InputError
from turnstile.service_calendar import ServiceWeek
from turnstile.sources.samples.dirt import MISSING, Dirt, Rows, soil_days, some_of

DIRT = tuple(dirt for dirt in Dirt if dirt is not Dirt.UNKNOWN_MODE)
DEGREES_SCALE = 1_000_000  # coordinates are coded in millionths of a degree
SPEED_CODE_SCALE = 100  # speeds in hundredths of the unit
_BUSES_MAX = 800
_OBSERVATIONS_A_BUS_DAY = 60
_ROUTES = 140
_FIRST_HOUR, _LAST_HOUR = 5, 21
_CRUISE_KM_PER_S = 11.5 / 3600
_KM_PER_DEGREE = 111.2
_SHARE_STANDING = 0.23
_SPEED_MAX_KMH = 64
_ROUTE_SEED = 20211115  # routes do not change with the seed


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
    dirt: frozenset[Dirt],
) -> Rows:
    """Return one week of observations in coded columns of equal length, int64.

    Args:
        week: service week.
        rows: observations of a clean week.
        seed: any integer.
        area: corners of the service area, shape (corners, 2).
        dirt: ways to spoil the rows.
    """
    rng = np.random.default_rng([seed, week.iso_year, week.iso_week])
    seen = _observations(rows, _routes(area), rng)
    order = np.lexsort((seen["second"], seen["day"]))
    seen = {name: values[order] for name, values in seen.items()}
    if Dirt.NULLS in dirt:
        for column in ("bus", "latitude", "speed"):
            seen[column][some_of(seen, rng)] = MISSING
    if Dirt.OUTLIERS in dirt:
        seen["speed"][some_of(seen, rng)] = 400 * SPEED_CODE_SCALE
        seen["speed"][some_of(seen, rng)] = -30 * SPEED_CODE_SCALE
        nowhere = some_of(seen, rng)
        seen["latitude"][nowhere] = seen["longitude"][nowhere] = 0
    if Dirt.WRONG_UNIT in dirt:
        seen["speed"] = np.where(seen["speed"] > 0, seen["speed"] * 5 // 18, seen["speed"])
    return soil_days(seen, dirt, rng)


def _routes(area: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Both ends of each route, shape (routes, 2, 2): one near the center, one anywhere in the area.

    A point between the center and a corner's edge is in the area, because the area is convex.
    """
    rng = np.random.default_rng(_ROUTE_SEED)
    center = area[:-1].mean(axis=0)
    corner = rng.integers(0, len(area) - 1, size=(_ROUTES, 2))
    along = rng.random((_ROUTES, 2, 1))
    edge = area[corner] * along + area[corner + 1] * (1 - along)
    reach = np.stack([0.4 * rng.random(_ROUTES), rng.uniform(0.3, 0.99, size=_ROUTES)], axis=1)
    ends: npt.NDArray[np.float64] = center + (edge - center) * reach[:, :, None]
    return ends


def _observations(rows: int, routes: npt.NDArray[np.float64], rng: np.random.Generator) -> Rows:
    """Clean observations of bus-days whose hours on duty vary a lot."""
    buses = int(np.clip(rows // (7 * _OBSERVATIONS_A_BUS_DAY), 4, _BUSES_MAX))
    bus_days = buses * 7
    route = np.minimum(rng.geometric(0.012, size=bus_days) - 1, len(routes) - 1)
    duty = np.clip(rng.lognormal(np.log(3.6), 0.5, size=bus_days), 0.7, 16.0) * 3600
    begin = _FIRST_HOUR * 3600 + rng.random(bus_days) * ((_LAST_HOUR - _FIRST_HOUR) * 3600 - duty)
    of = np.searchsorted(np.cumsum(duty / duty.sum()), rng.random(rows)).clip(0, bus_days - 1)
    since = rng.random(rows) * duty[of]
    ends = routes[route]
    length_km = np.linalg.norm((ends[:, 1] - ends[:, 0]) * _KM_PER_DEGREE, axis=1) + 0.5
    way = (since * _CRUISE_KM_PER_S / length_km[of] + rng.random(bus_days)[of]) % 2.0
    share = np.where(way > 1, 2 - way, way)[:, None]
    place = ends[of, 0] * (1 - share) + ends[of, 1] * share
    place = place + rng.normal(0, 0.0008, size=place.shape)
    standing = rng.random(rows) < _SHARE_STANDING
    speed = np.clip(1 + rng.gamma(3.2, 7.6, size=rows), 1, _SPEED_MAX_KMH).astype(np.int64)
    day = of % 7
    return {
        "bus": of // 7,
        "day": day.copy(),
        "file_day": day,
        "second": (begin[of] + since).astype(np.int64),
        "route": route[of],
        "trip": of * 40 + (since // 1800).astype(np.int64),
        "latitude": np.round(place[:, 1] * DEGREES_SCALE).astype(np.int64),
        "longitude": np.round(place[:, 0] * DEGREES_SCALE).astype(np.int64),
        "speed": np.where(standing, 0, speed * SPEED_CODE_SCALE),
        "delay": rng.normal(300, 400, size=rows).astype(np.int64),
        "stop": rng.integers(1, 5000, size=rows),
    }
