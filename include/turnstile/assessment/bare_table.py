"""Bare tables of counts, as an outsider finds them: `mode,date,tap,time,loc,count` as CSV.

Tables by time or by location alone lack a column, or hold `-` in it. Codes such as `-1` are labels
like any other. Lines at the end that are no rows (row counts, blanks) are passed over and counted.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from turnstile.errors import InputError

DIMENSIONS = ("mode", "date", "tap", "time", "loc")
_ALIASES = {
    "location": "loc",
    "service_date": "date",
    "slot": "time",
    "type": "tap",
    "tap_on_slot": "time",
    "tap_on_location": "loc",
    "tap_off_slot": "time",
    "tap_off_location": "loc",
}
_NOT_COMPANIONS = frozenset({*DIMENSIONS, "count", "estimate", "standard_deviation"})
_ABSENT = frozenset({"", "-", "ALL", "TOTAL"})
_STRAY_SHARE_MAX = 0.01
_STRAY_FEW = 20


class Cell(NamedTuple):
    """Labels of one published count; None where the table does not tell that dimension."""

    mode: str | None
    date: str | None
    tap: str | None
    time: str | None
    loc: str | None

    @property
    def kind(self) -> str:
        """Which dimensions of time and place it tells: `time-loc`, `time`, `loc` or `total`."""
        told = [name for name in ("time", "loc") if getattr(self, name) is not None]
        return "-".join(told) or "total"


@dataclass(frozen=True, slots=True)
class BareTable:
    """Published counts and nothing else.

    Args:
        cells: labels, in the order of the files; a cell may come several times.
        counts: shape (cells,), float64, because a bad release may publish fractions.
        companions: other columns of numbers, by name, beside the counts; same shape.
        stray_lines: lines that are no rows.
    """

    cells: tuple[Cell, ...]
    counts: NDArray[np.float64]
    companions: tuple[tuple[str, NDArray[np.float64]], ...] = ()
    stray_lines: int = 0

    def without(self, dropped: NDArray[np.bool_]) -> BareTable:
        """Return the table without some rows, shape (cells,)."""
        cells = tuple(cell for cell, gone in zip(self.cells, dropped, strict=True) if not gone)
        companions = tuple((name, values[~dropped]) for name, values in self.companions)
        return BareTable(cells, self.counts[~dropped], companions, self.stray_lines)

    @property
    def is_whole(self) -> bool:
        """Whether every count is a whole number."""
        return bool(np.all(self.counts == np.rint(self.counts)))

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of the cells, sorted."""
        return tuple(sorted({cell.kind for cell in self.cells}))


def read_bare_tables(paths: Sequence[Path]) -> BareTable:
    """Read files as one table of counts; a folder stands for the CSV files in it.

    Raises:
        InputError: a file is missing, has no counts, or is mostly not rows.
    """
    files = [file for path in paths for file in _files(path)]
    cells: list[Cell] = []
    counts: list[float] = []
    companions: dict[str, dict[int, float]] = {}
    stray = 0
    for file in files:
        before = len(cells)
        for row in _rows(file):
            if row is None:
                stray += 1
                continue
            cell, count, others = row
            for name, value in others:
                companions.setdefault(name, {})[len(cells)] = value
            cells.append(cell)
            counts.append(count)
        _check(file, rows=len(cells) - before, stray=stray)
    columns = tuple(
        (name, np.array([values.get(place, np.nan) for place in range(len(cells))]))
        for name, values in companions.items()
    )
    return BareTable(tuple(cells), np.array(counts), columns, stray)


def _files(path: Path) -> list[Path]:
    """Return the files that a path stands for."""
    if path.is_dir():
        found = sorted(path.glob("*.csv"))
        if found:
            return found
        raise InputError(where=str(path), field="folder", rule="holds no CSV file and no package")
    if not path.is_file():
        raise InputError(where=str(path), field="path", rule="is no file; name a table or package")
    return [path]


def _check(file: Path, *, rows: int, stray: int) -> None:
    """Refuse a file that is no table."""
    allowed = max(_STRAY_FEW, _STRAY_SHARE_MAX * rows)
    if rows == 0 or stray > allowed:
        rule = (
            f"{stray} lines are no rows of {', '.join(DIMENSIONS)}, count; give a CSV table with "
            "that header (time or loc may be missing)"
        )
        raise InputError(where=file.name, field="rows", rule=rule)


Row = tuple[Cell, float, list[tuple[str, float]]]


@dataclass(frozen=True, slots=True)
class _Header:
    """Where the columns of a file are, and the tap that their names imply (`tap_on_slot`)."""

    width: int
    places: dict[str, int]
    companions: tuple[str, ...]
    tap: str | None


def _header(file: Path, fields: list[str]) -> _Header:
    """Read the header of a file."""
    names = [_name(field) for field in fields]
    places = {name: place for place, name in enumerate(names) if name}
    if "count" not in places:
        rule = f"has no column count; the header must be {','.join(DIMENSIONS)},count"
        raise InputError(where=file.name, field="header", rule=rule)
    implied = {
        side for side in ("on", "off") for field in fields if field.startswith(f"tap_{side}_")
    }
    companions = tuple(name for name in places if name not in _NOT_COMPANIONS)
    return _Header(len(names), places, companions, implied.pop() if len(implied) == 1 else None)


def _rows(file: Path) -> Iterator[Row | None]:
    """Yield each row of a file; None for a line that is none."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as opened:
            reader = csv.reader(opened)
            header = _header(file, next(reader, []))
            for fields in reader:
                yield _row(fields, header)
    except (UnicodeDecodeError, csv.Error):
        raise InputError(where=file.name, field="file", rule="is no CSV text in UTF-8") from None


def _row(fields: list[str], header: _Header) -> Row | None:
    """Read one line."""
    if len(fields) != header.width:
        return None
    places = header.places
    count = _number(fields[places["count"]])
    if count is None:
        return None
    labels = [_label(fields[places[name]]) if name in places else None for name in DIMENSIONS]
    cell = Cell(*labels)
    if header.tap is not None:
        cell = cell._replace(tap=cell.tap or header.tap)
    numbers = [(name, _number(fields[places[name]])) for name in header.companions]
    return cell, count, [(name, value) for name, value in numbers if value is not None]


def _name(field: str) -> str:
    """Return a column's name as it is known here."""
    name = field.strip().lower()
    return _ALIASES.get(name, name)


def _label(field: str) -> str | None:
    """Return a label, or None where the field says that the table does not tell it."""
    text = field.strip()
    return None if text.upper() in _ABSENT else text


def _number(field: str) -> float | None:
    """Return a finite number, or None."""
    try:
        value = float(field)
    except ValueError:
        return None
    return value if np.isfinite(value) else None
