"""No noise serves again at other cells: of another draw, another table, or of the same vector.

`drawn_once` compares cell by cell. Noise from a stream that is read twice (a fixed seed, a buffer
that is used again) comes back moved by some cells. So the parities of two vectors, as +1 and -1,
are correlated at every distance, by one Fourier transform each. Whatever the raw count c is, the
mean of (-1)^(c + Z) is at most u = |E (-1)^Z| from 0: 0.21 for Laplace noise of scale 1, next to
nothing for wider noise. The k products at one distance are independent and have means of at most
u v, so their sum passes k u v + sqrt(2 k L) with a chance of at most e^-L on either side (Hoeffding
1963); within one vector each number is in two products, and it is sqrt(4 k L) (Janson 2004). Noise
that comes back with its sign turned, or shifted by a constant, has parities that agree as well.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from turnstile.assessment.gates.numbers import Numbers, Vector
from turnstile.assessment.gates.result import ALPHA, GateResult, not_applicable
from turnstile.privacy.events import DrawEvent, NoiseFamily
from turnstile.privacy.noise import noise_pmf

CELLS_MOST = 20_000_000  # transformed in all: about a CPU second
_NAME = "noise_moved"
_REACH_SCALES = 40
Ints = NDArray[np.int64]


class _Compared(NamedTuple):
    """Pairs of vectors of the same sizes, whose sums of parities are added at each distance."""

    words: str
    mean: float
    pairs: tuple[tuple[Ints, Ints], ...]

    @property
    def cells(self) -> int:
        """Numbers of one pair: also how many distances there are, about."""
        return self.pairs[0][0].size + self.pairs[0][1].size


def noise_moved(numbers: Numbers, alpha: float = ALPHA) -> GateResult:
    """No stretch of noise serves again at other cells, in this release or in an earlier one."""
    compared = list(_within_budget(numbers))
    if not compared:
        return not_applicable(_NAME, "no dense table: a threshold hides the noise of small counts")
    enough = math.log(2 * sum(one.cells for one in compared) / alpha)
    alike = [
        f"{one.words}, {abs(moved)} cells apart"
        for one in compared
        if (moved := _moved(one, enough)) is not None
    ]
    statement = (
        f"noise serves again at other cells: {'; '.join(alike[:3])}"
        if alike
        else f"{len(compared)} pairs of draws at every distance of their cells: none shares its "
        "noise"
    )
    return GateResult(_NAME, not alike, statement, alpha, _detects(numbers, enough))


def _within_budget(numbers: Numbers) -> Iterator[_Compared]:
    """Yield what is compared until the budget of cells is spent."""
    left = CELLS_MOST
    for one in _compared(numbers):
        left -= one.cells * len(one.pairs)
        if left < 0:
            return
        yield one


def _compared(numbers: Numbers) -> Iterator[_Compared]:
    """Yield each vector with itself, on all days and on each; others of its noise; earlier ones.

    Nothing is known of the noise of an earlier release, whose parities may be all alike.
    """
    by_label: defaultdict[str, list[Vector]] = defaultdict(list)
    for one in numbers.dense:
        by_label[one.event.label].append(one)
    for label, days in by_label.items():
        own = tuple((one.values, one.values) for one in days)
        if len(own) > 1:
            yield _Compared(label, _evenness(days[0].event) ** 2, own)
    for one, other in combinations_with_replacement(numbers.dense, 2):
        if (one.event.noise, one.event.scale) == (other.event.noise, other.event.scale):
            words = one.where if one is other else f"{one.where} and {other.where}"
            yield _Compared(words, _evenness(one.event) ** 2, ((one.values, other.values),))
    for artefact in numbers.earlier:
        for one in numbers.dense:
            for table in artefact.tables:
                if one.event.label == f"{table.table}/{table.statistic}":
                    words = f"{one.where} and an earlier release on {table.service_date}"
                    yield _Compared(words, _evenness(one.event), ((one.values, table.values),))


def _evenness(event: DrawEvent) -> float:
    """Return how far the mean of (-1)^Z is from 0."""
    return _mean_parity(event.noise, event.scale)


@lru_cache(maxsize=64)
def _mean_parity(family: NoiseFamily, scale: Fraction) -> float:
    """Return |E (-1)^Z| of a noise."""
    values, chances = noise_pmf(family, scale, reach=math.ceil(_REACH_SCALES * float(scale)))
    return abs(float(_parities(values) @ chances))


def _parities(values: Ints) -> NDArray[np.float64]:
    """Return 1 for even numbers, -1 for odd ones."""
    return np.where(values & 1, -1.0, 1.0)


def _moved(compared: _Compared, enough: float) -> int | None:
    """Return the distance at which the parities agree too well, or differ; None without one.

    Args:
        compared: pairs whose sums are added.
        enough: logarithm of the chance that one distance may take.
    """
    one, other = compared.pairs[0]
    size = 1 << (one.size + other.size).bit_length()
    is_same = one is other
    sums = np.zeros(size)
    for first, second in compared.pairs:
        transform = np.fft.rfft(_parities(first), size)
        partner = transform if is_same else np.fft.rfft(_parities(second), size)
        sums += np.fft.irfft(transform * np.conj(partner), size)
    distances = np.arange(1 if is_same else 1 - other.size, one.size)
    ends = np.minimum(one.size - distances, other.size + distances)
    terms = len(compared.pairs) * np.minimum(ends, min(one.size, other.size))
    limits = terms * compared.mean + np.sqrt((4 if is_same else 2) * terms * enough)
    beyond = np.abs(sums[distances % size]) - limits
    if beyond.size == 0 or float(beyond.max()) <= 0:
        return None
    return int(distances[int(np.argmax(beyond))])


def _detects(numbers: Numbers, enough: float) -> str:
    """State how much more often raw counts must be alike than not, in the largest table."""
    one = max(numbers.dense, key=lambda vector: vector.values.size)
    cells = one.values.size
    share = _evenness(one.event) ** 2 + math.sqrt(2 * enough / cells) + 2.33 / math.sqrt(cells)
    if share >= 1:
        return f"nothing: {one.event.table} has {cells:,} cells only"
    return (
        f"noise of {one.event.table} that serves again, moved by any number of cells, where both "
        f"cells are empty in {(1 + share) / 2:.0%} of them"
    )
