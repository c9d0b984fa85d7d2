"""Effects of place and hour against an oracle: the posterior of a dense normal model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from estimate_weeks import Floats, dice

from turnstile.estimates import crossed_effects as crossed
from turnstile.estimates import speed_effects
from turnstile.estimates.crossed_effects import crossed_effects
from turnstile.estimates.speed_effects import Predicted, predicted
from turnstile.estimates.week_differences import SpeedLook, differences

PLACES, HOURS = 5, 4
ROUNDS = speed_effects._ROUNDS
OF_COMMON, OF_PLACE, OF_HOUR = 1e3, 40.0, 9.0  # prior variances


def test_effects_are_those_of_the_dense_posterior(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crossed, "_FLAT_PRECISION", 1 / OF_COMMON)
    coins = dice(7)
    y = 10 * coins.standard_normal((PLACES, HOURS))
    noise = coins.uniform(1, 30, (PLACES, HOURS))
    place, hour = np.indices((PLACES, HOURS))
    ones = np.ones((PLACES * HOURS, 1))
    design = np.hstack([ones, np.eye(PLACES)[place.ravel()], np.eye(HOURS)[hour.ravel()]])
    prior = np.diag(np.repeat([OF_COMMON, OF_PLACE, OF_HOUR], [1, PLACES, HOURS]))
    signal = design @ prior @ design.T
    gain = signal @ np.linalg.inv(signal + np.diag(noise.ravel()))
    found = crossed_effects(y, 1 / noise, 1 / OF_PLACE, 1 / OF_HOUR)
    assert found.fitted.ravel() == pytest.approx(gain @ y.ravel(), abs=1e-4)
    assert found.spread.ravel() == pytest.approx(np.diag(signal - gain @ signal), rel=1e-3)


def test_the_oracle_sees_a_wrong_prior() -> None:
    coins = dice(7)
    y = 10 * coins.standard_normal((PLACES, HOURS))
    weights = np.full(y.shape, 0.1)
    right, wrong = (
        crossed_effects(y, weights, 1 / OF_PLACE, 1 / v).fitted for v in (OF_HOUR, 90.0)
    )
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


NOISE, OF_A_BUS = 2000.0, 47.0  # steps; bus-days of a cell differ by 4.7 km/h
WEEKS, DRAWS = 5, 12


def made_weeks(seed: int) -> tuple[Floats, list[SpeedLook]]:
    """Return a week's means, and looks at it and at four before; weeks differ by their buses."""
    coins, shape = dice(seed), (40, 12)
    buses = np.exp(coins.uniform(np.log(60), np.log(400), (40, 1))) * np.ones(shape)
    usual = 20 * coins.standard_normal((40, 1)) + 8 * coins.standard_normal((1, 12))
    means = usual + OF_A_BUS / buses**0.5 * coins.standard_normal((WEEKS, *shape))
    sums = buses * means + NOISE * coins.standard_normal(means.shape)
    return means[0], [SpeedLook(one, buses, buses, NOISE, 0.0) for one in sums]


def together(weeks: list[SpeedLook]) -> SpeedLook:
    sums, buses = (np.sum([getattr(w, name) for w in weeks], axis=0) for name in ("sums", "buses"))
    return SpeedLook(sums, buses, buses, NOISE * len(weeks) ** 0.5, 0.0)


def stated_and_held(*, with_weeks: bool) -> tuple[Floats, Floats]:
    """Return of each draw the mean variance stated, and what 90 % of a normal deviate hold."""
    found = []
    for seed in range(DRAWS):
        truth, (now, *earlier) = made_weeks(seed)
        weeks = earlier if with_weeks else []
        one = predicted(now, predicted(together(earlier), weeks=weeks), weeks)
        held = np.abs(one.means - truth) <= 1.645 * one.variances**0.5
        found.append((one.variances.mean(), held.mean()))
    stated, held = np.array(found).T
    return stated, held


def test_what_weeks_vary_by_is_read_from_all_of_them() -> None:
    stated, held = stated_and_held(with_weeks=True)
    alone, held_alone = stated_and_held(with_weeks=False)
    assert 0.87 <= held.mean() <= 0.93
    assert held.min() >= 0.8
    # From the last week alone the same figure is a matter of luck: its noise hides what it varies.
    assert held_alone.min() < 0.8
    assert alone.std() > 1.5 * stated.std()


def test_differences_of_weeks_say_nothing_of_what_they_share() -> None:
    _, weeks = made_weeks(1)
    faster = [replace(one, sums=one.sums + 50.0 * one.buses) for one in weeks]
    base = np.zeros(weeks[0].sums.shape)
    one, other = (differences(w, base, cells_depart=True) for w in (weeks, faster))
    assert one.values == pytest.approx(other.values)
    expected = one.noise + OF_A_BUS**2 * one.of_a_bus
    assert np.mean(one.values**2 / expected) == pytest.approx(1, abs=0.1)
    assert not differences(weeks[:1], base, cells_depart=True).values.size
