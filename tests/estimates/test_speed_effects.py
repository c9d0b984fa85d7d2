"""Effects of place and hour against an oracle: the posterior of a dense normal model."""

from __future__ import annotations

import numpy as np
import pytest
from estimate_weeks import dice

from turnstile.estimates import speed_effects
from turnstile.estimates.speed_effects import _effects

PLACES, HOURS = 5, 4
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
