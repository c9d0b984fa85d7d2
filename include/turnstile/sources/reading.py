"""Raw files as relations of text columns, whatever their form; file-level faults are told here.

The engine's own messages quote the line at fault, so none of them is passed on: each becomes an
`InputError` that names the file, the column and the rule.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from turnstile.duckdb_engine import name, text
from turnstile.errors import InputError
from turnstile.sources.landing import FileForm, RawFile

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_OTHER_DELIMITERS = (";", "\t", "|")
_RECORDS_FOR_KEYS = 1000
_LAST_BYTES = 1 << 16


@contextmanager
def raised_as_input_error(file: RawFile) -> Iterator[None]:
    """Turn a fault of a file into one sentence without any of its content.

    Raises:
        InputError: the file cannot be read to its end.
    """
    import duckdb

    try:
        yield
    except (duckdb.Error, OSError, EOFError, UnicodeError):
        rule = f"cut off or damaged: it does not read as {file.form} to its end; deliver it again"
        raise InputError(where=file.name, field="file", rule=rule) from None


def columns_of(connection: DuckDBPyConnection, file: RawFile) -> tuple[str, ...]:
    """Return the names of a file's columns (of its first records, for JSON).

    Raises:
        InputError: damaged file, another delimiter, or a column named twice.
    """
    with raised_as_input_error(file):
        if file.form is FileForm.CSV:
            columns = _csv_header(file)
            _refuse_cut_off_line(file, fields=len(columns))
        elif file.form is FileForm.JSON:
            columns = _json_keys(connection, file)
        else:
            found = connection.execute(f"DESCRIBE SELECT * FROM {_parquet(file)}").fetchall()
            columns = tuple(str(row[0]) for row in found)
    if len(set(columns)) < len(columns):
        rule = "a column is named twice; name each column once"
        raise InputError(where=file.name, field="header", rule=rule)
    return columns


def relation_of(file: RawFile, columns: tuple[str, ...]) -> str:
    """Return SQL that selects every column as text (nested JSON and Parquet values as JSON).

    Lines of a CSV file that have other than the header's number of fields, or that are not UTF-8,
    are left out and put in the engine's `reject_errors`.
    """
    if file.form is FileForm.CSV:
        types = ", ".join(f"{name(column)}: 'VARCHAR'" for column in columns)
        options = (
            f"auto_detect=false, columns={{{types}}}, header=true, delim=',', quote='\"', "
            "escape='\"', nullstr='', store_rejects=true, rejects_limit=0"
        )
        return f"SELECT * FROM read_csv({text(file.path)}, {options})"
    if file.form is FileForm.JSON:
        types = ", ".join(f"{name(column)}: 'VARCHAR'" for column in columns)
        return f"SELECT * FROM read_json({text(file.path)}, format='auto', columns={{{types}}})"
    return f"SELECT * FROM {_parquet(file)}"


def as_text(column: str, file: RawFile) -> str:
    """Return SQL for a column as trimmed text, empty text as NULL."""
    value = name(column)
    if file.form is FileForm.PARQUET:
        # to_json keeps structs and lists readable; a plain value is taken as it prints
        value = f"CASE WHEN typeof({value}) LIKE 'STRUCT%' THEN CAST(to_json({value}) AS VARCHAR) "
        value += f"ELSE CAST({name(column)} AS VARCHAR) END"
    return f"nullif(trim({value}), '')"


def _parquet(file: RawFile) -> str:
    """SQL table function for a Parquet file."""
    return f"read_parquet({text(file.path)})"


def _opened(file: RawFile) -> TextIO:
    """Open a CSV file, compressed or not, as text; the caller closes it."""
    if file.path.name.endswith(".gz"):
        return gzip.open(file.path, "rt", encoding="utf-8-sig", newline="")
    return file.path.open(encoding="utf-8-sig", newline="")


def _csv_header(file: RawFile) -> tuple[str, ...]:
    """Names in the first line; a single name that another delimiter splits is told as such."""
    with _opened(file) as stream:
        first = next(csv.reader(stream), [])
    header = tuple(column.strip() or f"column_{n}" for n, column in enumerate(first))
    for delimiter in _OTHER_DELIMITERS:
        if len(header) == 1 and delimiter in header[0]:
            rule = f"the delimiter is {delimiter!r}, but a comma is read; write it with commas"
            raise InputError(where=file.name, field="header", rule=rule)
    return header


def _refuse_cut_off_line(file: RawFile, *, fields: int) -> None:
    """Refuse a plain file that ends inside a line; a compressed one tells by its own checksum.

    Raises:
        InputError: the last line has no end and fewer fields than the header.
    """
    if file.path.name.endswith(".gz"):
        return
    with file.path.open("rb") as stream:
        stream.seek(max(0, file.path.stat().st_size - _LAST_BYTES))
        last = stream.read().rsplit(b"\n", maxsplit=1)[-1].decode("utf-8", errors="replace")
    if last.strip() and len(next(csv.reader([last]))) < fields:
        rule = "cut off: its last line is not complete; deliver it again"
        raise InputError(where=file.name, field="file", rule=rule)


def _json_keys(connection: DuckDBPyConnection, file: RawFile) -> tuple[str, ...]:
    """Keys of the first records in order of the alphabet; none for an empty array."""
    source = f"read_json_objects({text(file.path)}, format='auto')"
    first = f"SELECT json FROM {source} LIMIT {_RECORDS_FOR_KEYS}"
    found = connection.execute(f"SELECT DISTINCT unnest(json_keys(json)) FROM ({first})").fetchall()
    return tuple(sorted(str(row[0]) for row in found))
