"""What a server adds: isolation of its own, lost answers; guards; and read-only media."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from disaster_site import Site, run
from ledger_asks import LOSS_MICRO, ask, held_micro, noon, sealed, week_number
from postgresql_server import run_as_server
from sqlalchemy import create_engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from conftest import Stores
from turnstile.errors import TurnstileError
from turnstile.ledger.balances.amounts import Cap
from turnstile.ledger.entries import EntryKind
from turnstile.ledger.ledger import Ledger
from turnstile.privacy.units import ProtectionUnit

server = pytest.mark.parametrize("stores", ["postgresql"], indirect=True)
MANY = (Cap(ProtectionUnit.TRIP, epsilon_micro=100 * LOSS_MICRO),)


@server
def test_a_server_that_isolates_otherwise_by_default_refuses_nobody(url: str) -> None:
    name = make_url(url).database
    run_as_server(url, f"ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'")
    try:
        with ThreadPoolExecutor(8) as threads:
            asked = [ask(week_number(n), caps=MANY) for n in range(24)]
            attempts = list(
                threads.map(lambda request: Ledger.open(url, clock=noon).reserve(request), asked)
            )
        assert all(attempt.is_open for attempt in attempts)
        assert Ledger.open(url, clock=noon).verify() == ()
    finally:
        run_as_server(url, f"ALTER DATABASE {name} RESET default_transaction_isolation")


@server
def test_a_lost_answer_to_commit_says_that_it_may_have_happened(url: str) -> None:
    ledger = Ledger.open(url, clock=noon)

    def cut(connection: object) -> None:
        """End the server's side just as the commit is sent."""
        if connection.get_execution_options().get("writes"):  # type: ignore[attr-defined]
            backend_pid = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()  # type: ignore[attr-defined]
            run_as_server(url, f"SELECT pg_terminate_backend({backend_pid})")

    engine = ledger._store._engine
    event.listen(engine, "commit", cut)
    with pytest.raises(TurnstileError, match="may have happened"):
        ledger.reserve(ask())
    event.remove(engine, "commit", cut)
    assert ledger.reserve(ask()).is_open
    assert held_micro(ledger) == LOSS_MICRO
    assert ledger.verify() == ()


def test_identical_approvals_at_once_are_one_entry(url: str) -> None:
    sealed(Ledger.open(url, clock=noon), ask())
    start = threading.Barrier(8)

    def approve(_: int) -> None:
        ledger = Ledger.open(url, clock=noon)
        start.wait()
        ledger.approve(ask().key, "olga", "release_officer", "looks right")
        ledger.record_audit(ask().key, outcome="passed", report_digest="d")

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(approve, range(8)))
    kinds = [entry.kind for entry in Ledger.open(url, clock=noon).entries()]
    assert kinds.count(EntryKind.APPROVED) == 1
    assert kinds.count(EntryKind.AUDITED) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE attempt SET week = '2016-W01'",
        "UPDATE attempt SET snapshot_digest = 'x'",
        "UPDATE attempt SET artefact_digest = 'x'",
        "UPDATE attempt SET state = 'published', manifest_digest = 'x', family = 'y'",
        """INSERT INTO attempt SELECT 'x', 'opal/2016-W50/r0', family, week, 'sealed', 'a', 'b',
        'c', 'd', 'e', NULL, reserved_sequence, is_withdrawn FROM attempt""",
        """UPDATE account SET spent_epsilon_micro = spent_epsilon_micro + 1,
        held_epsilon_micro = held_epsilon_micro + 1""",
        "UPDATE account SET scope = 'other'",
        """INSERT INTO account SELECT family, 'bus', scope, week, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        NULL, NULL, NULL FROM account""",
        "UPDATE head SET sequence = sequence - 1",
        "UPDATE head SET hash = 'x'",
        """INSERT INTO entry SELECT sequence + 5, kind, release_key, attempt_id, record, 'h'
        FROM entry""",
        "UPDATE caps SET family = 'other'",
        "DELETE FROM caps",
        "UPDATE caps SET caps = '[]'",
        "INSERT INTO caps SELECT 'more', family, caps FROM caps",
        "UPDATE account SET cap_epsilon_micro = cap_epsilon_micro + 1",
        """UPDATE account SET cap_epsilon_micro = NULL, cap_rho_nano = NULL,
        cap_delta_femto = NULL""",
        """UPDATE account SET cap_epsilon_micro = 1000000000,
        held_epsilon_micro = held_epsilon_micro + 999999999""",
    ],
)
def test_what_the_states_do_not_allow_is_refused_by_the_database(url: str, statement: str) -> None:
    sealed(Ledger.open(url, clock=noon), ask())
    words = "no such move|follows|last entry|begins|keeps|never|cap in force"
    engine = create_engine(url, poolclass=NullPool)
    with (
        pytest.raises(DBAPIError, match=words),
        engine.begin() as connection,
    ):
        connection.execute(text(statement))
    assert Ledger.open(url, clock=noon).verify() == ()


class TestAReader:
    @pytest.fixture
    def site(self, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
        site = Site(tmp_path / "site", url).at(monkeypatch)
        site.publish(0)
        return site

    @pytest.mark.parametrize("stores", ["sqlite"], indirect=True)
    def test_to_verify_makes_no_file_and_needs_no_right_to_write(self, site: Site) -> None:
        folder = Path(str(make_url(site.url).database)).parent
        for log in folder.glob("*-*"):
            log.unlink()
        for zone in (folder, site.root):
            before = sorted(zone.rglob("*"))
            assert run("verify") == 0
            assert run("balance") == 0
            assert sorted(zone.rglob("*")) == before

    def test_a_ledger_opened_to_read_refuses_to_write(self, site: Site, stores: Stores) -> None:
        assert stores
        reader = Ledger.open(site.url, clock=noon, read_only=True)
        with pytest.raises(TurnstileError, match=r"read-?\s?only"):
            reader.approve(ask().key, "olga", "release_officer", "no")


def test_what_others_ship_meanwhile_is_no_sign_of_an_old_copy(url: str, tmp_path: Path) -> None:
    """Several who release at once over one witness do not take each other for thieves."""
    places = {"witnesses": [tmp_path / "second"], "key": tmp_path / "key.pem"}
    sealed(Ledger.open(url, clock=noon, **places), ask(caps=MANY))  # type: ignore[arg-type]

    def release(n: int) -> bool:
        ledger = Ledger.open(url, clock=noon, **places)  # type: ignore[arg-type]
        done = sealed(ledger, ask(week_number(n), caps=MANY), f"artefact-{n}")
        return done.is_sealed and ledger.verify() == ()

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(release, range(1, 9)))
