"""How often intervals of sums of estimates hold the truth, for sets that people ask for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf

import numpy as np
from compared_weeks import Compared
from estimate_weeks import CELLS, PLACE, SLOT, Floats, Random, dice
from numpy.typing import NDArray

from turnstile.publishing.carried.sums import LEVELS, Together, Way

SETS, SEED = 40, 15
Mask = NDArray[np.bool_]


def sum_text(one: Compared) -> str:
    """Return, for each kind of set, coverage of the 90 % intervals and the share that is shown."""
    errors = one.found.errors[CELLS.name]
    hidden = [line["rmse_estimated"] for line in errors if not line["intervals_shown"]]
    ways = [Way(**way) for way in one.found.correlations[CELLS.name]]
    together = Together(ways, max(hidden, default=inf) ** 2)
    days, places = len(one.week.numbers.days), one.truth["on_location"].shape[1]

    def cube(values: Floats) -> Floats:
        return values.reshape(days, -1, places).transpose(2, 0, 1)

    estimate, high = cube(one.column(CELLS.name)), cube(one.column(CELLS.name, "high_90"))
    truth = cube(one.truth[CELLS.name])
    held: dict[str, list[bool | None]] = {}
    for name, chosen in sets(estimate.shape, dice(SEED)):
        rows = [
            {
                "service_date": str(day),
                PLACE: str(place),
                SLOT: f"{slot * 24 // estimate.shape[2]:02}:{slot}",
                "estimate": str(estimate[place, day, slot]),
                "high_90": "" if np.isnan(high[place, day, slot]) else str(high[place, day, slot]),
            }
            for place, day, slot in np.argwhere(chosen)
        ]
        variance, withheld = together.error(rows)
        error = abs(estimate[chosen].sum() - truth[chosen].sum())
        is_held = None if withheld else bool(error <= LEVELS[90] * variance**0.5)
        held.setdefault(name, []).append(is_held)
    return ", ".join(_share(name, found) for name, found in held.items())


def _share(name: str, found: list[bool | None]) -> str:
    """Say how often a kind of set was held, and how often it has an interval."""
    shown = [one for one in found if one is not None]
    if not shown:
        return f"{name} withheld"
    return f"{name} {np.mean(shown):.2f} ({len(shown) / len(found):.0%} shown)"


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
            found = np.zeros(shape, dtype=np.bool_)
            part = np.zeros(shape[1:], dtype=np.bool_)
            part[of_days, start : start + length] = True
            found[of_places] = part
            yield name, found
