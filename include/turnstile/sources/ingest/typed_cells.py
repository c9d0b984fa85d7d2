"""Cells of Parquet and Arrow that the engine cannot read: each is mended, and costs nobody else.

Texts that are no UTF-8, and what is no JSON in a column of that type, are marked, so that their
record is set aside: an id among them is one that nobody can read, and not none. Times beyond a day,
and instants beyond the years 1 to 9999, are empty. All that within structs and lists too; of a file
that has one of them the engine reads no row.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from turnstile.duckdb_engine import connect
from turnstile.sources.ingest.lines import UNREADABLE

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_FIRST_S, _LAST_S, _DAY_S = -62_135_596_800, 253_402_300_799, 86_400  # since 1970
_LARGEST = 2**63 - 1
_MARK = re.compile(UNREADABLE.encode()).search
_FEW_BYTES = 4  # of a cell that names a word of a dictionary


def as_readable(file: Path, target: Path, wanted: tuple[str, ...]) -> Path:
    """Return a file of Parquet, or its copy in which cells that cannot be read are mended.

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
    """Write columns as Parquet, without dictionaries and with cells that can be read."""
    plain = pa.schema(_plain(pa.struct(schema)))
    with pq.ParquetWriter(target, plain) as written:
        for batch in batches:
            columns = [readable(cells.cast(_plain(cells.type))) for cells in batch.columns]
            written.write_batch(pa.RecordBatch.from_arrays(columns, schema=plain))


def readable(cells: pa.Array) -> pa.Array:
    """Return a part of a column, or one with marked or empty cells where some cannot be read.

    Examples:
        >>> times = pa.array([0, -1, None], pa.time64("us"))
        >>> readable(times).null_count, readable(times[:1]).null_count
        (2, 0)
    """
    for is_of_kind, mended in _MENDED.items():
        if is_of_kind(cells.type):
            return mended(cells)
    return cells


def _has_times(kind: pa.DataType) -> bool:
    within = (kind.field(n).type for n in range(kind.num_fields))
    return bool(pa.types.is_temporal(kind) or any(map(_has_times, within)))


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return a type without dictionaries, each of whose fields may be empty."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _plain(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_plain(kind.value_type), kind.list_size)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return (pa.list_ if pa.types.is_list(kind) else pa.large_list)(_plain(kind.value_type))
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _of_words(cells: pa.Array) -> pa.Array:
    """Mend words of a dictionary that cannot be read."""
    is_good = readable(cells.dictionary) is cells.dictionary
    return cells if is_good else readable(cells.cast(cells.type.value_type))


def _of_fields(cells: pa.Array) -> pa.Array:
    """Mend fields of structs that cannot be read."""
    fields = cells.flatten()
    mended = [readable(field) for field in fields]
    is_good = all(new is old for new, old in zip(mended, fields, strict=True))
    made, names = pa.StructArray.from_arrays, [field.name for field in cells.type]
    return cells if is_good else made(mended, names, mask=cells.is_null())


def _of_elements(cells: pa.Array) -> pa.Array:
    """Mend elements of lists that cannot be read; of a map with such a key, nothing."""
    kind, elements = cells.type, cells.values
    mended = readable(elements)
    if mended is elements or (
        pa.types.is_map(kind) and not mended.field(0).equals(elements.field(0))
    ):
        return cells
    if pa.types.is_fixed_size_list(kind):
        part = mended[cells.offset * kind.list_size : (cells.offset + len(cells)) * kind.list_size]
        return pa.FixedSizeListArray.from_arrays(part, type=kind, mask=cells.is_null())
    offsets = pc.add(cells.offsets, 0)  # of a part of an array they would be a part, too
    of_elements = (mended.field(0), mended.field(1)) if pa.types.is_map(kind) else (mended,)
    return type(cells).from_arrays(offsets, *of_elements, type=kind, mask=cells.is_null())


def _of_json(cells: pa.Array) -> pa.Array:
    """Mark what the engine does not take for JSON."""
    texts = readable(cells.storage)
    # a batch fits into memory: nothing of it is spilled outside of the private zone
    with tempfile.TemporaryDirectory() as scratch, connect(Path(scratch)) as engine:
        judged = engine.from_arrow(pa.table({"said": texts})).project("json_valid(said) AS is_json")
        is_json = judged.to_arrow_table()["is_json"].combine_chunks()
    if texts is cells.storage and pc.all(is_json).as_py() is not False:
        return cells
    kept = pc.if_else(is_json, texts, pa.scalar(f'"{UNREADABLE}"', texts.type))
    return pa.ExtensionArray.from_storage(cells.type, kept)


def _of_characters(cells: pa.Array) -> pa.Array:
    """Mark texts that are no UTF-8: an id among them is one that nobody can read, not none.

    A text that is marked as it came stands in a copy, too: no other record decides how it is read.
    """
    with suppress(pa.ArrowInvalid):
        cells.validate(full=True)
        is_marked = any(_MARK(buffer) for buffer in cells.buffers()[1:] if buffer)
        return cells.slice(0) if is_marked else cells
    texts: list[Any] = cells.cast(pa.large_binary()).to_pylist()
    for place, text in enumerate(texts):
        try:
            texts[place] = text and text.decode()
        except UnicodeDecodeError:
            texts[place] = UNREADABLE
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


def _is_text(kind: pa.DataType) -> bool:
    of_texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(is_such(kind) for is_such in of_texts)


def _is_list(kind: pa.DataType) -> bool:
    of_lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return pa.types.is_map(kind) or any(is_such(kind) for is_such in of_lists)


_MENDED: dict[Callable[[pa.DataType], bool], Callable[[pa.Array], pa.Array]] = {
    pa.types.is_dictionary: _of_words,
    pa.types.is_struct: _of_fields,
    _is_list: _of_elements,
    lambda kind: isinstance(kind, pa.JsonType): _of_json,
    _is_text: _of_characters,
    lambda kind: pa.types.is_time(kind) or pa.types.is_timestamp(kind): _within_limits,
}
