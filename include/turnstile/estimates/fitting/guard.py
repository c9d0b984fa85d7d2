"""The guard: what a fitted table misses and this week's numbers plainly show is added back. Pure.

The residuals of each place are scanned over stretches of the day, first those of the mean over the
days, then of each day. The stretch that stands out most, if its mean is beyond 4.75 of its own
standard deviations, is added back, and the rest is scanned again. A strike, a closed station, a new
one, an event of an hour are such stretches; a burst of a quarter is one only beyond 4.75 standard
deviations of the noise (docs/ESTIMATES.md). Noise alone passes the limit once in half a million.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SURPRISING_SDS = 4.75
_STRETCHES_AT_MOST = 8  # of one place and day
_ROUNDING = float(np.finfo(np.float64).eps)
_LENGTHS = (48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1)  # slots; the full day beside these


def guarded(values: Floats, fitted: Floats, noise_variance: float) -> Floats:
    """Return fitted cells with what surprises added back, not negative.

    Args:
        values: drawn numbers, shape (places, days, slots).
        fitted: same shape, >= 0.
        noise_variance: of each drawn number.
    """
    days, slots = values.shape[1:]
    variance = noise_variance + fitted
    of_week = surprises((values - fitted).mean(axis=1), variance.mean(axis=1) / days)
    adjusted = fitted + of_week[:, None]
    of_days = surprises((values - adjusted).reshape(-1, slots), variance.reshape(-1, slots))
    return np.maximum(adjusted + of_days.reshape(values.shape), 0)


def surprises(residuals: Floats, variances: Floats) -> Floats:
    """Return the stretches of each row that stand out, each at its mean; 0 elsewhere.

    Args:
        residuals: shape (rows, slots).
        variances: of each residual, if nothing were missed; same shape.
    """
    stretches = np.zeros_like(residuals)
    summed_variances = _running_sums(variances)
    rows = np.arange(len(residuals))
    for _ in range(_STRETCHES_AT_MOST):
        sums = _running_sums(residuals[rows] - stretches[rows])
        start, length = _most_surprising(sums, summed_variances[rows])
        stands_out = length > 0
        rows, sums = rows[stands_out], sums[stands_out]
        start, length = start[stands_out], length[stands_out]
        if not rows.size:
            break
        each = np.arange(rows.size)
        mean = (sums[each, start + length] - sums[each, start]) / length
        slots = np.arange(residuals.shape[1])
        inside = (slots >= start[:, None]) & (slots < (start + length)[:, None])
        stretches[rows] += np.where(inside, mean[:, None], 0)
    return stretches


def _most_surprising(
    sums: Floats, variances: Floats
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return start and length of the stretch that stands out most in each row; length 0: none.

    Args:
        sums: running sums of residuals, shape (rows, slots + 1).
        variances: running sums of variances, same shape.
    """
    rows, slots = len(sums), sums.shape[1] - 1
    best = np.full(rows, SURPRISING_SDS**2)
    start, length = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    # With practically no noise a running sum of variances stands still where nothing is fitted.
    least = _ROUNDING * np.maximum(variances[:, -1:], 1)
    for tried in (slots, *(width for width in _LENGTHS if width < slots)):
        apart = sums[:, tried:] - sums[:, :-tried]
        of_noise = variances[:, tried:] - variances[:, :-tried]
        score = apart**2 / np.maximum(of_noise, tried * least)
        at = score.argmax(axis=1)
        top = score[np.arange(rows), at]
        is_better = top > best
        best = np.where(is_better, top, best)
        start, length = np.where(is_better, at, start), np.where(is_better, tried, length)
    return start, length


def _running_sums(values: Floats) -> Floats:
    """Return the sums from the first slot on, with a 0 before it."""
    return np.concatenate([np.zeros((len(values), 1)), np.cumsum(values, axis=1)], axis=1)
