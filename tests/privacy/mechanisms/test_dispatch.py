"""The event alone decides how a table is drawn."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from turnstile.privacy.events import DrawEvent
from turnstile.privacy.mechanisms.dispatch import draw
from turnstile.privacy.noise_families import NoiseFamily


def event(threshold: int | None) -> DrawEvent:
    family = NoiseFamily.DISCRETE_LAPLACE
    return DrawEvent("t", "count", family, Fraction(5), (), (), threshold=threshold)


def test_a_threshold_leaves_empty_cells_at_zero() -> None:
    assert not draw(event(9), np.zeros(500, dtype=np.int64)).any()


def test_without_a_threshold_empty_cells_get_noise() -> None:
    assert draw(event(None), np.zeros(500, dtype=np.int64)).any()
