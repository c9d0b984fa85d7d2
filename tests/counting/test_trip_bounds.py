from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from made_trips import BOUNDS, MONDAY, RULES, TRIPS, Row, trips

from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.domain.public_domain import layout
from turnstile.release.sensitivities import sensitivities

if TYPE_CHECKING:
    from conftest import Lab


@settings(max_examples=15, deadline=None)
@given(rows=TRIPS, bound=BOUNDS)
def test_bounded_counts_add_up_over_units_so_each_depends_on_its_own_rows_only(
    rows: list[Row], bound: tuple[int, bool], trip_lab: Lab
) -> None:
    at_most, once = bound
    lab = trip_lab.bounded(ProtectionUnit.CARD_DAY, at_most, once=once)
    whole = lab.count(rows)
    alone = [lab.count([row for row in rows if row[0] == c]) for c in "abc"]
    for label, counts in whole.items():
        assert np.array_equal(counts, sum(part[label] for part in alone))
        for part in alone:
            assert part[label].sum() <= at_most
            assert not once or part[label].max() <= 1


@settings(max_examples=15, deadline=None)
@given(rows=TRIPS, at_most=st.integers(1, 4))
def test_a_bound_keeps_as_many_trips_as_it_allows_and_never_raises_a_cell(
    rows: list[Row], at_most: int, trip_lab: Lab
) -> None:
    free = trip_lab.count(rows)
    bounded = trip_lab.bounded(ProtectionUnit.CARD_DAY, at_most).count(rows)
    of_card = Counter(row[0] for row in rows)
    for label, counts in bounded.items():
        assert counts.sum() == sum(min(number, at_most) for number in of_card.values())
        assert (counts <= free[label]).all()


@settings(max_examples=20, deadline=None)
@given(rows=TRIPS, new=trips(), at_most=st.none() | st.integers(1, 4), rule=RULES)
def test_one_more_trip_changes_a_table_by_at_most_what_the_plan_charges_for(
    rows: list[Row],
    new: Row,
    at_most: int | None,
    rule: tuple[bool, bool],
    trip_lab: Lab,
) -> None:
    lab, (once, finest) = trip_lab, rule
    if at_most is not None:
        lab = lab.bounded(ProtectionUnit.CARD_DAY, at_most, once=once, finest=finest)
    before = lab.count(rows)
    after = lab.count([*rows, new])
    for table in lab.programme.tables:
        charged = dict(sensitivities(lab.programme, [table], "count", [MONDAY]))
        trip = charged[ProtectionUnit.TRIP]
        label = (table.name, "count", MONDAY)
        change = np.abs(after[label] - before[label])
        assert trip is not None
        assert change.max() <= trip.linf
        assert change.sum() <= trip.l1
        assert (change**2).sum() <= trip.l2_squared


def test_two_is_reached_when_a_trip_pushes_another_out(trip_lab: Lab) -> None:
    # Negative control of the rule above: one would be too small a sensitivity.
    lab = trip_lab.bounded(ProtectionUnit.CARD_DAY, 1)
    rows = [("a", "bus", MONDAY, 360 * slot, "b1", MONDAY, 0, "b1", "b0") for slot in range(4)]
    largest = 0
    for first in rows:
        for second in rows:
            before = lab.count([first])
            after = lab.count([first, second])
            label = ("tap_on_slot", "count", MONDAY)
            largest = max(largest, int(np.abs(after[label] - before[label]).sum()))
    assert largest == 2


@settings(max_examples=18, deadline=None)
@given(
    rows=TRIPS,
    new=st.lists(trips(cards="x"), max_size=12),
    bound=BOUNDS,
)
def test_one_more_card_day_changes_a_table_by_at_most_its_bound(
    rows: list[Row], new: list[Row], bound: tuple[int, bool], trip_lab: Lab
) -> None:
    at_most, once = bound
    lab = trip_lab.bounded(ProtectionUnit.CARD_DAY, at_most, once=once)
    before = lab.count(rows)
    after = lab.count([*rows, *new])
    for label, counts in after.items():
        change = np.abs(counts - before[label])
        assert change.sum() <= at_most
        assert not once or (change**2).sum() <= at_most


@settings(max_examples=5, deadline=None)
@given(new=st.lists(trips(cards="x"), min_size=6, max_size=12))
def test_without_a_bound_a_card_day_changes_a_table_by_more(new: list[Row], trip_lab: Lab) -> None:
    vectors = trip_lab.count(new)
    assert all(counts.sum() > 4 for counts in vectors.values())


def test_of_two_trips_of_a_card_that_share_a_slot_all_tables_count_the_same_one(
    trip_lab: Lab,
) -> None:
    rows = [
        ("a", "bus", MONDAY, 10, "b1", MONDAY, 400, "b3", "b0"),
        ("a", "bus", MONDAY, 20, "b3", MONDAY, 800, "b1", "b0"),
    ]
    once = trip_lab.bounded(ProtectionUnit.CARD_DAY, 4, once=True)
    each = trip_lab.bounded(ProtectionUnit.CARD_DAY, 4)
    alone = [trip_lab.count([row]) for row in rows]
    vectors = once.count(rows)
    assert any(all(np.array_equal(vectors[name], part[name]) for name in vectors) for part in alone)
    assert each.count(rows)["tap_on_slot", "count", MONDAY].sum() == 2


def test_trips_of_a_card_in_two_modes_share_no_cell(trip_lab: Lab) -> None:
    rows = [
        ("a", "bus", MONDAY, 10, "b1", MONDAY, 400, "b3", "b0"),
        ("a", "train", MONDAY, 10, "t1", MONDAY, 400, "t2", "b0"),
    ]
    once = trip_lab.bounded(ProtectionUnit.CARD_DAY, 4, once=True)
    assert all(counts.sum() == 2 for counts in once.count(rows).values())


def test_trips_of_a_card_may_share_a_slot_where_only_finest_cells_are_guarded(
    trip_lab: Lab,
) -> None:
    rows = [
        ("a", "bus", MONDAY, 10, "b1", MONDAY, 400, "b3", "b0"),
        ("a", "bus", MONDAY, 20, "b3", MONDAY, 800, "b1", "b0"),
        ("a", "bus", MONDAY, 30, "b3", MONDAY, 1200, "b1", "b0"),
    ]
    vectors = trip_lab.bounded(ProtectionUnit.CARD_DAY, 4, finest=True).count(rows)
    assert all(counts.sum() == 2 for counts in vectors.values())
    assert vectors["tap_on_slot", "count", MONDAY].max() == 2
    assert vectors["tap_on_slot_tap_on_location", "count", MONDAY].max() == 1


@settings(max_examples=15, deadline=None)
@given(rows=TRIPS, at_most=st.integers(1, 4))
def test_tables_that_count_a_card_once_a_cell_are_marginals_of_one_table(
    rows: list[Row], at_most: int, trip_lab: Lab
) -> None:
    vectors = trip_lab.bounded(ProtectionUnit.CARD_DAY, at_most, once=True).count(rows)
    assert len({int(counts.sum()) for counts in vectors.values()}) == 1
    slots = vectors["tap_on_slot", "count", MONDAY]
    cells = vectors["tap_on_slot_tap_on_location", "count", MONDAY]
    fine, coarse = (
        layout(trip_lab.domain, table)
        for table in (trip_lab.programme.tables[4], trip_lab.programme.tables[0])
    )
    for large, small in zip(fine, coarse, strict=True):
        part = cells[large.offset : large.offset + large.cells].reshape(large.shape)
        slot_counts = slots[small.offset : small.offset + small.cells]
        assert np.array_equal(part.sum(axis=1), slot_counts)
