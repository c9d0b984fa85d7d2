"""Guarantees: replace figures and conversions, against the figures of the literature."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnstile.privacy.guarantees import (
    ApproxDp,
    PureDp,
    Zcdp,
    epsilon_shown,
    epsilon_simple,
    epsilon_tight,
    rho_for,
)

DELTA = Fraction(1, 10**6)


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


@given(
    st.fractions(min_value=Fraction(1, 10**4), max_value=50),
    st.sampled_from([Fraction(1, 10**3), DELTA, Fraction(1, 10**12)]),
)
def test_the_tight_conversion_is_never_above_the_simple_one(rho: Fraction, delta: Fraction) -> None:
    assert 0 <= epsilon_tight(Zcdp(rho), delta) <= epsilon_simple(Zcdp(rho), delta)


@given(st.floats(min_value=0.01, max_value=20), st.floats(min_value=1.001, max_value=200))
def test_no_order_gives_a_smaller_bound_than_the_tight_conversion(rho: float, alpha: float) -> None:
    delta = 1e-6
    bound = alpha * rho + (-math.log(delta) - math.log(alpha)) / (alpha - 1)
    bound += math.log1p(-1 / alpha)
    assert float(epsilon_tight(Zcdp(Fraction(rho)), Fraction(delta))) <= bound + 2e-6


def test_the_figure_shown_is_the_smaller_of_the_two_conversions() -> None:
    few, many = Fraction(1), Fraction(1, 10)
    assert epsilon_shown(PureDp(52 * few), Zcdp(26 * few**2), DELTA) == 52
    assert float(epsilon_shown(PureDp(52 * many), Zcdp(26 * many**2), DELTA)) < 3.7


def test_delta_used_up_by_thresholds_leaves_no_figure() -> None:
    used = Fraction(2, 10**6)
    assert epsilon_shown(ApproxDp(Fraction(4), used), Zcdp(Fraction(8), used), DELTA) is None
    left = Fraction(1, 10**7)
    assert epsilon_shown(ApproxDp(Fraction(4), left), Zcdp(Fraction(8), left), DELTA) == 4


def test_a_delta_outside_zero_and_one_is_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        epsilon_tight(Zcdp(Fraction(1)), Fraction(0))


def test_replace_figures_follow_group_privacy_of_two() -> None:
    assert PureDp(Fraction(4)).replaced() == PureDp(Fraction(8))
    assert Zcdp(Fraction(1)).replaced() == Zcdp(Fraction(4))
    grown = ApproxDp(Fraction(1), DELTA).replaced()
    assert grown.epsilon == 2
    assert float(grown.delta) == pytest.approx((1 + math.e) * 1e-6)


@given(st.fractions(min_value=Fraction(1, 10), max_value=20))
def test_the_rho_for_a_target_meets_it_and_one_step_more_does_not(target: Fraction) -> None:
    rho = rho_for(target, DELTA)
    assert epsilon_tight(Zcdp(rho), DELTA) <= target
    assert epsilon_tight(Zcdp(rho + Fraction(1, 10**6)), DELTA) > target - Fraction(1, 10**4)
