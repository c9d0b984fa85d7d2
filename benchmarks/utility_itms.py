"""Error of bus speeds at equal privacy: the ITMS report's method, ours, one and many resolutions.

A generated month shaped like the report's: 31 days, 800 buses at most, some 117 cells of
resolution 7, speeds that depend on the place. Counting, bounds, plans, noise and means are the
product's own; truth is the unbounded count of the same rows. `--rows` is the observations of a
week: 3,000,000 is the source's density, the default is a fifth of it. Run: `make bench-utility`.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from pathlib import Path

import h3
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from turnstile.counting.tables import count
from turnstile.planning.bus_pairs import BusPairs, read_pairs
from turnstile.planning.source_accounting import source_accounting
from turnstile.planning.tables import resolution_row
from turnstile.privacy.guarantees import rho_for
from turnstile.privacy.mechanisms.dispatch import draw
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.cell_choice import owner, partition
from turnstile.programme.domain import Dimension, ModeCells, PublicDomain, public_domain
from turnstile.programme.domain_files import load_domain
from turnstile.programme.loading import load_programme
from turnstile.programme.spec import MechanismSpec, Programme, UnitBound
from turnstile.release.mean_intervals import RatioNoise, means_of
from turnstile.release.plan import make_plan
from turnstile.service_calendar import ServiceDays, ServicePeriod, ServiceWeek
from turnstile.sources.samples.itms import DEGREES_SCALE, itms_rows, read_area

INCLUDE = Path(__file__).parents[1] / "include"
MONTH = ServiceDays(date(2021, 11, 15), date(2021, 12, 15))
WEEK = ServiceWeek(2021, 46)
DELTA = Fraction(1, 10**6)
CLAMP_KMH, LIMIT_KMH, SOURCE_B = 65, 40, 1
BOUND = 30
SURVEY_RHO, WEEK_RHO = Fraction(1, 50), Fraction(31, 100)
LEAST_BUSES_A_DAY = 24  # a week's noise is then below what neighboring fine cells differ by
SOURCE_CELLS = 30
BOUNDS = (20, 30, 40, 89)
REPEATS = 5
NEVER = 60
HUGE_BOUND = 100_000
SPLIT = (
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
class Vectors:
    """What is counted or drawn of each cell: centered sums, bus-days, bus-days above the limit."""

    sums: Ints
    buses: Ints
    over: Ints


def field_kmh(latitude: Floats, longitude: Floats) -> Floats:
    """Mean speed of moving buses at a place: slow in the center, with blocks of its own."""
    far = np.hypot((latitude - 21.19) * 111, (longitude - 72.83) * 103)
    blocks = 5 * np.sin(latitude * 400) * np.cos(longitude * 400)
    field: Floats = 14 + 1.6 * far + blocks
    return field


def make_city(folder: Path, rows_a_week: int) -> City:
    """Write the month's rows by service day."""
    area = read_area(INCLUDE / "domains/surat_area.geojson")
    for week in MONTH.weeks:
        seen = itms_rows(week, rows_a_week, 1, area=area, dirt=frozenset())
        latitude, longitude = seen["latitude"] / DEGREES_SCALE, seen["longitude"] / DEGREES_SCALE
        speed = seen["speed"] / np.maximum(seen["speed"].mean(), 1)
        speed = np.minimum(speed * field_kmh(latitude, longitude) * 1000, 64_000).astype(np.int64)
        for number, day in enumerate(week.days):
            if day not in MONTH.days:
                continue
            own = seen["day"] == number
            seconds = seen["second"][own]
            instants = np.datetime64(day, "us") + seconds.astype("timedelta64[s]")
            table = pa.table(
                {
                    "vehicle_id": pa.array(seen["bus"][own].astype(str)),
                    "observed_at_utc": instants,
                    "minute_of_day": (seconds // 60).astype(np.int32),
                    "latitude": latitude[own],
                    "longitude": longitude[own],
                    "speed_milli_kmh": speed[own],
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
    city: City, domain: PublicDomain, exact: Vectors, rho: Fraction, *, bound: int = BOUND
) -> tuple[Vectors, RatioNoise]:
    """Plan with this rho for a bus-day of at most so many pairs, and draw once."""
    kind = city.programme.mechanism.kind
    mechanism = MechanismSpec(kind, ProtectionUnit.BUS_DAY, rho, SPLIT)
    units = (UnitBound(ProtectionUnit.BUS_DAY, bound),)
    programme = replace(city.programme, mechanism=mechanism, units=units)
    events = make_plan(programme, domain, WEEK).events  # the period changes no scale
    vectors = (exact.sums, exact.buses, exact.over)
    noisy = Vectors(*(draw(event, one) for event, one in zip(events, vectors, strict=True)))
    return noisy, RatioNoise(events[0].noise, events[0].scale, events[1].scale)


def true_means(exact: Vectors) -> Floats:
    """Return exact mean speeds, km/h; not a number without buses."""
    with np.errstate(invalid="ignore"):
        means: Floats = CLAMP_KMH / 2 + exact.sums / exact.buses / 10
    return np.where(exact.buses > 0, means, np.nan)


def rmse(errors: Floats, weights: Floats | None = None) -> float:
    """Return the root of the mean square."""
    return math.sqrt(np.average(errors**2, weights=weights))


def source_lines(city: City, period: ServicePeriod, name: str) -> list[str]:
    """Compare the report's method at B = 1 with ours, on the cells nearest to its condition."""
    days = len(period.days)
    pairs = read_pairs(city.programme, period.days, city.rows, resolution=7)
    domain = of_cells(city, busiest(pairs))
    truth = counted(city, domain, period, bound=HUGE_BOUND, finest=7)
    k_seen = int(pairs.hats_per_bus_day().max())
    stated = source_accounting(
        truth.buses.tolist(),
        cells_of_a_bus=k_seen,
        noise_b=Fraction(SOURCE_B),
        clamp_kmh=CLAMP_KMH,
        days=days,
    ).cumulative
    of_source = math.sqrt(2) * SOURCE_B
    heading = f"| {name} | source, B = 1, not private | | {float(stated):.2f} stated |"
    lines = [f"{heading} {of_source:.2f} | {of_source:.2f} | 1 | 1 |"]
    for bound in BOUNDS:
        ours = counted(city, domain, period, bound=bound, finest=7)
        exact = Exact(domain, truth, ours, bound, days)
        kept = ours.buses.sum() / truth.buses.sum()
        for epsilon in (stated, Fraction(4)):
            speed, speeding = errors_at(city, exact, rho_for(epsilon, DELTA))
            lines.append(
                f"| {name} | ours, K = {bound} | {kept:.0%} | {float(epsilon):.2f} | "
                f"{speed:.2f} | {speeding:.2f} | {of_source / speed:.1f} | "
                f"{of_source / speeding:.1f} |"
            )
        reached = [reaching(city, exact, which) for which in (0, 1)]
        lines.append(
            f"| {name} | ours, K = {bound}, at the source's noise | {kept:.0%} | "
            f"{reached[0]:.2f} and {reached[1]:.2f} | {of_source:.2f} | {of_source:.2f} | 1 | 1 |"
        )
    return [
        *lines,
        f"\n{name}: K = {k_seen} observed, N from {truth.buses.min()} to {truth.buses.max()}\n",
    ]


def busiest(pairs: BusPairs) -> tuple[str, ...]:
    """Return the cells whose emptiest slot has most buses: those nearest to the condition."""
    (slots, cells), of_hat = pairs.hats()
    buses = np.bincount(of_hat, minlength=slots.size)
    least = {
        int(cell): (int((cells == cell).sum()), int(buses[cells == cell].min())) for cell in cells
    }
    chosen = sorted(least, key=lambda cell: least[cell])[-SOURCE_CELLS:]
    return tuple(h3.int_to_str(cell) for cell in chosen)


@dataclass(frozen=True)
class Exact:
    """What is released of some cells and what is true, without a bound."""

    domain: PublicDomain
    truth: Vectors
    bounded: Vectors
    bound: int
    days: int


def errors_at(city: City, exact: Exact, rho: Fraction) -> tuple[float, float]:
    """Return RMSE of mean speed (km/h) and of speeding buses a day, truncation included."""
    speeds, speeding = [], []
    for _ in range(REPEATS):
        noisy, noise = drawn(city, exact.domain, exact.bounded, rho, bound=exact.bound)
        found = means_of(noisy.sums, noisy.buses, noise, clamp_kmh=CLAMP_KMH)
        means = np.where(found.is_withheld, CLAMP_KMH / 2, found.mean)
        speeds.append(rmse(means - true_means(exact.truth)) ** 2)
        speeding.append(rmse((noisy.over - exact.truth.over) / exact.days) ** 2)
    return math.sqrt(np.mean(speeds)), math.sqrt(np.mean(speeding))


def reaching(city: City, exact: Exact, which: int) -> float:
    """Return the epsilon from which on our error is below the source's; infinite if never."""
    low, high = 0.25, 64.0
    for _ in range(9):
        middle = math.sqrt(low * high)
        rho = rho_for(Fraction(round(middle * 1000), 1000), DELTA)
        is_enough = errors_at(city, exact, rho)[which] <= math.sqrt(2) * SOURCE_B
        low, high = (low, middle) if is_enough else (middle, high)
    return high if high < NEVER else math.inf


def resolution_lines(city: City) -> list[str]:
    """Compare releases of one resolution with fine cells where traffic is dense, on one week."""
    fine = at_resolution(city, 8)
    truth = counted(city, fine, WEEK, bound=HUGE_BOUND, finest=8)
    surveyed = counted(city, fine, WEEK, bound=BOUND, finest=8)
    chosen = chosen_cells(city, fine, surveyed)
    designs = [
        (f"resolution {resolution}", at_resolution(city, resolution), WEEK_RHO, resolution)
        for resolution in (6, 7, 8)
    ]
    designs.append(("many resolutions", of_cells(city, chosen), WEEK_RHO - SURVEY_RHO, 8))
    shape = fine.shape(city.programme.tables[0], "bus")
    dense = truth.buses.reshape(shape).mean(axis=0) / 7 >= LEAST_BUSES_A_DAY
    lines = []
    for name, domain, rho, finest in designs:
        exact = counted(city, domain, WEEK, bound=BOUND, finest=finest)
        squares = [fine_errors(city, (fine, domain), (truth, exact), rho) for _ in range(REPEATS)]
        errors = np.sqrt(np.mean(np.square(squares), axis=0)).reshape(shape)
        weights = truth.buses.reshape(shape).astype(float)
        parts = (slice(None), dense, ~dense)
        told = [rmse(errors[:, part].ravel(), weights[:, part].ravel()) for part in parts]
        lines.append(
            f"| {name} | {len(domain.dimension('bus', 'cell').labels)} | {float(rho):.2f} | "
            + " | ".join(f"{value:.2f}" for value in told)
            + f" | {exact.buses.sum():,} |"
        )
    return lines


def chosen_cells(city: City, fine: PublicDomain, surveyed: Vectors) -> tuple[str, ...]:
    """Divide the area by a survey's noisy counts, drawn with its own rho."""
    survey = load_programme("itms_survey", INCLUDE)
    (event,) = make_plan(replace(survey, caps=()), fine, WEEK).events
    shape = fine.shape(city.programme.tables[0], "bus")
    noisy = draw(event, surveyed.buses).reshape(shape) / 7
    counts = {
        cell: noisy[:, place].tolist()
        for place, cell in enumerate(fine.dimension("bus", "cell").labels)
    }
    return partition(counts, LEAST_BUSES_A_DAY, coarsest=6)


def fine_errors(
    city: City,
    domains: tuple[PublicDomain, PublicDomain],
    exact: tuple[Vectors, Vectors],
    rho: Fraction,
) -> Floats:
    """Return what a reader who looks a fine cell up is wrong by, km/h.

    Where a mean is withheld, the city's own noisy mean is read.
    """
    fine, domain = domains
    truth, ours = exact
    noisy, noise = drawn(city, domain, ours, rho)
    found = means_of(noisy.sums, noisy.buses, noise, clamp_kmh=CLAMP_KMH)
    of_city = CLAMP_KMH / 2 + noisy.sums.sum() / max(1, noisy.buses.sum()) / 10
    slots, cells = (axis.labels for axis in domain.dimensions("bus"))
    means = np.where(found.is_withheld, of_city, found.mean).reshape(len(slots), len(cells))
    listed, place = frozenset(cells), {cell: number for number, cell in enumerate(cells)}
    owners = [place_of(cell, listed, place) for cell in fine.dimension("bus", "cell").labels]
    with_city = np.concatenate([means, np.full((len(slots), 1), of_city)], axis=1)
    read = with_city[:, owners].reshape(-1)
    return np.nan_to_num(read - true_means(truth), nan=0.0)


def place_of(cell: str, listed: frozenset[str], place: dict[str, int]) -> int:
    """Return where a fine cell's number is read; the last column where no cell holds it."""
    found = owner(cell, listed)
    return len(place) if found is None else place[found]


def planning_lines(city: City) -> list[str]:
    """Return the report's comparison of resolutions on the generated month."""
    lines = []
    for resolution in (8, 7, 6):
        pairs: BusPairs = read_pairs(city.programme, MONTH.days, city.rows, resolution=resolution)
        row = resolution_row(pairs, resolution)
        lines.append(
            f"| {resolution} | {row['cells']} | {row['hats']} | "
            f"{row['mean_buses_per_hat_and_day']:.2f} | {row['share_meeting_condition']:.1%} | "
            f"{row['largest_hats_of_a_bus_day']} |"
        )
    return lines


def main() -> None:
    """Print the three comparisons."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=600_000, help="observations of a week")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        city = make_city(Path(folder), args.rows)
        print(f"## A generated month, {args.rows:,} observations a week\n")
        print("| resolution | cells | HATs | buses per HAT and day | meet condition | largest K |")
        print("|---|---|---|---|---|---|")
        print(*planning_lines(city), sep="\n")
        print("\n## The source's method and ours: RMSE, a bus-day, add/remove, delta 1e-6\n")
        print("| period | method | kept | epsilon | km/h | speeding | times better | speeding |")
        print("|---|---|---|---|---|---|---|---|")
        for period, name in ((MONTH, "month"), (WEEK, "week")):
            print(*source_lines(city, period, name), sep="\n")
        print("\n## One week, read at resolution 8: RMSE in km/h, weighted by bus-days\n")
        print("| design | cells | rho | all | dense places | sparse places | pairs kept |")
        print("|---|---|---|---|---|---|---|")
        print(*resolution_lines(city), sep="\n")


if __name__ == "__main__":
    main()
