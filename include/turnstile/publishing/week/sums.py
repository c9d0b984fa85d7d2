"""Sums of any set of published cells, with an interval of their own: intervals never add up.

The sum of values with the interval that `sums.py` of every package gives it, and the unbiased sum
of the drawn numbers, whose noise is declared and independent. Of packages of either version.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import compress
from math import isnan
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from turnstile.errors import InputError
from turnstile.estimates.fitting.combined_noise import Noise, SumError, integer_sum_error
from turnstile.privacy.events import one_of_each_label
from turnstile.publishing.carried.sums import Package, Row, Sum, conditions, has_number, marked
from turnstile.publishing.data_tables import labels_of
from turnstile.publishing.package_reader import Tables, texts_of

_KEYS, _MEASURED = ("service_date", "mode"), "measured"


class Sums(Package):
    """A package of either version, as `sums.py` reads it; tables are read once."""

    def __init__(self, folder: Path) -> None:
        """Open a package."""
        self.published = Tables(folder)
        super().__init__(folder)

    def stated(self) -> dict[str, Any]:
        """Return the release card, of version 1 with what it would say of its tables."""
        card = dict(self.published.card)
        if "data" not in card:
            card["data"] = [layout.record() for layout in self.published.layouts.values()]
            names = {event.table for event in self.published.events}
            drawn = {name: self.published.drawn(name).column_names for name in names}
            by = {
                name: {"by": [label for label in labels_of(columns) if label not in _KEYS]}
                for name, columns in drawn.items()
            }
            card["terms"] = {"tables": by}
        return card

    def rows(self, table: str) -> list[Row]:
        """Return the rows of a table as texts."""
        return as_texts(self.published.rows(table))


def as_texts(rows: pa.Table) -> list[Row]:
    """Return rows as a CSV file has them; what is absent is empty."""
    texts = pa.table({name: pc.fill_null(texts_of(rows, name), "") for name in rows.column_names})
    records: list[Row] = texts.to_pylist()
    return records


@dataclass(frozen=True, slots=True)
class CellSum:
    """The sum of some rows of one table.

    Args:
        cells: how many.
        estimate: sum of their values, with its interval; None where values have no known sums.
        measured: sum of their drawn numbers.
        error: of that sum.
    """

    cells: int
    estimate: Sum | None
    measured: int
    error: SumError


def sum_of(folder: Path, table: str, where: list[str]) -> CellSum:
    """Return the sum of the rows of a table whose labels are among those asked for.

    Args:
        folder: package.
        table: one that holds drawn counts.
        where: `COLUMN=LABEL,LABEL`, as `sums.py` takes it.

    Raises:
        InputError: no such table, column or cell, or both ends of trips.
    """
    sums = Sums(folder)
    draws = {draw.label: draw for draw in one_of_each_label(sums.published.events)}
    dense = {
        name
        for name, layout in sums.published.layouts.items()
        for source in layout.sources
        if source.statistic == "count" and _MEASURED in sums.sums_of(name)
    }
    if table not in dense:
        names = f"name a drawn one: {', '.join(sorted(dense))}" if dense else "none here can be"
        rule = f"is no table of drawn counts; {names}; tools/sums.py of the package takes others"
        raise InputError(where=str(folder), field="--table", rule=rule)
    rows = sums.rows(table)
    try:
        chosen = [*compress(rows, marked(rows, conditions(where)))]
        measured = sums.total_of(table, chosen, _MEASURED)
        if isnan(measured.value):
            raise ValueError(measured.no_interval)
    except ValueError as error:
        raise InputError(where=str(folder), field="--where", rule=str(error)) from None
    try:
        estimate = sums.estimated(table, chosen)
    except ValueError:
        estimate = None
    seen = [row for row in chosen if has_number(row, _MEASURED)]
    drawn = [(draws[source["draw"]], len(rows)) for source, rows in sums.by_source(table, seen)]
    terms = [(Noise(event.noise, event.scale), cells) for event, cells in drawn]
    sum_error = integer_sum_error(*terms)
    return CellSum(measured.cells, estimate, int(measured.value), sum_error)
