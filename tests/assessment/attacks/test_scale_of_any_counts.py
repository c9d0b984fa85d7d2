"""The scale of the noise whatever the raw counts are: no false alarm, and what it does find."""

from __future__ import annotations

import math

import numpy as np
import pytest

from turnstile.assessment.attacks.evidence_of_any_counts import log_evidence
from turnstile.privacy.noise import Term, pmf
from turnstile.privacy.noise_families import NoiseFamily
from turnstile_lab.baselines import uniforms
from turnstile_lab.scale_intervals import interval

CELLS = 1_000
DISTRIBUTIONS = {
    NoiseFamily.DISCRETE_GAUSSIAN: (NoiseFamily.DISCRETE_GAUSSIAN, 15.0),
    NoiseFamily.DISCRETE_LAPLACE: (NoiseFamily.DISCRETE_LAPLACE, 4.0),
}


def noise(label: str, family: NoiseFamily, times: float = 1.0) -> np.ndarray:
    """Noise of so many times the declared scale, by a label."""
    distribution, scale = DISTRIBUTIONS[family]
    values, chances = pmf(Term(distribution, times * scale), reach=math.ceil(40 * times * scale))
    return values[
        np.searchsorted(np.cumsum(chances), uniforms(label, CELLS)).clip(0, values.size - 1)
    ]


def raw(kind: str, label: str) -> np.ndarray:
    """Raw counts: unfavorable ones for a test that assumed anything."""
    share = uniforms(f"raw {label}", CELLS)
    counts = {
        "empty": 0 * share,
        "all alike": 0 * share + 7,
        "half empty": np.where(share < 0.5, 0, 300 * share),
        "one to thirty": 1 + 30 * share,
        "heavy tail": np.exp(8 * share),
        "two far heaps": np.where(share < 0.5, 3, 4_000),
        "in order": np.arange(CELLS) / 3,
    }[kind]
    return np.floor(counts).astype(np.int64)


RAW = (
    "empty",
    "all alike",
    "half empty",
    "one to thirty",
    "heavy tail",
    "two far heaps",
    "in order",
)


@pytest.mark.some(5)
@pytest.mark.parametrize("family", DISTRIBUTIONS)
@pytest.mark.parametrize("kind", RAW)
def test_a_declared_scale_is_never_refuted_whatever_the_counts(
    family: NoiseFamily, kind: str
) -> None:
    """At 95 % at most one table in twenty may be; a gate's 1e-9 is far beyond that."""
    refuted = 0
    for seed in range(3):
        label = f"{kind} {family} {seed}"
        values = raw(kind, label) + noise(label, family)
        refuted += log_evidence(values, family, DISTRIBUTIONS[family][1]) > math.log(20)
    assert refuted <= 1


@pytest.mark.parametrize("family", DISTRIBUTIONS)
@pytest.mark.parametrize(
    ("kind", "times"),
    [("empty", 0.5), ("empty", 2.0), ("half empty", 0.5), ("half empty", 2.0), ("all alike", 0.5)],
)
def test_another_scale_is_refuted_where_many_cells_are_alike(
    family: NoiseFamily, times: float, kind: str
) -> None:
    values = raw(kind, kind) + noise(f"{kind} {times}", family, times)
    assert log_evidence(values, family, DISTRIBUTIONS[family][1]) > math.log(1e9)


def test_scattered_counts_hide_a_smaller_scale_and_the_interval_says_so() -> None:
    family, scale = NoiseFamily.DISCRETE_GAUSSIAN, 15.0
    values = 200 + np.floor(5_000 * uniforms("scattered", CELLS)).astype(np.int64)
    bounds = interval(values + noise("scattered noise", family), family, scale)
    assert bounds.low == 0.0
    assert bounds.high >= scale
    halved = values + noise("scattered noise", family, 0.5)
    assert log_evidence(halved, family, scale) < math.log(20)


@pytest.mark.some(1)
@pytest.mark.parametrize("family", DISTRIBUTIONS)
def test_an_interval_holds_the_scale_and_not_every_scale(family: NoiseFamily) -> None:
    scale = DISTRIBUTIONS[family][1]
    bounds = interval(raw("half empty", "i") + noise(f"interval {family}", family), family, scale)
    assert 0.5 * scale < bounds.low <= scale <= bounds.high < 2 * scale
    wrong = interval(raw("half empty", "w") + noise("w", family, 0.5), family, scale)
    assert wrong.low <= 0.5 * scale <= wrong.high < scale


def test_sums_of_either_sign_show_too_small_a_scale() -> None:
    family, scale = NoiseFamily.DISCRETE_GAUSSIAN, 15.0
    sums = np.where(uniforms("sums", CELLS) < 0.4, 0, 2_000 * uniforms("signs", CELLS) - 1_000)
    for times, least in ((1.0, -math.inf), (0.5, math.log(1e9))):
        values = np.floor(sums).astype(np.int64) + noise(f"sums {times}", family, times)
        evidence = log_evidence(values, family, scale, is_signed=True)
        assert evidence > least
        assert times == 0.5 or evidence < math.log(20)


def test_no_cells_are_no_evidence() -> None:
    assert log_evidence(np.array([3]), NoiseFamily.DISCRETE_GAUSSIAN, 15.0) == pytest.approx(
        0, abs=1e-12
    )
