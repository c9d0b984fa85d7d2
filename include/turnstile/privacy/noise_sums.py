"""Tails and half-widths of sums of independent noise: the one place that works them out.

All-integer sums are convolved exactly (a discrete Fourier transform over a window that holds all
but 1e-15 of the mass). Sums with a continuous term and weighted sums are inverted from the
characteristic function (Gil-Pelaez 1951). Floats: for reports, not for losses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from turnstile.privacy.noise_inversion import blurred_half_widths, central_probability
from turnstile.privacy.noise_terms import Floats, Term, pmf, reach_of, variance_of

_BISECTIONS = 80
_ALMOST_ZERO = 1e-9
_Deviation = TypeVar("_Deviation", float, Floats)


@dataclass(frozen=True, slots=True, eq=False)
class Weighted:
    """Independent noises of one kind, each with its weight in a sum.

    Args:
        noise: a single term.
        weights: any shape, one for each of the noises.
    """

    noise: Term
    weights: Floats


def tail(terms: Sequence[Term], distance: float) -> float:
    """Return P(|sum of all terms| > distance).

    For three Laplace terms of scale p it is e^(-u)(8 + 5u + u^2)/8 with u = distance/p.

    Args:
        terms: at least one.
        distance: in counts, >= 0.

    Examples:
        >>> from turnstile.privacy.noise_terms import NoiseDistribution
        >>> round(tail([Term(NoiseDistribution.LAPLACE, 1.4, 3)], 6.956), 4)
        0.05
    """
    if distance < 0:
        return 1.0
    if all(term.is_integer for term in terms):
        values, probabilities = integer_pmf(terms)
        outside = np.abs(values) > distance + 1e-9
        return float(probabilities[outside].sum())
    return max(0.0, 1 - central_probability(terms, integer_pmf)(distance))


def half_width(terms: Sequence[Term], confidence: float) -> float:
    """Return the least a with P(|sum| <= a) >= confidence; an integer for integer sums.

    Args:
        terms: at least one.
        confidence: strictly between 0 and 1.

    Examples:
        >>> from turnstile.privacy.noise_terms import NoiseDistribution
        >>> round(half_width([Term(NoiseDistribution.LAPLACE, 1.4, 3)], 0.99), 3)
        9.884
        >>> half_width([Term(NoiseDistribution.ROUNDED_LAPLACE, 1.4, 3)], 0.95)
        7.0
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence {confidence} must lie strictly between 0 and 1")
    if all(term.is_integer for term in terms):
        values, probabilities = integer_pmf(terms)
        middle = values.size // 2
        right = probabilities[middle + 1 :]
        inside = probabilities[middle] + 2 * np.cumsum(np.concatenate(([0.0], right)))
        return float(np.searchsorted(inside, confidence - 1e-12))
    central, low, high = central_probability(terms, integer_pmf), 0.0, reach_of(terms)
    for _ in range(_BISECTIONS):
        middle_width = (low + high) / 2
        if central(middle_width) >= confidence:
            high = middle_width
        else:
            low = middle_width
        if high - low < 1e-9 * high:
            break
    return high


def normal_half_width(deviation: _Deviation, *, level: int) -> _Deviation:
    """Return how far a normal error reaches with so many per cent: of a number, or of an array.

    For errors of many draws, and of models; `half_width` is exact for a few.

    Examples:
        >>> round(normal_half_width(10.0, level=95), 2)
        19.6
    """
    return NormalDist().inv_cdf(0.5 + level / 200) * deviation


def normal_reach(deviation: _Deviation, *, level: int) -> _Deviation:
    """Return below which a normal error lies with so many per cent: of a number, or of an array.

    Examples:
        >>> round(normal_reach(10.0, level=95), 2)
        16.45
    """
    return NormalDist().inv_cdf(level / 100) * deviation


def weighted_half_widths(
    terms: Sequence[Weighted], confidences: Sequence[float]
) -> tuple[float, list[float]]:
    """Return the standard deviation of a weighted sum, and its half-width at each confidence.

    Sums of Gaussian terms alone are as good as normal. Others are not: a reconciled Laplace cell is
    mostly its own noise, for which normal half-widths are too narrow.
    """
    squares = ((t.weights**2).sum() * variance_of(t.noise) for t in terms)
    deviation = math.sqrt(sum(float(square) for square in squares))
    if all(term.noise.is_gaussian for term in terms):
        widths = [NormalDist().inv_cdf((1 + level) / 2) * deviation for level in confidences]
        return deviation, widths
    parts = [(term.noise, term.weights) for term in terms]
    return deviation, blurred_half_widths(parts, deviation, confidences)


def two_laplace_tails(reach: Floats, scale: float, scales: Floats) -> Floats:
    """Return P(|X + Y| > reach) of two continuous Laplace deviates, one pair for each reach.

    (a^2 e^-t/a - b^2 e^-t/b)/(a^2 - b^2): closed form, for many pairs at once.

    Args:
        reach: t, shape (n,), >= 0.
        scale: a, of X.
        scales: b, of each Y, shape (n,), >= 0.
    """
    apart = np.where(np.isclose(scales, scale, rtol=1e-4), scale * (1 + 1e-4), scales)
    other = np.exp(-reach / np.maximum(apart, _ALMOST_ZERO))
    tails: Floats = (scale**2 * np.exp(-reach / scale) - apart**2 * other) / (scale**2 - apart**2)
    return tails


def variance(terms: Sequence[Term]) -> float:
    """Return the variance of the sum, in squared counts."""
    return sum(term.times * variance_of(term) for term in terms)


def integer_pmf(terms: Sequence[Term]) -> tuple[NDArray[np.int64], Floats]:
    """Return integers around zero and the probability of each, for sums of integer terms.

    Args:
        terms: of integer distributions only.
    """
    reach = math.ceil(reach_of(terms))
    size = 1 << (2 * reach + 1).bit_length()
    transform = np.ones(size // 2 + 1, dtype=np.complex128)
    for term in terms:
        wrapped = np.zeros(size)
        values, probabilities = pmf(term, reach=min(reach, size // 2 - 1))
        wrapped[values % size] = probabilities
        transform *= np.fft.rfft(wrapped) ** term.times
    wrapped = np.clip(np.fft.irfft(transform, size), 0, None)
    values = np.arange(-reach, reach + 1)
    return values, wrapped[values % size]
