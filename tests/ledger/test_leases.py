"""A lease delays a burn by the database's clock, on both stores; it moves no loss and no entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ledger_asks import BINDINGS, ask, noon, spent_micro

from turnstile.errors import DrawGoesOn, RefusedError
from turnstile.ledger import leases
from turnstile.ledger.custody.custody import Custody
from turnstile.ledger.entries import EntryKind
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.records import Attempt
from turnstile.ledger.states import ReleaseState

KEY = ask().key
HERE, ELSEWHERE = "this machine/1/2", "another machine/1/2"


def _drawing(ledger: Ledger, holder: str) -> Attempt:
    held = ledger.reserve(ask())
    return ledger.begin_draw(held.attempt_id, BINDINGS, holder=holder)


def _end_lease(ledger: Ledger, attempt_id: str) -> None:
    """Let a lease's time be over, as if its process had said nothing for a minute."""
    ended = leases.LEASE.update().where(leases.LEASE.c.attempt_id == attempt_id).values(ends_s=0)
    ledger._store.write(lambda connection: connection.execute(ended))


def test_a_draw_of_another_process_is_not_burned_while_its_lease_runs(ledger: Ledger) -> None:
    attempt, head = _drawing(ledger, ELSEWHERE), ledger.head()
    for act in (
        lambda: ledger.reserve(ask(), holder=HERE),
        lambda: ledger.reserve(ask()),
        lambda: ledger.burn(attempt.attempt_id, "it looks dead", person="ada"),
    ):
        with pytest.raises(DrawGoesOn, match="being drawn by a process at this moment"):
            act()
    assert ledger.living_draws() == {attempt.attempt_id}
    assert ledger.head() == head
    assert ledger.seal(attempt.attempt_id, "bytes").is_sealed
    assert ledger.living_draws() == frozenset()
    assert ledger.reserve(ask(), holder=HERE).is_sealed


def test_what_is_held_or_being_drawn_is_not_stated_to_have_no_release(ledger: Ledger) -> None:
    held, head = ledger.reserve(ask()), ledger.head()
    with pytest.raises(RefusedError, match=f"turnstile ledger void {KEY} --reason TEXT"):
        ledger.declare_no_release(KEY, "ada", "strike")
    assert ledger.head() == head
    ledger.void(held.attempt_id, "strike", person="ada")
    ledger.declare_no_release(KEY, "ada", "strike")
    drawn, head = _drawing(ledger, ELSEWHERE), ledger.head()
    with pytest.raises(RefusedError, match=f"turnstile ledger burn {KEY} --reason TEXT"):
        ledger.declare_no_release(KEY, "ada", "strike")
    assert ledger.head() == head
    _end_lease(ledger, drawn.attempt_id)
    ledger.declare_no_release(KEY, "ada", "strike")
    assert ledger.head() != head


@pytest.mark.parametrize("holder", [ELSEWHERE, ""])
def test_a_lease_that_ended_burns_and_charges_in_full_and_a_late_seal_is_refused(
    ledger: Ledger, holder: str
) -> None:
    late = _drawing(ledger, holder)
    before = spent_micro(ledger)
    assert before
    if holder:
        _end_lease(ledger, late.attempt_id)
    again = ledger.reserve(ask(), holder=HERE)
    ledger.begin_draw(again.attempt_id, BINDINGS, holder=HERE)
    assert [attempt.state for attempt in ledger.attempts(KEY)] == [
        ReleaseState.BURNED,
        ReleaseState.DRAWING,
    ]
    assert spent_micro(ledger) == 2 * before
    with pytest.raises(RefusedError):
        ledger.seal(late.attempt_id, "late bytes")
    ledger.renew_lease(late.attempt_id, holder)  # a beat that comes late wakes nothing
    assert ledger.living_draws() == {again.attempt_id}


def test_whoever_holds_the_same_lock_knows_that_the_draw_is_dead(ledger: Ledger) -> None:
    _drawing(ledger, HERE)
    assert ledger.reserve(ask(), holder=HERE).is_held
    assert ledger.attempts(KEY)[0].state is ReleaseState.BURNED


@pytest.mark.parametrize(("renew", "lives"), [(HERE, True), (ELSEWHERE, False), (None, False)])
def test_a_lease_runs_as_long_as_its_own_holder_renews_it(
    ledger: Ledger, renew: str | None, *, lives: bool
) -> None:
    attempt = _drawing(ledger, HERE)
    _end_lease(ledger, attempt.attempt_id)
    if renew is not None:
        ledger.renew_lease(attempt.attempt_id, renew)
    assert bool(ledger.living_draws()) is lives


def test_the_chain_knows_nothing_of_leases(ledger: Ledger, url: str) -> None:
    attempt = _drawing(ledger, ELSEWHERE)
    entries = list(ledger.entries())
    ledger.renew_lease(attempt.attempt_id, ELSEWHERE)
    again = Ledger.open(url, clock=noon)
    assert list(again.entries()) == entries
    assert again.verify() == ()
    assert all(ELSEWHERE not in str(entry.body) for entry in entries)


@pytest.fixture
def watched(url: str, tmp_path: Path) -> Callable[[], Ledger]:
    """Opens one ledger that has a witness, as each process does for itself."""

    def opened() -> Ledger:
        return Ledger.open(
            url,
            clock=noon,
            witnesses=(tmp_path / "witness",),
            public=tmp_path / "public",
            embargoed=tmp_path / "embargoed",
            key=tmp_path / "key.pem",
        )

    return opened


@contextmanager
def _before_its_start(act: Callable[[], object]) -> Iterator[None]:
    """Let something happen when a draw is charged, and before it starts."""
    with pytest.MonkeyPatch.context() as patch:
        real = Custody.note

        def note(custody: Custody) -> None:
            real(custody)
            patch.undo()
            act()

        patch.setattr(Custody, "note", note)
        yield


def test_a_draw_that_is_charged_is_started_by_nobody_else_while_its_lease_runs(
    watched: Callable[[], Ledger],
) -> None:
    held = watched().reserve(ask())

    def die() -> None:
        raise OSError

    with _before_its_start(die), pytest.raises(OSError, match="^$"):
        watched().begin_draw(held.attempt_id, BINDINGS, holder=ELSEWHERE)
    charged = spent_micro(watched())
    with pytest.raises(DrawGoesOn, match="being drawn by a process at this moment"):
        watched().begin_draw(held.attempt_id, BINDINGS, holder=HERE)
    _end_lease(watched(), held.attempt_id)
    assert watched().begin_draw(held.attempt_id, BINDINGS, holder=HERE).is_drawing
    assert spent_micro(watched()) == charged


@pytest.mark.parametrize("is_over", [True, False])
def test_of_two_processes_that_charged_one_draw_one_starts_it(
    watched: Callable[[], Ledger], *, is_over: bool
) -> None:
    """The first was so slow that its lease ended; it finds the other drawing, or sealed."""
    held = watched().reserve(ask())

    def overtake() -> None:
        ledger = watched()
        _end_lease(ledger, held.attempt_id)
        ledger.begin_draw(held.attempt_id, BINDINGS, holder=HERE)
        if is_over:
            ledger.seal(held.attempt_id, "bytes")

    with _before_its_start(overtake), pytest.raises(RefusedError) as refused:
        watched().begin_draw(held.attempt_id, BINDINGS, holder=ELSEWHERE)
    assert isinstance(refused.value, DrawGoesOn) is not is_over
    started = [e for e in watched().entries() if e.kind is EntryKind.DRAW_STARTED]
    assert len(started) == 1
    assert {finding.check for finding in watched().verify()} == ({"sealed"} if is_over else set())


@pytest.mark.parametrize("is_burned", [True, False])
def test_a_draw_that_another_burned_or_began_in_between_is_not_started(
    watched: Callable[[], Ledger], *, is_burned: bool
) -> None:
    """Neither has a lease: nothing but the state itself tells."""
    held = watched().reserve(ask())

    def overtake() -> None:
        if is_burned:
            watched().burn(held.attempt_id, "it looks dead", person="ada")
        else:
            watched().begin_draw(held.attempt_id, BINDINGS)

    with _before_its_start(overtake), pytest.raises(RefusedError):
        watched().begin_draw(held.attempt_id, BINDINGS)
    started = [e for e in watched().entries() if e.kind is EntryKind.DRAW_STARTED]
    assert len(started) == (0 if is_burned else 1)


def test_a_witness_knows_the_charge_before_the_draw_starts(
    watched: Callable[[], Ledger], tmp_path: Path
) -> None:
    held, known = watched().reserve(ask()), list[bool]()

    def look() -> None:
        texts = [path.read_text() for path in (tmp_path / "witness/entries").rglob("*.json*")]
        known.append(any("draw_begun" in text for text in texts))

    with _before_its_start(look):
        assert watched().begin_draw(held.attempt_id, BINDINGS).is_drawing
    assert known == [True]


def test_whoever_holds_a_lock_ends_the_lease_under_it_and_no_other(ledger: Ledger) -> None:
    attempt = _drawing(ledger, HERE)
    ledger.end_lease(ELSEWHERE)
    assert ledger.living_draws() == {attempt.attempt_id}
    ledger.end_lease(HERE)
    assert ledger.living_draws() == frozenset()


def test_a_lease_has_ended_in_the_second_that_it_ends_in(ledger: Ledger) -> None:
    attempt = _drawing(ledger, HERE)
    ends = leases.LEASE.update().where(leases.LEASE.c.attempt_id == attempt.attempt_id)
    ledger._store.write(lambda c: c.execute(ends.values(ends_s=leases._now_s(c))))
    assert ledger.living_draws() == frozenset()
