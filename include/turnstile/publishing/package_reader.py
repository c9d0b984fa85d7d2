"""The one reader of published numbers: the tables of a package of either version, and its draws.

A package of version 2 holds its tables as they are read here; one of version 1, and a release
under embargo, hold the parts that they are made of (`data_tables`).
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from turnstile.arrow_columns import dates, vector
from turnstile.errors import InputError
from turnstile.estimates.labelled import csv_bytes, read_parquet
from turnstile.ledger.encoding import decode_event
from turnstile.privacy.events import DrawEvent, one_of_each_label
from turnstile.programme.domain.public_domain import PublicDomain, published_domain
from turnstile.programme.spec import TableSpec
from turnstile.publishing.data_tables import (
    DAY,
    ESTIMATES,
    MEASURED,
    MODE,
    PARTS,
    Layout,
    Week,
    labels_of,
    layouts,
    rows_of,
)
from turnstile.publishing.describe.manifest import MANIFEST
from turnstile.release.numbers import Vector
from turnstile.service_calendar import parse_period

CARD, PLAN, DATA = "release_card.json", "plan.json", "data"
PLAIN_AT_MOST = 5_000_000  # bytes of a CSV file that is not packed
_LEVEL = 6  # of gzip: 9 packs to 95 % of it in five times the time
_KEYS = (DAY, MODE)


@dataclass(frozen=True, slots=True)
class Package:
    """A published package as an outsider reads it.

    Args:
        folder: where it lies.
        events: draws of its plan.
        tables: measurements by the name of the table.
    """

    folder: Path
    events: tuple[DrawEvent, ...]
    tables: Mapping[str, pa.Table]

    @property
    def draw_by_label(self) -> dict[str, DrawEvent]:
        """One draw of each label."""
        return {event.label: event for event in one_of_each_label(self.events)}

    @property
    def vectors(self) -> tuple[Vector, ...]:
        """The numbers of each draw; those that are not published are left out."""
        return tuple(self._vectors())

    def axes(self, name: str) -> tuple[str, ...]:
        """Return the columns that label a cell of a table within its day and mode."""
        return tuple(axis for axis in axes_of(self.tables[name]) if axis not in _KEYS)

    def _vectors(self) -> Iterator[Vector]:
        """Yield the numbers of each published draw."""
        for event in self.events:
            table, day = self.tables.get(event.table), None
            if table is None or event.statistic not in table.column_names:
                continue
            values = table.column(event.statistic)
            if DAY in table.column_names:
                day = min(block.service_date for block in event.blocks)
                is_day = pc.equal(table.column(DAY).cast(pa.date32()), dates([day])[0])
                values = table.column(event.statistic).filter(is_day)
            yield Vector(event, day, vector(values).astype(np.int64))

    def values(self, event: DrawEvent) -> NDArray[np.int64] | None:
        """Return the published numbers of a kind of draw; None if they are not there."""
        table = self.tables.get(event.table)
        if table is None or event.statistic not in table.column_names:
            return None
        return np.asarray(table.column(event.statistic).to_numpy())


def is_package(path: Path) -> bool:
    """Return whether a folder is a published package."""
    return (path / MANIFEST).is_file()


@dataclass(frozen=True)  # without slots: what is read is remembered
class Tables:
    """The tables of a package, or of a release under embargo: value, interval, origin a row.

    Args:
        folder: where it lies.
    """

    folder: Path
    _read: dict[str, pa.Table] = field(default_factory=dict)

    @cached_property
    def card(self) -> dict[str, Any]:
        """The release card; empty under embargo."""
        path = self.folder / CARD
        card: dict[str, Any] = json.loads(path.read_bytes()) if path.is_file() else {}
        return card

    @property
    def version(self) -> int:
        """Version of the package: 2 where its card says what its tables are."""
        return 2 if "data" in self.card else 1

    @cached_property
    def layouts(self) -> Mapping[str, Layout]:
        """Name, unit and sources of each table."""
        if self.version > 1:
            return {record["name"]: Layout.of_record(record) for record in self.card["data"]}
        return layouts(self._columns, self.events)

    @cached_property
    def events(self) -> tuple[DrawEvent, ...]:
        """The draws of the plan."""
        return tuple(decode_event(event) for event in self._plan["events"])

    def rows(self, name: str) -> pa.Table:
        """Return the rows of a table: labels, then `data_tables.NUMBERS` as far as it has them.

        Raises:
            InputError: the package has no such table.
        """
        if name not in self.layouts:
            rule = f"has no table {name!r}; it has {', '.join(self.layouts) or 'none'}"
            raise InputError(where=str(self.folder), field="package", rule=rule)
        if name not in self._read:
            if self.version > 1:
                self._read[name] = _table(self.folder / DATA / name)
            else:
                self._read[name] = rows_of(name, self._columns, self._part, self._week)
        return self._read[name]

    def of_draw(self, table: str, statistic: str = "") -> pa.Table:
        """Return the rows of the table that holds a draw: of its end of the trip, or its limits.

        Args:
            table: that was drawn.
            statistic: of it; its first by default.

        Raises:
            InputError: the package has no such table.
        """
        for layout in self.layouts.values():
            of_table = [source for source in layout.sources if source.table == table]
            sources = [source for source in of_table if statistic in ("", source.statistic)]
            if sources:
                rows = self.rows(layout.name)
                return where(rows, sources[0].where) if len(sources) == 1 else rows
        rule = f"{table!r} is no drawn table of this release"
        raise InputError(where=str(self.folder), field="package", rule=rule)

    def columns(self, name: str) -> list[str]:
        """Return the names of a table's columns."""
        path = self.folder / DATA / f"{name}.parquet"
        return list(pq.read_schema(path).names if path.is_file() else self.rows(name).column_names)

    def drawn(self, table: str) -> pa.Table:
        """Return the numbers of a drawn table as they were drawn, by its own names of labels.

        Raises:
            InputError: they are not published.
        """
        if self.version == 1:
            return self._part(MEASURED, table)
        columns, statistics = dict[str, Any](), list[str]()
        for layout in self.layouts.values():
            for source in (candidate for candidate in layout.sources if candidate.table == table):
                rows = where(self.rows(layout.name), source.where)
                labels = [name for name in labels_of(rows.column_names) if name not in source.where]
                axes = [name for name in labels if name not in _KEYS]
                by = dict(zip(axes, self.card["terms"]["tables"][table]["by"], strict=True))
                columns = {by.get(name, name): rows[name] for name in labels} | columns
                columns[source.statistic] = rows["measured"]
                statistics.append(source.statistic)
        if not columns:
            rule = f"{table!r} is not published; give a complete package"
            raise InputError(where=str(self.folder), field="package", rule=rule)
        rows = pa.table(columns)  # of a day without service nothing was drawn
        return rows.filter(pc.is_valid(rows[statistics[0]]))

    @cached_property
    def _plan(self) -> dict[str, Any]:
        plan: dict[str, Any] = json.loads((self.folder / PLAN).read_bytes())
        return plan

    @cached_property
    def _columns(self) -> dict[str, dict[str, list[str]]]:
        """The columns of each table of each part."""
        columns: dict[str, dict[str, list[str]]] = {part: {} for part in PARTS}
        for part in PARTS:
            for path in sorted((self.folder / part).glob("*")):
                if path.suffix == ".parquet":
                    columns[part][path.stem] = list(pq.read_schema(path).names)
                elif path.suffix == ".csv" and path.stem not in columns[part]:
                    columns[part][path.stem] = list(pcsv.open_csv(path).schema.names)
        return columns

    @cached_property
    def _week(self) -> Week:
        """What decides how the parts are read."""
        days = parse_period(self._plan["week"]).days
        if self.card:
            gaps = tuple(date.fromisoformat(day) for day in self.card["gaps"])
            return Week(self.events, gaps, max(1, len(days) - len(gaps)))
        stated, most = self._stated_gaps()
        return Week(self.events, stated, max(1, len(days) - most))

    def _stated_gaps(self) -> tuple[tuple[date, ...], int]:
        """Return the days without input that parts under embargo state, and how many they say."""
        days, most = set[date](), 0
        for part in (MEASURED, ESTIMATES):
            for name, names in self._columns[part].items():
                if "gap_days" not in names:
                    continue
                rows = self._part(part, name)
                if DAY in names:
                    days |= set(rows[DAY].filter(pc.greater(rows["gap_days"], 0)).to_pylist())
                else:
                    most = max(most, pc.max(rows["gap_days"]).as_py() or 0)
        return tuple(sorted(days)), max(most, len(days))

    def _part(self, part: str, name: str) -> pa.Table:
        """Read one table of a part, from Parquet or CSV."""
        return _table(self.folder / part / name)


def where(rows: pa.Table, labels: Mapping[str, str]) -> pa.Table:
    """Return the rows that have some labels."""
    for name, label in labels.items():
        rows = rows.filter(pc.equal(texts_of(rows, name), label))
    return rows


def csv_of(folder: Path, name: str) -> Path:
    """Return where the CSV file of a table of a package of version 2 lies."""
    plain = folder / DATA / f"{name}.csv"
    return plain if plain.is_file() else plain.with_suffix(".csv.gz")


def csv_file(stem: str, rows: pa.Table) -> tuple[str, bytes]:
    """Return path and bytes of a table as CSV, packed where it is large.

    Args:
        stem: path without suffix.
        rows: of the table.
    """
    content = csv_bytes(rows)
    if len(content) <= PLAIN_AT_MOST:
        return f"{stem}.csv", content
    return f"{stem}.csv.gz", gzip.compress(content, _LEVEL, mtime=0)


def csv_content(folder: Path, name: str) -> bytes:
    """Return the CSV file of a table, unpacked."""
    path = csv_of(folder, name)
    content = path.read_bytes()
    return gzip.decompress(content) if path.suffix == ".gz" else content


def _table(stem: Path) -> pa.Table:
    """Read a table by its path without suffix."""
    suffixes = (".parquet", ".csv", ".csv.gz")
    path = next((p for s in suffixes if (p := stem.with_name(stem.name + s)).is_file()), None)
    if path is None:
        rule = f"{stem.parent.name}/{stem.name} is missing; give a complete package"
        raise InputError(where=str(stem.parents[1]), field="package", rule=rule)
    return read_parquet(path) if path.suffix == ".parquet" else pcsv.read_csv(path)


def read_package(folder: Path) -> Package:
    """Read plan and measurements of a package.

    Raises:
        InputError: it lacks one of them, or one cannot be read.
    """
    tables = Tables(folder)
    try:
        drawn = {event.table: tables.drawn(event.table) for event in tables.events}
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowInvalid, InputError):
        rule = "plan.json or measurements are missing or cannot be read; give a complete package"
        raise InputError(where=str(folder), field="package", rule=rule) from None
    return Package(folder, tables.events, drawn)


def axes_of(table: pa.Table) -> list[str]:
    """Return the columns that label a cell."""
    return [
        name
        for name in table.column_names
        if name in _KEYS
        or pa.types.is_string(table.schema.field(name).type)
        or pa.types.is_dictionary(table.schema.field(name).type)
    ]


def texts_of(table: pa.Table, name: str) -> pa.ChunkedArray:
    """Return a column as texts."""
    return pc.cast(table.column(name), pa.string())


def domain_of(package: Package, tables: Iterable[TableSpec], digest: str = "") -> PublicDomain:
    """Return the public cells of tables, read off the labels of their rows.

    Labels stand in the order of the domain, and every cell has its row. Tables of one mode do not
    name it; the plan does.

    Args:
        package: that holds the tables.
        tables: whose dimensions are asked for; the first one that has a dimension orders it.
        digest: that the package states.
    """
    planned = tuple(sorted({block.mode for event in package.events for block in event.blocks}))
    axes: dict[str, dict[str, tuple[str, ...]]] = {}
    for table in tables:
        rows = package.tables[table.name]
        modes, of_row = planned, np.zeros(len(rows), dtype=np.int64)
        if "mode" in rows.column_names:
            modes, of_row = _coded(rows, "mode")
        coded = {name: _coded(rows, name) for name in table.by}
        for number, mode in enumerate(modes):
            known = axes.setdefault(mode, {})
            for name, (labels, codes) in coded.items():
                order = _in_order(codes[of_row == number])
                known.setdefault(name, tuple(labels[code] for code in order))
    return published_domain(digest, axes)


def _coded(rows: pa.Table, name: str) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Return the labels of a column in the order of the rows, and the number of each row's."""
    column = rows.column(name).cast(pa.string()).combine_chunks().dictionary_encode()
    codes = column.indices.to_numpy().astype(np.int64)
    order = _in_order(codes)
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.arange(len(order))
    labels = column.dictionary.to_pylist()
    return tuple(labels[code] for code in order), numbers[codes]


def _in_order(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the distinct codes in the order in which they first appear."""
    distinct, first = np.unique(codes, return_index=True)
    return distinct[np.argsort(first, kind="stable")]
