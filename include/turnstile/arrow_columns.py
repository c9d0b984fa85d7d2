"""Arrow columns of numbers, texts and days, and back; without pandas.

`pa.array` and `to_numpy` would do, and import pandas to know its types: a quarter of a second of
every step that has no other use for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def column(values: NDArray[Any]) -> pa.Array:
    """Return a column of numbers; what is not a number is absent.

    Args:
        values: integers, floats or booleans, one dimension.

    Examples:
        >>> column(np.array([1.5, np.nan])).to_pylist()
        [1.5, None]
        >>> column(np.array([True, False, True])).to_pylist()
        [True, False, True]
    """
    is_seen = ~np.isnan(values) if values.dtype.kind == "f" else np.ones(values.shape, np.bool_)
    content = _bits(values) if values.dtype == np.bool_ else _buffer(values)
    return _array(pa.from_numpy_dtype(values.dtype), is_seen, content)


def dates(days: Sequence[date | None]) -> pa.Array:
    """Return a column of days.

    Examples:
        >>> dates([date(2016, 7, 25), None]).to_pylist()
        [datetime.date(2016, 7, 25), None]
    """
    values = np.array(days, dtype="datetime64[D]")
    since_1970 = values.astype(np.int64).astype(np.int32)
    return _array(pa.date32(), ~np.isnat(values), _buffer(since_1970))


def whole(values: Sequence[int | None]) -> pa.Array:
    """Return a column of whole numbers of 32 bits; None is absent.

    Examples:
        >>> whole([7, None]).to_pylist()
        [7, None]
    """
    is_seen = np.array([number is not None for number in values], dtype=np.bool_)
    numbers = np.array([0 if number is None else number for number in values], dtype=np.int32)
    return _array(pa.int32(), is_seen, _buffer(numbers))


def texts(values: Sequence[str]) -> pa.Array:
    """Return a column of texts.

    Examples:
        >>> texts(["Zürich", ""]).to_pylist()
        ['Zürich', '']
    """
    encoded = [text.encode() for text in values]
    ends = np.fromiter(accumulate(map(len, encoded), initial=0), dtype=np.int32)
    buffers = [None, _buffer(ends), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(encoded), buffers)


def vector(numbers: pa.ChunkedArray) -> NDArray[Any]:
    """Return a column as a vector, perhaps one that cannot be written to.

    Whole numbers, none absent, need no pandas; anything else a package of others may hold.
    """
    if numbers.null_count or not pa.types.is_integer(numbers.type):
        return np.asarray(numbers.to_numpy())
    return np.asarray(np.from_dlpack(numbers.combine_chunks()))


def _array(kind: pa.DataType, is_seen: NDArray[np.bool_], content: pa.Buffer) -> pa.Array:
    """Return values of which some may be absent."""
    absent = is_seen.size - int(is_seen.sum())
    buffers = [_bits(is_seen) if absent else None, content]
    return pa.Array.from_buffers(kind, is_seen.size, buffers, absent)


def _buffer(values: NDArray[Any]) -> pa.Buffer:
    """Return numbers as Arrow stores them."""
    return pa.py_buffer(np.ascontiguousarray(values))


def _bits(values: NDArray[np.bool_]) -> pa.Buffer:
    """Return booleans as Arrow stores them, eight in a byte."""
    return pa.py_buffer(np.packbits(values, bitorder="little"))
