"""Real stores for ledger tests: an SQLite file, and a PostgreSQL database of its own, per test."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from postgresql_server import postgresql_server as server_of_this_machine
from postgresql_server import run_as_server
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.pool import NullPool

sys.path.insert(0, str(Path(__file__).parent))

from ledger_asks import noon

from turnstile.ledger.database.guards import guard_findings
from turnstile.ledger.database.store import LATEST
from turnstile.ledger.ledger import Ledger

if TYPE_CHECKING:
    from disaster_site import Site

NUMBERS = count()
KINDS = ("sqlite", "postgresql")
GUARDED = ("entry", "attempt", "account", "head", "caps")
TABLES = ("entry", "head", "family", "caps", "attempt", "account", "draw_lease")


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """A server: the one that runs, else one started from the machine's binaries."""
    with server_of_this_machine() as server:
        if server is None:
            pytest.skip("no PostgreSQL answers on 127.0.0.1:5432, and no initdb is installed")
        yield server


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave servers with a witness to `make test-long`: it holds the same files beside SQLite."""
    for item in items:
        of = item.callspec.params if hasattr(item, "callspec") else {}
        if of.get("stores") == "postgresql" and of.get("has_witness"):
            item.add_marker(pytest.mark.long)


class Stores:
    """Makes and copies databases of one kind; each new one is migrated already."""

    def __init__(self, kind: str, folder: Path, server: str | None) -> None:
        self.kind, self.folder, self.server = kind, folder, server
        self.made: list[str] = []
        self.free: list[str] = []
        self.tampered: set[str] = set()
        self.template = self.empty()
        Ledger.open(self.template, clock=noon)

    def name(self) -> str:
        return f"turnstile_test_{os.getpid()}_{next(NUMBERS)}"

    def empty(self) -> str:
        """A database without tables."""
        name = self.name()
        if self.server is None:
            return f"sqlite:///{self.folder / name / 'ledger.sqlite'}"
        run_as_server(self.server, f"CREATE DATABASE {name}")
        return self._made(name)

    def new(self) -> str:
        """A database with tables, nothing in them."""
        return self.copy_of(self.template)

    def give_back(self, url: str) -> None:
        """Let another test have a server's database: making and dropping one takes long."""
        if self.server is not None and self._is_as_migrated(url):
            self.free.append(url)

    def copy_of(self, url: str) -> str:
        """An exact copy, as a backup would hold it."""
        name, source = self.name(), make_url(url).database
        assert source is not None
        if self.server is None:
            shutil.copytree(Path(source).parent, self.folder / name)
            return f"sqlite:///{self.folder / name / 'ledger.sqlite'}"
        if self.free and self._is_as_migrated(url):
            copy = self.free.pop()
            _fill(copy, url)
            return copy
        run_as_server(self.server, f"CREATE DATABASE {name} TEMPLATE {source}")
        return self._made(name)

    def _is_as_migrated(self, url: str) -> bool:
        """Whether a server's database has the newest tables, and its guards stand."""
        if url in self.tampered:
            return False
        with create_engine(url, poolclass=NullPool).connect() as connection:
            version = connection.execute(text("SELECT version_num FROM ledger_version")).scalar()
            return version == LATEST and not any(guard_findings(connection, LATEST))

    def _made(self, name: str) -> str:
        self.made.append(name)
        assert self.server is not None
        return make_url(self.server).set(database=name).render_as_string(hide_password=False)

    def drop_all(self) -> None:
        if self.server is not None:
            run_as_server(self.server, *(f"DROP DATABASE {n} WITH (FORCE)" for n in self.made))

    def tamper(self, url: str, *statements: str) -> None:
        """Change a database as its administrator could: guards off, and on again."""
        if self.server is None:
            guards = _guards_of(url)
            off, on = [f"DROP TRIGGER {name}" for name in guards], list(guards.values())
        else:
            off = [f"ALTER TABLE {name} DISABLE TRIGGER ALL" for name in GUARDED]
            on = [f"ALTER TABLE {name} ENABLE TRIGGER ALL" for name in GUARDED]
            self.tampered.add(url)
        run_as_server(url, *off, *statements, *on)


def _fill(copy: str, url: str) -> None:
    """Put the rows of a server's database into another one, in the place of its own."""
    with _psycopg(url) as source, _psycopg(copy) as target:
        target.execute("SET session_replication_role = replica")  # no trigger, no foreign key
        for table in TABLES:
            target.execute(f"DELETE FROM {table}")  # few rows; TRUNCATE makes files
            with (
                source.cursor().copy(f"COPY {table} TO STDOUT") as rows,
                target.cursor().copy(f"COPY {table} FROM STDIN") as into,
            ):
                for row in rows:
                    into.write(row)


def _psycopg(url: str) -> psycopg.Connection[Any]:
    return psycopg.connect(url.replace("postgresql+psycopg", "postgresql"))


def _guards_of(url: str) -> dict[str, str]:
    """The triggers of an SQLite file, and how each is made."""
    with create_engine(url, poolclass=NullPool).connect() as connection:
        query = text("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        return {row.name: row.sql for row in connection.execute(query)}


@pytest.fixture(scope="session")
def sqlite_stores(tmp_path_factory: pytest.TempPathFactory) -> Stores:
    """Files of this worker."""
    return Stores("sqlite", tmp_path_factory.mktemp("ledgers"), None)


@pytest.fixture(scope="session")
def postgresql_stores(
    postgresql_server: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stores]:
    """Databases of this worker: what one module made serves the next."""
    made = Stores("postgresql", tmp_path_factory.mktemp("ledgers"), postgresql_server)
    yield made
    made.drop_all()


@pytest.fixture(scope="session", params=KINDS)
def stores(request: pytest.FixtureRequest) -> Stores:
    """Databases of one kind; every test that asks runs once on each kind."""
    made: Stores = request.getfixturevalue(f"{request.param}_stores")
    return made


@pytest.fixture
def url(stores: Stores) -> Iterator[str]:
    """A fresh, migrated database."""
    fresh = stores.new()
    yield fresh
    stores.give_back(fresh)


@pytest.fixture
def ledger(url: str) -> Ledger:
    """A fresh ledger."""
    return Ledger.open(url, clock=noon)


@pytest.fixture(scope="module")
def lived(stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A deployment without a witness, whose first week is public; modules may have another."""
    from disaster_site import lived_once  # which asks for `Stores`

    root = tmp_path_factory.mktemp("lived")
    return lived_once(stores, root, lambda site: site.publish(0), has_witness=False)


@pytest.fixture
def site(
    lived: Site, stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Site]:
    """A copy of the deployment of a module, to change, to lose and to recover."""
    copy = lived.copy_of(stores, tmp_path / "site").at(monkeypatch)
    yield copy
    stores.give_back(copy.url)
