"""Chances of a false alarm that a gate states as the chance itself: they are, by simulation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binom, chi2, poisson

from turnstile.assessment.gates.geometric import geometric_below_zero
from turnstile.assessment.gates.numbers import Judged
from turnstile.assessment.gates.result import ANY_COUNTS, EMPTY_CELLS, GateResult
from turnstile.assessment.gates.stated_power import NOTHING, first_found, walk_reaches
from turnstile.assessment.gates.sums_of_squares import chance_between, limits
from turnstile.assessment.gates.zeros import noised_zeros
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.noise import Term
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.release.drawn import Drawn
from turnstile.release.numbers import Vector
from turnstile_lab.baselines import discrete_laplace, uniforms

Gate = Callable[..., GateResult]
_CELLS, _DAYS, _TRIALS, _OFTEN = 60, 4, 400, 0.05


@pytest.fixture
def event(release: Drawn) -> DrawEvent:
    """A draw of discrete Laplace noise of scale 2."""
    return next(draw for draw in release.events if draw.scale == 2)


def _judged(event: DrawEvent, gate: Gate, trial: int) -> GateResult:
    """Let a gate judge the noise of empty cells."""
    name = gate.__name__
    vectors = tuple(
        Vector(event, None, discrete_laplace(f"{name} {trial} {day}", _CELLS, 2.0))
        for day in range(_DAYS)
    )
    return gate(Judged(vectors, ()), _OFTEN)


def test_of_empty_cells_a_gate_is_wrong_as_often_as_it_says(event: DrawEvent) -> None:
    gate_results = [_judged(event, noised_zeros, trial) for trial in range(_TRIALS)]
    stated = sum(gate_result.false_alarm for gate_result in gate_results)
    stopped = sum(not gate_result.passed for gate_result in gate_results)
    assert {gate_result.reached_by for gate_result in gate_results} == {EMPTY_CELLS}
    assert _OFTEN / 10 < stated / _TRIALS <= _OFTEN
    # The labels of the noise are fixed, so this passes always or never.
    assert poisson.cdf(stopped, stated) > 1e-3
    assert poisson.sf(stopped - 1, stated) > 1e-3
    assert poisson.sf(stopped - 1, stated / 20) < 0.05  # one that is stated far too small


def test_words_say_of_which_raw_counts_a_chance_is_nearly_reached() -> None:
    gate = GateResult("one", True, "", 1e-9, reached_by=ANY_COUNTS)
    assert gate.false_alarm_in_words == "at most 1e-09, nearly reached with any raw counts"
    assert GateResult("one", True, "", 1e-9).false_alarm_in_words == "at most 1e-09"
    assert GateResult("one", True, "").false_alarm_in_words == "none"


def test_a_geometric_tail_is_refuted_as_often_as_is_stated_whatever_the_raw_counts_are(
    event: DrawEvent,
) -> None:
    counts = np.arange(900, dtype=np.int64) % 4
    stated, stopped = 0.0, 0
    for trial in range(_TRIALS):
        noise = discrete_laplace(f"geometric {trial}", counts.size, 2.0)
        gate_result = geometric_below_zero(
            Judged((Vector(event, None, counts + noise),), ()), _OFTEN
        )
        assert gate_result.reached_by == ANY_COUNTS
        stated, stopped = stated + gate_result.false_alarm, stopped + (not gate_result.passed)
    assert _OFTEN / 2 < stated / _TRIALS <= _OFTEN
    assert poisson.cdf(stopped, stated) > 1e-3
    assert poisson.sf(stopped - 1, stated) > 1e-3


@pytest.mark.parametrize("number", [60, 700])  # of few, the grid makes the lower limit lower
def test_squares_of_gaussian_noise_have_the_limits_of_chi_squared(number: int) -> None:
    noise = (
        Term(NoiseFamily.DISCRETE_GAUSSIAN, 34.0),
        Term(NoiseFamily.DISCRETE_GAUSSIAN, 24.0, 40),
    )
    low, high = limits(((number, noise),), 1e-9)
    assert chi2.cdf(low, number) == pytest.approx(5e-10, rel=0.1)
    assert chi2.sf(high, number) == pytest.approx(5e-10, rel=0.1)
    found = chi2.sf(number, number) - chi2.sf(1.2 * number, number)
    assert chance_between(((number, noise),), number, 1.2 * number) == pytest.approx(
        found, abs=0.01
    )


def test_squares_of_laplace_noise_reach_farther_than_chi_squared() -> None:
    noise = (
        Term(NoiseFamily.DISCRETE_LAPLACE, 2.0),
        Term(NoiseFamily.DISCRETE_LAPLACE, 1.0, 10),
    )
    assert limits(((30, noise),), 1e-9)[1] > 1.4 * chi2.isf(5e-10, 30)
    sums = [
        float(((discrete_laplace(f"squares {n}", 30, 2.0)) ** 2).sum()) / 7.8354
        for n in range(2_000)
    ]
    low, high = limits(((30, noise[:1]),), 0.1)
    beyond = sum(not low <= statistic <= high for statistic in sums)
    assert binom.cdf(beyond, len(sums), 0.1) > 1e-4
    assert binom.sf(beyond - 1, len(sums), 0.1) > 1e-4


@pytest.mark.parametrize(("start", "steps"), [(20, 300), (5, 20), (0, 60)])
def test_a_walk_ends_as_far_off_as_by_a_simulation(start: int, steps: int) -> None:
    angles = 2 * np.pi * uniforms(f"walk {start}", 4_000 * steps).reshape(4_000, steps)
    ends = np.abs(start + np.exp(1j * angles).sum(axis=1))
    length = float(np.quantile(ends, 0.2))
    assert walk_reaches(length, start, steps) == pytest.approx(0.8, abs=0.03)
    assert walk_reaches(1.5 * length, start, steps) < 0.77


def test_of_a_walk_of_few_steps_only_what_is_sure_is_said() -> None:
    assert [walk_reaches(40, start, 10) for start in (49, 50)] == [0, 1]


def test_a_fault_is_stated_from_the_size_on_that_is_found_with_99_percent() -> None:
    chances = {0.1: 0.2, 0.2: 0.98999, 0.3: 0.99214, 0.4: 1.0}
    stated = first_found(chances, chances.__getitem__, lambda size: f"{size:.0%} off")
    assert stated == "30% off (99.21% of the time)"
    assert first_found([0.4], chances.__getitem__, str) == "0.4 (99.99% of the time)"
    assert first_found([0.1, 0.2], chances.__getitem__, str) == NOTHING
