"""Connections that ask SQLite themselves what SQLAlchemy has compiled: a seventh of a world's time.

The house makes its statements, SQLAlchemy compiles them and says what errors mean, and SQLite
answers; between them a statement costs what SQLite takes for it. Whatever is not a plain statement
with one set of values (many rows at once, rows one by one, migrations) goes the long way.
"""

from __future__ import annotations

import contextlib
import sqlite3
import sys
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, cast

from sqlalchemy import Executable, Insert, Select, TextClause, Update, event
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import MultipleResultsFound, NoResultFound

from turnstile.ledger.database import store

_DAMAGED = (sqlite3.Error, UnicodeDecodeError)
_PLAIN = (Select, Insert, Update, TextClause)


class LightResult:
    """Rows that were read at once.

    Args:
        rows: all of them.
        rowcount: how many a statement changed.
    """

    __slots__ = ("_rows", "rowcount")

    def __init__(self, rows: list[Any], rowcount: int) -> None:
        self._rows, self.rowcount = rows, rowcount

    def __iter__(self) -> Iterator[Any]:
        return iter(self._rows)

    def all(self) -> list[Any]:
        return self._rows

    def one_or_none(self) -> Any:
        if len(self._rows) > 1:
            raise MultipleResultsFound
        return self._rows[0] if self._rows else None

    def one(self) -> Any:
        if not self._rows:
            raise NoResultFound
        return self.one_or_none()

    def scalars(self) -> Iterator[Any]:
        return (row[0] for row in self._rows)

    def scalar(self) -> Any:
        return self._rows[0][0] if self._rows else None

    def scalar_one(self) -> Any:
        return self.one()[0]

    def scalar_one_or_none(self) -> Any:
        row = self.one_or_none()
        return row and row[0]


class Compiled(NamedTuple):
    """A statement for SQLite.

    Args:
        text: its SQL.
        names: of values, in the order of its marks.
        given: values that stand in the statement itself.
        is_change: whether it is more than a SELECT.
        row: makes a row of a tuple.
    """

    text: str
    names: tuple[str, ...]
    given: Mapping[str, Any]
    is_change: bool
    row: Callable[[Any], Any] | None


class LightReading:
    """A reading transaction: what SQLAlchemy's tells of it, and no more.

    Args:
        connection: that reads.
    """

    __slots__ = ("_connection",)

    def __init__(self, connection: LightConnection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        connection = self._connection
        for told in connection.dispatch.begin:
            told(connection)
        connection.is_reading = True

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        connection = self._connection
        connection.is_reading, sqlite = False, connection.connection.dbapi_connection
        for told in connection.dispatch.rollback if kind else connection.dispatch.commit:
            told(connection)
        try:
            (sqlite.rollback if kind else sqlite.commit)()
        except sqlite3.Error as error:
            connection._handle_dbapi_exception(error, None, None, None, None)


class LightConnection(Connection):
    """A connection that executes plain statements by itself, and is kept for whoever asks next."""

    kept: list[LightConnection] | None = None
    is_reading = False

    def begin(self) -> Any:
        """Begin a transaction, of one that reads without what SQLAlchemy keeps of it."""
        if self._execution_options.get("writes", False) or self._transaction is not None:
            return super().begin()
        return LightReading(self)

    def close(self) -> None:
        """Wait for the next, unless anything is left of this use."""
        if self.closed or self.invalidated:
            super().close()
            return
        sqlite = self.connection.dbapi_connection
        if self.kept is None or self._transaction is not None:
            super().close()
        else:
            self._execution_options = self.engine._execution_options
            self.kept.append(self)
        with contextlib.suppress(sqlite3.ProgrammingError):  # it was closed for good
            if sqlite.in_transaction:  # what a process that died in its commit leaves
                sqlite.rollback()

    def execute(self, statement: Any, parameters: Any = None, **options: Any) -> Any:  # type: ignore[override]
        is_many = isinstance(parameters, list) and isinstance(statement, _PLAIN)
        made = (_many if is_many else _made)(self, statement, parameters or {})
        if options or made is None:
            return super().execute(statement, parameters, **options)
        compiled, values = made
        if compiled.is_change:
            self._tell(compiled.text)
        try:
            sqlite = self.connection.dbapi_connection
            execute = sqlite.executemany if is_many else sqlite.execute
            cursor = execute(compiled.text, values)
            rows = cursor.fetchall()
        except _DAMAGED as error:
            self._handle_dbapi_exception(error, compiled.text, values, None, None)
        if rows:
            row_of = compiled.row or _named(tuple(column[0] for column in cursor.description))
            rows = [row_of(row) for row in rows]
        return LightResult(rows, cursor.rowcount)

    def _tell(self, text: str) -> None:
        """Let faults happen before a change."""
        for told in self.dispatch.before_cursor_execute:
            told(self, None, text, (), None, False)

    def begin_to_read(self) -> None:
        self._tell("BEGIN")
        self.connection.dbapi_connection.execute("BEGIN")


_OF_MODULES: dict[int, Any] = {}
_READY: dict[tuple[Any, ...], Compiled] = {}
_COMPILED: dict[int, tuple[Any, Compiled | None]] = {}


def use_light_connections(engine: Engine, is_of_its_file: Callable[[Any], bool]) -> None:
    """Let an engine of a file hand out such connections.

    Args:
        engine: that makes them.
        is_of_its_file: says of what a connection knows of its file that it stands there still.
    """
    engine._connection_cls = LightConnection
    kept: list[LightConnection] = []
    connect, dispose = engine.connect, engine.dispose

    def connect_again() -> Connection:
        while kept:
            connection = kept.pop()
            if is_of_its_file(connection.connection.info):
                return connection
            connection.kept = None
            connection.close()
        made: Any = connect()
        made.kept = kept
        return cast("Connection", made)

    def dispose_all() -> None:
        while kept:
            connection = kept.pop()
            connection.kept = None
            connection.close()
        dispose()

    engine.connect, engine.dispose = connect_again, dispose_all  # type: ignore[method-assign]
    event.listen(engine, "begin", _begin)
    for name, module in list(sys.modules.items()):
        if name.startswith("turnstile"):
            found = (value for value in vars(module).values() if isinstance(value, Executable))
            _OF_MODULES.update((id(statement), statement) for statement in found)


def _begin(connection: Connection) -> None:
    if connection.get_execution_options().get("writes", False):
        store._begin_sqlite(connection)
    elif not connection.is_reading:  # type: ignore[attr-defined]
        connection.begin_to_read()  # type: ignore[attr-defined]


def _made(
    connection: Connection, statement: Any, values: Mapping[str, Any]
) -> tuple[Compiled, tuple[Any, ...]] | None:
    """Return SQL and the values of its marks; None: go the long way."""
    if not isinstance(statement, _PLAIN) or statement._execution_options.keys() - {"yield_per"}:
        return None
    if id(statement) in _OF_MODULES:
        return _made_of_module(connection, statement, values)
    compiled, extracted, collected, _ = statement._compile_w_cache(
        dialect=connection.dialect,
        compiled_cache=connection.engine._compiled_cache,
        column_keys=sorted(values),
    )
    known = _COMPILED.get(id(compiled))
    if known is None:
        known = compiled, _read(compiled, compiled.string, compiled.positiontup)
        _COMPILED[id(compiled)] = known
    if known[1] is None:
        return None
    named = compiled.construct_params(
        values, extracted_parameters=extracted, escape_names=False, _collected_params=collected
    )
    processors = compiled._bind_processors
    for name in processors.keys() & named.keys():
        named[name] = processors[name](named[name])
    if compiled.post_compile_params or compiled.literal_execute_params:
        state = compiled._process_parameters_for_postcompile(named)
        values_of = state.parameters
        return known[1]._replace(text=state.statement), tuple(
            [values_of[name] for name in state.positiontup or ()]
        )
    return known[1], tuple([named[name] for name in known[1].names])


def _many(
    connection: Connection, statement: Any, values: list[Mapping[str, Any]]
) -> tuple[Compiled, list[tuple[Any, ...]]] | None:
    """Do so of a change that is made many times."""
    made = [_made(connection, statement, each) for each in values]
    ready = [each for each in made if each is not None]
    if not ready or len(ready) < len(made) or len({compiled.text for compiled, _ in ready}) > 1:
        return None
    return ready[0][0], [row for _, row in ready]


def _made_of_module(
    connection: Connection, statement: Any, values: Mapping[str, Any]
) -> tuple[Compiled, tuple[Any, ...]] | None:
    """Do so of a statement that stands for ever: its values have the names that it gave them."""
    lists = [(name, value) for name, value in values.items() if isinstance(value, (list, tuple))]
    asked = (id(statement), *values, *[len(value) for _, value in lists])
    ready = _READY.get(asked)
    if ready is None:
        compiled = statement.compile(dialect=connection.dialect, column_keys=sorted(values) or None)
        if compiled._bind_processors:
            return None
        state = compiled.construct_expanded_state(dict(values), escape_names=False)
        ready = _READY[asked] = _read(compiled, state.statement, state.positiontup)
        given = {name: value for name, value in state.parameters.items() if name not in values}
        ready = _READY[asked] = ready._replace(given=given)
    named = {**ready.given, **values}
    for name, value in lists:
        named.update((f"{name}_{at}", one) for at, one in enumerate(value, 1))
    return ready, tuple([named[name] for name in ready.names])


def _read(compiled: Any, text: str, names: Any) -> Compiled | None:
    """Take from SQLAlchemy what it compiled."""
    prefetched = ("insert_prefetch", "update_prefetch")
    if "RETURNING" in text or any(getattr(compiled, name, ()) for name in prefetched):
        return None
    return Compiled(
        text, tuple(names or ()), {}, not text.lstrip().startswith("SELECT"), _row_of(compiled)
    )


@lru_cache
def _named(names: tuple[str, ...]) -> Callable[[Any], Any]:
    return namedtuple("Row", names, rename=True)._make  # type: ignore[misc]  # noqa: PYI024


def _row_of(compiled: Any) -> Callable[[Any], Any] | None:
    """Return what makes a row whose columns have names and types."""
    columns = compiled._result_columns
    if not columns:
        return None
    made = _named(tuple(column.keyname for column in columns))
    processors = [
        column.type._cached_result_processor(compiled.dialect, None) for column in columns
    ]
    typed = [(at, processor) for at, processor in enumerate(processors) if processor]
    if not typed:
        return made

    def row(values: Any) -> Any:
        changed = list(values)
        for at, processor in typed:
            changed[at] = processor(changed[at])
        return made(changed)

    return row
