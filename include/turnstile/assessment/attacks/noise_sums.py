"""Exact laws of sums of independent noise: tails and intervals for any number of terms.

All-integer sums are convolved exactly (a discrete Fourier transform over a window that holds all
but 1e-15 of the mass); sums with a continuous term are inverted from the characteristic function
(Gil-Pelaez 1951). Every law here is symmetric about zero. Floats: for reports, not for losses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from turnstile.privacy.events import DrawEvent, NoiseFamily
from turnstile.privacy.noise import noise_pmf

_REACH_SCALES = 38.0  # e^-38 is below 1e-16
_NEGLIGIBLE = 1e-17
_BISECTIONS = 80
_POINTS_MAX = 2_000_000


class NoiseLaw(StrEnum):
    """Laws of one term. Rounded Laplace is continuous Laplace noise rounded to whole counts."""

    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"
    ROUNDED_LAPLACE = "rounded_laplace"
    DISCRETE_LAPLACE = "discrete_laplace"
    DISCRETE_GAUSSIAN = "discrete_gaussian"

    @property
    def is_whole(self) -> bool:
        """Whether the noise is a whole number."""
        return self not in (NoiseLaw.LAPLACE, NoiseLaw.GAUSSIAN)


@dataclass(frozen=True, slots=True)
class Term:
    """Independent terms of one law and scale.

    Args:
        law: of each term.
        scale: b of a Laplace law, sigma of a Gaussian one, in counts, > 0.
        times: how many, >= 1.
    """

    law: NoiseLaw
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
    def is_gaussian(self) -> bool:
        """Whether the law has Gaussian tails."""
        return self.law in (NoiseLaw.GAUSSIAN, NoiseLaw.DISCRETE_GAUSSIAN)


def term_of(event: DrawEvent, times: int = 1) -> Term:
    """Return the noise of one or several cells of a draw."""
    return Term(NoiseLaw(event.noise.value), float(event.scale), times)


def tail(terms: Sequence[Term], distance: float) -> float:
    """Return P(|sum of all terms| > distance).

    For three Laplace terms of scale p it is e^(-u)(8 + 5u + u^2)/8 with u = distance/p.

    Args:
        terms: at least one.
        distance: in counts, >= 0.

    Examples:
        >>> round(tail([Term(NoiseLaw.LAPLACE, 1.4, 3)], 6.956), 4)
        0.05
    """
    if distance < 0:
        return 1.0
    if all(term.law.is_whole for term in terms):
        values, probabilities = whole_pmf(terms)
        outside = np.abs(values) > distance + 1e-9
        return float(probabilities[outside].sum())
    return max(0.0, 1 - _central(terms)(distance))


def half_width(terms: Sequence[Term], confidence: float) -> float:
    """Return the least a with P(|sum| <= a) >= confidence; a whole number for whole-number sums.

    Args:
        terms: at least one.
        confidence: strictly between 0 and 1.

    Examples:
        >>> round(half_width([Term(NoiseLaw.LAPLACE, 1.4, 3)], 0.99), 3)
        9.884
        >>> half_width([Term(NoiseLaw.ROUNDED_LAPLACE, 1.4, 3)], 0.95)
        7.0
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence {confidence} must lie strictly between 0 and 1")
    if all(term.law.is_whole for term in terms):
        values, probabilities = whole_pmf(terms)
        middle = values.size // 2
        right = probabilities[middle + 1 :]
        inside = probabilities[middle] + 2 * np.cumsum(np.concatenate(([0.0], right)))
        return float(np.searchsorted(inside, confidence - 1e-12))
    central, low, high = _central(terms), 0.0, _reach(terms)
    for _ in range(_BISECTIONS):
        middle_width = (low + high) / 2
        if central(middle_width) >= confidence:
            high = middle_width
        else:
            low = middle_width
        if high - low < 1e-9 * high:
            break
    return high


def variance(terms: Sequence[Term]) -> float:
    """Return the variance of the sum, in squared counts."""
    return sum(term.times * _variance(term) for term in terms)


def whole_pmf(terms: Sequence[Term]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return whole numbers around zero and the probability of each, for sums of whole terms.

    Args:
        terms: of whole-number laws only.
    """
    reach = math.ceil(_reach(terms))
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


def pmf(term: Term, *, reach: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the integers from -reach to reach and the probability of each, for one whole term.

    Raises:
        ValueError: the law is continuous.
    """
    if term.law is NoiseLaw.ROUNDED_LAPLACE:
        values = np.arange(-reach, reach + 1)
        tails = math.sinh(0.5 / term.scale) * np.exp(-np.abs(values) / term.scale)
        tails[reach] = -math.expm1(-0.5 / term.scale)
        return values, tails
    if not term.law.is_whole:
        raise ValueError(f"{term.law} has a density, not probabilities of whole numbers")
    return noise_pmf(NoiseFamily(term.law.value), Fraction(term.scale), reach=reach)


def _variance(term: Term) -> float:
    """Variance of one term."""
    if term.law is NoiseLaw.LAPLACE:
        return 2 * term.scale**2
    if term.law is NoiseLaw.GAUSSIAN:
        return term.scale**2
    values, probabilities = pmf(term, reach=math.ceil(_reach([Term(term.law, term.scale)])))
    return float(np.sum(values.astype(np.float64) ** 2 * probabilities))


def _reach(terms: Sequence[Term]) -> float:
    """Distance beyond which at most about 1e-15 of the mass lies."""
    laplace = [term for term in terms if not term.is_gaussian]
    gaussian = [term for term in terms if term.is_gaussian]
    deviation = math.sqrt(
        sum(2.2 * term.times * (term.scale**2 + 0.25) for term in laplace)
        + sum(term.times * (term.scale**2 + 0.25) for term in gaussian)
    )
    heaviest = max((term.scale for term in laplace), default=0.0)
    return 9 * deviation + _REACH_SCALES * heaviest + 2


def _central(terms: Sequence[Term]) -> Callable[[float], float]:
    """Return the function distance -> P(|sum| <= distance); the sum has a continuous part."""
    smooth = [term for term in terms if not term.law.is_whole]
    if len(smooth) == 1 and smooth[0].times == 1 and not smooth[0].is_gaussian:
        return _one_laplace(smooth[0].scale, [term for term in terms if term.law.is_whole])
    return _inverted(terms, smooth)


def _one_laplace(scale: float, whole: Sequence[Term]) -> Callable[[float], float]:
    """One Laplace term (whose transform dies too slowly to invert) and any whole ones."""
    probabilities: NDArray[np.float64] = np.ones(1)
    values: NDArray[np.float64] = np.zeros(1)
    if whole:
        numbers, probabilities = whole_pmf(whole)
        values = numbers.astype(np.float64)

    def below(bound: NDArray[np.float64]) -> NDArray[np.float64]:
        """Laplace distribution function."""
        half = np.exp(-np.abs(bound) / scale) / 2
        return np.asarray(np.where(bound < 0, half, 1 - half))

    def central(distance: float) -> float:
        """Mix over the whole part."""
        return float(np.sum(probabilities * (below(distance - values) - below(-distance - values))))

    return central


def _inverted(terms: Sequence[Term], smooth: Sequence[Term]) -> Callable[[float], float]:
    """Gil-Pelaez by the midpoint rule, whose error is the mass beyond the reach."""
    step = math.pi / (2 * _reach(terms))
    points = min(_POINTS_MAX, math.ceil(_last_frequency(smooth) / step))
    frequency: NDArray[np.float64] = (np.arange(points, dtype=np.float64) + 0.5) * step
    transform = 2 / math.pi * step / frequency
    for term in terms:
        transform *= _characteristic(term, frequency) ** term.times

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


def _characteristic(term: Term, frequency: NDArray[np.float64]) -> NDArray[np.float64]:
    """Characteristic function of one term."""
    if term.law is NoiseLaw.LAPLACE:
        return np.asarray(1 / (1 + (term.scale * frequency) ** 2))
    if term.law is NoiseLaw.GAUSSIAN:
        return np.asarray(np.exp(-((term.scale * frequency) ** 2) / 2))
    if term.law is NoiseLaw.DISCRETE_LAPLACE:
        ratio = math.exp(-1 / term.scale)
        return np.asarray((1 - ratio) ** 2 / (1 - 2 * ratio * np.cos(frequency) + ratio**2))
    return _by_sum(term, frequency)


def _by_sum(term: Term, frequency: NDArray[np.float64]) -> NDArray[np.float64]:
    """Characteristic function as the cosine sum of the probabilities, which has period 2 pi."""
    reach = math.ceil(_reach([Term(term.law, term.scale)]))
    values, probabilities = pmf(term, reach=reach)
    result = np.full(frequency.shape, probabilities[reach])
    for value, probability in zip(values[reach + 1 :], probabilities[reach + 1 :], strict=True):
        if probability > _NEGLIGIBLE:
            result += 2 * probability * np.cos(value * frequency)
    return result
