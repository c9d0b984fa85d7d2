"""Bus-days of cells: what is said of them in made cities of empty and of busy places."""

from __future__ import annotations

import numpy as np
from estimate_weeks import Floats, dice

from turnstile.estimates.vehicles.bus_counts import BusDays, bus_days

PLACES, HOURS, NOISE = 120, 24, 10.0


def made(seed: int, *, places: int = PLACES) -> tuple[Floats, Floats]:
    """Bus-days of a city of which a third has no bus at all, and as drawn."""
    coins = dice(seed)
    rates = np.where(coins.random(places) < 1 / 3, 0, 8 * np.exp(coins.standard_normal(places)))
    profile = 1 + 0.8 * np.sin(np.linspace(0, 2 * np.pi, HOURS))
    truth = coins.poisson(rates[:, None] * profile * coins.gamma(4, 1 / 4, (places, HOURS)))
    return truth.astype(float), truth + NOISE * coins.standard_normal(truth.shape)


def held(estimate: BusDays, truth: Floats) -> Floats:
    return np.abs(estimate.mean - truth) <= 1.645 * estimate.variance**0.5 + 0.5


def test_nine_of_ten_intervals_hold_all_together_and_of_estimates_of_five_and_more() -> None:
    truth, drawn = made(1)
    estimate = bus_days(drawn, NOISE)
    assert 0.88 <= held(estimate, truth).mean() <= 0.99
    assert held(estimate, truth)[estimate.mean >= 5].mean() >= 0.85
    assert np.sqrt(np.mean((estimate.mean - truth) ** 2)) < NOISE / 2
    # The negative control: what was drawn, clipped at 0, with its noise.
    assert np.sqrt(np.mean((np.maximum(drawn, 0) - truth) ** 2)) > 0.6 * NOISE


def test_cells_that_are_called_occupied_are() -> None:
    empty, said, sure = 0, 0.0, 0
    for seed in range(6):
        truth, drawn = made(seed)
        estimate = bus_days(drawn, NOISE)
        is_sure = estimate.empty < 0.02
        sure += int(is_sure.sum())
        empty += int((truth[is_sure] == 0).sum())
        said += float(estimate.empty[is_sure].sum())
    assert sure > 1000
    assert empty <= 3 * said + 3
    # Where nothing is there, nothing is sure; a place of noise alone is called unserved.
    none = bus_days(NOISE * dice(7).standard_normal((PLACES, HOURS)), NOISE)
    assert none.empty.min() > 0.02
    assert np.median(none.unserved) > 0.9
    assert none.mean.sum() < 0.02 * NOISE * none.mean.size


def test_earlier_weeks_help_and_a_line_that_closed_is_not_kept_alive_by_them() -> None:
    truth, drawn = made(3)
    coins = dice(30)
    before = np.mean([truth + NOISE * coins.standard_normal(truth.shape) for _ in range(4)], axis=0)
    usual = bus_days(before, NOISE / 2)
    alone, with_history = bus_days(drawn, NOISE), bus_days(drawn, NOISE, usual)
    errors = [np.mean((estimate.mean - truth) ** 2) for estimate in (alone, with_history)]
    assert errors[1] < 0.8 * errors[0]
    busiest = int(truth.sum(axis=1).argmax())
    closed = drawn.copy()
    closed[busiest] = NOISE * coins.standard_normal(HOURS)
    after = bus_days(closed, NOISE, usual)
    assert after.mean[busiest].sum() < 0.05 * truth[busiest].sum()
    others = np.arange(PLACES) != busiest
    assert np.mean((after.mean - truth)[others] ** 2) < 0.85 * errors[0]


def test_the_same_numbers_make_the_same_whatever_the_order_of_places() -> None:
    _, drawn = made(4, places=30)
    order = dice(5).permutation(30)
    estimate, other = bus_days(drawn, NOISE), bus_days(drawn[order], NOISE)
    np.testing.assert_allclose(estimate.mean[order], other.mean, rtol=1e-6, atol=1e-9)
