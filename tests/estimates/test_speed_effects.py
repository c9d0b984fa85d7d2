"""Effects of place and hour against an oracle: the posterior of a dense normal model."""

from __future__ import annotations

import numpy as np
import pytest
from estimate_weeks import dice

from turnstile.estimates import speed_effects
from turnstile.estimates.speed_effects import Predicted, SpeedLook, _effects, predicted

PLACES, HOURS = 5, 4
ROUNDS = speed_effects._ROUNDS
OF_COMMON, OF_PLACE, OF_HOUR = 1e3, 40.0, 9.0  # prior variances


def test_effects_are_those_of_the_dense_posterior(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed_effects, "_FLAT_PRECISION", 1 / OF_COMMON)
    coins = dice(7)
    y = 10 * coins.standard_normal((PLACES, HOURS))
    noise = coins.uniform(1, 30, (PLACES, HOURS))
    place, hour = np.indices((PLACES, HOURS))
    ones = np.ones((PLACES * HOURS, 1))
    design = np.hstack([ones, np.eye(PLACES)[place.ravel()], np.eye(HOURS)[hour.ravel()]])
    prior = np.diag(np.repeat([OF_COMMON, OF_PLACE, OF_HOUR], [1, PLACES, HOURS]))
    signal = design @ prior @ design.T
    gain = signal @ np.linalg.inv(signal + np.diag(noise.ravel()))
    found = _effects(y, 1 / noise, 1 / OF_PLACE, 1 / OF_HOUR)
    assert found.fitted.ravel() == pytest.approx(gain @ y.ravel(), abs=1e-4)
    assert found.spread.ravel() == pytest.approx(np.diag(signal - gain @ signal), rel=1e-3)


def test_the_oracle_sees_a_wrong_prior() -> None:
    coins = dice(7)
    y = 10 * coins.standard_normal((PLACES, HOURS))
    weights = np.full(y.shape, 0.1)
    right, wrong = (_effects(y, weights, 1 / OF_PLACE, 1 / v).fitted for v in (OF_HOUR, 90.0))
    assert np.abs(right - wrong).max() > 0.1


def stated_variance(rounds: int, monkeypatch: pytest.MonkeyPatch) -> float:
    """Return the mean variance of speeds that are as they were in earlier weeks."""
    monkeypatch.setattr(speed_effects, "_ROUNDS", rounds)
    coins, shape = dice(8), (40, 12)
    buses, noise = np.full(shape, 100.0), 3000.0
    look = SpeedLook(noise * coins.standard_normal(shape), buses, buses, noise, 0.0)
    before = Predicted(np.zeros(shape), np.full(shape, 4.0))
    return float(predicted(look, before).variances.mean())


def test_variances_are_those_of_the_end_of_the_iteration(monkeypatch: pytest.MonkeyPatch) -> None:
    end = stated_variance(3000, monkeypatch)
    assert stated_variance(ROUNDS, monkeypatch) == pytest.approx(end, rel=0.05)
    assert stated_variance(3, monkeypatch) > 1.1 * end  # stopped on its way
