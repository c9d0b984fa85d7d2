"""The store: migrations, guards that equal the state machine, and errors a person can act on."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from ledger_asks import ask, drawn, noon
from sqlalchemy import create_engine, inspect, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from conftest import Stores
from turnstile.errors import InputError, IntegrityError
from turnstile.ledger.database import guards
from turnstile.ledger.database.database_tables import METADATA
from turnstile.ledger.database.store import LATEST, Store
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.states import SEALED_STATES, TRANSITIONS, ReleaseState


def test_an_empty_database_gets_its_tables_and_keeps_them(stores: Stores) -> None:
    empty = stores.empty()
    drawn(Ledger.open(empty, clock=noon), ask())
    again = Ledger.open(empty, clock=noon)
    assert again.head()[0] == 3
    with create_engine(empty, poolclass=NullPool).connect() as connection:
        assert connection.execute(text("SELECT version_num FROM ledger_version")).scalar() == LATEST


def test_migrations_make_the_tables_that_the_code_names(stores: Stores) -> None:
    empty = stores.empty()
    Ledger.open(empty, clock=noon)
    made = inspect(create_engine(empty, poolclass=NullPool))
    for table in METADATA.tables.values():
        columns = {column["name"]: column["nullable"] for column in made.get_columns(table.name)}
        assert columns.keys() == set(table.columns.keys())
        for column in table.columns:  # SQLite lets a key of text be empty, whatever is said
            assert column.primary_key or columns[column.name] == column.nullable, column


def test_a_newer_database_is_refused(stores: Stores, url: str) -> None:
    stores.tamper(url, "UPDATE ledger_version SET version_num = '9999'")
    with pytest.raises(InputError, match="is newer than this turnstile"):
        Ledger.open(url, clock=noon)


@pytest.mark.parametrize(
    "url",
    ["mysql://host/db", "postgresql+psycopg://nobody:secret@127.0.0.1:1/none"],
    ids=["unknown kind", "nobody there"],
)
def test_a_store_that_cannot_be_used_says_so_without_its_password(url: str) -> None:
    with pytest.raises(InputError) as refused:
        Store(url)
    assert "secret" not in str(refused.value)


def test_a_folder_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="its folder cannot be made"):
        Store(f"sqlite:///{tmp_path}/file/ledger.sqlite")


@pytest.mark.parametrize(("start", "end"), list(product(ReleaseState, ReleaseState)))
def test_the_database_allows_the_moves_of_the_state_machine_and_no_other(
    shared_attempt: str, start: ReleaseState, end: ReleaseState
) -> None:
    def move(state: ReleaseState) -> str:
        artefact = "'a'" if state in SEALED_STATES else "NULL"
        manifest = "'m'" if state is ReleaseState.PUBLISHED else "NULL"
        return (
            f"UPDATE attempt SET state = '{state.value}', artefact_digest = {artefact}, "
            f"manifest_digest = {manifest}"
        )

    allowed = start is end or (start, end) in TRANSITIONS.values()
    with create_engine(shared_attempt, poolclass=NullPool).connect() as connection:
        for state in path_to(start):
            connection.execute(text(move(state)))
        if allowed:
            connection.execute(text(move(end)))
        else:
            with pytest.raises(DBAPIError, match="no such move"):
                connection.execute(text(move(end)))
        connection.rollback()


def path_to(state: ReleaseState) -> list[ReleaseState]:
    """Moves that lead from RESERVED to a state."""
    before = {end: start for start, end in TRANSITIONS.values()}
    path = [state]
    while path[0] is not ReleaseState.RESERVED:
        path.insert(0, before[path[0]])
    return path[1:]


@pytest.fixture(scope="module")
def shared_attempt(stores: Stores) -> str:
    """A database with one reserved attempt."""
    url = stores.new()
    Ledger.open(url, clock=noon).reserve(ask())
    return url


def test_a_guard_that_stops_a_move_is_an_integrity_failure(url: str) -> None:
    store = Store(url)
    with pytest.raises(IntegrityError, match="guard"):
        store.write(lambda c: c.execute(text("INSERT INTO head VALUES (2, 0, 'x')")))


def test_what_a_failed_transaction_wrote_is_gone(ledger: Ledger) -> None:
    def act(connection: object) -> None:
        connection.execute(text("INSERT INTO family VALUES ('x', 1)"))  # type: ignore[attr-defined]
        raise RuntimeError

    with pytest.raises(RuntimeError):
        ledger._store.write(act)
    ledger.reserve(ask())
    assert {balance.family for balance in ledger.balance()} == {"opal_cards"}


def test_the_guards_are_known_by_their_whole_text(url: str) -> None:
    """Whoever changes a guard by a migration writes down here what it is from now on."""
    with Store(url, read_only=True).reading() as connection:
        kind = connection.dialect.name
        rows = connection.execute(guards._POSTGRESQL if kind == "postgresql" else guards._SQLITE)
        texts = {name: body for name, _, body in rows}
    made = {name: guards._digest(text) for name, text in texts.items()}
    known = {name: digest for (of, name), digest in guards._known().items() if of == kind}
    assert known == made, "\n".join(f"{kind} {name} {made[name]}" for name in sorted(made))
