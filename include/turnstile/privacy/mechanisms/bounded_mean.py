"""Means of bounded values from two integer tables: a centered fixed-point sum and a count.

ITMS query 1. For each bus, service day and cell the mean of its own readings is clamped to
[0, V] km/h and written as x = round(10 v) tenths; the sum of x - 5V and the number of bus-days are
drawn, each by `dense`. Centering halves the sensitivity. The mean is post-processing.
Proof: bounded_mean.proof.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from turnstile.privacy.events import Sensitivity
from turnstile.privacy.sensitivities import cells_at_most

if TYPE_CHECKING:
    from numpy.typing import NDArray

STEPS_PER_KMH = 10


def center_steps(clamp_kmh: int) -> int:
    """Return 5V, the middle of the range in steps of 0.1 km/h.

    Examples:
        >>> center_steps(65)
        325
    """
    return STEPS_PER_KMH * clamp_kmh // 2


def centered_steps(mean_kmh: Fraction, clamp_kmh: int) -> int:
    """Return x - 5V of one bus-day and cell: clamped, rounded half up, centered.

    Args:
        mean_kmh: mean of the bus's own readings, km/h.
        clamp_kmh: public V, km/h.

    Examples:
        >>> centered_steps(Fraction(20), 65)
        -125
    """
    clamped = min(max(mean_kmh, Fraction(0)), Fraction(clamp_kmh))
    return math.floor(STEPS_PER_KMH * clamped + Fraction(1, 2)) - center_steps(clamp_kmh)


def sum_sensitivity(cells_max: int, clamp_kmh: int) -> Sensitivity:
    """Return how far a bus-day of at most so many cells moves the centered sums (in steps).

    Examples:
        >>> sum_sensitivity(2, 65)
        Sensitivity(l0=2, l1=650, l2_squared=211250, linf=325)
    """
    half = center_steps(clamp_kmh)
    cells = cells_at_most(cells_max)
    return Sensitivity(
        l0=cells.l0, l1=cells.l1 * half, l2_squared=cells.l2_squared * half**2, linf=half
    )


def mean_kmh(
    noisy_sum: NDArray[np.int64], noisy_count: NDArray[np.int64], *, clamp_kmh: int, count_min: int
) -> NDArray[np.float64]:
    """Return the released mean of each cell, (5V + S/max(N, n0))/10 km/h, within [0, V].

    Post-processing of two drawn tables; NaN where the noisy count is below n0, too few to show.

    Args:
        noisy_sum: centered sums, steps of 0.1 km/h.
        noisy_count: bus-days.
        clamp_kmh: public V, km/h.
        count_min: n0 >= 1, bus-days.
    """
    shown = np.maximum(noisy_count, count_min)
    mean = (center_steps(clamp_kmh) + noisy_sum / shown) / STEPS_PER_KMH
    return np.where(noisy_count < count_min, np.nan, np.clip(mean, 0, clamp_kmh))


def mean_sd_kmh(
    count: NDArray[np.float64],
    mean: NDArray[np.float64],
    *,
    clamp_kmh: int,
    scales: tuple[float, float],
) -> NDArray[np.float64]:
    """Return the standard deviation that the noise gives a mean, km/h, to first order.

    sqrt(sd_S^2 + (10 mean - 5V)^2 sd_N^2)/(10 N) (delta method).

    Args:
        count: bus-days (noisy, or as planned).
        mean: km/h (noisy, or as planned).
        clamp_kmh: public V, km/h.
        scales: standard deviations of the sum's noise (steps) and of the count's (bus-days).
    """
    sum_sd, count_sd = scales
    offset = STEPS_PER_KMH * mean - center_steps(clamp_kmh)
    return np.sqrt(sum_sd**2 + offset**2 * count_sd**2) / (STEPS_PER_KMH * count)
