"""What the files of a package are made from: the sealed release, its card, its written tables."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from turnstile.programme.field_registry import field_of
from turnstile.programme.source_spec import RowShape
from turnstile.publishing.carried.sums import RIDES
from turnstile.publishing.data_tables import TAP, Layout, labels_of
from turnstile.publishing.package_reader import DATA, Tables, csv_of
from turnstile.publishing.week.geography import Feature, features_of
from turnstile.release.drawn import Drawn
from turnstile.release.zones import digest_of
from turnstile.service_calendar import ServiceWeek

NORMAL_95 = 1.959964  # standard deviations, either way
Sign = Callable[[str, bytes], tuple[str, bytes]]
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Change:
    """One line of the history of a week: day, revision, and what happened."""

    day: str
    revision: int
    text: str


@dataclass(frozen=True, slots=True)
class FileRecord:
    """One file of the package: its path, size and SHA-256."""

    path: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class TableFile:
    """One table, written as CSV and as Parquet under one name.

    Args:
        layout: its name, what it holds and in which unit.
        rows: how many.
        columns: names and types.
        csv: path of its CSV file, which is packed where it is large.
    """

    layout: Layout
    rows: int
    columns: tuple[tuple[str, str], ...]
    csv: str

    @property
    def name(self) -> str:
        """Name of the table."""
        return self.layout.name

    @property
    def parquet(self) -> str:
        """Path of its Parquet file."""
        return f"{DATA}/{self.name}.parquet"

    @property
    def labels(self) -> list[str]:
        """Columns that say where, when and what a row is of."""
        return labels_of([name for name, _ in self.columns])


@dataclass(frozen=True)  # without slots: digests are remembered
class Contents:
    """Everything that a file of the package may be made from; all of it public.

    Args:
        folder: of the package, with its tables and the files before this one.
        drawn: the sealed release.
        card: release card, as plain values.
        include: folder of the public domain's files.
        built_at: instant of the build; files state its day.
        earlier: package of the period before, where there is one.
        history: what the ledger says happened to this week, oldest first.
        sign: returns the ledger's public key and its signature of a payload of a media type; None
            without a key.
        proof: that the seal is in the ledger's transparency log; None where there is no log.
        made: what is made of all this already, by what makes it (`once`).
    """

    folder: Path
    drawn: Drawn
    card: dict[str, Any]
    include: Path
    built_at: datetime
    earlier: Path | None = None
    history: tuple[Change, ...] = ()
    sign: Sign | None = None
    proof: str | None = None
    made: dict[Callable[..., Any], Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the data package: letters, digits and hyphens."""
        plan = self.drawn.plan
        return f"{plan.programme}-{str(plan.week).lower()}-r{plan.revision}".replace("_", "-")

    @cached_property
    def published(self) -> Tables:
        """The tables as whoever downloads them reads them."""
        return Tables(self.folder)

    @cached_property
    def tables(self) -> tuple[TableFile, ...]:
        """Every table that was written, coarse grains first."""
        tables = []
        for record in self.card["data"]:
            layout = Layout.of_record(record)
            file = pq.ParquetFile(self.folder / DATA / f"{layout.name}.parquet")
            columns = tuple((field.name, type_of(field.type)) for field in file.schema_arrow)
            path = csv_of(self.folder, layout.name).relative_to(self.folder).as_posix()
            tables.append(TableFile(layout, file.metadata.num_rows, columns, path))
        return tuple(tables)

    def about(self, column: str) -> str:
        """Say what a column is, slots with their length; empty where the registry has none."""
        known, minutes = field_of(column), self.drawn.programme.time.slot_minutes
        more = f"A slot has {minutes} minutes." * column.endswith("slot")
        more = self.ends if column == TAP else more
        return f"{known.description} {more}".rstrip() if known else ""

    @property
    def ends(self) -> str:
        """What both ends of a trip have to do with each other, in words."""
        sources = [source for table in self.tables for source in table.layout.sources]
        taps = {source.where[TAP] for source in sources if TAP in source.where}
        return ends_in_words(taps, self.card["terms"]["records"])

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """Shapes of the public cells or locations."""
        return features_of(self.drawn.programme, self.drawn.domain, self.include)

    @cached_property
    def _records(self) -> dict[str, FileRecord]:
        return {}

    def record(self, path: str) -> FileRecord:
        """Return size and digest of a file that is written; each is read once."""
        if path not in self._records:
            content = (self.folder / path).read_bytes()
            self._records[path] = FileRecord(path, len(content), digest_of(content))
        return self._records[path]

    def records(self) -> tuple[FileRecord, ...]:
        """Return every file that is written so far, in order."""
        paths = (path for path in sorted(self.folder.rglob("*")) if path.is_file())
        return tuple(self.record(path.relative_to(self.folder).as_posix()) for path in paths)


def ends_in_words(taps: Collection[str], records: str) -> str:
    """Say whether both ends of a trip may be added up; nothing where tables have one end alone.

    Args:
        taps: that rows are of.
        records: of the release card.
    """
    if len(taps) <= 1:
        return ""
    if records == RIDES:
        return "Boardings and alightings are counted apart: nothing says which two are one ride."
    return "Every trip is in both: do not add them up."


def once(make: Callable[[Contents], Made]) -> Callable[[Contents], Made]:
    """Make something once for a package: pictures, sentences and shapes show the same numbers."""

    @wraps(make)
    def made(contents: Contents) -> Made:
        if make not in contents.made:
            contents.made[make] = make(contents)
        thing: Made = contents.made[make]
        return thing

    return made


def period_word(contents: Contents) -> str:
    """Return what texts call the days of a package: a week, or any other period."""
    return "week" if isinstance(contents.drawn.plan.week, ServiceWeek) else "period"


def label_of(contents: Contents) -> str:
    """Return the name of the column of places.

    Of vehicles it is the first one after the slot: the H3 cell, or the route where there is none.
    """
    programme = contents.drawn.programme
    return (
        "location" if programme.source.feed.shape is RowShape.TRIPS else programme.tables[0].by[1]
    )


def type_of(kind: pa.DataType) -> str:
    """Return the name of a column's type in a table schema."""
    if pa.types.is_integer(kind):
        return "integer"
    if pa.types.is_floating(kind):
        return "number"
    if pa.types.is_boolean(kind):
        return "boolean"
    return "date" if pa.types.is_date(kind) else "string"
