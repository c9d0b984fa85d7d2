"""One noise in a sum: its distribution, variance, probabilities and characteristic function.

The integer ones are the product's own (families). The continuous and the rounded Laplace and
the continuous Gaussian are those of tables that others published. All are symmetric about zero.
Floats: for reports, not for losses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from turnstile.privacy.events import DrawEvent
from turnstile.privacy.noise import noise_pmf, noise_variance
from turnstile.privacy.noise_families import NoiseFamily

_REACH_SCALES = 38.0  # e^-38 is below 1e-16
_NEGLIGIBLE = 1e-17
Floats = NDArray[np.float64]


class NoiseDistribution(StrEnum):
    """Distributions that others draw from. Rounded Laplace is continuous noise, rounded."""

    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"
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
        return self.distribution not in (NoiseDistribution.LAPLACE, NoiseDistribution.GAUSSIAN)

    @property
    def is_gaussian(self) -> bool:
        """Whether the distribution has Gaussian tails."""
        distribution = self.distribution
        is_near_to_normal = isinstance(distribution, NoiseFamily) and distribution.record.adds_up
        return is_near_to_normal or distribution is NoiseDistribution.GAUSSIAN


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
        values, probabilities = pmf(term, reach=math.ceil(reach_of([replace(term, times=1)])))
        return float(np.sum(values.astype(np.float64) ** 2 * probabilities))
    return (2 if term.distribution is NoiseDistribution.LAPLACE else 1) * term.scale**2


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
    if isinstance(term.distribution, NoiseFamily) and term.distribution.record.has_geometric_tail:
        # (1 - r)^2 / (1 - 2 r cos t + r^2), written so that nothing cancels near t = 0
        ratio = math.exp(-1 / term.scale)
        sharpness = 4 * ratio / (1 - ratio) ** 2
        return np.asarray(1 / (1 + sharpness * np.sin(frequency / 2) ** 2))
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
