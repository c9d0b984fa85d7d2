"""Sums of noises beside closed forms, and beside plain convolutions."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from turnstile.privacy.noise import (
    Distribution,
    NoiseDistribution,
    Term,
    Weighted,
    half_width,
    integer_pmf,
    noise_fourth_cumulant,
    normal_half_width,
    normal_reach,
    pmf,
    tail,
    two_laplace_tails,
    variance_of,
    weighted_half_widths,
)
from turnstile.privacy.noise_families import NoiseFamily

LAPLACE = NoiseDistribution.LAPLACE
ROUNDED, DISCRETE, NORMAL = (
    NoiseDistribution.ROUNDED_LAPLACE,
    NoiseFamily.DISCRETE_LAPLACE,
    NoiseFamily.DISCRETE_GAUSSIAN,
)
WHOLE_SUMS = [
    [Term(DISCRETE, 2.0)],
    [Term(NORMAL, 0.3)],
    [Term(ROUNDED, 1.4, 3)],
    [Term(DISCRETE, 4.0, 5), Term(DISCRETE, 8.0)],
    [Term(NORMAL, 5.0, 2), Term(DISCRETE, 2.0, 2)],
]


@pytest.mark.parametrize(
    "terms", [[Term(LAPLACE, 1.0), Term(LAPLACE, 2.0)], [Term(LAPLACE, 1.0), Term(DISCRETE, 1.0)]]
)
def test_laplace_deviates_with_others_have_no_known_sum(terms: list[Term]) -> None:
    with pytest.raises(ValueError, match="equal Laplace"):
        half_width(terms, 0.95)


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


def test_a_continuous_distribution_has_no_probabilities_of_integers() -> None:
    with pytest.raises(ValueError, match="has a density"):
        pmf(Term(LAPLACE, 1.0), reach=3)


def test_a_confidence_of_one_is_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        half_width([Term(LAPLACE, 1.0)], 1.0)


def law_of(terms: list[Term]) -> tuple[np.ndarray, np.ndarray]:
    """Work out whole numbers and the probability of each, by plain convolution."""
    law = np.ones(1)
    for term in terms:
        at = np.arange(-900, 901) / term.scale
        if term.distribution is ROUNDED:
            edges = np.append(at - 0.5 / term.scale, 900.5 / term.scale)
            below = np.where(edges < 0, np.exp(-abs(edges)) / 2, 1 - np.exp(-abs(edges)) / 2)
            weights = np.diff(below)
        else:
            weights = np.exp(-(at**2) / 2 if term.distribution is NORMAL else -abs(at))
        for _ in range(term.times):
            law = np.convolve(law, weights / weights.sum())
    return np.arange(len(law)) - len(law) // 2, law


@pytest.mark.parametrize("terms", WHOLE_SUMS, ids=str)
def test_tails_and_half_widths_are_those_of_the_exact_law(terms: list[Term]) -> None:
    values, law = law_of(terms)
    for distance in (-1, 0, 0.7, 3, 11, 40):
        outside = float(law[abs(values) > distance].sum())
        assert tail(terms, distance) == pytest.approx(outside, abs=1e-13)
    for confidence in (0.01, 0.5, 0.95, 0.999):
        inside = [float(law[abs(values) <= width].sum()) for width in range(100)]
        assert half_width(terms, confidence) == bisect_left(inside, confidence)


@pytest.mark.parametrize("number", [1, 2, 3, 4, 900])
def test_tails_and_half_widths_of_laplace_sums_are_those_of_their_law(number: int) -> None:
    terms = [Term(LAPLACE, 1.4, number)]
    assert variance_of(terms[0]) == pytest.approx(3.92)
    reach = np.array([0.5, 3.0, 6.956, 20.0, 400.0]) * math.sqrt(number)
    u = reach / 1.4
    closed = {1: np.exp(-u), 2: np.exp(-u) * (2 + u) / 2, 3: np.exp(-u) * (8 + 5 * u + u * u) / 8}
    if number in closed:
        assert [tail(terms, at) for at in reach] == pytest.approx(closed[number], abs=1e-13)
    near = 2 * norm.sf(3.0, scale=1.4 * math.sqrt(2))
    assert tail(terms, 3.0 * math.sqrt(number)) == pytest.approx(near, abs=0.1 / number)
    for confidence in (0.5, 0.95, 0.999):
        width = half_width(terms, confidence)
        assert tail(terms, width) == pytest.approx(1 - confidence, abs=1e-9)


@pytest.mark.parametrize("scale", [0.3, 1.0, 2.5, 19.0, 21.0])
@pytest.mark.parametrize("noise", [DISCRETE, NORMAL, ROUNDED])
def test_moments_are_those_of_the_exact_law(noise: Distribution, scale: float) -> None:
    values, law = law_of([Term(noise, scale)])
    second, fourth = (float((law * values.astype(float) ** n).sum()) for n in (2, 4))
    assert variance_of(Term(noise, scale, 3)) == pytest.approx(second, rel=1e-6)
    near, masses = pmf(Term(noise, scale), reach=5)
    assert near.tolist() == [*range(-5, 6)]
    assert masses == pytest.approx(law[abs(values) <= 5])
    if isinstance(noise, NoiseFamily):
        cumulant = noise_fourth_cumulant(noise, Fraction(scale))
        assert cumulant == pytest.approx(fourth - 3 * second**2, rel=1e-5, abs=1e-4)


def test_half_widths_of_weighted_noises_are_those_of_their_sum() -> None:
    for weights in ([1.0], [1.0, 1.0], [-1.0, 1.0], [0.5, -2.0], [0.0, 3.0]):
        deviation, widths = weighted_half_widths(
            [Weighted(Term(DISCRETE, 900.0), np.array(weights))], (0.90, 0.95)
        )
        assert deviation == pytest.approx(
            math.sqrt(variance_of(Term(DISCRETE, 900.0)) * sum(weight**2 for weight in weights))
        )
        first, second = 900 * abs(np.array([*weights, 0.0])[:2])
        told = two_laplace_tails(
            np.array(widths), second or first, np.full(2, first * (second > 0))
        )
        assert told == pytest.approx([0.10, 0.05], rel=2e-3)


def test_half_widths_of_whole_weighted_noises_are_those_of_their_sum() -> None:
    for terms in WHOLE_SUMS:
        weighted = [Weighted(replace(term, times=1), np.ones(term.times)) for term in terms]
        deviation, widths = weighted_half_widths(weighted, (0.90, 0.95))
        assert deviation**2 == pytest.approx(sum(t.times * variance_of(t) for t in terms))
        assert widths == pytest.approx([half_width(terms, c) for c in (0.90, 0.95)], abs=0.6)


def test_gaussian_noises_add_up_to_one_whatever_their_weights() -> None:
    weights = (np.array([[1.0, -2.0]]), np.full(4, 0.3))
    terms = [Weighted(Term(NORMAL, 30.0), weights[0]), Weighted(Term(NORMAL, 90.0), weights[1])]
    deviation, (width,) = weighted_half_widths(terms, [0.95])
    assert deviation == pytest.approx(math.sqrt(5 * 30**2 + 4 * 27**2))
    assert width == pytest.approx(1.959964 * deviation)
    assert normal_half_width(deviation, level=95) == pytest.approx(width)
    assert normal_reach(deviation, level=95) == pytest.approx(1.644854 * deviation)


@pytest.mark.parametrize("other", [0.0, 0.5, 1.4, 1.9, 2.0, 2.1, 3.0, 40.0])
def test_the_tails_of_two_laplace_deviates_are_those_of_their_convolution(other: float) -> None:
    scale, reach, deviates = 2.0, np.linspace(0.1, 30, 7), np.linspace(-400, 400, 160_001)
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


@pytest.mark.parametrize("change", [1, 2, -3])
@pytest.mark.parametrize("noise", [NoiseFamily.DISCRETE_LAPLACE, NoiseFamily.DISCRETE_GAUSSIAN])
def test_ratios_of_a_noise_are_those_of_its_masses(noise: NoiseFamily, change: int) -> None:
    """What a value tells of a change by so much, in nats; losses and attacks rest on it."""
    record, values = noise.record, np.arange(-40, 41)
    logs = np.log(record.masses(values, 4.0))
    ratios = record.ratios(values, change, 4.0)
    shifted = slice(max(0, change), len(values) + min(0, change))
    back = slice(max(0, -change), len(values) + min(0, -change))
    assert ratios[shifted] == pytest.approx(logs[back] - logs[shifted])
