"""Means from a noisy sum over a noisy count, with 95 % intervals that hold however small the count.

A mean's error is no normal deviate: both its parts are noisy, and a mean is shown only where its
noisy count is large, which is a selection. So intervals are found by inverting a test: a mean m is
in it if T = S - m N lies in the central 95 % of its own distribution (Fieller 1954), given that N
was large enough to be shown and given W = m S/s_S^2 + N/s_N^2. T is independent of W, so that
distribution is a truncated normal one, free of the true count (Fithian, Sun & Taylor 2014; Lee,
Sun, Sun & Taylor 2016). The test holds 95 % for every cell whose mean is shown. Near the edge of
the rule it accepts means in two places; the interval is the place that holds the estimate, which
costs the few cells that are shown though hardly a bus passes two points. For Laplace noise W does
not exist: there the test is Fieller's alone, and 95 % holds over shown and withheld means together.
Post-processing: it reads drawn numbers and declared scales.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from turnstile.privacy.mechanisms.bounded_mean import (
    STEPS_PER_KMH,
    center_steps,
    mean_kmh,
    mean_sd_kmh,
)
from turnstile.privacy.noise import Term, half_width, noise_variance, two_laplace_tails
from turnstile.privacy.noise_families import NoiseFamily

OUTSIDE = 0.05
_SHOWN_ABOVE_SDS = 3
_EMPTY_SHOWN = 0.49  # cells that nobody drove in, expected to be shown in a release
_NORMAL_SDS = NormalDist().inv_cdf(1 - OUTSIDE / 2)
_STEPS_PER_SD, _REACH_SDS = 4, 8  # where an interval's ends are looked for
_BISECTIONS = 16  # of one step
_ALMOST_ZERO = 1e-9
_GOLDEN = (math.sqrt(5) - 1) / 2
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RatioNoise:
    """Declared noise of a sum and of its count.

    Args:
        family: of both.
        sum_scale: of the sum, steps of 0.1 km/h.
        count_scale: of the count, bus-days.
        cells: of the table whose means are shown; the more, the more of them noise alone lifts.
    """

    family: NoiseFamily
    sum_scale: Fraction
    count_scale: Fraction
    cells: int = 1

    @property
    def sum_sd(self) -> float:
        """Standard deviation of the sum's noise, steps."""
        return math.sqrt(noise_variance(self.family, self.sum_scale))

    @property
    def count_sd(self) -> float:
        """Standard deviation of the count's noise, bus-days."""
        return math.sqrt(noise_variance(self.family, self.count_scale))

    @property
    def least_count(self) -> int:
        """Noisy bus-days from which on a mean is shown.

        Three times the count's noise, and so many that of all cells, were they empty, fewer than
        half a one would be shown on average. A public rule: it needs the declared scale, the number
        of cells and the noisy count only.
        """
        least = max(1, math.ceil(_SHOWN_ABOVE_SDS * self.count_sd))
        inside = 1 - 2 * _EMPTY_SHOWN / self.cells  # either way, of noise that is symmetric
        if inside <= 0:
            return least
        term = Term(self.family, float(self.count_scale))
        return max(least, int(half_width([term], inside)) + 1)


@dataclass(frozen=True, slots=True)
class Means:
    """Published means; not a number where one is withheld. Each shape (cells,), km/h.

    Args:
        mean: estimate, within [0, V].
        deviation: its standard deviation, to first order.
        low: lower end of the 95 % interval.
        high: upper end.
        is_withheld: True where the noisy count is within its own noise.
    """

    mean: Floats
    deviation: Floats
    low: Floats
    high: Floats
    is_withheld: NDArray[np.bool_]


def means_of(sums: Ints, counts: Ints, noise: RatioNoise, *, clamp_kmh: int) -> Means:
    """Return the means of all cells.

    Args:
        sums: noisy centered sums, steps of 0.1 km/h, shape (cells,).
        counts: noisy bus-days, shape (cells,).
        noise: declared.
        clamp_kmh: V, km/h.
    """
    is_withheld = counts < noise.least_count
    mean = mean_kmh(sums, counts, clamp_kmh=clamp_kmh, count_min=noise.least_count)
    deviation = mean_sd_kmh(
        np.maximum(counts, 1).astype(np.float64),
        mean,
        clamp_kmh=clamp_kmh,
        scales=(noise.sum_sd, noise.count_sd),
    )
    low, high = np.full(sums.shape, np.nan), np.full(sums.shape, np.nan)
    shown = ~is_withheld
    low[shown], high[shown] = intervals(sums[shown], counts[shown], noise, clamp_kmh=clamp_kmh)
    return Means(mean, deviation, low, high, is_withheld)


def intervals(
    sums: Ints, counts: Ints, noise: RatioNoise, *, clamp_kmh: int
) -> tuple[Floats, Floats]:
    """Return both ends of the 95 % interval of each mean that is shown, km/h, within [0, V].

    Args:
        sums: noisy centered sums, steps of 0.1 km/h, shape (cells,).
        counts: noisy bus-days, shape (cells,), each at least `noise.least_count`.
        noise: declared.
        clamp_kmh: V, km/h.
    """
    half = center_steps(clamp_kmh)
    # Whole counts would make the truncated test too cautious at its edge; spread evenly over the
    # unit that each stands for (a Weyl sequence over the cells, the same every time), they do not.
    spread = counts + (np.arange(counts.size) * _GOLDEN) % 1 - 0.5

    def accepts(means: Floats) -> NDArray[np.bool_]:
        tail = _lower_tail(means, sums, spread, noise)
        accepted: NDArray[np.bool_] = np.abs(tail - 0.5) < (1 - OUTSIDE) / 2
        return accepted

    estimate = np.clip(sums / counts, -half, half)
    deviation = np.hypot(noise.sum_sd, estimate * noise.count_sd) / counts
    steps = np.arange(-_REACH_SDS * _STEPS_PER_SD, _REACH_SDS * _STEPS_PER_SD + 1)
    tried = np.clip(estimate + np.outer(steps / _STEPS_PER_SD, deviation), -half, half)
    accepted = np.array([accepts(means) for means in tried])
    # Of several accepted places, the one that holds the estimate, or is nearest to it.
    apart = np.abs(steps)[:, None] + np.where(accepted, 0, steps.size)
    begin = apart.argmin(axis=0)
    low = _end(tried[::-1], accepted[::-1], steps.size - 1 - begin, accepts)
    high = _end(tried, accepted, begin, accepts)
    # Where a sum lies so far outside of what its count can hold that the test accepts no mean at
    # all, the interval is the first-order one: never of no width, and never without its estimate.
    lost = ~accepted.any(axis=0)
    low = np.minimum(np.where(lost, estimate - _NORMAL_SDS * deviation, low), estimate)
    high = np.maximum(np.where(lost, estimate + _NORMAL_SDS * deviation, high), estimate)
    low, high = np.clip(low, -half, half), np.clip(high, -half, half)
    return (half + low) / STEPS_PER_KMH, (half + high) / STEPS_PER_KMH


def _end(
    tried: Floats,
    accepted: NDArray[np.bool_],
    begin: NDArray[np.intp],
    accepts: Callable[[Floats], NDArray[np.bool_]],
) -> Floats:
    """Return where the test first rejects; the last mean tried where it does not.

    Args:
        tried: means, in the direction of the search, shape (steps, cells).
        accepted: by the test, of each.
        begin: step to begin at, shape (cells,).
        accepts: the test, for other means, one a cell.
    """
    rejected = ~accepted & (np.arange(len(tried))[:, None] > begin)
    first = np.where(rejected.any(axis=0), rejected.argmax(axis=0), len(tried))
    cells = np.arange(begin.size)
    inside, outside = tried[first - 1, cells], tried[np.minimum(first, len(tried) - 1), cells]
    for _ in range(_BISECTIONS):
        middle = (inside + outside) / 2
        is_inside = accepts(middle)
        inside = np.where(is_inside, middle, inside)
        outside = np.where(is_inside, outside, middle)
    end: Floats = (inside + outside) / 2
    return end


def _lower_tail(means: Floats, sums: Ints, counts: Floats, noise: RatioNoise) -> Floats:
    """Return the probability of a T below the observed one, if these were the means; in steps."""
    apart = sums - means * counts
    if noise.family.record.adds_up:
        return _truncated_normal_tail(means, apart, counts, noise)
    count_scales = np.abs(means) * float(noise.count_scale)
    outside = two_laplace_tails(np.abs(apart), float(noise.sum_scale), count_scales)
    return np.where(apart > 0, 1 - outside / 2, outside / 2)


def _truncated_normal_tail(
    means: Floats, apart: Floats, counts: Floats, noise: RatioNoise
) -> Floats:
    """Return P(T' <= T) of a normal T' that is truncated where its count would not be shown.

    With W held, one more step of T lowers N by m s_N^2/(s_S^2 + m^2 s_N^2).
    """
    from scipy.special import log_ndtr  # a fifth of a second of imports, where there are means

    count_variance = float(noise.count_scale) ** 2
    deviation = np.hypot(float(noise.sum_scale), means * float(noise.count_scale))
    steep = np.where(means == 0, _ALMOST_ZERO, means)
    spare = counts - (noise.least_count - 0.5)
    edge = apart + spare * deviation**2 / (steep * count_variance)
    sign = np.sign(steep)  # T is truncated above for positive means, below for negative ones
    tail: Floats = np.exp(log_ndtr(sign * apart / deviation) - log_ndtr(sign * edge / deviation))
    return np.where(sign > 0, tail, 1 - tail)
