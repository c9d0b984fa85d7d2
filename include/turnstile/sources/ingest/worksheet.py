"""A worksheet (.xlsx, ECMA-376 part 1) as Parquet of texts: one sheet, a header, a record a row.

Texts, numbers and instants are as their cells hold them, a number in the digits that are written
and an instant as a date and a time. A cell that cannot be read is marked, and costs its record
alone: an error, an instant that is none, what is no character, and a number of more digits than a
spreadsheet keeps, since ids may have become equal in it. A row without any cell that says something
is no record. What lies beyond the header's columns is never read. XML with a document type is
refused, so no entity is ever expanded.
"""

from __future__ import annotations

import re
import sys
import zipfile
from collections.abc import Generator, Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from xml.parsers import expat

import pyarrow as pa
import pyarrow.parquet as pq

from turnstile.errors import InputError
from turnstile.sources.ingest.identity import EXACT_FLOAT
from turnstile.sources.ingest.landing import RawFile, refuse_bomb
from turnstile.sources.ingest.lines import MENDED, UNREADABLE, blocks
from turnstile.sources.ingest.plain_text import xml_in_utf_8

_CHUNK_BYTES, _ROWS = 1 << 16, 10_000
_ZERO = {False: datetime(1899, 12, 30), True: datetime(1904, 1, 1)}  # noqa: DTZ001 - a wall clock
_USUAL_DATES = {*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)}
_FORMS = {14: "d", 15: "d", 16: "d", 17: "d", 18: "h", 19: "h", 20: "h", 21: "h"}  # 22: both
_NO_CODE = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]|general', re.IGNORECASE)
# What is no character of XML, or a reference by number, which may be to none.
_ODD = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|&#(?:([0-9]+)|x([0-9a-fA-F]+));")
_DIGITS = 7  # of the last character, by ten or sixteen
_SURROGATES = range(0xD800, 0xE000)
_COLUMN = re.compile(r"([A-Z]{1,3})\d*")
Row = dict[int, str]


def as_parquet(file: RawFile, target: Path, header_row: int) -> Path:
    """Write the rows of a workbook's only sheet as Parquet; return the file.

    Args:
        file: a workbook.
        target: file to write, in a scratch folder of the private zone.
        header_row: number of the row that holds the names of the columns.

    Raises:
        InputError: several sheets, no header, a name twice, or it unpacks to far more than rows do.
        OSError: it is no workbook, or damaged.
    """
    try:
        with zipfile.ZipFile(file.path) as parts:
            sheets = [n for n in parts.namelist() if re.fullmatch(r"xl/worksheets/[^/]+\.xml", n)]
            if len(sheets) != 1:
                rule = "has no sheet, or several; deliver a workbook of the one that is meant"
                raise InputError(where=file.name, field="sheets", rule=rule)
            with closing(_Sheet(file, parts).rows(sheets[0])) as rows:
                header = next((row for n, row in rows if n == header_row), {})
                _write(file, header, (row for _, row in rows), target)
    except (expat.ExpatError, zipfile.BadZipFile, KeyError, RuntimeError, NotImplementedError):
        raise OSError from None
    return target


def _write(file: RawFile, header: Row, rows: Iterator[Row], target: Path) -> None:
    """Write a header as names of columns, rows as texts below them."""
    names = [header.get(n, "").strip() or f"column_{n}" for n in range(max(header, default=-1) + 1)]
    if not names or len(set(names)) < len(names):
        rule = "has no header, or a column is named twice; state source.file.header_row"
        raise InputError(where=file.name, field="header", rule=rule)
    schema = pa.schema([(name, pa.string()) for name in names])
    with pq.ParquetWriter(target, schema) as written:
        full = True
        while full:
            block = [row for _, row in zip(range(_ROWS), rows, strict=False)]
            columns = [
                pa.array([row.get(n) for row in block], pa.string()) for n in range(len(names))
            ]
            written.write_table(pa.table(columns, schema=schema))
            full = len(block) == _ROWS


class _Sheet:
    """The cells of a workbook."""

    def __init__(self, file: RawFile, parts: zipfile.ZipFile) -> None:
        self._file, self._parts, self._taken = file, parts, 0
        self._texts: list[str] = []
        self._styles: list[str] = []  # of each style of cells: "d" a date, "h" a time, "dh" both
        self._is_1904 = False
        self._read_parts()

    def rows(self, sheet: str) -> Generator[tuple[int, Row], None, None]:
        """Yield number and cells of each row that has any; cells by the number of their column."""
        number, column, row, kind, style, texts = 0, -1, Row(), "", "", list[str]()
        for is_begin, tag, value in self._events(sheet):
            if tag == "row" and is_begin:
                number, column, row = _whole(value.get("r"), number + 1), -1, {}
            elif tag == "c" and is_begin:
                column = _column(value.get("r", ""), column + 1)
                kind, style, texts = value.get("t", "n"), value.get("s", ""), []
            elif tag in {"v", "t"} and not is_begin:
                texts.append(value)
            elif tag == "c" and (text := self._text("".join(texts), kind, style)):
                row[column] = text
            elif tag == "row" and any(not text.startswith(UNREADABLE) for text in row.values()):
                yield number, row

    def _text(self, value: str, kind: str, style: str) -> str:
        """Return a cell as text, marked if it cannot be read."""
        form = self._styles[_whole(style, 0)] if _whole(style, 0) < len(self._styles) else ""
        if kind == "e" or (kind == "n" and _is_rounded(value)):
            return UNREADABLE + value
        try:
            if kind == "s":
                place = _whole(value.strip(), len(self._texts))  # none before the first
                value = self._texts[place]
            if kind == "n" and form and value:
                at = _ZERO[self._is_1904] + timedelta(seconds=round(float(value) * 86_400))
                return f"{at:%Y-%m-%d %H:%M:%S}"[slice(*_PARTS[form])]
        except (ValueError, IndexError, OverflowError):
            return UNREADABLE
        return value

    def _read_parts(self) -> None:
        """Read texts, styles and the calendar, which stand apart from the cells."""
        codes: dict[int, str] = {}
        in_cells, names = False, set(self._parts.namelist())
        for is_begin, tag, value in self._events("xl/workbook.xml"):
            if tag == "workbookPr" and is_begin:
                self._is_1904 = value.get("date1904") in {"1", "true"}
        for is_begin, tag, value in (
            self._events("xl/styles.xml") if "xl/styles.xml" in names else ()
        ):
            in_cells = is_begin if tag == "cellXfs" else in_cells
            if tag == "numFmt" and is_begin:
                codes[_whole(value.get("numFmtId"), 0)] = value.get("formatCode", "")
            elif tag == "xf" and is_begin and in_cells:
                format_id = _whole(value.get("numFmtId"), 0)
                self._styles.append(_form(format_id, codes.get(format_id, "")))
        part, is_sound, texts = "xl/sharedStrings.xml", False, list[str]()
        for is_begin, tag, value in self._events(part) if part in names else ():
            is_sound = is_begin if tag == "rPh" else is_sound  # how a text is pronounced
            if tag == "t" and not is_begin and not is_sound:
                texts.append(value)
            elif tag == "si" and not is_begin:
                self._texts.append("".join(texts))
                texts = []

    def _events(self, part: str) -> Iterator[tuple[bool, str, Any]]:
        """Yield begin (with attributes) and end (with its text) of each element of a part."""
        events: list[tuple[bool, str, Any]] = []
        said: list[str] = []

        def begin(tag: str, attributes: dict[str, str]) -> None:
            said.clear()
            events.append((True, tag.rpartition(":")[2], attributes))

        def end(tag: str) -> None:
            events.append((False, tag.rpartition(":")[2], "".join(said)))
            said.clear()

        parser = expat.ParserCreate("utf-8")
        parser.StartElementHandler, parser.EndElementHandler = begin, end
        parser.CharacterDataHandler = said.append
        parser.StartDoctypeDeclHandler = _refuse
        for block in blocks(xml_in_utf_8(self._chunks(part)), b">", sys.maxsize):
            parser.Parse(_ODD.sub(_marked, block.decode(errors=MENDED)))
            yield from events
            events.clear()
        parser.Parse(b"", True)
        yield from events

    def _chunks(self, part: str) -> Iterator[bytes]:
        """Yield the bytes of a part."""
        with self._parts.open(part) as stream:
            while chunk := stream.read(_CHUNK_BYTES):
                self._taken += len(chunk)
                refuse_bomb(self._file.name, self._file.path.stat().st_size, self._taken)
                yield chunk


def _marked(match: re.Match[str]) -> str:
    """Return a reference to a character as it is; a mark of what is none."""
    if not match[1] and not match[2]:
        return UNREADABLE
    digits = (match[1] or match[2]).lstrip("0")
    if len(digits) > _DIGITS:
        return UNREADABLE
    number = int(digits or "0", 10 if match[1] else 16)
    is_none = number > sys.maxunicode or number in _SURROGATES or _ODD.match(chr(number))
    return UNREADABLE if is_none else match[0]


_PARTS = {"d": (10,), "h": (11, None), "dh": (None,)}


def _refuse(*_: object) -> None:
    """Refuse a document type.

    Raises:
        OSError: always.
    """
    raise OSError


def _form(number: int, code: str) -> str:
    """Return whether a format of numbers shows a date ("d"), a time ("h"), both, or neither."""
    if not code:
        return _FORMS.get(number, "dh") if number in _USUAL_DATES else ""
    plain = _NO_CODE.sub("", code.lower())
    return ("d" if re.search("[yd]", plain) else "") + ("h" if re.search("[hs]", plain) else "")


def _column(reference: str, following: int) -> int:
    """Return the number of a column by the reference of a cell, `C5`; else the following one.

    Examples:
        >>> _column("A1", 7), _column("AB12", 0), _column("", 7)
        (0, 27, 7)
    """
    match = _COLUMN.match(reference)
    if match is None:
        return following
    number = 0
    for letter in match[1]:
        number = 26 * number + ord(letter) - ord("A") + 1
    return number - 1


def _is_rounded(value: str) -> bool:
    """Return whether a spreadsheet may have rounded a whole number when it was typed."""
    try:
        return abs(float(value)) >= float(f"1e{EXACT_FLOAT}")
    except ValueError:
        return False


def _whole(value: str | None, otherwise: int) -> int:
    """Return a number of XML, or another one."""
    return int(value) if value is not None and value.isdecimal() and len(value) < 9 else otherwise  # noqa: PLR2004
