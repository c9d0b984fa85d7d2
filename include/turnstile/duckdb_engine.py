"""The embedded engine, opened in one way only: DuckDB with bounded memory that loads no code.

Nothing is fetched or loaded from outside (extensions, secrets), no Python variable stands in for a
table, and no statement can change any of this later. SQL quoting lies here too.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MEMORY_LIMIT = "2GB"
"""Where a deployment says nothing; what does not fit spills to the work folder."""


def connect(
    work: Path, *, threads: int | None = None, keeps_order: bool = False, memory: str | None = None
) -> DuckDBPyConnection:
    """Open an engine whose spill files stay in a folder (of the private zone).

    The session's time zone is UTC, so that instants of Parquet files are written with an offset
    that is read back; nothing else depends on it.

    Args:
        work: folder for what does not fit into memory; made if need be.
        threads: at most so many; None for one a core.
        keeps_order: True if rows come out in the order in which they were read.
        memory: the most that it takes, `800MB`; None for `MEMORY_LIMIT`.
    """
    import duckdb

    spill = work / "spill"
    spill.mkdir(parents=True, exist_ok=True)
    config: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": memory or MEMORY_LIMIT,
        "temp_directory": str(spill),
        "preserve_insertion_order": keeps_order,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
        "extension_directory": str(spill / "no_extensions"),  # not those of the user's home
        "allow_persistent_secrets": False,
        "python_enable_replacements": False,
    }
    if threads is not None:
        config["threads"] = threads
    connection = duckdb.connect(":memory:", config=config)
    # a progress bar would stand in logs
    connection.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
    connection.execute("SET lock_configuration = true")
    return connection


def number_of(connection: DuckDBPyConnection, statement: str) -> int:
    """Run a statement that answers with one number; 0 if it answers with nothing."""
    row = connection.execute(statement).fetchone()
    return int(row[0]) if row else 0


def text(value: str | Path) -> str:
    """Quote a value as a SQL string.

    Examples:
        >>> text("St Mary's")
        "'St Mary''s'"
    """
    return "'" + str(value).replace("'", "''") + "'"


def one_file(path: Path) -> str:
    """Quote a path as that of one file; the engine takes what is not escaped for a pattern.

    Examples:
        >>> one_file(Path("trips[1].csv"))
        "'trips[[]1].csv'"
    """
    return text(re.sub(r"[*?\[]", r"[\g<0>]", str(path)))


def name(identifier: str) -> str:
    """Quote a column or table name.

    Examples:
        >>> name("location/coordinates/0")
        '"location/coordinates/0"'
    """
    return '"' + identifier.replace('"', '""') + '"'
