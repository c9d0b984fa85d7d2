"""The sealed artefact of a release: every noisy integer that was drawn, as one Parquet file.

One row a cell, in the order of the plan's draws and of the public layout. Its SHA-256 is what the
ledger seals; everything published is made from these bytes (PRIVACY 6).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from io import BytesIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from turnstile.errors import IntegrityError

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


def encode(tables: Sequence[NoisyTable]) -> bytes:
    """Return the artefact's bytes."""
    sink = BytesIO()
    with pq.ParquetWriter(sink, _SCHEMA, compression="zstd") as writer:
        for noisy in tables:
            writer.write_table(_rows(noisy))
    return sink.getvalue()


def decode(content: bytes) -> tuple[NoisyTable, ...]:
    """Read the artefact back, one table a draw.

    Raises:
        IntegrityError: the bytes are no sealed artefact.
    """
    try:
        file = pq.ParquetFile(BytesIO(content))
        groups = [file.read_row_group(place) for place in range(file.num_row_groups)]
    except pa.ArrowInvalid:
        raise IntegrityError("the sealed artefact is not a Parquet file; restore it") from None
    return tuple(_noisy(group) for group in groups)


def _rows(noisy: NoisyTable) -> pa.Table:
    """Return one draw as rows."""
    cells = len(noisy.values)
    columns = [
        pa.array([noisy.table] * cells, pa.string()).dictionary_encode(),
        pa.array([noisy.statistic] * cells, pa.string()).dictionary_encode(),
        pa.array([noisy.service_date] * cells, pa.date32()),
        pa.array(np.arange(cells, dtype=np.int32)),
        pa.array(noisy.values),
    ]
    return pa.Table.from_arrays(columns, schema=_SCHEMA)


def _noisy(group: pa.Table) -> NoisyTable:
    """Return one row group as one draw.

    Raises:
        IntegrityError: the group mixes draws or its cells are not in order.
    """
    head = group.slice(0, 1).to_pylist()[0]
    cells = group.column("cell").to_numpy()
    if not np.array_equal(cells, np.arange(len(cells))):
        raise IntegrityError("the sealed artefact's cells are out of order; restore it")
    values = group.column("value").to_numpy().astype(np.int64, copy=True)
    return NoisyTable(head["table"], head["statistic"], head["service_date"], values)
