"""The ledger's promises, each a function of a fresh ledger that fails if the promise is broken.

`test_promises.py` keeps them on every store; `test_mutants.py` breaks the code and expects each
named promise to notice.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from ledger_asks import (
    BINDINGS,
    CAPS,
    LOSS_MICRO,
    TRIP,
    ask,
    drawn,
    held_micro,
    published,
    sealed,
    spent_micro,
    week_number,
)
from sqlalchemy import event

from turnstile.errors import BudgetExceeded, IntegrityError, RefusedError, RevisionNeeded
from turnstile.ledger.balances.amounts import Cap
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.states import ReleaseState


def a_draw_is_spent_before_it_begins(ledger: Ledger) -> None:
    attempt = ledger.reserve(ask())
    assert (spent_micro(ledger), held_micro(ledger)) == (0, LOSS_MICRO)
    ledger.begin_draw(attempt.attempt_id, BINDINGS)
    assert (spent_micro(ledger), held_micro(ledger)) == (LOSS_MICRO, 0)


def a_burned_draw_stays_charged(ledger: Ledger) -> None:
    ledger.burn(drawn(ledger, ask()).attempt_id, "the process died")
    assert spent_micro(ledger) == LOSS_MICRO


def a_voided_hold_costs_nothing(ledger: Ledger) -> None:
    ledger.void(ledger.reserve(ask()).attempt_id, "validation failed")
    assert (spent_micro(ledger), held_micro(ledger)) == (0, 0)


def a_sealed_key_answers_with_its_bytes_and_costs_nothing(ledger: Ledger) -> None:
    first = sealed(ledger, ask())
    again = ledger.reserve(ask())
    assert (again.attempt_id, again.artefact_digest) == (first.attempt_id, "artefact-1")
    assert (spent_micro(ledger), held_micro(ledger)) == (LOSS_MICRO, 0)


def a_sealed_key_ignores_late_rows(ledger: Ledger) -> None:
    sealed(ledger, ask())
    late = ask(bindings=replace(BINDINGS, snapshot_digest="snapshot-2"))
    assert ledger.reserve(late).artefact_digest == "artefact-1"
    assert spent_micro(ledger) == LOSS_MICRO


def a_retry_of_a_reservation_resumes_it(ledger: Ledger) -> None:
    first = ledger.reserve(ask())
    assert ledger.reserve(ask()).attempt_id == first.attempt_id
    assert held_micro(ledger) == LOSS_MICRO


def a_retry_of_a_draw_burns_it_and_pays_again(ledger: Ledger) -> None:
    first = drawn(ledger, ask())
    second = ledger.reserve(ask())
    assert second.attempt_id != first.attempt_id
    assert (spent_micro(ledger), held_micro(ledger)) == (LOSS_MICRO, LOSS_MICRO)
    with pytest.raises(RefusedError, match="burned"):
        ledger.seal(first.attempt_id, "a zombie's artefact")


def a_third_draw_needs_a_person(ledger: Ledger) -> None:
    for _ in range(2):
        drawn(ledger, ask())
    with pytest.raises(RefusedError, match="person"):
        ledger.reserve(ask())
    assert all(attempt.state is ReleaseState.BURNED for attempt in ledger.attempts(ask().key))
    assert spent_micro(ledger) == 2 * LOSS_MICRO


def no_cap_of_an_account_is_passed(ledger: Ledger) -> None:
    caps = (Cap(TRIP, epsilon_micro=LOSS_MICRO + 1),)
    ledger.reserve(ask(caps=caps))
    with pytest.raises(BudgetExceeded):
        ledger.reserve(ask(caps=caps, programme="other"))
    assert held_micro(ledger, "2016-07-25/bus/b0") == LOSS_MICRO


def no_cap_of_a_window_is_passed(ledger: Ledger) -> None:
    for n in (0, 1, 3):
        drawn(ledger, ask(week_number(n)))
    with pytest.raises(BudgetExceeded):  # a backfill between charged weeks
        ledger.reserve(ask(week_number(2)))
    ledger.reserve(ask(week_number(4)))  # its windows no longer hold the first week
    assert spent_micro(ledger) == 3 * LOSS_MICRO


def rows_are_locked_in_sorted_order(ledger: Ledger) -> None:
    seen: list[tuple[str, str, str]] = []

    def listen(_c: object, _u: object, statement: str, parameters: object, *_: object) -> None:
        if statement.startswith("UPDATE account"):
            assert isinstance(parameters, list | tuple)
            many = parameters if isinstance(parameters, list) else [parameters]
            seen.extend(_row_of(row_values) for row_values in many)

    engine = ledger._store._engine
    event.listen(engine, "before_cursor_execute", listen)
    attempt = ledger.reserve(ask())
    held = list(seen)
    seen.clear()
    ledger.begin_draw(attempt.attempt_id, BINDINGS)
    event.remove(engine, "before_cursor_execute", listen)
    assert held == sorted(held)
    assert seen == held
    assert len(held) == 3


def _row_of(parameters: object) -> tuple[str, str, str]:
    """Unit, scope and week among a statement's parameters."""
    values = parameters.values() if isinstance(parameters, dict) else tuple(parameters)  # type: ignore[call-overload]
    unit, scope, week = [v for v in values if isinstance(v, str) and v != "opal_cards"]
    return unit, scope, week


def a_changed_programme_is_refused_with_its_differences(ledger: Ledger) -> None:
    sealed(ledger, ask())
    other = ask(bindings=replace(BINDINGS, programme_digest="programme-2", domain_digest="d-2"))
    with pytest.raises(RevisionNeeded, match="bound to other terms: programme was .*; domain was "):
        ledger.reserve(other)


def what_was_reserved_is_what_draws(ledger: Ledger) -> None:
    attempt = ledger.reserve(ask())
    with pytest.raises(RevisionNeeded, match="snapshot"):
        ledger.begin_draw(attempt.attempt_id, replace(BINDINGS, snapshot_digest="snapshot-2"))
    assert spent_micro(ledger) == 0


def one_reservation_draws_once(ledger: Ledger) -> None:
    attempt = drawn(ledger, ask())
    with pytest.raises(RefusedError, match="drawing"):
        ledger.begin_draw(attempt.attempt_id, BINDINGS)


def a_key_has_one_artefact_for_ever(ledger: Ledger) -> None:
    attempt = sealed(ledger, ask())
    assert ledger.seal(attempt.attempt_id, "artefact-1") == attempt
    with pytest.raises(IntegrityError, match="another artefact"):
        ledger.seal(attempt.attempt_id, "artefact-2")


def a_release_is_published_with_one_manifest(ledger: Ledger) -> None:
    attempt = sealed(ledger, ask())
    assert not ledger.is_published(attempt.key)
    ledger.publish(attempt.key, "manifest-1")
    first = [(e.sequence, e.hash) for e in ledger.entries() if e.kind == "published"]
    ledger.publish(attempt.key, "manifest-1")
    assert [(e.sequence, e.hash) for e in ledger.entries() if e.kind == "published"] == first
    assert len(first) == 1
    assert ledger.is_published(attempt.key)
    with pytest.raises(IntegrityError, match="another manifest"):
        ledger.publish(attempt.key, "manifest-2")


def only_a_hold_times_out(ledger: Ledger) -> None:
    attempt = drawn(ledger, ask())
    with pytest.raises(RefusedError, match="drawing"):
        ledger.void(attempt.attempt_id, "timed out")


def a_revision_is_charged_in_full(ledger: Ledger) -> None:
    published(ledger, ask())
    sealed(ledger, ask(revision=1), "artefact-2")
    assert spent_micro(ledger) == 2 * LOSS_MICRO


def chain_and_accounts_agree_after_a_whole_life(ledger: Ledger) -> None:
    published(ledger, ask())
    ledger.void(ledger.reserve(ask(week_number(1))).attempt_id, "no data")
    drawn(ledger, ask(week_number(1)))
    ledger.reserve(ask(week_number(1), caps=(*CAPS, Cap(TRIP, rho_nano=10**12))))
    ledger.withdraw(ask().key, "officer", "wrong stops")
    assert ledger.verify() == ()


PROMISES = tuple(
    rule
    for name, rule in list(globals().items())
    if callable(rule) and getattr(rule, "__module__", "") == __name__ and not name.startswith("_")
)
