"""No noise serves twice: any two draws of one layout differ as independent noise makes them.

Where one vector of noise serves two draws, their difference is that of the raw counts, which is the
same number in many cells (0 where both are empty). Of independent noise it is any given number with
a chance of at most p, the noise's largest probability, whatever the raw counts are. So the cells
that show the most frequent difference are counted: in n cells, a difference is shown by m of them
with a chance of at most P(Bin(n, p) >= m), and any difference at all with at most 1/p times that
(P(Bin(n, q) >= m)/q grows with q above m/n, and the differences' chances add up to 1). Sums are
counted as differences are, for noise that comes again with its sign turned. Draws are compared with
those of the release and with those of earlier ones, newest first, within a budget of cells.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from turnstile.assessment.gates.numbers import Numbers, Vector
from turnstile.assessment.gates.result import ALPHA, GateResult, not_applicable
from turnstile.assessment.gates.zeros import largest_probability
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.tail_probabilities import binomial_at_least, binomial_limit

CELLS_MOST = 60_000_000  # compared in all: about two CPU seconds
_NAME = "drawn_once"
_SPREAD_MOST = 2**22
_Pair = tuple[str, DrawEvent, NDArray[np.int64], NDArray[np.int64]]


def drawn_once(numbers: Numbers, alpha: float = ALPHA) -> GateResult:
    """No vector of noise serves twice, in this release or in an earlier one of the programme."""
    pairs = list(_within_budget(numbers))
    if not pairs:
        return not_applicable(_NAME, "no two draws have the same layout")
    alike = [
        words
        for words, event, one, other in pairs
        if _chance(event, one, other) * len(pairs) < alpha
    ]
    statement = (
        f"one vector of noise serves twice: {'; '.join(alike[:3])}"
        + (f" and {len(alike) - 3} more pairs" if len(alike) > 3 else "")  # noqa: PLR2004 - shown
        if alike
        else f"{len(pairs)} pairs of draws, {len(numbers.earlier)} earlier releases among them: "
        "none shares its noise"
    )
    return GateResult(_NAME, not alike, statement, alpha, _detects(numbers, len(pairs)))


def equal_share_found(cells: int, largest: float, *, pairs: int = 1) -> float:
    """Return the share of equal raw counts from which reused noise is found with 99 %; 1 if never.

    Args:
        cells: compared.
        largest: probability of the noise.
        pairs: that are compared in all.
    """
    alpha = ALPHA * largest / pairs / 2
    least = binomial_limit(alpha, cells, largest)
    share = least / cells
    return min(1.0, share + 2.33 * math.sqrt(max(0.0, share * (1 - share)) / cells))


def _within_budget(numbers: Numbers) -> Iterator[_Pair]:
    """Yield pairs until the budget of cells is spent."""
    left = CELLS_MOST
    for pair in _pairs(numbers):
        left -= pair[2].size
        if left < 0:
            return
        yield pair


def _pairs(numbers: Numbers) -> Iterator[_Pair]:
    """Yield two vectors of one layout: of this release, then of the newest others, then all."""
    by_size: defaultdict[int, list[Vector]] = defaultdict(list)
    for one in numbers.vectors:
        by_size[one.values.size].append(one)
    for own in by_size.values():
        for index, one in enumerate(own):
            for other in own[:index]:
                yield f"{one.where} and {other.where}", one.event, one.values, other.values
    for is_same_position in (True, False):
        for artefact in numbers.earlier:
            for index, table in enumerate(artefact.tables):
                for position, one in enumerate(numbers.vectors):
                    if (position == index) is is_same_position and (
                        one.values.size == table.values.size
                        and one.event.label == f"{table.table}/{table.statistic}"
                    ):
                        words = f"{one.where} and an earlier release on {table.service_date}"
                        yield words, one.event, one.values, table.values


def _chance(event: DrawEvent, one: NDArray[np.int64], other: NDArray[np.int64]) -> float:
    """Return a bound on the chance that independent noise gives so many equal differences."""
    largest = _largest(event)
    if event.threshold is not None:  # suppressed cells are alike without any noise
        released = (one != 0) & (other != 0)
        one, other = one[released], other[released]
    if one.size == 0:
        return 1.0
    most = max(_most_frequent(one - other), _most_frequent(one + other))
    return 2 * binomial_at_least(most, one.size, largest) / largest


def _largest(event: DrawEvent) -> float:
    """Return the largest probability of a number, given that a threshold released it, if any."""
    if event.threshold is not None:
        return -math.expm1(-1 / float(event.scale))
    return largest_probability(Vector(event, None, np.zeros(0, dtype=np.int64)))


def _most_frequent(differences: NDArray[np.int64]) -> int:
    """Return how often the most frequent difference occurs."""
    low = int(differences.min())
    if int(differences.max()) - low < _SPREAD_MOST:
        return int(np.bincount(differences - low).max())
    return int(np.unique(differences, return_counts=True)[1].max())


def _detects(numbers: Numbers, pairs: int) -> str:
    """State the share of equal raw counts that is enough, in the largest table."""
    one = max(numbers.vectors, key=lambda vector: vector.values.size)
    share = equal_share_found(one.values.size, _largest(one.event), pairs=pairs)
    return (
        f"noise that serves two draws of {one.event.table} whose raw counts differ by the same "
        f"number in {share:.1%} of the cells (both empty, mostly)"
    )
