"""The labels of published cells, from a package and a file of locations."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from turnstile.assessment.attacks.timetable_view import CellLabels
from turnstile.assessment.cell_labels import AREAS, SLOTS
from turnstile.errors import InputError


def labels_of_tables(
    tables: Mapping[str, pa.Table], lookup: Mapping[tuple[str, str], str]
) -> CellLabels:
    """Return the labels of a package's measured tables."""
    slots: set[str] = set()
    areas: defaultdict[str | None, set[str]] = defaultdict(set)
    for table in tables.values():
        slots |= set(_distinct(table, SLOTS))
        modes: list[str | None] = [*_distinct(table, ("mode",))] or [None]
        for mode in modes:
            mode_rows = table
            if mode is not None:
                mode_rows = table.filter(pc.equal(pc.cast(table.column("mode"), pa.string()), mode))
            areas[mode] |= set(_distinct(mode_rows, AREAS))
    by_mode = {mode: frozenset(names) for mode, names in areas.items()}
    return CellLabels(frozenset(slots), by_mode, lookup)


def read_lookup(path: Path) -> dict[tuple[str, str], str]:
    """Read which area each location is published as: a domain file, as `domain build` writes it.

    Raises:
        InputError: no such file, or it lacks a column.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as opened:
            rows = list(csv.DictReader(opened))
        if rows:
            return {(row["mode"], row["location"]): row["area"] for row in rows}
        raise KeyError
    except (OSError, KeyError, UnicodeDecodeError, csv.Error):
        rule = "is no CSV file with mode, location and area; turnstile domain build writes one"
        raise InputError(where=path.name, field="--locations", rule=rule) from None


def _distinct(table: pa.Table, names: Iterable[str]) -> list[str]:
    """Return the distinct values of the first of these columns that the table has."""
    for name in names:
        if name in table.column_names:
            return [str(value) for value in pc.unique(table.column(name)).to_pylist()]
    return []
