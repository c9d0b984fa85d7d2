"""A published package as an outsider reads it: its plan, and the measurements as drawn."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
from numpy.typing import NDArray

from turnstile.errors import InputError
from turnstile.estimates.labelled import read_parquet
from turnstile.ledger.encoding import decode_event
from turnstile.privacy.events import DrawEvent, one_of_each_label
from turnstile.publishing.manifest import MANIFEST

_KEYS = ("service_date", "mode")


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


def nested_pairs(package: Package) -> list[tuple[DrawEvent, DrawEvent]]:
    """Return pairs of a coarse and a finer dense table of counts."""
    counts = [
        event
        for event in package.draw_by_label.values()
        if event.statistic == "count"
        and event.threshold is None
        and not event.own_records
        and event.table in package.tables
    ]
    axes = {event.table: set(axes_of(package.tables[event.table])) for event in counts}
    return [
        (coarse, fine)
        for coarse in counts
        for fine in counts
        if axes[coarse.table] < axes[fine.table]
    ]


def axes_of(table: pa.Table) -> list[str]:
    """Return the columns that label a cell."""
    return [
        name
        for name in table.column_names
        if name in _KEYS
        or pa.types.is_string(table.schema.field(name).type)
        or pa.types.is_dictionary(table.schema.field(name).type)
    ]
