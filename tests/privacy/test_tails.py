"""Exact tails are upper bounds, and near ones."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from turnstile.privacy.tail_probabilities import binomial_limit
from turnstile.privacy.tails import exp_lower, exp_upper, laplace_tail, stability_delta

SCALES = st.sampled_from([Fraction(1, 2), Fraction(1), Fraction(2), Fraction(10)])


@given(st.fractions(min_value=-30, max_value=30))
def test_the_exponential_lies_between_its_bounds(exponent: Fraction) -> None:
    low, high = exp_lower(exponent), exp_upper(exponent)
    assert low < high < low * (1 + Fraction(1, 10**45))
    assert float(high) == pytest.approx(math.exp(exponent), rel=1e-12)


@given(SCALES, st.integers(1, 30))
def test_a_tail_is_the_sum_of_its_probabilities(scale: Fraction, at: int) -> None:
    ratio = math.exp(-1 / float(scale))
    terms = ((1 - ratio) / (1 + ratio) * ratio**z for z in range(at, at + 2000))
    assert float(laplace_tail(scale, at)) == pytest.approx(math.fsum(terms), rel=1e-9)


@given(SCALES, st.integers(2, 12), st.lists(st.integers(1, 3), min_size=1, max_size=4))
def test_no_way_to_spread_records_passes_the_delta_of_the_unit(
    scale: Fraction, threshold: int, held: list[int]
) -> None:
    spread = sum(laplace_tail(scale, threshold - count) for count in held)
    bound = stability_delta(scale, threshold, l1=sum(held), linf=max(held))
    assert min(Fraction(1), spread) <= bound


def test_a_unit_that_reaches_the_threshold_by_itself_is_not_covered() -> None:
    assert stability_delta(Fraction(1), 3, l1=3, linf=3) == 1


@pytest.mark.parametrize("alpha", [0.3, 0.05, 1e-6])
@pytest.mark.parametrize("chance", [0.001, 0.02, 0.5, 0.99])
def test_a_binomial_limit_is_the_first_number_that_is_reached_so_rarely(
    alpha: float, chance: float
) -> None:
    for trials in range(12):
        reached = binom.sf(np.arange(trials + 2) - 1, trials, chance)  # at least 0, 1, ...
        first = next(number for number in range(1, trials + 2) if reached[number] <= alpha)
        assert binomial_limit(alpha, trials, chance) == first
