"""From a characteristic function to probabilities (Gil-Pelaez 1951): the numerics of `noise_sums`.

Two ways. A sum with a continuous part is inverted by the midpoint rule. A weighted sum of integer
noises has a characteristic function that never dies away; it is blurred by one hundredth of its
standard deviation, which moves a half-width by less than it is rounded to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from turnstile.privacy.noise_terms import Floats, Term, characteristic, reach_of

_POINTS_MAX = 2_000_000
_STEP_SDS = 0.02  # of the frequency, in 1/sd: the sum repeats after 314 sd only
_BLUR_SDS = 0.01  # a normal blur of one hundredth of the sd makes the integral finite
_LAST_BLURS = 6.0  # frequency, in 1/blur, beyond which nothing is left
_SAME_WEIGHT_DIGITS = 9
_BISECTIONS = 40
_WIDEST_SDS = 12.0
Central = Callable[[float], float]
Pmf = Callable[[Sequence[Term]], tuple[NDArray[np.int64], Floats]]


def central_probability(terms: Sequence[Term], integer_pmf: Pmf) -> Central:
    """Return the function distance -> P(|sum| <= distance) of a sum with a continuous part.

    Args:
        terms: at least one of them continuous.
        integer_pmf: probabilities of sums of integer terms.
    """
    smooth = [term for term in terms if not term.is_integer]
    if len(smooth) == 1 and smooth[0].times == 1 and not smooth[0].is_gaussian:
        integers = [term for term in terms if term.is_integer]
        return _one_laplace(smooth[0].scale, integers, integer_pmf)
    return _inverted(terms, smooth)


def blurred_half_widths(
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

    low, high = 0.0, _WIDEST_SDS * deviation
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if inside(middle) >= level else (middle, high)
    return high


def _one_laplace(scale: float, integers: Sequence[Term], integer_pmf: Pmf) -> Central:
    """One Laplace term (whose transform dies too slowly to invert) and any integer ones."""
    probabilities: Floats = np.ones(1)
    values: Floats = np.zeros(1)
    if integers:
        numbers, probabilities = integer_pmf(integers)
        values = numbers.astype(np.float64)

    def below(bound: Floats) -> Floats:
        """Laplace distribution function."""
        half = np.exp(-np.abs(bound) / scale) / 2
        return np.asarray(np.where(bound < 0, half, 1 - half))

    def central(distance: float) -> float:
        """Mix over the integer part."""
        return float(np.sum(probabilities * (below(distance - values) - below(-distance - values))))

    return central


def _inverted(terms: Sequence[Term], smooth: Sequence[Term]) -> Central:
    """Gil-Pelaez by the midpoint rule, whose error is the mass beyond the reach."""
    step = math.pi / (2 * reach_of(terms))
    points = min(_POINTS_MAX, math.ceil(_last_frequency(smooth) / step))
    frequency: Floats = (np.arange(points, dtype=np.float64) + 0.5) * step
    transform = 2 / math.pi * step / frequency
    for term in terms:
        transform *= characteristic(term, frequency) ** term.times

    def central(distance: float) -> float:
        """Invert at one distance."""
        return float(np.sum(transform * np.sin(frequency * distance)))

    return central


def _last_frequency(smooth: Sequence[Term]) -> float:
    """Frequency after which the integrand adds less than about 1e-9."""
    gaussian = sum(term.times * term.scale**2 for term in smooth if term.is_gaussian)
    if gaussian:
        return 7 / math.sqrt(gaussian)
    order = 2 * sum(term.times for term in smooth)
    product = math.prod(term.scale ** (2 * term.times) for term in smooth)
    return float((1e9 / product) ** (1 / order))
