"""The card's word on sparse data: cells above their noise, from noisy numbers and noise alone."""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from turnstile.estimates.error_bars import error_bar
from turnstile.estimates.fitting.above_noise import cells_above_noise
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.noise import noise_pmf
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.release.drawn import Drawn
from turnstile.release.sealed import Artefact, NoisyTable

MONDAY, TUESDAY = date(2016, 7, 25), date(2016, 7, 26)


def line(noise: NoiseFamily, *vectors: tuple[date, list[int]], gap: bool = False) -> dict[str, Any]:
    event = DrawEvent("t", "count", noise, Fraction(4), (), ())
    tables = tuple(NoisyTable("t", "count", day, np.array(values)) for day, values in vectors)
    artefact = Artefact(tables, (TUESDAY,) if gap else ())
    drawn = SimpleNamespace(events=(event, event), artefact=artefact)
    (figures,) = cells_above_noise(cast("Drawn", drawn))
    return figures


@pytest.mark.parametrize("noise", list(NoiseFamily))
def test_a_cell_is_above_its_noise_beyond_the_half_width_and_not_at_it(noise: NoiseFamily) -> None:
    limit = error_bar(DrawEvent("t", "count", noise, Fraction(4), (), ())).half_width_95
    figures = line(noise, (MONDAY, [limit, limit + 1, -limit - 1, 0]), (TUESDAY, [limit + 5] * 4))
    assert (figures["above"], figures["cells"]) == (5, 8)


def test_days_that_are_gaps_are_left_out() -> None:
    vectors = ((MONDAY, [0, 99]), (TUESDAY, [99, 99]))
    assert line(NoiseFamily.DISCRETE_LAPLACE, *vectors, gap=True)["above"] == 1
    assert line(NoiseFamily.DISCRETE_LAPLACE, *vectors)["above"] == 3


@pytest.mark.parametrize("noise", list(NoiseFamily))
@pytest.mark.parametrize("scale", ["1/2", "1", "4", "30"])
def test_noise_alone_lifts_no_more_cells_than_is_said(noise: NoiseFamily, scale: str) -> None:
    event = DrawEvent("t", "count", noise, Fraction(scale), (), ())
    values, probabilities = noise_pmf(noise, event.scale, reach=3000)
    assert probabilities[values > error_bar(event).half_width_95].sum() <= 0.025
    figures = line(noise, (MONDAY, [0] * 1000))
    assert figures["by_noise_at_most"] == 25
