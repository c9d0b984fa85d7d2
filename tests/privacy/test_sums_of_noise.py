"""Sums of noises: closed forms, simulated coverage, and the source's figures for contrast."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnstile.privacy.noise import (
    NoiseDistribution,
    Term,
    Weighted,
    half_width,
    integer_pmf,
    pmf,
    tail,
    two_laplace_tails,
    variance_of,
    weighted_half_widths,
)
from turnstile.privacy.noise_families import NoiseFamily
from turnstile_lab.baselines import discrete_laplace, naive_laplace, uniforms

_DRAWS = 1_000_000  # 0.2 % is then more than six standard deviations of a share of 0.9
_WITHIN = 0.002


def sample(term: Term, label: str) -> np.ndarray:
    """Draw sums of a term from a label."""
    total = np.zeros(_DRAWS)
    for number in range(term.times):
        name = f"{label} {term.distribution} {number}"
        if term.distribution is NoiseDistribution.LAPLACE:
            total += naive_laplace(name, _DRAWS, term.scale)
        elif term.distribution is NoiseDistribution.ROUNDED_LAPLACE:
            total += np.rint(naive_laplace(name, _DRAWS, term.scale))
        elif term.distribution is NoiseFamily.DISCRETE_LAPLACE:
            total += discrete_laplace(name, _DRAWS, term.scale)
        elif term.distribution is NoiseDistribution.GAUSSIAN:
            radius = np.sqrt(-2 * np.log(uniforms(name, _DRAWS)))
            angle = 2 * math.pi * uniforms(f"angle {name}", _DRAWS)
            total += term.scale * radius * np.cos(angle)
        else:
            values, probabilities = pmf(term, reach=math.ceil(12 * term.scale))
            total += values[np.searchsorted(np.cumsum(probabilities), uniforms(name, _DRAWS))]
    return total


LAPLACE, GAUSS = NoiseDistribution.LAPLACE, NoiseDistribution.GAUSSIAN
ROUNDED, DISCRETE, NORMAL = (
    NoiseDistribution.ROUNDED_LAPLACE,
    NoiseFamily.DISCRETE_LAPLACE,
    NoiseFamily.DISCRETE_GAUSSIAN,
)
SUMS = [
    [Term(LAPLACE, 1.4)],
    [Term(LAPLACE, 1.4, 2)],
    [Term(LAPLACE, 1.4, 3)],
    [Term(LAPLACE, 1.0, 2), Term(LAPLACE, 2.0)],
    [Term(LAPLACE, 1.4, 2), Term(GAUSS, 3.0, 2)],
    [Term(LAPLACE, 0.7), Term(DISCRETE, 2.0, 2)],
    [Term(LAPLACE, 1.0, 2), Term(DISCRETE, 2.0), Term(NORMAL, 3.0)],
    [Term(GAUSS, 2.0), Term(NORMAL, 1.5, 2), Term(DISCRETE, 1.0, 2)],
    [Term(LAPLACE, 1.4, 2), Term(GAUSS, 1.0, 2), Term(DISCRETE, 2.0), Term(NORMAL, 2.0)],
]
WHOLE_SUMS = [
    [Term(DISCRETE, 2.0)],
    [Term(ROUNDED, 1.4, 3)],
    [Term(DISCRETE, 4.0, 5), Term(DISCRETE, 8.0)],
    [Term(NORMAL, 5.0, 2), Term(DISCRETE, 2.0, 2)],
]


@pytest.mark.parametrize("terms", SUMS, ids=str)
def test_intervals_with_a_continuous_term_cover_what_they_state(terms: list[Term]) -> None:
    total = np.abs(sum(sample(term, f"sum {n}") for n, term in enumerate(terms)))
    for confidence in (0.90, 0.95, 0.99):
        share = float(np.mean(total <= half_width(terms, confidence)))
        assert abs(share - confidence) <= _WITHIN


@pytest.mark.parametrize("terms", WHOLE_SUMS, ids=str)
def test_integer_intervals_cover_exactly_what_their_tail_says_and_are_the_shortest(
    terms: list[Term],
) -> None:
    total = np.abs(sum(sample(term, f"whole {n}") for n, term in enumerate(terms)))
    for confidence in (0.90, 0.95, 0.99):
        width = half_width(terms, confidence)
        assert tail(terms, width) <= 1 - confidence + 1e-9 < tail(terms, width - 1)
        assert abs(float(np.mean(total <= width)) - (1 - tail(terms, width))) <= _WITHIN


def test_an_interval_for_another_scale_does_not_cover() -> None:
    total = np.abs(sample(Term(LAPLACE, 1.4, 3), "control"))
    share = float(np.mean(total <= half_width([Term(LAPLACE, 1.3, 3)], 0.95)))
    assert abs(share - 0.95) > _WITHIN


@pytest.mark.parametrize("distance", [0.5, 3.0, 6.956, 9.884, 20.0])
def test_three_laplace_terms_have_the_closed_form(distance: float) -> None:
    u = distance / 1.4
    closed = math.exp(-u) * (8 + 5 * u + u * u) / 8
    assert tail([Term(LAPLACE, 1.4, 3)], distance) == pytest.approx(closed, abs=1e-8)


def test_equal_scales_are_not_assumed() -> None:
    terms = [Term(LAPLACE, 1.0, 2), Term(LAPLACE, 2.0)]
    assert half_width(terms, 0.95) == pytest.approx(7.08, abs=0.005)
    assert half_width(terms, 0.99) == pytest.approx(10.345, abs=0.005)


@given(
    scale=st.floats(0.3, 20),
    times=st.integers(1, 6),
    distribution=st.sampled_from([DISCRETE, ROUNDED]),
)
@settings(max_examples=40, deadline=None)
def test_integer_distributions_add_up_to_one_and_have_the_stated_variance(
    scale: float, times: int, distribution: NoiseDistribution
) -> None:
    values, probabilities = integer_pmf([Term(distribution, scale, times)])
    assert probabilities.sum() == pytest.approx(1, abs=1e-9)
    measured = float(np.sum(values.astype(float) ** 2 * probabilities))
    assert measured == pytest.approx(times * variance_of(Term(distribution, scale)), rel=1e-6)


def test_a_term_needs_a_positive_scale_and_number() -> None:
    with pytest.raises(ValueError, match="positive"):
        Term(LAPLACE, 0.0)
    with pytest.raises(ValueError, match="positive"):
        Term(LAPLACE, 1.0, 0)


def test_a_confidence_of_one_is_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        half_width([Term(LAPLACE, 1.0)], 1.0)


@pytest.mark.parametrize("noise", [LAPLACE, DISCRETE])
def test_half_widths_of_weighted_noises_are_those_of_their_sum(noise: NoiseDistribution) -> None:
    for weights, same in (([1.0], Term(noise, 900.0)), ([1.0, 1.0], Term(noise, 900.0, 2))):
        deviation, widths = weighted_half_widths(
            [Weighted(Term(noise, 900.0), np.array(weights))], (0.90, 0.95)
        )
        assert deviation == pytest.approx(math.sqrt(len(weights) * variance_of(Term(noise, 900.0))))
        assert widths == pytest.approx([half_width([same], c) for c in (0.90, 0.95)], rel=1e-3)


@pytest.mark.parametrize("other", [0.0, 0.5, 1.4, 1.9, 2.0, 2.1, 3.0, 40.0])
def test_the_tails_of_two_laplace_deviates_are_those_of_their_convolution(other: float) -> None:
    scale, reach, deviates = 2.0, np.linspace(0.1, 30, 7), np.linspace(-400, 400, 800_001)
    density = np.exp(-np.abs(deviates) / scale) / (2 * scale) * (deviates[1] - deviates[0])
    for at, of in enumerate(reach):
        if other:
            over = (deviates - of) / other
            above = np.where(over > 0, 1 - np.exp(-np.abs(over)) / 2, np.exp(-np.abs(over)) / 2)
            outside = 2 * float((density * above).sum())
        else:
            outside = math.exp(-of / scale)
        told = two_laplace_tails(reach, scale, np.full(reach.shape, other))[at]
        assert told == pytest.approx(outside, rel=2e-3, abs=1e-9)
