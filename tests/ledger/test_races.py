"""Many processes reserve at once against one cap: never overspent, and no deadlock surfaces."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress

import pytest
from ledger_asks import CARD, FAMILY, LOSS_MICRO, TRIP, ask, held_micro, noon, posting, week_number
from sqlalchemy import create_engine
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

from conftest import Stores
from turnstile.errors import BudgetExceeded, RefusedError
from turnstile.ledger.balances import accounts
from turnstile.ledger.balances.amounts import Cap
from turnstile.ledger.balances.changes import Change, changes_of
from turnstile.ledger.entries import EntryKind
from turnstile.ledger.ledger import Ledger
from turnstile.service_calendar import ServiceWeek

FIT = 3
CAPS = (
    Cap(TRIP, epsilon_micro=FIT * LOSS_MICRO + 1),
    Cap(CARD, epsilon_micro=FIT * LOSS_MICRO + 1, window_weeks=1),
)
ADMITTED, REFUSED = 0, 3


def at_once(children: int, act: Callable[[int], int]) -> list[int]:
    """Fork so many children, let them go together, and return their exit codes."""
    gate_read, gate_write = os.pipe()
    pids = []
    for n in range(children):
        pid = os.fork()
        if pid == 0:
            code = 99
            try:
                os.close(gate_write)
                os.read(gate_read, 1)
                code = act(n)
            finally:
                os._exit(code)
        pids.append(pid)
    os.close(gate_read)
    os.close(gate_write)
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]


def race(url: str, *, children: int, rounds: int) -> None:
    """Let children reserve the same account round after round; FIT of them fit."""
    for n in range(rounds):
        week = str(ServiceWeek.parse("2016-W01").plus(n))

        def reserve(child: int, week: str = week) -> int:
            try:
                request = ask(week, programme=f"programme-{child}", caps=CAPS)
                Ledger.open(url, clock=noon).reserve(request)
            except BudgetExceeded:
                return REFUSED
            return ADMITTED

        codes = at_once(children, reserve)
        assert sorted(codes) == [ADMITTED] * FIT + [REFUSED] * (children - FIT)
    ledger = Ledger.open(url, clock=noon)
    assert held_micro(ledger) == rounds * FIT * LOSS_MICRO
    assert ledger.verify() == ()


def test_eight_processes_at_once_never_overspend(url: str) -> None:
    race(url, children=8, rounds=4)


@pytest.mark.long
def test_sixteen_processes_at_once_never_overspend_in_two_hundred_rounds(url: str) -> None:
    race(url, children=16, rounds=200)


def test_groups_that_race_for_the_files_of_one_path_leave_them_to_one(url: str) -> None:
    """Each group has a lock of its own; whose people they are is asked of all groups."""
    children = 4
    for n in range(12):

        def reserve(child: int, path: str = f"{n}/{{week}}/*") -> int:
            name = f"{path.partition('/')[0]}-{child}"
            try:
                Ledger.open(url, clock=noon).reserve(ask(programme=name, family=name, landing=path))
            except RefusedError:
                return REFUSED
            return ADMITTED

        assert sorted(at_once(children, reserve)) == [ADMITTED] + [REFUSED] * (children - 1)


def test_processes_that_race_for_one_key_make_one_attempt(url: str) -> None:
    def reserve(_: int) -> int:
        Ledger.open(url, clock=noon).reserve(ask())
        return 0

    assert at_once(8, reserve) == [0] * 8
    ledger = Ledger.open(url, clock=noon)
    assert len(ledger.attempts(ask().key)) == 1
    assert held_micro(ledger) == LOSS_MICRO


def test_processes_that_race_to_draw_one_attempt_draw_once(url: str) -> None:
    attempt = Ledger.open(url, clock=noon).reserve(ask())

    def begin(_: int) -> int:
        Ledger.open(url, clock=noon).begin_draw(attempt.attempt_id, attempt.bindings)
        return 0

    assert sorted(at_once(8, begin)) == [0] + [99] * 7


def test_processes_that_open_an_empty_database_migrate_it_once(stores: Stores) -> None:
    empty = stores.empty()

    def open_it(_: int) -> int:
        Ledger.open(empty, clock=noon)
        return 0

    assert at_once(4, open_it) == [0] * 4
    assert Ledger.open(empty, clock=noon).head()[0] == 0


def contend(url: str, *, patience_s: float, rounds: int = 25) -> int:
    """Two threads change the same two rows without the family's lock; return the deadlocks.

    Each waits after its first row until the other has one too, so that unsorted rows deadlock for
    certain. Sorted rows keep the other from its first row: then patience ends, and both go on.
    """
    meeting = threading.Barrier(2)
    week = week_number(0)
    changes = changes_of(
        EntryKind.RESERVED, [posting(TRIP, f"{week}/{mode}/b0") for mode in ("bus", "train")], week
    )
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        accounts.change_accounts(connection, FAMILY, changes, ())
    deadlocks: list[int] = []

    def work(mine: list[Change]) -> None:
        for _ in range(rounds):
            if deadlocks:
                return
            try:
                with engine.begin() as connection:
                    for change in accounts.in_lock_order(mine):
                        accounts.change_accounts(connection, FAMILY, [change])
                        with suppress(threading.BrokenBarrierError):
                            meeting.wait(patience_s)
            except OperationalError:
                deadlocks.append(1)
                meeting.abort()

    both = [
        threading.Thread(target=work, args=(list(order),)) for order in (changes, changes[::-1])
    ]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    return len(deadlocks)


@pytest.mark.parametrize("stores", ["postgresql"], indirect=True)
def test_sorted_rows_do_not_deadlock_even_without_the_family_lock(url: str) -> None:
    assert contend(url, patience_s=2) == 0


@pytest.mark.parametrize("stores", ["postgresql"], indirect=True)
def test_unsorted_rows_deadlock_without_the_family_lock(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounts, "in_lock_order", list)
    assert contend(url, patience_s=60) > 0
