"""Where a record stands in its file: the line of a text, the row group of Parquet.

A line tells whose record it is: it stands on the private page, a terminal is told of files,
columns and kinds alone.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from turnstile.duckdb_engine import one_file, text
from turnstile.programme.source_spec import DecimalMark, FileSpec, TimeForm
from turnstile.sources.feeds.layout import INSTANTS, NUMBERS
from turnstile.sources.ingest.landing import FileForm, RawFile
from turnstile.sources.ingest.plain_text import opened

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_LINES_LOOKED_AT = 2_000_000


def place_of(
    connection: DuckDBPyConnection, file: RawFile | None, spec: FileSpec, record: str
) -> str:
    """Return the place of a record, `, line 17`; empty where it is not found.

    Args:
        connection: engine.
        file: one file, no archive; None if it is not at hand.
        spec: how it is written.
        record: as the quarantine has it.
    """
    said = [*_as_written(record, spec)]
    if file is None or not said:
        return ""
    if file.form is FileForm.PARQUET:
        return _row_group(connection, file, said)
    if file.form not in {FileForm.CSV, FileForm.JSON}:
        return ""
    with opened(file.path) as stream:
        lines = io.TextIOWrapper(stream, spec.encoding, errors="replace")
        for number, line in enumerate(islice(lines, _LINES_LOOKED_AT), start=1):
            if all(value in line for value in said):
                return f", line {number}"
    return ""


def _as_written(record: str, spec: FileSpec) -> Iterator[str]:
    """Yield the texts of a record that stand in its file as they came."""
    try:
        fields = json.loads(record)
    except ValueError:
        fields = {"line": record.strip()}
    changed: tuple[str, ...] = INSTANTS if spec.times is not TimeForm.WRITTEN else ()
    changed += NUMBERS if spec.decimal is DecimalMark.COMMA else ()
    for field, value in fields.items() if isinstance(fields, dict) else ():
        if isinstance(value, str) and value and field not in changed:
            yield value


def _row_group(connection: DuckDBPyConnection, file: RawFile, said: Sequence[str]) -> str:
    """Return the row group of the first row that holds these texts."""
    read = f"read_parquet({one_file(file.path)}, file_row_number=true)"
    held = " AND ".join(f"contains(CAST(one AS VARCHAR), {text(value)})" for value in said)
    select = f"SELECT file_row_number FROM {read} AS one WHERE {held} LIMIT 1"
    if (row := connection.execute(select).fetchone()) is None:
        return ""
    group, last = 0, 0
    footer = pq.read_metadata(file.path)
    while (last := last + footer.row_group(group).num_rows) <= row[0]:
        group += 1
    return f", row group {group}"
