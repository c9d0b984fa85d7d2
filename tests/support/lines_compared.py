"""Lines read by the product's own code, and by the standard library a line at a time, compared."""

from __future__ import annotations

import csv
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from turnstile.duckdb_engine import connect
from turnstile.sources.ingest.landing import FileForm, RawFile
from turnstile.sources.ingest.reading import open_source

Reader = Callable[[bytes], tuple[Counter[tuple[str | None, ...]], int]]
_FIELD = rb'(?:[^",\r\n\0]*|"(?:[^"\r\n\0]|"")*")'
_CLEAN = re.compile(_FIELD + rb"(?:," + _FIELD + rb")*")
COLUMNS = ("a", "b", "c")


def read_by_line(lines: list[bytes]) -> tuple[Counter[tuple[str | None, ...]], int]:
    """The same by the standard library, a line at a time: records, and how many are none."""
    records: Counter[tuple[str | None, ...]] = Counter()
    rejected = 0
    for raw_line in lines:
        line = raw_line.removesuffix(b"\r")
        try:
            fields = next(csv.reader([line.decode()], strict=True))
            whole = line != b"" and _CLEAN.fullmatch(line) is not None
        except (UnicodeDecodeError, csv.Error):
            whole = False
        while whole and len(fields) > len(COLUMNS) and fields[-1] == "":
            fields.pop()  # empty fields beyond the header's are none
        if whole and len(fields) == len(COLUMNS):
            records[tuple(field or None for field in fields)] += 1
        else:
            rejected += 1
    return records, rejected


class _Every(tuple[str, ...]):
    """Columns that are read: any."""

    __slots__ = ()

    def __contains__(self, _: object) -> bool:
        return True


@contextmanager
def opened_reader() -> Iterator[Reader]:
    """Read a CSV file by the product's own code: records, and how many lines are none."""
    with tempfile.TemporaryDirectory() as folder:
        connection = connect(Path(folder) / "engine")

        def read(content: bytes) -> tuple[Counter[tuple[str | None, ...]], int]:
            path, scratch = Path(folder) / "in.csv", Path(folder) / "lines"
            shutil.rmtree(scratch, ignore_errors=True)
            path.write_bytes(content)
            file = RawFile("in.csv", path, FileForm.CSV)
            source = open_source(connection, file, _Every(), scratch)
            rows = Counter(connection.execute(source.relation).fetchall())
            counted = connection.execute("SELECT count(DISTINCT line) FROM reject_errors")
            rejected = int((counted.fetchone() or (0,))[0])
            connection.execute("DELETE FROM reject_errors")
            if source.malformed is not None:
                rejected += len(connection.execute(source.malformed).fetchall())
                connection.execute("DELETE FROM reject_errors")
            if source.rejected is not None:
                from_file = f"SELECT count(*) FROM '{source.rejected}'"
                rejected += int((connection.execute(from_file).fetchone() or (0,))[0])
            return rows, rejected

        yield read
        connection.close()


def check_a_file(reader: Reader, lines: list[bytes], ending: bytes) -> None:
    """Compare both ways of reading."""
    content = b"a,b,c\n" + ending.join([*lines, b"1,2,3"]) + b"\n"
    physical_lines = content.split(b"\n")[1:-1]
    records, rejected = reader(content)
    assert (records, rejected) == read_by_line(physical_lines)
    assert records.total() + rejected == len(physical_lines)
