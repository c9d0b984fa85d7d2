"""The engine of a count: one connection, its faults without its messages, columns as arrays.

DuckDB's own messages quote values, so none of them leaves this room.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from turnstile.duckdb_engine import connect
from turnstile.durable_files import refuse_if_full
from turnstile.errors import IntegrityError

Connection = duckdb.DuckDBPyConnection


@contextmanager
def engine(work: Path, memory: str | None = None) -> Iterator[Connection]:
    """Open an engine that spills to a folder of the private zone.

    Args:
        work: folder for what does not fit into memory; made if need be.
        memory: as `duckdb_engine.connect` takes it.

    Raises:
        IntegrityError: the engine could not read or count the rows; its message is not shown.
        InputError: a disk is full.
    """
    try:
        with connect(work, memory=memory) as connection:
            yield connection
    except duckdb.Error as error:
        refuse_if_full(error)
        raise IntegrityError(
            f"counting stopped with {type(error).__name__}; the canonical rows are not as ingest "
            "writes them, or memory ran out: ingest the week again, or give it more memory "
            "(TURNSTILE_MEMORY_LIMIT)"
        ) from None


def day_files(rows_folder: Path, day: date) -> list[str]:
    """Return the Parquet files of a service day, sorted; none for a missing day."""
    folder = rows_folder / f"service_date={day.isoformat()}"
    return sorted(str(path) for path in folder.glob("*.parquet"))


def columns_of(
    connection: Connection, query: str, parameters: Sequence[object] = ()
) -> dict[str, NDArray[Any]]:
    """Run a query and return its columns.

    Args:
        connection: engine.
        query: SQL whose result holds no NULL.
        parameters: for its question marks.
    """
    columns = connection.execute(query, list(parameters)).fetchnumpy()
    return {name: np.ma.getdata(column) for name, column in columns.items()}
