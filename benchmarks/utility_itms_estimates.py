"""Error of the estimates of bus telemetry: one week at epsilon 4 and 8, and with four earlier.

Epsilon is of a bus-day. A generated city with places and hours of its own (`itms_city`), five weeks
of it, the report's cells. Mean speeds are compared with those of the unbounded rows; buses above
40 km/h with the bounded and the unbounded ones. Prints of each bar whether it is met. `--rows` is
the observations of a week. Run: `make bench-utility`.
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
from utility_itms import DELTA, compared

from turnstile.estimates.public_numbers import Promise, PublicNumbers, WeekToEstimate
from turnstile.estimates.telemetry_estimates import telemetry_estimates
from turnstile.privacy.guarantees import rho_for
from turnstile.privacy.noise import noise_variance
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.domain import PublicDomain
from turnstile.programme.mechanism_spec import MechanismSpec
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Measure, TableSpec, UnitBound
from turnstile.release.plan import make_plan
from turnstile.service_calendar import ServiceWeek

WEEKS = tuple(ServiceWeek(2021, number) for number in (46, 45, 44, 43, 42))
BOUND, DRAWS = 40, 5
SPEED = TableSpec("speed", ("slot", "cell"), Measure.MEAN_SPEED, CLAMP_KMH)
SPEEDING = TableSpec("speeding", ("slot", "cell"), Measure.BUSES_OVER, None, (LIMIT_KMH,))
OVER = f"over_{LIMIT_KMH}"
BARS = {  # by epsilon and earlier weeks: km/h, buses a day against bounded and unbounded numbers
    (4, 0): (1.25, 1.3, 1.6),
    (4, 4): (0.9, 1.3, 1.6),
    (8, 0): (1.25, 1.3, 1.6),
    (8, 4): (0.9, 1.3, 1.6),
}
HELD_BAR = (0.88, 0.95)  # of what 90 % intervals hold


@dataclass(frozen=True)
class Week:
    """Exact numbers of a week, without a bound and with it."""

    week: ServiceWeek
    unbounded: Vectors
    bounded: Vectors


def drawn_numbers(city: City, domain: PublicDomain, one: Week, epsilon: Fraction) -> PublicNumbers:
    """Draw a week by the product's own mechanism."""
    rho = rho_for(epsilon, DELTA)
    noisy, noise = drawn(city, domain, one.bounded, rho, Design(BOUND))
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
    key, days = f"itms/{one.week}/r0", tuple(one.week.days)
    return PublicNumbers(key, domain.digest, days, (), vectors, deviations)


def over_deviation(city: City, domain: PublicDomain, rho: Fraction) -> float:
    """Return the standard deviation of the noise of buses above the limit."""
    kind = city.programme.mechanism.kind
    mechanism = MechanismSpec(kind, ProtectionUnit.BUS_DAY, rho, Design(BOUND).split)
    units = (UnitBound(ProtectionUnit.BUS_DAY, BOUND),)
    programme = replace(city.programme, mechanism=mechanism, units=units)
    event = make_plan(programme, domain, WEEKS[0]).events[2]
    return math.sqrt(noise_variance(event.noise, event.scale))


def errors(city: City, domain: PublicDomain, weeks: Sequence[Week], epsilon: Fraction) -> Floats:
    """Return mean squares: speed, speeding against bounded and unbounded; and three coverages."""
    now, *earlier = (drawn_numbers(city, domain, one, epsilon) for one in weeks)
    promise = Promise(RowShape.TELEMETRY, (SPEED, SPEEDING), 60, shares_total=False)
    week = WeekToEstimate(promise, domain, now, "benchmark", tuple(earlier))
    tables = telemetry_estimates(week).tables
    means, days = true_means(weeks[0].unbounded), len(weeks[0].week.days)
    bounded, unbounded = weeks[0].bounded.over / days, weeks[0].unbounded.over / days
    speed, over = (
        {name: tables[table].column(name).to_numpy() for name in ("estimate", "low_90", "high_90")}
        for table in ("speed", "speeding")
    )
    is_shown = ~np.isnan(speed["estimate"])
    return np.array(
        [
            rmse((speed["estimate"] - means)[is_shown]) ** 2,
            rmse(over["estimate"] - bounded) ** 2,
            rmse(over["estimate"] - unbounded) ** 2,
            np.mean(((speed["low_90"] <= means) & (means <= speed["high_90"]))[is_shown]),
            np.mean((over["low_90"] <= bounded) & (bounded <= over["high_90"])),
            is_shown.mean(),
        ]
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
            "| epsilon | earlier | speed, km/h | speeding, bounded | unbounded | 90 % hold | bars |"
        )
        print("|---|---|---|---|---|---|---|")
        for (epsilon, earlier), bars in BARS.items():
            own = weeks[: 1 + earlier]
            found = [errors(city, domain, own, Fraction(epsilon)) for _ in range(DRAWS)]
            mean = np.mean(found, axis=0)
            roots = np.sqrt(mean[:3])
            is_held = all(HELD_BAR[0] <= one <= HELD_BAR[1] for one in mean[3:5])
            is_met = bool((roots <= np.array(bars)).all()) and is_held
            held = f"{mean[3]:.3f} speed, {mean[4]:.3f} speeding"
            print(
                f"| {epsilon} | {earlier} | {' | '.join(f'{r:.2f}' for r in roots)} | {held} | "
                f"{bars}: {'met' if is_met else 'NOT met'} |"
            )


if __name__ == "__main__":
    main()
