"""How often intervals of sums of estimates hold the truth, for sets that people ask for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, nan

import numpy as np
from compared_weeks import Compared
from estimate_weeks import CELLS, PLACE, SLOT, Floats, Random, dice
from numpy.typing import NDArray

from turnstile.estimates.intervals import BEYOND_0
from turnstile.publishing.carried.sums import LEVELS, VALUE, Together, Way

SETS, SEED = 250, 15  # of each of four kinds
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class SumCoverage:
    """How often intervals of sums hold at 90 and 95 %, and how often one is shown."""

    at_90: float
    at_95: float
    shown: float


def sum_coverage(made: Sequence[Compared]) -> dict[str, SumCoverage]:
    """Return the coverage of each kind of set over some weeks."""
    by_kind: dict[str, list[float]] = {}
    for number, week in enumerate(made):
        for name, error in errors_of_sums(week, SEED + number):
            by_kind.setdefault(name, []).append(error)
    return {name: _coverage(np.array(errors)) for name, errors in by_kind.items()}


def errors_of_sums(week: Compared, seed: int) -> Iterator[tuple[str, float]]:
    """Yield kind and error over its standard deviation of random sums; no number if withheld."""
    ways = [Way(**way) for way in week.found.correlations[CELLS.name]]
    error_model = Together(ways, inf, BEYOND_0)
    days, places = len(week.week.numbers.days), week.truth["on_location"].shape[1]

    def cube(values: Floats) -> Floats:
        return values.reshape(days, -1, places).transpose(2, 0, 1)

    estimate = cube(week.column(CELLS.name))
    low, high = (cube(week.column(CELLS.name, end)) for end in ("low_90", "high_90"))
    truth = cube(week.truth[CELLS.name])
    for name, chosen in sets(estimate.shape, dice(seed)):
        if not chosen.any():
            continue
        rows = [
            {
                "service_date": week.week.numbers.days[day].isoformat(),
                PLACE: str(place),
                SLOT: f"{slot * 24 // estimate.shape[2]:02}:{slot}",
                VALUE: str(estimate[place, day, slot]),
                "low_90": str(low[place, day, slot]),
                "high_90": "" if np.isnan(high[place, day, slot]) else str(high[place, day, slot]),
            }
            for place, day, slot in np.argwhere(chosen)
        ]
        variance, withheld = error_model.error(rows)
        error = abs(estimate[chosen].sum() - truth[chosen].sum())
        yield name, nan if withheld else float(error / variance**0.5)


def _coverage(errors: Floats) -> SumCoverage:
    """Return the coverage from errors over their standard deviations."""
    shown = errors[~np.isnan(errors)]
    held = [float((shown <= LEVELS[level]).mean()) if shown.size else nan for level in (90, 95)]
    return SumCoverage(*held, shown.size / errors.size)


def sets(shape: tuple[int, ...], coins: Random) -> Iterator[tuple[str, Mask]]:
    """Yield sets of cells: any, hours at a place, hours at some places, their weekday peaks."""
    places, days, slots = shape
    for _ in range(SETS):
        yield "any cells", coins.random(shape) < coins.choice([3e-5, 3e-4, 3e-3])
        start, length = int(coins.integers(slots // 4, slots - 8)), int(coins.integers(2, 24))
        some = coins.permutation(places)[: int(coins.integers(2, 20))]
        chosen: Mapping[str, tuple[object, object]] = {
            "hours of a place": (some[:1], int(coins.integers(days))),
            "hours of places": (some, int(coins.integers(days))),
            "weekday hours of places": (some[:5], slice(0, 5)),
        }
        for name, (of_places, of_days) in chosen.items():
            mask = np.zeros(shape, dtype=np.bool_)
            part = np.zeros(shape[1:], dtype=np.bool_)
            part[of_days, start : start + length] = True
            mask[of_places] = part
            yield name, mask
