"""Between which limits the squares of independent noise add up to, exactly enough for 1e-11.

A square is taken over its own variance, so it has mean 1. Its distribution is that of the integer
noise, laid on a fine grid without moving its mean; sums are powers of the Fourier transform. The
chi-squared distribution would do for Gaussian noise alone: among 30 squares of Laplace noise a sum
that happens once in 2e9 would happen once in 2e14 by it.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from turnstile.privacy.noise import Term, integer_pmf

Kinds = tuple[tuple[int, tuple[Term, ...]], ...]
"""How many squares there are of which noise, a sum of terms."""

_STEP = 0.05  # widens the spread of each square by less than 1 in 1,000
_FINEST = 2**15
_BEYOND = 600.0  # of twice the mean; what lies farther counts as that far


@lru_cache(maxsize=64)
def limits(kinds: Kinds, alpha: float) -> tuple[float, float]:
    """Return the limits that a sum falls short of, or exceeds, with this chance in all.

    Args:
        kinds: of the squares that are added, at least one.
        alpha: half of it on either side; strictly between 0 and 1, at least 1e-12.

    Examples:
        >>> from turnstile.privacy.noise_families import NoiseFamily
        >>> noise = (Term(NoiseFamily.DISCRETE_GAUSSIAN, 20.0),)
        >>> [round(end) for end in limits(((100, noise),), 0.05)]  # 74.2 and 129.6
        [74, 130]
    """
    masses, step = _masses(kinds)
    above = np.cumsum(masses[::-1])[::-1]
    low = int(np.argmax(np.cumsum(masses) > alpha / 2)) - 1
    high = int(np.argmax(above <= alpha / 2))
    return max(0, low) * step, high * step


def chance_between(kinds: Kinds, low: float, high: float) -> float:
    """Return the chance of a sum strictly between two numbers.

    Examples:
        >>> from turnstile.privacy.noise_families import NoiseFamily
        >>> noise = (Term(NoiseFamily.DISCRETE_GAUSSIAN, 20.0),)
        >>> round(chance_between(((100, noise),), 74.2, 129.6), 3)
        0.95
    """
    masses, step = _masses(kinds)
    sums = np.arange(masses.size) * step
    return float(masses[(low < sums) & (sums < high)].sum())


@lru_cache(maxsize=1)  # a gate asks for limits, and at once what passes them
def _masses(kinds: Kinds) -> tuple[NDArray[np.float64], float]:
    """Return the probabilities of the sum, on a grid, and its step."""
    last = 2 * sum(number for number, _ in kinds) + _BEYOND
    size = max(_FINEST, 1 << math.ceil(math.log2(last / _STEP)))
    step = last / size
    transform = np.ones(size // 2 + 1, dtype=np.complex128)
    for number, terms in kinds:
        transform *= np.fft.rfft(_square(terms, step, size)) ** number
    return np.fft.irfft(transform, size), step


def _square(terms: tuple[Term, ...], step: float, size: int) -> NDArray[np.float64]:
    """Return the probabilities of a square over its variance, on a grid."""
    values, probabilities = integer_pmf(terms)
    squares = values.astype(np.float64) ** 2
    places = np.minimum(squares / (squares @ probabilities) / step, size - 2)
    below = places.astype(np.int64)
    nearer = places - below
    lower = np.bincount(below, probabilities * (1 - nearer), size)
    return np.asarray(lower + np.bincount(below + 1, probabilities * nearer, size))
