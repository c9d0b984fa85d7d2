"""Error of the estimates of bus telemetry: one week at epsilon 4 and 8, and with four earlier.

Epsilon is of a bus-day. A generated city with places and hours of its own (`itms_city`), five weeks
of it, the report's cells; and another city, of places that are alike and hours that are not, in
which intervals are judged again. Mean speeds are compared with those of the unbounded rows; buses
above 40 km/h with the bounded and the unbounded ones. How much of a week holds varies with its
noise, by .02 to .05, so many draws are judged together. Prints of each bar whether it is met.
`--rows` is the observations of a week. Run: `make bench-utility`.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
from itms_city import (
    CLAMP_KMH,
    HUGE_BOUND,
    LIMIT_KMH,
    ROWS_A_WEEK,
    City,
    Design,
    Floats,
    Vectors,
    counted,
    drawn,
    make_city,
    rmse,
    true_means,
)
from numpy.typing import NDArray
from utility_itms import DELTA, compared

from turnstile.estimates.vehicles.telemetry_estimates import telemetry_estimates
from turnstile.estimates.week_to_estimate import Promise, WeekToEstimate
from turnstile.measures.registry import Measure
from turnstile.privacy.guarantees import rho_for
from turnstile.privacy.mechanisms.bounded_mean import STEPS_PER_KMH
from turnstile.privacy.noise import noise_variance
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.mechanism_spec import MechanismSpec
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import TableSpec, UnitBound
from turnstile.release.numbers import Numbers
from turnstile.release.plan import make_plan
from turnstile.service_calendar import ServiceWeek

WEEKS = tuple(ServiceWeek(2021, number) for number in (46, 45, 44, 43, 42))
BOUND, DRAWS = 40, 30
SPEED = TableSpec("speed", ("slot", "cell"), Measure.MEAN_SPEED, CLAMP_KMH)
SPEEDING = TableSpec("speeding", ("slot", "cell"), Measure.BUSES_OVER, None, (LIMIT_KMH,))
PROMISE = Promise(RowShape.TELEMETRY, (SPEED, SPEEDING), 60, shares_total=False)
OVER = f"over_{LIMIT_KMH}"
CITY, OTHER = "of real hours and places", "places alike, hours apart"
BARS = {  # by epsilon and earlier weeks: km/h, buses a day against bounded and unbounded numbers
    (4, 0): (1.25, 1.3, 1.6),
    (4, 4): (0.9, 1.3, 1.6),
    (8, 0): (1.25, 1.3, 1.6),
    (8, 4): (0.9, 1.3, 1.6),
}
HELD_BAR, LEAST_BAR = (0.88, 0.95), 0.85  # of what 90 % intervals hold, overall and in each size
SIZES = (0, 100, 200, 10_000)  # bus-days of a cell and week
HOURS = 12
OTHER_PLACES, OTHER_HOURS = 0.3, 2.0  # how far those of the other city are apart, times this one's


@dataclass(frozen=True)
class Week:
    """Exact numbers of a week, without a bound and with it."""

    week: ServiceWeek
    unbounded: Vectors
    bounded: Vectors


def drawn_numbers(city: City, domain: PublicDomain, week: Week, epsilon: Fraction) -> Numbers:
    """Draw a week by the product's own mechanism."""
    rho = rho_for(epsilon, DELTA)
    noisy, noise = drawn(city, domain, week.bounded, rho, Design(BOUND))
    vectors = {
        ("speed", "sum"): {None: noisy.sums},
        ("speed", "buses"): {None: noisy.buses},
        ("speeding", OVER): {None: noisy.over},
    }
    deviations = {
        ("speed", "sum"): noise.sum_sd,
        ("speed", "buses"): noise.count_sd,
        ("speeding", OVER): over_deviation(city, domain, rho),
    }
    key, days = f"itms/{week.week}/r0", tuple(week.week.days)
    return Numbers(key, domain.digest, days, (), vectors, deviations)


def over_deviation(city: City, domain: PublicDomain, rho: Fraction) -> float:
    """Return the standard deviation of the noise of buses above the limit."""
    kind = city.programme.mechanism.kind
    mechanism = MechanismSpec(kind, ProtectionUnit.BUS_DAY, rho, Design(BOUND).split)
    units = (UnitBound(ProtectionUnit.BUS_DAY, BOUND),)
    programme = replace(city.programme, mechanism=mechanism, units=units)
    event = make_plan(programme, domain, WEEKS[0]).events[2]
    return math.sqrt(noise_variance(event.noise, event.scale))


def other_city(week: Week) -> Week:
    """Return a week with places less far apart in speed, and hours farther."""
    means = true_means(week.unbounded)
    grid = np.nan_to_num(means, nan=float(np.nanmean(means))).reshape(HOURS, -1)
    hours = grid.mean(axis=1, keepdims=True) - grid.mean()
    places = grid.mean(axis=0) - grid.mean()
    faster = (OTHER_PLACES - 1) * places + (OTHER_HOURS - 1) * hours

    def moved(vectors: Vectors) -> Vectors:
        steps = STEPS_PER_KMH * faster.ravel() * vectors.buses
        return replace(vectors, sums=vectors.sums + np.rint(steps).astype(np.int64))

    return Week(week.week, moved(week.unbounded), moved(week.bounded))


@dataclass(frozen=True)
class Found:
    """Of all draws: mean squares of errors, and of each interval whether it held.

    Args:
        squares: speed, speeding against bounded and unbounded numbers; shape (3,).
        speeds_held: not a number where no speed is shown; shape (draws, cells).
        speeding_held: against bounded numbers; same shape.
    """

    squares: Floats
    speeds_held: Floats
    speeding_held: Floats

    def held_by_size(self, buses: Vectors) -> list[float]:
        """Return what intervals of speeds hold in each size of cell that is there."""
        sizes = np.digitize(buses.buses, SIZES)
        return [float(np.nanmean(self.speeds_held[:, sizes == n])) for n in np.unique(sizes)]


def judged(
    city: City, domain: PublicDomain, weeks: Sequence[Week], epsilon: int, earlier: int
) -> Found:
    """Draw and estimate many times over; each week in turn is this one, others the earlier ones."""
    squares, held = [], []
    for number in range(DRAWS):
        of_turn = [weeks[(number + n) % len(weeks)] for n in range(1 + earlier)]
        now, *before = (drawn_numbers(city, domain, turn, Fraction(epsilon)) for turn in of_turn)
        week = WeekToEstimate(PROMISE, domain, now, f"benchmark {number}", tuple(before))
        tables = telemetry_estimates(week).tables
        speed, over = (columns_of(tables[name]) for name in ("speed", "speeding"))
        means, days = true_means(of_turn[0].unbounded), len(of_turn[0].week.days)
        bounded, unbounded = of_turn[0].bounded.over / days, of_turn[0].unbounded.over / days
        is_shown = ~np.isnan(speed["estimate"]) & ~np.isnan(means)
        squares.append(
            [
                rmse((speed["estimate"] - means)[is_shown]) ** 2,
                rmse(over["estimate"] - bounded) ** 2,
                rmse(over["estimate"] - unbounded) ** 2,
            ]
        )
        held.append([held_of(speed, means, is_shown), held_of(over, bounded, ~np.isnan(bounded))])
    of_speeds, of_speeding = np.array(held).transpose(1, 0, 2)
    return Found(np.mean(squares, axis=0), of_speeds, of_speeding)


def columns_of(table: pa.Table) -> dict[str, Floats]:
    """Return estimates and ends of the 90 % intervals."""
    return {name: table.column(name).to_numpy() for name in ("estimate", "low_90", "high_90")}


def held_of(columns: dict[str, Floats], truth: Floats, is_shown: NDArray[np.bool_]) -> Floats:
    """Return 1 where an interval holds the truth, 0 where not; no number where none is shown."""
    return np.where(is_shown, (columns["low_90"] <= truth) & (truth <= columns["high_90"]), np.nan)


def line(name: str, outcome: Found, now: Week, epsilon: int, earlier: int) -> str:
    """Return one line of the table; the errors' bars are for the city that they were made for."""
    roots, bars = np.sqrt(outcome.squares), BARS[epsilon, earlier]
    sizes = outcome.held_by_size(now.unbounded)
    speeds, speeding = np.nanmean(outcome.speeds_held), np.nanmean(outcome.speeding_held)
    is_held = all(HELD_BAR[0] <= share <= HELD_BAR[1] for share in (speeds, speeding))
    is_near = name != CITY or bool((roots <= np.array(bars)).all())
    is_met = is_held and is_near and min(sizes) >= LEAST_BAR
    return (
        f"| {name} | {epsilon} | {earlier} | {' | '.join(f'{r:.2f}' for r in roots)} | "
        f"{speeds:.3f} ({' / '.join(f'{share:.2f}' for share in sizes)}) | {speeding:.3f} | "
        f"{bars if name == CITY else 'intervals'}: {'met' if is_met else 'NOT met'} |"
    )


def main() -> None:
    """Print the errors."""
    parser = argparse.ArgumentParser(description="error of the estimates of bus telemetry")
    parser.add_argument("--rows", type=int, default=ROWS_A_WEEK)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        city = make_city(Path(folder), [day for w in WEEKS for day in w.days], rows, seed=1)
        domain = compared(city, WEEKS[0], "a week").domain
        weeks = [
            Week(
                week,
                counted(city, domain, week, bound=HUGE_BOUND, finest=7),
                counted(city, domain, week, bound=BOUND, finest=7),
            )
            for week in WEEKS
        ]
        print("# Estimates of bus speeds, the report's cells\n")
        print(
            "| city | epsilon | earlier | speed, km/h | speeding, bounded | unbounded "
            "| 90 % hold: speeds (by bus-days of a cell) | speeding | bars |"
        )
        print("|---|---|---|---|---|---|---|---|---|")
        for name, city_weeks in ((CITY, weeks), (OTHER, [other_city(week) for week in weeks])):
            for epsilon, earlier in BARS:
                outcome = judged(city, domain, city_weeks, epsilon, earlier)
                print(line(name, outcome, city_weeks[0], epsilon, earlier))


if __name__ == "__main__":
    main()
