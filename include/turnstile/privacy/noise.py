"""Noise: moments and probabilities of one draw, tails and half-widths of sums of many.

A term is one distribution, so many times. The integer ones are the product's own (families); the
continuous and the rounded Laplace are those of tables that others published. All are symmetric
about zero. Floats: for reports, not for losses.

All-integer sums are convolved exactly (a discrete Fourier transform over a window that holds all
but 1e-15 of the mass); sums of equal Laplace deviates have a closed form. A weighted sum of integer
noises is inverted from its characteristic function (Gil-Pelaez 1951), which never dies away, after
a blur by one hundredth of its standard deviation, which moves a half-width by less than it is
rounded to.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from turnstile.privacy.events import DrawEvent
from turnstile.privacy.noise_families import REACH_SDS, NoiseFamily

_REACH_SCALES = 38.0  # e^-38 is below 1e-16
_NEGLIGIBLE = 1e-17
_STEP_SDS = 0.02  # of the frequency, in 1/sd: the sum repeats after 314 sd only
_BLUR_SDS = 0.01  # a normal blur of one hundredth of the sd makes the integral finite
_LAST_BLURS = 6.0  # frequency, in 1/blur, beyond which nothing is left
_SAME_WEIGHT_DIGITS = 9
_WIDEST_SDS = 12.0
_PARTS = 1 << 40  # a half-width is found to this part of the widest
_ALMOST_ZERO = 1e-9
Floats = NDArray[np.float64]
_Deviation = TypeVar("_Deviation", float, Floats)


def noise_variance(noise: NoiseFamily, scale: Fraction) -> float:
    """Return the variance of one draw, in squared counts.

    Discrete Laplace: 2r/(1 - r)^2 with r = e^(-1/b). Discrete Gaussian: summed up for small sigma,
    where it is below sigma^2 (Canonne, Kamath & Steinke 2020, Corollary 9).

    Examples:
        >>> from fractions import Fraction
        >>> round(noise_variance(NoiseFamily.DISCRETE_LAPLACE, Fraction(2)), 4)
        7.8354
    """
    width = float(scale)
    known = noise.record.variance(width)
    if known is not None:
        return known
    values, probabilities = noise_pmf(noise, scale, reach=math.ceil(REACH_SDS * width))
    return float(np.sum(values**2 * probabilities))


@lru_cache(maxsize=256)  # asked for each pair of tables and days
def noise_fourth_cumulant(noise: NoiseFamily, scale: Fraction) -> float:
    """Return E Z^4 - 3 (E Z^2)^2 of one draw; 0 for a normal deviate, above 0 for heavier tails.

    Cumulants of independent draws add up, so this one gives the spread of a squared sum of them:
    Var(S^2) = 2 Var(S)^2 + the sum of the fourth cumulants.

    Examples:
        >>> from fractions import Fraction
        >>> round(noise_fourth_cumulant(NoiseFamily.DISCRETE_LAPLACE, Fraction(2)), 1)
        192.0
    """
    values, probabilities = noise_pmf(noise, scale, reach=math.ceil(REACH_SDS * float(scale)))
    squares = values.astype(np.float64) ** 2
    return float(squares**2 @ probabilities - 3 * (squares @ probabilities) ** 2)


def noise_pmf(
    noise: NoiseFamily, scale: Fraction, *, reach: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the integers from -reach to reach and the probability of each.

    Args:
        noise: family.
        scale: b or sigma, in counts.
        reach: where to stop; discrete Gaussians are normalised over at least 40 sigma.
    """
    values = np.arange(-reach, reach + 1)
    return values, noise.record.masses(values, float(scale))


class NoiseDistribution(StrEnum):
    """Distributions that others draw from. Rounded Laplace is continuous noise, rounded."""

    LAPLACE = "laplace"
    ROUNDED_LAPLACE = "rounded_laplace"


Distribution = NoiseDistribution | NoiseFamily


@dataclass(frozen=True, slots=True)
class Term:
    """Independent terms of one distribution and scale.

    Args:
        distribution: of each term.
        scale: b of a Laplace distribution, sigma of a Gaussian one, in counts, > 0.
        times: how many, >= 1.
    """

    distribution: Distribution
    scale: float
    times: int = 1

    def __post_init__(self) -> None:
        """Check scale and number.

        Raises:
            ValueError: not positive.
        """
        if not self.scale > 0 or self.times < 1:
            raise ValueError(f"scale {self.scale} and number {self.times} must be positive")

    @property
    def is_integer(self) -> bool:
        """Whether the noise is an integer."""
        return self.distribution is not NoiseDistribution.LAPLACE

    @property
    def is_gaussian(self) -> bool:
        """Whether the distribution has Gaussian tails."""
        return isinstance(self.distribution, NoiseFamily) and self.distribution.record.adds_up


def term_of(event: DrawEvent, times: int = 1) -> Term:
    """Return the noise of one or several cells of a draw."""
    return Term(event.noise, float(event.scale), times)


def pmf(term: Term, *, reach: int) -> tuple[NDArray[np.int64], Floats]:
    """Return the integers from -reach to reach and the probability of each, for one integer term.

    Raises:
        ValueError: the distribution is continuous.
    """
    if term.distribution is NoiseDistribution.ROUNDED_LAPLACE:
        values = np.arange(-reach, reach + 1)
        tails = math.sinh(0.5 / term.scale) * np.exp(-np.abs(values) / term.scale)
        tails[reach] = -math.expm1(-0.5 / term.scale)
        return values, tails
    if not isinstance(term.distribution, NoiseFamily):
        raise ValueError(f"{term.distribution} has a density, not probabilities of integers")  # noqa: TRY004 - a value of the wrong kind
    return noise_pmf(term.distribution, Fraction(term.scale), reach=reach)


def variance_of(term: Term) -> float:
    """Return the variance of one of the terms, in squared counts."""
    if isinstance(term.distribution, NoiseFamily):
        return noise_variance(term.distribution, Fraction(term.scale))
    if term.distribution is NoiseDistribution.ROUNDED_LAPLACE:
        half = 0.5 / term.scale
        return math.cosh(half) / (2 * math.sinh(half) ** 2)
    return 2 * term.scale**2


def reach_of(terms: Sequence[Term]) -> float:
    """Return the distance beyond which at most about 1e-15 of the mass of the sum lies."""
    deviation = math.sqrt(sum(term.times * variance_of(term) for term in terms))
    heaviest = max((term.scale for term in terms if not term.is_gaussian), default=0.0)
    return 9 * deviation + _REACH_SCALES * heaviest + 2


def characteristic(term: Term, frequency: Floats) -> Floats:
    """Return the characteristic function of one of the terms, an integer."""
    if isinstance(term.distribution, NoiseFamily) and term.distribution.record.has_geometric_tail:
        # (1 - r)^2 / (1 - 2 r cos t + r^2), written so that nothing cancels near t = 0
        return np.asarray(1 / (1 + (np.sin(frequency / 2) / math.sinh(0.5 / term.scale)) ** 2))
    return _by_sum(term, frequency)


def _by_sum(term: Term, frequency: Floats) -> Floats:
    """Characteristic function as the cosine sum of the probabilities, which has period 2 pi."""
    reach = math.ceil(reach_of([replace(term, times=1)]))
    values, probabilities = pmf(term, reach=reach)
    result = np.full(frequency.shape, probabilities[reach])
    for value, probability in zip(values[reach + 1 :], probabilities[reach + 1 :], strict=True):
        if probability > _NEGLIGIBLE:
            result += 2 * probability * np.cos(value * frequency)
    return result


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

    Args:
        terms: at least one; of integers, or one of Laplace deviates.
        distance: in counts, >= 0.

    Examples:
        >>> round(tail([Term(NoiseDistribution.LAPLACE, 1.4, 3)], 6.956), 4)
        0.05
    """
    if distance < 0:
        return 1.0
    if all(term.is_integer for term in terms):
        values, probabilities = integer_pmf(terms)
        outside = np.abs(values) > distance + 1e-9
        return float(probabilities[outside].sum())
    return _laplace_tail(terms, distance)


def half_width(terms: Sequence[Term], confidence: float) -> float:
    """Return the least a with P(|sum| <= a) >= confidence; an integer for integer sums.

    Args:
        terms: at least one; of integers, or one of Laplace deviates.
        confidence: strictly between 0 and 1.

    Examples:
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
    return _least(lambda width: 1 - _laplace_tail(terms, width), confidence, reach_of(terms))


def _laplace_tail(terms: Sequence[Term], distance: float) -> float:
    """Return P(|sum| > distance) of n Laplace deviates of one scale.

    The size of such a sum is a gamma deviate of shape n - k with the chance C(n - 1 + k, k)
    2^(1 - n - k), for k < n. With u = distance/scale it is e^(-u)(8 + 5u + u^2)/8 for n = 3.

    Raises:
        ValueError: other terms.
    """
    from scipy.special import gammaincc, gammaln

    if len(terms) != 1 or terms[0].is_integer:
        raise ValueError("only equal Laplace deviates, or integers, have a known sum")
    n, u = terms[0].times, distance / terms[0].scale
    k = np.arange(n)
    logs = gammaln(n + k) - gammaln(n) - gammaln(k + 1) - (n - 1 + k) * math.log(2)
    return float(np.exp(logs) @ gammaincc(n - k, u))


def _least(inside: Callable[[float], float], level: float, widest: float) -> float:
    """Return the least width within which so much lies, up to the widest, by bisection."""
    step = widest / _PARTS
    return bisect_left(range(_PARTS), level, key=lambda parts: inside(parts * step)) * step


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
    return deviation, _blurred_half_widths(parts, deviation, confidences)


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


def _blurred_half_widths(
    terms: Sequence[tuple[Term, Floats]], deviation: float, confidences: Sequence[float]
) -> list[float]:
    """Return h with P(|weighted sum| <= h) = confidence, for each of them.

    Args:
        terms: noises with the weight of each.
        deviation: standard deviation of the sum.
        confidences: each strictly between 0 and 1.
    """
    steps = int(_LAST_BLURS / _BLUR_SDS / _STEP_SDS)
    frequencies: Floats = np.arange(1, steps + 1, dtype=np.float64) * (_STEP_SDS / deviation)
    transform: Floats = np.exp(-((_BLUR_SDS * deviation * frequencies) ** 2) / 2)
    for noise, weights in terms:
        sizes, counts = np.unique(
            np.round(np.abs(weights), _SAME_WEIGHT_DIGITS), return_counts=True
        )
        for size, count in zip(sizes, counts, strict=True):
            transform = transform * characteristic(noise, frequencies * size) ** count
    return [_half_width(frequencies, transform, deviation, level) for level in confidences]


def _half_width(frequencies: Floats, transform: Floats, deviation: float, level: float) -> float:
    """Return the half-width of one confidence, by bisection."""
    step = frequencies[0]

    def inside(width: float) -> float:
        waves = np.sin(width * frequencies) / frequencies * transform
        return float(2 / np.pi * step * (width / 2 + waves.sum()))  # trapezoids, from 0 on

    return _least(inside, level, _WIDEST_SDS * deviation)
