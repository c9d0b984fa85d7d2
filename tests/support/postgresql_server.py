"""A PostgreSQL server for tests and benchmarks: the one that runs, else a throw-away one."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from ports import free_port
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

_NUMBERS = count()  # of databases of this process, some of which live side by side


def run_as_server(url: str, *statements: str) -> None:
    """Run statements outside a transaction."""
    engine = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for statement in statements:
            connection.execute(text(statement.replace(":", r"\:")))  # no parameters here


@contextmanager
def postgresql_server(*, durable: bool = False) -> Iterator[str | None]:
    """Yield the URL of a server; None where none answers and none is installed.

    Args:
        durable: whether a started one survives a loss of power; tests kill its clients only.
    """
    running, program = _running_server(), _initdb()
    if running is not None or program is None:
        yield running
        return
    binaries, data = program.parent, Path(tempfile.mkdtemp(prefix="turnstile-pg-"))
    owner = {"user": "postgres"} if os.geteuid() == 0 else {}
    if owner:
        shutil.chown(data, user="postgres")
    initdb = [str(program), "-D", str(data), "-U", "postgres", "-A", "trust"]
    _run_quietly(initdb, owner)
    start = [str(binaries / "pg_ctl"), "-D", str(data), "-w", "-l", str(data / "log")]
    # below what outgoing connections are given, and not where another worker of this run begins
    port = free_port(20_000 + os.getpid() % 10_000)
    options = f"-p {port} -k {data} -c listen_addresses=127.0.0.1"
    options += "" if durable else " -c fsync=off -c full_page_writes=off"
    _run_quietly([*start, "-o", options, "start"], owner)
    try:
        yield f"postgresql+psycopg://postgres@127.0.0.1:{port}/postgres"
    finally:
        _run_quietly([*start, "-m", "fast", "stop"], owner)
        shutil.rmtree(data)


def _running_server() -> str | None:
    """Find a PostgreSQL server that answers without a password."""
    for user in ("root", "postgres"):
        url = f"postgresql+psycopg://{user}@127.0.0.1:5432/postgres?connect_timeout=2"
        try:
            run_as_server(url, "SELECT 1")
        except OperationalError:
            continue
        return url.partition("?")[0]
    return None


def _initdb() -> Path | None:
    """Find the program that makes a server's data folder."""
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)
    program = shutil.which("initdb") or next(map(str, installed), None)
    return None if program is None else Path(program)


def _run_quietly(command: list[str], owner: dict[str, str]) -> None:
    """Run a program of the database server; its failure is the caller's."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **owner)  # type: ignore[call-overload]  # noqa: S603 - our own words


@contextmanager
def metadata_database() -> Iterator[dict[str, str]]:
    """Yield Airflow's setting of its own database: PostgreSQL where there is one, as in production.

    On SQLite a scheduler can die of a backfill that is asked for while it runs: it sees rows that
    the API server then rolls back.
    """
    with postgresql_server() as server:
        if server is None:
            yield {}
            return
        name = f"airflow_test_{os.getpid()}_{next(_NUMBERS)}"
        run_as_server(server, f"CREATE DATABASE {name}")
        url = make_url(server).set(drivername="postgresql+psycopg2", database=name)
        try:
            yield {"AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": url.render_as_string(hide_password=False)}
        finally:
            run_as_server(server, f"DROP DATABASE {name} WITH (FORCE)")
