"""One door to every mechanism: the event alone decides how its table is drawn."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

from turnstile.privacy.mechanisms.registry import module_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from turnstile.privacy.events import DrawEvent


def draw(event: DrawEvent, exact: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the drawn table, by the module of the event's mechanism.

    Args:
        event: the draw; every call draws anew and costs its loss again (PRIVACY 6.1).
        exact: counts or fixed-point sums, any shape, int64.
    """
    module = import_module(f"turnstile.privacy.mechanisms.{module_of(event)}")
    return np.asarray(module.draw(event, exact), dtype=np.int64)
