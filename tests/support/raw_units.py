"""Four weeks of raw files with one unit a service day or week among the records of others.

A unit's records are anything that it could send: too many, twice, at the ends of the day, in any of
the feed's shapes, and lines that are no records at all, anywhere among those of others. A unit of a
week travels on all of its days and in all modes, and over midnight.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from typing import Any

import h3
import pyarrow as pa
import pyarrow.parquet as pq
from hostile_lines import CSV, JSON_LINES, READABLE, Spoil
from raw_documents import (
    BYTES,
    CELLS,
    PROTOBUF,
    XML,
    activity,
    arrow,
    document,
    entity,
    message,
    workbook,
)
from raw_lab import CENTER, MODES, PERIOD, PLACES, VALUES, WEEK, Form, Lab

from turnstile.privacy.units import Block
from turnstile.programme.fields import VISITS
from turnstile.programme.source_spec import Feed, RowShape
from turnstile.sources.feeds.layout import names_in_source
from turnstile.sources.feeds.made_records import MadeReading, MadeTrip, Record
from turnstile.sources.feeds.raw_records import (
    as_delivered,
    csv_lines,
    json_lines,
    records_of,
)
from turnstile.sources.feeds.registry import layout_of

NUMBER_OF_OTHERS = 12
_SPELLINGS = 60
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
_TEXTS = (*_VALUES, "\ud83d")  # in JSON half of a picture, too, of a text that somebody cut
Halves = tuple[list[Record], list[Record]]


class Generator:
    """Makes weeks and units, from a seed."""

    def __init__(self, lab: Lab, seed: int) -> None:
        self._own, self._chance = lab, random.Random(seed)  # noqa: S311 - made-up rows
        self._starts = lab.programme.time.day_starts * 60
        self._idle = self._chance.randrange(_EVERY) if lab.days_of_unit == 1 else _EVERY

    @property
    def idle(self) -> set[str]:
        """Scopes in which no unit is put, so that nothing may move: one day in seven."""
        idle_days = [day for number, day in enumerate(PERIOD.days) if number % _EVERY == self._idle]
        return {self._own.unit.scope(Block(day, "")) for day in idle_days}

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
            unit = _unit(number // self._own.days_of_unit)
            records = self._records(unit, day, most, at_ends=most > 1)
            split = self._chance.randrange(len(records) + 1)
            table += records[:split]
            objects += records[split:]
        return table, objects

    def files(self, others: Halves, units: Halves) -> dict[str, bytes]:
        """The records of units twice over, with hostile ones, anywhere among those of others."""
        if self._own.form is Form.WHOLE:
            table, objects = (
                self._mixed(theirs, [*mine, *self._all_spoiled(mine, odd)])
                for odd, theirs, mine in zip((_VALUES, _TEXTS), others, units, strict=True)
            )
            return {"a.parquet": _parquet(table, self._header_records()),
                    "b.json": json.dumps(objects).encode()}  # fmt: skip
        if self._own.form is Form.TABLES:
            columns = [*dict.fromkeys(name for record in self._header_records() for name in record)]
            writers = ("a.xlsx", workbook, CELLS), ("b.feather", arrow, BYTES)
            return {
                name: write(self._mixed(theirs, [*mine, *self._all_spoiled(mine, odd)]), columns)
                for (name, write, odd), theirs, mine in zip(writers, others, units, strict=True)
            }
        if self._own.form is Form.DOCUMENTS:
            return self._documents(others, units)
        lines = self._lines_of_csv, _lines_of_json
        table_lines, object_lines = (
            self._mixed(write(theirs), self._with_hostile(write(mine), spoil))
            for write, theirs, mine, spoil in zip(lines, others, units, (_CSV, _JSON), strict=True)
        )
        header, _ = csv_lines(self._header_records(), self._own.programme.source.written)
        spec = self._own.programme.source.written
        csv_file = as_delivered(b"\n".join([header.encode(), *table_lines, b""]), spec)
        json_file = b"\n".join(object_lines) + b"\n"
        if self._own.form is Form.PACKED:
            return {"a.csv.gz": gzip.compress(csv_file), "b.zip": _zipped("b.ndjson", json_file)}
        return {"a.csv": csv_file, "b.ndjson": json_file}

    def _with_hostile(self, lines: list[bytes], spoiled: list[Spoil]) -> list[bytes]:
        """Lines of units twice over, and what else could be made of one in three of them."""
        bad = [make(line) for line in lines[::3] for make in self._chance.sample(spoiled, 6)]
        return [*lines, *bad, *lines]

    def _documents(self, others: Halves, units: Halves) -> dict[str, bytes]:
        """Documents of SIRI, or messages."""
        programme = self._own.programme
        write, frame, spoiled, ending = activity, document, XML, "xml"
        if programme.source.feed is not Feed.SIRI_VM:
            write = partial(entity, zone=programme.time.zone)
            frame, spoiled, ending = message, PROTOBUF, "pb"
        files = [
            frame(
                self._mixed([*map(write, theirs)], self._with_hostile([*map(write, mine)], spoiled))
            )
            for theirs, mine in zip(others, units, strict=True)
        ]
        return {f"a.{ending}.gz": gzip.compress(files[0]), f"b.{ending}": files[1]}

    def _all_spoiled(self, records: list[Record], values: Sequence[object]) -> list[Record]:
        """Records with a hostile value each, and as they are."""
        return [*(self._spoiled(record, values) for record in records), *records]

    def _spoiled(self, record: Record, values: Sequence[object]) -> Record:
        """A record of the same unit with a hostile value; of a single trip none that counts."""
        names = names_in_source(layout_of(self._own.programme.source.feed), self._own.programme)
        kept = {names.get(f, f) for f in ("card_id", "vehicle_id", "operator")} | {
            "vehicle",
            "vehicle.id",
        }
        fields = [name for name in record if name not in kept and "vehicle.id" not in name]
        if self._own.unit.is_record:
            fields = [names["mode"]]
        hostile = {self._chance.choice(fields): self._chance.choice(values)} if fields else {}
        return record | hostile

    def _mixed(self, others: list[Any], records: list[Any]) -> list[Any]:
        mixture = list(others)
        for record in records:
            mixture.insert(self._chance.randrange(len(mixture) + 1), record)
        return mixture

    def _header_records(self) -> list[Record]:
        """Records that have every column of a table."""
        return [r for shape in range(4) for r in self._made("x", WEEK.monday, 0, shape)]

    def _lines_of_csv(self, records: list[Record]) -> list[bytes]:
        every = self._header_records()
        _, lines = csv_lines([*every, *records], self._own.programme.source.written)
        return [line.encode() for line in lines[len(every) :]]

    def _records(
        self, unit: str, day: date, most: int, *, at_ends: bool = False, shapes: int = 4
    ) -> list[Record]:
        """So many records of a unit, in any of the first shapes of its feed."""
        records: list[Record] = []
        for _ in range(most):
            second = self._starts + self._chance.choice([0, 9, 13, 14, 20]) * 3600
            second += self._chance.randrange(3600)
            if at_ends and self._chance.random() < 0.4:
                second = self._starts + self._chance.choice([5, 86_400 - 120])
            records += self._made(unit, day, second, self._chance.randrange(shapes))
        return records

    def _made(self, unit: str, day: date, second: int, shape: int) -> list[Record]:
        """The records of one trip, of one end of one, or of one observation."""
        programme, chance = self._own.programme, self._chance
        if programme.source.feed.shape is RowShape.TELEMETRY:
            latitude, longitude = h3.cell_to_latlng(chance.choice(sorted(h3.grid_disk(CENTER, 1))))
            speed = chance.choice([0, 20_000, 70_000])
            late = chance.choice([-90_000, 0, 300, 90_000])
            full = chance.choice(["", "EMPTY", "FULL", "6", "no class"])
            categories = tuple((name, chance.choice(VALUES)) for name in programme.listed)
            trip, spelling = chance.choice(VALUES), chance.randrange(_SPELLINGS)
            if self._own.form is Form.DOCUMENTS:
                shape *= 3  # by full path, as fields of a message are called
            reading = MadeReading(
                unit,
                day,
                second,
                latitude,
                longitude,
                speed,
                shape,
                late,
                full,
                categories,
                trip,
                spelling,
            )
            return records_of(programme, [reading])
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
            tuple(
                (name, chance.choice(VALUES) + ("/1" if name in VISITS else ""))
                for name in programme.listed
            ),
            chance.randrange(_SPELLINGS),
        )
        if programme.source.feed.joins_taps and not self._own.unit.is_record:
            into_day = second - self._starts
            keeps_on = 0.2 if into_day < 60 else 0.8  # a day may begin with the end of a trip
            keeps_off = 0.2 if into_day > 86_000 else 0.8
            if chance.random() > keeps_on:
                trip = replace(trip, on_second=None)
            elif chance.random() > keeps_off:
                trip = replace(trip, off_second=None)
        records = records_of(programme, [trip])
        for record in records:
            for name in ("tap_id", "transaction_id"):
                if name in record:
                    record[name] = str(chance.randrange(10**9))
        return records


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
