"""Contribution bounds: what bounding by a keyed hash does to the tables, by trial."""

import hashlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnstile.privacy.events import Sensitivity
from turnstile.privacy.sensitivities import (
    difference_of_counts,
    difference_of_sums,
    packed,
    records_at_most,
)

# A record is (card, slot, place); a day of one card is a list of such, in no order.
Record = tuple[int, int, int]
CellOf = Callable[[Record], Any]
RECORDS = st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2))
TABLES = {"time": lambda r: r[1], "place": lambda r: r[2], "cell": lambda r: r[1:]}


def keyed_hash(record: Any, salt: int) -> bytes:
    return hashlib.sha256(repr((salt, record)).encode()).digest()


def kept(records: list[Record], bound: int, salt: int) -> list[Record]:
    """The k records of each card that are lowest in a hash of the record alone."""
    chosen: list[Record] = []
    for card in {record[0] for record in records}:
        card_records = sorted(
            (r for r in records if r[0] == card), key=lambda r: keyed_hash(r, salt)
        )
        chosen += card_records[:bound]
    return chosen


def kept_by_position(records: list[Record], bound: int, salt: int) -> list[Record]:
    """The known-bad rule: a hash of the place in the file, so one row reshuffles all later ones."""
    chosen: list[Record] = []
    for card in {record[0] for record in records}:
        ranked = [(keyed_hash(n, salt), r) for n, r in enumerate(records) if r[0] == card]
        chosen += [record for _, record in sorted(ranked)[:bound]]
    return chosen


def change(before: list[Record], after: list[Record], cell_of: CellOf) -> dict[Any, int]:
    counts, other = Counter(map(cell_of, before)), Counter(map(cell_of, after))
    return {c: counts[c] - other[c] for c in counts.keys() | other.keys() if counts[c] != other[c]}


def within(moved: dict[Any, int], bound: Sensitivity) -> bool:
    return (
        len(moved) <= bound.l0
        and sum(map(abs, moved.values())) <= bound.l1
        and sum(v * v for v in moved.values()) <= bound.l2_squared
        and max(map(abs, moved.values()), default=0) <= bound.linf
    )


@given(st.lists(RECORDS, max_size=8), RECORDS, st.integers(1, 3), st.integers(0, 9))
def test_one_more_trip_moves_every_bounded_table_by_at_most_two(
    records: list[Record], trip: Record, bound: int, salt: int
) -> None:
    before, after = kept(records, bound, salt), kept([trip, *records], bound, salt)
    for cell_of in TABLES.values():
        assert within(change(before, after, cell_of), difference_of_counts(records_at_most(1)))


def test_a_bound_of_one_is_too_small_for_a_trip_under_a_card_day_bound() -> None:
    trips = [(0, slot, 0) for slot in range(3)]
    moves = [
        sum(map(abs, change(kept(trips[:1], 1, salt), kept(trips[:2], 1, salt), TABLES["time"])
                .values()))
        for salt in range(20)
    ]  # fmt: skip
    assert max(moves) == 2


@given(st.lists(RECORDS, max_size=8), RECORDS)
def test_without_a_coarser_bound_one_more_trip_moves_a_table_by_one(
    records: list[Record], trip: Record
) -> None:
    for cell_of in TABLES.values():
        assert within(change(records, [trip, *records], cell_of), records_at_most(1))


@given(st.lists(RECORDS, max_size=8), st.integers(1, 3), st.integers(0, 9))
def test_one_more_card_day_moves_a_table_by_at_most_its_bound(
    records: list[Record], bound: int, salt: int
) -> None:
    without = [record for record in records if record[0] != 0]
    before, after = kept(without, bound, salt), kept(records, bound, salt)
    for cell_of in TABLES.values():
        assert within(change(before, after, cell_of), records_at_most(bound))


@given(st.lists(RECORDS, max_size=8), st.integers(1, 3), st.integers(0, 9))
def test_bounding_looks_at_one_card_only_and_never_raises_its_contribution(
    records: list[Record], bound: int, salt: int
) -> None:
    card_records = [record for record in records if record[0] == 0]
    chosen = [record for record in kept(records, bound, salt) if record[0] == 0]
    assert sorted(chosen) == sorted(kept(card_records, bound, salt))
    assert len(chosen) <= min(bound, len(card_records))
    assert not Counter(chosen) - Counter(card_records)


def test_a_hash_of_the_position_breaks_the_bound_of_two() -> None:
    trips = [(0, slot, place) for slot in range(3) for place in range(3)]
    extra = (0, 0, 0)
    largest = max(
        sum(abs(v) for v in change(
            kept_by_position(trips, 3, salt), kept_by_position([extra, *trips], 3, salt),
            TABLES["cell"]).values())
        for salt in range(50)
    )  # fmt: skip
    assert largest > 2


# Four dimensions of a trip: on-slot, on-place, off-slot, off-place. Hash = place in this order.
TRIPS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4), st.integers(0, 4)),
    max_size=10,
    unique=True,
)
MARGINAL, CELL = (lambda trip: trip[0]), (lambda trip: trip[:2])


SINGLE, PAIRS = ((0,), (1,), (2,), (3,)), ((0, 1), (2, 3))


def kept_apart(
    trips: list[tuple[int, ...]], bound: int, groups: tuple[tuple[int, ...], ...] = SINGLE
) -> list[tuple[int, ...]]:
    """Trips of one card-day, in hash order: the lowest of all that agree in a group, then k."""
    alone = [
        trip
        for place, trip in enumerate(trips)
        if not any(
            all(trip[axis] == earlier[axis] for axis in group)
            for earlier in trips[:place]
            for group in groups
        )
    ]
    return alone[:bound]


def once_bound(bound: int, others: int) -> Sensitivity:
    return difference_of_counts(packed(max(1, min(bound, others)), 1))


@settings(max_examples=400)
@given(TRIPS, st.integers(0, 9), st.integers(1, 6))
def test_one_more_trip_of_a_card_that_counts_once_a_cell_displaces_at_most_four(
    trips: list[tuple[int, ...]], place: int, bound: int
) -> None:
    if not trips:
        return
    place %= len(trips)
    before = kept_apart(trips[:place] + trips[place + 1 :], bound)
    after = kept_apart(trips, bound)
    assert within(change(before, after, CELL), once_bound(bound, 4))
    assert within(change(before, after, MARGINAL), once_bound(bound, 3))


@settings(max_examples=400)
@given(TRIPS, st.integers(0, 9), st.integers(1, 6))
def test_where_finest_cells_are_guarded_one_more_trip_displaces_one_there_and_two_elsewhere(
    trips: list[tuple[int, ...]], place: int, bound: int
) -> None:
    trips = [tuple(label % 2 for label in trip) for trip in trips]  # many agree in a pair
    trips = list(dict.fromkeys(trips))
    if not trips:
        return
    place %= len(trips)
    before = kept_apart(trips[:place] + trips[place + 1 :], bound, PAIRS)
    after = kept_apart(trips, bound, PAIRS)
    assert within(change(before, after, CELL), once_bound(bound, 1))
    coarse = difference_of_counts(records_at_most(max(1, min(bound, 2))))
    assert within(change(before, after, MARGINAL), coarse)


def test_four_in_the_cells_and_three_in_a_marginal_are_reached() -> None:
    new = (0, 0, 0, 0)
    pushed = [(0, 1, 1, 1), (2, 0, 2, 2), (3, 3, 0, 3), (4, 4, 4, 0)]  # each shares one dimension
    waiting = [(10 + n,) * 4 for n in range(4)]
    before, after = kept_apart([*pushed, *waiting], 4), kept_apart([new, *pushed, *waiting], 4)
    assert sum(map(abs, change(before, after, CELL).values())) == 8
    assert sum(map(abs, change(before, after, MARGINAL).values())) == 6


VECTORS = st.lists(st.integers(0, 3), min_size=4, max_size=4)


@settings(max_examples=200)
@given(VECTORS, VECTORS, st.integers(1, 5))
def test_the_difference_of_two_count_changes_is_within_its_bound(
    arrives: list[int], leaves: list[int], bound: int
) -> None:
    if max(sum(arrives), sum(leaves)) > bound:
        return
    moved = dict(enumerate(u - w for u, w in zip(arrives, leaves, strict=True)))
    moved = {cell: value for cell, value in moved.items() if value}
    assert within(moved, difference_of_counts(records_at_most(bound)))
    assert within(moved, difference_of_sums(records_at_most(bound)))


def test_opposite_changes_of_a_sum_do_not_fit_the_bound_for_counts() -> None:
    assert not within({0: 2}, difference_of_counts(packed(1, 1)))
    assert within({0: 2}, difference_of_sums(packed(1, 1)))


def test_a_bound_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="below 1"):
        packed(0, 1)
