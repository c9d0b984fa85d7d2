"""The embedded engine that reads the landing zone: DuckDB with bounded memory, and SQL quoting."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MEMORY_LIMIT = "2GB"


def connect(folder: Path) -> DuckDBPyConnection:
    """Open an engine whose spill files stay in a folder (of the private zone).

    The session's time zone is UTC, so that instants of Parquet files are written with an offset
    that is read back below; nothing else depends on it.
    """
    import duckdb

    spill = folder / "spill"
    spill.mkdir(parents=True, exist_ok=True)
    connection = duckdb.connect(
        ":memory:",
        config={
            "memory_limit": MEMORY_LIMIT,
            "temp_directory": str(spill),
            "preserve_insertion_order": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        },
    )
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def text(value: str | Path) -> str:
    """Quote a value as a SQL string.

    Examples:
        >>> text("St Mary's")
        "'St Mary''s'"
    """
    return "'" + str(value).replace("'", "''") + "'"


def name(identifier: str) -> str:
    """Quote a column or table name.

    Examples:
        >>> name("location/coordinates/0")
        '"location/coordinates/0"'
    """
    return '"' + identifier.replace('"', '""') + '"'
