from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import date, timedelta
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnstile.counting.tables import count
from turnstile.errors import IntegrityError, ProgrammeError
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.domain import PublicDomain, layout
from turnstile.programme.domain_files import load_domain
from turnstile.programme.spec import DomainSpec, Measure, Outside, TableSpec
from turnstile.release.sensitivities import sensitivities

if TYPE_CHECKING:
    from conftest import Lab

MONDAY = date(2016, 7, 25)
AXES = ("tap_on_slot", "tap_on_location", "tap_off_slot", "tap_off_location")
AREAS = {"b1": "2000", "b2": "2000", "b3": "2010", "t1": "Central", "t2": "Redfern"}
STOPS = {"bus": ("b1", "b2", "b3", "nowhere"), "train": ("t1", "t2", "b1")}
Row = tuple[object, ...]


@st.composite
def trips(draw: st.DrawFn, cards: str = "abc") -> Row:
    mode = draw(st.sampled_from(["bus", "train"]))
    off_minute = draw(st.none() | st.integers(0, 1439))
    return (
        draw(st.sampled_from(cards)),
        mode,
        MONDAY,
        draw(st.integers(0, 1439)),
        draw(st.sampled_from(STOPS[mode])),
        None if off_minute is None else MONDAY + timedelta(days=draw(st.integers(0, 1))),
        off_minute,
        draw(st.sampled_from((*STOPS[mode], "UNKNOWN"))),
        "b0",
    )


BOUNDS = st.tuples(st.integers(1, 4), st.booleans())
RULES = st.sampled_from([(False, False), (True, False), (False, True)])
TRIPS = st.lists(trips(), max_size=16)


def labels(row: Row) -> dict[str, str]:
    """Name the cell of a row, without any code of the product."""
    _, mode, _, on_minute, on_location, _, off_minute, off_location, _ = row
    known = {stop for stop in AREAS if stop[0] == str(mode)[0]}
    return {
        "tap_on_slot": f"{on_minute // 360 * 6:02d}:00",
        "tap_on_location": AREAS[on_location] if on_location in known else "UNKNOWN",
        "tap_off_slot": "UNKNOWN" if off_minute is None else f"{off_minute // 360 * 6:02d}:00",
        "tap_off_location": AREAS[off_location] if off_location in known else "UNKNOWN",
    }


def expected(rows: list[Row], domain: PublicDomain, table: TableSpec) -> np.ndarray:
    """Count with pandas, without bounds."""
    frame = pd.DataFrame([{"mode": row[1], **labels(row)} for row in rows])
    parts = []
    for mode in domain.modes:
        axes = [domain.dimension(mode, name).labels for name in table.by]
        index = pd.MultiIndex.from_product(axes)
        counts: Counter[tuple[str, ...]] = Counter()
        if len(frame):
            own = frame[frame["mode"] == mode]
            counts.update(own[list(table.by)].itertuples(index=False, name=None))
        parts.extend(counts[key if isinstance(key, tuple) else (key,)] for key in index)
    return np.array(parts, dtype=np.int64)


@settings(max_examples=15, deadline=None)
@given(rows=TRIPS)
def test_unbounded_counts_agree_with_pandas(rows: list[Row], trip_lab: Lab) -> None:
    found = trip_lab.count(rows)
    for table in trip_lab.programme.tables:
        counts = found[table.name, "count", MONDAY]
        assert np.array_equal(counts, expected(rows, trip_lab.domain, table))
        assert len(counts) == trip_lab.domain.cells(table)
        assert counts.sum() == len(rows)


@settings(max_examples=15, deadline=None)
@given(rows=TRIPS, bound=BOUNDS)
def test_bounded_counts_add_up_over_units_so_each_depends_on_its_own_rows_only(
    rows: list[Row], bound: tuple[int, bool], trip_lab: Lab
) -> None:
    at_most, once = bound
    lab = trip_lab.bounded(ProtectionUnit.CARD_DAY, at_most, once=once)
    together = lab.count(rows)
    alone = [lab.count([row for row in rows if row[0] == c]) for c in "abc"]
    for label, counts in together.items():
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
    found = trip_lab.bounded(ProtectionUnit.CARD_DAY, at_most).count(rows)
    of_card = Counter(row[0] for row in rows)
    for label, counts in found.items():
        assert counts.sum() == sum(min(number, at_most) for number in of_card.values())
        assert (counts <= free[label]).all()


@settings(max_examples=12, deadline=None)
@given(rows=TRIPS, bound=BOUNDS)
def test_counts_do_not_depend_on_the_order_or_the_files_of_rows(
    rows: list[Row], bound: tuple[int, bool], trip_lab: Lab
) -> None:
    at_most, once = bound
    lab = trip_lab.bounded(ProtectionUnit.CARD_DAY, at_most, once=once)
    one_file = lab.count(rows)
    three_files = lab.count(rows[::-3], rows[-2::-3], rows[-3::-3])
    for label, counts in one_file.items():
        assert np.array_equal(counts, three_files[label])


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
    found = trip_lab.count(new)
    assert all(counts.sum() > 4 for counts in found.values())


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
    found = once.count(rows)
    assert any(all(np.array_equal(found[name], one[name]) for name in found) for one in alone)
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
    found = trip_lab.bounded(ProtectionUnit.CARD_DAY, 4, finest=True).count(rows)
    assert all(counts.sum() == 2 for counts in found.values())
    assert found["tap_on_slot", "count", MONDAY].max() == 2
    assert found["tap_on_slot_tap_on_location", "count", MONDAY].max() == 1


@settings(max_examples=15, deadline=None)
@given(rows=TRIPS, at_most=st.integers(1, 4))
def test_tables_that_count_a_card_once_a_cell_are_marginals_of_one_table(
    rows: list[Row], at_most: int, trip_lab: Lab
) -> None:
    found = trip_lab.bounded(ProtectionUnit.CARD_DAY, at_most, once=True).count(rows)
    assert len({int(counts.sum()) for counts in found.values()}) == 1
    slots = found["tap_on_slot", "count", MONDAY]
    cells = found["tap_on_slot_tap_on_location", "count", MONDAY]
    fine, coarse = (
        layout(trip_lab.domain, table)
        for table in (trip_lab.programme.tables[4], trip_lab.programme.tables[0])
    )
    for large, small in zip(fine, coarse, strict=True):
        part = cells[large.offset : large.offset + large.cells].reshape(large.shape)
        own = slots[small.offset : small.offset + small.cells]
        assert np.array_equal(part.sum(axis=1), own)


def test_a_tap_off_after_midnight_lies_in_the_clock_slot_of_the_tap_off(trip_lab: Lab) -> None:
    late = ("a", "bus", MONDAY, 1430, "b1", MONDAY + timedelta(days=1), 15, "b3", "b0")
    found = trip_lab.count([late])
    table = trip_lab.programme.tables[2]
    offset = {part.mode: part.offset for part in layout(trip_lab.domain, table)}
    assert np.flatnonzero(found["tap_off_slot", "count", MONDAY]).tolist() == [offset["bus"]]


def test_a_day_without_files_counts_as_zeros_of_the_full_domain(trip_lab: Lab) -> None:
    days = (MONDAY, MONDAY + timedelta(days=1))
    row = ("a", "bus", MONDAY, 10, "b1", None, None, "UNKNOWN", "b0")
    found = trip_lab.count([row], days=days)
    assert len(found) == 2 * len(trip_lab.programme.tables)
    for (_, _, day), counts in found.items():
        assert counts.sum() == (1 if day == MONDAY else 0)


def test_tables_come_in_the_order_of_the_plan(trip_lab: Lab) -> None:
    days = (MONDAY, MONDAY + timedelta(days=1))
    found = trip_lab.count(days=days)
    assert list(found) == [
        (table.name, "count", day) for table in trip_lab.programme.tables for day in days
    ]


@settings(max_examples=12, deadline=None)
@given(rows=TRIPS)
def test_where_rows_outside_are_dropped_on_and_off_tables_hold_the_same_trips(
    rows: list[Row], include: Path, trip_lab: Lab
) -> None:
    programme = replace(
        trip_lab.programme,
        domain=DomainSpec("domains/stops.csv", None, None, 0, 360, 1440, Outside.DROP),
    )
    domain = load_domain(programme, include)
    found = replace(trip_lab, programme=programme, domain=domain).count(rows)
    inside = [row for row in rows if "UNKNOWN" not in labels(row).values() and row[3] >= 360]
    inside = [row for row in inside if row[6] >= 360]  # type: ignore[operator] # known by now
    assert {int(counts.sum()) for counts in found.values()} == {len(inside)}


def slot_by_hours(mode: object, minute: int | None) -> str:
    """Six-hour slot of a minute, by hand: buses run 13:00 to 05:00, trains 06:00 to 24:00."""
    closed = "06:00" if mode == "bus" else "00:00"
    label = "UNKNOWN" if minute is None else f"{minute // 360 * 6:02d}:00"
    return "UNKNOWN" if label == closed else label


@pytest.mark.parametrize("outside", Outside)
@settings(max_examples=15, deadline=None)
@given(rows=TRIPS)
def test_a_tap_outside_of_the_hours_of_its_mode_is_unknown_or_dropped(
    rows: list[Row], outside: Outside, include: Path, trip_lab: Lab
) -> None:
    (include / "domains/hours.csv").write_text(
        "mode,first,last\nbus,13:00,29:00\ntrain,06:00,24:00\n"
    )
    hours = replace(trip_lab.programme.domain, outside=outside, service_hours="domains/hours.csv")
    programme = replace(trip_lab.programme, domain=hours)
    lab = replace(trip_lab, programme=programme, domain=load_domain(programme, include))
    found = lab.count(rows)
    frame = pd.DataFrame([{"mode": row[1], **labels(row)} for row in rows])
    for side, minute in (("tap_on_slot", 3), ("tap_off_slot", 6)):
        frame[side] = [slot_by_hours(row[1], row[minute]) for row in rows]  # type: ignore[call-overload]
    if outside is Outside.DROP and len(frame):
        frame = frame[~(frame == "UNKNOWN").any(axis=1)]
    for table in programme.tables:
        counts = found[table.name, "count", MONDAY]
        assert counts.sum() == len(frame)
        for segment in layout(lab.domain, table):
            own = frame[frame["mode"] == segment.mode] if len(frame) else frame
            index = [lab.domain.dimension(segment.mode, axis).labels for axis in table.by]
            cells = (
                Counter(own[list(table.by)].itertuples(index=False, name=None)) if len(own) else {}
            )
            by_hand = [cells.get(key, 0) for key in product(*index)]
            assert counts[segment.offset : segment.offset + segment.cells].tolist() == by_hand


@pytest.mark.parametrize("name", ["on", "off"])
@settings(max_examples=5, deadline=None)
@given(rows=TRIPS)
def test_a_programme_of_one_tap_counts_what_it_counts_with_the_other(
    rows: list[Row], name: str, trip_lab: Lab
) -> None:
    side = tuple(t for t in trip_lab.programme.tables if t.by[0].startswith(f"tap_{name}"))
    assert 0 < len(side) < len(trip_lab.programme.tables)
    found = replace(trip_lab, programme=replace(trip_lab.programme, tables=side)).count(rows)
    whole = trip_lab.count(rows)
    assert len(found) == len(side)
    for label, counts in found.items():
        assert np.array_equal(counts, whole[label])


def test_places_of_two_modes_may_have_one_name(trip_lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "domains").mkdir()
    (tmp_path / "domains/stops.csv").write_text(
        "mode,location,area\nbus,Quay,2000\nbus,Mall,2010\ntrain,Quay,Central\ntrain,t2,Redfern\n"
    )
    lab = replace(trip_lab, domain=load_domain(trip_lab.programme, tmp_path))
    places = [("bus", "Quay"), ("train", "Quay"), ("train", "Quay"), ("train", "Mall")]
    rows = [("a", mode, MONDAY, 10, place, None, None, "UNKNOWN", "b0") for mode, place in places]
    counts = lab.count(rows)["tap_on_location", "count", MONDAY]
    labels = [
        (mode, label)
        for mode in lab.domain.modes
        for label in lab.domain.dimension(mode, "tap_on_location").labels
    ]
    found = {label: count for label, count in zip(labels, counts, strict=True) if count}
    assert found == {("bus", "2000"): 1, ("train", "Central"): 2, ("train", "UNKNOWN"): 1}


def test_a_mode_that_the_programme_does_not_have_is_not_counted(trip_lab: Lab) -> None:
    row = ("a", "ferry", MONDAY, 10, "b1", None, None, "UNKNOWN", "b0")
    assert all(c.sum() == 0 for c in trip_lab.count([row]).values())


def test_a_row_without_a_card_is_not_counted_where_cards_are_bounded(trip_lab: Lab) -> None:
    row = (None, "bus", MONDAY, 10, "b1", None, None, "UNKNOWN", "b0")
    lab = trip_lab.bounded(ProtectionUnit.CARD_DAY, 2)
    assert all(c.sum() == 0 for c in lab.count([row]).values())
    assert all(c.sum() == 1 for c in trip_lab.count([row]).values())


@pytest.mark.parametrize("unit", [ProtectionUnit.BUS_DAY, ProtectionUnit.CARD])
def test_a_bound_that_counting_does_not_enforce_is_refused(
    unit: ProtectionUnit, trip_lab: Lab
) -> None:
    with pytest.raises(ProgrammeError, match="for trips; bound trip or card_day or card_week"):
        trip_lab.bounded(unit, 3).count()


def test_a_measure_of_telemetry_is_refused_for_trips(trip_lab: Lab) -> None:
    table = TableSpec("speed", ("tap_on_slot",), Measure.MEAN_SPEED, clamp_kmh=60)
    with pytest.raises(ProgrammeError, match="mean_speed cannot be counted from trips"):
        replace(trip_lab, programme=replace(trip_lab.programme, tables=(table,))).count()


def test_a_file_that_is_no_parquet_stops_the_count_without_its_content(
    tmp_path: Path, trip_lab: Lab
) -> None:
    folder = tmp_path
    place = folder / f"service_date={MONDAY}"
    place.mkdir()
    (place / "part-000.parquet").write_text("canary-card-77")
    with pytest.raises(IntegrityError) as error:
        count(
            trip_lab.programme,
            trip_lab.domain,
            [MONDAY],
            folder,
            secret=b"s",
            work=folder,
            progress=print,
        )
    assert "canary" not in str(error.value)
