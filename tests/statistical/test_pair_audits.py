"""Audits: draws on neighboring tables never show a larger loss than was claimed.

For each mechanism and unit the released tables of two neighbors are drawn 40,000 times, a test
chosen beforehand distinguishes them, and Clopper-Pearson intervals give a lower bound of epsilon
that holds with probability 1 - 1e-9. It must lie below the claim; for a halved scale, a wrong
sensitivity and a wrong delta it must lie above, and has six standard deviations to spare for it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import beta

from turnstile.privacy.accounts import loss_of
from turnstile.privacy.events import DrawEvent, Sensitivity
from turnstile.privacy.guarantees import Zcdp, epsilon_tight
from turnstile.privacy.mechanisms import dense, stability_histogram
from turnstile.privacy.mechanisms.bounded_mean import sum_sensitivity
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.privacy.sensitivities import difference_of_counts, packed, records_at_most
from turnstile.privacy.units import Block

RUNS = 40_000
ALPHA = 5e-10  # of either side, so 1e-9 of both
DELTA = Fraction(1, 20)  # large, so that so many runs show half the scale
LAPLACE, GAUSSIAN = NoiseFamily.DISCRETE_LAPLACE, NoiseFamily.DISCRETE_GAUSSIAN
BLOCKS = (Block(date(2016, 7, 25), "bus"),)


@dataclass(frozen=True)
class Pair:
    """A unit's worst change of one table, and the sensitivity that covers it."""

    name: str
    here: Sequence[int]
    there: Sequence[int]
    sensitivity: Sensitivity


PAIRS = [
    Pair("trip", [1], [0], records_at_most(1)),
    Pair("trip under a card-day bound", [1, 0], [0, 1], difference_of_counts(records_at_most(1))),
    Pair("card-day in one cell", [4], [0], records_at_most(4)),
    Pair("card-day, once in each cell", [1, 1, 1, 1], [0, 0, 0, 0], packed(4, 1)),
    Pair("bus-day sum of speeds", [325, -325], [0, 0], sum_sensitivity(packed(2, 1), 65)),
]
each_pair = pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
# What is as it should be: of one trip and of sums in every run, of the others when there is time.
_IN_EVERY_RUN = (PAIRS[1], PAIRS[-1])
each_pair_in_time = pytest.mark.parametrize(
    "pair",
    [pytest.param(p, marks=() if p in _IN_EVERY_RUN else pytest.mark.long) for p in PAIRS],
    ids=lambda pair: pair.name,
)


def event(noise: NoiseFamily, scale: Fraction, threshold: int | None = None) -> DrawEvent:
    return DrawEvent("t", "count", noise, scale, BLOCKS, (), threshold=threshold)


def share_bounds(hits: NDArray[np.bool_]) -> tuple[float, float]:
    """Clopper-Pearson bounds, each side at ALPHA."""
    n, k = hits.size, int(hits.sum())
    low = float(beta.ppf(ALPHA, k, n - k + 1)) if k else 0.0
    high = float(beta.ppf(1 - ALPHA, k + 1, n - k)) if k < n else 1.0
    return low, high


def epsilon_bound(drawn: DrawEvent, pair: Pair, delta: float) -> float:
    """Lower bound of epsilon at delta from draws on both tables."""
    here, there = np.array(pair.here), np.array(pair.there)
    toward = here - there
    scores = []
    for side in (here, there):
        tables = dense.draw(drawn, np.tile(side, (RUNS, 1)).astype(np.int64))
        if drawn.noise is LAPLACE:
            ratios = np.abs(tables - there).sum(axis=1) - np.abs(tables - here).sum(axis=1)
            scores.append(ratios >= np.abs(toward).sum())
        else:
            sigma = float(drawn.scale) * float(np.sqrt((toward**2).sum()))
            scores.append((tables - here) @ toward >= 0.6 * sigma)
    low, high = share_bounds(scores[0])[0], share_bounds(scores[1])[1]
    return math.log(max(low - delta, 1e-300) / high)


@pytest.mark.some(1)
@each_pair_in_time
def test_laplace_draws_stay_below_the_claim_and_near_it(pair: Pair) -> None:
    scale = Fraction(pair.sensitivity.l1)  # epsilon 1
    drawn = event(LAPLACE, scale)
    claim = float(loss_of(drawn, pair.sensitivity).epsilon or 0)
    assert 0.5 * claim < epsilon_bound(drawn, pair, 0.0) <= claim


@pytest.mark.some(2)
@each_pair
def test_laplace_draws_of_half_the_scale_are_caught(pair: Pair) -> None:
    drawn = event(LAPLACE, Fraction(pair.sensitivity.l1, 2))
    claim = float(loss_of(event(LAPLACE, 2 * drawn.scale), pair.sensitivity).epsilon or 0)
    assert epsilon_bound(drawn, pair, 0.0) > claim


@pytest.mark.some(1)
@each_pair_in_time
def test_gaussian_draws_stay_below_the_claim(pair: Pair) -> None:
    sigma = Fraction(math.isqrt(pair.sensitivity.l2_squared * 4))
    drawn = event(GAUSSIAN, sigma)
    rho = loss_of(drawn, pair.sensitivity).rho or Fraction(0)
    claim = float(epsilon_tight(Zcdp(rho), DELTA) or 0)
    assert epsilon_bound(drawn, pair, float(DELTA)) <= claim


@pytest.mark.some(1)
@each_pair
def test_gaussian_draws_of_half_the_scale_are_caught(pair: Pair) -> None:
    sigma = Fraction(math.isqrt(pair.sensitivity.l2_squared * 4))
    rho = loss_of(event(GAUSSIAN, sigma), pair.sensitivity).rho or Fraction(0)
    claim = float(epsilon_tight(Zcdp(rho), DELTA) or 0)
    drawn = event(GAUSSIAN, sigma / 2)
    assert epsilon_bound(drawn, pair, float(DELTA)) > claim


def test_a_sensitivity_that_forgets_displacement_is_caught() -> None:
    pair = PAIRS[1]
    drawn = event(LAPLACE, Fraction(1))
    forgotten = float(loss_of(drawn, records_at_most(1)).epsilon or 0)
    assert epsilon_bound(drawn, pair, 0.0) > forgotten


def released_share(scale: Fraction, threshold: int) -> tuple[float, float]:
    drawn = event(LAPLACE, scale, threshold)
    ones = np.ones(2 * RUNS, dtype=np.int64)
    return share_bounds(stability_histogram.draw(drawn, ones) > 0)


@pytest.mark.parametrize(("scale", "threshold"), [(2, 9), (1, 5)])
def test_a_lone_record_shows_as_often_as_its_delta_says(scale: int, threshold: int) -> None:
    drawn = event(LAPLACE, Fraction(scale), threshold)
    low, high = released_share(Fraction(scale), threshold)
    assert low <= float(loss_of(drawn, records_at_most(1)).delta) <= high


def test_a_threshold_that_is_one_too_low_is_caught() -> None:
    claimed = float(loss_of(event(LAPLACE, Fraction(2), 9), records_at_most(1)).delta)
    assert released_share(Fraction(2), 8)[0] > claimed


def test_the_delta_that_opendp_states_for_its_own_threshold_is_caught() -> None:
    """OpenDP 0.16 releases `>= T` and states the delta of `> T` (opendp issue 2922)."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.map_domain(dp.atom_domain(T="i64"), dp.atom_domain(T="i64"))
    metric = dp.l01inf_distance(dp.absolute_distance(T="i64"))
    theirs = dp.m.make_laplace_threshold(space, metric, scale=2.0, threshold=9)
    _, claimed = theirs.map((1, 1, 1))
    released = theirs(dict.fromkeys(range(3 * RUNS), 1))
    hits = np.zeros(3 * RUNS, dtype=np.bool_)
    hits[: len(released)] = True
    assert claimed == pytest.approx(0.00691, abs=1e-5)
    assert share_bounds(hits)[0] > claimed
