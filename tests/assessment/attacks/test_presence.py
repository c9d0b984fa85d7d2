"""Presence: proofs from thresholds, best guesses from dense noise."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from membership import membership_accuracy
from reference_formulas import average_half_width, proof_rounded

from turnstile.assessment.attacks.presence import guess_after, step_of
from turnstile.assessment.attacks.risk import averaged
from turnstile.assessment.attacks.unit_changes import Change
from turnstile.privacy.events import DrawEvent, Sensitivity
from turnstile.privacy.noise import Term
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.privacy.units import ProtectionUnit
from turnstile_lab.baselines import discrete_laplace, naive_laplace
from turnstile_lab.proof_of_presence import proof_continuous, proof_integer

_DRAWS = 2_000_000
ONCE = DrawEvent("t", "count", NoiseFamily.DISCRETE_LAPLACE, Fraction(1), (), ())


def test_a_simulated_group_is_proven_as_often_as_the_formulas_say() -> None:
    for group in (8, 12, 15, 19):
        noisy = group + naive_laplace(f"proof {group}", _DRAWS, 1.4)
        whole = group + discrete_laplace(f"whole {group}", _DRAWS, 1.4)
        pairs = (
            (np.mean(noisy > 18), proof_continuous(group, threshold=18, scale=1.4)),
            (np.mean(np.rint(noisy) >= 18), proof_rounded(group, least=18, scale=1.4)),
            (np.mean(whole >= 18), proof_integer(group, threshold=18, scale=1.4)),
        )
        for share, exact in pairs:
            deviation = math.sqrt(exact * (1 - exact) / _DRAWS)
            assert abs(float(share) - exact) <= 6.2 * deviation


def test_rounding_before_the_threshold_raises_the_probability() -> None:
    before = proof_rounded(1, least=18, scale=1.4)
    assert before == pytest.approx(3.81e-6, rel=0.01)
    assert (
        before
        > proof_continuous(1, threshold=18, scale=1.4)
        > proof_rounded(1, least=19, scale=1.4)
    )


def test_the_best_guess_after_five_and_ten_draws_is_that_of_a_binomial() -> None:
    right = math.e / (1 + math.e)
    for draws in (1, 5, 10):
        exact = sum(
            math.comb(draws, k)
            * right**k
            * (1 - right) ** (draws - k)
            * (0.5 if 2 * k == draws else 1)
            for k in range((draws + 1) // 2, draws + 1)
        )
        assert guess_after([ONCE], weeks=draws) == pytest.approx(exact, abs=1e-4)


def test_the_best_guess_of_a_gaussian_is_that_of_its_shift() -> None:
    gauss = DrawEvent("t", "count", NoiseFamily.DISCRETE_GAUSSIAN, Fraction(8), (), ())
    exact = 0.5 * (1 + math.erf(math.sqrt(4) / 16 / math.sqrt(2)))
    assert guess_after([gauss], weeks=4) == pytest.approx(exact, abs=1e-4)


def test_more_people_more_weeks_and_more_tables_help_the_attacker() -> None:
    two = [ONCE, replace(ONCE, table="u")]
    assert guess_after([ONCE]) < guess_after(two) < guess_after(two, weeks=3)
    assert guess_after([ONCE]) < guess_after([ONCE], group=3)


def test_larger_noise_hinders_the_attacker() -> None:
    assert guess_after([replace(ONCE, scale=Fraction(4))]) < guess_after([ONCE])


def test_a_sum_moves_by_its_step() -> None:
    unit = Sensitivity(l0=20, l1=6500, l2_squared=20 * 325**2, linf=325)
    event = replace(ONCE, sensitivities=((ProtectionUnit.BUS_DAY, unit),), scale=Fraction(1625))
    assert step_of(event) == 325
    assert guess_after([event]) == pytest.approx(1 - math.exp(-0.1) / 2, abs=1e-3)


def test_simulated_membership_agrees_with_the_exact_guess() -> None:
    canaries = 20_000
    events = [ONCE, replace(ONCE, table="u", scale=Fraction(2))]
    changes = {Change(event.noise, event.scale, 1): 1 for event in events}
    for week, share in enumerate(membership_accuracy(changes, weeks=3, canaries=canaries), start=1):
        exact = guess_after(events, weeks=week)
        assert abs(share - exact) <= 6.2 * 0.5 / math.sqrt(canaries)
        assert abs(share - guess_after(events, weeks=week + 4)) > 6.2 * 0.5 / math.sqrt(canaries)


def test_an_average_of_many_draws_narrows_like_the_root_of_their_number() -> None:
    once, many = averaged(ONCE, 1), averaged(ONCE, 100)
    assert once.half_width_95 > 8 * many.half_width_95
    distribution = Term(NoiseFamily.DISCRETE_LAPLACE, 1.0)
    assert average_half_width(distribution, 100) == many.half_width_95
