"""docs/CORRECTIONS.md: each correction with the source's figure beside the right one."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from reference_formulas import theorem_5_as_stated

from turnstile.privacy.mechanisms.thresholds import source_threshold
from turnstile.privacy.noise import NoiseDistribution, Term, half_width, tail
from turnstile_lab.baselines import naive_laplace
from turnstile_lab.historical import (
    theorem_1_density,
    theorem_5_printed,
)
from turnstile_lab.proof_of_presence import proof_continuous

_DOCUMENT = Path(__file__).resolve().parents[3] / "docs/CORRECTIONS.md"
THREE = [Term(NoiseDistribution.LAPLACE, 1.4, 3)]


def test_theorem_5_covers_half_of_what_it_states_and_as_printed_a_quarter() -> None:
    assert round(theorem_5_printed(1.4, 0.05), 2) == 0.98
    assert round(theorem_5_printed(1.4, 0.01), 2) == 1.96
    coverage = {
        alpha: (
            1 - tail(THREE, theorem_5_as_stated(1.4, alpha)),
            1 - tail(THREE, theorem_5_printed(1.4, alpha)),
        )
        for alpha in (0.05, 0.01)
    }
    assert coverage[0.05] == pytest.approx((0.534, 0.255), abs=0.001)
    assert coverage[0.01] == pytest.approx((0.828, 0.477), abs=0.001)
    assert half_width(THREE, 0.95) == pytest.approx(6.956, abs=0.001)
    assert half_width(THREE, 0.99) == pytest.approx(9.884, abs=0.001)


def test_the_proof_of_theorem_5_bounds_the_tail_from_below() -> None:
    """All three terms beyond a implies a mean beyond a, so its chance is the smaller one."""
    for distance in (1.0, 3.0, 6.0):
        all_beyond = math.exp(-distance / 1.4) / 8
        assert all_beyond < tail(THREE, distance) / 2


def test_theorem_1_states_a_density() -> None:
    printed = [theorem_1_density(group, 1.4) for group in (1, 5, 12)]
    exact = [proof_continuous(group, threshold=18, scale=1.4) for group in (1, 5, 12)]
    assert printed == pytest.approx([1.9e-6, 3.3e-5, 4.9e-3], rel=0.02)
    assert [f"{value:.0e}" for value in printed] != [f"{value:.0e}" for value in exact]
    assert exact == pytest.approx([2.66e-6, 4.64e-5, 6.88e-3], rel=0.002)
    simulated = np.mean(12 + naive_laplace("theorem 1", 1_000_000, 1.4) > 18)
    assert float(simulated) == pytest.approx(exact[2], abs=6.2 * math.sqrt(exact[2] / 1_000_000))


def test_the_density_is_no_lower_bound_of_delta_below_scale_one() -> None:
    assert (
        theorem_1_density(1, 0.5) > 0.99 * 2 * proof_continuous(1, threshold=18, scale=0.5) / 1.01
    )
    assert theorem_1_density(1, 0.5) > proof_continuous(1, threshold=18, scale=0.5)
    assert theorem_1_density(1, 1.4) < proof_continuous(1, threshold=18, scale=1.4)


@pytest.mark.parametrize("epsilon", [1, 2])
def test_the_stability_threshold_is_four_times_safer_than_its_delta(epsilon: int) -> None:
    delta = 1 / 8_000_000
    threshold = source_threshold(Fraction(epsilon), Fraction(1, 8_000_000))
    assert threshold == pytest.approx({1: 34.18, 2: 17.59}[epsilon], abs=0.005)
    assert proof_continuous(1, threshold=threshold, scale=2 / epsilon) == pytest.approx(
        delta / 4, rel=1e-6
    )
    tight = 1 + 2 / epsilon * math.log(1 / (2 * delta))
    assert proof_continuous(1, threshold=tight, scale=2 / epsilon) == pytest.approx(delta, rel=1e-6)


def test_the_itms_figure_adds_up_and_is_half_of_what_a_bus_day_loses_under_replace() -> None:
    mean, count = 12.361, round(89 / 31, 3)
    assert count == 2.871
    assert round(mean + count, 3) == 15.232
    assert round(2 * (mean + count), 2) == 30.46
    assert round(31 * (mean + count)) == 472
    assert round(89 * 65 / 314, 2) == 18.42


def test_its_epsilon_depends_on_the_data() -> None:
    """Local sensitivity: with one bus fewer in each cell the same noise costs another epsilon."""
    losses = [89 * 65 / buses for buses in (468, 467)]
    assert losses[0] != losses[1]
    assert losses[0] == pytest.approx(12.361, abs=0.005)


def test_parallel_composition_fails_under_replace() -> None:
    """A replaced trip may leave one partition and enter another: both draws see a change."""
    epsilon = 1.0
    ratio = (1 - math.exp(-epsilon)) / (1 + math.exp(-epsilon))

    def distribution(count: int, value: int) -> float:
        """Discrete Laplace of scale 1 around a count."""
        return ratio * math.exp(-epsilon * abs(value - count))

    worst = max(
        abs(
            math.log(distribution(1, x) * distribution(0, y))
            - math.log(distribution(0, x) * distribution(1, y))
        )
        for x in range(-5, 6)
        for y in range(-5, 6)
    )
    alone = max(abs(math.log(distribution(1, x) / distribution(0, x))) for x in range(-5, 6))
    assert alone == pytest.approx(epsilon)
    assert worst == pytest.approx(2 * epsilon)


def test_the_document_names_every_correction() -> None:
    text = _DOCUMENT.read_text(encoding="utf-8")
    for figure in (
        "6.956",
        "9.884",
        "0.98",
        "1.96",
        "2.66e-6",
        "delta/4",
        "15.232",
        "30.46",
        "472",
    ):
        assert figure in text
    for name in ("Theorem 5", "Theorem 1", "parallel composition"):
        assert name in text
