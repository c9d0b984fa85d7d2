"""120 made tables of counts with what was done to them, made to mislead whoever reads them.

Counts are heavy-tailed, few, tied, even by nature, with natural gaps, floors and capacities, placed
by stop and hour or without any order; treatments come alone and two at once, and some tables have
nothing done to them. Each is made from a seed that stands in its name.
"""

# ruff: noqa: TID251 - made tables, no noise that protects anybody
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from turnstile_lab.disclosures import Disclosure
from turnstile_lab.external.table import Cell, ExternalTable

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Random = np.random.Generator
STOPS, SLOTS, DAYS = 40, 48, 4
_CUT = 15
_CUT_LOW = 5  # a key of cells may leave no smaller count either


@dataclass(frozen=True)
class Truth:
    """What was done to a table.

    Args:
        step: largest number that all were made multiples of; 1 for none.
        tiers: numbers that they were made multiples of, by their size.
        digits: significant digits that they were rounded to; 0 for all.
        share: q where all were made rounded multiples of 1/q.
        noise: family of the noise of cells, where cells below zero show it as it is.
        scale: of that noise.
        is_partial: whether some cells were left without noise, or small numbers set to 0.
        empty: cells whose raw count is 0, where noise was drawn in floating point.
        top: number that all beyond hold, or a limit that many cells have.
        bottom: likewise below.
        cut: below which counts were left out, set to 0 or marked by a number; about.
        cut_unrounded: where numbers were cut before they were rounded, and not moved later.
        is_moved: whether numbers were moved after the cut.
        is_without_zeros: whether rows of nobody were left out.
        factor: that all were multiplied by before they were rounded.
        least: that small counts were moved to or beyond, by a key of cells or by weights.
        mark: number below 0 that stands for no count.
        deviation: of the noise of each number, where totals, pairs or reruns show it.
        is_fresh: whether cells were drawn anew.
    """

    step: Fraction = Fraction(1)
    tiers: tuple[int, ...] = ()
    digits: int = 0
    share: int | None = None
    noise: str | None = None
    scale: float = 0.0
    is_partial: bool = False
    empty: int = 0
    top: float | None = None
    bottom: float | None = None
    cut: float | None = None
    cut_unrounded: float | None = None
    is_moved: bool = False
    is_without_zeros: bool = False
    factor: float | None = None
    least: int | None = None
    mark: float | None = None
    deviation: float | None = None
    is_fresh: bool = False


@dataclass(frozen=True)
class Made:
    """A table and its truth."""

    name: str
    table: ExternalTable
    truth: Truth


def is_true(disclosure: Disclosure, truth: Truth) -> bool:
    """Return whether what is said of a table is so.

    Raises:
        KeyError: a claim that nobody has a measure for.
    """
    return _PREDICATES[disclosure.figures["claim"]](disclosure.figures, truth)


def is_said(disclosure: Disclosure) -> bool:
    """Return whether a finding says something, and not that it cannot be told."""
    return bool(disclosure.figures.get("is_told", True)) and disclosure.figures["claim"] is not None


_PREDICATES: dict[str, Callable[[dict, Truth], bool]] = {
    "grid": lambda f, t: (
        abs(f["base"] - float(t.step)) < 1e-9  # noqa: PLR2004
        or any(tier % f["base"] == 0 for tier in t.tiers)
    ),
    "coarse": lambda _, t: t.step != 1 or t.digits > 0 or t.factor is not None or t.tiers,
    "digits": lambda f, t: f["digits"] == t.digits or t.tiers,  # it says: or in steps by size
    "decimals": lambda f, t: f["surely_zero"] <= t.empty or t.noise is None,
    "share": lambda f, t: t.share is not None and t.share % f["share"] == 0,
    "mark": lambda f, t: t.cut is None or f["below"] in (None, t.cut),
    "mark_below": lambda f, t: float(f["mark"]) == t.mark,
    "stated": lambda f, t: t.cut is not None and f["high"] == t.cut,
    "top": lambda f, t: f["at"] == t.top,
    "bottom": lambda f, t: f["at"] == t.bottom,
    "below_zero": lambda _, t: t.noise is not None,
    "scale": lambda f, t: (
        f["family"] == t.noise and (not f["identified"] or f["low"] <= t.scale <= f["high"])
    ),
    "zeros": lambda _, t: t.is_partial,
    "left_out": lambda f, t: (
        t.cut is not None
        and abs(f["smallest_published"] - t.cut) <= (6 if t.is_moved else 2 + 0.2 * t.cut)
        and (f["cut"] is None or (not t.is_moved and _holds(f, t)))
    ),
    "none_small": lambda f, t: (
        (t.least is not None and t.least <= f["smallest_published"])
        or _PREDICATES["left_out"](f, t)
    ),
    "factor": lambda f, t: t.factor is not None and f["low"] <= t.factor <= f["high"],
    "zeros_omitted": lambda _, t: t.is_without_zeros,
    "noise": lambda f, t: (
        t.deviation is not None
        and f["deviation_low"] <= t.deviation <= f["deviation_high"]
        and (not f["identified"] or (f["family"] == t.noise and f["low"] <= t.scale <= f["high"]))
    ),
    "fresh_noise": lambda _, t: t.is_fresh,
    "derived": lambda _, _t: True,  # read off: totals are the sums
}


def _holds(figures: dict, truth: Truth) -> bool:
    """Return whether an interval holds the cut, of unrounded or of whole numbers."""
    if truth.cut_unrounded is None:
        return bool(figures["cut_after_rounding_possible"])
    return bool(figures["low"] <= truth.cut_unrounded <= figures["high"])


def true_features(truth: Truth) -> set[str]:
    """Return the claims that would be right of a table, for the share that is found."""
    features = {
        "grid": truth.step != 1,
        "digits": truth.digits > 0,
        "share": truth.share is not None,
        "mark_below": truth.mark is not None,
        "top": truth.top is not None,
        "bottom": truth.bottom is not None,
        "scale": truth.scale > 0 and truth.step == 1 and truth.deviation is None,
        "zeros": truth.is_partial,
        "left_out": truth.cut is not None and truth.cut > _CUT_LOW,
        "none_small": (truth.cut or truth.least or _CUT) <= _CUT_LOW and truth.factor is None,
        "factor": truth.factor is not None,
        "zeros_omitted": truth.is_without_zeros,
        "noise": truth.deviation is not None and not truth.is_fresh,
        "fresh_noise": truth.is_fresh,
    }
    return {name for name, holds in features.items() if holds}


# Counts as they are: shape (days, slots, stops) where they have an order, else (days, 1, stops).


def city(random: Random, trips: float = 8.0) -> Ints:
    """Two peaks, few busy stops and many quiet ones; heavy-tailed from day to day."""
    hours = np.linspace(0, 24, SLOTS)
    peaks = np.exp(-((hours - 8) ** 2) / 3) + np.exp(-((hours - 17.5) ** 2) / 5) + 0.08
    sizes = np.exp(1.3 * random.standard_normal(STOPS))
    rates = trips * peaks[None, :, None] * sizes * np.ones((DAYS, 1, 1))
    return random.poisson(rates * random.gamma(6, 1 / 6, rates.shape)).astype(np.int64)


def busy(random: Random) -> Ints:
    """The same, ten times as busy."""
    return city(random, 80.0)


def quiet(random: Random) -> Ints:
    """Hardly anybody."""
    return random.poisson(0.7, (DAYS, SLOTS, STOPS)).astype(np.int64)


def floored(random: Random) -> Ints:
    """Heavy-tailed from 20 on, by nature: no cell is smaller, and no stop is like itself."""
    return np.floor(20 * (1 + random.pareto(1.5, (DAYS, SLOTS, STOPS)))).astype(np.int64)


def gapped(random: Random) -> Ints:
    """Nothing runs, or a full hour of it does."""
    runs = random.random((1, SLOTS, STOPS)) < np.linspace(0.15, 0.95, STOPS)
    return np.where(runs, random.poisson(60, (DAYS, SLOTS, STOPS)), 0).astype(np.int64)


def constant(random: Random) -> Ints:
    """A timetable: each day is like the other."""
    return np.repeat(city(random, 30.0)[:1], DAYS, axis=0)


def seats(random: Random) -> Ints:
    """Vehicles of 60 seats, full at the peaks."""
    return np.minimum(city(random, 50.0), 60)


def tickets(random: Random) -> Ints:
    """Everybody travels in pairs."""
    return 2 * city(random, 20.0)


def few(random: Random) -> Ints:
    """Twelve cells."""
    return random.geometric(0.02, (1, 1, 12)).astype(np.int64)


def round_few(random: Random) -> Ints:
    """Five cells, all of them tens by accident."""
    return 10 * random.integers(1, 9, (1, 1, 5))


def stops_only(random: Random) -> Ints:
    """Large stations by day."""
    rates = np.exp(7 + random.standard_normal(STOPS))
    return random.poisson(rates * np.ones((DAYS, 1, 1))).astype(np.int64)


def tail(random: Random) -> Ints:
    """No order at all: a heavy tail, drawn anew in each cell."""
    return np.floor(random.pareto(0.8, (DAYS, SLOTS, STOPS))).astype(np.int64)


Raw = Callable[[Random], Ints]
PLAIN: tuple[Raw, ...] = (city, busy, quiet, floored, gapped, constant, few, stops_only, tail)


def table_of(
    values: NDArray[np.float64] | Ints, published: NDArray[np.bool_] | None = None
) -> ExternalTable:
    """Return a table by day, slot and stop; a dimension of length 1 is no column."""
    kept = np.ones(values.shape, dtype=np.bool_) if published is None else published
    indices = np.argwhere(kept)
    has_slots = values.shape[1] > 1
    cells = tuple(
        Cell(
            "bus",
            f"201607{day + 10}",
            "on",
            f"{slot // 2:02}:{30 * (slot % 2):02}" if has_slots else None,
            f"stop {stop}",
        )
        for day, slot, stop in indices.tolist()
    )
    return ExternalTable(cells, values[kept].astype(np.float64))


def laplace(random: Random, shape: tuple[int, ...], scale: float) -> Ints:
    """Return discrete Laplace noise."""
    chance = -np.expm1(-1 / scale)
    return random.geometric(chance, shape) - random.geometric(chance, shape)


def nearest(values: Ints | Floats, base: int) -> Ints:
    """Round to the nearest multiple, halves up."""
    return (base * np.floor(values / base + 0.5)).astype(np.int64)


def at_random(random: Random, values: Ints, base: int) -> Ints:
    """Round up or down at random, without bias."""
    up = random.random(values.shape) < values % base / base
    return base * (values // base + up)


Treatment = Callable[[Random, Ints], tuple[ExternalTable, Truth]]


def untouched(_: Random, raw: Ints) -> tuple[ExternalTable, Truth]:
    """Nothing is done."""
    return table_of(raw), Truth()


def rounded(base: int, how: str = "nearest") -> Treatment:
    """Round to a base."""

    def treat(random: Random, raw: Ints) -> tuple[ExternalTable, Truth]:
        if how == "random":
            return table_of(at_random(random, raw, base)), Truth(step=Fraction(base))
        counts = raw // base * base if how == "down" else nearest(raw, base)
        return table_of(counts), Truth(step=Fraction(base))

    return treat


def to_digits(most: int) -> Treatment:
    """Round to significant digits."""

    def treat(_: Random, raw: Ints) -> tuple[ExternalTable, Truth]:
        sizes = np.floor(np.log10(np.maximum(raw, 1))).astype(np.int64)
        power = 10 ** np.maximum(0, sizes + 1 - most)
        return table_of(np.rint(raw / power).astype(np.int64) * power), Truth(digits=most)

    return treat


def without_zeros(_: Random, raw: Ints) -> tuple[ExternalTable, Truth]:
    """Leave out rows of nobody."""
    return table_of(raw, raw > 0), Truth(is_without_zeros=True)


def holed(share: float) -> Treatment:
    """Leave out rows at random, a stop at a time more or less."""

    def treat(random: Random, raw: Ints) -> tuple[ExternalTable, Truth]:
        shares = random.beta(1, 1 / share - 1, raw.shape[2])
        return table_of(raw, random.random(raw.shape) > shares), Truth()

    return treat


def by_night(_: Random, raw: Ints) -> tuple[ExternalTable, Truth]:
    """Leave out hours at which nothing runs, more of them at quiet stops."""
    sizes = raw.sum(axis=(0, 1)).argsort().argsort()
    hours = np.arange(raw.shape[1])[None, :, None] >= (sizes.size - sizes) // 4
    return table_of(raw, np.broadcast_to(hours, raw.shape)), Truth()


def mean_of(number: int, decimals: int) -> Treatment:
    """Publish means of so many days."""

    def treat(_: Random, raw: Ints) -> tuple[ExternalTable, Truth]:
        return table_of(np.round(raw / number, decimals)), Truth(share=number)

    return treat


def weighted(decimals: int | None) -> Treatment:
    """Expand by weights of a survey."""

    def treat(random: Random, raw: Ints) -> tuple[ExternalTable, Truth]:
        values = raw * (1 + random.random(raw.shape) / 3) * 1.0
        return table_of(values if decimals is None else np.round(values, decimals)), Truth()

    return treat


def small_shares(_: Random, raw: Ints) -> tuple[ExternalTable, Truth]:
    """Shares of all, with four decimals: floats without any noise."""
    shares = np.round(raw / max(1, int(raw.sum())) * 40, 4)
    return table_of(shares), Truth(step=Fraction(1, 10**4))


def coded(top: int | None = None, bottom: int | None = None) -> Treatment:
    """Publish an end for all beyond it."""

    def treat(_: Random, raw: Ints) -> tuple[ExternalTable, Truth]:
        counts = np.clip(raw, bottom, top)
        return table_of(counts), Truth(top=top, bottom=bottom)

    return treat


def cut(below: int, how: str = "rows") -> Treatment:
    """Leave out, set to 0 or mark counts below a threshold."""

    def treat(_: Random, raw: Ints) -> tuple[ExternalTable, Truth]:
        small = raw < below
        if how == "rows":
            return table_of(raw, ~small), Truth(cut=below)
        if how == "zero":
            return table_of(np.where(small, 0, raw)), Truth(cut=below)
        if how == "mark":
            return table_of(np.where(small, -1, raw)), Truth(cut=below, mark=-1.0)
        table = table_of(raw, ~small)
        marks = ((f"<{below}", int(small.sum())),)
        return replace(table, marks=marks), Truth(cut=below)

    return treat


def noised_and_cut(scale: float, at: float, base: int = 1) -> Treatment:
    """Noise on occupied cells, cut before rounding, as the release of 2016; or rounded after it."""

    def treat(random: Random, raw: Ints) -> tuple[ExternalTable, Truth]:
        noisy = raw + random.laplace(0, scale, raw.shape)
        kept = (raw > 0) & (noisy > at)
        truth = Truth(cut=at, cut_unrounded=at)
        if base > 1:
            return table_of(nearest(noisy, base), kept), replace(truth, step=Fraction(base))
        return table_of(np.rint(noisy), kept), truth

    return treat


def cut_and_then(what: str) -> Treatment:
    """Cut whole counts, and move or round what is left."""

    def treat(random: Random, raw: Ints) -> tuple[ExternalTable, Truth]:
        truth = Truth(cut=_CUT)
        if what == "round":
            return table_of(nearest(raw, 5), raw >= _CUT), replace(truth, step=Fraction(5))
        moved = raw + laplace(random, raw.shape, 1.5)
        return table_of(moved, raw >= _CUT), replace(truth, is_moved=True)

    return treat


def noised(family: str, scale: float, then: str = "") -> Treatment:
    """Noise on every cell; then rounded to 5, clipped, left alone where empty, or in part."""

    def treat(random: Random, raw: Ints) -> tuple[ExternalTable, Truth]:
        truth = Truth(noise=family, scale=scale)
        if family == "normal":
            noise = np.rint(random.normal(0, scale, raw.shape)).astype(np.int64)
        elif family == "student":
            noise = np.rint(random.standard_t(1.5, raw.shape)).astype(np.int64)
            truth = Truth(noise="other")
        else:
            noise = laplace(random, raw.shape, scale)
        noisy = raw + noise
        if then == "round":
            return table_of(nearest(noisy, 5)), replace(truth, step=Fraction(5))
        if then == "clip":
            return table_of(np.maximum(noisy, 0)), Truth()
        if then == "left_alone":
            return table_of(np.where(raw > 0, noisy, 0)), replace(truth, is_partial=True)
        if then == "half":
            half = random.random(raw.shape) < 0.5  # noqa: PLR2004
            return table_of(np.where(half, noisy, raw)), replace(truth, is_partial=True)
        return table_of(noisy), truth

    return treat


def floating(decimals: int | None) -> Treatment:
    """Noise in floating point on every cell, with all its bits or some decimals."""

    def treat(random: Random, raw: Ints) -> tuple[ExternalTable, Truth]:
        noisy = raw + random.laplace(0, 1.0, raw.shape)
        truth = Truth(noise="Laplace", empty=int((raw == 0).sum()))
        if decimals is None:
            return table_of(noisy), truth
        return table_of(np.round(noisy, decimals)), replace(truth, empty=0)

    return treat


def changes(_: Random, raw: Ints) -> tuple[ExternalTable, Truth]:
    """Publish what changed since the day before: no noise at all."""
    return table_of(np.diff(raw, axis=0)), Truth(noise="other")


def perturbed(random: Random, raw: Ints) -> tuple[ExternalTable, Truth]:
    """Move one count in three by one, none below 0."""
    step = random.choice([-1, 0, 0, 0, 0, 1], raw.shape)
    return table_of(np.maximum(raw + step, 0)), Truth()


def swapped(random: Random, raw: Ints) -> tuple[ExternalTable, Truth]:
    """Swap a tenth of the cells with others."""
    cells = raw.ravel().copy()
    chosen = random.choice(cells.size, cells.size // 10, replace=False)
    cells[chosen] = cells[random.permutation(chosen)]
    return table_of(cells.reshape(raw.shape)), Truth()


def totals(how: str, deviation: float = 0.0) -> Treatment:
    """Publish the totals over stops beside the cells."""

    def treat(random: Random, raw: Ints) -> tuple[ExternalTable, Truth]:
        raw = raw[:, :, :8] + 30 * (how != "cut")
        counts, sums, truth = raw, raw.sum(axis=2, keepdims=True), Truth()
        if how == "laplace":
            scale = deviation / np.sqrt(2)
            counts, sums = (n + np.rint(random.laplace(0, scale, n.shape)) for n in (counts, sums))
            truth = Truth(noise="Laplace", scale=scale, deviation=deviation)
        elif how == "normal":
            counts, sums = (
                n + np.rint(random.normal(0, deviation, n.shape)) for n in (counts, sums)
            )
            truth = Truth(noise="normal", scale=deviation, deviation=deviation)
        elif how == "weights":
            weights = 1 + random.random(raw.shape)
            counts, sums = np.rint(raw * weights), np.rint((raw * weights).sum(2, keepdims=True))
        elif how == "unknown":
            sums = sums + random.poisson(6, sums.shape)
        elif how == "later":
            sums = random.binomial(sums, 0.99) + random.poisson(sums * 0.01)
        elif how == "rounded":
            counts, sums, truth = nearest(counts, 5), nearest(sums, 5), Truth(step=Fraction(5))
        kept = raw >= 10 if how == "cut" else np.ones(raw.shape, dtype=np.bool_)  # noqa: PLR2004
        if how == "cut":
            truth = Truth(cut=10)
        shown = random.random(sums.shape) < 0.7 if how == "withheld" else np.ones(sums.shape) > 0  # noqa: PLR2004
        parts, whole = table_of(counts, kept), table_of(sums, shown)
        cells = tuple(cell._replace(loc=None) for cell in whole.cells)
        both = ExternalTable(parts.cells + cells, np.concatenate((parts.counts, whole.counts)))
        return both, truth

    return treat


def ferry(how: str) -> Treatment:
    """Both ends of a crossing: noise, or people who stay on the isle."""

    def treat(random: Random, raw: Ints) -> tuple[ExternalTable, Truth]:
        on = 20 + raw[:, :, :2]
        off, truth = on.copy(), Truth()
        if how == "laplace":
            on, off = (n + np.rint(random.laplace(0, 1.4, n.shape)) for n in (on, off))
            truth = Truth(noise="Laplace", scale=1.4, deviation=1.4 * np.sqrt(2))
        else:
            off = random.binomial(on, 0.97) + random.poisson(0.03 * on)
        first, second = table_of(on), table_of(off)
        renamed = tuple(cell._replace(tap="off", loc=f"quay {cell.loc}") for cell in second.cells)
        both = ExternalTable(first.cells + renamed, np.concatenate((first.counts, second.counts)))
        return both, truth

    return treat


def twice(how: str) -> Treatment:
    """Publish each cell twice: drawn anew, as a later state, or without the column of the gate."""

    def treat(random: Random, raw: Ints) -> tuple[ExternalTable, Truth]:
        raw = raw + 40
        first, second, truth = raw, raw, Truth()
        if how == "drawn":
            first, second = (n + laplace(random, n.shape, 2.0) for n in (raw, raw))
            truth = Truth(is_fresh=True, noise="Laplace", scale=2.0, deviation=2.0 * np.sqrt(2))
        elif how == "later":
            second = raw + random.poisson(0.02 * raw)
        else:
            second = random.permutation(raw.ravel()).reshape(raw.shape)
        one, two = table_of(first), table_of(second)
        counts = np.concatenate((one.counts, two.counts))
        return ExternalTable(one.cells + two.cells, counts), truth

    return treat


def _even(treatment: Treatment) -> Treatment:
    """People in pairs: multiples of two by nature, beside what is done."""

    def treat(random: Random, raw: Ints) -> tuple[ExternalTable, Truth]:
        table, truth = treatment(random, raw)
        step = truth.step if truth.step.numerator % 2 == 0 else 2 * truth.step
        return table, replace(truth, step=step)

    return treat


PLANS: tuple[tuple[str, Raw, Treatment, int], ...] = (
    *((f"{raw.__name__}, untouched", raw, untouched, 2) for raw in PLAIN),
    ("seats, untouched", seats, lambda r, n: (untouched(r, n)[0], Truth(top=60)), 2),
    ("tickets, untouched", tickets, _even(untouched), 1),
    ("accident, untouched", round_few, untouched, 4),
    *(
        (f"{raw.__name__}, {how} {base}", raw, rounded(base, how), 1)
        for raw, base, how in (
            (city, 3, "random"),
            (city, 5, "nearest"),
            (quiet, 3, "random"),
            (busy, 100, "nearest"),
            (stops_only, 7, "nearest"),
            (busy, 12, "down"),
            (few, 5, "nearest"),
            (few, 20, "random"),
            (tail, 10, "nearest"),
            (gapped, 4, "random"),
            (quiet, 10, "nearest"),
            (floored, 25, "nearest"),
        )
    ),
    ("busy, two digits", busy, to_digits(2), 1),
    ("stations, one digit", stops_only, to_digits(1), 1),
    ("few, two digits", few, to_digits(2), 1),
    *((f"{raw.__name__}, zeros left out", raw, without_zeros, 1) for raw in (city, quiet, gapped)),
    *((f"{raw.__name__}, holed", raw, holed(0.2), 2) for raw in (floored, gapped, stops_only)),
    *((f"{raw.__name__}, by night", raw, by_night, 1) for raw in (floored, busy, stops_only)),
    ("city, mean of 7", city, mean_of(7, 2), 1),
    ("city, mean of 7 with all digits", city, mean_of(7, 15), 1),
    ("city, mean of 30", city, mean_of(30, 4), 1),
    ("few, mean of 9", few, mean_of(9, 1), 1),
    ("city, weights with four decimals", city, weighted(4), 1),
    ("city, weights", city, weighted(None), 2),
    ("quiet, weights", quiet, weighted(None), 1),
    ("city, shares", city, small_shares, 2),
    ("busy, top code", busy, coded(top=50), 2),
    ("city, top code", city, coded(top=20), 1),
    ("quiet, top code", quiet, coded(top=2), 1),
    ("busy, bottom code", busy, coded(bottom=10), 2),
    ("city, both codes", city, coded(top=30, bottom=5), 1),
    *(
        (f"{raw.__name__}, below {below} {how}", raw, cut(below, how), 1)
        for raw, below, how in (
            (busy, 18, "rows"),
            (busy, 18, "zero"),
            (busy, 10, "mark"),
            (busy, 50, "text"),
            (city, 5, "rows"),
            (city, 5, "zero"),
            (stops_only, 500, "rows"),
            (tail, 10, "rows"),
            (few, 10, "rows"),
            (quiet, 2, "rows"),
        )
    ),
    ("busy, noised, cut", busy, noised_and_cut(1.4, 17.588), 2),
    ("stations, noised, cut", stops_only, noised_and_cut(2.0, 34.176), 1),
    ("busy, noised, cut, rounded", busy, noised_and_cut(1.4, 17.588, 5), 1),
    ("busy, cut, rounded", busy, cut_and_then("round"), 1),
    ("busy, cut, noised", busy, cut_and_then("noise"), 2),
    *(
        (f"{raw.__name__}, {family} {scale:g} {then}".strip(), raw, noised(family, scale, then), 1)
        for raw, family, scale, then in (
            (city, "Laplace", 2.0, ""),
            (quiet, "Laplace", 1.0, ""),
            (city, "normal", 5.0, ""),
            (quiet, "normal", 3.0, ""),
            (busy, "Laplace", 2.0, ""),
            (gapped, "normal", 10.0, ""),
            (city, "Laplace", 8.0, "round"),
            (quiet, "normal", 10.0, "round"),
            (city, "Laplace", 2.0, "clip"),
            (city, "Laplace", 2.0, "left_alone"),
            (quiet, "Laplace", 2.0, "left_alone"),
            (city, "normal", 4.0, "left_alone"),
            (quiet, "Laplace", 2.0, "half"),
            (city, "student", 1.0, ""),
        )
    ),
    ("quiet, floating point", quiet, floating(None), 1),
    ("city, floating point with four decimals", city, floating(4), 1),
    ("city, changes", city, changes, 1),
    ("quiet, changes", quiet, changes, 1),
    ("city, perturbed", city, perturbed, 1),
    ("city, swapped", city, swapped, 1),
    ("busy, swapped", busy, swapped, 1),
    ("busy, totals with Laplace noise", busy, totals("laplace", 2.0), 1),
    ("busy, totals with normal noise", busy, totals("normal", 5.0), 1),
    ("busy, totals of weights", busy, totals("weights"), 1),
    ("busy, totals of all", busy, totals("unknown"), 1),
    ("busy, totals of later", busy, totals("later"), 1),
    ("busy, totals, cut", busy, totals("cut"), 1),
    ("busy, totals, each rounded", busy, totals("rounded"), 1),
    ("busy, totals, some withheld", busy, totals("withheld"), 1),
    ("busy, ferry with noise", busy, ferry("laplace"), 1),
    ("busy, ferry with an isle", busy, ferry("isle"), 1),
    ("city, twice drawn", city, twice("drawn"), 1),
    ("city, twice, later", city, twice("later"), 1),
    ("city, twice, gates", city, twice("gates"), 1),
)


def corpus(offset: int = 0) -> list[Made]:
    """Return all tables; another offset gives others of the same plans."""
    tables = []
    for name, raw, treatment, copies in PLANS:
        for copy in range(copies):
            seed = 1000 * offset + len(tables)
            random = np.random.default_rng(seed)
            table, truth = treatment(random, raw(random))
            tables.append(Made(f"{name} [{seed}]" + "'" * copy, table, truth))
    return tables
