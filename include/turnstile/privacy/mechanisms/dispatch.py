"""One door to every mechanism: the event alone decides how its table is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnstile.privacy.mechanisms import dense, stability_histogram

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from turnstile.privacy.events import DrawEvent


def draw(event: DrawEvent, exact: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the drawn table: thresholded if the event has a threshold, dense if not.

    Args:
        event: the draw; every call draws anew and costs its loss again (PRIVACY 6.1).
        exact: counts or fixed-point sums, any shape, int64.
    """
    if event.threshold is None:
        return dense.draw(event, exact)
    return stability_histogram.draw(event, exact)
