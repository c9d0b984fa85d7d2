"""The f-DP audit of one run: never wrong more often than it says, and it sees half of a scale."""

from __future__ import annotations

from fractions import Fraction

import pytest
from assessment_audits import (
    CERTAIN,
    Curve,
    curve_of,
    event_of,
    f_dp,
    independent,
    is_impossible,
    p_value,
    pure,
    run_of,
)
from scipy.stats import binom

from turnstile.privacy.noise_families import NoiseFamily
from turnstile.privacy.tail_probabilities import binomial_at_least

LAPLACE, GAUSSIAN = NoiseFamily.DISCRETE_LAPLACE, NoiseFamily.DISCRETE_GAUSSIAN
CANARIES = 300


@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN])
@pytest.mark.parametrize("scale", [1, 3])
def test_independent_guesses_of_right_noise_are_possible(noise: NoiseFamily, scale: int) -> None:
    curve = curve_of(event_of(noise, Fraction(scale)), 2)
    refuted = 0
    for right in range(150, CANARIES + 1, 5):
        chance = float(binom.sf(right - 1, CANARIES, curve.accuracy))
        if chance > 1e-12:
            assert not is_impossible(curve, CANARIES, CANARIES, right, chance * 0.999)
            refuted += is_impossible(curve, CANARIES, CANARIES, right, min(0.999, 1e4 * chance))
    assert refuted  # a chance that is far too large


@pytest.mark.parametrize("often", [0.5, 0.05, 1e-4])
def test_guesses_that_are_right_together_are_possible_too(often: float) -> None:
    """Rarely everybody is told by one coin each that is right with .9, else nothing is told."""
    right = 0.9
    curve = Curve(
        [0.0, often * (1 - right), 1 - often * right, 1.0],
        [0.0, often * right, 1 - often * (1 - right), 1.0],
    )
    too_few = 0
    for least in range(150, CANARIES + 1, 5):
        told, not_told = (float(binom.sf(least - 1, CANARIES, p)) for p in (right, 0.5))
        chance = often * told + (1 - often) * not_told
        assert not is_impossible(curve, CANARIES, CANARIES, least, chance * 0.999)
        too_few += binomial_at_least(least, CANARIES, curve.accuracy) < chance / 2
    assert too_few  # by a binomial, these guesses would refute a mechanism that keeps its promise


@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN])
def test_half_of_a_scale_is_refuted_and_the_right_one_is_not(noise: NoiseFamily) -> None:
    event = event_of(noise, Fraction(4))
    change = 4 if noise is LAPLACE else 8
    honest, halved = run_of(event), run_of(event, 0.5)
    for audit in (f_dp, pure, independent):
        assert not audit(honest, event, change, CERTAIN)
    for audit in (pure, independent) if noise is LAPLACE else (independent,):
        assert audit(halved, event, change, CERTAIN)
    assert f_dp(halved, event, change, CERTAIN if noise is LAPLACE else 0.05)


def test_a_delta_makes_more_right_guesses_likely() -> None:
    least = p_value(1.0, 1_000, 780, canaries=1_000, delta=0)
    assert least == pytest.approx(binomial_at_least(780, 1_000, 1 / (1 + 2.718281828**-1)))
    assert p_value(1.0, 1_000, 780, canaries=1_000, delta=1e-5) > least
    assert p_value(1.0, 1_000, 780, canaries=1_000, delta=1.0) == 1.0
