from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING

import h3
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnstile.errors import ProgrammeError
from turnstile.privacy.mechanisms.bounded_mean import center_steps, centered_steps
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.domain.files import load_domain
from turnstile.programme.spec import Outside, TableSpec

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Lab

MONDAY = date(2016, 7, 25)
CENTER = h3.latlng_to_cell(21.17, 72.83, 7)
CELLS = sorted(h3.grid_disk(CENTER, 1))
PLACES = [h3.cell_to_latlng(cell) for cell in (*CELLS[:3], h3.latlng_to_cell(19.0, 72.8, 7))]
CLAMP_KMH, LIMITS_KMH = 40, (25, 50)
Row = tuple[object, ...]


@st.composite
def readings(draw: st.DrawFn, buses: str = "abc") -> Row:
    day = MONDAY + timedelta(days=draw(st.integers(0, 1)))
    minute = draw(st.integers(500, 720) | st.sampled_from([539, 540, 1259, 1260]))
    instant = datetime(day.year, day.month, day.day) + timedelta(minutes=minute)  # noqa: DTZ001 - UTC without a zone, as in the rows
    latitude, longitude = draw(st.sampled_from(PLACES))
    return (
        draw(st.sampled_from(buses)),
        instant + timedelta(seconds=draw(st.integers(0, 59))),
        day,
        minute,
        latitude,
        longitude,
        draw(st.integers(0, 130_000) | st.sampled_from([0, 25_000, 25_001, 40_000, 50_001])),
        "bus",
        "b0",
    )


READINGS = st.lists(readings(), max_size=20)
DAYS = (MONDAY, MONDAY + timedelta(days=1))
LABELS = [
    ("speed", "sum", None),
    ("speed", "buses", None),
    ("speeding", "over_25", None),
    ("speeding", "over_50", None),
]


def by_hand(rows: list[Row]) -> dict[tuple[str, str, None], np.ndarray]:
    """Count with dictionaries, fractions and the h3 package."""
    groups: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for bus, instant, day, minute, latitude, longitude, speed in {row[:7] for row in rows}:
        del instant
        cell = h3.latlng_to_cell(latitude, longitude, 7)
        if 540 <= minute < 1260 and cell in CELLS:
            groups[bus, day, minute // 60 - 9, CELLS.index(cell)].append(speed)
    vectors = {label: np.zeros((12, len(CELLS)), dtype=np.int64) for label in LABELS}
    for (_, _, slot, cell), speeds in groups.items():
        mean_kmh = min(Fraction(sum(speeds), 1000 * len(speeds)), Fraction(CLAMP_KMH))
        vectors[LABELS[0]][slot, cell] += floor(10 * mean_kmh + Fraction(1, 2)) - 5 * CLAMP_KMH
        vectors[LABELS[1]][slot, cell] += 1
        for label, limit_kmh in zip(LABELS[2:], LIMITS_KMH, strict=True):
            vectors[label][slot, cell] += max(speeds) > 1000 * limit_kmh
    return {label: counts.reshape(-1) for label, counts in vectors.items()}


@settings(max_examples=12, deadline=None)
@given(rows=READINGS)
def test_vectors_agree_with_a_count_by_hand_over_the_full_domain(
    rows: list[Row], bus_lab: Lab
) -> None:
    vectors = bus_lab.count(rows, days=DAYS)
    assert list(vectors) == LABELS
    for label, counts in by_hand(rows).items():
        assert np.array_equal(vectors[label], counts)


@settings(max_examples=10, deadline=None)
@given(rows=READINGS, at_most=st.integers(1, 4))
def test_vectors_add_up_over_bus_days_so_each_depends_on_its_own_readings_only(
    rows: list[Row], at_most: int, bus_lab: Lab
) -> None:
    lab = bus_lab.bounded(ProtectionUnit.BUS_DAY, at_most)
    whole = lab.count(rows, days=DAYS)
    units = sorted({(str(row[0]), row[2]) for row in rows})  # type: ignore[type-var] # dates
    parts = [lab.count([row for row in rows if (row[0], row[2]) == u], days=DAYS) for u in units]
    for label, counts in whole.items():
        assert np.array_equal(counts, sum((part[label] for part in parts), 0 * counts))


@settings(max_examples=12, deadline=None)
@given(rows=READINGS, new=st.lists(readings(buses="x"), max_size=15), at_most=st.integers(1, 4))
def test_one_more_bus_day_changes_each_vector_by_at_most_its_sensitivity(
    rows: list[Row], new: list[Row], at_most: int, bus_lab: Lab
) -> None:
    lab = bus_lab.bounded(ProtectionUnit.BUS_DAY, at_most)
    one_day = [row for row in new if row[2] == MONDAY]
    before = lab.count(rows, days=DAYS)
    after = lab.count([*rows, *one_day], days=DAYS)
    for label, counts in after.items():
        change = np.abs(counts - before[label])
        step = 5 * CLAMP_KMH if label[1] == "sum" else 1
        assert change.max() <= step
        assert np.count_nonzero(change) <= at_most
        assert change.sum() <= at_most * step


def test_the_largest_change_of_a_sum_is_reached_at_both_ends(bus_lab: Lab) -> None:
    # Negative control: a smaller half-range would be too small a sensitivity.
    instant = datetime(2016, 7, 25, 4)  # noqa: DTZ001 - UTC without a zone, as in the rows
    for speed, sign in ((0, -1), (130_000, 1)):
        row = ("x", instant, MONDAY, 600, *PLACES[0], speed, "bus", "b0")
        assert bus_lab.count([row])["speed", "sum", None].sum() == sign * 5 * CLAMP_KMH


def test_without_a_bound_a_bus_day_changes_more_cells(bus_lab: Lab) -> None:
    instant = datetime(2016, 7, 25, 4)  # noqa: DTZ001 - UTC without a zone, as in the rows
    rows = [
        ("x", instant, MONDAY, 540 + 60 * hour, *PLACES[0], 9, "bus", "b0") for hour in range(12)
    ]
    assert bus_lab.count(rows)["speed", "buses", None].sum() == 12
    bounded = bus_lab.bounded(ProtectionUnit.BUS_DAY, 5)
    assert bounded.count(rows)["speed", "buses", None].sum() == 5


@settings(max_examples=15, deadline=None)
@given(rows=READINGS, at_most=st.integers(1, 4))
def test_repeated_readings_order_and_files_change_nothing(
    rows: list[Row], at_most: int, bus_lab: Lab
) -> None:
    lab = bus_lab.bounded(ProtectionUnit.BUS_DAY, at_most)
    once = lab.count(rows, days=DAYS)
    again = lab.count(rows[::-1], [*rows[::2], *rows[::3]], days=DAYS)
    for label, counts in once.items():
        assert np.array_equal(counts, again[label])


def test_readings_outside_are_kept_in_a_cell_of_their_own_where_the_programme_says_so(
    bus_lab: Lab, include: Path
) -> None:
    domain = replace(bus_lab.programme.domain, outside=Outside.UNKNOWN)
    programme = replace(bus_lab.programme, domain=domain)
    lab = replace(bus_lab, programme=programme, domain=load_domain(programme, include))
    instant = datetime(2016, 7, 25, 4)  # noqa: DTZ001 - UTC without a zone, as in the rows
    row = ("x", instant, MONDAY, 100, *PLACES[3], 9, "bus", "b0")
    counts = lab.count([row])["speed", "buses", None]
    assert np.flatnonzero(counts).tolist() == [len(counts) - 1]
    assert bus_lab.count([row])["speed", "buses", None].sum() == 0


@pytest.mark.parametrize(
    ("sum_milli", "readings_count", "steps"),
    [(0, 1, 0), (49, 1, 0), (50, 1, 1), (149, 3, 0), (150, 3, 1), (40_049, 1, 400), (-9, 1, 0)],
)
def test_a_mean_is_rounded_half_up_to_a_tenth_and_clamped(
    sum_milli: int, readings_count: int, steps: int
) -> None:
    centered = centered_steps(np.array([sum_milli]), np.array([readings_count]), CLAMP_KMH)
    assert centered.tolist() == [steps - center_steps(CLAMP_KMH)]


def test_a_count_of_rows_is_refused_for_telemetry(bus_lab: Lab) -> None:
    programme = replace(bus_lab.programme, tables=(TableSpec("rows", ("slot", "cell")),))
    with pytest.raises(ProgrammeError, match="count cannot be counted from telemetry"):
        replace(bus_lab, programme=programme).count()


def test_a_bound_on_a_bus_for_ever_is_refused(bus_lab: Lab) -> None:
    with pytest.raises(
        ProgrammeError, match="is not enforced for telemetry; bound bus_day or bus_w"
    ):
        bus_lab.bounded(ProtectionUnit.BUS, 3).count()
