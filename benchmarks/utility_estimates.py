"""Error of the estimates on real weeks with known truth: how much less than the drawn tables have.

The published train table of a week of 2016, thinned to shares of its taps and varied week by week
(`estimate_weeks`), is drawn on with the noise of `opal` and with that of a yearly guarantee, and
estimated from one week and with seven earlier ones. Prints RMSE of a cell beside that of numbers
clipped at 0, weighted relative error by table beside that of reconciled tables, coverage of the
intervals, of sums too, hostile weeks, real seasons, and CPU seconds; and of each bar whether it is
met. Run: `make bench-utility`.
"""

from __future__ import annotations

import argparse
import resource
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from ablation import ablation_lines
from changed_places import changed_lines
from compared_weeks import SEED, Compared, compared, reconciled_errors, rmse
from estimate_weeks import (
    CELLS,
    LOCATION,
    OPAL,
    TIME,
    YEARLY,
    Floats,
    dice,
    filled,
    made_week,
    real_week,
    week_of,
)
from hostile_weeks import EARLIER_WEEKS, TABLE_LIMIT, scenarios
from patronage import seasons
from utility_estimates_sums import SumCoverage, sum_coverage

from turnstile.estimates.trips.tap_estimates import SIZE_EDGES, estimated
from turnstile.estimates.trips.trip_weeks import taps_by_mode

WEEKS = 7
BARS = {  # times less RMSE of a cell than clipped: one week, with seven earlier ones
    (1.0, OPAL): (1.48, 1.88),
    (0.3, OPAL): (2.08, 2.48),
    (0.1, OPAL): (3.1, 3.6),
    (0.03, OPAL): (None, None),
    (1.0, YEARLY): (None, 2.95),
    (0.3, YEARLY): (None, 4.65),
}
RELATIVE_BARS = {CELLS.name: 6.5, "on_time_location_hourly": 4.0}  # per cent, full volume, sd 9.8
OVERALL_BAR, LEAST_BAR = (0.88, 0.95), 0.85  # of what 90 % intervals hold
SUM_BAR = (0.93, 0.97)  # of what 95 % intervals of sums hold
MADE_WEEKS, ALMOST_NONE, LEAST_CELLS = 3, 0.05, 60  # where intervals are judged
SHOCK_SLUMP, SHOCK_RISE, SHOCK_CLOSED = 0.5, 1.4, 0.2


def cell_lines(real: Floats) -> Iterator[str]:
    """Yield gains and relative errors."""
    for (share, noise), bars in BARS.items():
        for weeks, bar in zip((0, WEEKS), bars, strict=True):
            week = compared(share * real, noise, [share * real] * weeks)
            verdict = "" if bar is None else f"{bar}: {'met' if week.gain >= bar else 'NOT met'}"
            errors = [
                f"{week.relative_error(name):.2f} %"
                for name in week.found.tables
                if name in week.truth
            ]
            unbiased = reconciled_errors(week)
            stated = ", ".join(f"{name} {error:.2f} %" for name, error in unbiased.items())
            yield (
                f"| {share} | {noise.cells} | {weeks} | {week.gain:.2f} | {verdict} | "
                f"{' / '.join(errors)} | {stated} | {week.cpu_s:.1f} |"
            )
            if noise is OPAL and share == 1 and weeks:
                yield from (relative_line(week, name, bar) for name, bar in RELATIVE_BARS.items())
                yield from (
                    relative_line(week, name, unbiased[name]) for name in (TIME.name, LOCATION.name)
                )


def relative_line(week: Compared, table: str, bar: float) -> str:
    """Say of a table whether its weighted relative error is low enough."""
    error = week.relative_error(table)
    verdict = "met" if error <= bar else "NOT met"
    return f"| | | | {table} | {error:.2f} % of at most {bar:.2f} %: {verdict} | | | |"


def coverage_lines(rates: Floats) -> Iterator[str]:
    """Yield coverage of the 90 % intervals: overall, by size, and in weeks of shocks."""
    shocked = rates.copy()
    shocked[:, 2] *= SHOCK_SLUMP
    shocked[:60] *= SHOCK_RISE
    shocked[60:80] *= SHOCK_CLOSED
    for share, noise in ((1.0, OPAL), (0.3, OPAL), (0.1, OPAL), (1.0, YEARLY), (0.3, YEARLY)):
        for name, now in (("usual", rates), ("shocks", shocked)):
            for weeks in (0, WEEKS):
                made = [
                    compared(share * now, noise, [share * rates] * weeks, seed=SEED + n)
                    for n in range(MADE_WEEKS)
                ]
                about = f"| {name} | {share} | {noise.cells} | {weeks} |"
                yield f"{about} {cell_coverage(made)} | {sum_text(sum_coverage(made))} |"


def cell_coverage(made: Sequence[Compared]) -> str:
    """Return coverage of cells over some weeks, the least of a size, and those of other tables."""
    held, estimates = (
        np.concatenate([values(week) for week in made])
        for values in (lambda week: week.coverage(CELLS.name), lambda week: week.column(CELLS.name))
    )
    overall, shown = float(np.nanmean(held)), float((~np.isnan(held)).mean())
    least = least_of_a_size(held, estimates)
    others = []
    for name in made[0].found.tables:
        coverages = [
            week.coverage(name) for week in made if name in week.truth and name != CELLS.name
        ]
        if coverages and not np.isnan(coverages).all():
            others.append(f"{name} {np.nanmean(coverages):.3f}")
    is_met = OVERALL_BAR[0] <= overall <= OVERALL_BAR[1] and least >= LEAST_BAR
    verdict = "met" if is_met else "NOT met"
    return f"{overall:.3f} | {least:.3f}: {verdict} | {shown:.2f} | {', '.join(others)}"


def least_of_a_size(held: Floats, estimates: Floats) -> float:
    """Return the least coverage of a size class that is shown; numbers of 0.0 are one by itself."""
    classes = np.digitize(estimates, (ALMOST_NONE, *SIZE_EDGES))
    shown = (held[(classes == size_class) & ~np.isnan(held)] for size_class in np.unique(classes))
    return min(float(group.mean()) for group in shown if group.size >= LEAST_CELLS)


def sum_text(coverage: Mapping[str, SumCoverage]) -> str:
    """Say how often intervals of sums hold, by kind of set, and how many sets have one."""
    said = [
        f"{name} {kind.at_90:.2f} ({kind.shown:.0%} shown)" if kind.shown else f"{name} withheld"
        for name, kind in coverage.items()
    ]
    is_met = all(kind.at_90 >= LEAST_BAR for kind in coverage.values() if kind.shown)
    shares = [kind.shown for kind in coverage.values()]
    of_all = np.average(np.nan_to_num([kind.at_95 for kind in coverage.values()]), weights=shares)
    is_near = SUM_BAR[0] <= of_all <= SUM_BAR[1]
    return (
        f"{', '.join(said)}: {'met' if is_met else 'NOT met'}; "
        f"all at 95 %: {of_all:.3f}: {'met' if is_near else 'NOT met'}"
    )


def season_lines(rates: Floats, folder: Path) -> Iterator[str]:
    """Yield gains in weeks whose hours rise and fall as those of real weeks in a row did."""
    for name, shapes in seasons(folder):
        for share in (1.0, 0.3, 0.1):
            *before, now = (share * rates * np.repeat(shape, 4, axis=1)[None] for shape in shapes)
            made = [compared(now, OPAL, before[::-1], seed=SEED + n) for n in range(MADE_WEEKS)]
            gain = np.mean([week.gain for week in made])
            yield f"| {name} | {share} | {len(before)} | {gain:.2f} | {cell_coverage(made)} |"


def hostile_lines(rates: Floats) -> Iterator[str]:
    """Yield the error of every hostile week over that of clipped numbers."""
    for scenario in scenarios(rates, dice(SEED)):
        coins = dice(SEED)
        counts = made_week(coins, scenario.rates)
        gaps = [
            [scenario.gap] if scenario.gap is not None and n % 2 else []
            for n in range(EARLIER_WEEKS)
        ]
        before = [made_week(coins, earlier) for earlier in scenario.earlier]
        week = week_of(
            coins, counts, before, OPAL, earlier_noise=scenario.noises, earlier_gaps=gaps
        )
        (taps,) = taps_by_mode(week)
        estimates = estimated(taps.numbers, taps.looks, taps.earlier).numbers
        errors, clipped = estimates.cells - counts, np.maximum(taps.numbers.cells, 0) - counts
        table = rmse(errors) / rmse(clipped)
        local = rmse(errors[scenario.affected]) / rmse(clipped[scenario.affected])
        verdict = "met" if table <= TABLE_LIMIT and local <= scenario.harm.value else "NOT met"
        yield f"| {scenario.name} | {table:.2f} | {local:.2f} | {scenario.harm.value}: {verdict} |"


def main() -> None:
    """Print the comparisons."""
    parser = argparse.ArgumentParser(description="error of the estimates on weeks of known truth")
    parser.add_argument("--opal-release", type=Path, help="folder of the published release of 2016")
    parser.add_argument("--patronage", type=Path, help="folder of daily patronage files")
    arguments = parser.parse_args()
    folder = arguments.opal_release
    if folder is None:
        print("no folder of the published release was given (--opal-release)", file=sys.stderr)
        return
    real = real_week(folder)
    print("# Estimates of the trains of a real week, varied\n")
    print("Times less RMSE of a cell than clipped numbers; weighted relative error by table.\n")
    print("| share | sd | earlier weeks | times less | bar | relative error | unbiased | CPU s |")
    print("|---|---|---|---|---|---|---|---|")
    print(*cell_lines(real), sep="\n")
    print("\n## 90 % intervals (the hole of the release between 0 and 18 filled)\n")
    print("| weeks | share | sd | earlier | overall | least of a size | shown | others | sums |")
    print("|---|---|---|---|---|---|---|---|---|")
    print(*coverage_lines(filled(real)), sep="\n")
    print("\n## Hostile weeks, share 0.3, sd 9.8, seven earlier weeks: RMSE over clipped\n")
    print("| week | table | affected cells | limit there |\n|---|---|---|---|")
    print(*hostile_lines(0.3 * real), sep="\n")
    print("\n## RMSE of a cell without each part, share 0.3, seven earlier weeks\n")
    print("| sd | without | more error |\n|---|---|---|")
    print(*ablation_lines(real, (OPAL, YEARLY)), sep="\n")
    print("\n## Places whose level broke, sd 32.3: RMSE with eight earlier weeks over without\n")
    print(
        "| change | share | cells | hours | days | other cells | |\n|---|---|---|---|---|---|---|"
    )
    print(*changed_lines(filled(real), YEARLY), sep="\n")
    if arguments.patronage is not None:
        print("\n## Weeks that rise and fall by hour and day as real ones did, sd 9.8\n")
        print(
            "| weeks | share | earlier | times less | overall | least of a size | shown | others |"
        )
        print("|---|---|---|---|---|---|---|---|")
        print(*season_lines(filled(real), arguments.patronage), sep="\n")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\nPeak memory {peak:,.0f} MB.")


if __name__ == "__main__":
    main()
