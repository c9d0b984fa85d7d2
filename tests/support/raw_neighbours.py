"""Weeks of raw files that differ by one unit a service day, read and counted by the product.

A unit's records are anything that it could send: too many, twice, at the ends of the day, in any of
the feed's shapes, and lines that are no records at all, anywhere among those of others.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from pathlib import Path

import h3
import numpy as np
from hostile_lines import CSV, JSON_LINES, READABLE, Spoil

from turnstile.counting.bounding import install_key
from turnstile.counting.engine import engine
from turnstile.counting.tables import count
from turnstile.counting.telemetry import count_telemetry
from turnstile.privacy.events import Sensitivity
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.domain import PublicDomain
from turnstile.programme.domain_files import load_domain
from turnstile.programme.loading import parse_programme
from turnstile.programme.source_spec import Feed, RowShape
from turnstile.programme.spec import Programme
from turnstile.release.plan import make_plan
from turnstile.service_calendar import ServiceWeek
from turnstile.sources.ingest import ingest
from turnstile.sources.raw_records import (
    MadeReading,
    MadeTrip,
    Record,
    csv_lines,
    json_lines,
    reading_records,
    trip_records,
)

_INCLUDE = Path(__file__).resolve().parents[2] / "include"
WEEK = ServiceWeek(2016, 30)
MODES = ("bus", "ferry", "train")
PLACES = ("A", "B", "C", "nowhere")
CENTER = h3.latlng_to_cell(21.17, 72.83, 7)
NUMBER_OF_OTHERS = 12
# Small ones; and of those that are records, those that stay the same unit's.
_CSV = [make for kind, make in CSV.items() if "M" not in kind and "million" not in kind]
_CSV += [READABLE["all fields quoted"], READABLE["carriage return at the line's end"]]
_JSON = [make for kind, make in JSON_LINES.items() if "M" not in kind]
Vectors = dict[tuple[str, date], np.ndarray]
Lines = tuple[list[bytes], list[bytes]]


@dataclass(frozen=True)
class Lab:
    """A programme with a small public domain."""

    programme: Programme
    domain: PublicDomain
    unit: ProtectionUnit

    def declared(self) -> dict[str, Sensitivity]:
        """Declared sensitivity of each draw, by label."""
        events = make_plan(self.programme, self.domain, WEEK).events
        found = {event.label: dict(event.sensitivities)[self.unit] for event in events}
        return {label: one for label, one in found.items() if one is not None}


def lab(name: str, feed: Feed, folder: Path, *, day_starts: str = "00:00") -> Lab:
    """A shipped programme over few slots and places, fed by another feed."""
    (folder / "domains").mkdir(parents=True, exist_ok=True)
    stops = [f"{mode},{place},{place}" for mode in MODES for place in PLACES[:3]]
    (folder / "domains/stops.csv").write_text("\n".join(["mode,location,area", *stops]) + "\n")
    cells = "\n".join(["cell", *h3.grid_disk(CENTER, 1)])
    (folder / "domains/cells.csv").write_text(cells + "\n")
    text = (_INCLUDE / f"programmes/{name}.yaml").read_text()
    for old, new in (
        ("domains/opal_locations.csv", "domains/stops.csv"),
        ("[bus, ferry, light_rail, train]", "[bus, ferry, train]"),
        ("domains/surat_area.geojson", "domains/cells.csv"),
        ("cells_at_most: 40", "cells_at_most: 4"),
        ("slot_minutes: 15", "slot_minutes: 240"),
        ("week_starts: monday", f'week_starts: monday, day_starts: "{day_starts}"'),
    ):
        text = text.replace(old, new)
    programme = parse_programme(text, f"{name}.yaml")
    source = replace(programme.source, feed=feed, landing="{week}/*")
    programme = replace(programme, source=source, caps=())
    return Lab(programme, load_domain(programme, folder), programme.mechanism.unit)


def counts_of(own: Lab, files: dict[str, bytes]) -> Vectors:
    """Read files and count them, each service day by itself."""
    programme, domain = own.programme, own.domain
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "landing" / str(WEEK)).mkdir(parents=True)
        for name, content in files.items():
            (root / "landing" / str(WEEK) / name).write_bytes(content)
        snapshot = ingest(
            programme, WEEK, landing=root / "landing", private=root, progress=lambda _: None
        )
        rows, secret = snapshot.folder / "rows", b"one for both weeks"
        if programme.source.feed.shape is RowShape.TRIPS:
            tables = count(
                programme,
                domain,
                WEEK.days,
                rows,
                secret=secret,
                work=root / "work",
                progress=lambda _: None,
            )
            return {
                (f"{t.table}/{t.statistic}", t.service_date or WEEK.monday): t.reveal_to_mechanism()
                for t in tables
            }
        found: Vectors = {}
        with engine(root / "work") as connection:
            install_key(connection, secret)
            for day in WEEK.days:
                vectors = count_telemetry(connection, programme, domain, rows, (day,))
                found |= {("/".join(label), day): counts for label, counts in vectors.items()}
        return found


class Generator:
    """Makes weeks and units, from a seed."""

    def __init__(self, own: Lab, seed: int) -> None:
        self._own, self._chance = own, random.Random(seed)  # noqa: S311 - made-up rows
        self._starts = own.programme.time.day_starts * 60

    def others(self) -> Lines:
        """Records of everybody else, also of the units' cards on the days beside theirs."""
        records: list[Record] = []
        for number, day in enumerate(WEEK.days):
            for n in range(NUMBER_OF_OTHERS):
                most = 1 + self._chance.randrange(3)
                records += self._records(f"other {n}", day, most, shapes=1)
            records += self._records(f"unit {(number + 1) % 2}", day, 3, at_ends=True, shapes=1)
            if self._own.unit.is_record:  # what one more trip of that card may part
                records += self._records(f"unit {number % 2}", day, 6, shapes=1)
        self._chance.shuffle(records)
        split = len(records) // 2
        return self._lines(records[:split], records[split:])

    def unit_of_each_day(self) -> Lines:
        """One unit a service day, with hostile lines."""
        table: list[bytes] = []
        objects: list[bytes] = []
        for number, day in enumerate(WEEK.days):
            most = 1 if self._own.unit.is_record else self._chance.choice([1, 3, 9, 20])
            records = self._records(f"unit {number % 2}", day, most, at_ends=most > 1)
            split = self._chance.randrange(len(records) + 1)
            lines = self._lines(records[:split], records[split:])
            table += self._with_hostile(lines[0], _CSV)
            objects += self._with_hostile(lines[1], _JSON)
        return table, objects

    def _with_hostile(self, own: list[bytes], spoiled: list[Spoil]) -> list[bytes]:
        """Lines of a unit twice over, and what else could be made of the first one."""
        bad = [make(own[0]) for make in self._chance.sample(spoiled, 6)] if own else []
        return [*own, *bad, *own]

    def files(self, others: Lines, own: Lines) -> dict[str, bytes]:
        """The lines of a unit anywhere among those of others."""
        table, objects = (self._mixed(*lines) for lines in zip(others, own, strict=True))
        header, _ = csv_lines(self._header_records())
        return {
            "a.csv": b"\n".join([header.encode(), *table]) + b"\n",
            "b.ndjson": b"\n".join(objects) + b"\n",
        }

    def _mixed(self, others: list[bytes], own: list[bytes]) -> list[bytes]:
        found = list(others)
        for line in own:
            found.insert(self._chance.randrange(len(found) + 1), line)
        return found

    def _header_records(self) -> list[Record]:
        """Records that have every column of a table."""
        return [r for shape in range(4) for r in self._made("x", WEEK.monday, 0, shape)]

    def _lines(self, table: list[Record], objects: list[Record]) -> Lines:
        every = self._header_records()
        _, lines = csv_lines([*every, *table])
        own = lines[len(every) :]
        return [x.encode() for x in own], [x.encode() for x in json_lines(objects)]

    def _records(
        self, unit: str, day: date, most: int, *, at_ends: bool = False, shapes: int = 4
    ) -> list[Record]:
        """So many records of a unit, in any of the first shapes of its feed."""
        found: list[Record] = []
        for _ in range(most):
            second = self._starts + self._chance.choice([0, 9, 13, 14, 20]) * 3600
            second += self._chance.randrange(3600)
            if at_ends and self._chance.random() < 0.4:
                second = self._starts + self._chance.choice([5, 86_400 - 120])
            found += self._made(unit, day, second, self._chance.randrange(shapes))
        return found

    def _made(self, unit: str, day: date, second: int, shape: int) -> list[Record]:
        """The records of one trip, of one end of one, or of one observation."""
        programme, chance = self._own.programme, self._chance
        if programme.source.feed.shape is RowShape.TELEMETRY:
            latitude, longitude = h3.cell_to_latlng(chance.choice(sorted(h3.grid_disk(CENTER, 1))))
            speed = chance.choice([0, 20_000, 70_000])
            reading = MadeReading(unit, day, second, latitude, longitude, speed, shape)
            return reading_records(programme, [reading])
        off = min(second + chance.choice([1, 60, 600, 7200]), self._starts + 86_399)
        trip = MadeTrip(
            unit,
            chance.choice(MODES),
            day,
            second,
            chance.choice(PLACES),
            off,
            chance.choice(PLACES),
        )
        ends = chance.random()
        if programme.source.feed.joins_taps and not self._own.unit.is_record and ends < 0.4:
            trip = replace(trip, on_second=None) if ends < 0.2 else replace(trip, off_second=None)
        records = trip_records(programme, [trip])
        for record in records:
            for name in ("tap_id", "transaction_id"):
                if name in record:
                    record[name] = str(chance.randrange(10**9))
        return records


def violations(own: Lab, runs: int, *, seed: int, per_base: int = 8) -> Iterator[str]:
    """Search: yield what moved farther than is declared, of seven units a run."""
    declared = own.declared()
    for run in range(runs):
        make = Generator(own, seed * 10_000 + run)
        if run % per_base == 0:
            others = Generator(own, seed * 10_000 - 1 - run).others()
            before = counts_of(own, make.files(others, ([], [])))
        after = counts_of(own, make.files(others, make.unit_of_each_day()))
        for (label, day), exact in after.items():
            change = exact - before[label, day]
            found = _measured(change)
            bound = declared[label]
            if any(a > b for a, b in zip(found, _numbers(bound), strict=True)):
                yield f"run {run}, {label} on {day}: {found}, declared {bound}"


def _measured(change: np.ndarray) -> tuple[int, int, int, int]:
    size = np.abs(change)
    return (
        int((size > 0).sum()),
        int(size.sum()),
        int((change**2).sum()),
        int(size.max(initial=0)),
    )


def _numbers(one: Sensitivity) -> tuple[int, int, int, int]:
    return one.l0, one.l1, one.l2_squared, one.linf


def without_card_bound(own: Lab) -> Lab:
    """The same for the unit of one trip, which no coarser bound limits."""
    mechanism = replace(own.programme.mechanism, unit=ProtectionUnit.TRIP, amount=Fraction(4))
    programme = replace(own.programme, units=(), mechanism=mechanism)
    return replace(own, programme=programme, unit=ProtectionUnit.TRIP)
