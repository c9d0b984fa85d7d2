"""Stability-based histograms: noise on occupied cells, released from a threshold on.

Scale and threshold come from `thresholds`. Proof: stability_histogram.proof.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from turnstile.privacy.mechanisms import dense

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from turnstile.privacy.events import DrawEvent


def draw(event: DrawEvent, exact: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the released counts: noisy where occupied and at least the threshold, 0 elsewhere.

    Every cell of the public domain is drawn, and the empty ones dropped afterwards, so that the
    time a draw takes does not reveal how many are occupied.

    Args:
        event: a thresholded draw.
        exact: counts, any shape, int64, >= 0.

    Raises:
        ValueError: the event has no threshold, or a count is negative.
    """
    if event.threshold is None:
        raise ValueError("a dense event is drawn by dense, not here")
    if exact.size and exact.min() < 0:
        raise ValueError("a stability histogram is drawn from counts, which are not negative")
    noisy = dense.noised(event, exact)
    return np.where((exact > 0) & (noisy >= event.threshold), noisy, np.int64(0))


def synthetic_rows(released: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the source's output form: `a_x` copies of the number of each released cell x.

    The order is that of the cells in the public domain, whatever the data.

    Args:
        released: counts >= 0, any shape; cells are numbered in row-major order.

    Raises:
        ValueError: a count is negative, so this is no stability histogram.

    Examples:
        >>> synthetic_rows(np.array([0, 2, 0, 3])).tolist()
        [1, 1, 3, 3, 3]
    """
    flat = released.ravel()
    if flat.size and flat.min() < 0:
        raise ValueError("synthetic rows are made from a thresholded table, which has no negatives")
    return np.repeat(np.arange(flat.size, dtype=np.int64), flat)
