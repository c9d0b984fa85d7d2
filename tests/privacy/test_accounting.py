"""Reports: the figures of the literature and the traps that were measured."""

from __future__ import annotations

import math
from datetime import date
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference_formulas import epsilon_by_sums, largest_fit_at

from turnstile.privacy.accounts import Loss
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.guarantees import epsilon_of
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.privacy.sensitivities import difference_of_counts, packed, records_at_most
from turnstile.privacy.units import Block
from turnstile_design.compared_designs.accounting import (
    Draw,
    epsilon_by_pld,
    largest_fit,
    optimal_pure,
    scale_for_weeks,
)

DELTA = Fraction(1, 10**6)
WEEKS = 52
ONE = records_at_most(1)


def event(noise: NoiseFamily, scale: float, threshold: int | None = None) -> DrawEvent:
    blocks = (Block(date(2016, 7, 25), "bus"),)
    return DrawEvent("t", "count", noise, Fraction(scale), blocks, (), threshold=threshold)


def laplace(scale: float, threshold: int | None = None) -> DrawEvent:
    return event(NoiseFamily.DISCRETE_LAPLACE, scale, threshold)


def gaussian(scale: float) -> DrawEvent:
    return event(NoiseFamily.DISCRETE_GAUSSIAN, scale)


@pytest.mark.parametrize(
    ("weekly", "optimal"), [("1", 49.153), ("1/2", 20.894), ("1/4", 9.148), ("1/10", 3.241)]
)
def test_a_year_by_optimal_composition_and_by_discrete_laplace_is_the_same(
    weekly: str, optimal: float
) -> None:
    exact = float(optimal_pure(Fraction(weekly), WEEKS, DELTA))
    by_pld = epsilon_by_pld([Draw(laplace(1 / float(Fraction(weekly))), ONE, WEEKS)], 1e-6)
    assert exact == pytest.approx(optimal, abs=0.001)
    assert by_pld == pytest.approx(optimal, abs=0.001)


def test_integer_noise_accounted_as_continuous_would_undercount() -> None:
    from dp_accounting.pld import privacy_loss_distribution as pld

    continuous = pld.from_laplace_mechanism(1.0).self_compose(WEEKS)
    epsilon = continuous.get_epsilon_for_delta(1e-6)
    assert epsilon == pytest.approx(42.90, abs=0.01)
    assert epsilon < float(optimal_pure(Fraction(1), WEEKS, DELTA)) - 6


def test_the_replace_mode_of_the_renyi_accountant_undercounts_and_ours_does_not() -> None:
    import dp_accounting
    from dp_accounting.rdp import RdpAccountant

    relation = dp_accounting.NeighboringRelation.REPLACE_ONE
    accountant = RdpAccountant(neighboring_relation=relation)
    accountant.compose(dp_accounting.GaussianDpEvent(1.0))
    trap = accountant.get_epsilon(1e-6)
    moved_twice = packed(4, 1)  # l2 = 2, the replace-one figure of one count
    ours = epsilon_by_pld([Draw(gaussian(1.0), moved_twice)], 1e-6)
    assert trap == pytest.approx(5.2, abs=0.3)
    assert ours == pytest.approx(10.997, abs=0.1)  # discrete, 4 cells


@pytest.mark.parametrize(("weekly", "by_pld"), [(0.5, 59.58), (0.05, 12.90), (0.01, 5.00)])
def test_a_year_of_gaussian_releases_by_loss_distributions(weekly: float, by_pld: float) -> None:
    draws = [Draw(gaussian(math.sqrt(1 / (2 * weekly))), ONE, WEEKS)]
    assert epsilon_by_pld(draws, 1e-6) == pytest.approx(by_pld, abs=0.01)


@pytest.mark.parametrize(("sigma", "target"), [(30.5, 1), (8.61, 4), (4.71, 8), (2.66, 16)])
def test_the_weekly_gaussian_noise_of_a_yearly_target(sigma: float, target: float) -> None:
    assert epsilon_by_pld([Draw(gaussian(sigma), ONE, WEEKS)], 1e-6) == pytest.approx(
        target, rel=0.002
    )


@pytest.mark.parametrize(("sd", "target"), [(43.3, 1), (11.8, 4), (6.37, 8), (3.53, 16)])
def test_the_weekly_laplace_noise_of_a_yearly_target_is_enough(sd: float, target: float) -> None:
    reached = float(optimal_pure(Fraction(math.sqrt(2) / sd), WEEKS, DELTA))
    assert 0.95 * target < reached <= 1.02 * target


@pytest.mark.parametrize(("trips", "figure"), [(4, 15.98), (10, 33.9)])
def test_the_source_noise_for_a_card_day(trips: int, figure: float) -> None:
    unit = packed(trips, 1)
    draws = [Draw(laplace(2), unit, 4), Draw(laplace(1), unit, 2)]
    assert epsilon_by_pld(draws, 1e-6) == pytest.approx(figure, abs=0.01)
    assert epsilon_by_sums(draws, DELTA) <= 4 * trips


def test_replacing_a_trip_costs_the_source_release_eight() -> None:
    unit = difference_of_counts(ONE)
    draws = [Draw(laplace(2), unit, 4), Draw(laplace(1), unit, 2)]
    assert epsilon_by_pld(draws, 1e-6) == pytest.approx(7.9998, abs=0.001)


def test_the_delta_of_a_threshold_adds_up_every_week_until_no_figure_is_left() -> None:
    weekly = laplace(2, threshold=26)  # 2.3e-6 a week
    assert epsilon_by_sums([Draw(weekly, ONE, WEEKS)], DELTA) is None
    assert math.isinf(epsilon_by_pld([Draw(weekly, ONE, WEEKS)], 1e-6))
    assert epsilon_by_sums([Draw(weekly, ONE, WEEKS)], Fraction(1, 5000)) is not None


def test_concentrating_a_shift_in_one_cell_is_the_worse_case() -> None:
    concentrated, apart = records_at_most(3), packed(3, 1)
    worse = epsilon_by_pld([Draw(laplace(2), concentrated, 2)], 1e-3)
    assert epsilon_by_pld([Draw(laplace(2), apart, 2)], 1e-3) <= worse


def test_a_gaussian_draw_that_moves_a_cell_by_more_than_one_is_left_to_the_sums() -> None:
    with pytest.raises(ValueError, match="at most 1"):
        epsilon_by_pld([Draw(gaussian(2), records_at_most(2))], 1e-6)


@given(
    st.fractions(min_value=Fraction(1, 50), max_value=3),
    st.integers(1, 60),
    st.sampled_from([Fraction(1, 10), DELTA]),
)
def test_optimal_composition_never_exceeds_the_plain_sum_or_the_zcdp_figure(
    epsilon: Fraction, number: int, delta: Fraction
) -> None:
    best = optimal_pure(epsilon, number, delta)
    assert 0 <= best <= number * epsilon + Fraction(1, 10**6)
    concentrated = epsilon_of(Loss(None, number * epsilon**2 / 2), delta)
    assert concentrated is not None
    assert best <= concentrated + Fraction(1, 10**6)


@given(
    st.fractions(min_value=Fraction(1, 100), max_value=10),
    st.fractions(min_value=Fraction(1, 10), max_value=100),
    st.integers(1, 104),
)
def test_the_largest_fit_fits_and_a_little_more_does_not(
    weekly: Fraction, cap: Fraction, weeks: int
) -> None:
    loss = Loss(weekly, weekly**2 / 2)
    factor = largest_fit(loss, Loss(None, cap), weeks)
    more = factor + Fraction(2, 10**6)
    assert weeks * factor**2 * weekly**2 / 2 <= cap < weeks * more**2 * weekly**2 / 2
    by_epsilon = largest_fit(loss, Loss(cap, None), weeks)
    assert weeks * by_epsilon * weekly <= cap


def test_the_largest_fit_under_a_shown_figure_takes_the_better_conversion() -> None:
    weekly = Loss(Fraction(1), Fraction(1, 2))
    for target in (Fraction(4), Fraction(60)):
        factor = largest_fit_at(weekly, target, DELTA, WEEKS)
        year = Loss(factor, factor**2 / 2).times(WEEKS)
        assert year.rho is not None
        shown = epsilon_of(Loss(None, year.rho), DELTA)
        assert min(shown or target, year.epsilon or target) <= target
        assert factor > target / WEEKS or target > WEEKS


def test_weekly_deltas_above_the_cap_fit_nothing() -> None:
    weekly = Loss(Fraction(1), Fraction(1, 2), Fraction(1, 10**7))
    assert largest_fit(weekly, Loss(Fraction(1000), None, DELTA), WEEKS) == 0
    with pytest.raises(ValueError, match="no scale"):
        scale_for_weeks(Fraction(2), Fraction(0))


def test_a_scale_for_weeks_never_costs_more_than_the_fit() -> None:
    scale = scale_for_weeks(Fraction(2), Fraction(1, 3))
    assert scale >= 6
    assert Fraction(float(scale)) == scale
