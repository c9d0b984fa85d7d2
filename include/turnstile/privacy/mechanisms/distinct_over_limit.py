"""Numbers of distinct buses a day whose top speed in a cell passes a limit.

ITMS query 2: one integer table for each limit, drawn by `dense`. A bus counts once a day in each of
at most K cells, so a bus-day moves each table like a count of distinct cells. Proof:
distinct_over_limit.proof.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from turnstile.privacy.sensitivities import cells_at_most

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from turnstile.privacy.events import Sensitivity


def over_sensitivity(cells_max: int) -> Sensitivity:
    """Return how far a bus-day of at most so many cells moves the table of one limit.

    Examples:
        >>> over_sensitivity(4)
        Sensitivity(l0=4, l1=4, l2_squared=4, linf=1)
    """
    return cells_at_most(cells_max)


def buses_over_per_day(noisy: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the average number of buses a day over the limit, for each cell; not clipped.

    Args:
        noisy: drawn tables of one limit, shape (days, cells...), every day of the period.
    """
    averages: NDArray[np.float64] = noisy.mean(axis=0, dtype=np.float64)
    return averages


def buses_over_sd(scale_sd: float, days: int) -> float:
    """Return the standard deviation that the noise gives an average over so many days, in buses."""
    return float(scale_sd / np.sqrt(days))
