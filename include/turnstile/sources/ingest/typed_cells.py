"""Cells of Parquet and Arrow that the engine cannot read: each is empty, and costs nobody else.

They are texts that are no UTF-8, times beyond a day, and instants beyond the years 1 to 9999; of a
file that has one of them the engine reads no row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_FIRST_S, _LAST_S, _DAY_S = -62_135_596_800, 253_402_300_799, 86_400  # since 1970
_LARGEST = 2**63 - 1
_FEW_BYTES = 4  # of a cell that names a word of a dictionary


def as_readable(file: Path, target: Path, wanted: tuple[str, ...]) -> Path:
    """Return a file of Parquet, or its copy in which cells that cannot be read are empty.

    Args:
        file: of Parquet; one that is damaged is left to the engine.
        target: where a copy is written.
        wanted: columns that are read; of instants the engine looks at all, in its plan.
    """
    # instants of old writers as the engine reads them
    opened = partial(pq.ParquetFile, file, coerce_int96_timestamp_unit="us")
    with (
        suppress(pa.ArrowException, OSError),
        opened() as parquet,
        opened(read_dictionary=_of_few_words(parquet)) as looked_at,
    ):
        columns = [f.name for f in parquet.schema_arrow if f.name in wanted or _has_times(f.type)]
        batches = looked_at.iter_batches(columns=columns)
        if not all(readable(cells) is cells for batch in batches for cells in batch.columns):
            write_readable(parquet.schema_arrow, parquet.iter_batches(), target)
            return target
    return file


def _of_few_words(parquet: pq.ParquetFile) -> list[str]:
    """Return the columns of texts whose words are looked at once: their cells take few bytes."""
    sizes, metadata = Counter[str](), parquet.metadata
    for group, column in product(range(metadata.num_row_groups), range(metadata.num_columns)):
        chunk = metadata.row_group(group).column(column)
        sizes[chunk.path_in_schema] += chunk.total_uncompressed_size
    texts = (field.name for field in parquet.schema_arrow if pa.types.is_string(field.type))
    return [name for name in texts if sizes[name] < _FEW_BYTES * metadata.num_rows]


def write_readable(schema: pa.Schema, batches: Iterable[pa.RecordBatch], target: Path) -> None:
    """Write columns as Parquet, without dictionaries and the cells that cannot be read."""
    plain = pa.schema(_plain(pa.struct(schema)))
    with pq.ParquetWriter(target, plain) as written:
        for batch in batches:
            columns = [readable(cells.cast(_plain(cells.type))) for cells in batch.columns]
            written.write_batch(pa.RecordBatch.from_arrays(columns, schema=plain))


def readable(cells: pa.Array) -> pa.Array:
    """Return a part of a column, or one with empty cells where some cannot be read.

    Examples:
        >>> times = pa.array([0, -1, None], pa.time64("us"))
        >>> readable(times).null_count, readable(times[:1]).null_count
        (2, 0)
    """
    kind = cells.type
    if pa.types.is_dictionary(kind):
        is_good = readable(cells.dictionary) is cells.dictionary
        return cells if is_good else readable(cells.cast(kind.value_type))
    if pa.types.is_struct(kind):
        fields = cells.flatten()
        mended = [readable(field) for field in fields]
        is_good = all(new is old for new, old in zip(mended, fields, strict=True))
        made, names = pa.StructArray.from_arrays, [field.name for field in kind]
        return cells if is_good else made(mended, names, mask=cells.is_null())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return _of_characters(cells)
    if pa.types.is_time(kind) or pa.types.is_timestamp(kind):
        return _within_limits(cells)
    return cells


def _has_times(kind: pa.DataType) -> bool:
    return bool(pa.types.is_temporal(kind) or pa.types.is_struct(kind))


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return a type without dictionaries, each of whose fields may be empty."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _plain(field.type)) for field in kind])
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _of_characters(cells: pa.Array) -> pa.Array:
    """Leave out texts that are no UTF-8."""
    with suppress(pa.ArrowInvalid):
        cells.validate(full=True)
        return cells
    texts: list[Any] = cells.cast(pa.large_binary()).to_pylist()
    for place, text in enumerate(texts):
        try:
            texts[place] = text and text.decode()
        except UnicodeDecodeError:
            texts[place] = None
    return pa.array(texts, cells.type)


def _within_limits(cells: pa.Array) -> pa.Array:
    """Leave out times beyond a day, and instants beyond the years."""
    per = _PER_SECOND[cells.type.unit]
    least, most = max(_FIRST_S * per, -_LARGEST), min(_LAST_S * per, _LARGEST)
    if pa.types.is_time(cells.type):
        least, most = 0, _DAY_S * per  # the engine reads 24:00, as in a text
    numbers = cells.view(pa.int32() if pa.types.is_time32(cells.type) else pa.int64())
    is_read = pc.and_(pc.greater_equal(numbers, least), pc.less_equal(numbers, most))
    if pc.all(is_read).as_py() is not False:
        return cells
    return pc.if_else(is_read, cells, pa.scalar(None, cells.type))
