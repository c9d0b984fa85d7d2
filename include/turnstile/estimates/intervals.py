"""Published estimates: tenths that add up, intervals in tenths, and what is known of their errors.

Cells are rounded along the slots of a day so that every stretch of slots keeps its sum within a
tenth; every other table is a sum of the rounded cells, so that published digits add up exactly.
Interval ends are rounded outwards. Rounded numbers are the same bytes on every machine, whichever
linear algebra made them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from turnstile.privacy.noise_sums import normal_half_width

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
LEVELS = (90, 95)
PARTS = 10  # a published number is an integer number of tenths
_NOISE_OF_FLOATS = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Interval:
    """Ends of the intervals of some estimates at one level; not a number where one is withheld."""

    low: Floats
    high: Floats


def in_tenths(cells: Floats) -> Ints:
    """Return cells as integer tenths; every stretch along the last axis keeps its sum within one.

    Examples:
        >>> in_tenths(np.array([0.04, 0.04, 0.04, 7.0])).tolist()
        [0, 1, 0, 70]
    """
    sums = np.rint(np.cumsum(cells, axis=-1) * PARTS).astype(np.int64)
    return np.diff(sums, axis=-1, prepend=0)


def interval(estimates: Floats, variances: Floats, is_shown: Bools, *, level: int) -> Interval:
    """Return the intervals of estimates that are not negative.

    Args:
        estimates: tenths.
        variances: of their errors; same shape.
        is_shown: False where the interval is withheld.
        level: per cent.
    """
    half = normal_half_width(np.sqrt(variances), level=level)
    low = np.floor(np.maximum(estimates - half, 0) * PARTS + _NOISE_OF_FLOATS) / PARTS
    high = np.ceil((estimates + half) * PARTS - _NOISE_OF_FLOATS) / PARTS
    return Interval(np.where(is_shown, low, np.nan), np.where(is_shown, high, np.nan))


def error_by_size(
    variances: Floats, classes: Ints, edges: tuple[float, ...], is_shown: Bools
) -> list[dict[str, Any]]:
    """Return, for each size class, how many numbers it has and their estimated error."""
    found = []
    bounds = (0.0, *edges)
    for number, start in enumerate(bounds):
        is_own = classes == number
        if not is_own.any():
            continue
        end = edges[number] if number < len(edges) else None
        found.append(
            {
                "from": start,
                "below": end,
                "numbers": int(is_own.sum()),
                "rmse_estimated": round(float(np.sqrt(variances[is_own].mean())), 2),
                "intervals_shown": bool(is_shown[is_own].all()),
            }
        )
    return found
