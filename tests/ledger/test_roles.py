"""On PostgreSQL, a release can do its work as a role that can rewrite nothing."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files

import pytest
from ledger_asks import ask, noon, published
from postgresql_server import run_as_server
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from conftest import Stores
from turnstile.errors import InputError
from turnstile.ledger.ledger import Ledger

pytestmark = pytest.mark.parametrize("stores", ["postgresql"], indirect=True)
SCRIPT = files("turnstile.ledger.database").joinpath("roles.sql").read_text()


def logged_in_as(url: str, role: str) -> str:
    """The same database, as a login of its own."""
    return make_url(url).set(username=role).render_as_string(hide_password=False)


@pytest.fixture
def logins(stores: Stores, url: str) -> Iterator[dict[str, str]]:
    """Run the script, twice, and make one login for each role."""
    names = {kind: f"{stores.name()}_{kind}" for kind in ("writer", "reader")}
    run_as_server(url, SCRIPT, SCRIPT)
    for kind, name in names.items():
        run_as_server(url, f"CREATE ROLE {name} LOGIN IN ROLE turnstile_{kind}")
    yield {kind: logged_in_as(url, name) for kind, name in names.items()}
    for name in names.values():
        run_as_server(url, f"DROP ROLE {name}")


def test_a_writer_can_release(logins: dict[str, str]) -> None:
    ledger = Ledger.open(logins["writer"], clock=noon)
    published(ledger, ask())
    ledger.withdraw(ask().key, "officer", "wrong stops")
    assert ledger.verify() == ()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entry SET record = ''",
        "DELETE FROM entry",
        "TRUNCATE entry",
        "DELETE FROM account",
        "UPDATE attempt SET attempt_id = 'x'",
        "ALTER TABLE entry DISABLE TRIGGER ALL",
        "CREATE TABLE mine (x int)",
    ],
)
def test_a_writer_can_rewrite_nothing(logins: dict[str, str], statement: str) -> None:
    engine = create_engine(logins["writer"], poolclass=NullPool)
    with engine.begin() as connection, pytest.raises(DBAPIError, match=r"permission|owner"):
        connection.execute(text(statement))


def test_a_reader_can_look_but_not_reserve(logins: dict[str, str]) -> None:
    ledger = Ledger.open(logins["reader"], clock=noon)
    assert ledger.balance() == ()
    with pytest.raises(InputError, match="permission denied"):
        ledger.reserve(ask())
