"""Places whose level broke are not drawn towards what they were."""

from __future__ import annotations

import numpy as np
import pytest
from changed_places import AT_MOST, CHANGES, changed
from estimate_weeks import Floats, Noise, dice, made_rates, made_week

from turnstile.estimates.fitting import cell_fits
from turnstile.estimates.fitting.level_breaks import chances_of_breaks, without_breaks

RATES = 3 * made_rates(80)
NOISE = Noise(33.2, None)
CLOSED, NEW = 7, 11


def test_changed_places_err_no_more_than_without_history(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = changed(RATES, NOISE, CHANGES[0])
    assert max(errors.cells, errors.hours, errors.days) <= AT_MOST
    assert errors.others < 1
    monkeypatch.setattr(cell_fits, "without_breaks", lambda weeks, _: weeks)
    assert changed(RATES, NOISE, CHANGES[0]).cells > 1.1 > AT_MOST


def test_a_break_is_found_in_its_week_and_places_that_did_not_change_stay() -> None:
    coins = dice(5)
    levels = np.full((9, 200), 10.0) + coins.standard_normal((9, 200))
    levels[3:, CLOSED] = 40  # three weeks ago
    levels[1:, NEW] = 0.0
    chances, times = chances_of_breaks(levels, np.ones(9))
    assert chances[3, CLOSED] > 0.99
    assert times[3, CLOSED] == pytest.approx(0.25, rel=0.1)
    assert chances[1, NEW] > 0.99
    assert (chances[0] == 0).all()
    assert chances.sum(axis=0).max() <= 1 + 1e-12
    moved = np.abs((chances * (times - 1)).sum(axis=0))  # of a level with noise of a tenth
    assert np.delete(moved, [CLOSED, NEW]).mean() < 0.05


def test_the_more_a_level_stands_out_of_its_noise_the_likelier_is_a_break() -> None:
    levels = np.repeat([[4.0], [10.0]], [1, 8], axis=0)  # to 40 % this week
    chances = [chances_of_breaks(levels, np.full(9, sd**2))[0][1, 0] for sd in (0.5, 2, 4, 16)]
    assert chances == sorted(chances, reverse=True)
    assert chances[0] > 0.99
    assert chances[-1] < 0.2


def test_older_weeks_are_brought_to_the_present_level_whatever_days_were_gaps() -> None:
    coins = dice(6)
    rates = RATES.copy()
    now = rates.copy()
    now[CLOSED] *= 0.2
    rates[NEW] = 0
    weeks = np.stack([made_week(coins, rates) for _ in range(4)])
    deviations = np.full((4, 7), 5.0)
    deviations[1, 2] = np.inf
    weeks[1, :, 2] = 0
    adjusted_weeks = _adjusted(made_week(coins, now), weeks, deviations)
    for place in (CLOSED, NEW):
        assert adjusted_weeks[0, place].sum() == pytest.approx(now[place].sum(), rel=0.25)
    same = made_week(coins, rates)
    sums = [array.sum(axis=(0, 2, 3)) for array in (weeks, _adjusted(same, weeks, deviations))]
    stayed = np.delete(np.arange(len(rates)), NEW)
    assert sums[1][stayed] == pytest.approx(sums[0][stayed], rel=0.2)


def _adjusted(values: Floats, weeks: Floats, deviations: Floats) -> Floats:
    """Return earlier weeks as a week of the same noise makes them."""
    of_days = np.concatenate([np.full((1, values.shape[1]), 5.0), deviations])
    return without_breaks(np.concatenate([values[None], weeks]), of_days)[1:]


def test_a_week_that_is_a_gap_on_all_of_these_days_breaks_nothing() -> None:
    coins = dice(8)
    weeks = np.stack([made_week(coins, RATES[:, :1]) for _ in range(4)])
    deviations = np.full((4, 1), 5.0)
    deviations[0] = np.inf
    weeks[0] = 0
    adjusted = _adjusted(made_week(coins, RATES[:, :1]), weeks, deviations)
    assert (adjusted[0] == 0).all()
    assert adjusted[1:].sum() == pytest.approx(weeks[1:].sum(), rel=0.1)


def test_weeks_without_anything_above_zero_break_nothing() -> None:
    """A closed mode of one slot: noise alone, all of it below zero."""
    levels, variances = -np.ones((4, 3)), np.zeros(4)
    chances, times = chances_of_breaks(levels, variances)
    assert not chances.any()
    assert np.isfinite(times).all()
