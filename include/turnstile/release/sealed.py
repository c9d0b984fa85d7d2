"""The sealed artefact of a release: every noisy integer that was drawn, as one Parquet file.

One row a cell, in the order of the plan's draws and of the public layout. Its SHA-256 is what the
ledger seals; everything published is made from these bytes (PRIVACY 6).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from io import BytesIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from turnstile.arrow_columns import column, dates, texts, vector
from turnstile.errors import IntegrityError
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.units import Subject

_GAPS = b"turnstile.gaps"
_CARRIED = b"turnstile.carried"
_SCHEMA = pa.schema(
    [
        ("table", pa.dictionary(pa.int32(), pa.string())),
        ("statistic", pa.dictionary(pa.int32(), pa.string())),
        ("service_date", pa.date32()),
        ("cell", pa.int32()),
        ("value", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True)
class NoisyTable:
    """The noisy vector of one draw.

    Args:
        table: name of the table.
        statistic: which of its vectors.
        service_date: day that was drawn; None where the draw covers the week.
        values: shape (cells,), int64, in the order of the public layout.
    """

    table: str
    statistic: str
    service_date: date | None
    values: NDArray[np.int64]


def day_of_draw(event: DrawEvent) -> date | None:
    """Return the service day of a draw of trips; None of vehicles, whose days are added up.

    A period of vehicles may have one day of service: its draw is of the period all the same.
    """
    of_buses = any(unit.subject is Subject.BUS for unit, _ in event.sensitivities)
    return None if of_buses else event.blocks[0].service_date


@dataclass(frozen=True, slots=True)
class Artefact:
    """Everything that was drawn for one release key.

    Args:
        tables: one entry a draw, in the plan's order.
        gaps: service days without input, where the programme publishes with a stated gap; their
            cells hold noise alone.
        carried: keys of the earlier releases whose exact counts the draws of tables that carry
            their year along hold too, in the order of their weeks.
    """

    tables: tuple[NoisyTable, ...]
    gaps: tuple[date, ...] = ()
    carried: tuple[str, ...] = ()


def encode(artefact: Artefact) -> bytes:
    """Return the artefact's bytes."""
    sink = BytesIO()
    metadata = {_GAPS: ",".join(day.isoformat() for day in artefact.gaps).encode()}
    if artefact.carried:
        metadata[_CARRIED] = ",".join(artefact.carried).encode()
    schema = _SCHEMA.with_metadata(metadata)
    with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
        for noisy in artefact.tables:
            writer.write_table(_rows(noisy, schema))
    return sink.getvalue()


def decode(content: bytes) -> Artefact:
    """Read the artefact back.

    Raises:
        IntegrityError: the bytes are no sealed artefact.
    """
    try:
        file = pq.ParquetFile(BytesIO(content))
        parts = [file.read_row_group(index) for index in range(file.num_row_groups)]
        metadata = file.schema_arrow.metadata
        gaps, carried = metadata[_GAPS].decode(), metadata.get(_CARRIED, b"").decode()
    except (pa.ArrowInvalid, KeyError, TypeError):
        raise IntegrityError("the sealed artefact is not what a draw writes; restore it") from None
    days = tuple(date.fromisoformat(day) for day in gaps.split(",") if day)
    keys = tuple(key for key in carried.split(",") if key)
    return Artefact(tuple(_noisy(part) for part in parts), days, keys)


def _rows(noisy: NoisyTable, schema: pa.Schema) -> pa.Table:
    cells = len(noisy.values)
    first = column(np.zeros(cells, dtype=np.int32))
    columns = [
        texts([noisy.table]).take(first).dictionary_encode(),
        texts([noisy.statistic]).take(first).dictionary_encode(),
        dates([noisy.service_date]).take(first),
        column(np.arange(cells, dtype=np.int32)),
        column(noisy.values),
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _noisy(part: pa.Table) -> NoisyTable:
    """Return one row part as one draw.

    Raises:
        IntegrityError: the part mixes draws or its cells are not in order.
    """
    head = part.slice(0, 1).to_pylist()[0]
    cells = vector(part.column("cell"))
    if not np.array_equal(cells, np.arange(len(cells))):
        raise IntegrityError("the sealed artefact's cells are out of order; restore it")
    values = vector(part.column("value")).astype(np.int64, copy=True)
    return NoisyTable(head["table"], head["statistic"], head["service_date"], values)
