"""Year to date: sums over weeks from draws that carry the year's counts along, and their price."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from small_deployment import Deployment

from turnstile.privacy.year_to_date import QUARTER_WEEKS, YEAR_WEEKS, column_squared, multiples
from turnstile_design.compared_designs.price_of_year_to_date import (
    alone,
    inverse,
    price_of_every_week,
    sum_errors,
)

Cli = Callable[..., int]
CELLS = 100_000  # a standard deviation of so many is within 1 % but for a chance of 1e-5; seeded
DEVIATION = 9.8


def drawn(weeks: Sequence[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    """The year's draws; a rounded normal deviate stands in for the discrete one of sd 10,000."""
    coins = np.random.default_rng(2016)  # noqa: TID251 - made-up data, not noise
    scale = DEVIATION * math.sqrt(column_squared())
    draws = []
    for week in range(len(weeks)):
        exact = sum(n * weeks[week - age] for age, n in enumerate(multiples()[: week + 1]))
        noise = np.rint(scale * coins.standard_normal(weeks[0].shape)).astype(np.int64)
        draws.append(np.asarray(exact + noise))
    return draws


@pytest.fixture(scope="module")
def errors() -> NDArray[np.float64]:
    """Errors of the weeks that are read from the draws, in deviations of a week drawn alone."""
    cells = np.arange(CELLS, dtype=np.int64) % 97
    truth = [cells * (week % 5) for week in range(YEAR_WEEKS)]
    read = np.einsum("st,tc->sc", inverse(), np.stack(drawn(truth)).astype(np.float64))
    scaled_errors: NDArray[np.float64] = (read - np.stack(truth)) / DEVIATION
    return scaled_errors


def test_the_simulation_equals_the_closed_form(errors: NDArray[np.float64]) -> None:
    expected = sum_errors()
    samples = (errors[-1], errors[-QUARTER_WEEKS:].sum(axis=0), errors.sum(axis=0))
    for sample, deviation in zip(
        samples, (expected.week, expected.quarter, expected.year), strict=True
    ):
        assert sample.std() == pytest.approx(deviation, rel=0.01)
        assert abs(sample.mean()) < 6 * deviation / math.sqrt(CELLS)
    # Negative control: weeks drawn alone are another distribution.
    assert errors.sum(axis=0).std() != pytest.approx(alone().year, rel=0.01)


def test_weeks_are_hardly_noisier_and_the_year_is_twice_as_precise() -> None:
    deviations = sum_errors()
    assert deviations.week <= 1.06
    assert deviations.quarter < 0.8 * alone().quarter
    assert deviations.year <= 3.7
    assert alone().year == pytest.approx(7.21, abs=0.01)


def test_a_card_of_all_weeks_pays_what_the_proof_says() -> None:
    of_ages = multiples()
    squared = sum(sum(of_ages[: week + 1]) ** 2 for week in range(YEAR_WEEKS))
    assert price_of_every_week() * YEAR_WEEKS * column_squared() == squared
    assert float(price_of_every_week()) == pytest.approx(4.34, abs=0.005)


def test_where_the_unit_is_the_card_over_the_window_nothing_is_gained() -> None:
    assert sum_errors().year * math.sqrt(price_of_every_week()) > alone().year


def test_the_price_is_printed_and_a_cap_over_the_window_refuses(
    turnstile: Cli, deployment: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    assert turnstile("plan", "opal", "--year-to-date") == 3
    printed = capsys.readouterr()
    assert "| all 52 weeks | 7.21 | 3.54 |" in printed.out
    assert "4.34 times the loss, rho 131.68 in place of 30.33" in printed.out
    assert "gains at most 1.23, so it is refused" in printed.err
    deployment.edit("opal", 'window_weeks: 52, rho: "48"', 'window_weeks: 52, rho: "198"')
    assert turnstile("plan", "opal", "--year-to-date") == 0  # nothing refuses where it fits
    assert turnstile("plan", "opal_trip", "--year-to-date") == 2
