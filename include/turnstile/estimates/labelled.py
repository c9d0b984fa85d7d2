"""Flat noisy vectors as labelled tables, and tables as CSV and Parquet files.

Rows stand in the order of the public layout: service day, mode, then the dimensions row-major. The
order says nothing about the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from turnstile.arrow_columns import column, dates, texts
from turnstile.programme.domain.public_domain import PublicDomain, layout
from turnstile.programme.spec import TableSpec

Column = NDArray[np.int64] | NDArray[np.float64] | NDArray[np.bool_]


def labelled(
    domain: PublicDomain,
    table: TableSpec,
    days: Sequence[date | None],
    columns: Mapping[str, Sequence[Column]],
) -> pa.Table:
    """Return one row a cell: where and when, then the columns.

    Args:
        domain: public cells.
        table: whose dimensions label the rows.
        days: one entry a draw; None where a draw covers the week, and no day is written.
        columns: name to one flat vector a draw, each shape (cells of the table,).
    """
    mode_of_cell, labels = _cell_labels(domain, table)
    cells = len(mode_of_cell)
    written: dict[str, pa.Array | pa.ChunkedArray] = {}
    if any(day is not None for day in days):
        day_of_row = np.repeat(np.arange(len(days), dtype=np.int32), cells)
        written["service_date"] = dates(days).take(column(day_of_row))
    if len(domain.modes) > 1:
        modes = pa.DictionaryArray.from_arrays(column(mode_of_cell), texts(domain.modes))
        written["mode"] = _repeated(modes, len(days))
    for name, codes in labels.items():
        written[name] = _repeated(codes, len(days))
    for name, vectors in columns.items():
        written[name] = column(np.concatenate(list(vectors)))
    return pa.table(written)


def with_gap_days(table: pa.Table, gaps: Sequence[date]) -> pa.Table:
    """Return a table that says of each row, behind its labels, how many days have no input.

    Args:
        table: published rows, of a service day each or of all days of the period.
        gaps: service days without input.
    """
    if "service_date" in table.column_names:
        counts = pc.is_in(table["service_date"], value_set=dates(gaps)).cast(pa.int64())
    else:
        counts = column(np.full(len(table), len(gaps)))
    labels = sum(_is_label(field.type) for field in table.schema)
    return table.add_column(labels, "gap_days", counts)


def _is_label(kind: pa.DataType) -> bool:
    """Whether a column tells where or when; those come first."""
    return bool(pa.types.is_date(kind) or pa.types.is_dictionary(kind) or pa.types.is_string(kind))


def csv_bytes(table: pa.Table) -> bytes:
    """Return a table as CSV with a header, UTF-8; texts are quoted where they must be."""
    sink = BytesIO()
    plain = pa.table(
        {
            name: array.cast(pa.string()) if pa.types.is_dictionary(array.type) else array
            for name, array in zip(table.column_names, table.columns, strict=True)
        }
    )
    pcsv.write_csv(plain, sink, pcsv.WriteOptions(quoting_style="needed"))
    return sink.getvalue()


def parquet_bytes(table: pa.Table) -> bytes:
    """Return a table as Parquet."""
    sink = BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def read_parquet(path: Path) -> pa.Table:
    """Read a table that stands in one file; `pq.read_table` would load datasets and pandas."""
    return pq.ParquetFile(path).read()


def _repeated(array: pa.Array, times: int) -> pa.ChunkedArray:
    """Return an array several times over, without copying it."""
    return pa.chunked_array([array] * times)


def _cell_labels(
    domain: PublicDomain, table: TableSpec
) -> tuple[NDArray[np.int32], dict[str, pa.Array]]:
    """Return the mode of each cell and, for each dimension, its label."""
    mode_codes: list[NDArray[np.int32]] = []
    label_parts: dict[str, list[pa.Array]] = {name: [] for name in table.by}
    for index, segment in enumerate(layout(domain, table)):
        mode_codes.append(np.full(segment.cells, index, dtype=np.int32))
        grids = np.indices(segment.shape, dtype=np.int32).reshape(len(table.by), segment.cells)
        for name, codes in zip(table.by, grids, strict=True):
            names = domain.dimension(segment.mode, name).labels
            label_parts[name].append(texts(names).take(column(codes)))
    labels = {
        name: pa.concat_arrays(parts).dictionary_encode() for name, parts in label_parts.items()
    }
    return np.concatenate(mode_codes), labels
