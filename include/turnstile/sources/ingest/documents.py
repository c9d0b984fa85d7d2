"""Files that are one message or one document, as tables of records: GTFS-realtime and SIRI.

What holds a record together is the file's own frame, a length or an element; no record reaches
beyond it. A file whose frame is broken is refused as a whole, as an archive would be; a record that
cannot be read within its frame costs itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from turnstile.sources.ingest.document_record import Found
from turnstile.sources.ingest.landing import FileForm, RawFile
from turnstile.sources.ingest.plain_text import unpacked

if TYPE_CHECKING:
    from collections.abc import Callable

_ROWS_AT_ONCE = 1 << 16
_QUARANTINE = pa.schema([("fields", pa.string())])


@dataclass(frozen=True, slots=True)
class Table:
    """The records of a file.

    Args:
        path: Parquet file of text columns, those that are wanted.
        rejected: Parquet file of what is no record; None if there is nothing.
        records: how many there are, with those.
    """

    path: Path
    rejected: Path | None
    records: int


def as_table(file: RawFile, wanted: tuple[str, ...], folder: Path) -> Table:
    """Write the records of a file as a table.

    Args:
        file: of protobuf or XML, compressed or not.
        wanted: paths of the columns that are read.
        folder: scratch folder that does not exist yet.

    Raises:
        OSError: the file cannot be read to its end.
        EOFError: it is no such message or document, or is cut off.
        InputError: it unpacks to far more than rows do.
    """
    from turnstile.sources.ingest import gtfs_realtime, siri

    readers: dict[FileForm, Callable[[Iterator[bytes], tuple[str, ...]], Iterator[Found]]]
    readers = {FileForm.PROTOBUF: gtfs_realtime.records, FileForm.XML: siri.records}
    folder.mkdir(parents=True)
    schema = pa.schema([(column, pa.string()) for column in wanted])
    good, bad = folder / "records.parquet", folder / "rejected.parquet"
    count = rejected = 0
    with pq.ParquetWriter(good, schema) as rows, pq.ParquetWriter(bad, _QUARANTINE) as others:
        for part in _parts(readers[file.form](unpacked(file), wanted)):
            records = [record for record in part if not isinstance(record, bytes)]
            rest = [{"fields": fragment.hex()} for fragment in part if isinstance(fragment, bytes)]
            rows.write_table(pa.Table.from_pylist([dict(record) for record in records], schema))
            others.write_table(pa.Table.from_pylist(rest, _QUARANTINE))
            count, rejected = count + len(part), rejected + len(rest)
    return Table(good, bad if rejected else None, count)


def _parts(records: Iterator[Found]) -> Iterator[list[Found]]:
    """Yield what is found in parts that memory holds."""
    part: list[Found] = []
    for record in records:
        part.append(record)
        if len(part) == _ROWS_AT_ONCE:
            yield part
            part = []
    yield part
