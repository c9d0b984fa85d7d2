"""The ledger's database: SQLite or PostgreSQL, one durable transaction at a time.

Writes are serial (SQLite: BEGIN IMMEDIATE; PostgreSQL: locks in one order), durable before they
return (synchronous FULL, synchronous_commit on) and tried again after a deadlock or a
serialization failure. Connections are not kept: nothing is shared across a fork.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast
from urllib.parse import quote

from sqlalchemy import create_engine, event, inspect, text
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import IntegrityError as ConstraintError
from sqlalchemy.pool import NullPool

from turnstile.errors import InputError, IntegrityError, TurnstileError

if TYPE_CHECKING:
    from sqlalchemy.engine.interfaces import DBAPIConnection
    from sqlalchemy.pool import ConnectionPoolEntry

T = TypeVar("T")
LATEST = "0004"
_MIGRATIONS = Path(__file__).parent / "migrations"
_ATTEMPTS_MAX = 8
_TRY_AGAIN = ("40001", "40P01")
_CONNECTION_GONE = ("08", "57")
_LOST_ANSWER = (
    "the connection to the ledger was lost while it committed: it may have happened; run the step "
    "again, which finds out, or look at turnstile ledger entries"
)
_DAMAGE = re.compile("SQLITE_(CORRUPT|NOTADB|TOOBIG)|.*( decode |unsupported file format)")
"""Name of an error, and what it says: a damaged page may state a length beyond all."""
_MEND = "nothing was done; stop all runs, then turnstile ledger recover --reason TEXT"
_BUSY_MS = 120_000
_PAUSE_S = 0.01
_ENGINES = 8
_MIGRATION_LOCK = 0x7475726E  # any number of our own: "turn"


class Store:
    """One ledger database.

    Args:
        url: `sqlite:///path` or `postgresql+psycopg://user@host/database`.
        read_only: change nothing: no tables, no file beside the database, no migration.
    """

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        try:
            self._url = make_url(url)
        except ArgumentError:  # its message would hold the password
            rule = "is no address; use sqlite:///path or postgresql+psycopg://host/database"
            raise InputError(where="TURNSTILE_LEDGER_URL", field="ledger", rule=rule) from None
        self._read_only = read_only
        if self._url.get_backend_name() not in ("sqlite", "postgresql"):
            raise self._refused("use sqlite:///path or postgresql+psycopg://host/database")
        self._engine = self._sqlite() if self.is_sqlite else _server(self._url, read_only=read_only)
        if not read_only:
            self._migrate()

    @property
    def is_sqlite(self) -> bool:
        """SQLite, as opposed to PostgreSQL."""
        return self._url.get_backend_name() == "sqlite"

    @property
    def file(self) -> Path | None:
        """The file of SQLite; None of a server."""
        return Path(self._url.database or ".") if self.is_sqlite else None

    @property
    def folder(self) -> Path | None:
        """Folder of that file."""
        return self.file and self.file.parent

    def write(self, act: Callable[[Connection], T]) -> T:
        """Run a transaction and return what it returns, once it is durable.

        Raises:
            InputError: the store cannot be reached or written; nothing was done.
            IntegrityError: a guard of the database stopped the transaction.
        """
        for remaining in reversed(range(_ATTEMPTS_MAX)):
            try:
                return self._write_once(act)
            except (DBAPIError, UnicodeDecodeError) as error:
                cause = getattr(error, "orig", error)
                if remaining and getattr(cause, "sqlstate", None) in _TRY_AGAIN:
                    continue
                raise self._translated(error) from error
        raise AssertionError  # pragma: no cover - the last attempt returns or raises

    def _write_once(self, act: Callable[[Connection], T]) -> T:
        """Run a transaction that takes SQLite's write lock at once."""
        with self._engine.connect().execution_options(writes=True) as connection:
            transaction = connection.begin()
            try:
                answer = act(connection)
            except BaseException:
                with suppress(DBAPIError):  # a connection that broke has rolled back by itself
                    transaction.rollback()
                raise
            try:
                transaction.commit()
            except DBAPIError as error:
                if self._is_lost(error):
                    raise TurnstileError(_LOST_ANSWER) from error
                raise
            return answer

    def _is_lost(self, error: DBAPIError) -> bool:
        """Return whether a commit may have happened though its answer never came.

        SQLite says for sure; a server that says why (an SQLSTATE of its own making) does too.
        """
        state = getattr(error.orig, "sqlstate", None)
        return not self.is_sqlite and (state is None or state[:2] in _CONNECTION_GONE)

    def read(self, act: Callable[[Connection], T]) -> T:
        """Return what a reading transaction returns; it sees one state of the ledger.

        Raises:
            InputError: the store cannot be reached.
            IntegrityError: it is damaged.
        """
        with self.reading() as connection:
            return act(connection)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a reading transaction, as `read` does, to whoever reads row by row."""
        options = {} if self.is_sqlite else {"isolation_level": "REPEATABLE READ"}
        try:
            opened = self._engine.connect().execution_options(**options)
            with opened as connection, connection.begin():
                yield connection
        except (DBAPIError, UnicodeDecodeError) as error:
            raise self._translated(error) from error

    def version(self) -> str:
        """Return the version of the tables."""
        return self.read(_version) or LATEST

    def _sqlite(self) -> Engine:
        """Make the engine of a file, and its folder."""
        if self._read_only:
            return self._sqlite_to_read()
        if self._url.database not in (None, "", ":memory:"):
            try:
                Path(str(self._url.database)).parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise self._refused(f"its folder cannot be made: {error.strerror}") from error
        return _file(self._url)

    def _sqlite_to_read(self) -> Engine:
        """Make the engine of a file that is not changed; it may lie on read-only media."""
        path = Path(str(self._url.database)).resolve()
        if not path.is_file():
            raise self._refused("there is no ledger; name one, or release something first")
        return _file(self._url, reading_uri(path))

    def _migrate(self) -> None:
        """Bring the tables to the latest version; costs one query when they are."""
        if self.read(_version) != LATEST:
            self.write(self._upgrade)

    def _upgrade(self, connection: Connection) -> None:
        """Run the migrations, one process at a time."""
        if not self.is_sqlite:
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})"))
        version = _version(connection)
        if version == LATEST:
            return
        if version is not None and version > LATEST:
            raise self._refused(f"version {version} is newer than this turnstile; upgrade it")
        from alembic import command
        from alembic.config import Config

        config = Config()
        config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")

    def _refused(self, rule: str) -> InputError:
        """Build the error of a store that cannot be used."""
        where = self._url.render_as_string(hide_password=True)
        return InputError(where=where, field="ledger", rule=rule)

    def _translated(self, error: DBAPIError | UnicodeDecodeError) -> InputError | IntegrityError:
        """Say what a database error means to a person."""
        cause = getattr(error, "orig", error)
        reason = str(cause).strip().splitlines()[0] if cause else "unknown"
        if isinstance(error, ConstraintError) or getattr(cause, "sqlstate", None) == "P0001":
            return IntegrityError(
                f"a guard of the ledger's database stopped a move ({reason}); nothing was done; "
                "run `turnstile ledger verify` and ask a person"
            )
        if is_damage(cause):
            return IntegrityError(f"the ledger's database is damaged ({reason}); {_MEND}")
        if reason.startswith("no such table"):
            return IntegrityError(f"the ledger's database holds no ledger ({reason}); {_MEND}")
        mend = "free space" if "full" in reason else "mend it"
        return self._refused(f"{reason}; nothing was done: {mend}, then run the step again")


def is_damage(cause: object) -> bool:
    """Return whether an error says that a file is no sound database, or holds what is no text."""
    return _DAMAGE.match(f"{getattr(cause, 'sqlite_errorname', '')} {cause}") is not None


def reading_uri(path: Path, *, locks: bool = False) -> str:
    """Return the address under which SQLite reads a file and makes none beside it.

    Args:
        path: of the file.
        locks: whether it makes what it locks by, where it can, in case somebody begins to write.
    """
    # Without a write-ahead log nobody writes yet, and SQLite would make the log's files to read.
    log = path.with_name(f"{path.name}-wal")
    alone = not (locks or log.exists()) or not os.access(path.parent, os.W_OK)
    return f"file:{quote(str(path))}?{'mode=ro&immutable=1' if alone else 'mode=ro'}"


# An engine keeps no connection; what it compiled serves whoever opens the same ledger next.
@lru_cache(maxsize=_ENGINES)
def _file(url: URL, to_read: str | None = None) -> Engine:
    """Return the engine of a file, or of the address under which it is only read."""
    creator = {"creator": partial(sqlite3.connect, to_read, uri=True)} if to_read else {}
    engine = create_engine(url, poolclass=NullPool, **creator)
    event.listen(engine, "connect", _prepare_reader if to_read else _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


@lru_cache(maxsize=_ENGINES)
def _server(url: URL, *, read_only: bool) -> Engine:
    """Return the engine of a server; durability and isolation do not depend on its settings."""
    options = "-c synchronous_commit=on -c lock_timeout=120s"
    if read_only:
        options += " -c default_transaction_read_only=on"
    connect, isolation = {"options": options}, "READ COMMITTED"
    return create_engine(url, poolclass=NullPool, connect_args=connect, isolation_level=isolation)


def _prepare_sqlite(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
    """Set up a connection: explicit transactions, write-ahead log, every commit on the disk."""
    sqlite = cast("sqlite3.Connection", connection)
    sqlite.isolation_level = None
    for pragma in (f"busy_timeout={_BUSY_MS}", "synchronous=FULL", "foreign_keys=ON"):
        sqlite.execute(f"PRAGMA {pragma}").close()
    _keep_write_ahead_log(sqlite)


def _prepare_reader(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
    """Set up a connection that only reads: explicit transactions."""
    sqlite = cast("sqlite3.Connection", connection)
    sqlite.isolation_level = None
    sqlite.execute(f"PRAGMA busy_timeout={_BUSY_MS}").close()


def _keep_write_ahead_log(sqlite: sqlite3.Connection) -> None:
    """Switch the file to a write-ahead log, which it keeps.

    SQLite does not wait here for another process that makes the same switch, whatever its timeout.
    """
    deadline = time.monotonic() + _BUSY_MS / 1000
    while True:
        try:
            sqlite.execute("PRAGMA journal_mode=WAL").close()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_S)
        else:
            return


def _begin_sqlite(connection: Connection) -> None:
    """Begin; a writer takes the lock now, so that what it reads stays true until it commits."""
    is_writer = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if is_writer else "BEGIN")


def _version(connection: Connection) -> str | None:
    """Return the version of the tables, None of an empty database."""
    if not inspect(connection).has_table("ledger_version"):
        return None
    return connection.execute(text("SELECT version_num FROM ledger_version")).scalar()
