"""What 90 % intervals of sums hold that ask for kinds of day, and of what differs between them.

Of every place the trips of all weekdays, of the weekend, of the week, and by how much the mean
weekday differs from the mean of the weekend, read off days; the same of one hour, read off hours.
Weeks, noise and cities are those of `coverage_by_size`; nothing is put on the safe side for how far
errors go together (`sums.py` adds a standard deviation of it). Run:
`python benchmarks/sums_of_places.py FOLDER [FILE]`, as `coverage_by_size.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from math import inf
from pathlib import Path

import numpy as np
from compared_weeks import Compared, compared
from coverage_by_size import A_MONDAY, NOISES, WEEKS
from estimate_weeks import CELLS, Floats, by_hour, filled, metro_week, real_week

from turnstile.estimates.intervals import BEYOND_0
from turnstile.publishing.carried.sums import LEVELS, Together, Way

SEEDS, HOUR = (1, 2, 3), 17
WEEKDAYS, WEEKEND = tuple(range(5)), (5, 6)
QUESTIONS = ("weekdays", "weekend", "week", "difference")


def errors_of_place(week: Compared, table: str, place: int, slot: int) -> Iterator[float]:
    """Yield, for every question, its error over the standard deviation that is stated."""
    ways = [Way(**way)._replace(uncertainty=0.0) for way in week.found.correlations[table]]
    error_model = Together(ways, inf, BEYOND_0)
    days, places = week.week.numbers.days, len(week.truth["on_location"][0])
    at = slot * places + place
    columns = {name: week.column(table, name)[:, at] for name in ("estimate", "low_90", "high_90")}
    errors = columns["estimate"] - week.truth.get(table, week.truth[CELLS.name])[:, at]
    rows = [
        {
            "service_date": day.isoformat(),
            "location": str(place),
            "hour": f"{slot:02}:00",
            "value": str(columns["estimate"][n]),
            "low_90": str(columns["low_90"][n]),
            "high_90": str(columns["high_90"][n]),
        }
        for n, day in enumerate(days)
    ]
    variances = {
        chosen: error_model.error([rows[n] for n in chosen])[0]
        for chosen in (WEEKDAYS, WEEKEND, WEEKDAYS + WEEKEND)
    }
    for chosen, variance in variances.items():
        yield float(errors[list(chosen)].sum() / np.sqrt(variance))
    yield _difference(errors, variances)


def _difference(errors: Floats, variances: Mapping[tuple[int, ...], float]) -> float:
    """Return the same of the mean weekday less the mean day of the weekend."""
    of_weekdays, of_weekend, of_week = variances.values()
    shared = (of_week - of_weekdays - of_weekend) / 2
    few, many = len(WEEKEND), len(WEEKDAYS)
    variance = of_weekdays / many**2 + of_weekend / few**2 - 2 * shared / (many * few)
    error = errors[list(WEEKDAYS)].mean() - errors[list(WEEKEND)].mean()
    return float(error / np.sqrt(variance))


def lines(city: str, real: Floats) -> Iterator[str]:
    """Yield a line for every setting and table of a city."""
    for share in (1.0, 0.1):
        for earlier in (0, WEEKS):
            rates = share * real
            made = [compared(rates, NOISES[0], [rates] * earlier, seed=seed) for seed in SEEDS]
            hourly = f"{CELLS.name}_hourly"
            hours = hourly if hourly in made[0].found.tables else CELLS.name
            for table, slot in ((f"{CELLS.name}_daily", 0), (hours, HOUR)):
                apart = np.array(
                    [
                        list(errors_of_place(week, table, place, slot))
                        for week in made
                        for place in range(len(real))
                        if week.column(table)[:, slot * len(real) + place].min() > 0
                    ]
                )
                held = (np.abs(apart) <= LEVELS[90]).mean(axis=0)
                shares = " | ".join(f"{value:.3f}" for value in held)
                yield f"| {city} | {share} | {earlier} | {table} | {len(apart)} | {shares} |"


def main() -> None:
    """Print what intervals hold."""
    print(f"| city | share | earlier weeks | table | places | {' | '.join(QUESTIONS)} |")
    print("|---" * (5 + len(QUESTIONS)) + "|")
    real = filled(real_week(Path(sys.argv[1])))
    cities = {"trains": real, "trains by hour": by_hour(real)}
    if sys.argv[2:]:
        cities["metro by hour"] = metro_week(Path(sys.argv[2]), A_MONDAY)
    for city, counts in cities.items():
        for line in lines(city, counts):
            print(line, flush=True)


if __name__ == "__main__":
    main()
