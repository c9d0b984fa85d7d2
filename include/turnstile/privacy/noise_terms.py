"""One noise in a sum: its distribution, variance, probabilities and characteristic function.

The integer ones are the product's own (`privacy.noise`). The continuous and the rounded Laplace and
the continuous Gaussian are those of tables that others published. All are symmetric about zero.
Floats: for reports, not for losses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from turnstile.privacy.events import DrawEvent, NoiseFamily
from turnstile.privacy.noise import noise_pmf, noise_variance

_REACH_SCALES = 38.0  # e^-38 is below 1e-16
_NEGLIGIBLE = 1e-17
Floats = NDArray[np.float64]


class NoiseDistribution(StrEnum):
    """Distributions of one term. Rounded Laplace is continuous noise rounded to integers."""

    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"
    ROUNDED_LAPLACE = "rounded_laplace"
    DISCRETE_LAPLACE = "discrete_laplace"
    DISCRETE_GAUSSIAN = "discrete_gaussian"

    @property
    def is_integer(self) -> bool:
        """Whether the noise is an integer."""
        return self not in (NoiseDistribution.LAPLACE, NoiseDistribution.GAUSSIAN)


@dataclass(frozen=True, slots=True)
class Term:
    """Independent terms of one distribution and scale.

    Args:
        distribution: of each term.
        scale: b of a Laplace distribution, sigma of a Gaussian one, in counts, > 0.
        times: how many, >= 1.
    """

    distribution: NoiseDistribution
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
        """Whether the distribution has Gaussian tails."""
        gaussian = (NoiseDistribution.GAUSSIAN, NoiseDistribution.DISCRETE_GAUSSIAN)
        return self.distribution in gaussian


def term_of(event: DrawEvent, times: int = 1) -> Term:
    """Return the noise of one or several cells of a draw."""
    return Term(NoiseDistribution(event.noise.value), float(event.scale), times)


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
    if not term.distribution.is_integer:
        raise ValueError(f"{term.distribution} has a density, not probabilities of integers")
    return noise_pmf(NoiseFamily(term.distribution.value), Fraction(term.scale), reach=reach)


def variance_of(term: Term) -> float:
    """Return the variance of one of the terms, in squared counts."""
    if term.distribution is NoiseDistribution.LAPLACE:
        return 2 * term.scale**2
    if term.distribution is NoiseDistribution.GAUSSIAN:
        return term.scale**2
    if term.distribution is NoiseDistribution.ROUNDED_LAPLACE:
        values, probabilities = pmf(term, reach=math.ceil(reach_of([Term(*_once(term))])))
        return float(np.sum(values.astype(np.float64) ** 2 * probabilities))
    return noise_variance(NoiseFamily(term.distribution.value), Fraction(term.scale))


def reach_of(terms: Sequence[Term]) -> float:
    """Return the distance beyond which at most about 1e-15 of the mass of the sum lies."""
    laplace = [term for term in terms if not term.is_gaussian]
    gaussian = [term for term in terms if term.is_gaussian]
    deviation = math.sqrt(
        sum(2.2 * term.times * (term.scale**2 + 0.25) for term in laplace)
        + sum(term.times * (term.scale**2 + 0.25) for term in gaussian)
    )
    heaviest = max((term.scale for term in laplace), default=0.0)
    return 9 * deviation + _REACH_SCALES * heaviest + 2


def characteristic(term: Term, frequency: Floats) -> Floats:
    """Return the characteristic function of one of the terms."""
    if term.distribution is NoiseDistribution.LAPLACE:
        return np.asarray(1 / (1 + (term.scale * frequency) ** 2))
    if term.distribution is NoiseDistribution.GAUSSIAN:
        return np.asarray(np.exp(-((term.scale * frequency) ** 2) / 2))
    if term.distribution is NoiseDistribution.DISCRETE_LAPLACE:
        # (1 - r)^2 / (1 - 2 r cos t + r^2), written so that nothing cancels near t = 0
        ratio = math.exp(-1 / term.scale)
        sharpness = 4 * ratio / (1 - ratio) ** 2
        return np.asarray(1 / (1 + sharpness * np.sin(frequency / 2) ** 2))
    return _by_sum(term, frequency)


def _once(term: Term) -> tuple[NoiseDistribution, float]:
    """Return distribution and scale of one of the terms."""
    return term.distribution, term.scale


def _by_sum(term: Term, frequency: Floats) -> Floats:
    """Characteristic function as the cosine sum of the probabilities, which has period 2 pi."""
    reach = math.ceil(reach_of([Term(*_once(term))]))
    values, probabilities = pmf(term, reach=reach)
    result = np.full(frequency.shape, probabilities[reach])
    for value, probability in zip(values[reach + 1 :], probabilities[reach + 1 :], strict=True):
        if probability > _NEGLIGIBLE:
            result += 2 * probability * np.cos(value * frequency)
    return result
