from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from made_trips import BOUNDS, MONDAY, TRIPS, Row

from turnstile.counting.exact_tables import count
from turnstile.errors import IntegrityError, ProgrammeError
from turnstile.measures.registry import Measure
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.domain.files import load_domain
from turnstile.programme.domain.public_domain import PublicDomain, layout
from turnstile.programme.spec import DomainSpec, Outside, TableSpec

if TYPE_CHECKING:
    from conftest import Lab

AXES = ("tap_on_slot", "tap_on_location", "tap_off_slot", "tap_off_location")
AREAS = {"b1": "2000", "b2": "2000", "b3": "2010", "t1": "Central", "t2": "Redfern"}


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
            mode_rows = frame[frame["mode"] == mode]
            counts.update(mode_rows[list(table.by)].itertuples(index=False, name=None))
        parts.extend(counts[key if isinstance(key, tuple) else (key,)] for key in index)
    return np.array(parts, dtype=np.int64)


@settings(max_examples=15, deadline=None)
@given(rows=TRIPS)
def test_unbounded_counts_agree_with_pandas(rows: list[Row], trip_lab: Lab) -> None:
    vectors = trip_lab.count(rows)
    for table in trip_lab.programme.tables:
        counts = vectors[table.name, "count", MONDAY]
        assert np.array_equal(counts, expected(rows, trip_lab.domain, table))
        assert len(counts) == trip_lab.domain.cells(table)
        assert counts.sum() == len(rows)


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


def test_a_tap_off_after_midnight_lies_in_the_clock_slot_of_the_tap_off(trip_lab: Lab) -> None:
    late = ("a", "bus", MONDAY, 1430, "b1", MONDAY + timedelta(days=1), 15, "b3", "b0")
    vectors = trip_lab.count([late])
    table = trip_lab.programme.tables[2]
    offset = {part.mode: part.offset for part in layout(trip_lab.domain, table)}
    assert np.flatnonzero(vectors["tap_off_slot", "count", MONDAY]).tolist() == [offset["bus"]]


def test_a_day_without_files_counts_as_zeros_of_the_full_domain(trip_lab: Lab) -> None:
    days = (MONDAY, MONDAY + timedelta(days=1))
    row = ("a", "bus", MONDAY, 10, "b1", None, None, "UNKNOWN", "b0")
    vectors = trip_lab.count([row], days=days)
    assert len(vectors) == 2 * len(trip_lab.programme.tables)
    for (_, _, day), counts in vectors.items():
        assert counts.sum() == (1 if day == MONDAY else 0)


def test_tables_come_in_the_order_of_the_plan(trip_lab: Lab) -> None:
    days = (MONDAY, MONDAY + timedelta(days=1))
    vectors = trip_lab.count(days=days)
    assert list(vectors) == [
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
    vectors = replace(trip_lab, programme=programme, domain=domain).count(rows)
    inside = [row for row in rows if "UNKNOWN" not in labels(row).values() and row[3] >= 360]
    inside = [row for row in inside if row[6] >= 360]  # type: ignore[operator] # known by now
    assert {int(counts.sum()) for counts in vectors.values()} == {len(inside)}


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
    vectors = lab.count(rows)
    frame = pd.DataFrame([{"mode": row[1], **labels(row)} for row in rows])
    for side, minute in (("tap_on_slot", 3), ("tap_off_slot", 6)):
        frame[side] = [slot_by_hours(row[1], row[minute]) for row in rows]  # type: ignore[call-overload]
    if outside is Outside.DROP and len(frame):
        frame = frame[~(frame == "UNKNOWN").any(axis=1)]
    for table in programme.tables:
        counts = vectors[table.name, "count", MONDAY]
        assert counts.sum() == len(frame)
        for segment in layout(lab.domain, table):
            mode_rows = frame[frame["mode"] == segment.mode] if len(frame) else frame
            index = [lab.domain.dimension(segment.mode, axis).labels for axis in table.by]
            cells = (
                Counter(mode_rows[list(table.by)].itertuples(index=False, name=None))
                if len(mode_rows)
                else {}
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
    part = replace(trip_lab, programme=replace(trip_lab.programme, tables=side)).count(rows)
    whole = trip_lab.count(rows)
    assert len(part) == len(side)
    for label, counts in part.items():
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
    nonzero_counts = {label: count for label, count in zip(labels, counts, strict=True) if count}
    assert nonzero_counts == {("bus", "2000"): 1, ("train", "Central"): 2, ("train", "UNKNOWN"): 1}


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
