"""Tables of counts made by rules, by somebody who had not read what judges them.

Three modes, four days, eighteen hours and twelve places each; the first twenty were made before the
tool had an answer to number 17 (a weight of 3.37) and 20 (a key of cells without ones and twos),
of which it said that small counts were left out. Those after them were made with the answer, and so
were those that are rounded to other steps where they are large: it said the same where the small
ones are. Roots, logarithms and powers came last: it had no words for them.
"""

# ruff: noqa: TID251, PLR2004 - made tables, no noise that protects anybody; numbers of the rules
from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product

import numpy as np
from made_tables import Floats, Ints, Made, Random, Truth, laplace, nearest
from numpy.typing import NDArray

from turnstile_lab.external.table import Cell, ExternalTable

MODES, DAYS, SLOTS, PLACES = 3, 4, 18, 12


def counts(seed: int, level: float = 1.2, spread: float = 1.3) -> tuple[Random, Ints]:
    """Return counts of two peaks, and what goes on with their random numbers."""
    random = np.random.default_rng(seed)
    sizes = np.exp(random.normal(level, spread, (MODES, PLACES)))
    hours = np.arange(SLOTS) + 6
    peaks = 0.15 + np.exp(-((hours - 8) ** 2) / 3) + 0.8 * np.exp(-((hours - 17) ** 2) / 5)
    days = np.exp(random.normal(0, 0.08, (MODES, DAYS, 1, 1)))
    return random, random.poisson(sizes[:, None, None, :] * peaks[None, None, :, None] * days)


def table(
    numbers: Ints | Floats, kept: NDArray[np.bool_] | None = None, totals: Ints | None = None
) -> ExternalTable:
    """Return a table by mode, day, hour and place, with totals over places if there are any."""
    cells, values = [], []
    for mode, day, slot, place in np.ndindex(numbers.shape):
        if kept is None or kept[mode, day, slot, place]:
            labels = f"2024-03-{day + 4:02}", "on", f"{slot + 6:02}:00", f"P{place:02}"
            cells.append(Cell(("bus", "train", "ferry")[mode], *labels))
            values.append(float(numbers[mode, day, slot, place]))
    for mode, day, slot in np.ndindex(totals.shape if totals is not None else (0, 0, 0)):
        labels = f"2024-03-{day + 4:02}", "on", f"{slot + 6:02}:00", None
        cells.append(Cell(("bus", "train", "ferry")[mode], *labels))
        values.append(float(totals[mode, day, slot]))  # type: ignore[index] # else no round is made
    return ExternalTable(tuple(cells), np.array(values))


def by_rules() -> list[Made]:
    """Return the twenty tables, and what was made with the answer to them."""
    return [
        *_of_rounding(),
        *_of_records(),
        *_of_noise(),
        *_of_weights(),
        *in_tiers(),
        *of_functions(),
    ]


_TIERS: tuple[tuple[tuple[int, float], ...], ...] = (  # a step, and below what it is taken
    ((10, 50), (1, np.inf)),
    ((20, 200), (1, np.inf)),
    ((10, 12), (1, np.inf)),
    ((5, 30), (1, np.inf)),
    ((3, 15), (5, np.inf)),
    ((3, 30), (10, np.inf)),
    ((5, 50), (10, np.inf)),
    ((1, 100), (5, np.inf)),
    ((10, 100), (25, np.inf)),
    ((2, 20), (5, 100), (10, np.inf)),
    ((5, 20), (1, 100), (10, np.inf)),
)


def in_tiers(seeds: Sequence[int] = (41, 42)) -> list[Made]:
    """Return tables that are rounded to steps by size, to the nearest, down and at random."""
    tables = []
    for seed, tiers in product(seeds, _TIERS):
        how = ("nearest", "down", "at random")[(seed + len(tables)) % 3]
        random, x = counts(seed, 2 + seed % 3)
        y, low = np.zeros_like(x), 0.0
        for step, high in tiers:
            rest = x % step
            up = {"nearest": 2 * rest > step, "down": rest < 0}.get(
                how, random.random(x.shape) < rest / step
            )
            y = np.where((low <= x) & (x < high), x - rest + step * up, y)
            low = high
        steps = tuple(step for step, _ in tiers)
        words = ", then ".join(f"{step} below {high:g}" for step, high in tiers)
        truth = Truth(tiers=steps, least=int(y[y > 0].min()))
        tables.append(Made(f"steps of {words}, {how} [{seed}]", table(y), truth))
    return tables


_FUNCTIONS: dict[str, Callable[[Floats], Floats]] = {
    "roots": np.sqrt,
    "logarithms": np.log1p,
    "powers of .7": lambda x: x**0.7,
    "powers of 1.3": lambda x: x**1.3,
    "roots by Anscombe": lambda x: np.where(x > 0, 2 * np.sqrt(x + 0.375), 0),
}


def of_functions(seeds: Sequence[int] = (51, 61)) -> list[Made]:
    """Return tables of whole numbers made of counts, to the nearest and down."""
    tables = []
    for seed, (words, function), times in product(seeds, _FUNCTIONS.items(), (5, 10)):
        _, x = counts(seed, 1 + seed % 3)
        y = (np.rint, np.floor)[len(tables) % 2](times * function(x.astype(np.float64)))
        truth = Truth(least=int(y[y > 0].min()))
        tables.append(Made(f"{times} times {words} [{seed}]", table(y), truth))
    return tables


def _of_rounding() -> list[Made]:
    """Two tiers, at random, beside totals."""
    tables = []
    _, x = counts(1, 3)
    fives = Truth(step=Fraction(5))
    tables.append(
        Made("fives below 50", table(np.where(x < 50, nearest(x, 5), nearest(x, 10))), fives)
    )
    _, x = counts(2, 3.5)
    tens = np.where(x < 100, x, nearest(x, 10))
    tables.append(Made("cut at 10, tens above 100", table(tens, x >= 10), Truth(digits=2, cut=10)))
    random, x = counts(3, 2)
    up = random.random(x.shape) < x % 3 / 3
    tables.append(Made("threes at random", table(x - x % 3 + 3 * up), Truth(step=Fraction(3))))
    _, x = counts(4, 2.5)
    tables.append(Made("fives, totals", table(nearest(x, 5), totals=x.sum(3)), fives))
    _, x = counts(5, 2.5)
    x = nearest(x, 5)
    return [*tables, Made("fives, totals of them", table(x, totals=x.sum(3)), fives)]


def _of_records() -> list[Made]:
    """Swapped, withheld or left alone."""
    random, x = counts(6, 2)
    moved = random.binomial(x, 0.05)
    y = x - moved
    for hour in np.ndindex(x.shape[:3]):
        y[hour] += random.multinomial(moved[hour].sum(), np.full(PLACES, 1 / PLACES))
    tables = [Made("records swapped", table(y), Truth())]
    random, x = counts(7, 2)
    for hour in np.ndindex(x.shape[:3]):
        if random.random() < 0.2:
            places = random.choice(PLACES, 2, replace=False)
            x[hour][places] = x[hour][places[::-1]]
    tables.append(Made("places swapped", table(x), Truth()))
    _, x = counts(8, 2)
    kept = x >= 5
    for hour in np.ndindex(x.shape[:3]):
        if (~kept[hour]).sum() == 1:
            shown = np.flatnonzero(kept[hour])
            kept[hour][shown[np.argmin(x[hour][shown])]] = False
    tables.append(Made("below 5, and one more", table(x, kept, x.sum(3)), Truth(cut=5)))
    _, x = counts(9, 0.5)
    tables.append(Made("no zeros", table(x, x > 0), Truth(is_without_zeros=True)))
    tables.append(Made("dense", table(counts(10, 1)[1]), Truth()))
    return [*tables, Made("busy", table(counts(11, 4, 0.6)[1]), Truth())]


def _of_noise() -> list[Made]:
    """Noise, with and without an end at zero; means, capacities and codes."""
    random, x = counts(12, 2)
    noisy = np.maximum(0, np.rint(x + random.laplace(0, 3, x.shape)))
    tables = [Made("Laplace 3, none below 0", table(noisy), Truth())]
    random, x = counts(13, 1)
    noisy = np.rint(x + random.normal(0, 5, x.shape))
    tables.append(Made("normal 5", table(noisy), Truth(noise="normal", scale=5)))
    random, x = counts(14, 0.5)
    noisy = np.where(x == 0, 0, x + laplace(random, x.shape, 2))
    partial = Truth(noise="Laplace", scale=2, is_partial=True)
    tables.append(Made("Laplace 2, zeros left", table(noisy), partial))
    random, x = counts(15, 2)
    four = random.poisson(np.maximum(x, 0.2), (4, *x.shape)).mean(0)
    tables.append(Made("means of four", table(four), Truth(step=Fraction(1, 4), share=4)))
    _, x = counts(16, 3.5)
    tables.append(Made("sixty seats", table(np.minimum(x, 60)), Truth(top=60)))
    _, x = counts(19, 4)
    return [*tables, Made("at most 300", table(np.minimum(x, 300)), Truth(top=300))]


def _of_weights() -> list[Made]:
    """Counts that stand for more, and keys of cells."""
    _, x = counts(17, 1)
    tables = [Made("times 3.37", table(np.rint(3.37 * x)), Truth(factor=3.37, least=3))]
    random, x = counts(18, 2)
    tens = table(10 * random.binomial(10 * x, 0.1))
    tables.append(Made("one in ten, times ten", tens, Truth(step=Fraction(10))))
    for seed, least in ((20, 3), (21, 3), (22, 4), (23, 5)):
        random, x = counts(seed, 1.5)
        y = np.where(x == 0, 0, np.maximum(0, x + random.integers(-2, 3, x.shape)))
        moved = np.where(random.random(x.shape) < 0.5, 0, least)
        y = np.where((y > 0) & (y < least), moved, y)
        tables.append(
            Made(f"key that leaves none below {least} [{seed}]", table(y), Truth(least=least))
        )
    for seed, factor in ((24, 1.7), (25, 2.6), (26, 12.34), (27, 41.7), (28, np.pi)):
        for how, to_whole in (("", np.rint), (" down", np.floor)):
            _, x = counts(seed, 2)
            y = to_whole(factor * x)
            truth = Truth(factor=factor, least=int(y[y > 0].min()))
            tables.append(Made(f"times {factor:.4g}{how}", table(y), truth))
    for seed, low, high in ((29, 3, 4), (30, 8, 10), (31, 6, 18), (32, 15, 60)):
        random, x = counts(seed, 1)
        for where, shape in (("cell", x.shape), ("mode and day", (MODES, DAYS, 1, 1))):
            y = np.rint(random.uniform(low, high, shape) * x)
            truth = Truth(least=int(y[y > 0].min()))
            tables.append(Made(f"times {low} to {high} a {where}", table(y), truth))
        y = np.array([random.uniform(low, high, n).sum() for n in x.ravel()]).reshape(x.shape)
        y = np.rint(y)
        truth = Truth(least=int(y[y > 0].min()))
        tables.append(Made(f"times {low} to {high} a record", table(y), truth))
    return tables
