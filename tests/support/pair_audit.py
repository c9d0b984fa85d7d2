"""Pair audits: a lower bound from many runs on two neighboring inputs, for one event of the output.

For any set S of outputs, epsilon >= ln((P(S) - delta)/P'(S)); both probabilities are bounded by
Clopper & Pearson (1934). Slower than the one-run audit and sharper for one mechanism: for tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray


def epsilon_at_least(
    hits: int, other_hits: int, runs: int, *, confidence: float, delta: float = 0.0
) -> float:
    """Return the lower bound of epsilon from hits of one event under two neighboring inputs.

    Args:
        hits: runs on the one input whose output lay in the event.
        other_hits: the same on the other input.
        runs: on each input.
        confidence: of the bound.
        delta: of the claim.

    Examples:
        >>> round(epsilon_at_least(146_200, 53_800, 200_000, confidence=1 - 1e-6), 2)
        0.98
    """
    error = (1 - confidence) / 2
    low = _least(hits, runs, error) - delta
    high = 1 - _least(runs - other_hits, runs, error)
    return math.log(low / high) if low > high else 0.0


def delta_at_least(hits: int, runs: int, *, confidence: float) -> float:
    """Return the lower bound of delta from an event that is impossible on the other input."""
    return _least(hits, runs, 1 - confidence)


def pair_bound(
    mechanism: Callable[[NDArray[np.int64]], NDArray[np.int64]],
    *,
    change: int,
    runs: int,
    confidence: float,
) -> float:
    """Return the lower bound of epsilon for a mechanism that noises each cell on its own.

    The runs are cells of one vector. The event is "at least half way to the change", the likeliest
    to tell the inputs apart under symmetric noise; it is fixed before the runs.

    Args:
        mechanism: vector of exact cells -> vector of noisy ones.
        change: by which the neighboring inputs differ in a cell.
        runs: on each input.
        confidence: of the bound.
    """
    without = mechanism(np.zeros(runs, dtype=np.int64))
    having = mechanism(np.full(runs, change, dtype=np.int64))
    return epsilon_at_least(
        int((2 * having >= change + 1).sum()),
        int((2 * without >= change + 1).sum()),
        runs,
        confidence=confidence,
    )


def _least(hits: int, runs: int, error: float) -> float:
    """Clopper-Pearson lower bound of a probability."""
    from scipy.stats import beta

    return 0.0 if hits == 0 else float(beta.ppf(error, hits, runs - hits + 1))
