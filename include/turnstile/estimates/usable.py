"""How much of a table can be used: numbers whose 90 % interval lies within a fifth of the value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
WITHIN = 0.2  # of the value, on either side
MOSTLY = 0.9  # of what is counted: a table that can be used


@dataclass(frozen=True, slots=True)
class Usable:
    """Shares of the numbers of a table that can be used, and of what all of them count."""

    numbers: float
    counted: float


def usable(values: Floats, low: Floats, high: Floats) -> Usable:
    """Return how much of a table can be used; numbers that are not there are left out.

    Args:
        values: >= 0; not a number on a gap.
        low: lower ends of 90 % intervals, same shape.
        high: upper ends.

    Examples:
        >>> usable(np.array([10.0, 90.0]), np.array([5.0, 80.0]), np.array([15.0, 100.0]))
        Usable(numbers=0.5, counted=0.9)
    """
    is_there = ~np.isnan(values)
    own = values[is_there]
    reach = np.maximum(high[is_there] - own, own - low[is_there])
    is_usable = (own > 0) & (reach <= WITHIN * own)
    if not own.sum():
        return Usable(0.0, 0.0)
    return Usable(float(is_usable.mean()), float(own[is_usable].sum() / own.sum()))
