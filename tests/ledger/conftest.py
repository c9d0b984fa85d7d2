"""Real stores for ledger tests: an SQLite file, and a PostgreSQL database of its own, per test."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

sys.path.insert(0, str(Path(__file__).parent))

from ledger_asks import noon

from turnstile.ledger.ledger import Ledger
from turnstile.ledger.store import LATEST

NUMBERS = count()
PORT = 54_329 + os.getpid() % 1000  # workers of one run must not meet
KINDS = ("sqlite", "postgresql")
GUARDED = ("entry", "attempt", "account")
RESET = (
    *(f"ALTER TABLE {name} DISABLE TRIGGER ALL" for name in GUARDED),
    "TRUNCATE entry, head, family, caps, attempt, account",
    *(f"ALTER TABLE {name} ENABLE TRIGGER ALL" for name in GUARDED),
    f"INSERT INTO head VALUES (1, 0, '{'0' * 64}')",
    f"UPDATE ledger_version SET version_num = '{LATEST}'",
)


def run_as_server(url: str, *statements: str) -> None:
    """Run statements outside a transaction."""
    engine = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for statement in statements:
            connection.execute(text(statement.replace(":", r"\:")))  # no parameters here


def run_quietly(command: list[str], owner: dict[str, str]) -> None:
    """Run a program of the database server; its failure is the test's."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **owner)  # type: ignore[call-overload]  # noqa: S603 - our own words


def running_server() -> str | None:
    """Find a PostgreSQL server that answers without a password."""
    for user in ("root", "postgres"):
        url = f"postgresql+psycopg://{user}@127.0.0.1:5432/postgres?connect_timeout=2"
        try:
            run_as_server(url, "SELECT 1")
        except OperationalError:
            continue
        return url.partition("?")[0]
    return None


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """A server: the one that runs, else one started from the machine's binaries."""
    running = running_server()
    if running is not None:
        yield running
        return
    found = shutil.which("initdb") or next(
        map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)), None
    )
    if found is None:
        pytest.skip("no PostgreSQL answers on 127.0.0.1:5432, and no initdb is installed")
    binaries, data = Path(found).parent, Path(tempfile.mkdtemp(prefix="turnstile-pg-"))
    owner = {"user": "postgres"} if os.geteuid() == 0 else {}
    if owner:
        shutil.chown(data, user="postgres")
    initdb = [str(binaries / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust"]
    run_quietly(initdb, owner)
    start = [str(binaries / "pg_ctl"), "-D", str(data), "-w", "-l", str(data / "log")]
    options = f"-p {PORT} -k {data} -c listen_addresses=127.0.0.1"
    run_quietly([*start, "-o", options, "start"], owner)
    yield f"postgresql+psycopg://postgres@127.0.0.1:{PORT}/postgres"
    run_quietly([*start, "-m", "fast", "stop"], owner)
    shutil.rmtree(data)


class Stores:
    """Makes, copies and removes databases of one kind; each new one is migrated already."""

    def __init__(self, kind: str, folder: Path, server: str | None) -> None:
        self.kind, self.folder, self.server = kind, folder, server
        self.made: list[str] = []
        self.free: list[str] = []
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
        if not self.free:
            return self.copy_of(self.template)
        url = self.free.pop()
        run_as_server(url, *RESET)
        return url

    def give_back(self, url: str) -> None:
        """Let another test have a server's database: making and dropping one takes long."""
        if self.server is not None:
            self.free.append(url)

    def copy_of(self, url: str) -> str:
        """An exact copy, as a backup would hold it."""
        name, source = self.name(), make_url(url).database
        assert source is not None
        if self.server is None:
            shutil.copytree(Path(source).parent, self.folder / name)
            return f"sqlite:///{self.folder / name / 'ledger.sqlite'}"
        run_as_server(self.server, f"CREATE DATABASE {name} TEMPLATE {source}")
        return self._made(name)

    def _made(self, name: str) -> str:
        self.made.append(name)
        assert self.server is not None
        return make_url(self.server).set(database=name).render_as_string(hide_password=False)

    def drop_all(self) -> None:
        if self.server is not None:
            run_as_server(self.server, *(f"DROP DATABASE {n} WITH (FORCE)" for n in self.made))

    def tamper(self, url: str, *statements: str) -> None:
        """Change a database as its administrator could: guards off first."""
        off = [f"ALTER TABLE {name} DISABLE TRIGGER ALL" for name in GUARDED]
        if self.server is None:
            off = [
                f"DROP TRIGGER IF EXISTS {name}"
                for name in (
                    "entry_no_update",
                    "entry_no_delete",
                    "attempt_moves",
                    "attempt_no_delete",
                    "account_no_refund",
                    "account_no_delete",
                )
            ]
        run_as_server(url, *off, *statements)


@pytest.fixture(scope="session", params=KINDS)
def stores(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stores]:
    """Databases of one kind; every test that asks runs once on each kind."""
    is_server = request.param == "postgresql"
    server = request.getfixturevalue("postgresql_server") if is_server else None
    made = Stores(request.param, tmp_path_factory.mktemp("ledgers"), server)
    yield made
    made.drop_all()


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
