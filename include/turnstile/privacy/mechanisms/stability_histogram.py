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
