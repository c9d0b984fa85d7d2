"""No hostile week makes estimates worse than clipped numbers by more than the dictionary says."""

from __future__ import annotations

import numpy as np
import pytest
from estimate_weeks import OPAL, Floats, dice, made_rates, made_week, week_of
from hostile_weeks import EARLIER_WEEKS, TABLE_LIMIT, Harm, Scenario, scenarios

from turnstile.estimates.fitting import cell_fits
from turnstile.estimates.trips import tap_estimates
from turnstile.estimates.trips.trip_weeks import taps_by_mode

SEED = 15
SCENARIOS = list(scenarios(made_rates(), dice(SEED)))


@pytest.fixture(autouse=True)
def _unshaken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make no estimates of shaken numbers, of which errors are told; a third of the time."""
    monkeypatch.setattr(tap_estimates, "SHAKEN", 0)


def errors_over_clipped(scenario: Scenario) -> tuple[float, float]:
    """RMSE over that of clipped numbers: of the table, of the affected cells."""
    coins = dice(SEED)
    truth = made_week(coins, scenario.rates)
    gap = [scenario.gap] if scenario.gap is not None else []
    week = week_of(
        coins,
        truth,
        [made_week(coins, rates) for rates in scenario.earlier],
        OPAL,
        earlier_noise=scenario.noises,
        earlier_gaps=[gap if n % 2 else [] for n in range(EARLIER_WEEKS)],
    )
    (taps,) = taps_by_mode(week)
    estimate = tap_estimates.estimated(taps.numbers, taps.looks, taps.earlier).numbers
    errors, clipped = estimate.cells - truth, np.maximum(taps.numbers.cells, 0) - truth
    affected = scenario.affected
    return over(errors, clipped), over(errors[affected], clipped[affected])


def over(errors: Floats, other: Floats) -> float:
    return float(np.sqrt(np.mean(errors**2) / np.mean(other**2)))


@pytest.mark.some(4)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_hostile_week_does_at_most_the_stated_harm(scenario: Scenario) -> None:
    table, affected = errors_over_clipped(scenario)
    assert table <= TABLE_LIMIT
    assert affected <= scenario.harm.value


def test_there_are_fourteen_of_them_and_bursts() -> None:
    assert len(SCENARIOS) == 15
    assert {scenario.harm for scenario in SCENARIOS} == set(Harm)


def test_without_the_guard_some_week_does_more_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_fits, "guarded", lambda _values, fitted, _variance: fitted)
    (suspect,) = (known for known in SCENARIOS if known.name == "events of five hours")
    assert errors_over_clipped(suspect)[1] > suspect.harm.value
