"""Estimates of speeds and buses in a made city of places and hours."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
import pytest
from estimate_weeks import Floats, Random, dice

from turnstile.estimates.vehicles.telemetry_estimates import telemetry_estimates
from turnstile.estimates.week_to_estimate import Promise, WeekToEstimate
from turnstile.measures.registry import Measure
from turnstile.programme.domain.public_domain import Dimension, ModeCells, public_domain
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import TableSpec
from turnstile.release.numbers import Numbers

HOURS, PLACES, DAYS = 12, 40, 7
CLAMP_KMH, MIDDLE_KMH = 65, 32.5
NOISE = {("speed", "sum"): 3891.0, ("speed", "buses"): 20.7, ("speeding", "over_40"): 12.7}
SPEED = TableSpec("speed", ("slot", "cell"), Measure.MEAN_SPEED, CLAMP_KMH)
SPEEDING = TableSpec("speeding", ("slot", "cell"), Measure.BUSES_OVER, None, (40,))
DOMAIN = public_domain(
    "made",
    (
        ModeCells(
            "bus",
            (
                Dimension("slot", tuple(f"{9 + n:02}:00" for n in range(HOURS))),
                Dimension("cell", tuple(f"cell {n:02}" for n in range(PLACES))),
            ),
        ),
    ),
)


@dataclass(frozen=True)
class City:
    """Exact numbers of a week, each shape (hours, places)."""

    kmh: Floats
    buses: Floats
    over: Floats


def made_city(coins: Random) -> City:
    places, hours = 6.7 * coins.standard_normal(PLACES), 0.9 * coins.standard_normal(HOURS)
    kmh = 22 + places + hours[:, None] + 0.5 * coins.standard_normal((HOURS, PLACES))
    buses = coins.poisson(120 * np.exp(0.8 * coins.standard_normal(PLACES)), (HOURS, PLACES))
    over = coins.binomial(buses, 1 / (1 + np.exp(-(kmh - 40) / 6)))
    return City(np.clip(kmh, 5, 60), buses.astype(float), over.astype(float))


def drawn_numbers(coins: Random, city: City, number: int) -> Numbers:
    first = date(2021, 11, 15) - timedelta(weeks=number)
    exact = {
        ("speed", "sum"): city.buses * (city.kmh - MIDDLE_KMH) * 10,
        ("speed", "buses"): city.buses,
        ("speeding", "over_40"): city.over,
    }
    vectors = {
        label: {
            None: np.rint(
                values.ravel() + NOISE[label] * coins.standard_normal(values.size)
            ).astype(np.int64)
        }
        for label, values in exact.items()
    }
    days = tuple(first + timedelta(days=n) for n in range(DAYS))
    return Numbers(f"made/{number}", DOMAIN.digest, days, (), vectors, NOISE)


def found(earlier_weeks: int, *, slower: float = 1.0) -> tuple[City, dict[str, dict[str, Floats]]]:
    """A week of the city (with all buses slower, if asked) and its estimates."""
    coins = dice(15)
    city = made_city(coins)
    now = City(city.kmh * slower, city.buses, city.over)
    earlier = tuple(drawn_numbers(coins, city, 1 + n) for n in range(earlier_weeks))
    week = WeekToEstimate(
        Promise(RowShape.TELEMETRY, (SPEED, SPEEDING), 60, shares_total=False),
        DOMAIN,
        drawn_numbers(coins, now, 0),
        "made",
        earlier,
    )
    tables = telemetry_estimates(week).tables
    shape = (HOURS, PLACES)
    columns = ("estimate", "low_90", "high_90")
    read = {
        name: {column: table.column(column).to_numpy().reshape(shape) for column in columns}
        for name, table in tables.items()
        if len(table) == HOURS * PLACES
    }
    return now, read


def rmse(errors: Floats) -> float:
    return float(np.sqrt(np.nanmean(errors**2)))


def test_one_week_knows_mean_speeds_within_a_third_of_their_spread() -> None:
    city, read = found(0)
    assert rmse(read["speed"]["estimate"] - city.kmh) < 6.7 / 3


def test_four_earlier_weeks_halve_what_is_left() -> None:
    city, read = found(4)
    assert rmse(read["speed"]["estimate"] - city.kmh) < 1.2
    assert not np.isnan(read["speed"]["low_90"]).any()
    assert not np.isnan(read["speed_buses"]["low_90"]).any()


def test_a_week_that_is_a_fifth_slower_is_seen() -> None:
    city, read = found(4, slower=0.8)
    errors = read["speed"]["estimate"] - city.kmh
    assert rmse(errors) < 1.7
    assert abs(np.nanmean(errors)) < 0.6


def test_buses_above_the_limit_are_known_better_than_they_were_drawn() -> None:
    city, read = found(0)
    drawn = NOISE["speeding", "over_40"] / DAYS
    assert rmse(read["speeding"]["estimate"] - city.over / DAYS) < 0.8 * drawn


@pytest.mark.parametrize("earlier", [0, 4])
def test_intervals_hold_at_least_nearly_what_they_say(earlier: int) -> None:
    city, read = found(earlier)
    for table, truth in (("speed", city.kmh), ("speeding", city.over / DAYS)):
        low, high = read[table]["low_90"], read[table]["high_90"]
        held = ((low <= truth) & (truth <= high))[~np.isnan(low)]
        assert held.mean() >= 0.85


def test_the_drawn_numbers_alone_would_not_do() -> None:
    # The negative control of the bars: the unbiased ratio misses them by far.
    coins = dice(15)
    city = made_city(coins)
    numbers = drawn_numbers(coins, city, 0)
    buses = np.maximum(numbers.vectors["speed", "buses"][None], 1)
    ratio = MIDDLE_KMH + numbers.vectors["speed", "sum"][None] / buses / 10
    assert rmse(np.clip(ratio, 0, CLAMP_KMH).reshape(HOURS, PLACES) - city.kmh) > 3
