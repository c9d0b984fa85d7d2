"""How a delivered text file is written, found from its bytes: for people who then state it.

Only a look and `turnstile new` ask here. A release reads by what the programme states, a byte order
mark or the header's own line, so that no record decides how another one is read.
"""

from __future__ import annotations

import codecs
import csv
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from turnstile.programme.source_spec import (
    DecimalMark,
    Delimiter,
    Encoding,
    Feed,
    FileSpec,
    QuoteMark,
    TimeForm,
)
from turnstile.sources.feeds.layout import INSTANTS, NUMBERS
from turnstile.sources.ingest.landing import FileForm, RawFile
from turnstile.sources.ingest.plain_text import BLOCK_BYTES, opened

_LOOKED_AT_BYTES = 1 << 20
_HEADER_WITHIN = 30  # lines
_LINES = 400  # below the header
_MOSTLY = 0.9
_ALIKE = 0.75  # lines that have as many fields as the header, where it is one
_QUOTED = 0.3  # fields that stand between single quotes, where those are quotes
_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_C1 = range(0x80, 0xA0)  # control characters of Latin-1, letters of Windows
_NOT_C1 = bytes({*range(256)} - {*_C1})
_OF_WINDOWS = set(_C1) - {0x81, 0x8D, 0x8F, 0x90, 0x9D}
_BEHIND_COMMA = re.compile(r"[-+]?\d{1,4},\d+")
_EPOCHS = {
    10: TimeForm.EPOCH_S,
    13: TimeForm.EPOCH_MS,
    16: TimeForm.EPOCH_US,
    19: TimeForm.EPOCH_NS,
}
_EPOCH = re.compile(r"([12]\d{9}(?:\d{3}){0,3})(\.\d+)?")
_YEAR_LAST = re.compile(r"\d\d?[-/.]\d\d?[-/.]\d{4}\b.*")
_WITH_OFFSET = re.compile(r".*(:\d\d|T\d{6})(\.\d+)? ?(Z|UTC|[-+]\d\d(:?\d\d)?)")
_WITH_NAME = re.compile(r".*\d ?(?!UTC|[AP]M)[A-Z]{3,5}")
_EPOCHS_READ = (Feed.GTFS_VEHICLE_POSITIONS, Feed.GTFS_TRIP_UPDATES)
"""Feeds that read seconds since 1970 by themselves."""
_NAME = re.compile(r"[^\W\d]")
_CHARACTERS = {QuoteMark.DOUBLE: '"', QuoteMark.SINGLE: "'"}


@dataclass(frozen=True, slots=True)
class FoundForm:
    """How a file is written, as far as its bytes show.

    Args:
        spec: what a programme would state, but for times and decimals, which are of some columns.
        columns: names in the header.
        epochs: columns of numbers that are units since 1970, and which.
        decimals: columns of numbers with decimals behind a comma.
        has_mark: True if a byte order mark says that it is UTF-16.
        offsets: columns of times that state their offset.
        dated: columns of dates that begin with a day or a month.
        named: columns of times behind which a zone's short name stands.
        is_text: True of CSV, whose encoding, delimiter and header are found.
        is_ascii: True of a text that reads alike in every encoding of bytes.
        beyond_ascii: columns with characters by which encodings differ.
    """

    spec: FileSpec
    columns: tuple[str, ...]
    epochs: tuple[tuple[str, TimeForm], ...] = ()
    decimals: tuple[str, ...] = ()
    has_mark: bool = False
    offsets: tuple[str, ...] = ()
    dated: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    is_text: bool = False
    is_ascii: bool = False
    beyond_ascii: tuple[str, ...] = ()

    def tells_instants(self, instants: Iterable[str]) -> bool:
        """Return whether columns name instants whatever the zone: by an offset, or since 1970."""
        return {*instants} <= {*self.offsets, *(column for column, _ in self.epochs)}

    def stated(self, instants: Iterable[str] = (), numbers: Iterable[str] = ()) -> FileSpec:
        """Return what a programme has to state, for its columns of instants and of numbers."""
        forms = {form for column, form in self.epochs if column in set(instants)}
        spec = replace(self.spec, times=forms.pop()) if len(forms) == 1 else self.spec
        if set(self.decimals) & set(numbers):
            spec = replace(spec, decimal=DecimalMark.COMMA)
        return replace(spec, encoding=Encoding.UTF_8) if self.has_mark else spec


def instants_and_numbers(feed: Feed, names: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Return the columns of instants and of numbers that `source.file` says how to read.

    Args:
        feed: that the files are of.
        names: column of each field that there is.
    """
    instants = () if feed in _EPOCHS_READ else INSTANTS
    return tuple([names[name] for name in kind if name in names] for kind in (instants, NUMBERS))  # type: ignore[return-value]


def found_form(file: RawFile, wanted: Iterable[str] = ()) -> FoundForm | None:
    """Return how a file is written; None of a kind that is read in one way alone.

    Args:
        file: CSV or JSON, compressed or not, Parquet or Arrow; no archive.
        wanted: names of columns that its header is likely to have.

    Raises:
        OSError, EOFError, zlib.error: it cannot be read to its end.
    """
    if file.form in _CELLS:
        by_column: dict[str, list[str]] = {}
        with suppress(pa.ArrowException, ValueError, ArithmeticError, RecursionError):
            for column, cell in _CELLS[file.form](file):
                by_column.setdefault(column, []).append(cell)
        return _form_of_cells(FileSpec(), tuple(by_column), by_column)
    if file.form is not FileForm.CSV:
        return None
    encoding, has_mark, is_ascii = _encoding(file)
    with opened(file.path) as stream:
        begin = stream.read(_LOOKED_AT_BYTES)
    text = begin.decode("utf-16" if has_mark else encoding, errors="replace").lstrip("\ufeff")
    lines = text.splitlines()
    if len(begin) == _LOOKED_AT_BYTES:
        lines = lines[:-1]
    row, delimiter, quote = _layout(lines, frozenset(wanted))
    records = list(islice(_parsed(lines[row:], delimiter, quote), 1 + _LINES))
    columns = tuple(name.strip() for name in records[0]) if records else ()
    cells = dict(zip(columns, zip(*_full(records, len(columns)), strict=False), strict=False))
    spec = FileSpec(
        encoding=encoding,
        delimiter=None if _is_told(lines, row, delimiter) else delimiter,
        quote=quote,
        header_row=row + 1,
    )
    others = [line for line in lines[row + 1 :] if not line.isascii()]
    beyond = {
        column
        for record in _parsed(others, delimiter, quote)
        for column, cell in zip(columns, record, strict=False)
        if not cell.isascii()
    }
    return replace(
        _form_of_cells(spec, columns, cells),
        has_mark=has_mark,
        is_text=True,
        is_ascii=is_ascii,
        beyond_ascii=tuple(sorted(beyond)),
    )


def _form_of_cells(
    spec: FileSpec, columns: tuple[str, ...], cells: Mapping[str, Sequence[str]]
) -> FoundForm:
    """Return the form of a file whose columns hold these cells."""
    said = {
        column: [text for cell in texts if (text := cell.strip())]
        for column, texts in cells.items()
    }
    decimals, offsets, dated, named = (
        tuple(column for column, texts in said.items() if _mostly(pattern, texts))
        for pattern in (_BEHIND_COMMA, _WITH_OFFSET, _YEAR_LAST, _WITH_NAME)
    )
    epochs = tuple(_epochs(said.items()))
    return FoundForm(spec, columns, epochs, decimals, offsets=offsets, dated=dated, named=named)


def _of_parquet(file: RawFile) -> Iterator[tuple[str, str]]:
    """Yield the cells of the first records of a file of Parquet."""
    with pq.ParquetFile(file.path) as parquet:
        for batch in islice(parquet.iter_batches(_LINES, columns=_flat(parquet.schema_arrow)), 1):
            yield from _texts(batch)


def _of_arrow(file: RawFile) -> Iterator[tuple[str, str]]:
    """Yield the cells of the first records of a file of Arrow."""
    with pa.memory_map(str(file.path)) as mapped, pa.ipc.open_file(mapped) as batches:
        for number in range(min(1, batches.num_record_batches)):
            yield from _texts(batches.get_batch(number).select(_flat(batches.schema)))


def _flat(schema: pa.Schema) -> list[str]:
    """Return the columns that hold no lists and no objects."""
    return [field.name for field in schema if not pa.types.is_nested(field.type)]


def _texts(batch: pa.RecordBatch) -> Iterator[tuple[str, str]]:
    """Yield the cells of a batch; none of a column that has no texts."""
    for column in batch.schema.names:
        with suppress(pa.ArrowException, ArithmeticError):
            for cell in batch.column(column).slice(0, _LINES).to_pylist():
                yield from _cells({column: cell})


def _of_json(file: RawFile) -> Iterator[tuple[str, str]]:
    """Yield the cells of the first records of JSON, an array or lines, numbers as written."""
    with opened(file.path) as stream:
        rest = (
            stream.read(_LOOKED_AT_BYTES).decode("utf-8-sig", errors="replace").lstrip("[ \r\n\t")
        )
    decoder = json.JSONDecoder(parse_float=str, parse_int=str)
    for _ in range(_LINES):
        record, end = decoder.raw_decode(rest)
        rest = rest[end:].lstrip(", \r\n\t")
        inner = record.get("properties") if isinstance(record, dict) else None
        yield from _cells(inner if isinstance(inner, dict) else record)


def _cells(record: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - any JSON
    """Yield the cells of a record that hold a text, a number or an instant."""
    for column, value in record.items() if isinstance(record, dict) else ():
        if value is not None and not isinstance(value, dict | list):
            yield column, f"{value:f}" if isinstance(value, float) else str(value)


_CELLS = {FileForm.PARQUET: _of_parquet, FileForm.ARROW: _of_arrow, FileForm.JSON: _of_json}


def has_records(file: RawFile, spec: FileSpec) -> bool:
    """Return whether a file holds any record: not so a header alone, or nothing in brackets.

    Args:
        file: as it was delivered; of an archive it is taken for granted.
        spec: how it is written.
    """
    if file.form is FileForm.PARQUET:
        return bool(pq.read_metadata(file.path).num_rows)
    if file.form not in {FileForm.CSV, FileForm.JSON}:
        return True
    with opened(file.path) as stream:
        begin = stream.read(_LOOKED_AT_BYTES)
    if len(begin) == _LOOKED_AT_BYTES:
        return True
    is_marked = begin.startswith(_MARKS)
    text = begin.decode("utf-16" if is_marked else spec.encoding, errors="replace").strip("\ufeff")
    if file.form is FileForm.JSON:
        return bool(text.strip("[] \r\n\t"))
    return any(line.strip() for line in text.splitlines()[spec.header_row :])


def yaml_of(spec: FileSpec) -> str:
    """Return the keys of `source.file` that differ from what nobody needs to state."""
    usual = FileSpec()
    keys = ("encoding", "delimiter", "quote", "header_row", "decimal", "times", "zone")
    pairs = ((key, getattr(spec, key)) for key in keys)
    entries = [f"{key}: {value}" for key, value in pairs if value != getattr(usual, key)]
    return f"{{{', '.join(entries)}}}" if entries else ""


def _encoding(file: RawFile) -> tuple[Encoding, bool, bool]:
    """Return the encoding of all bytes of a file, whether a mark says so, whether all are ASCII."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    is_utf8, is_ascii, others = True, True, set[int]()
    with opened(file.path) as stream:
        first = True
        while chunk := stream.read(BLOCK_BYTES):
            if first and (chunk.startswith(_MARKS) or _is_utf16(chunk)):
                return Encoding.UTF_16, chunk.startswith(_MARKS), False
            first, is_ascii = False, is_ascii and chunk.isascii()
            if chunk.isascii() and is_utf8 and not decoder.getstate()[0]:
                continue
            try:
                decoder.decode(chunk)
            except UnicodeDecodeError:
                is_utf8 = False
                decoder.reset()
            others.update(chunk.translate(None, _NOT_C1))
    if is_utf8:
        return Encoding.UTF_8, False, is_ascii
    of_windows = bool(others) and others <= _OF_WINDOWS
    return (Encoding.WINDOWS_1252 if of_windows else Encoding.LATIN_1), False, False


def _is_utf16(chunk: bytes) -> bool:
    """Return whether every other byte of a text is NUL, as of Latin letters in UTF-16."""
    odd, even = chunk[1::2], chunk[::2]
    return max(odd.count(0) / max(len(odd), 1), even.count(0) / max(len(even), 1)) > _MOSTLY


def _parsed(lines: Sequence[str], delimiter: Delimiter, quote: QuoteMark) -> Iterator[list[str]]:
    """Yield the fields of each line by itself; none of a line that the reader would not take."""
    separator, mark = delimiter.character, _CHARACTERS.get(quote, "\n")  # which no line has
    enclosed = re.compile(
        f"(^|{re.escape(separator)}){mark}(?:[^{mark}]|{mark}{mark})*{mark}(?={re.escape(separator)}|$)"
    )
    for line in lines:
        if mark not in line:
            yield line.split(separator) if line.strip() else []
        elif mark in enclosed.sub(r"\1", line):  # a stray one
            yield []
        else:
            yield next(csv.reader([line], delimiter=separator, quotechar=mark), [])


def _layout(lines: Sequence[str], wanted: frozenset[str]) -> tuple[int, Delimiter, QuoteMark]:
    """Return the row of the header, the delimiter and the quote that fit the lines best."""
    best: tuple[float, ...] = ()
    layout = (0, Delimiter.COMMA, QuoteMark.DOUBLE)
    for delimiter in Delimiter:
        for preferred, quote in enumerate(reversed(QuoteMark)):
            records = list(_parsed(lines[: _HEADER_WITHIN + _LINES], delimiter, quote))
            for row, fields in enumerate(records[:_HEADER_WITHIN]):
                score = _score(fields, records[row + 1 : row + 1 + _LINES], wanted)
                if score and (*score, preferred, -row) > best:
                    best, layout = (*score, preferred, -row), (row, delimiter, quote)
    row, delimiter, quote = layout
    if quote is QuoteMark.DOUBLE:
        cells = [
            c for record in _parsed(lines[row : row + _LINES], delimiter, quote) for c in record
        ]
        in_single = sum(len(c) > 1 and c[0] == c[-1] == "'" for c in cells)
        if in_single > _QUOTED * len(cells):
            return row, delimiter, QuoteMark.SINGLE
    return layout


def _score(
    fields: list[str], below: list[list[str]], wanted: frozenset[str]
) -> tuple[float, ...] | None:
    """Return how well a line is the header of those below; None if it is none."""
    names = [field.strip().strip("'") for field in fields]
    if len(names) < 2 or not all(_NAME.search(name) for name in names):  # noqa: PLR2004 - a table
        return None
    share = sum(len(record) == len(names) for record in below) / len(below) if below else 1.0
    if share < _ALIKE:
        return None
    return len(wanted & set(names)), round(share, 2), len(names)


def _full(records: list[list[str]], fields: int) -> list[list[str]]:
    """Return the records below the header that have all fields."""
    return [record for record in records[1:] if len(record) == fields]


def _is_told(lines: Sequence[str], row: int, delimiter: Delimiter) -> bool:
    """Return whether the header's own line says the delimiter to the reader."""
    header = lines[row] if row < len(lines) else ""
    return (
        next((candidate for candidate in Delimiter if candidate.character in header), delimiter)
        is delimiter
    )


def _epochs(columns: Iterable[tuple[str, Sequence[str]]]) -> Iterator[tuple[str, TimeForm]]:
    """Yield the columns of numbers that may be instants."""
    for name, said in columns:
        if _mostly(_EPOCH, said):
            lengths = Counter(len(text.partition(".")[0]) for text in said)
            yield name, _EPOCHS.get(lengths.most_common(1)[0][0], TimeForm.WRITTEN)


def _mostly(pattern: re.Pattern[str], said: Sequence[str]) -> bool:
    """Return whether nearly all texts match, if there are any."""
    return bool(said) and sum(map(bool, map(pattern.fullmatch, said))) >= _MOSTLY * len(said)
