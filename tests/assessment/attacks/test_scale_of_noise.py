"""Scales recovered from pairs, totals and numbers below zero."""

from __future__ import annotations

import math

import numpy as np
import pytest
from reference_formulas import difference_density

from turnstile.privacy.noise import Term, integer_pmf
from turnstile.privacy.noise_families import NoiseFamily
from turnstile_lab.baselines import discrete_laplace, naive_laplace, uniforms
from turnstile_lab.scale_of_noise import (
    from_negatives,
    negatives_p_value,
)
from turnstile_lab.scale_of_pairs import from_pairs, from_residuals


def rounded(label: str, number: int, scale: float) -> np.ndarray:
    """Rounded Laplace noise."""
    return np.rint(naive_laplace(label, number, scale)).astype(np.int64)


@pytest.mark.parametrize("scale", [1.0, 1.4, 2.0])
def test_the_scale_of_pairs_lies_in_its_interval(scale: float) -> None:
    difference = rounded("on", 2_000, scale) - rounded("off", 2_000, scale)
    estimate = from_pairs(difference, confidence=0.999)
    assert estimate.holds(scale)
    assert not estimate.holds(1.2 * scale)
    assert not estimate.holds(scale / 1.2)


def test_pairs_that_are_no_pairs_do_not_spoil_the_scale() -> None:
    difference = rounded("on", 400, 1.4) - rounded("off", 400, 1.4)
    difference[:12] = [40, -25, 33, 18, -60, 21, 90, -19, 44, 27, -31, 55]
    assert from_pairs(difference, confidence=0.999).holds(1.4)


def test_two_hundred_pairs_give_about_seven_percent() -> None:
    difference = rounded("on", 200, 1.0) - rounded("off", 200, 1.0)
    estimate = from_pairs(difference)
    assert 0.08 < (estimate.high - estimate.low) / 2 < 0.25


def test_totals_with_all_their_parts_give_the_scale_of_the_parts() -> None:
    groups, parts = 400, 12
    sums = sum(rounded(f"part {n}", groups, 1.4) for n in range(parts))
    equal = rounded("total", groups, 1.4) - sums
    terms = np.full(groups, parts + 1)
    assert from_residuals(equal, terms, confidence=0.999).holds(1.4)
    assert not from_residuals(equal, terms, confidence=0.999).holds(2.0)


def test_numbers_below_zero_give_the_scale_whatever_the_counts_are() -> None:
    for label, most in (("empty", 1), ("busy", 6)):
        raw = np.floor(uniforms(label, 50_000) * most).astype(np.int64)
        noisy = raw + discrete_laplace(f"noise {label}", 50_000, 4.0)
        estimate = from_negatives(noisy, confidence=0.99999)
        assert estimate is not None
        assert estimate.holds(4.0)
        assert not estimate.holds(3.6)
        assert negatives_p_value(noisy, 4.0) > 1e-9
        assert negatives_p_value(noisy, 2.0) < 1e-9


def test_without_numbers_below_zero_nothing_is_claimed() -> None:
    assert from_negatives(np.array([3, 4])) is None
    assert negatives_p_value(np.array([3, 4]), 1.0) == 1.0


def test_no_differences_are_no_estimate() -> None:
    with pytest.raises(ValueError, match="no differences"):
        from_pairs(np.array([], dtype=np.int64))


def test_the_density_of_a_difference_is_that_of_the_exact_distribution() -> None:
    grid = np.linspace(-60, 60, 240_001)
    density = np.array([difference_density(float(u), 1.4) for u in grid])
    assert float(np.trapezoid(density, grid)) == pytest.approx(1, abs=1e-6)
    _, whole = integer_pmf([Term(NoiseFamily.DISCRETE_LAPLACE, 50.0, 2)])
    assert whole[whole.size // 2] == pytest.approx(difference_density(0, 50.0), rel=1e-3)
    assert not math.isclose(whole[whole.size // 2], difference_density(0, 45.0), rel_tol=1e-2)
