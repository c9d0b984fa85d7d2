"""A ledger of version 0.1.0 is read as it is, migrated, and goes on, on both stores."""

from __future__ import annotations

from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from kept_homes import OF_0_1_0, lived_in
from ledger_asks import ask, noon, sealed
from sqlalchemy import create_engine, insert, select, text, update
from sqlalchemy.pool import NullPool

from conftest import Stores
from turnstile.cli import main
from turnstile.ledger.database import store
from turnstile.ledger.database.database_tables import ACCOUNT, ATTEMPT, CAPS, ENTRY, FAMILY, HEAD
from turnstile.ledger.ledger import Ledger
from turnstile.settings import system_clock


@pytest.fixture
def old(stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The kept home; on a server its rows stand in tables of the first version."""
    file = f"sqlite:///{lived_in(OF_0_1_0, tmp_path, monkeypatch) / 'ledger.sqlite'}"
    url = file if stores.kind == "sqlite" else _on_the_server(file, stores.empty())
    monkeypatch.setenv("TURNSTILE_LEDGER_URL", url)
    return url


def _on_the_server(file: str, url: str) -> str:
    """Copy every row of a file into a server's tables of version 0001."""
    config = Config()
    config.set_main_option("script_location", str(Path(store.__file__).parent / "migrations"))
    source = create_engine(file, poolclass=NullPool)
    target = create_engine(url, poolclass=NullPool)
    with source.connect() as kept, target.begin() as made:
        config.attributes["connection"] = made
        command.upgrade(config, "0001")
        for table in (ENTRY, FAMILY, CAPS, ATTEMPT, ACCOUNT):
            made.execute(insert(table), [row._asdict() for row in kept.execute(select(table))])
        head = kept.execute(select(HEAD)).one()
        made.execute(update(HEAD).values(sequence=head.sequence, hash=head.hash))
    return url


def _version(url: str) -> str:
    with create_engine(url, poolclass=NullPool).connect() as connection:
        return str(connection.execute(text("SELECT version_num FROM ledger_version")).scalar())


def test_it_verifies_unchanged_is_migrated_and_seals_its_next_week(old: str) -> None:
    assert main(["ledger", "verify"]) == 0
    assert _version(old) == "0001"  # to read changes nothing
    before = Ledger.open(old, clock=noon, read_only=True).balance()
    ledger = Ledger.open(old, clock=system_clock)
    assert _version(old) == store.LATEST
    assert ledger.balance() == before
    assert main(["ledger", "verify"]) == 0
    assert sealed(ledger, ask("2016-W40", programme="ferries", family="ferry_cards")).is_sealed
    assert not [finding for finding in ledger.verify() if finding.check != "sealed"]


@pytest.mark.long
def test_its_next_week_is_released_by_the_command(old: str) -> None:
    assert main(["run", "opal", "--week", "2016-W32"]) == 0
    assert _version(old) == store.LATEST
    assert main(["ledger", "verify"]) == 0


def test_an_altered_old_entry_is_found(old: str, stores: Stores) -> None:
    Ledger.open(old, clock=system_clock)
    stores.tamper(old, "UPDATE entry SET record = replace(record, 'opal', 'opaI')")
    assert main(["ledger", "verify"]) == 4
