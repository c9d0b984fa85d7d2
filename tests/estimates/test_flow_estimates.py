"""Flows: what is listed has trips, what is estimated is nearer than a naive matrix."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from estimate_weeks import dice
from flows import FLOWS, compared, drawn_week, events_of_programme, made_city, of_regions

from turnstile.estimates.flows.flow_estimates import flow_tables
from turnstile.estimates.flows.flow_numbers import Flows, reconciled
from turnstile.estimates.week_to_estimate import WeekToEstimate
from turnstile.release.numbers import Numbers

SIZES = (100_000, 1_000_000, 5_000_000)


@pytest.mark.long
def test_below_one_in_a_hundred_of_the_listed_pairs_have_no_trips_and_errors_are_smaller() -> None:
    comparisons = [compared(seed, size) for seed, size in enumerate(SIZES)]
    listed, false = (
        sum(comparison.listed for comparison in comparisons),
        sum(comparison.false for comparison in comparisons),
    )
    assert listed > 2_000
    assert false / listed < 0.01
    for city in comparisons:
        assert city.errors["estimate"] < city.errors["naive"]
    # The naive list of a small city is full of noise.
    assert comparisons[0].naive_false / comparisons[0].naive_listed > 0.05
    assert comparisons[2].mass > 0.9


@pytest.mark.long
def test_earlier_weeks_take_a_quarter_of_the_error_and_intervals_hold() -> None:
    comparisons = [compared(seed, size) for seed, size in enumerate(SIZES)]
    for city in comparisons:
        assert city.errors["with eight earlier weeks"] < 0.78 * city.errors["estimate"]
        assert city.month_listed > 1.15 * city.listed
    assert (
        sum(comparison.month_false for comparison in comparisons)
        / sum(comparison.month_listed for comparison in comparisons)
        < 0.01
    )
    held, sizes = (
        np.concatenate([of(comparison) for comparison in comparisons])
        for of in (
            lambda comparison: comparison.held,
            lambda comparison: np.maximum(comparison.volumes + comparison.misses, 0),
        )
    )
    for low, high in pairwise((0, 1, 10, 100, 1_000, np.inf)):
        assert held[(low <= sizes) & (sizes < high)].mean() > 0.85


def test_intervals_from_understated_noise_do_not_hold() -> None:
    coins, events = dice(4), events_of_programme()
    truth = made_city(coins, SIZES[1])
    week = drawn_week(truth, events)
    stated = {name: deviation / 4 for name, deviation in week.numbers.deviations.items()}
    wrong = replace(week, numbers=replace(week.numbers, deviations=stated))
    table = flow_tables(wrong)[FLOWS["zone"].name]
    exact = truth.sum(axis=0).ravel()
    low, high = (table[name].to_numpy() for name in ("low_90", "high_90"))
    assert ((low <= exact) & (exact <= high))[exact > 10].mean() < 0.7


def test_noise_that_is_larger_than_stated_would_be_listed() -> None:
    """Negative control: the rule rests on the declared noise."""
    coins = dice(1)
    truth = made_city(coins, SIZES[0])
    events = events_of_programme()
    louder = {name: replace(event, scale=4 * event.scale) for name, event in events.items()}
    week = drawn_week(truth, louder)
    stated = {name: deviation / 4 for name, deviation in week.numbers.deviations.items()}
    table = flow_tables(replace(week, numbers=replace(week.numbers, deviations=stated)))
    is_flow = table[FLOWS["zone"].name]["is_flow"].to_numpy(zero_copy_only=False)
    none = truth.sum(axis=0).ravel() == 0
    assert (is_flow & none).sum() / is_flow.sum() > 0.1


def test_zones_add_up_to_their_regions_and_errors_are_those_of_least_squares() -> None:
    coins = dice(2)
    truth = made_city(coins, SIZES[1])
    tables = flow_tables(drawn_week(truth, events_of_programme()))
    shapes = {"region": (4, 10, 10), "zone": (4, 50, 50)}
    values = {
        grain: tables[spec.name]["reconciled"].to_numpy().reshape(shapes[grain])
        for grain, spec in FLOWS.items()
    }
    deviation = {
        grain: tables[spec.name]["standard_deviation"].to_numpy()[0]
        for grain, spec in FLOWS.items()
    }
    blocks = values["zone"].reshape(4, 10, 5, 10, 5).sum(axis=(2, 4))
    assert blocks == pytest.approx(values["region"], abs=0.05)
    week = truth.sum(axis=0)
    for grain, exact in (("region", of_regions(week)), ("zone", week)):
        scores = (values[grain] - exact) / deviation[grain]
        # of 400 and 10,000 normal deviates: 1e-9 is 6.1 standard errors
        assert abs(scores.mean()) < 6.1 / np.sqrt(scores.size)
        assert abs((scores**2).mean() - 1) < 6.1 * np.sqrt(2 / scores.size)


def test_least_squares_is_that_of_the_normal_equations() -> None:
    coins = dice(3)
    of = np.array([0, 0, 1, 1])  # one origin, two regions of two zones
    zones, regions = coins.normal(size=(1, 4)), coins.normal(size=(1, 2))
    flows = reconciled(
        Flows(zones, np.full((1, 4), 2.0), (1, 4)),
        Flows(regions, np.full((1, 2), 3.0), (1, 2)),
        (1, 2),
        of,
    )
    sums = np.array([[1, 1, 0, 0], [0, 0, 1, 1]])
    design = np.vstack([np.eye(4) / np.sqrt(2.0), sums / np.sqrt(3.0)])
    seen = np.concatenate([zones[0] / np.sqrt(2.0), regions[0] / np.sqrt(3.0)])
    best, *_ = np.linalg.lstsq(design, seen, rcond=None)
    covariance = np.linalg.inv(design.T @ design)
    assert flows.zones is not None
    assert flows.zones.values[0] == pytest.approx(best)
    assert flows.zones.variance[0] == pytest.approx(np.diag(covariance))
    assert flows.regions.values[0] == pytest.approx(sums @ best)
    assert flows.regions.variance[0] == pytest.approx(np.diag(sums @ covariance @ sums.T))


def test_the_mean_of_a_month_is_of_whole_weeks_up_to_this_one() -> None:
    coins, events = dice(5), events_of_programme()
    weeks = [drawn_week(made_city(coins, SIZES[0]), events) for _ in range(3)]
    now, days = weeks[0], weeks[0].numbers.days
    before, after = (
        replace(week.numbers, days=tuple(day + timedelta(days=shift) for day in days))
        for week, shift in zip(weeks[1:], (-7, 7), strict=True)
    )
    gap = replace(now, numbers=replace(now.numbers, gaps=days[:1]))

    def month(week: WeekToEstimate, *beside: Numbers) -> list[float]:
        table = flow_tables(replace(week, earlier=beside))[FLOWS["zone"].name]
        means: list[float] = table["month_mean"].to_pylist()
        return means

    assert month(now, before, after) == month(now, before) != month(now)
    assert month(now, after) == month(now)  # a later series
    assert month(gap, before) == month(gap)


def test_a_week_without_input_has_no_flows_and_a_gap_adds_nothing() -> None:
    coins = dice(4)
    truth = made_city(coins, SIZES[0])
    week = drawn_week(truth, events_of_programme())
    nothing = replace(week, numbers=replace(week.numbers, gaps=week.numbers.days))
    assert flow_tables(nothing) == {}
    gap = replace(week, numbers=replace(week.numbers, gaps=week.numbers.days[:3]))
    name = FLOWS["zone"].name
    whole, part = (
        flow_tables(drawn)[name]["standard_deviation"][0].as_py() for drawn in (week, gap)
    )
    assert Fraction(part / whole).limit_denominator(100) ** 2 == pytest.approx(4 / 7, rel=0.01)
