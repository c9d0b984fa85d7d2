"""Rows that are equal, each once: they are looked for only where the hashes of their keys repeat.

Hashes that repeat are found by sorting them, which costs a fifth of the engine's groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from turnstile.arrow_columns import column

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from numpy.typing import NDArray

_SORTED_AT_ONCE = 1 << 23  # numbers of eight bytes


def each_once(
    connection: DuckDBPyConnection,
    columns: str,
    selection: str,
    rows: int,
    *,
    at_once: int = _SORTED_AT_ONCE,
) -> str:
    """Return the SQL of rows, those that are equal in all columns once.

    Args:
        connection: engine; it gets a relation `repeated`.
        columns: SQL of the columns.
        selection: SQL of the rows, `FROM ... WHERE ...`; equal ones have the same `key`, a hash.
        rows: about how many they are.
        at_once: how many hashes are in memory at most, about.
    """
    parts = rows // at_once + 1
    of_part = [f" AND key % {parts} = {n}" for n in range(parts)] if parts > 1 else [""]
    repeated = np.concatenate([_repeated(connection, selection + part) for part in of_part])
    if not len(repeated):
        return f"SELECT {columns} {selection}"
    connection.register("repeated", pa.table({"key": column(repeated)}))
    return (
        f"SELECT {columns} {selection} AND key NOT IN (FROM repeated) "
        f"UNION ALL SELECT DISTINCT {columns} {selection} AND key IN (FROM repeated)"
    )


def _repeated(connection: DuckDBPyConnection, selection: str) -> NDArray[np.uint64]:
    """Return the keys that several rows have, each once."""
    keys = connection.execute(f"SELECT key {selection}").fetchnumpy()["key"]
    sorted_keys = np.sort(keys)
    return np.unique(sorted_keys[1:][sorted_keys[1:] == sorted_keys[:-1]])
