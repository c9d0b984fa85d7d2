"""What 90 % intervals hold in service hours, by table and by estimated size.

Real weeks, varied (`estimate_weeks`), in ten random regions, with sd 33.2 and 9.8: trains with
slots of a quarter and of an hour, and a metro with slots of an hour. Of numbers whose estimate is
10 and more: how many intervals hold the truth, by how much that varies with the draws (its standard
error: numbers of a draw share their noise, so 280 of regions tell less than 280 would), and the
least share of a size with 500 numbers or more. Of those below 10 how many intervals of numbers
published as 0 hold it, where these end, and the least share of a size. Run:
`python benchmarks/coverage_by_size.py FOLDER [FILE]`, the published release of 2016 and the
stations of a metro by hour of August 2025; of some settings alone, and more draws of them, with
`--draws 16 --city trains --sd 33.2 --earlier 0`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from compared_weeks import Compared, compared
from estimate_weeks import (
    FIRST_TRAIN,
    LAST_TRAIN,
    LOCATION,
    OPAL,
    Floats,
    Noise,
    by_hour,
    dice,
    filled,
    metro_week,
    real_week,
)

from turnstile.estimates.trips.tap_estimates import PUBLISHED_AS_0, SIZE_EDGES

NOISES, WEEKS, DRAWS, REGIONS = (Noise(33.2, None), OPAL), 7, 4, 10
FROM, MANY = 10, 500
A_MONDAY = "2025-08-04"
EDGES = (*(edge for edge in SIZE_EDGES if edge > FROM), 1000.0, 2000.0, 5000.0)
SMALL_EDGES = (PUBLISHED_AS_0, *(edge for edge in SIZE_EDGES if edge < FROM))
OVERALL, LEAST = (0.88, 0.93), 0.85


def in_service(week: Compared, table: str) -> Floats:
    """Return whether intervals hold, the estimates, and upper ends, shape (3, numbers)."""
    numbers = np.stack([week.coverage(table), week.column(table), week.column(table, "high_90")])
    if not table.endswith("_daily") and table != LOCATION.name:
        slots = 24 if table.endswith("_hourly") else 24 * 60 // week.week.promise.slot_minutes
        hours = np.arange(slots) * 24 // slots
        is_service = (hours >= FIRST_TRAIN) & (hours < LAST_TRAIN)
        numbers = numbers.reshape(3, len(week.week.numbers.days), slots, -1)[:, :, is_service]
    return numbers.reshape(3, -1)


def least_of(held: Floats, values: Floats, edges: tuple[float, ...]) -> float:
    """Return the least share that holds of a size with many numbers."""
    classes = np.digitize(values, edges)
    groups = [held[classes == n] for n in np.unique(classes)]
    return min((group.mean() for group in groups if group.size >= MANY), default=np.nan)


def lines(
    city: str, real: Floats, noise: Noise, *, draws: int, earlier: tuple[int, ...]
) -> Iterator[str]:
    """Yield a line for every setting and table of a city."""
    regions = [f"region {n}" for n in dice(7).integers(0, REGIONS, len(real))]
    for share in (1.0, 0.3, 0.1):
        for weeks in earlier:
            rates = share * real
            made = [
                compared(rates, noise, [rates] * weeks, seed=seed, regions=regions)
                for seed in range(1, draws + 1)
            ]
            for table in (name for name in made[0].found.tables if name in made[0].truth):
                parts = [in_service(week, table) for week in made]
                of_draws = [part[0][part[1] >= FROM].mean() for part in parts]
                spread = np.std(of_draws, ddof=1) / draws**0.5
                of_all, values, high = np.concatenate(parts, axis=1)
                is_large, is_0 = values >= FROM, values < PUBLISHED_AS_0
                held, of_0 = of_all[is_large], of_all[is_0]
                least = least_of(held, values[is_large], EDGES)
                of_small = least_of(of_all[~is_large], values[~is_large], SMALL_EDGES)
                is_met = OVERALL[0] <= held.mean() <= OVERALL[1]
                is_met &= not (least < LEAST or of_small < LEAST)
                verdict = "met" if is_met else "NOT met"
                of_0_holds = f"{of_0.mean():.3f}" if of_0.size >= MANY else ""
                end = f"{high[is_0].mean():.1f}" if of_0.size >= MANY else ""
                yield (
                    f"| {city} | {noise.cells} | {share} | {weeks} | {table} | {held.size:,} | "
                    f"{held.mean():.3f} | {spread:.3f} | {least:.3f} | {of_0_holds} | "
                    f"{end} | {of_small:.3f} | {verdict} |"
                )


def main() -> None:
    """Print the coverage."""
    parser = argparse.ArgumentParser(description="what 90 % intervals hold, by table and size")
    parser.add_argument("release", type=Path, help="folder of the published release of 2016")
    parser.add_argument("metro", type=Path, nargs="?", help="stations of a metro by hour")
    parser.add_argument("--draws", type=int, default=DRAWS, help="weeks made of each setting")
    parser.add_argument("--city", help="of this one alone")
    parser.add_argument("--sd", type=float, help="of cells, of this one alone")
    parser.add_argument("--monday", default=A_MONDAY, help="with which the metro's week begins")
    parser.add_argument("--earlier", type=int, help="weeks before, of this many alone")
    chosen = parser.parse_args()
    real = filled(real_week(chosen.release))
    cities = {"trains": real, "trains by hour": by_hour(real)}
    if chosen.metro:
        cities["metro by hour"] = metro_week(chosen.metro, chosen.monday)
    earlier = (0, WEEKS) if chosen.earlier is None else (chosen.earlier,)
    heads = "| city | sd | share | earlier weeks | table | numbers | hold | ± | least of a size |"
    print(f"{heads} published as 0 | end at | least below 10 | |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    for noise in NOISES:
        for city, counts in cities.items():
            if chosen.city in (None, city) and chosen.sd in (None, noise.cells):
                for line in lines(city, counts, noise, draws=chosen.draws, earlier=earlier):
                    print(line, flush=True)


if __name__ == "__main__":
    main()
