"""Guarantees: replace figures and conversions, against the figures of the literature."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnstile.privacy.accounts import UNBOUNDED, Loss
from turnstile.privacy.guarantees import (
    SHOWN_AT_DELTA as DELTA,
)
from turnstile.privacy.guarantees import (
    Zcdp,
    epsilon_of,
    epsilon_tight,
    rho_for,
)


@pytest.mark.parametrize(
    ("weekly", "shown"), [("1", 62.3), ("1/2", 24.3), ("1/4", 10.33), ("1/10", 3.62)]
)
def test_a_year_of_weekly_laplace_releases_by_zcdp(weekly: str, shown: float) -> None:
    rho = 52 * Fraction(weekly) ** 2 / 2
    assert float(epsilon_tight(Zcdp(rho), DELTA)) == pytest.approx(shown, abs=0.02)


@pytest.mark.parametrize(("weekly", "shown"), [("1/2", 62.28), ("1/20", 13.70), ("1/100", 5.34)])
def test_a_year_of_weekly_gaussian_releases_by_zcdp(weekly: str, shown: float) -> None:
    rho = 52 * Fraction(weekly)
    assert float(epsilon_tight(Zcdp(rho), DELTA)) == pytest.approx(shown, abs=0.005)


def simple(rho: Fraction, delta: Fraction) -> float:
    """Bun & Steinke 2016, Proposition 1.3: the bound of one order, so never below the tight one."""
    return float(rho) + 2 * math.sqrt(float(rho) * -math.log(delta))


@given(
    st.fractions(min_value=Fraction(1, 10**9), max_value=10**9),
    st.sampled_from([Fraction(1, 10**3), DELTA, Fraction(1, 10**12)]),
)
def test_the_tight_conversion_is_never_above_the_simple_one(rho: Fraction, delta: Fraction) -> None:
    most = simple(rho, delta)
    assert 0 <= epsilon_tight(Zcdp(rho), delta) <= most * (1 + 1e-12) + 1e-6


@given(st.floats(min_value=0.01, max_value=20), st.floats(min_value=1.001, max_value=200))
def test_no_order_gives_a_smaller_bound_than_the_tight_conversion(rho: float, alpha: float) -> None:
    delta = 1e-6
    bound = alpha * rho + (-math.log(delta) - math.log(alpha)) / (alpha - 1)
    bound += math.log1p(-1 / alpha)
    assert float(epsilon_tight(Zcdp(Fraction(rho)), Fraction(delta))) <= bound + 2e-6


def test_the_figure_shown_is_the_smaller_of_the_two_conversions() -> None:
    few, many = Fraction(1), Fraction(1, 10)
    assert epsilon_of(Loss(52 * few, 26 * few**2)) == 52
    assert float(epsilon_of(Loss(52 * many, 26 * many**2))) < 3.7
    assert epsilon_of(Loss(Fraction(1, 3), None)) == Fraction(333_334, 10**6)  # rounded up


def test_delta_used_up_by_thresholds_leaves_no_figure() -> None:
    for used, shown in ((2 * DELTA, None), (DELTA, 4), (DELTA / 10, 4)):
        assert epsilon_of(Loss(Fraction(4), Fraction(8), used)) == shown
    assert epsilon_of(UNBOUNDED) is None
    assert epsilon_of(Loss(None, Fraction(8), DELTA)) is None


def test_a_delta_outside_zero_and_one_is_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        epsilon_tight(Zcdp(Fraction(1)), Fraction(0))


@given(st.fractions(min_value=Fraction(1, 10), max_value=20))
def test_the_rho_for_a_target_meets_it_and_one_step_more_does_not(target: Fraction) -> None:
    rho = rho_for(target, DELTA)
    assert epsilon_tight(Zcdp(rho), DELTA) <= target
    assert epsilon_tight(Zcdp(rho + Fraction(1, 10**6)), DELTA) > target - Fraction(1, 10**4)
