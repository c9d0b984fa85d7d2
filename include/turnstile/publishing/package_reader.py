"""A published package as an outsider reads it: its plan, and the measurements as drawn."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
from numpy.typing import NDArray

from turnstile.arrow_columns import dates, vector
from turnstile.errors import InputError
from turnstile.estimates.labelled import read_parquet
from turnstile.ledger.encoding import decode_event
from turnstile.privacy.events import DrawEvent, one_of_each_label
from turnstile.programme.domain.public_domain import PublicDomain, published_domain
from turnstile.programme.spec import TableSpec
from turnstile.publishing.describe.manifest import MANIFEST
from turnstile.release.numbers import Vector

DAY = "service_date"
_KEYS = (DAY, "mode")


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
        return tuple(one for one in axes_of(self.tables[name]) if one not in _KEYS)

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


def read_package(folder: Path) -> Package:
    """Read plan and measurements of a package.

    Raises:
        InputError: it lacks one of them, or one cannot be read.
    """
    try:
        plan = json.loads((folder / "plan.json").read_bytes())
        events = tuple(decode_event(event) for event in plan["events"])
        tables = {event.table: _measured(folder, event.table) for event in events}
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowInvalid):
        rule = "plan.json or measurements are missing or cannot be read; give a complete package"
        raise InputError(where=str(folder), field="package", rule=rule) from None
    return Package(folder, events, tables)


def _measured(folder: Path, name: str) -> pa.Table:
    """Read one measured table, from Parquet or CSV."""
    path = folder / "measurements" / f"{name}.parquet"
    if path.is_file():
        return read_parquet(path)
    return pcsv.read_csv(path.with_suffix(".csv"))


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
                own = _in_order(codes[of_row == number])
                known.setdefault(name, tuple(labels[code] for code in own))
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
    found, first = np.unique(codes, return_index=True)
    return found[np.argsort(first, kind="stable")]
