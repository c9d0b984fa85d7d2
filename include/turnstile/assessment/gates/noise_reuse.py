"""No noise serves twice: any two draws of one layout differ as independent noise makes them.

Where one vector of noise serves two draws, their difference is that of the raw counts, which is the
same number in many cells (0 where both are empty). So the cells that show the most frequent
difference are counted. Sums are counted as differences are, for noise that comes again with its
sign turned; noise is symmetric, so both have one distribution.

Let q_d be the chances of a difference d of two noises. Whatever the raw counts are, the chance of d
in a cell is q shifted; averaged over cells it is a mixture of shifts of q, which q majorizes. Of n
cells m show d with a chance of at most P(Bin(n, mean) >= m) (Hoeffding 1956, m > n mean + 1), which
is convex in the mean there, so its sum over all d is at most that of P(Bin(n, q_d) >= m) (Schur;
Marshall & Olkin 1979, 3.C.1), and is that where all raw counts are equal, as in empty cells. Of an
earlier release's noise nothing is assumed: a constant is its worst case, so q is the own noise
alone. Draws are compared with those of the release and with earlier ones, newest first, within a
budget of cells.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from turnstile.assessment.gates.numbers import Judged
from turnstile.assessment.gates.result import ALPHA, EMPTY_CELLS, GateResult, not_applicable
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.noise import noise_pmf
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.privacy.tail_probabilities import binomial_limit
from turnstile.release.numbers import Vector

CELLS_MOST = 60_000_000  # compared in all: about two CPU seconds
_NAME = "drawn_once"
_SPREAD_MOST = 2**22
_Pair = tuple[str, DrawEvent, DrawEvent | None, NDArray[np.int64], NDArray[np.int64]]
_LEAST = 8  # times less likely than the likeliest difference: such ones add next to nothing
_REACH_SCALES = 40  # beyond lies less than 1e-17


def drawn_once(numbers: Judged, alpha: float = ALPHA) -> GateResult:
    """No vector of noise serves twice, in this release or in an earlier one of the programme."""
    pairs = list(_within_budget(numbers))
    if not pairs:
        return not_applicable(_NAME, "no two draws have the same layout")
    alike, chance = [], 0.0
    for words, event, known, one, other in pairs:
        cells, most = _compared(event, one, other)
        partner = None if known is None else _noise(known)
        limit, own = _limit(_noise(event), partner, cells, alpha / len(pairs))
        chance += own
        if most >= limit:
            alike.append(words)
    statement = (
        f"one vector of noise serves twice: {'; '.join(alike[:3])}"
        + (f" and {len(alike) - 3} more pairs" if len(alike) > 3 else "")  # noqa: PLR2004 - shown
        if alike
        else f"{len(pairs)} pairs of draws, {len(numbers.earlier)} earlier releases among them: "
        "none shares its noise"
    )
    is_reached = not numbers.earlier and numbers.dense == numbers.vectors
    return GateResult(
        _NAME,
        not alike,
        statement,
        chance,
        _detects(numbers, alpha / len(pairs)),
        reached_by=EMPTY_CELLS if is_reached else "",
    )


def equal_share_found(event: DrawEvent, cells: int, *, alpha: float = ALPHA) -> float:
    """Return the share of equal raw counts from which reused noise is found with 99 %; 1 if never.

    Args:
        event: both draws of which are compared.
        cells: compared.
        alpha: of a false alarm.
    """
    share = _limit(_noise(event), _noise(event), cells, alpha)[0] / cells
    return min(1.0, share + 2.33 * math.sqrt(max(0.0, share * (1 - share)) / cells))


class _Noise(NamedTuple):
    """The noise of a draw, whatever its day."""

    family: NoiseFamily
    scale: Fraction
    threshold: int | None


def _noise(event: DrawEvent) -> _Noise:
    """Return the noise that a draw declares."""
    return _Noise(event.noise, event.scale, event.threshold)


@lru_cache(maxsize=256)
def _limit(one: _Noise, other: _Noise | None, cells: int, alpha: float) -> tuple[int, float]:
    """Return how many equal differences, or sums, are too many, and the chance of so many.

    Args:
        one: noise of one draw.
        other: of the other; None if it is not known.
        cells: compared.
        alpha: that the chance may reach.
    """
    chances = _differences(one, other)
    largest = float(chances[0])

    def chance_of(most: int) -> float:
        """Both signs; those that are not looked at weigh as the least of those that are."""
        if most > cells:
            return 0.0
        own = betainc(most, cells - most + 1, chances)
        return 2 * float(own.sum() + own[-1] / chances[-1])

    limit = max(2, binomial_limit(min(0.5, alpha * largest / 2), cells, largest))
    while limit > 2 and chance_of(limit - 1) <= alpha:  # noqa: PLR2004 - one is always reached
        limit -= 1
    return limit, chance_of(limit)


@lru_cache(maxsize=64)
def _differences(one: _Noise, other: _Noise | None) -> NDArray[np.float64]:
    """Return the chances of the likeliest differences of two draws on equal counts, descending."""
    if one.threshold is not None:  # given its release, a number is at most that likely
        ratio = math.exp(-1 / float(one.scale))
        own = (1 - ratio) * ratio ** np.arange(math.ceil(_REACH_SCALES * float(one.scale)))
    else:
        own = _masses(one)
        if other is not None and other.threshold is None:
            theirs = _masses(other)
            size = 1 << (own.size + theirs.size - 2).bit_length()  # what is beyond has no chance
            own = np.fft.irfft(np.fft.rfft(own, size) * np.fft.rfft(theirs, size), size)
    own = np.sort(own)[::-1]
    return np.asarray(own[own >= own[0] / _LEAST])


def _masses(noise: _Noise) -> NDArray[np.float64]:
    """Return the probabilities of a noise without a threshold."""
    reach = math.ceil(_REACH_SCALES * float(noise.scale))
    return noise_pmf(noise.family, noise.scale, reach=reach)[1]


def _within_budget(numbers: Judged) -> Iterator[_Pair]:
    """Yield pairs until the budget of cells is spent."""
    left = CELLS_MOST
    for pair in _pairs(numbers):
        left -= pair[3].size
        if left < 0:
            return
        yield pair


def _pairs(numbers: Judged) -> Iterator[_Pair]:
    """Yield two vectors of one layout: of this release, then of the newest others, then all."""
    by_size: defaultdict[int, list[Vector]] = defaultdict(list)
    for one in numbers.vectors:
        by_size[one.values.size].append(one)
    for own in by_size.values():
        for index, one in enumerate(own):
            for other in own[:index]:
                words = f"{one.where} and {other.where}"
                yield words, one.event, other.event, one.values, other.values
    for is_same_position in (True, False):
        for artefact in numbers.earlier:
            for index, table in enumerate(artefact.tables):
                for position, one in enumerate(numbers.vectors):
                    if (position == index) is is_same_position and (
                        one.values.size == table.values.size
                        and one.event.label == f"{table.table}/{table.statistic}"
                    ):
                        words = f"{one.where} and an earlier release on {table.service_date}"
                        yield words, one.event, None, one.values, table.values


def _compared(
    event: DrawEvent, one: NDArray[np.int64], other: NDArray[np.int64]
) -> tuple[int, int]:
    """Return the cells that are compared, and how many show the most frequent difference or sum."""
    if event.threshold is not None:  # suppressed cells are alike without any noise
        released = (one != 0) & (other != 0)
        one, other = one[released], other[released]
    if one.size == 0:
        return 0, 0
    return one.size, max(_most_frequent(one - other), _most_frequent(one + other))


def _most_frequent(differences: NDArray[np.int64]) -> int:
    """Return how often the most frequent difference occurs."""
    low = int(differences.min())
    if int(differences.max()) - low < _SPREAD_MOST:
        return int(np.bincount(differences - low).max())
    return int(np.unique(differences, return_counts=True)[1].max())


def _detects(numbers: Judged, alpha: float) -> str:
    """State the share of equal raw counts that is enough, in the largest table."""
    one = max(numbers.vectors, key=lambda vector: vector.values.size)
    share = equal_share_found(one.event, one.values.size, alpha=alpha)
    return (
        f"noise that serves two draws of {one.event.table} whose raw counts differ by the same "
        f"number in {share:.1%} of the cells (both empty, mostly)"
    )
