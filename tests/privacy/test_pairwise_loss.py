"""No pair of neighbors is distinguished better than the planned draws' accounted loss.

Tiny worlds: cards with a few trips in 2 slots and 2 places, bounded as the product bounds. The
output distributions on neighboring data are compared outright: for Laplace the log-ratio is an
exact fraction; the Renyi divergence of Gaussians and the hockey-stick divergence of thresholds are
sums.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections import Counter
from datetime import date
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from turnstile.privacy.accounts import Loss, losses
from turnstile.privacy.events import DrawEvent, Sensitivity
from turnstile.privacy.noise import noise_pmf
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.privacy.sensitivities import difference_of_counts, records_at_most
from turnstile.privacy.units import Block, ProtectionUnit

Trip = tuple[int, int, int]  # card, slot, place
MONDAY = date(2016, 7, 25)
BUS = Block(MONDAY, "bus")
TABLES = ("time", "place", "cell")
CELLS = {
    "time": lambda trip: trip[1],
    "place": lambda trip: trip[2],
    "cell": lambda trip: 2 * trip[1] + trip[2],
}
SIZES = {"time": 2, "place": 2, "cell": 4}
TRIPS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 1)), max_size=6)
PLANS = st.lists(st.tuples(st.sampled_from(TABLES), st.sampled_from(["1/2", "1", "3"])), max_size=3)


def kept(trips: list[Trip], bound: int, salt: int) -> list[Trip]:
    def rank(trip: Trip) -> bytes:
        return hashlib.sha256(repr((salt, trip)).encode()).digest()

    by_card = [sorted((t for t in trips if t[0] == card), key=rank) for card in range(2)]
    return [trip for card_trips in by_card for trip in card_trips[:bound]]


def exact(trips: list[Trip], table: str) -> list[int]:
    counted = Counter(CELLS[table](trip) for trip in trips)
    return [counted[cell] for cell in range(SIZES[table])]


def plan(
    drawn: list[tuple[str, str]],
    bound: int,
    noise: NoiseFamily = NoiseFamily.DISCRETE_LAPLACE,
    threshold: int | None = None,
) -> list[DrawEvent]:
    units = (
        (ProtectionUnit.TRIP, difference_of_counts(records_at_most(1))),
        (ProtectionUnit.CARD_DAY, records_at_most(bound)),
    )
    return [
        DrawEvent(table, "count", noise, Fraction(scale), (BUS,), units, threshold=threshold)
        for table, scale in drawn
    ]


def accounted(events: list[DrawEvent], unit: ProtectionUnit) -> Loss:
    unit_losses = [loss for (kind, _), loss in losses(events).items() if kind is unit]
    return unit_losses[0] if unit_losses else Loss(Fraction(0), Fraction(0))


def neighbors(trips: list[Trip], unit: ProtectionUnit) -> list[Trip]:
    if unit is ProtectionUnit.CARD_DAY:
        return [trip for trip in trips if trip[0] != 0]
    return trips[1:]


def laplace_loss(counts: list[int], other: list[int], scale: Fraction) -> Fraction:
    """Largest log-ratio over all outputs, cell by cell over a window that holds the extremes."""
    return sum(
        (max(abs(y - b) - abs(y - a) for y in range(-3, 10)) / scale)
        for a, b in zip(counts, other, strict=True)
    )


UNITS = st.sampled_from([ProtectionUnit.TRIP, ProtectionUnit.CARD_DAY])


@settings(max_examples=200)
@given(TRIPS, PLANS, UNITS, st.integers(1, 3), st.integers(0, 5))
def test_laplace_draws_distinguish_no_neighbors_beyond_their_accounted_epsilon(
    trips: list[Trip], drawn: list[tuple[str, str]], unit: ProtectionUnit, bound: int, salt: int
) -> None:
    events = plan(drawn, bound)
    here, there = kept(trips, bound, salt), kept(neighbors(trips, unit), bound, salt)
    both_ways = [
        sum(laplace_loss(exact(x, e.table), exact(y, e.table), e.scale) for e in events)
        for x, y in ((here, there), (there, here))
    ]
    assert max(both_ways) <= accounted(events, unit).epsilon


@settings(max_examples=100)
@given(TRIPS, TRIPS, PLANS, st.integers(1, 3), st.integers(0, 5))
def test_replacing_a_card_day_costs_laplace_draws_at_most_twice(
    trips: list[Trip],
    others: list[Trip],
    drawn: list[tuple[str, str]],
    bound: int,
    salt: int,
) -> None:
    events = plan(drawn, bound)
    replaced = [t for t in trips if t[0] != 0] + [t for t in others if t[0] == 0]
    here, there = kept(trips, bound, salt), kept(replaced, bound, salt)
    loss = sum(laplace_loss(exact(here, e.table), exact(there, e.table), e.scale) for e in events)
    assert loss <= 2 * accounted(events, ProtectionUnit.CARD_DAY).epsilon


def renyi(counts: list[int], other: list[int], sigma: Fraction, alpha: float) -> float:
    """Renyi divergence of order alpha between the two noisy tables."""
    values = np.arange(-60, 61)
    width = 2 * float(sigma) ** 2
    mass = np.exp(-(values**2) / width).sum()
    total = 0.0
    for a, b in zip(counts, other, strict=True):
        tilted = -(values**2) + (alpha - 1) * ((values - (b - a)) ** 2 - values**2)
        total += math.log(np.exp(tilted / width).sum() / mass) / (alpha - 1)
    return total


@settings(max_examples=100)
@given(TRIPS, PLANS, UNITS, st.integers(1, 3), st.sampled_from([1.1, 1.5, 2.0, 4.0]))
def test_gaussian_draws_have_no_renyi_divergence_beyond_their_accounted_rho(
    trips: list[Trip], drawn: list[tuple[str, str]], unit: ProtectionUnit, bound: int, alpha: float
) -> None:
    events = plan(drawn, bound, NoiseFamily.DISCRETE_GAUSSIAN)
    here, there = kept(trips, bound, 0), kept(neighbors(trips, unit), bound, 0)
    divergence = sum(
        renyi(exact(here, e.table), exact(there, e.table), e.scale, alpha) for e in events
    )
    assert divergence <= alpha * float(accounted(events, unit).rho) + 1e-9


@settings(max_examples=100)
@given(TRIPS, TRIPS, st.sampled_from(["1", "3"]), st.sampled_from([1.5, 3.0]))
def test_replacing_a_unit_that_only_adds_costs_gaussian_draws_at_most_two_rho(
    trips: list[Trip], others: list[Trip], scale: str, alpha: float
) -> None:
    events = plan([("cell", scale)], 2, NoiseFamily.DISCRETE_GAUSSIAN)
    replaced = [t for t in trips if t[0] != 0] + [t for t in others if t[0] == 0]
    here, there = exact(kept(trips, 2, 0), "cell"), exact(kept(replaced, 2, 0), "cell")
    rho = 2 * float(accounted(events, ProtectionUnit.CARD_DAY).rho)
    assert renyi(here, there, Fraction(scale), alpha) <= alpha * rho + 1e-9


def thresholded_distribution(count: int, scale: Fraction, threshold: int) -> dict[int, float]:
    """Exact distribution of one released cell."""
    if count == 0:
        return {0: 1.0}
    values, mass = noise_pmf(NoiseFamily.DISCRETE_LAPLACE, scale, reach=40)
    distribution = {int(v) + count: float(p) for v, p in zip(values, mass, strict=True)}
    shown = {value: p for value, p in distribution.items() if value >= threshold}
    return {0: 1.0 - sum(shown.values()), **shown}


def hockey_stick(counts: list[int], other: list[int], event: DrawEvent, epsilon: float) -> float:
    """Sum of the positive part of P - e^epsilon Q over all outputs of two cells."""
    distributions = [
        [thresholded_distribution(c, event.scale, event.threshold or 0) for c in x]
        for x in (counts, other)
    ]
    outputs = itertools.product(*(p.keys() | q.keys() for p, q in zip(*distributions, strict=True)))
    total = 0.0
    for output in outputs:
        p, q = (
            math.prod(
                distribution.get(value, 0.0)
                for distribution, value in zip(side, output, strict=True)
            )
            for side in distributions
        )
        total += max(0.0, p - math.exp(epsilon) * q)
    return total


@settings(max_examples=60, deadline=None)
@given(TRIPS, UNITS, st.integers(1, 3), st.sampled_from(["1/2", "1"]), st.integers(2, 5))
def test_a_thresholded_draw_stays_within_its_epsilon_and_delta(
    trips: list[Trip], unit: ProtectionUnit, bound: int, scale: str, threshold: int
) -> None:
    (event,) = plan([("time", scale)], bound, threshold=threshold)
    loss = accounted([event], unit)
    here = exact(kept(trips, bound, 0), "time")
    there = exact(kept(neighbors(trips, unit), bound, 0), "time")
    for counts, other in ((here, there), (there, here)):
        delta = hockey_stick(counts, other, event, float(loss.epsilon))
        assert delta <= float(loss.delta) + 1e-9


@settings(max_examples=60, deadline=None)
@given(TRIPS, TRIPS, st.integers(1, 3), st.sampled_from(["1/2", "1"]), st.integers(2, 5))
def test_replacing_a_unit_doubles_the_epsilon_of_a_threshold_and_not_its_delta(
    trips: list[Trip], others: list[Trip], bound: int, scale: str, threshold: int
) -> None:
    (event,) = plan([("time", scale)], bound, threshold=threshold)
    replaced = [t for t in trips if t[0] != 0] + [t for t in others if t[0] == 0]
    loss = accounted([event], ProtectionUnit.CARD_DAY)
    here, there = (exact(kept(x, bound, 0), "time") for x in (trips, replaced))
    delta = hockey_stick(here, there, event, 2 * float(loss.epsilon))
    assert delta <= float(loss.delta) + 1e-9


def test_a_sensitivity_that_forgets_displacement_is_caught() -> None:
    trips: list[Trip] = [(0, 0, 0), (0, 1, 1)]
    forgotten = 1 / Fraction(1)
    loss = max(
        laplace_loss(
            exact(kept(trips, 1, salt), "time"),
            exact(kept(trips[1:], 1, salt), "time"),
            Fraction(1),
        )
        for salt in range(10)
    )
    assert loss == 2 > forgotten


def test_a_delta_of_opendp_for_strictly_above_the_threshold_is_caught() -> None:
    sensitivity = Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)
    event = DrawEvent(
        "time", "count", NoiseFamily.DISCRETE_LAPLACE, Fraction(2), (BUS,),
        ((ProtectionUnit.TRIP, sensitivity),), threshold=9,
    )  # fmt: skip
    delta = hockey_stick([1, 0], [0, 0], event, 0.5)
    assert 0.00691 < delta <= float(accounted([event], ProtectionUnit.TRIP).delta) + 1e-12
