"""The three roles of the ledger under Compose: an owner, a writer, and the budget page's reader."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from compose_natively import PostgresImage, postgresql
from ports import free_port
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from turnstile.ledger.ledger import Ledger
from turnstile.settings import system_clock

ROOT = Path(__file__).resolve().parents[2]
ROLES = {
    "airflow": "airflow_database_password",
    "turnstile_ledger": "ledger_owner_password",
    "turnstile_release": "ledger_writer_password",
    "turnstile_page": "ledger_reader_password",
}
UrlOf = Callable[..., str]

pytestmark = pytest.mark.skipif(postgresql() is None, reason="no initdb of PostgreSQL is installed")


@pytest.fixture(scope="module")
def url_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UrlOf]:
    """Run the two scripts of the deployment; return the address of a role."""
    secrets = tmp_path_factory.mktemp("secrets")
    for role, file in (*ROLES.items(), ("postgres", "postgres_password")):
        (secrets / file).write_text(f"of-{role}")
    server = PostgresImage(
        # Below what the kernel gives to connections, and another one in every process: initdb takes
        # its time, and nobody may have the port by then.
        free_port(20_000 + os.getpid() % 10_000),
        secrets,
        [ROOT / "docker/create-databases.sh"],
    )

    def url(role: str, database: str = "turnstile_ledger", password: str = "") -> str:
        secret = password or f"of-{role}"
        return f"postgresql+psycopg://{role}:{secret}@127.0.0.1:{server.port}/{database}"

    server.start()
    environment = {
        "PATH": os.defpath,
        "PYTHONPATH": str(ROOT / "include"),
        "TURNSTILE_LEDGER_PASSWORD_FILE": str(secrets / "ledger_owner_password"),
        "TURNSTILE_LEDGER_URL": url("turnstile_ledger").replace(":of-turnstile_ledger", ""),
    }
    script = [sys.executable, str(ROOT / "docker/initialize_ledger.py")]
    for _ in range(2):  # every start of the deployment runs it
        subprocess.run(script, check=True, env=environment)  # noqa: S603 - our own script
    yield url
    server.stop()


def _run(url: str, statement: str) -> None:
    with create_engine(url, poolclass=NullPool).begin() as connection:
        connection.execute(text(statement))


def test_the_page_reads_what_a_ledger_holds(url_of: UrlOf) -> None:
    view = Ledger.open(url_of("turnstile_page"), clock=system_clock)
    assert view.balance() == ()
    assert tuple(view.entries()) == ()
    assert view.head() == (0, "0" * 64)


_WRITES = [
    "INSERT INTO family VALUES ('x', 0)",
    "UPDATE head SET sequence = 1",
    "UPDATE account SET spent_rho_nano = 0",
    "DELETE FROM entry",
    "CREATE TABLE mine (x int)",
    "CREATE TEMPORARY TABLE mine (x int)",
]


@pytest.mark.parametrize("statement", _WRITES)
@pytest.mark.parametrize("first", ["", "SET default_transaction_read_only = off; COMMIT; BEGIN; "])
def test_the_page_writes_nothing_even_if_it_lifts_its_own_bar(
    url_of: UrlOf, statement: str, first: str
) -> None:
    with pytest.raises(DBAPIError, match="read-only" if not first else "permission denied"):
        _run(url_of("turnstile_page"), first + statement)


@pytest.mark.parametrize("role", ["turnstile_page", "turnstile_release"])
@pytest.mark.parametrize("what", ["pg_authid", "pg_read_file('/etc/passwd')"])
def test_what_is_not_the_ledger_is_closed(url_of: UrlOf, role: str, what: str) -> None:
    with pytest.raises(DBAPIError, match="permission denied"):
        _run(url_of(role), f"SELECT * FROM {what}")


def _readable(url: str) -> set[str]:
    """Name the tables outside PostgreSQL's own catalog that a role may select from."""
    query = (
        "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE c.relkind IN ('r', 'v', 'm', 'p', 'f') AND n.nspname NOT IN "
        "('pg_catalog', 'information_schema', 'pg_toast') "
        "AND has_table_privilege(c.oid, 'SELECT')"
    )
    with create_engine(url, poolclass=NullPool).begin() as connection:
        return set(connection.execute(text(query)).scalars())


def test_the_page_reads_the_ledgers_tables_and_no_other(url_of: UrlOf) -> None:
    tables = {
        "ledger_version",
        "entry",
        "head",
        "family",
        "caps",
        "attempt",
        "account",
        "draw_lease",
    }
    _run(url_of("turnstile_ledger"), "CREATE TABLE IF NOT EXISTS another (x int)")
    assert _readable(url_of("turnstile_page")) == tables
    assert _readable(url_of("turnstile_ledger")) == tables | {"another"}


@pytest.mark.parametrize("role", sorted(ROLES))
def test_a_database_opens_to_its_own_roles_only(url_of: UrlOf, role: str) -> None:
    database = "airflow" if role == "airflow" else "turnstile_ledger"
    (other,) = {"airflow", "turnstile_ledger"} - {database}
    _run(url_of(role, database), "SELECT 1")
    with pytest.raises(DBAPIError, match="permission denied for database"):
        _run(url_of(role, other), "SELECT 1")
    with pytest.raises(DBAPIError, match="password authentication failed"):
        _run(url_of(role, database, "wrong"), "SELECT 1")


def test_the_writer_adds_and_rewrites_nothing(url_of: UrlOf) -> None:
    _run(url_of("turnstile_release"), "INSERT INTO family VALUES ('mine', 0)")
    with pytest.raises(DBAPIError, match="permission denied"):
        _run(url_of("turnstile_release"), "DELETE FROM family")
