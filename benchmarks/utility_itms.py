"""Error of bus speeds at equal privacy: the ITMS report's method and ours, on a city like its own.

Prints the report's planning tables beside those of a generated month, the errors of both methods
for the month and for a week of it, and whether each aim is met. The cells compared are those that
meet the report's base condition. `--rows` is the observations of a week; the default is the
report's density. Run: `make bench-utility`.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from pathlib import Path

import numpy as np
from itms_city import (
    CLAMP_KMH,
    HUGE_BOUND,
    ROWS_A_WEEK,
    City,
    Design,
    Split,
    Vectors,
    counted,
    drawn,
    make_city,
    of_cells,
    rmse,
    true_means,
)

from turnstile.estimates.vehicles.mean_intervals import means_of
from turnstile.privacy.guarantees import rho_for
from turnstile.privacy.mechanisms.bounded_mean import mean_sd_kmh, sum_sensitivity
from turnstile.privacy.mechanisms.calibration import gaussian_scale
from turnstile.privacy.sensitivities import packed
from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.service_calendar import ServiceDays, ServicePeriod, ServiceWeek
from turnstile_design.private_reports.bus_pairs import BusPairs, read_pairs, records_by_hour
from turnstile_design.private_reports.exact_tables_of_buses import cells_meeting, resolution_row
from turnstile_design.private_reports.source_accounting import SourceAccounting, source_accounting

MONTH = ServiceDays(date(2021, 11, 15), date(2021, 12, 15))
WEEK = ServiceWeek(2021, 46)
DELTA = Fraction(1, 10**6)
SOURCE_B = 1
SOURCE_ERROR = math.sqrt(2) * SOURCE_B
REPORT = {  # cells, HATs, buses per HAT and day, share that meets the condition (section III A)
    6: (33, 317, 26.62, 0.30),
    7: (117, 1213, 13.30, 0.26),
    8: (473, 4835, 8.22, 0.116),
}
REPORT_RECORDS = (16_977_444, 13_296_107)  # 5:00 to 21:00, 9:00 to 21:00
REPORT_K, REPORT_N, REPORT_LEAST_N, REPORT_SPEED_EPSILON = 89, 468, 314, 12.361
SPEEDING_SPLIT: Split = (
    ("speed/sum", Fraction(9, 40)),
    ("speed/buses", Fraction(3, 40)),
    ("speeding/over_40", Fraction(7, 10)),
)
DESIGNS = {
    "K = 30": Design(30),
    "K = 40, as itms.yaml": Design(40),
    "K = 60": Design(60),
    "K = 89": Design(89),
    "K = 60, 7/10 for speeding": Design(60, SPEEDING_SPLIT),
}
AIMS = (2.5, 7.0)  # times better at equal epsilon, mean speed and speeding buses
AIM_EPSILON = 4
REPEATS = 5
NEVER = 60


@dataclass(frozen=True)
class Compared:
    """A period's chosen cells: what is true, and the report's own accounting of it."""

    name: str
    days: int
    domain: PublicDomain
    truth: Vectors
    k_seen: int
    stated: SourceAccounting


@dataclass(frozen=True)
class Outcome:
    """Of one design, mean speed first, then speeding buses."""

    kept: float
    at_equal: tuple[float, float]
    at_aim: tuple[float, float]
    reached: tuple[float, float]

    @property
    def times(self) -> tuple[float, float]:
        """How often better than the report's method at equal epsilon."""
        return SOURCE_ERROR / self.at_equal[0], SOURCE_ERROR / self.at_equal[1]


def compared(city: City, period: ServicePeriod, name: str) -> Compared:
    """Choose the report's cells, count them without a bound, and account as the report does."""
    pairs = read_pairs(city.programme, period.days, city.rows, resolution=7)
    cells = cells_meeting(pairs)
    if not cells:
        raise SystemExit("no cell meets the base condition; ask for more --rows")
    domain = of_cells(city, cells)
    truth = counted(city, domain, period, bound=HUGE_BOUND, finest=7)
    k_seen = int(pairs.hats_per_bus_day().max())
    stated = source_accounting(
        truth.buses.tolist(),
        cells_of_a_bus=k_seen,
        noise_b=Fraction(SOURCE_B),
        clamp_kmh=CLAMP_KMH,
        days=len(period.days),
    )
    return Compared(name, len(period.days), domain, truth, k_seen, stated)


def outcome_of(city: City, period: ServicePeriod, asked: Compared, design: Design) -> Outcome:
    """Count under a design's bound and measure it."""
    bounded = counted(city, asked.domain, period, bound=design.bound, finest=7)

    def errors(epsilon: Fraction) -> tuple[float, float]:
        return errors_at(city, asked, bounded, rho_for(epsilon, DELTA), design)

    def reaching(which: int) -> float:
        low, high = 0.25, 64.0
        for _ in range(9):
            middle = math.sqrt(low * high)
            is_enough = errors(Fraction(round(middle * 1000), 1000))[which] <= SOURCE_ERROR
            low, high = (low, middle) if is_enough else (middle, high)
        return high if high < NEVER else math.inf

    return Outcome(
        kept=bounded.buses.sum() / asked.truth.buses.sum(),
        at_equal=errors(asked.stated.cumulative),
        at_aim=errors(Fraction(AIM_EPSILON)),
        reached=(reaching(0), reaching(1)),
    )


def errors_at(
    city: City, asked: Compared, bounded: Vectors, rho: Fraction, design: Design
) -> tuple[float, float]:
    """Return RMSE of mean speed (km/h) and of speeding buses a day, truncation included."""
    speeds, speeding = [], []
    for _ in range(REPEATS):
        noisy, noise = drawn(city, asked.domain, bounded, rho, design)
        noisy_means = means_of(noisy.sums, noisy.buses, noise, clamp_kmh=CLAMP_KMH)
        means = np.where(noisy_means.is_withheld, CLAMP_KMH / 2, noisy_means.mean)
        speeds.append(rmse(means - true_means(asked.truth)) ** 2)
        speeding.append(rmse((noisy.over - asked.truth.over) / asked.days) ** 2)
    return math.sqrt(np.mean(speeds)), math.sqrt(np.mean(speeding))


def error_lines(asked: Compared, outcomes: dict[str, Outcome]) -> list[str]:
    """Return the table of both methods."""
    equal = f"{float(asked.stated.cumulative):.2f}"
    error = f"{SOURCE_ERROR:.2f}"
    lines = [
        f"| {asked.name} | the report, B = 1 | | {equal}, its own figure | {error} | {error} |"
    ]
    for design, outcome in outcomes.items():
        start = f"| {asked.name} | {design} | {outcome.kept:.1%} |"
        columns = [(equal, outcome.at_equal), (str(AIM_EPSILON), outcome.at_aim)]
        lines += [f"{start} {epsilon} | {a:.2f} | {b:.2f} |" for epsilon, (a, b) in columns]
        reached = f"{outcome.reached[0]:.2f} speed, {outcome.reached[1]:.2f} speeding"
        lines.append(f"{start} {reached} | {error} | {error} |")
    return lines


def aim_lines(asked: Compared, outcomes: dict[str, Outcome]) -> list[str]:
    """Say of each aim whether it is met, and by which designs."""
    better = {name: outcome.times for name, outcome in outcomes.items()}
    lines = []
    for which, what in ((0, "mean speed"), (1, "speeding buses")):
        met = {name: times[which] for name, times in better.items() if times[which] >= AIMS[which]}
        best = max(times[which] for times in better.values())
        lines.append(_aim(f"{what} {AIMS[which]:g} times better at equal epsilon", met, best))
    both = {n: min(t) for n, t in better.items() if t[0] >= AIMS[0] and t[1] >= AIMS[1]}
    lines.append(_aim("both at once", both, math.nan))
    worst = {name: max(outcome.reached) for name, outcome in outcomes.items()}
    reached = {name: value for name, value in worst.items() if value <= AIM_EPSILON}
    name = f"the report's noise in both at epsilon {AIM_EPSILON} or less"
    lines.append(_aim(name, reached, min(worst.values())))
    return [f"- {asked.name}: {line}" for line in lines]


def _aim(name: str, met: dict[str, float], best: float) -> str:
    """Return one line of an aim."""
    if not met:
        return f"{name}: NOT met (best {best:.2f})"
    return f"{name}: met; " + "; ".join(f"{design}: {value:.2f}" for design, value in met.items())


def planning_lines(city: City) -> list[str]:
    """Return the report's planning figures beside those of the generated month."""
    lines = []
    for resolution, (cells, hats, buses, share) in REPORT.items():
        pairs: BusPairs = read_pairs(city.programme, MONTH.days, city.rows, resolution=resolution)
        row = resolution_row(pairs, resolution)
        lines += [
            f"| resolution {resolution}: cells | {cells} | {row['cells']} |",
            f"| HATs | {hats:,} | {row['hats']:,} |",
            f"| buses per HAT and day | {buses:.2f} | {row['mean_buses_per_hat_and_day']:.2f} |",
            f"| meet the condition | {share:.1%} | {row['share_meeting_condition']:.1%} |",
        ]
    hours = records_by_hour(MONTH.days, city.rows)
    rows = zip(("5:00 to 21:00", "9:00 to 21:00"), REPORT_RECORDS, ((5, 21), (9, 21)), strict=True)
    lines += [
        f"| records, {name} | {report:,} | {int(hours[first:last].sum()):,} |"
        for name, report, (first, last) in rows
    ]
    return lines


def accounting_lines(asked: Compared) -> list[str]:
    """Return the inputs and the result of the report's accounting, its own and ours."""
    speed = float(asked.stated.speed_day)
    return [
        f"| most HATs of a bus-day, K | {REPORT_K} | {asked.k_seen} |",
        f"| smallest N of the chosen HATs | {REPORT_LEAST_N} | {asked.truth.buses.min()} |",
        f"| sum of the K largest, mean speed | {REPORT_SPEED_EPSILON} | {speed:.3f} |",
    ]


def formula_lines() -> list[str]:
    """Return the errors at the report's own figures: its budget, N of a cell, K and days."""
    lines = []
    for epsilon, cells in (("15.232", REPORT_K), ("15.232", 20), ("4", 20), ("2", 20)):
        rho = rho_for(Fraction(epsilon), DELTA)
        shares = (Fraction(45, 100), Fraction(15, 100), Fraction(40, 100))
        units = (
            sum_sensitivity(packed(cells, 1), CLAMP_KMH),
            packed(cells, 1),
            packed(cells, 1),
        )
        sums, buses, over = (
            float(gaussian_scale(share * rho, unit.l2_squared))
            for share, unit in zip(shares, units, strict=True)
        )
        count, mean = np.array([float(REPORT_N)]), np.array([20.0])
        (error,) = mean_sd_kmh(count, mean, clamp_kmh=CLAMP_KMH, scales=(sums, buses))
        lines.append(f"| {epsilon} | {cells} | {error:.2f} | {over / len(MONTH.days):.2f} |")
    return lines


def main() -> None:
    """Print the planning tables, the errors and the aims."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS_A_WEEK, help="observations of a week")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        city = make_city(Path(folder), MONTH.days, args.rows, seed=1)
        print(f"## A generated month, {args.rows:,} observations a week\n")
        print("| figure | the report | generated |\n|---|---|---|")
        month, week = compared(city, MONTH, "month"), compared(city, WEEK, "week")
        print(*planning_lines(city), *accounting_lines(month), sep="\n")
        print("\n## RMSE of both methods: a bus-day, add/remove, delta 1e-6\n")
        print("| period | method | pairs kept | epsilon | km/h | speeding buses a day |")
        print("|---|---|---|---|---|---|")
        aims = []
        for asked, period in ((month, MONTH), (week, WEEK)):
            outcomes = {n: outcome_of(city, period, asked, d) for n, d in DESIGNS.items()}
            print(*error_lines(asked, outcomes), sep="\n")
            aims += aim_lines(asked, outcomes)
        print("\n## Aims\n")
        print(*aims, sep="\n")
    print(f"\n## By formula: {REPORT_N} bus-days a cell and month, mean 20 km/h\n")
    print("| epsilon | cells a bus-day | km/h | speeding buses a day |\n|---|---|---|---|")
    print(*formula_lines(), sep="\n")


if __name__ == "__main__":
    main()
