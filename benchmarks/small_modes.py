"""Modes whose places hardly stand out of the noise: days of places, with and without `totals`.

Made weeks of one mode under the noise of `opal_year`, sd 33.2 a cell and 657 a total. Prints, of
days of places: the RMSE, what 90 % intervals hold, by how much the mode's day is off, how many are
`good` or `fair`, and what the intervals of these hold. Run:
`python benchmarks/small_modes.py`.
"""

from __future__ import annotations

import numpy as np
from compared_weeks import SEED, Compared, compared, rmse, with_own_totals
from estimate_weeks import CELLS, Noise, made_rates
from numpy.typing import NDArray

from turnstile.estimates.usable import GRADES, Grade, grades

NOISE, DRAWS, LEFT_OUT = Noise(33.2, None), 5, 0.003
MODES = ((41, 7_000), (100, 2_000), (150, 20_000), (150, 60_000))  # places, trips a day
DAYS = f"{CELLS.name}_daily"


def line(weeks: list[Compared]) -> str:
    """What was said of some weeks."""
    errors = [week.column(DAYS) - week.truth[DAYS] for week in weeks]
    held = np.mean([week.coverage(DAYS).mean() for week in weeks])
    totals = rmse(np.stack([error.sum(axis=1) for error in errors]))
    is_usable = [is_good_or_fair(week) for week in weeks]
    of_usable = np.concatenate(
        [week.coverage(DAYS)[used] for week, used in zip(weeks, is_usable, strict=True)]
    )
    shares = f"{np.mean(is_usable):.1%} | {of_usable.mean() if of_usable.size else np.nan:.2f}"
    return f"{rmse(np.stack(errors)):.0f} | {held:.2f} | {totals:,.0f} | {shares}"


def is_good_or_fair(week: Compared) -> NDArray[np.bool_]:
    """Which days of places are, shape of the estimates."""
    values, rows = week.column(DAYS), week.found.tables[DAYS]
    low, high = (
        rows[end].to_numpy().astype(float).reshape(values.shape) for end in ("low_90", "high_90")
    )
    is_usable: NDArray[np.bool_] = grades(values, low, high) <= GRADES.index(Grade.FAIR)
    return is_usable


def main() -> None:
    """Print the table."""
    heads = "| places | trips a day | weeks before | totals | RMSE | hold | a day off by |"
    print(f"{heads} usable | hold |")
    print("|---|---|---|---|---|---|---|---|---|")
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
