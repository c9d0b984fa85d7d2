"""Which family the noise of an external table is of, as far as its numbers below zero say."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from turnstile.privacy.noise_families import NoiseFamily
from turnstile_lab.scale_intervals import ScaleInterval, interval

_CLEARLY = 6.0  # difference of log likelihoods that names a family
_MISFIT = 1e-6  # p-value below which neither family is named
_EXPECTED_LEAST = 5.0
_NARROW = 1.1  # an interval this narrow, high over low, names a scale within 5 %
_INTERVAL_CELLS_MOST = 200_000


class Tail(StrEnum):
    """How numbers below zero fall off."""

    GEOMETRIC = "geometric, as of Laplace noise"
    NORMAL = "as fast as of normal noise"
    OTHER = "neither as of Laplace nor as of normal noise"


def tail_of(counts: NDArray[np.int64]) -> Tail:
    """Return how the numbers below zero fall off; geometric where they are too few to say."""
    sizes = -counts[counts < 0]
    if sizes.size == 0:
        return Tail.GEOMETRIC
    reach = np.arange(1, 4 * int(sizes.max()) + 2)
    steps = float(np.mean(sizes - 1))
    geometric = (steps / (1 + steps)) ** (reach - 1.0) if steps else (reach == 1).astype(float)
    scale = _half_normal_scale(sizes, reach)
    normal = np.exp(-(reach**2) / (2 * scale**2))
    fits = [
        (own / own.sum(), tail)
        for own, tail in ((geometric, Tail.GEOMETRIC), (normal, Tail.NORMAL))
    ]
    heights = [float(np.log(np.maximum(own[sizes - 1], 1e-300)).sum()) for own, _ in fits]
    best, tail = fits[int(heights[1] > heights[0] + _CLEARLY)]
    return tail if _p_value(sizes, best) >= _MISFIT else Tail.OTHER


def normal_scale(counts: NDArray[np.int64]) -> ScaleInterval | None:
    """Return the scales of Gaussian noise that a dense table allows; None for one too large.

    Whatever the raw counts are (`scale_intervals`): the numbers below zero of normal noise
    depend on how many cells are empty, so they alone say no scale.
    """
    if counts.size > _INTERVAL_CELLS_MOST:
        return None
    sizes = -counts[counts < 0]
    start = _half_normal_scale(sizes, np.arange(1, 4 * int(sizes.max()) + 2))
    return interval(counts, NoiseFamily.DISCRETE_GAUSSIAN, round(start, 3))


def is_named(found: ScaleInterval | None) -> bool:
    """Return whether an interval is narrow enough to name a scale within 5 %."""
    return found is not None and found.low > 0 and found.high <= _NARROW * found.low


def _half_normal_scale(sizes: NDArray[np.int64], reach: NDArray[np.int64]) -> float:
    """Return the likeliest sigma of numbers 1, 2, ... with weights exp(-k^2/(2 sigma^2))."""
    from scipy.optimize import minimize_scalar

    square = float(np.mean(sizes.astype(np.float64) ** 2))

    def cost(log_scale: float) -> float:
        """Return the negative mean log likelihood."""
        variance = 2 * float(np.exp(2 * log_scale))
        return square / variance + float(np.log(np.exp(-(reach**2) / variance).sum() + 1e-300))

    rough = float(np.log(square**0.5))
    return float(np.exp(minimize_scalar(cost, bounds=(rough - 2, rough + 2), method="bounded").x))


def _p_value(sizes: NDArray[np.int64], shares: NDArray[np.float64]) -> float:
    """Return the chi-squared p-value of sizes against fitted shares, tail pooled."""
    from scipy.stats import chi2

    expected = sizes.size * shares
    bins = int(np.argmax(expected < _EXPECTED_LEAST)) if (expected < _EXPECTED_LEAST).any() else 1
    if bins <= 1:
        return 1.0
    pooled = np.append(expected[:bins], sizes.size - expected[:bins].sum())
    observed = np.bincount(np.minimum(sizes - 1, bins), minlength=bins + 1)
    used = pooled > 0
    statistic = float(np.sum((observed[used] - pooled[used]) ** 2 / pooled[used]))
    return float(chi2.sf(statistic, df=max(1, int(used.sum()) - 2)))
