"""Means of cells, city, places and hours: an oracle, what is shown, what intervals hold."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from estimate_weeks import Floats, dice

from turnstile.estimates.vehicles.bus_counts import bus_days
from turnstile.estimates.vehicles.bus_means import (
    MOST_EMPTY,
    MOST_RATIO,
    BusMeans,
    SumLook,
    _EffectPriors,
    _Effects,
    bus_means,
)

SPAN = 650.0
PLACES, HOURS = 80, 12
OF_SUM, OF_BUSES = 2000.0, 8.0


def test_effects_are_those_of_the_dense_posterior() -> None:
    coins, places, hours = dice(7), 5, 4
    columns = np.zeros((places, hours, 1 + hours))
    columns[:, :, 0] = 1
    columns[:, np.arange(hours), 1 + np.arange(hours)] = 1
    weights = coins.uniform(0.02, 0.2, (places, hours))
    y = 10 * coins.standard_normal((places, hours))
    speeds, counts = coins.uniform(5, 40, places), coins.uniform(0, 10, places)
    prior = _EffectPriors(speeds, counts, np.array([1e-3, *np.full(hours, 1 / 9)]))
    effects = _Effects.of(columns, weights, weights * y, prior)
    place = np.repeat(np.eye(places), hours, axis=0)
    covariance = (
        columns.reshape(-1, 1 + hours)
        @ np.diag(1 / prior.others)
        @ columns.reshape(-1, 1 + hours).T
        + place @ np.diag(speeds) @ place.T
    )  # of what is asked for, without counts' errors
    noise = place @ np.diag(counts) @ place.T + np.diag(1 / weights.ravel())
    gain = covariance @ np.linalg.inv(covariance + noise)
    assert effects.values.ravel() == pytest.approx(gain @ y.ravel(), rel=1e-6)
    posterior = covariance - gain @ covariance
    assert effects.spread.ravel() == pytest.approx(np.diag(posterior), rel=1e-6)
    # Sums of cells too: of the first place's hours, each by a quarter.
    share = np.full(hours, 1 / hours)
    variance = effects.variance((share @ columns[0])[None], np.eye(places)[:1])
    assert variance[0] == pytest.approx(share @ posterior[:hours, :hours] @ share, rel=1e-6)
    wrong = _Effects.of(columns, weights, weights * y, replace(prior, speeds=3 * speeds))
    assert np.abs(wrong.values - effects.values).max() > 0.1


class Week:
    """A made city: bus-days, means in steps about the middle, and looks at them."""

    def __init__(self, seed: int, *, spread: float = 60.0, buses: float = 30.0) -> None:
        coins = dice(seed)
        rates = buses * np.exp(coins.standard_normal(PLACES)) * (coins.random(PLACES) < 0.7)
        self.buses = coins.poisson(rates[:, None] * coins.gamma(5, 1 / 5, (PLACES, HOURS)))
        places = spread * coins.standard_normal((PLACES, 1))
        hours = 15 * coins.standard_normal((1, HOURS))
        of_bus = 130 / np.sqrt(np.maximum(self.buses, 1))
        cells = 20 * coins.standard_normal(self.buses.shape) + of_bus * coins.standard_normal(
            self.buses.shape
        )
        self.means = np.clip(-100 + places + hours + cells, -SPAN / 2, SPAN / 2)

    def look(self, seed: int, *, slower: float = 0.0) -> SumLook:
        coins, shape = dice(seed), self.buses.shape
        counts = self.buses + OF_BUSES * coins.standard_normal(shape)
        sums = self.buses * (self.means - slower) + OF_SUM * coins.standard_normal(shape)
        in_sds = counts.sum(axis=0) / OF_BUSES / PLACES**0.5
        return SumLook(sums, OF_SUM, bus_days(counts, OF_BUSES), in_sds, SPAN)


@cache
def week_and_means(seed: int) -> tuple[Week, BusMeans]:
    week = Week(seed)
    return week, bus_means(week.look(200 + seed))


def held(estimate: BusMeans, week: Week) -> Floats:
    apart = np.abs(estimate.cells.values - week.means)
    return (apart <= 1.645 * estimate.cells.variances**0.5)[
        estimate.cells.is_shown & (week.buses > 0)
    ]


def test_intervals_hold_and_hardly_a_shown_cell_is_empty() -> None:
    shown, empty, holds, ratios = 0, 0, [], []
    for seed in range(8):
        week, estimate = week_and_means(seed)
        is_shown = estimate.cells.is_shown
        shown, empty = shown + is_shown.sum(), empty + (is_shown & (week.buses == 0)).sum()
        holds.append(held(estimate, week))
        seen = is_shown & (week.buses > 0)
        errors = (estimate.cells.values - week.means)[seen]
        ratios.append((estimate.ratio, np.sqrt(np.mean(errors**2)) / week.means[seen].std()))
    assert shown > 8 * 200
    assert empty <= 2 * MOST_EMPTY * shown
    assert 0.87 <= np.concatenate(holds).mean() <= 0.99
    said, was = np.array(ratios).T
    assert (said <= MOST_RATIO).sum() >= 4
    assert (was[said <= MOST_RATIO] <= MOST_RATIO).all()
    assert np.abs(np.median(said) - np.median(was)) < 0.15


def test_a_city_whose_noise_hides_how_cells_differ_shows_none_of_them_but_its_mean() -> None:
    week = Week(1, spread=5.0, buses=6.0)
    estimate = bus_means(week.look(2))
    assert estimate.ratio > MOST_RATIO
    city = estimate.sums["city"]
    truth = (week.buses * week.means).sum() / week.buses.sum()
    assert abs(city.values[0] - truth) <= 3 * city.variances[0] ** 0.5
    assert city.variances[0] ** 0.5 < SPAN / 15
    nothing = Week(1, buses=0.0)
    of_nothing = bus_means(nothing.look(3))
    assert not of_nothing.cells.is_shown.any()
    assert of_nothing.ratio == np.inf
    assert not of_nothing.sums["places"].is_shown.any()


def test_the_city_its_places_and_hours_hold_what_they_say() -> None:
    holds: dict[str, list[bool]] = {"city": [], "places": [], "hours": []}
    axes = {"city": (0, 1), "places": 1, "hours": 0}
    for seed in range(20):
        week, estimate = week_and_means(seed)
        for name, axis in axes.items():
            sums = estimate.sums[name]
            with np.errstate(invalid="ignore"):
                truth = (week.buses * week.means).sum(axis) / week.buses.sum(axis)
            is_in = np.abs(sums.values - truth) <= 1.645 * sums.variances**0.5
            holds[name] += is_in[sums.is_shown].tolist()
    assert all(np.mean(hits) >= 0.85 for hits in holds.values()), holds.keys()


def test_earlier_weeks_help_and_a_city_that_slowed_is_seen() -> None:
    week = Week(4)
    usual = bus_means(week.look(41))
    alone, with_history = bus_means(week.look(42)), bus_means(week.look(42), usual)
    is_shown = alone.cells.is_shown & with_history.cells.is_shown
    errors = [np.mean((o.cells.values - week.means)[is_shown] ** 2) for o in (alone, with_history)]
    assert errors[1] < 0.9 * errors[0]
    slowed = bus_means(week.look(43, slower=40.0), usual)
    change = slowed.sums["city"].values - usual.sums["city"].values
    assert -50 < change[0] < -30
