"""Published half-widths hold what they promise, for the exact distribution of the noise."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from turnstile.estimates.error_bars import error_bar
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.noise import noise_pmf
from turnstile.privacy.noise_families import NoiseFamily


def outside(event: DrawEvent, half_width: int) -> float:
    values, probabilities = noise_pmf(event.noise, event.scale, reach=3000)
    return float(probabilities[np.abs(values) > half_width].sum())


@pytest.mark.parametrize("scale", ["1/2", "1", "2", "4", "30"])
@pytest.mark.parametrize("noise", list(NoiseFamily))
def test_half_widths_are_the_smallest_that_cover(noise: NoiseFamily, scale: str) -> None:
    event = DrawEvent("t", "count", noise, Fraction(scale), (), ())
    bar = error_bar(event)
    for half_width, level in ((bar.half_width_90, 0.10), (bar.half_width_95, 0.05)):
        assert outside(event, half_width) <= level
        if half_width:
            assert outside(event, half_width - 1) > level  # one less would promise too much
