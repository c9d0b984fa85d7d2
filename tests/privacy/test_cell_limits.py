"""At most m of a card in a cell, by exhaustive search: what cards move and one trip displaces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from fractions import Fraction
from itertools import combinations, permutations, product

import pytest

from turnstile.privacy.accounts import losses, vectors
from turnstile.privacy.events import DrawEvent, Sensitivity
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.privacy.sensitivities import (
    difference_of_counts,
    marginals_of_distinct_cells,
    packed,
)
from turnstile.privacy.units import Block, ProtectionUnit

Trip = tuple[int, int]  # slot and place of one tap; the order of a list is that of the keyed hash
Limits = dict[tuple[int, ...], int]  # axes of a cell: counted trips in it at most
CELL, SLOT, PLACE = (0, 1), (0,), (1,)
GRID = list(product(range(3), range(3)))


def kept(trips: Sequence[Trip], bound: int, limits: Limits) -> list[Trip]:
    """Keep what is among the lowest so many of all that share each cell; of those the lowest k."""
    lowest = []
    for number, trip in enumerate(trips):
        before = trips[:number]
        if all(
            sum(all(earlier[axis] == trip[axis] for axis in axes) for earlier in before) < most
            for axes, most in limits.items()
        ):
            lowest.append(trip)
    return lowest[:bound]


def counted(trips: Iterable[Trip], axes: tuple[int, ...]) -> Counter[tuple[int, ...]]:
    return Counter(tuple(trip[axis] for axis in axes) for trip in trips)


def change(before: list[Trip], after: list[Trip], axes: tuple[int, ...]) -> list[int]:
    counts, other = counted(before, axes), counted(after, axes)
    return [counts[cell] - other[cell] for cell in counts.keys() | other.keys()]


def squares(numbers: Iterable[int]) -> int:
    return sum(number**2 for number in numbers)


def days(longest: int) -> Iterator[tuple[Trip, ...]]:
    """Every day of a card of distinct trips in nine cells, in every order of the hash."""
    for number in range(1, longest + 1):
        yield from permutations(GRID, number)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_one_trip_displaces_what_is_charged_for_it_and_no_more(most: int) -> None:
    bound, limits = 3, {CELL: 1, SLOT: most, PLACE: most}
    reached: Counter[tuple[int, ...]] = Counter()
    for trips in days(4):
        after = kept(trips, bound, limits)
        for number in range(len(trips)):
            before = kept([*trips[:number], *trips[number + 1 :]], bound, limits)
            for axes in (CELL, SLOT, PLACE):
                moved = change(before, after, axes)
                displaced = max(1, min(bound, len(limits) - 1))
                cell_max = min(limits[axes], displaced)
                charged = difference_of_counts(packed(displaced, cell_max))
                assert sum(map(abs, moved)) <= charged.l1
                assert squares(moved) <= charged.l2_squared
                assert max(map(abs, moved), default=0) <= charged.linf
                reached[axes] = max(reached[axes], sum(map(abs, moved)))
    assert max(reached.values()) == (3 if most == 1 else 2)  # fuller days displace more: see below


def test_a_trip_displaces_two_from_full_slots_and_places() -> None:
    # Negative control: the two of a bound without limits would be too small for m = 2 as well.
    limits = {CELL: 1, SLOT: 2, PLACE: 2}
    others = [(0, 1), (1, 0), (0, 2), (2, 0), (1, 1)]
    before, after = kept(others, 4, limits), kept([(0, 0), *others], 4, limits)
    assert sum(map(abs, change(before, after, CELL))) == 4


def test_equal_trips_are_counted_like_others_where_cells_may_be_shared() -> None:
    bound, limits = 2, {SLOT: 2}
    for trips in product(product(range(2), range(2)), repeat=4):
        after = kept(trips, bound, limits)
        assert max(counted(after, SLOT).values()) <= 2
        for number in range(len(trips)):
            before = kept([*trips[:number], *trips[number + 1 :]], bound, limits)
            assert sum(map(abs, change(before, after, CELL))) <= 2


@pytest.mark.parametrize("most", [1, 2, 3, 6])
def test_no_card_fills_its_cells_better_than_packed(most: int) -> None:
    largest = max(
        squares(held)
        for held in product(range(most + 1), repeat=6)
        if sum(held) <= 6 and list(held) == sorted(held, reverse=True)
    )
    assert largest == packed(6, most).l2_squared
    assert packed(6, 2).l2_squared == 12


def test_six_trips_in_distinct_cells_move_both_marginals_by_forty_two_together() -> None:
    largest = 0
    for trips in combinations(product(range(4), range(4)), 4):
        both = squares(counted(trips, SLOT).values()) + squares(counted(trips, PLACE).values())
        largest = max(largest, both)
    assert largest == marginals_of_distinct_cells(4, 4, 4).l2_squared == 20
    star = [(0, place) for place in range(6)]
    both = squares(counted(star, SLOT).values()) + squares(counted(star, PLACE).values())
    assert both == marginals_of_distinct_cells(6, 6, 6).l2_squared == 42


def test_both_marginals_of_trips_that_share_a_cell_are_not_bounded_so() -> None:
    # Negative control: the joint bound needs distinct cells.
    same = [(0, 0)] * 6
    both = squares(counted(same, SLOT).values()) + squares(counted(same, PLACE).values())
    assert both == 72 > marginals_of_distinct_cells(6, 6, 6).l2_squared


def joint(day: int, name: str | None, *, scale: int = 4) -> DrawEvent:
    blocks = (Block(date(2016, 7, day), "bus"),)
    bounds = tuple((unit, Sensitivity(20, 20, 20, 1)) for unit in (
        ProtectionUnit.CARD_DAY, ProtectionUnit.CARD_WEEK))  # fmt: skip
    noise = NoiseFamily.DISCRETE_GAUSSIAN
    return DrawEvent("t", "count", noise, Fraction(scale), blocks, bounds, joint=name)


def test_the_pieces_of_one_vector_cost_a_scope_once() -> None:
    alone = losses([joint(day, None) for day in range(25, 32)])
    pieces = losses([joint(day, "t/2016-W30") for day in range(25, 32)])
    week = ProtectionUnit.CARD_WEEK, "2016-W30"
    assert alone[week].rho == 7 * Fraction(20, 32)
    assert pieces[week].rho == Fraction(20, 32)
    assert {loss.rho for loss in pieces.values()} == {Fraction(20, 32)}
    assert len(pieces) == 8  # the week, and each of its days once


def test_pieces_of_different_noise_are_no_vector() -> None:
    with pytest.raises(ValueError, match="differ in noise, scale or sensitivities"):
        vectors([joint(25, "t/2016-W30"), joint(26, "t/2016-W30", scale=5)])


@pytest.mark.some(2)
@pytest.mark.parametrize(("of_zone", "of_region", "bound"), [(1, 1, 2), (1, 2, 3), (2, 3, 4)])
def test_flows_of_regions_and_zones_move_by_what_is_charged(
    of_zone: int, of_region: int, bound: int
) -> None:
    """A trip is (region, zone within it): limits of both hold for the trips of both tables."""
    zone, region = CELL, SLOT
    limits = {zone: of_zone, region: of_region}
    reached = 0
    for trips in product(product(range(2), range(2)), repeat=6):  # equal trips too
        after = kept(trips, bound, limits)
        for axes, most in limits.items():
            held = counted(after, axes).values()
            assert max(held) <= most
            assert squares(held) <= packed(bound, most).l2_squared
        for number in range(len(trips)):
            before = kept([*trips[:number], *trips[number + 1 :]], bound, limits)
            for axes in limits:
                moved = change(before, after, axes)
                charged = difference_of_counts(packed(1, 1))
                assert sum(map(abs, moved)) <= charged.l1
                assert squares(moved) <= charged.l2_squared
                reached = max(reached, sum(map(abs, moved)))
    assert reached == 2  # of a trip that displaces none it would be 1
