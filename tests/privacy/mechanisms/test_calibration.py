"""Scales: exact float64s that never cost more than the loss they were made for."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnstile.privacy.mechanisms.calibration import gaussian_scale, laplace_scale

LOSSES = st.fractions(min_value=Fraction(1, 10**12), max_value=10**6).filter(lambda loss: loss > 0)
GRID = Fraction(1, 2**20)


@given(LOSSES, st.integers(1, 10**6))
def test_a_laplace_scale_never_costs_more_than_claimed(loss: Fraction, l1: int) -> None:
    scale = laplace_scale(loss, l1)
    assert l1 / scale <= loss
    assert Fraction(float(scale)) == scale


@given(LOSSES, st.integers(1, 10**9))
def test_a_gaussian_scale_never_costs_more_than_claimed(rho: Fraction, squared: int) -> None:
    scale = gaussian_scale(rho, squared)
    assert squared / (2 * scale**2) <= rho
    assert Fraction(float(scale)) == scale


@given(st.fractions(min_value=Fraction(1, 100), max_value=50), st.integers(1, 100))
def test_one_grid_step_less_would_cost_too_much(loss: Fraction, bound: int) -> None:
    laplace, gaussian = laplace_scale(loss, bound), gaussian_scale(loss, bound)
    assert laplace == GRID or bound / (laplace - GRID) > loss
    assert gaussian == GRID or bound / (2 * (gaussian - GRID) ** 2) > loss


@pytest.mark.parametrize("calibrate", [laplace_scale, gaussian_scale])
def test_a_loss_of_nothing_has_no_scale(calibrate: object) -> None:
    with pytest.raises(ValueError, match="positive"):
        calibrate(Fraction(0), 1)  # type: ignore[operator]
