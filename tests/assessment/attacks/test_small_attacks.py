"""Differencing, rows, timetables."""

from __future__ import annotations

import pytest
from differencing_of_cells import derived_deviation, hidden_cell

from turnstile.assessment.attacks.timetable import StopEvent, exposed_cells
from turnstile.privacy.noise import NoiseDistribution, Term
from turnstile_lab.rows import RowBalance, expected_rows


def test_the_secret_ferry_had_between_eleven_and_twenty_five_passengers() -> None:
    interval = hidden_cell(
        150, [91, 41], [Term(NoiseDistribution.LAPLACE, 1.4, 3)], confidence=0.95
    )
    assert (interval.estimate, round(interval.low, 2), round(interval.high, 2)) == (
        18,
        11.04,
        24.96,
    )
    rounded = hidden_cell(
        150, [91, 41], [Term(NoiseDistribution.ROUNDED_LAPLACE, 1.4, 3)], confidence=0.95
    )
    assert (rounded.low, rounded.high) == (11, 25)


def test_what_is_known_beforehand_narrows_the_interval() -> None:
    noise = [Term(NoiseDistribution.LAPLACE, 1.4, 3)]
    interval = hidden_cell(150, [91, 41], noise, confidence=0.95, limits=(0, 17))
    assert interval.high == 17
    assert derived_deviation(noise) == pytest.approx((6 * 1.4**2) ** 0.5)


def test_light_rail_has_all_its_rows() -> None:
    balance = RowBalance(expected_rows(23 + 24, 14), 658)
    assert balance.missing == 0
    assert "nothing was dropped" in balance.statement
    assert "missing" in RowBalance(658, 600).statement


def test_a_night_bus_is_one_vehicle_and_a_busy_street_is_not() -> None:
    night = StopEvent("bus", "04:30", "2770", "mt-druitt", "n70-1")
    day = [StopEvent("bus", "08:00", "2770", f"stop-{n}", f"trip-{n}") for n in range(3)]
    shared = StopEvent("bus", "05:00", "2770", "mt-druitt", "n70-2")
    other = StopEvent("bus", "05:00", "2770", "mt-druitt", "755-1")
    cells = exposed_cells([night, *day, shared, other])
    assert [cell.slot for cell in cells] == ["04:30", "05:00"]
    assert cells[0].is_one_vehicle
    assert cells[1].is_one_stop
    assert not cells[1].is_one_vehicle
