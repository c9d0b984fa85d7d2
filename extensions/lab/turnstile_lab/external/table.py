"""External tables of counts, as an outsider finds them: labels and counts, and nothing else.

`files` reads them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

DIMENSIONS = ("mode", "date", "tap", "time", "loc")


class Cell(NamedTuple):
    """Labels of one published count; None where the table does not have that dimension."""

    mode: str | None
    date: str | None
    tap: str | None
    time: str | None
    loc: str | None

    @property
    def kind(self) -> str:
        """Which dimensions of time and location it has: `time-loc`, `time`, `loc` or `total`."""
        has_time, has_location = self.time is not None, self.loc is not None
        return ("total", "loc", "time", "time-loc")[2 * has_time + has_location]


@dataclass(frozen=True, slots=True)
class ExternalTable:
    """Published counts and nothing else.

    Args:
        cells: labels, in the order of the files; a cell may come several times.
        counts: shape (cells,), float64, because a bad release may publish fractions.
        companions: other columns of numbers, by name, beside the counts; same shape.
        stray_lines: lines that are no rows.
        marks: texts in place of counts, and how many cells hold each.
    """

    cells: tuple[Cell, ...]
    counts: NDArray[np.float64]
    companions: tuple[tuple[str, NDArray[np.float64]], ...] = ()
    stray_lines: int = 0
    marks: tuple[tuple[str, int], ...] = ()

    def without(self, dropped: NDArray[np.bool_]) -> ExternalTable:
        """Return the table without some rows, shape (cells,)."""
        cells = tuple(cell for cell, gone in zip(self.cells, dropped, strict=True) if not gone)
        companions = tuple((name, values[~dropped]) for name, values in self.companions)
        counts = self.counts[~dropped]
        return ExternalTable(cells, counts, companions, self.stray_lines, self.marks)

    @property
    def is_labelled(self) -> bool:
        """Whether anything but the counts is published: a column alone names no cell twice."""
        return any(label is not None for cell in self.cells[:1] for label in cell)
