"""The reference counting, in plain Python, gives the numbers of the engine."""

from __future__ import annotations

import hashlib
import hmac
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import h3
import numpy as np
import pytest
from bounding_messages import message
from raw_lab import MODES, PERIOD, PLACES, WEEK, lab, without_card_bound
from raw_neighbours import counts_of

from turnstile.counting import reference
from turnstile.counting.reference import Label, ReferenceCount, Row, Tap, joined
from turnstile.counting.trip_queries import axes_of
from turnstile.privacy.stability import Chain
from turnstile.privacy.units import Block, ProtectionUnit
from turnstile.programme.counting_chain import chain_of
from turnstile.programme.domain.files import load_domain
from turnstile.programme.domain.public_domain import PublicDomain, layout
from turnstile.programme.source_spec import Feed
from turnstile.programme.spec import Outside, Programme, TableSpec
from turnstile.sources.feeds.made_records import MadeTrip
from turnstile.sources.feeds.raw_records import csv_lines, records_of

if TYPE_CHECKING:
    from conftest import Lab

Unit = ProtectionUnit
SECRET = b"a secret of the release"
DAYS = tuple(date(2016, 7, 25) + timedelta(days=number) for number in range(3))
AREAS = {"b1": "2000", "b2": "2000", "b3": "2010", "t1": "Central", "t2": "Redfern"}
AXES = ("tap_on_slot", "tap_on_location", "tap_off_slot", "tap_off_location")


def vectors(
    programme: Programme, domain: PublicDomain, rows: Sequence[Row], axes: Sequence[str], key: bytes
) -> dict[tuple[str, str], np.ndarray]:
    """Return all vectors by table, statistic and days, of rows in the order of their keyed hash."""
    vectors_by_label = {}
    for table in programme.tables:
        for statistic in table.statistics:
            chain = chain_of(programme, table, statistic)
            count = ReferenceCount(chain, axes)
            ordered = sorted(rows, key=lambda row: _hash(chain, domain, row, axes, key))
            selected = count.selected(map(count.judged, ordered))
            days = [None] if chain.count.adds_up else sorted({*DAYS, *(row.day for row in rows)})
            cells = count.cells(selected)[0]
            for day in days:
                of_day = {cell: number for cell, number in cells.items() if cell[1] == day}
                vectors_by_label[f"{table.name}/{statistic}", str(day)] = _laid_out(
                    domain, table, of_day
                )
    return vectors_by_label


def _hash(chain: Chain, domain: PublicDomain, row: Row, axes: Sequence[str], key: bytes) -> bytes:
    """Return a row's place in the order of its unit (PRIVACY 4.2)."""
    if chain.bound is None:
        return b""
    cell = [
        _number(domain, row.mode, axis, label) for axis, label in zip(axes, row.labels, strict=True)
    ]
    if not chain.count.adds_up:
        cell = [domain.modes.index(row.mode), *cell]
    if (chain.bound.unit.days_max or 0) > 1:
        cell = [DAYS.index(row.day), *cell]
    scope = chain.bound.unit.scope(Block(row.day, ""))
    return hmac.digest(key, message(scope, cell, row.unit or ""), hashlib.sha256)


def _number(domain: PublicDomain, mode: str, axis: str, label: Label) -> int:
    """Return the index of a label; of none that of UNKNOWN, or -1."""
    unknown = domain.dimension(mode, axis).unknown
    return int(label) if label is not None else -1 if unknown is None else unknown


def _laid_out(
    domain: PublicDomain, table: TableSpec, cells: Mapping[reference.Cell, int]
) -> np.ndarray:
    """Return the flat vector of one table and day."""
    counts = np.zeros(domain.cells(table), dtype=np.int64)
    for segment in layout(domain, table):
        of_mode = np.zeros(segment.shape, dtype=np.int64)
        for (mode, _, labels), number in cells.items():
            if mode == segment.mode:
                place = tuple(
                    _number(domain, mode, axis, label)
                    for axis, label in zip(table.by, labels, strict=True)
                )
                of_mode[place] += number
        counts[segment.offset : segment.offset + segment.cells] = of_mode.reshape(-1)
    return counts


def index(domain: PublicDomain, mode: str, axis: str, label: str) -> Label:
    """Return the index of a label; None for what has none."""
    labels = domain.dimension(mode, axis).labels
    return labels.index(label) if label in labels else None


def random_trips(chance: random.Random) -> list[tuple[object, ...]]:
    """Trips of three cards on three days, some to nowhere and some of unknown end."""
    rows: list[tuple[object, ...]] = []
    for _ in range(60):
        mode, places = chance.choice([("bus", ("b1", "b2", "b3", "no")), ("train", ("t1", "t2"))])
        on, off = chance.choice(places), chance.choice(places)
        ended = chance.random() < 0.8
        day, minutes = chance.choice(DAYS), [chance.randrange(4) * 360 for _ in range(2)]
        taps = (minutes[0], on, day if ended else None, minutes[1] if ended else None)
        rows.append((chance.choice("abc"), mode, day, *taps, off if ended else "UNKNOWN", "b0"))
    return rows


def of_trips(domain: PublicDomain, rows: Sequence[tuple[object, ...]]) -> list[Row]:
    """Return the same with the labels of their cells."""
    labelled_rows = []
    for card, mode, day, on_minute, on, _, off_minute, off, _ in rows:
        labels: list[Label] = []
        for minute, place in ((on_minute, on), (off_minute, off)):
            slot = None if minute is None else int(str(minute)) // 360
            area = AREAS.get(str(place), "no area")
            labels += [slot, index(domain, str(mode), "tap_on_location", area)]
        assert isinstance(day, date)
        labelled_rows.append(Row(str(card), str(mode), day, tuple(labels)))
    return labelled_rows


@pytest.mark.parametrize("outside", Outside)
@pytest.mark.parametrize(
    ("unit", "at_most", "rule"),
    [
        (None, 0, {}),
        (Unit.CARD_DAY, 3, {}),
        (Unit.CARD_DAY, 4, {"once": True}),
        (Unit.CARD_WEEK, 5, {"finest": True}),
        (Unit.CARD_WEEK, 6, {"finest": True, "coarse": 2}),
    ],
)
def test_trips_are_counted_as_the_engine_counts_them(
    trip_lab: Lab,
    include: Path,
    outside: Outside,
    unit: ProtectionUnit | None,
    at_most: int,
    rule: dict[str, int],
) -> None:
    spec = replace(trip_lab.programme.domain, outside=outside)
    programme = replace(trip_lab.programme, domain=spec)
    bounded_lab = replace(trip_lab, programme=programme, domain=load_domain(programme, include))
    bounded_lab = bounded_lab if unit is None else bounded_lab.bounded(unit, at_most, **rule)
    chance = random.Random(at_most)  # noqa: S311
    for _ in range(3):
        rows = random_trips(chance)
        engine = bounded_lab.count(rows, days=DAYS, secret=SECRET)
        plain = vectors(
            bounded_lab.programme,
            bounded_lab.domain,
            of_trips(bounded_lab.domain, rows),
            AXES,
            SECRET,
        )
        for (table, statistic, day), counts in engine.items():
            assert (counts == plain[f"{table}/{statistic}", str(day)]).all()
        assert any(counts.any() for counts in engine.values())


@pytest.mark.parametrize(("unit", "at_most"), [(Unit.BUS_DAY, 3), (Unit.BUS_WEEK, 4)])
def test_readings_are_counted_as_the_engine_counts_them(
    bus_lab: Lab, unit: ProtectionUnit, at_most: int
) -> None:
    bounded_lab, chance = bus_lab.bounded(unit, at_most), random.Random(at_most)  # noqa: S311
    cells = [*bounded_lab.domain.dimension("bus", "cell").labels, h3.latlng_to_cell(0.0, 0.0, 7)]
    readings, rows = [], []
    for number in range(80):
        bus, day, cell = chance.choice("xy"), chance.choice(DAYS), chance.choice(cells)
        minute, speed = chance.randrange(530, 800), chance.choice([0, 20_005, 41_000, 70_000])
        at = datetime(day.year, day.month, day.day) + timedelta(minutes=minute, seconds=number)  # noqa: DTZ001
        readings.append((bus, at, day, minute, *h3.cell_to_latlng(cell), speed, "bus", "b0"))
        slot = (minute - 540) // 60 if minute >= 540 else None
        rows.append(
            Row(bus, "bus", day, (slot, index(bounded_lab.domain, "bus", "cell", cell)), speed)
        )
    engine = bounded_lab.count(readings, days=DAYS, secret=SECRET)
    plain = vectors(bounded_lab.programme, bounded_lab.domain, rows, ("slot", "cell"), SECRET)
    for statistic in ("sum", "buses"):
        counts = engine["speed", statistic, None]
        assert counts.any()
        assert (counts == plain[f"speed/{statistic}", "None"]).all()


@pytest.mark.parametrize("is_bounded", [True, False])
@pytest.mark.parametrize("outside", Outside)
def test_raw_taps_are_joined_and_counted_as_the_product_does(
    tmp_path: Path, outside: Outside, *, is_bounded: bool
) -> None:
    of = lab("opal", Feed.TAPS, tmp_path, ("outside: unknown", f"outside: {outside}"))
    bounded_lab = of if is_bounded else without_card_bound(of)
    chance, day = random.Random(5), WEEK.monday  # noqa: S311
    seconds = sorted(chance.sample(range(8 * 3600, 14 * 3600), 150))
    ends = [(chance.random() < 0.6, chance.choice("pqr"), chance.choice(MODES)) for _ in seconds]
    places = [chance.choice(PLACES) for _ in seconds]
    trips = [
        MadeTrip(card, mode, day, second, place)
        if is_on
        else MadeTrip(card, mode, day, None, "", second, place)
        for second, place, (is_on, card, mode) in zip(seconds, places, ends, strict=True)
    ]
    header, lines = csv_lines(records_of(bounded_lab.programme, trips))
    file = "\n".join([header, *lines]).encode() + b"\n"
    taps = [
        Tap(card, mode, day, is_on, _labels(bounded_lab.domain, mode, second, place))
        for second, place, (is_on, card, mode) in zip(seconds, places, ends, strict=True)
    ]
    programme, domain = bounded_lab.programme, bounded_lab.domain
    rows = joined(chain_of(programme, programme.tables[0]), taps, axes_of(programme))
    engine = counts_of(bounded_lab, {"taps.csv": file})
    plain = vectors(programme, domain, rows, axes_of(programme), b"one for both weeks")
    assert Counter(row.labels[2] is None for row in rows).total() > 20
    for (label, of_day), counts in engine.items():
        assert of_day in PERIOD.days
        if of_day == day:
            assert counts.any()
            assert (counts == plain[label, str(day)]).all()


def _labels(domain: PublicDomain, mode: str, second: int, place: str) -> tuple[Label, ...]:
    return second // 14_400, index(domain, mode, "tap_on_location", place)


def test_a_reference_that_keeps_one_more_is_seen(
    trip_lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounded_lab, lowest = trip_lab.bounded(Unit.CARD_DAY, 3), reference.lowest
    rows = random_trips(random.Random(1))  # noqa: S311
    engine = bounded_lab.count(rows, days=DAYS, secret=SECRET)
    monkeypatch.setattr(reference, "lowest", lambda kept, most: lowest(kept, most + 1))
    plain = vectors(
        bounded_lab.programme, bounded_lab.domain, of_trips(bounded_lab.domain, rows), AXES, SECRET
    )
    counts = engine["tap_on_slot", "count", DAYS[0]]
    assert (counts != plain["tap_on_slot/count", str(DAYS[0])]).any()
