"""Moments and probabilities of the integer noise, for error bars, tests and reports; floats."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from turnstile.privacy.events import NoiseFamily

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

_EXACT_ABOVE = 20.0  # the discrete Gaussian's variance is sigma^2 to 1e-300 from here on
_REACH_SDS = 40


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
    if noise is NoiseFamily.DISCRETE_LAPLACE:
        return 2 * math.exp(-1 / width) / math.expm1(-1 / width) ** 2
    if width >= _EXACT_ABOVE:
        return width**2
    values, probabilities = noise_pmf(noise, scale, reach=math.ceil(_REACH_SDS * width) + 1)
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
    values, probabilities = noise_pmf(noise, scale, reach=math.ceil(_REACH_SDS * float(scale)))
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
    width = float(scale)
    values = np.arange(-reach, reach + 1)
    if noise is NoiseFamily.DISCRETE_LAPLACE:
        ratio = math.exp(-1 / width)
        return values, (1 - ratio) / (1 + ratio) * np.exp(-np.abs(values) / width)
    all_values = np.arange(-max(reach, math.ceil(_REACH_SDS * width)), 1)
    weights = np.exp(-(all_values**2) / (2 * width**2))
    mass = 2 * weights.sum() - 1  # the middle is counted twice
    return values, np.exp(-(values**2) / (2 * width**2)) / mass
