"""No noise serves again at other cells: of another draw, another table, or of the same vector.

`drawn_once` compares cell by cell. Noise from a stream that is read twice (a fixed seed, a buffer
that is used again) comes back moved by some cells. So the parities of two vectors, as +1 and -1,
are correlated at every distance, by one Fourier transform each. Noise that comes back with its sign
turned, or shifted by a constant, has parities that agree as well. Which sums of parities are too
large, whatever the raw counts are, `parity_limits` says.
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

from turnstile.assessment.gates.numbers import Judged
from turnstile.assessment.gates.parity_limits import Comparison, limits_of
from turnstile.assessment.gates.result import (
    ALPHA,
    ANY_COUNTS,
    EMPTY_CELLS,
    GateResult,
    not_applicable,
)
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.noise import noise_pmf
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.release.numbers import Vector

CELLS_MOST = 20_000_000  # transformed in all: about a CPU second
_KEPT_MOST = 2**22  # frequencies of transforms that are kept for further pairs: 64 MiB
_NAME = "noise_moved"
_REACH_SCALES = 40
Ints = NDArray[np.int64]
Frequencies = NDArray[np.complex128]
Known = dict[tuple[int, int], Frequencies]


class _Compared(NamedTuple):
    """Pairs of vectors of one comparison."""

    words: str
    comparison: Comparison
    vectors: tuple[tuple[Ints, Ints], ...]

    @property
    def cells(self) -> int:
        """Numbers of all pairs."""
        return self.comparison.pairs * sum(self.comparison.sizes)


def noise_moved(numbers: Judged, alpha: float = ALPHA) -> GateResult:
    """No stretch of noise serves again at other cells, in this release or in an earlier one."""
    compared = list(_within_budget(numbers))
    if not compared:
        return not_applicable(_NAME, "no dense table: a threshold hides the noise of small counts")
    each = alpha / sum(one.comparison.distances.size for one in compared)
    alike, chance = [], 0.0
    known: Known = {}
    for one in compared:
        limits, own = limits_of(one.comparison, each)
        chance += own
        if (moved := _moved(one, limits, known)) is not None:
            alike.append(f"{one.words}, {abs(moved)} cells apart")
    statement = (
        f"noise serves again at other cells: {'; '.join(alike[:3])}"
        if alike
        else f"{len(compared)} pairs of draws at every distance of their cells: none shares its "
        "noise"
    )
    is_fair = all(one.comparison.is_fair for one in compared)
    reached_by = ANY_COUNTS if is_fair else "" if numbers.earlier else EMPTY_CELLS
    detects = _detects(numbers, math.log(2 / each))
    return GateResult(_NAME, not alike, statement, chance, detects, reached_by=reached_by)


def _within_budget(numbers: Judged) -> Iterator[_Compared]:
    """Yield what is compared until the budget of cells is spent."""
    left = CELLS_MOST
    for one in _compared(numbers):
        left -= one.cells
        if left < 0:
            return
        yield one


def _compared(numbers: Judged) -> Iterator[_Compared]:
    """Yield each vector with itself, on all days and on each; others of its noise; earlier ones.

    Nothing is known of the noise of an earlier release, whose parities may be all alike.
    """
    by_label: defaultdict[str, list[Vector]] = defaultdict(list)
    for one in numbers.dense:
        by_label[one.event.label].append(one)
    for label, days in by_label.items():
        if len(days) > 1:
            own = tuple((one.values, one.values) for one in days)
            yield _comparison(label, own, _evenness(days[0].event) ** 2)
    for one, other in combinations_with_replacement(numbers.dense, 2):
        if (one.event.noise, one.event.scale) == (other.event.noise, other.event.scale):
            words = one.where if one is other else f"{one.where} and {other.where}"
            yield _comparison(words, ((one.values, other.values),), _evenness(one.event) ** 2)
    for artefact in numbers.earlier:
        for one in numbers.dense:
            for table in artefact.tables:
                if one.event.label == f"{table.table}/{table.statistic}":
                    words = f"{one.where} and an earlier release on {table.service_date}"
                    yield _comparison(words, ((one.values, table.values),), _evenness(one.event))


def _comparison(words: str, vectors: tuple[tuple[Ints, Ints], ...], mean: float) -> _Compared:
    """Return a comparison of pairs of vectors of the same sizes."""
    one, other = vectors[0]
    return _Compared(
        words, Comparison((one.size, other.size), len(vectors), one is other, mean), vectors
    )


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


def _moved(compared: _Compared, limits: NDArray[np.float64], known: Known) -> int | None:
    """Return the distance at which the parities agree too well, or differ; None without one.

    Args:
        compared: pairs whose sums are added.
        limits: of the sum at each distance.
        known: transforms of vectors that were compared before.
    """
    comparison = compared.comparison
    size = 1 << sum(comparison.sizes).bit_length()
    products = np.zeros(size // 2 + 1, dtype=np.complex128)
    for first, second in compared.vectors:
        products += _transform(first, size, known) * np.conj(_transform(second, size, known))
    sums = np.fft.irfft(products, size)
    distances = comparison.distances
    beyond = np.abs(np.rint(sums[distances % size])) - limits
    if beyond.size == 0 or float(beyond.max()) < 0:
        return None
    return int(distances[int(np.argmax(beyond))])


def _transform(values: Ints, size: int, known: Known) -> Frequencies:
    """Return the transform of a vector's parities; each vector is in many pairs."""
    key = (id(values), size)  # all vectors outlive the comparisons
    if key in known:
        return known[key]
    transform = np.fft.rfft(_parities(values), size)
    if sum(one.size for one in known.values()) + transform.size <= _KEPT_MOST:
        known[key] = transform
    return transform


def _detects(numbers: Judged, enough: float) -> str:
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
