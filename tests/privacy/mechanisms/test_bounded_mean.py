"""Means of bounded speeds and numbers over a limit."""

from __future__ import annotations

from datetime import date
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnstile.privacy.accounts import loss_of
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.mechanisms.bounded_mean import (
    center_steps,
    centered_delays,
    centered_steps,
    mean_kmh,
    mean_sd_kmh,
    sum_sensitivity,
)
from turnstile.privacy.mechanisms.distinct_over_limit import over_limit
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.privacy.sensitivities import packed
from turnstile.privacy.units import Block

CLAMP_KMH = 65


def gaussian(statistic: str, sigma: int) -> DrawEvent:
    blocks = (Block(date(2024, 1, 1), "bus"),)
    family = NoiseFamily.DISCRETE_GAUSSIAN
    return DrawEvent("speed", statistic, family, Fraction(sigma), blocks, ())


def steps_of(speed_kmh: int) -> int:
    return int(centered_steps(np.array([1000 * speed_kmh]), np.array([1]), CLAMP_KMH)[0])


@given(st.integers(-100_000, 500_000), st.integers(1, 500))
def test_no_speed_moves_a_sum_by_more_than_half_the_range(milli: int, readings: int) -> None:
    moved = centered_steps(np.array([milli]), np.array([readings]), CLAMP_KMH)
    assert abs(int(moved[0])) <= center_steps(CLAMP_KMH)


@given(st.integers(-(10**7), 10**7), st.integers(1, 500), st.integers(1, 60))
def test_no_delay_moves_a_sum_by_more_than_its_bound(
    delay_s: int, readings: int, clamp_minutes: int
) -> None:
    moved = int(centered_delays(np.array([delay_s]), np.array([readings]), clamp_minutes)[0])
    assert abs(moved) <= 10 * clamp_minutes == center_steps(2 * clamp_minutes)
    exact = Fraction(delay_s, 6 * readings)
    if abs(exact) <= 10 * clamp_minutes:
        assert abs(moved - exact) <= Fraction(1, 2)


def test_without_clamping_a_speed_would_move_the_sum_further() -> None:
    assert abs(10 * 500 - center_steps(CLAMP_KMH)) > center_steps(CLAMP_KMH)


def test_sum_count_and_limit_cost_a_bus_day_what_the_proof_says() -> None:
    cells, sums, counts, overs = 20, 3000, 10, 8
    drawn = (
        (gaussian("sum", sums), sum_sensitivity(packed(cells, 1), CLAMP_KMH)),
        (gaussian("buses", counts), packed(cells, 1)),
        (gaussian("over_40", overs), packed(cells, 1)),
    )
    rho = sum(loss_of(*pair).rho or 0 for pair in drawn)
    half = 5 * CLAMP_KMH
    stated = Fraction(half**2, sums**2) + Fraction(1, counts**2) + Fraction(1, overs**2)
    assert rho == Fraction(cells, 2) * stated


def test_a_mean_is_recovered_from_sum_and_count_and_hidden_when_there_are_too_few() -> None:
    total = sum(steps_of(speed) for speed in (20, 30, 100))
    sums, counts = np.array([total, total]), np.array([3, 1])
    speeds = mean_kmh(sums, counts, clamp_kmh=CLAMP_KMH, count_min=2)
    assert speeds[0] == pytest.approx((20 + 30 + 65) / 3, abs=0.05)
    assert np.isnan(speeds[1])


def test_a_noisy_mean_stays_between_zero_and_the_clamp() -> None:
    speeds = mean_kmh(
        np.array([-99_999, 99_999]), np.array([5, 5]), clamp_kmh=CLAMP_KMH, count_min=1
    )
    assert speeds.tolist() == [0, CLAMP_KMH]


def test_the_error_bar_of_a_mean_covers_the_noise_that_was_drawn() -> None:
    from turnstile.privacy.mechanisms import dense

    count, true_kmh = 400, 20.0
    exact_sum = round(count * (10 * true_kmh - center_steps(CLAMP_KMH)))
    sums = dense.draw(gaussian("sum", 900), np.full(4000, exact_sum, dtype=np.int64))
    counts = dense.draw(gaussian("buses", 6), np.full(4000, count, dtype=np.int64))
    spread = float(np.std(mean_kmh(sums, counts, clamp_kmh=CLAMP_KMH, count_min=10)))
    stated = mean_sd_kmh(
        np.array([400.0]), np.array([true_kmh]), clamp_kmh=CLAMP_KMH, scales=(900.0, 6.0)
    )
    assert spread == pytest.approx(float(stated[0]), rel=0.1)


@given(st.lists(st.integers(0, 200_000), min_size=1, max_size=8), st.integers(1, 130))
def test_a_bus_over_a_limit_adds_no_more_than_it_adds_to_the_count(
    fastest: list[int], limit_kmh: int
) -> None:
    added = over_limit(np.array(fastest), limit_kmh)
    assert set(added.tolist()) <= {0, 1}
    assert added.sum() <= packed(len(fastest), 1).l1
