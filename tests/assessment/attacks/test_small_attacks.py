"""Differencing, rows, timetables, reconstruction."""

from __future__ import annotations

import numpy as np
import pytest
from differencing_of_cells import derived_deviation, hidden_cell

from turnstile.assessment.attacks.reconstruction import (
    NoisyMarginals,
    exact_share,
    least_squares,
    linear_program,
)
from turnstile.assessment.attacks.timetable import StopEvent, exposed_cells
from turnstile.privacy.noise_terms import NoiseDistribution, Term
from turnstile_lab.baselines import discrete_laplace, uniforms
from turnstile_lab.rows import RowBalance, expected_rows


def test_the_secret_ferry_had_between_eleven_and_twenty_five_passengers() -> None:
    found = hidden_cell(150, [91, 41], [Term(NoiseDistribution.LAPLACE, 1.4, 3)], confidence=0.95)
    assert (found.estimate, round(found.low, 2), round(found.high, 2)) == (18, 11.04, 24.96)
    rounded = hidden_cell(
        150, [91, 41], [Term(NoiseDistribution.ROUNDED_LAPLACE, 1.4, 3)], confidence=0.95
    )
    assert (rounded.low, rounded.high) == (11, 25)


def test_what_is_known_beforehand_narrows_the_interval() -> None:
    noise = [Term(NoiseDistribution.LAPLACE, 1.4, 3)]
    found = hidden_cell(150, [91, 41], noise, confidence=0.95, limits=(0, 17))
    assert found.high == 17
    assert derived_deviation(noise) == pytest.approx((6 * 1.4**2) ** 0.5)


def test_light_rail_has_all_its_rows() -> None:
    balance = RowBalance(expected_rows(23 + 24, 14), 658)
    assert balance.missing == 0
    assert "nothing was dropped" in balance.statement
    assert "missing" in RowBalance(658, 600).statement


def test_a_night_bus_is_one_vehicle_and_a_busy_street_is_not() -> None:
    night = StopEvent("bus", "04:30", "2770", "mt-druitt", "n70-1", "N70")
    day = [StopEvent("bus", "08:00", "2770", f"stop-{n}", f"trip-{n}", "755") for n in range(3)]
    shared = StopEvent("bus", "05:00", "2770", "mt-druitt", "n70-2", "N70")
    other = StopEvent("bus", "05:00", "2770", "mt-druitt", "755-1", "755")
    found = exposed_cells([night, *day, shared, other])
    assert [cell.slot for cell in found] == ["04:30", "05:00"]
    assert found[0].is_one_vehicle
    assert found[1].is_one_stop
    assert not found[1].is_one_vehicle


def marginals(truth: np.ndarray, scale: float) -> NoisyMarginals:
    """Noisy cells and margins of a table."""
    return NoisyMarginals(
        truth + discrete_laplace("cells", truth.size, scale).reshape(truth.shape),
        truth.sum(axis=1) + discrete_laplace("rows", truth.shape[0], scale),
        truth.sum(axis=0) + discrete_laplace("columns", truth.shape[1], scale),
        (scale, scale, scale),
    )


def test_tiny_noise_is_undone_and_declared_noise_is_not() -> None:
    truth = np.floor(4 * uniforms("truth", 120)).astype(np.int64).reshape(12, 10)
    for attack in (least_squares, linear_program):
        assert exact_share(attack(marginals(truth, 0.15)), truth) > 0.95
        assert exact_share(attack(marginals(truth, 4.0)), truth) < 0.5


def test_a_table_too_large_for_the_attack_is_refused() -> None:
    truth = np.zeros((60, 60), dtype=np.int64)
    with pytest.raises(ValueError, match="take a part"):
        least_squares(marginals(truth, 1.0))
