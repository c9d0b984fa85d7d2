"""A generated city for the ITMS benchmarks, counted and drawn by the product's own code.

The sample that every installation generates: up to 800 buses, speeds that depend on place and hour.
Truth is the unbounded count of the same rows.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from turnstile.counting.exact_tables import count
from turnstile.estimates.vehicles.mean_intervals import RatioNoise
from turnstile.privacy.mechanisms.dispatch import draw
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.domain.files import load_domain
from turnstile.programme.domain.public_domain import (
    Dimension,
    ModeCells,
    PublicDomain,
    public_domain,
)
from turnstile.programme.loading import load_programme
from turnstile.programme.mechanism_spec import MechanismSpec
from turnstile.programme.spec import Programme, UnitBound
from turnstile.release.plan import make_plan
from turnstile.service_calendar import ServicePeriod, ServiceWeek
from turnstile_samples.itms import DEGREES_SCALE, SPEED_CODE_SCALE, itms_rows, read_area

INCLUDE = Path(__file__).parents[1] / "include"
ROWS_A_WEEK = 3_830_000  # the source's density: 16,977,444 records in 31 days
CLAMP_KMH, LIMIT_KMH = 65, 40
HUGE_BOUND = 100_000
Split = tuple[tuple[str, Fraction], ...]
# The shares of itms.yaml, whose two limits are one here.
PROGRAMME_SPLIT: Split = (
    ("speed/sum", Fraction(9, 20)),
    ("speed/buses", Fraction(3, 20)),
    ("speeding/over_40", Fraction(2, 5)),
)
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class City:
    """Canonical rows of a month in a folder, and the programme that they are released by."""

    rows: Path
    programme: Programme


@dataclass(frozen=True)
class Design:
    """What a release chooses in public: K pairs of a bus-day, and the shares of its rho."""

    bound: int
    split: Split = PROGRAMME_SPLIT


@dataclass(frozen=True)
class Vectors:
    """What is counted or drawn of each cell: centered sums, bus-days, bus-days above the limit."""

    sums: Ints
    buses: Ints
    over: Ints


def make_city(folder: Path, days: Sequence[date], rows_a_week: int, *, seed: int) -> City:
    """Write the rows of some days, by service day."""
    area = read_area(INCLUDE / "domains/surat_area.geojson")
    for week in sorted({ServiceWeek.containing(day) for day in days}):
        seen = itms_rows(week, rows_a_week, seed, area=area, corruptions=frozenset())
        latitude, longitude = seen["latitude"] / DEGREES_SCALE, seen["longitude"] / DEGREES_SCALE
        speed = seen["speed"] * (1000 // SPEED_CODE_SCALE)
        for number, day in enumerate(week.days):
            if day not in days:
                continue
            on_day = seen["day"] == number
            seconds = seen["second"][on_day]
            instants = np.datetime64(day, "us") + seconds.astype("timedelta64[s]")
            table = pa.table(
                {
                    "vehicle_id": pa.array(seen["bus"][on_day].astype(str)),
                    "observed_at_utc": instants,
                    "minute_of_day": (seconds // 60).astype(np.int32),
                    "latitude": latitude[on_day],
                    "longitude": longitude[on_day],
                    "speed_milli_kmh": speed[on_day],
                }
            )
            place = folder / "rows" / f"service_date={day}"
            place.mkdir(parents=True)
            pq.write_table(table, place / "part-000.parquet")
    itms = load_programme("itms", INCLUDE)
    speeding = replace(itms.tables[1], limits_kmh=(LIMIT_KMH,))
    return City(folder / "rows", replace(itms, tables=(itms.tables[0], speeding), caps=()))


def at_resolution(city: City, resolution: int) -> PublicDomain:
    """Return the service area's cells of one resolution."""
    domain = replace(city.programme.domain, h3_resolution=resolution)
    return load_domain(replace(city.programme, domain=domain), INCLUDE)


def of_cells(city: City, cells: Sequence[str]) -> PublicDomain:
    """Return a domain of these cells, of one resolution or mixed."""
    slots, _ = at_resolution(city, 7).dimensions("bus")
    axes = (slots, Dimension("cell", tuple(sorted(cells))))
    return public_domain("benchmark", (ModeCells("bus", axes),))


def counted(
    city: City, domain: PublicDomain, period: ServicePeriod, *, bound: int, finest: int
) -> Vectors:
    """Count a period under a bound by the product's own counting."""
    units = (UnitBound(ProtectionUnit.BUS_DAY, bound),)
    cells = replace(city.programme.domain, h3_resolution=finest)
    programme = replace(city.programme, units=units, domain=cells)
    with tempfile.TemporaryDirectory() as work:
        tables = count(
            programme,
            domain,
            period.days,
            city.rows,
            secret=b"benchmark",
            work=Path(work),
            progress=lambda _: None,
        )
    return Vectors(*(table.reveal_to_mechanism() for table in tables))


def drawn(
    city: City, domain: PublicDomain, exact: Vectors, rho: Fraction, design: Design
) -> tuple[Vectors, RatioNoise]:
    """Plan with this rho for a bus-day, and draw once."""
    kind = city.programme.mechanism.kind
    mechanism = MechanismSpec(kind, ProtectionUnit.BUS_DAY, rho, design.split)
    units = (UnitBound(ProtectionUnit.BUS_DAY, design.bound),)
    programme = replace(city.programme, mechanism=mechanism, units=units)
    events = make_plan(programme, domain, ServiceWeek(2021, 46)).events  # no period changes a scale
    vectors = (exact.sums, exact.buses, exact.over)
    noisy = Vectors(*(draw(event, vector) for event, vector in zip(events, vectors, strict=True)))
    return noisy, RatioNoise(events[0].noise, events[0].scale, events[1].scale, exact.buses.size)


def true_means(exact: Vectors) -> Floats:
    """Return exact mean speeds, km/h; not a number without buses."""
    with np.errstate(invalid="ignore"):
        means: Floats = CLAMP_KMH / 2 + exact.sums / exact.buses / 10
    return np.where(exact.buses > 0, means, np.nan)


def rmse(errors: Floats, weights: Floats | None = None) -> float:
    """Return the root of the mean square."""
    return math.sqrt(np.average(errors**2, weights=weights))
