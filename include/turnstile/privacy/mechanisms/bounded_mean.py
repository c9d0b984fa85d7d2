"""Means of bounded values from two integer tables: a centered fixed-point sum and a count.

ITMS query 1. For each bus, service day and cell the mean of its own readings is clamped to
[0, V] km/h and written as x = round(10 v) tenths; the sum of x - 5V and the number of bus-days are
drawn, each by `dense`. Centering halves the sensitivity. The mean is post-processing.
Proof: bounded_mean.proof.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from turnstile.privacy.sensitivities import scaled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from turnstile.privacy.events import Sensitivity

STEPS_PER_KMH = 10
_MILLI = 1000
_SECONDS_PER_MINUTE = 60
_MILLI_PER_STEP = _MILLI // STEPS_PER_KMH


def center_steps(clamp_kmh: int) -> int:
    """Return 5V, the middle of the range in steps of 0.1 km/h.

    Examples:
        >>> center_steps(65)
        325
    """
    return STEPS_PER_KMH * clamp_kmh // 2


def centered_steps(
    speed_sum_milli: NDArray[np.int64], readings: NDArray[np.int64], clamp_kmh: int
) -> NDArray[np.int64]:
    """Return x - 5V of each bus-day and cell: its mean clamped, rounded half up, centered.

    Integers throughout: no float lies between a reading and what is added up.

    Args:
        speed_sum_milli: shape (n,), sum of the bus's own readings, milli-km/h.
        readings: shape (n,), their number, >= 1.
        clamp_kmh: public V, km/h.

    Returns:
        shape (n,), int64, -5V to 5V.

    Examples:
        >>> centered_steps(np.array([20_000, 130_099]), np.array([1, 2]), 65).tolist()
        [-125, 325]
        >>> centered_steps(np.array([100]), np.array([2]), 40).tolist()
        [-199]
    """
    clamped = np.clip(speed_sum_milli, 0, clamp_kmh * _MILLI * readings)
    steps: NDArray[np.int64] = (2 * clamped + _MILLI_PER_STEP * readings) // (
        2 * _MILLI_PER_STEP * readings
    )
    return steps - center_steps(clamp_kmh)


def centered_delays(
    delay_sum_s: NDArray[np.int64], readings: NDArray[np.int64], clamp_minutes: int
) -> NDArray[np.int64]:
    """Return the mean delay of each bus-day and cell in tenths of a minute, clamped to -D to D.

    It is the same as of speeds: a delay plus D minutes lies in [0, V] with V = 2D minutes.

    Args:
        delay_sum_s: shape (n,), sum of what the bus's own readings state, seconds.
        readings: shape (n,), their number, >= 1.
        clamp_minutes: public D, minutes.

    Returns:
        shape (n,), int64, -10D to 10D.

    Examples:
        >>> centered_delays(np.array([90, -7200]), np.array([1, 2]), 15).tolist()
        [15, -150]
    """
    later_s = delay_sum_s + _SECONDS_PER_MINUTE * clamp_minutes * readings
    by_sixty = _SECONDS_PER_MINUTE * readings  # thousandths of a minute, as whole numbers
    return centered_steps(_MILLI * later_s, by_sixty, 2 * clamp_minutes)


def sum_sensitivity(counts: Sensitivity, clamp_kmh: int) -> Sensitivity:
    """Return how far a unit moves the centered sums (in steps), from how far it moves the counts.

    Examples:
        >>> from turnstile.privacy.sensitivities import packed
        >>> sum_sensitivity(packed(2, 1), 65)
        Sensitivity(l0=2, l1=650, l2_squared=211250, linf=325)
    """
    return scaled(counts, center_steps(clamp_kmh))


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
