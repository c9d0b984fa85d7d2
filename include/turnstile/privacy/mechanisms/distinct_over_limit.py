"""Numbers of distinct buses a day whose top speed in a cell passes a limit.

ITMS query 2: one integer table for each limit, drawn by `dense`. A bus counts once a day in each of
at most K cells, so a bus-day moves each table like a count of distinct cells. Averages over days
are post-processing. Proof: distinct_over_limit.proof.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MILLI = 1000


def over_limit(speed_max_milli: NDArray[np.int64], limit_kmh: int) -> NDArray[np.int64]:
    """Return 1 for each bus-day and cell whose greatest speed is above the limit, else 0.

    Examples:
        >>> over_limit(np.array([40_000, 40_001]), 40).tolist()
        [0, 1]
    """
    return (speed_max_milli > limit_kmh * _MILLI).astype(np.int64)
