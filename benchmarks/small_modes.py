"""Modes whose places hardly stand out of the noise: days of places, with and without `totals`.

Made weeks of one mode under the noise of `opal_year`, sd 33.2 a cell and 657 a total. Prints, of
days of places: the RMSE, what 90 % intervals hold, and by how much the mode's day is off. Run:
`python benchmarks/small_modes.py`.
"""

from __future__ import annotations

import numpy as np
from compared_weeks import SEED, Compared, compared, rmse, with_own_totals
from estimate_weeks import CELLS, Noise, made_rates

NOISE, DRAWS, LEFT_OUT = Noise(33.2, None), 5, 0.003
MODES = ((41, 7_000), (100, 2_000), (150, 20_000), (150, 60_000))  # places, trips a day
DAYS = f"{CELLS.name}_daily"


def line(weeks: list[Compared]) -> str:
    """What was said of some weeks."""
    errors = [week.column(DAYS) - week.truth[DAYS] for week in weeks]
    held = np.mean([week.coverage(DAYS).mean() for week in weeks])
    totals = rmse(np.stack([error.sum(axis=1) for error in errors]))
    return f"{rmse(np.stack(errors)):.0f} | {held:.2f} | {totals:,.0f}"


def main() -> None:
    """Print the table."""
    print("| places | trips a day | weeks before | totals | RMSE | hold | a day off by |")
    print("|---|---|---|---|---|---|---|")
    for places, trips in MODES:
        rates = made_rates(places)
        rates *= trips * rates.shape[1] / rates.sum()
        for earlier in (0, 4):
            weeks = [compared(rates, NOISE, [rates] * earlier, seed=n) for n in range(DRAWS)]
            known = [with_own_totals(week, LEFT_OUT, seed=SEED + n) for n, week in enumerate(weeks)]
            for name, made in (("no", weeks), ("yes", known)):
                print(f"| {places} | {trips:,} | {earlier} | {name} | {line(made)} |", flush=True)


if __name__ == "__main__":
    main()
