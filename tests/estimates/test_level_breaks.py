"""Places whose level broke are not drawn towards what they were."""

from __future__ import annotations

import numpy as np
import pytest
from changed_places import AT_MOST, changed
from estimate_weeks import Noise, dice, made_rates, made_week

from turnstile.estimates.fitting import cell_fits
from turnstile.estimates.fitting.level_breaks import recent_weeks, without_breaks

RATES = 3 * made_rates(80)
NOISE = Noise(33.2, None)
CLOSED, NEW = 7, 11


def test_changed_places_err_no_more_than_without_history(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = changed(RATES, NOISE, 0.15, 0)
    assert max(errors.cells, errors.hours) <= AT_MOST
    assert errors.others < 1
    monkeypatch.setattr(cell_fits, "without_breaks", lambda *_: None)
    assert changed(RATES, NOISE, 0.15, 0).cells > 1.1 > AT_MOST


def test_a_break_is_found_in_its_week_and_nothing_else_is() -> None:
    coins = dice(5)
    levels = np.full((9, 200), 10.0) + coins.standard_normal((9, 200))
    levels[3:, CLOSED] = 40  # three weeks ago
    recent = recent_weeks(levels, np.ones(9))
    assert recent[CLOSED] == 3
    # of 199 places, each broken by noise with a chance of about 1 in 50: 1e-9 is beyond 22
    assert (np.delete(recent, CLOSED) < 9).sum() <= 22


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
    adjusted_weeks = without_breaks(made_week(coins, now), 5.0, weeks, deviations)
    assert adjusted_weeks is not None
    for place in (CLOSED, NEW):
        assert adjusted_weeks[0, place].sum() == pytest.approx(now[place].sum(), rel=0.25)
    assert (adjusted_weeks[0, 0] == weeks[0, 0]).all()
    same = made_week(coins, rates)
    kept = without_breaks(same, 5.0, weeks, deviations)
    assert kept is None or (kept == weeks).all(axis=(0, 2, 3)).mean() > 0.9
