"""Columns made without pandas are those that Arrow makes itself, and read back as they were."""

from __future__ import annotations

import subprocess
import sys
from datetime import date

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from turnstile.arrow_columns import column, dates, texts, vector

USE = """
import sys
from datetime import date
import numpy as np
import pyarrow as pa
from turnstile.arrow_columns import column, dates, texts, vector
table = pa.table({"a": column(np.arange(3)), "b": texts(["x", "y", "z"]), "c": dates([None] * 3)})
assert vector(table["a"]).tolist() == [0, 1, 2]
if len(sys.argv) > 1:
    pa.array([1])
print("pandas" in sys.modules)
"""


@pytest.mark.parametrize(
    "values",
    [
        np.array([3, -1, 2], dtype=np.int64),
        np.arange(7, dtype=np.int32)[::2],  # not in one piece
        np.array([1.5, np.nan, -0.0]),
        np.array([True, False, True] * 5),
        np.zeros(0),
        np.zeros(0, dtype=np.bool_),
    ],
)
def test_numbers_are_as_arrow_makes_them(values: NDArray[np.float64]) -> None:
    arrow_column, made = column(values), pa.array(values, from_pandas=True)
    assert arrow_column.equals(made)
    assert (arrow_column.type, arrow_column.null_count) == (made.type, made.null_count)
    arrow_column.validate(full=True)
    assert not column(np.array([1])).equals(pa.array([2]))  # the comparison can fail


def test_texts_and_days_are_as_arrow_makes_them() -> None:
    labels, days = ["", "Zürich", "07:45"], [date(1969, 12, 31), None, date(2016, 7, 25)]
    assert texts(labels).equals(pa.array(labels, pa.string()))
    assert texts([]).equals(pa.array([], pa.string()))
    assert dates(days).equals(pa.array(days, pa.date32()))
    assert dates([]).equals(pa.array([], pa.date32()))


def test_numbers_are_read_back_from_all_parts() -> None:
    parts = pa.chunked_array([pa.array([1, 2]), pa.array([3, 4]).slice(1)])
    assert vector(parts).tolist() == [1, 2, 4]
    assert vector(pa.chunked_array([], pa.int64())).tolist() == []
    assert np.isnan(vector(pa.chunked_array([pa.array([1, None])]))).tolist() == [False, True]
    assert vector(pa.chunked_array([pa.array(["x"])])).tolist() == ["x"]


@pytest.mark.parametrize(("more", "loads"), [([], "False"), (["by Arrow"], "True")])
def test_no_column_loads_pandas(more: list[str], loads: str) -> None:
    done = subprocess.run(  # noqa: S603 - our own interpreter and script
        [sys.executable, "-c", USE, *more], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == loads
