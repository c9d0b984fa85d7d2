"""Postings: one a unit and scope, exact sums, rounded up once."""

from dataclasses import replace
from datetime import date
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnstile.privacy.accounts import (
    MICRO,
    NANO,
    Loss,
    loss_by_unit,
    loss_of,
    losses,
    postings,
    rounded_up,
)
from turnstile.privacy.events import DrawEvent, Sensitivity
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.privacy.sensitivities import packed, records_at_most
from turnstile.privacy.units import Block, ProtectionUnit

MONDAY = date(2016, 7, 25)
TUESDAY = date(2016, 7, 26)
ONE = records_at_most(1)
BUS = (Block(MONDAY, "bus"),)
Units = tuple[tuple[ProtectionUnit, Sensitivity | None], ...]


def laplace(
    scale: str = "2",
    *,
    blocks: tuple[Block, ...] = BUS,
    units: Units | None = None,
) -> DrawEvent:
    units = units or ((ProtectionUnit.TRIP, ONE),)
    return DrawEvent(
        "on_time", "count", NoiseFamily.DISCRETE_LAPLACE, Fraction(scale), blocks, tuple(units)
    )


def gaussian(scale: str = "2", **more: Any) -> DrawEvent:
    event = laplace(scale, **more)
    return DrawEvent(
        event.table, "count", NoiseFamily.DISCRETE_GAUSSIAN, event.scale, event.blocks,
        event.sensitivities,
    )  # fmt: skip


def test_the_six_tables_of_the_source_cost_a_trip_four() -> None:
    events = [laplace(scale) for scale in "222211"]
    (posting,) = postings(events)
    assert posting.epsilon_micro == 4 * MICRO
    assert posting.scope == "2016-07-25/bus/b0"
    assert posting.delta_femto == 0


def test_a_draw_of_several_modes_pays_once_on_a_card_day() -> None:
    blocks = tuple(Block(MONDAY, mode) for mode in ("bus", "ferry", "train"))
    units = ((ProtectionUnit.CARD_DAY, records_at_most(10)), (ProtectionUnit.TRIP, ONE))
    charges = postings([laplace(blocks=blocks, units=units)])
    days = [posting for posting in charges if posting.unit is ProtectionUnit.CARD_DAY]
    trips = [posting for posting in charges if posting.unit is ProtectionUnit.TRIP]
    assert [day.epsilon_micro for day in days] == [5 * MICRO]
    assert [trip.epsilon_micro for trip in trips] == [MICRO // 2] * 3


def test_draws_on_different_days_add_up_for_a_card_but_not_for_a_card_day() -> None:
    units = tuple((unit, ONE) for unit in (ProtectionUnit.CARD, ProtectionUnit.CARD_DAY))
    events = [laplace(blocks=(Block(day, "bus"),), units=units) for day in (MONDAY, TUESDAY)]
    charges = {(p.unit, p.scope): p.epsilon_micro for p in postings(events)}
    assert charges == {
        (ProtectionUnit.CARD, "ever"): MICRO,
        (ProtectionUnit.CARD_DAY, "2016-07-25"): MICRO // 2,
        (ProtectionUnit.CARD_DAY, "2016-07-26"): MICRO // 2,
    }


def test_an_unbounded_unit_posts_infinite_amounts() -> None:
    (posting,) = postings([laplace(units=((ProtectionUnit.CARD, None),))])
    assert (posting.epsilon_micro, posting.rho_nano) == (None, None)


def test_a_gaussian_draw_leaves_no_finite_epsilon_but_adds_its_rho() -> None:
    (posting,) = postings([laplace(), gaussian()])
    assert posting.epsilon_micro is None
    assert posting.rho_nano == NANO // 8 + NANO // 8


def test_amounts_are_rounded_up_once_and_not_event_by_event() -> None:
    thirds = [laplace("3") for _ in range(3)]
    (posting,) = postings(thirds)
    assert posting.epsilon_micro == MICRO  # three roundings would give 1_000_002


def test_a_thresholded_draw_adds_its_delta_for_each_record_of_a_unit() -> None:
    units = ((ProtectionUnit.TRIP, ONE), (ProtectionUnit.CARD_DAY, packed(3, 1)))
    event = DrawEvent(
        "on_time", "count", NoiseFamily.DISCRETE_LAPLACE, Fraction(2), (Block(MONDAY, "bus"),),
        units, threshold=9,
    )  # fmt: skip
    card_day, trip = postings([event])
    assert trip.delta_femto == pytest.approx(0.0114007403e15, rel=1e-6)
    assert card_day.delta_femto == pytest.approx(3 * trip.delta_femto, abs=3)


def test_a_dense_draw_with_a_delta_is_refused() -> None:
    with pytest.raises(ValueError, match="threshold"):
        DrawEvent("t", "c", NoiseFamily.DISCRETE_LAPLACE, Fraction(2), (), (), Fraction(1, 10))


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-2), Fraction(1, 3)])
def test_a_scale_that_no_sampler_can_draw_is_refused(scale: Fraction) -> None:
    with pytest.raises(ValueError, match="positive and exactly a float64"):
        DrawEvent("t", "c", NoiseFamily.DISCRETE_LAPLACE, scale, (), ())


@pytest.mark.parametrize(
    ("event", "changes"),
    [
        ("laplace", {"step": 2}),
        ("gaussian", {"step": 0}),
        ("gaussian", {"carried": ((MONDAY, 1),)}),
        ("laplace", {"threshold": 9, "joint": "j"}),
        ("laplace", {"threshold": 1}),
    ],
)
def test_a_draw_that_no_mechanism_makes_is_refused(event: str, changes: dict[str, Any]) -> None:
    whole = {"laplace": laplace(), "gaussian": gaussian()}[event]
    with pytest.raises(ValueError, match="draw|multiples"):
        replace(whole, **changes)
    assert replace(gaussian(), step=2, carried=((MONDAY, 1),)).carried


def test_a_draw_that_carries_earlier_days_is_charged_to_them_by_the_square_of_their_share() -> None:
    """Of a scope the largest multiple counts: a unit moves the draw once, not once a day."""
    moved = Sensitivity(1, 1024, 1024**2, 1024)
    units = ((ProtectionUnit.CARD_WEEK, moved), (ProtectionUnit.CARD, moved))
    event = replace(
        gaussian("1024", units=units),
        step=1024,
        carried=((date(2016, 7, 18), 512), (date(2016, 7, 19), 256), (date(2016, 7, 11), 256)),
    )
    half = Fraction(1, 2)
    assert losses([event]) == {
        (ProtectionUnit.CARD_WEEK, "2016-W30"): Loss(None, half),
        (ProtectionUnit.CARD_WEEK, "2016-W29"): Loss(None, half / 4),
        (ProtectionUnit.CARD_WEEK, "2016-W28"): Loss(None, half / 16),
        (ProtectionUnit.CARD, "ever"): Loss(None, half),  # its sensitivity holds the year
    }


def test_the_delta_of_a_unit_is_the_largest_of_any_day() -> None:
    low, high = (
        replace(laplace(blocks=(Block(day, "bus"),)), threshold=threshold)
        for day, threshold in ((MONDAY, 12), (TUESDAY, 9))
    )
    (largest,) = loss_by_unit((low, high)).values()
    assert largest.delta == loss_of(high, ONE).delta > loss_of(low, ONE).delta > 0


def test_a_thresholded_gaussian_is_refused() -> None:
    with pytest.raises(ValueError, match="Laplace"):
        DrawEvent("t", "c", NoiseFamily.DISCRETE_GAUSSIAN, Fraction(2), (), (), threshold=9)


EVENTS = st.builds(
    lambda make, scale, day, modes: make(
        scale, blocks=tuple(Block(day, mode) for mode in modes),
        units=((ProtectionUnit.TRIP, ONE), (ProtectionUnit.CARD_WEEK, records_at_most(4))),
    ),
    st.sampled_from([laplace, gaussian]),
    st.sampled_from(["1/2", "1", "3", "10.25"]),
    st.sampled_from([MONDAY, TUESDAY]),
    st.sets(st.sampled_from(["bus", "train"]), min_size=1),
)  # fmt: skip


@given(st.lists(EVENTS, max_size=6).flatmap(lambda e: st.tuples(st.just(e), st.permutations(e))))
def test_the_order_of_draws_does_not_change_what_they_cost(
    pair: tuple[list[DrawEvent], list[DrawEvent]],
) -> None:
    events, shuffled = pair
    assert postings(events) == postings(shuffled)


@given(st.lists(EVENTS, max_size=4), st.lists(EVENTS, max_size=4))
def test_losses_of_two_releases_add_up(first: list[DrawEvent], second: list[DrawEvent]) -> None:
    combined, apart = losses(first + second), losses(first)
    for key, loss in losses(second).items():
        apart[key] = apart.get(key, Loss(Fraction(0), Fraction(0))) + loss
    assert combined == apart


@given(st.fractions(min_value=0, max_value=100), st.sampled_from([MICRO, NANO]))
def test_rounding_never_goes_down_and_never_by_a_whole_step(amount: Fraction, parts: int) -> None:
    whole = rounded_up(amount, parts)
    assert 0 <= whole - amount * parts < 1


def test_replacing_the_scale_by_a_larger_one_never_costs_more() -> None:
    sensitivity = Sensitivity(l0=2, l1=3, l2_squared=5, linf=2)
    assert loss_of(laplace("3"), sensitivity).epsilon < loss_of(laplace("2"), sensitivity).epsilon
    assert loss_of(gaussian("3"), sensitivity).rho < loss_of(gaussian("2"), sensitivity).rho


@pytest.mark.parametrize(
    ("one", "other", "both", "thrice"),
    [
        ((1, 2, 0), (3, 5, 0), (4, 7, 0), (3, 6, 0)),
        ((1, 2, "1/4"), (3, None, "1/4"), (4, None, "1/2"), (3, 6, "3/4")),
        ((None, 2, "1/2"), (3, 5, "3/4"), (None, 7, 1), (None, 6, 1)),
        ((1, None, "1/3"), (None, 5, 0), (None, None, "1/3"), (3, None, 1)),
    ],
)
def test_losses_add_up_and_a_delta_is_never_above_one(
    one: Any, other: Any, both: Any, thrice: Any
) -> None:
    assert figures(one) + figures(other) == figures(other) + figures(one) == figures(both)
    assert figures(one).times(3) == figures(thrice)


def figures(said: Any) -> Loss:
    epsilon, rho, delta = (None if figure is None else Fraction(figure) for figure in said)
    return Loss(epsilon, rho, delta or Fraction(0))


def test_the_loss_of_a_unit_is_the_largest_of_any_day_and_a_stated_delta_holds() -> None:
    days = [
        laplace(scale, blocks=(Block(day, "bus"),))
        for scale, day in (("2", MONDAY), ("4", TUESDAY))
    ]
    (largest,) = loss_by_unit(tuple(days)).values()
    assert largest == Loss(Fraction(1, 2), Fraction(1, 8))
    days[1] = gaussian("1", blocks=(Block(TUESDAY, "bus"),))
    (largest,) = loss_by_unit(tuple(days)).values()
    assert largest == Loss(None, Fraction(1, 2))
    stated = replace(days[0], threshold=9, delta=Fraction(1, 10))
    assert loss_of(stated, ONE).delta == Fraction(1, 10)
    assert loss_of(replace(stated, delta=Fraction(1, 10**9)), ONE).delta > Fraction(1, 100)
