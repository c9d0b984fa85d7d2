"""Published estimates: tenths that add up, intervals in tenths, and what is known of their errors.

Cells are rounded along the slots of a day so that every stretch of slots keeps its sum within a
tenth; every other table is a sum of the rounded cells, so that published digits add up exactly.
Interval ends are rounded outwards. Rounded numbers are the same bytes on every machine, whichever
linear algebra made them.

A number is never negative: where the lower end of an interval is 0 nothing lies below it, and the
upper end alone leaves out what both leave out elsewhere. There counts are whole numbers of a few,
so the end lies half of one further out, less where the error is larger. `sums.py` of a package
reads errors back from the ends by that rule.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from turnstile.privacy.noise import normal_half_width, normal_reach

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LEVELS = (90, 95)
BEYOND_0 = 0.5  # of a whole count
PARTS = 10  # a published number is an integer number of tenths
_NOISE_OF_FLOATS = 1e-6


def in_tenths(cells: Floats) -> Ints:
    """Return cells as integer tenths; every stretch along the last axis keeps its sum within one.

    Examples:
        >>> in_tenths(np.array([0.04, 0.04, 0.04, 7.0])).tolist()
        [0, 1, 0, 70]
    """
    sums = np.rint(np.cumsum(cells, axis=-1) * PARTS).astype(np.int64)
    return np.diff(sums, axis=-1, prepend=0)


def interval(
    estimates: Floats, deviations: Floats, *, level: int, parts: int = PARTS, beyond: float = 0.0
) -> tuple[Floats, Floats]:
    """Return both ends of the intervals of estimates that are not negative.

    Args:
        estimates: rounded to `parts` of one.
        deviations: standard deviations of their errors; same shape.
        level: per cent.
        parts: of one, to which the ends are rounded outwards.
        beyond: how much further out an end is whose interval begins at 0.

    Examples:
        >>> found = interval(np.array([0.0, 50.0]), np.array([5.0, 5.0]), level=90, beyond=0.5)
        >>> low, high = found
        >>> low.tolist(), high.tolist()
        ([0.0, 41.7], [6.6, 58.3])
    """
    both, above = normal_half_width(deviations, level=level), normal_reach(deviations, level=level)
    above = above + beyond / np.maximum(deviations, 1)
    low = np.floor(np.maximum(estimates - both, 0) * parts + _NOISE_OF_FLOATS) / parts
    reach = np.where(low > 0, both, above)
    high = np.ceil((estimates + reach) * parts - _NOISE_OF_FLOATS) / parts
    return low, high


def error_by_size(
    variances: Floats, classes: Ints, edges: tuple[float, ...]
) -> list[dict[str, Any]]:
    """Return, for each size class, how many numbers it has and their estimated error."""
    errors = []
    bounds = (0.0, *edges)
    for number, start in enumerate(bounds):
        is_own = classes == number
        if not is_own.any():
            continue
        end = edges[number] if number < len(edges) else None
        errors.append(
            {
                "from": start,
                "below": end,
                "numbers": int(is_own.sum()),
                "rmse_estimated": round(float(np.sqrt(variances[is_own].mean())), 2),
                "intervals_shown": True,
            }
        )
    return errors
