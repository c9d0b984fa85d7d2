"""Moments and probabilities of the integer noise, for error bars, tests and reports; floats."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from turnstile.privacy.noise_families import REACH_SDS, NoiseFamily

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray


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
    values, probabilities = noise_pmf(noise, scale, reach=math.ceil(REACH_SDS * width) + 1)
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
