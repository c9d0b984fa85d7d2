"""No noise serves twice: in another table, on another day, at other cells, under another scale.

A number y of noise of scale s is turned into a phase e^(i c y / s), so that noise from one stream
of unit numbers, multiplied by each table's scale, has one phase whatever the scales are. Where two
vectors share their noise, the products of their phases (of one with the conjugate of the other;
without it where the sign is turned) are those of the raw counts alone, which are alike in most
cells, and their sum W is long. Where they do not, each product is a turn by the raw counts, which
are anything, of a phase that is known: with m_k the mean of its k-th power,

    E e^(t Re(W e^(-i a))) <= M(t)^n,  M(t) = I_0(t) + 2 sum_k I_k(t) |m_k|,

for every direction a and every raw count (Jacobi-Anger), and averaged over all directions
E I_0(t |W|) <= M(t)^n, so |W| passes w with at most M(t)^n / I_0(t w), for every t. Within one
vector each number is in two products; those of every second stretch are independent, so by
Cauchy and Schwarz M(2t)^(n/2) takes the place of M(t)^n. Of an earlier release's noise nothing is
assumed: its numbers are taken as they are, and m_k is that of the own noise alone.

Under equal scales noise that serves twice leaves equal numbers where the raw counts are equal. Of n
cells with fresh noise at most Bin(n, p) are, with p the chance that two numbers of the noise are
equal (the largest of one number's chances where the other's noise is not known): of scattered cells
a few in a hundred show so.

Totals minus their parts are noise alone, and symmetric: given all sizes, the signs of fresh ones
are fair coins. So the sum of a day's times those of each other day passes t with a chance of at
most 2 exp(-t^2 / 2V), V the sum of the squared products (Hoeffding 1963), whatever the noise: days
that are alike in part show by it.

Vectors are compared cell by cell (as a whole, in stretches, with their axes in any order, and at a
lower c, which sees noise that is alike in part), and at every distance of their cells, by a Fourier
transform each: those of the release, of one day's tables over all days together, and those of
earlier releases of the group, first the same draw of each, as of one seed for all weeks, then all,
newest first, within a budget of cells. What lies beyond it is said to be not compared.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, combinations_with_replacement, permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.fft import fft, ifft, next_fast_len
from scipy.special import ive

from turnstile.assessment.gates.noise_scale import by_pair
from turnstile.assessment.gates.numbers import Judged, Totals
from turnstile.assessment.gates.result import ALPHA, GateResult, not_applicable
from turnstile.assessment.gates.stated_power import first_found, steps_from, walk_reaches
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.noise import noise_pmf
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.privacy.tail_probabilities import binomial_limit
from turnstile.programme.domain.public_domain import Segment
from turnstile.release.numbers import Vector

CELLS_MOST = 40_000_000  # at one place, and as many moved: about two CPU seconds each
TURNS, FEW_TURNS = 5.5, 2.0  # c: unit noise is spread over so many radians
_NAME = "drawn_once"
_REACH_SCALES = {True: 40, False: 12}  # of Laplace noise and of others: beyond lies < 1e-17
_KEPT_MOST = 2**23  # phases and frequencies that are kept for further pairs: 64 MiB
_POWERS = 200  # of a phase; above them I_k(t) is nothing up to the largest t
_TILTS = np.geomspace(1e-3, 60, 160)  # t
_STRETCH_TIMES, _STRETCH_LEAST = 4, 64  # each width is a fourth of the next, down to so many cells
_KNOTS = 1.05  # limits are worked out for numbers of cells so far apart, and hold below
Floats = NDArray[np.float64]
Phases = NDArray[np.complex64]


class _Noise(NamedTuple):
    """The noise of a draw, whatever its day."""

    family: NoiseFamily
    scale: Fraction
    threshold: int | None


class _Pair(NamedTuple):
    """Two vectors whose noise is compared; several pairs where their sums are added up.

    Args:
        words: which they are.
        vectors: one and other, of the same sizes and noise each.
        is_known: whether the other's noise is as declared: it is of this release.
    """

    words: str
    vectors: tuple[tuple[Vector, Vector], ...]
    is_known: bool

    @property
    def cells(self) -> int:
        """Numbers that are compared."""
        return sum(vector.values.size + other.values.size for vector, other in self.vectors)

    @property
    def is_same(self) -> bool:
        """Whether a vector is compared with itself."""
        return self.vectors[0][0] is self.vectors[0][1]

    @property
    def noises(self) -> tuple[_Noise, _Noise | None]:
        """The noise of both; None of one that is not known."""
        vector, other = self.vectors[0]
        return _noise(vector.event), _noise(other.event) if self.is_known else None

    def kind(self, most: float) -> _Kind:
        """Return what its limits depend on: c is so many at most, a count half a turn."""
        scales = (float(vector.event.scale) for vector in self.vectors[0])
        turns = min(most, *(math.pi * scale for scale in scales))
        return _Kind(self.noises, turns, self.is_same)


class _Kind(NamedTuple):
    """What the limits of a comparison depend on.

    Args:
        noises: of both vectors; None where it is not known.
        turns: c.
        is_same: whether both are one vector.
    """

    noises: tuple[_Noise, _Noise | None]
    turns: float
    is_same: bool


@dataclass(slots=True)
class _Known:
    """Phases and transforms of vectors that are in many pairs."""

    arrays: dict[tuple[int, float, int], Phases] = field(default_factory=dict)
    left: int = _KEPT_MOST

    def phases_of(self, vector: Vector, turns: float, size: int = 0) -> Phases:
        """Return e^(i c y / s) of each number, or the transform of so many, filled up with 0.

        All vectors outlive the comparisons; those of the release come first, and are kept.
        """
        key = (id(vector), turns, size)
        if key in self.arrays:
            return self.arrays[key]
        if size:
            phases = np.asarray(fft(self.phases_of(vector, turns), size))
        else:
            angles = vector.values * (turns / float(vector.event.scale))
            phases = np.exp(1j * angles).astype(np.complex64)
        if self.left >= phases.size:
            self.left -= phases.size
            self.arrays[key] = phases
        return phases


def drawn_once(numbers: Judged, alpha: float = ALPHA) -> GateResult:
    """No noise serves twice, in this release or in an earlier one of its group."""
    every = list(_at_one_place(numbers)), list(_moved(numbers))
    placed, moved = map(_within, every)
    if not placed and not moved:
        return not_applicable(_NAME, "there is one number a draw, and no two draws")
    known = _Known()
    orders = {id(vector): list(_orders(numbers, vector)) for vector in numbers.vectors}
    tests = sum(
        2
        * len(orders[id(vector)])
        * (1 + 2 * sum(vector.values.size // n for n in _widths(vector)))
        for pair in placed
        for vector, _ in pair.vectors
    )
    lags = sum(2 * sum(vector.values.size for vector in pair.vectors[0]) for pair in moved)
    each_placed, each_moved = alpha / 3 / max(1, tests), alpha / 3 / max(1, lags)
    repeats = [pair.words for pair in placed if _is_alike(pair, orders, each_placed, known)]
    apart = ((pair, _distance(pair, each_moved, known)) for pair in moved)
    repeats += [f"{pair.words}, {off} cells apart" for pair, off in apart if off is not None]
    repeats += alike_in_part(numbers.totals, alpha / 3)
    left = sum(map(len, every)) - len(placed) - len(moved)
    weeks = f", with those of other releases ({len(numbers.earlier)})" if numbers.earlier else ""
    weeks += f" ({left:,} pairs are too many to compare)" if left else ""
    statement = (
        f"noise serves twice: {'; '.join(repeats[:3])}"
        + (f" and {len(repeats) - 3} more pairs" if len(repeats) > 3 else "")  # noqa: PLR2004 - shown
        if repeats
        else f"{len(placed)} pairs of draws cell by cell and {len(moved)} at every distance"
        f"{weeks}: none shares its noise, under any scale"
    )
    return GateResult(
        _NAME, not repeats, statement, alpha, _detects(numbers, each_placed, each_moved)
    )


def alike_in_part(totals: Sequence[Totals], alpha: float) -> list[str]:
    """Return whose totals minus parts are alike, or opposite, to those of the other days."""
    enough = 2 * math.log(2 * max(1, len(totals)) / alpha)
    found = []
    for totalses in by_pair(totals).values():
        for one in totalses:
            products = np.array([one.residuals * x.residuals for x in totalses if x is not one])
            if products.size and products.sum() ** 2 > enough * (products**2).sum():
                found.append(f"{one.name} and other days, in part")
    return found


def share_found(event: DrawEvent, cells: int, *, alpha: float) -> float:
    """Return the share of cells from which noise that serves again is found half of the time.

    In these cells the raw counts differ by one number that is small beside the noise, or by none.

    Args:
        event: both draws of which are compared.
        cells: compared.
        alpha: of a false alarm of one comparison.
    """
    noise = _noise(event)
    kind = _Kind((noise, noise), min(TURNS, math.pi * float(event.scale)), is_same=False)
    return float(_limits(kind, alpha, cells)[1][-1]) / cells


def chance_found(event: DrawEvent, cells: int, alpha: float, *, share: float) -> float:
    """Return how often noise is found that serves again in a share of the cells."""
    reused = round(share * cells)
    return walk_reaches(share_found(event, cells, alpha=alpha) * cells, reused, cells - reused)


def _detects(numbers: Judged, placed: float, moved: float) -> str:
    """State in which share of the cells of the largest and the smallest table reuse is found."""
    largest = max(numbers.vectors, key=lambda vector: vector.values.size)
    least = min(numbers.vectors, key=lambda vector: vector.values.size)
    days = sum(vector.event.label == least.event.label for vector in numbers.vectors)
    statements = [
        first_found(
            steps_from(share_found(event, cells, alpha=alpha) + 2 / math.sqrt(cells), most=1.0),
            lambda share, e=event, n=cells, a=alpha: chance_found(e, n, a, share=share),  # type: ignore[misc]
            lambda share, w=words, n=cells: f"{share:.1%} of the {n:,} cells of {w}",  # type: ignore[misc]
        )
        for event, cells, alpha, words in (
            (largest.event, largest.values.size, placed, f"{largest.event.table} cell by cell"),
            (largest.event, largest.values.size, moved, f"{largest.event.table} at any distance"),
            (least.event, days * least.values.size, moved, f"{least.event.table} on all days"),
        )
    ]
    return f"noise that serves again on raw counts that are alike, in {'; '.join(statements)}"


def _noise(event: DrawEvent) -> _Noise:
    """Return the noise that a draw declares."""
    return _Noise(event.noise, event.scale, event.threshold)


def _within(pairs: Sequence[_Pair]) -> list[_Pair]:
    """Return pairs until the budget of cells is spent."""
    spent = accumulate(pair.cells for pair in pairs)
    return [pair for pair, cells in zip(pairs, spent, strict=True) if cells <= CELLS_MOST]


def _at_one_place(numbers: Judged) -> Iterator[_Pair]:
    """Yield two vectors of one size: of this release, then with those of earlier ones."""
    by_size: defaultdict[int, list[Vector]] = defaultdict(list)
    for vector in numbers.vectors:
        by_size[vector.values.size].append(vector)
    for vectors in by_size.values():
        for number, vector in enumerate(vectors):
            for other in vectors[:number]:
                yield _Pair(f"{vector.where} and {other.where}", ((vector, other),), is_known=True)
    yield from _with_earlier(numbers, lambda other: by_size[other.values.size])


def _with_earlier(numbers: Judged, comparable: Callable[..., list[Vector]]) -> Iterator[_Pair]:
    """Yield vectors with those of earlier releases that they compare with, the same draws first."""
    others = [other for release in numbers.earlier for other in release]
    pairs = [(vector, other) for other in others for vector in comparable(other)]
    for vector, other in sorted(pairs, key=lambda pair: _draw(pair[0]) != _draw(pair[1])):
        words = f"{vector.where} and {other.where} of an earlier release"
        yield _Pair(words, ((vector, other),), is_known=False)


def _draw(vector: Vector) -> tuple[str, int | None]:
    """Return which draw of its week a vector is."""
    return vector.event.label, vector.service_date.weekday() if vector.service_date else None


def _moved(numbers: Judged) -> Iterator[_Pair]:
    """Yield dense vectors to compare at every distance: one day's tables, all others, earlier."""
    by_label: defaultdict[str, list[Vector]] = defaultdict(list)
    for vector in numbers.dense:
        by_label[vector.event.label].append(vector)
    for (first, vectors), (second, others) in combinations_with_replacement(by_label.items(), 2):
        if len(vectors) == len(others) > 1:
            words = f"{first} and {second} of each day"
            yield _Pair(words, tuple(zip(vectors, others, strict=True)), is_known=True)
    for vector, other in combinations_with_replacement(numbers.dense, 2):
        words = vector.where if vector is other else f"{vector.where} and {other.where}"
        yield _Pair(words, ((vector, other),), is_known=True)
    yield from _with_earlier(numbers, lambda other: by_label[other.event.label])


def _orders(numbers: Judged, vector: Vector) -> Iterator[NDArray[np.intp]]:
    """Yield the order of a vector's cells, and that with the axes of each mode in another one."""
    yield np.arange(vector.values.size)
    segments: Sequence[Segment] = numbers.segments.get(vector.event.table, ())
    axes = len(segments[0].shape) if segments else 0
    is_dense = vector.event.threshold is None
    if not is_dense or sum(segment.cells for segment in segments) != vector.values.size:
        return
    for order in list(permutations(range(axes)))[1:]:
        yield np.concatenate(
            [
                segment.offset
                + np.arange(segment.cells).reshape(segment.shape).transpose(order).ravel()
                for segment in segments
            ]
        )


def _is_alike(
    pair: _Pair, orders: dict[int, list[NDArray[np.intp]]], alpha: float, known: _Known
) -> bool:
    """Tell whether two vectors of one size share their noise cell by cell."""
    ((vector, other),) = pair.vectors
    released = np.ones(vector.values.size, dtype=np.bool_)
    if vector.event.threshold is not None or other.event.threshold is not None:
        released = (vector.values != 0) & (other.values != 0)  # suppressed cells are alike anyhow
    if _has_ties(pair, orders[id(vector)], alpha):
        return True
    for kind in (pair.kind(TURNS), pair.kind(FEW_TURNS)):
        limits = {width: _limits(kind, alpha, width)[1][-1] for width in _widths(vector)}
        theirs = known.phases_of(other, kind.turns) * released
        for order in orders[id(vector)]:
            phases = known.phases_of(vector, kind.turns)[order]
            for products in (phases * np.conj(theirs), phases * theirs):
                if any(_longest(products, width) >= limit for width, limit in limits.items()):
                    return True
    return False


def _has_ties(pair: _Pair, orders: list[NDArray[np.intp]], alpha: float) -> bool:
    """Tell whether more numbers of two dense vectors of one scale are equal than noise lets be."""
    ((vector, other),) = pair.vectors
    if _noise(vector.event) != _noise(other.event) or vector.event.threshold is not None:
        return False
    most = ties_limit(vector.event, vector.values.size, alpha, is_known=pair.is_known)
    ties = (
        int(np.count_nonzero(vector.values[order] == sign * other.values))
        for order in orders
        for sign in (1, -1)
    )
    return max(ties) >= most


@lru_cache(maxsize=512)
def ties_limit(event: DrawEvent, cells: int, alpha: float, *, is_known: bool) -> int:
    """Return how many equal numbers of two dense draws have a chance of at most alpha."""
    reach = math.ceil(_REACH_SCALES[event.noise.record.is_pure] * event.scale)
    _, chances = noise_pmf(event.noise, event.scale, reach=reach)
    return binomial_limit(alpha, cells, float(chances @ chances if is_known else chances.max()))


def _widths(vector: Vector) -> list[int]:
    """Return the numbers of cells that are added up: all of them, and stretches of a few sizes."""
    widths = [vector.values.size]
    while widths[-1] >= _STRETCH_TIMES * _STRETCH_LEAST:
        widths.append(widths[-1] // _STRETCH_TIMES)
    return widths


def _longest(products: Phases, width: int) -> float:
    """Return the length of the longest sum over stretches of so many cells."""
    stretches = products[: products.size // width * width].reshape(-1, width)
    return float(np.abs(stretches.sum(axis=1)).max())


def _distance(pair: _Pair, alpha: float, known: _Known) -> int | None:
    """Return at which distance of their cells two vectors share their noise; None without one."""
    kind = pair.kind(TURNS)
    first, second = (vector.values.size for vector in pair.vectors[0])
    size = next_fast_len(first + second)
    correlation = np.zeros(size, dtype=np.complex64)
    turned = np.zeros(size, dtype=np.complex64)
    for day_vector, other in pair.vectors:
        phases = known.phases_of(day_vector, kind.turns, size)
        theirs = known.phases_of(other, kind.turns, size)
        correlation += phases * np.conj(theirs)
        turned += phases * np.concatenate((theirs[:1], theirs[:0:-1]))
    distances = np.arange(1 if pair.is_same else 1 - second, first)
    cells = np.minimum(first, second + distances) - np.maximum(0, distances)
    knots, limits = _limits(kind, alpha, len(pair.vectors) * min(first, second))
    longest = limits[np.searchsorted(knots, len(pair.vectors) * cells)]
    for sums in (correlation, turned):
        beyond = np.abs(ifft(sums)[distances % size]) - longest
        if beyond.size and float(beyond.max()) >= 0:
            return abs(int(distances[int(np.argmax(beyond))]))
    return None


@lru_cache(maxsize=512)
def _limits(kind: _Kind, alpha: float, most: int) -> tuple[NDArray[np.int64], Floats]:
    """Return numbers of cells, and for up to so many which length of a sum has a chance of alpha.

    Args:
        kind: of the comparison.
        alpha: chance of that length.
        most: cells, the last of the numbers.
    """
    knots = [1]
    while knots[-1] < most:
        knots.append(min(most, max(knots[-1] + 1, int(knots[-1] * _KNOTS))))
    of_one = _log_mean(kind, 2.0) / 2 if kind.is_same else _log_mean(kind, 1.0)
    sums = np.outer(knots, of_one) - math.log(alpha)
    lengths = sums + 0.5 * np.log(2 * math.pi * sums)
    for _ in range(4):  # I_0(z) > e^z / sqrt(2 pi z)
        lengths = sums + 0.5 * np.log(2 * math.pi * lengths)
    slack = 1e-3 + 1e-5 * np.array(knots)  # of phases and transforms in 32 bits
    return np.array(knots), np.asarray((lengths / _TILTS).min(axis=1) + slack)


@lru_cache(maxsize=512)
def _log_mean(kind: _Kind, times: float) -> Floats:
    """Return ln M(t) at so many times each tilt."""
    noise, other = kind.noises
    means = _powers(noise, kind.turns)
    if other is not None:
        means = means * _powers(other, kind.turns)
    tilts = times * _TILTS
    orders = np.arange(1, _POWERS + 1)[:, None]
    moments = ive(0, tilts) + 2 * (means[:, None] * ive(orders, tilts)).sum(axis=0)
    return np.asarray(tilts + np.log(moments))


@lru_cache(maxsize=128)
def _powers(noise: _Noise, turns: float) -> Floats:
    """Return |m_k|: of the mean of each power of a phase, at most, shape (powers,)."""
    scale = float(noise.scale)
    reach = math.ceil(_REACH_SCALES[noise.family.record.is_pure] * scale)
    values, chances = noise_pmf(noise.family, noise.scale, reach=reach)
    powers = turns / scale * np.arange(1, _POWERS + 1)
    if noise.threshold is None:  # symmetric
        right = values > 0
        cosines = 2 * np.cos(np.outer(powers, values[right])) @ chances[right]
        return np.asarray(np.abs(cosines + chances[values == 0]))
    turned = np.exp(1j * np.outer(powers, values))
    # Given its release a number's noise is what lies above a cut, wherever that is.
    above = np.cumsum((turned * chances)[:, ::-1], axis=1)[:, ::-1]
    left = np.cumsum(chances[::-1])[::-1]
    kept = values <= 1  # a cut above lies in the geometric tail, which has no memory
    return np.asarray(np.minimum(1.0, (np.abs(above[:, kept]) / left[kept]).max(axis=1)))
