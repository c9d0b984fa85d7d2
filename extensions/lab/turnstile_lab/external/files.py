"""Reads external tables of counts: `mode,date,tap,time,loc,count` as CSV, plain, gzipped or zipped.

Tables by time or by location alone lack a column, or hold `-` in it. Codes such as `-1` are labels
like any other. Columns may come in any order; further columns of texts make a location finer. Lines
that are no rows (titles, row counts, a last line that was broken off) are passed over and counted.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from turnstile.errors import InputError
from turnstile_lab.external.marks import is_beyond, limit_of
from turnstile_lab.external.table import DIMENSIONS, Cell, ExternalTable
from turnstile_lab.external.unpacking import texts_of

_ALIASES = {
    "location": "loc",
    "stop": "loc",
    "station": "loc",
    "postcode": "loc",
    "service_date": "date",
    "day": "date",
    "slot": "time",
    "type": "tap",
    "counts": "count",
    "tap_on_slot": "time",
    "tap_on_location": "loc",
    "tap_off_slot": "time",
    "tap_off_location": "loc",
}
_NOT_COMPANIONS = frozenset({*DIMENSIONS, "count", "estimate", "reconciled", "standard_deviation"})
_ABSENT = frozenset({"", "-", "ALL", "TOTAL"})
_THOUSANDS = re.compile(
    r"[+-]?\d{1,3}([, '\u2019\u00a0\u202f]\d{3})+(\.\d*)?|[+-]?\d{1,3}(\.\d{3}){2,}"
)
_SEPARATORS = re.compile(r"[, '\u2019\u00a0\u202f]")
_NOT_A_MARK = re.compile(r"[A-Za-z]{5,}|\d{3,}\D+\d{3,}")
_MARK_LENGTH_MOST = 24
_MARKS_MOST = 8  # kinds of marks; more are words, not marks
_STRAY_SHARE_MAX = 0.01
_STRAY_FEW = 20
_HEADER_WITHIN = 20  # lines
_DELIMITERS = ",;\t|"
_SUFFIXES = (".csv", ".csv.gz", ".zip")


def read_external_tables(paths: Sequence[Path]) -> ExternalTable:
    """Read files as one table of counts; a folder stands for the tables in it.

    Raises:
        InputError: a file is missing, has no counts, or is mostly not rows.
    """
    cells: list[Cell] = []
    counts: list[float] = []
    companions: dict[str, dict[int, float]] = {}
    stray = 0
    marks: Counter[str] = Counter()
    for name, text in (named for path in paths for named in _texts(path)):
        rows = list(_rows(name, text))
        kept = [row for row in rows if isinstance(row, _Row)]
        own_marks = Counter(row for row in rows if isinstance(row, str))
        if len(own_marks) > _MARKS_MOST:
            own_marks = Counter()
        marks += own_marks
        own_stray = len(rows) - len(kept) - own_marks.total()
        if not text.endswith(("\n", "\r")) and _is_cut_off(kept):
            kept.pop()
            own_stray += 1
        _check(name, rows=len(kept), stray=own_stray)
        for row in kept:
            for column, value in row.others:
                companions.setdefault(column, {})[len(cells)] = value
            cells.append(row.cell)
            counts.append(row.count)
        stray += own_stray
    columns = tuple(
        (name, np.array([values.get(index, np.nan) for index in range(len(cells))]))
        for name, values in companions.items()
    )
    return ExternalTable(
        tuple(cells), np.array(counts), columns, stray, tuple(sorted(marks.items()))
    )


@dataclass(frozen=True, slots=True)
class _Row:
    """One published count."""

    cell: Cell
    count: float
    others: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class _Header:
    """Where the columns of a file are, and the tap that their names imply (`tap_on_slot`)."""

    width: int
    indices: dict[str, int]
    others: tuple[str, ...]
    tap: str | None


def _texts(path: Path) -> Iterator[tuple[str, str]]:
    """Yield name and text of each table that a path stands for."""
    files = [path]
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.name.lower().endswith(_SUFFIXES))
        if not files:
            raise InputError(where=str(path), field="folder", rule="holds no CSV file, no package")
    for file in files:
        if not file.is_file():
            rule = "is no file; name a table or package"
            raise InputError(where=str(file), field="path", rule=rule)
        tables = texts_of(file)
        if not tables:
            rule = "holds no table (CSV text, plain, gzipped or zipped) that can be read; unpack it"
            raise InputError(where=file.name, field="file", rule=rule)
        yield from tables


def _check(name: str, *, rows: int, stray: int) -> None:
    """Refuse a file that is no table."""
    allowed = max(_STRAY_FEW, _STRAY_SHARE_MAX * rows)
    if rows == 0 or stray > allowed:
        rule = (
            f"{stray} lines are no rows of {', '.join(DIMENSIONS)}, count and {rows} are; give a "
            "CSV table with that header (time or loc may be missing)"
        )
        raise InputError(where=name, field="rows", rule=rule)


def _is_cut_off(rows: Sequence[_Row]) -> bool:
    """Return whether the last count of a file without a last line end may have lost its digits."""
    return len(rows) > 1 and 2 * rows[-1].count <= min(row.count for row in rows[:-1])


def _rows(name: str, text: str) -> Iterator[_Row | str | None]:
    """Yield each row of a table; its mark where it holds one, None for a line that is none."""
    lines = [line for line in text.replace("\0", "").splitlines() if line.strip()]
    labels: list[str] | None = None
    try:
        header, first, delimiter = _found_header(name, lines)
        for fields in csv.reader(lines[first + 1 :], delimiter=delimiter):
            if labels is None and len(fields) == header.width:
                labels = [n for n in header.others if _number(fields[header.indices[n]]) is None]
            yield _row(fields, header, labels or [])
    except csv.Error:
        raise InputError(where=name, field="file", rule="is no CSV text") from None


def _found_header(name: str, lines: Sequence[str]) -> tuple[_Header, int, str]:
    """Return the header, its line and the delimiter."""
    for index, line in enumerate(lines[:_HEADER_WITHIN]):
        for delimiter in _DELIMITERS:
            fields = next(csv.reader([line], delimiter=delimiter), [])
            if "count" in [_name(field) for field in fields]:
                return _header(fields), index, delimiter
    rule = f"has no column count; the header must be {','.join(DIMENSIONS)},count"
    raise InputError(where=name, field="header", rule=rule)


def _header(fields: list[str]) -> _Header:
    """Read the header of a file."""
    plain = {field.strip().lower() for field in fields}
    named = [(_name(field), field.strip().lower()) for field in fields]
    names = [name if name not in plain else column for name, column in named]
    indices = {name: index for index, name in enumerate(names) if name}
    implied = {
        side for side in ("on", "off") for field in fields if field.startswith(f"tap_{side}_")
    }
    others = tuple(name for name in indices if name not in _NOT_COMPANIONS)
    return _Header(len(names), indices, others, implied.pop() if len(implied) == 1 else None)


def _row(fields: list[str], header: _Header, further: Sequence[str]) -> _Row | str | None:
    """Read one line; `further` names the columns of texts that make a location finer."""
    if len(fields) != header.width:
        return None
    indices = header.indices
    count = _number(fields[indices["count"]])
    if count is None:
        return _mark(fields[indices["count"]])
    labels = [_label(fields[indices[name]]) if name in indices else None for name in DIMENSIONS]
    cell = Cell(*labels)
    if header.tap is not None:
        cell = cell._replace(tap=cell.tap or header.tap)
    if finer := [text for name in further if (text := _label(fields[indices[name]]))]:
        cell = cell._replace(loc=", ".join([*([cell.loc] if cell.loc else []), *finer]))
    numbers = [(name, _number(fields[indices[name]])) for name in header.others]
    return _Row(cell, count, tuple((name, value) for name, value in numbers if value is not None))


def _mark(field: str) -> str | None:
    """Return what stands in place of a count, as far as it can be a mark: `<50`, `n.p.`, `NaN`."""
    text = " ".join(field.split())
    if not text or len(text) > _MARK_LENGTH_MOST:
        return None
    is_word = _NOT_A_MARK.search(text) is not None and limit_of(text) is None
    known = text.lower() in ("suppressed", "confidential", "redacted", "missing", "withheld")
    return None if is_word and not known else text


def _name(field: str) -> str:
    """Return a column's name as it is known here."""
    name = field.strip().lower()
    return _ALIASES.get(name, name)


def _label(field: str) -> str | None:
    """Return a label, or None where the field says that the table does not have it."""
    text = field.strip()
    return None if text.upper() in _ABSENT else text


def _number(field: str) -> float | None:
    """Return a finite number, or None."""
    text = field.strip()
    try:
        value = float(_without_separators(text))
    except ValueError:
        return None
    return None if is_beyond(value) else value


def _without_separators(text: str) -> str:
    """Return a number without what parts its thousands."""
    if not _THOUSANDS.fullmatch(text):
        return text
    return _SEPARATORS.sub("", text) if text.count(".") < 2 else text.replace(".", "")  # noqa: PLR2004 - a decimal point stands once
