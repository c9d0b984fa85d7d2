"""Four weeks of raw files that differ by units, one a service day or week, read by the product.

A unit's records are anything that it could send: too many, twice, at the ends of the day, in any of
the feed's shapes, and lines that are no records at all, anywhere among those of others. A unit of a
week travels on all of its days and in all modes, and over midnight.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any

import h3
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hostile_lines import CSV, JSON_LINES, READABLE, Spoil

from turnstile.counting.bounding import install_key
from turnstile.counting.engine import engine
from turnstile.counting.tables import count
from turnstile.counting.telemetry import count_telemetry
from turnstile.privacy.events import Sensitivity
from turnstile.privacy.units import Block, ProtectionUnit
from turnstile.programme.domain import PublicDomain
from turnstile.programme.domain_files import load_domain
from turnstile.programme.loading import parse_programme
from turnstile.programme.source_spec import Feed, RowShape
from turnstile.programme.spec import Programme
from turnstile.release.plan import make_plan
from turnstile.service_calendar import ServiceDays, ServiceWeek
from turnstile.sources.feeds import layout_of
from turnstile.sources.ingest import ingest
from turnstile.sources.layout import names_in_source
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
PERIOD = ServiceDays(WEEK.monday, WEEK.plus(3).days[-1])
MODES = ("bus", "ferry", "train")
PLACES = ("A", "B", "C", "nowhere")
VALUES = ("1", "2", "3", "unlisted")
REGIONS = ("A,north,1", "B,north,2", "C,south,3")
CENTER = h3.latlng_to_cell(21.17, 72.83, 7)
NUMBER_OF_OTHERS = 12
_EVERY = 7  # day without a unit
# Small ones; and of those that are records, those that stay the same unit's.
_CSV = [make for kind, make in CSV.items() if "M" not in kind and "million" not in kind]
_CSV += [READABLE["all fields quoted"], READABLE["carriage return at the line's end"]]
_JSON = [make for kind, make in JSON_LINES.items() if "M" not in kind]
# What a field may hold that is a record's all the same, in files that have no lines.
_VALUES = (
    '"',
    'x,"y',
    "a\nb",
    "\r",
    "\0",
    "{}",
    "[1",
    "null",
    "NaN",
    "1e999",
    "\u2028",
    "t" * 9999,
)
Vectors = dict[tuple[str, date], np.ndarray]
Changes = dict[tuple[str, str], list[np.ndarray]]
Halves = tuple[list[Record], list[Record]]


class Form(Enum):
    """What the files of a week are: two of them, with half of the records each."""

    PLAIN = "CSV and a JSON object a line"
    PACKED = "CSV in gzip, and JSON lines in an archive"
    WHOLE = "Parquet, and one JSON array"


@dataclass(frozen=True)
class Lab:
    """A programme with a small public domain, and whose neighbours are searched in which files."""

    programme: Programme
    domain: PublicDomain
    unit: ProtectionUnit
    form: Form = Form.PLAIN

    @property
    def days_of_unit(self) -> int:
        """Service days that one unit lies on."""
        return max(1, self.unit.days_max or 1)

    def declared(self) -> dict[str, Sensitivity]:
        """Declared sensitivity of each vector, by the label of a draw that is one or a piece."""
        events = make_plan(self.programme, self.domain, PERIOD).events
        found = {event.label: dict(event.sensitivities)[self.unit] for event in events}
        return {label: one for label, one in found.items() if one is not None}

    def moved(self, before: Vectors, after: Vectors) -> Changes:
        """What each unit moved: the pieces of every vector, by a label of it and its scope."""
        events = make_plan(self.programme, self.domain, PERIOD).events
        vector_of = {
            (e.label, block.service_date): e.joint or e.label for e in events for block in e.blocks
        }
        label_of = {vector: label for (label, _), vector in vector_of.items()}
        found: Changes = {}
        for (label, day), exact in after.items():
            key = label_of[vector_of[label, day]], self.unit.scope(Block(day, ""))
            found.setdefault(key, []).append(exact - before[label, day])
        return found


Texts = tuple[tuple[str, str], ...]
SMALL: Texts = (
    ("domains/opal_locations.csv", "domains/stops.csv"),
    ("domains/opal_regions.csv", "domains/regions.csv"),
    ("[bus, ferry, light_rail, train]", "[bus, ferry, train]"),
    ("domains/surat_area.geojson", "domains/cells.csv"),
    ("cells_at_most: 40", "cells_at_most: 4"),
    ("slot_minutes: 15", "slot_minutes: 240"),
)
BY_NIGHT: Texts = (("week_starts: monday", 'week_starts: monday, day_starts: "04:00"'),)


def lab(name: str, feed: Feed, folder: Path, *texts: tuple[str, str]) -> Lab:
    """A shipped programme over few slots and places, fed by another feed; texts are replaced."""
    (folder / "domains").mkdir(parents=True, exist_ok=True)
    stops = [f"{mode},{place},{place}" for mode in MODES for place in PLACES[:3]]
    (folder / "domains/stops.csv").write_text("\n".join(["mode,location,area", *stops]) + "\n")
    regions = "\n".join(["area,region,zone", *REGIONS])
    (folder / "domains/regions.csv").write_text(regions + "\n")
    lines = "\n".join(["value,label", *(f"{n},line {n}" for n in VALUES[:3])])
    (folder / "domains/lines.csv").write_text(lines + "\n")
    cells = "\n".join(["cell", *h3.grid_disk(CENTER, 1)])
    (folder / "domains/cells.csv").write_text(cells + "\n")
    text = (_INCLUDE / f"programmes/{name}.yaml").read_text()
    for old, new in (*SMALL, *texts):
        text = text.replace(old, new)
    programme = parse_programme(text, f"{name}.yaml")
    source = replace(programme.source, feed=feed, landing="{week}/*")
    programme = replace(programme, source=source, caps=())
    return Lab(programme, load_domain(programme, folder), programme.mechanism.unit)


def counts_of(own: Lab, files: dict[str, bytes]) -> Vectors:
    """Read files and count them, each service day (or week, where the unit has one) by itself."""
    programme, domain = own.programme, own.domain
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "landing" / str(WEEK)).mkdir(parents=True)
        for name, content in files.items():
            (root / "landing" / str(WEEK) / name).write_bytes(content)
        snapshot = ingest(
            programme, PERIOD, landing=root / "landing", private=root, progress=lambda _: None
        )
        rows, secret = snapshot.folder / "rows", b"one for both weeks"
        if programme.source.feed.shape is RowShape.TRIPS:
            tables = count(
                programme,
                domain,
                PERIOD.days,
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
            for first in range(0, len(PERIOD.days), own.days_of_unit):
                days = PERIOD.days[first : first + own.days_of_unit]
                vectors = count_telemetry(connection, programme, domain, rows, days)
                found |= {("/".join(label), days[0]): counts for label, counts in vectors.items()}
        return found


class Generator:
    """Makes weeks and units, from a seed."""

    def __init__(self, own: Lab, seed: int) -> None:
        self._own, self._chance = own, random.Random(seed)  # noqa: S311 - made-up rows
        self._starts = own.programme.time.day_starts * 60
        self._idle = self._chance.randrange(_EVERY) if own.days_of_unit == 1 else _EVERY

    @property
    def idle(self) -> set[str]:
        """Scopes in which no unit is put, so that nothing may move: one day in seven."""
        own = [day for number, day in enumerate(PERIOD.days) if number % _EVERY == self._idle]
        return {self._own.unit.scope(Block(day, "")) for day in own}

    def others(self) -> Halves:
        """Records of everybody else, also of the units' own names beside them.

        A card of one day travels on the days before and after, too, and one of which a single trip
        is the unit on the same day: that is what may meet.
        """
        records: list[Record] = []
        for number, day in enumerate(PERIOD.days):
            for n in range(NUMBER_OF_OTHERS):
                most = 1 + self._chance.randrange(3)
                records += self._records(f"other {n}", day, most, shapes=1)
            if self._own.days_of_unit == 1:
                records += self._records(_unit(number + 1), day, 3, at_ends=True, shapes=1)
            if self._own.unit.is_record:  # what one more trip of that card may part
                records += self._records(_unit(number), day, 6, shapes=1)
        self._chance.shuffle(records)
        return records[::2], records[1::2]

    def units(self) -> Halves:
        """One unit a service day, or a week."""
        table: list[Record] = []
        objects: list[Record] = []
        for number, day in enumerate(PERIOD.days):
            if number % _EVERY == self._idle:
                continue
            most = 1 if self._own.unit.is_record else self._chance.choice([1, 3, 9, 20])
            own = _unit(number // self._own.days_of_unit)
            records = self._records(own, day, most, at_ends=most > 1)
            split = self._chance.randrange(len(records) + 1)
            table += records[:split]
            objects += records[split:]
        return table, objects

    def files(self, others: Halves, own: Halves) -> dict[str, bytes]:
        """The records of units twice over, with hostile ones, anywhere among those of others."""
        if self._own.form is Form.WHOLE:
            table, objects = (self._mixed(theirs, [*mine, *map(self._spoiled, mine), *mine])
                              for theirs, mine in zip(others, own, strict=True))  # fmt: skip
            return {"a.parquet": _parquet(table, self._header_records()),
                    "b.json": json.dumps(objects).encode()}  # fmt: skip
        lines = self._lines_of_csv, _lines_of_json
        table_lines, object_lines = (
            self._mixed(write(theirs), self._with_hostile(write(mine), spoil))
            for write, theirs, mine, spoil in zip(lines, others, own, (_CSV, _JSON), strict=True)
        )
        header, _ = csv_lines(self._header_records())
        csv_file = b"\n".join([header.encode(), *table_lines]) + b"\n"
        json_file = b"\n".join(object_lines) + b"\n"
        if self._own.form is Form.PACKED:
            return {"a.csv.gz": gzip.compress(csv_file), "b.zip": _zipped("b.ndjson", json_file)}
        return {"a.csv": csv_file, "b.ndjson": json_file}

    def _with_hostile(self, own: list[bytes], spoiled: list[Spoil]) -> list[bytes]:
        """Lines of units twice over, and what else could be made of one in three of them."""
        bad = [make(line) for line in own[::3] for make in self._chance.sample(spoiled, 6)]
        return [*own, *bad, *own]

    def _spoiled(self, record: Record) -> Record:
        """A record of the same unit with a hostile value; of a single trip none that counts."""
        names = names_in_source(layout_of(self._own.programme.source.feed), self._own.programme)
        kept = {names.get(f, f) for f in ("card_id", "vehicle_id")} | {"vehicle", "vehicle.id"}
        fields = [name for name in record if name not in kept and "vehicle.id" not in name]
        if self._own.unit.is_record:
            fields = [names["mode"]]
        hostile = {self._chance.choice(fields): self._chance.choice(_VALUES)} if fields else {}
        return record | hostile

    def _mixed(self, others: list[Any], own: list[Any]) -> list[Any]:
        found = list(others)
        for one in own:
            found.insert(self._chance.randrange(len(found) + 1), one)
        return found

    def _header_records(self) -> list[Record]:
        """Records that have every column of a table."""
        return [r for shape in range(4) for r in self._made("x", WEEK.monday, 0, shape)]

    def _lines_of_csv(self, records: list[Record]) -> list[bytes]:
        every = self._header_records()
        _, lines = csv_lines([*every, *records])
        return [line.encode() for line in lines[len(every) :]]

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
        off = second + chance.choice([1, 60, 600, 7200])
        if self._own.days_of_unit == 1:  # a tap after the day's end is of the next day's unit
            off = min(off, self._starts + 86_399)
        trip = MadeTrip(
            unit,
            chance.choice(MODES),
            day,
            second,
            chance.choice(PLACES),
            off,
            chance.choice(PLACES),
            tuple((name, chance.choice(VALUES)) for name in programme.listed),
        )
        if programme.source.feed.joins_taps and not self._own.unit.is_record:
            into_day = second - self._starts
            keeps_on = 0.2 if into_day < 60 else 0.8  # a day may begin with the end of a trip
            keeps_off = 0.2 if into_day > 86_000 else 0.8
            if chance.random() > keeps_on:
                trip = replace(trip, on_second=None)
            elif chance.random() > keeps_off:
                trip = replace(trip, off_second=None)
        records = trip_records(programme, [trip])
        for record in records:
            for name in ("tap_id", "transaction_id"):
                if name in record:
                    record[name] = str(chance.randrange(10**9))
        return records


def violations(own: Lab, runs: int, *, seed: int, per_base: int = 8) -> Iterator[str]:
    """Search: yield what moved farther than is declared."""
    declared = own.declared()
    for run in range(runs):
        make = Generator(own, seed * 10_000 + run)
        if run % per_base == 0:
            others = Generator(own, seed * 10_000 - 1 - run).others()
            before = counts_of(own, make.files(others, ([], [])))
        after = counts_of(own, make.files(others, make.units()))
        for (label, scope), pieces in own.moved(before, after).items():
            found = _measured(np.concatenate(pieces))
            bound = (0, 0, 0, 0) if scope in make.idle else _numbers(declared[label])
            if any(a > b for a, b in zip(found, bound, strict=True)):
                yield f"run {run}, {label} in {scope}: {found}, declared {bound}"


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


def _unit(number: int) -> str:
    """The card or vehicle of a unit; another one is that of the next."""
    return f"unit {number % 2}"


def _lines_of_json(records: list[Record]) -> list[bytes]:
    return [line.encode() for line in json_lines(records)]


def _zipped(name: str, content: bytes) -> bytes:
    """An archive of one file."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return written.getvalue()


def _parquet(records: list[Record], columns_of: list[Record]) -> bytes:
    """A table of text columns; nested values are JSON, as in CSV."""
    columns = dict.fromkeys(name for record in columns_of for name in record)
    values = {name: [_text(record.get(name)) for record in records] for name in columns}
    written = io.BytesIO()
    pq.write_table(pa.table(values, pa.schema([(name, pa.string()) for name in columns])), written)
    return written.getvalue()


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)
