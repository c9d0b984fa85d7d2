"""Opening DuckDB costs 17 ms of CPU, a database in an open one next to none: engines are lent.

Whoever connects as the product does gets a connection and an empty database of its own, in an
engine of the same settings. Its temporary tables go with the connection, its others with the
database. They have one thread, and the lock of the settings is not turned: `own_engines` gives a
test the real thing.
"""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import count
from typing import Any, Self

import duckdb

OPENED = duckdb.connect
_LOCK = "SET lock_configuration = true"
_PLACES = ("temp_directory", "extension_directory")  # nothing is kept in them


class Lent:
    """A connection with a database of its own."""

    def __init__(self, engine: duckdb.DuckDBPyConnection, name: str) -> None:
        self._own, self._name = engine.cursor(), name
        self._own.execute(f"ATTACH ':memory:' AS {name}; USE {name}")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def execute(self, query: str, *parameters: Any) -> Any:
        """Run a statement; settings stay as whoever connects next needs them."""
        return self if query == _LOCK else self._own.execute(query, *parameters)

    def close(self) -> None:
        """Drop the database."""
        with suppress(duckdb.Error):
            self._own.execute(f"USE memory; DETACH {self._name}")
        self._own.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class LentEngines:
    """The engines of a process, by their settings."""

    def __init__(self) -> None:
        self._open: dict[tuple[tuple[str, object], ...], duckdb.DuckDBPyConnection] = {}
        self._names = count()

    def connect(
        self, database: str = ":memory:", *, config: dict[str, Any] | None = None, **more: Any
    ) -> Any:
        """Connect as DuckDB does; lend what the product's `connect` asks for."""
        if config is None or not set(_PLACES) <= set(config):
            return OPENED(database, config=config or {}, **more)
        config = config | {"threads": 1}  # a second one waits for the few rows of a test
        settings = sorted((name, value) for name, value in config.items() if name not in _PLACES)
        key = (("process", os.getpid()), *settings)  # threads do not come along into a fork
        name = f"own_{next(self._names)}"
        with suppress(KeyError, duckdb.Error):  # a fatal error ends an engine
            return Lent(self._open[key], name)
        self._open[key] = OPENED(database, config=config)
        return Lent(self._open[key], name)
