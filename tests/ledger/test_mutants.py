"""Broken ledgers: each classic mistake is made on purpose, and a named promise has to notice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import ledger_rules
import pytest
from ledger_asks import ask, drawn

from turnstile.errors import TurnstileError
from turnstile.ledger import attempts, charging, states
from turnstile.ledger.balances import accounts
from turnstile.ledger.balances.changes import NOTHING, Change, amounts_by_row, changes_of
from turnstile.ledger.entries import EntryKind
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.records import ReleaseKey, Request
from turnstile.ledger.states import ReserveAnswer, Transition

Patch = pytest.MonkeyPatch
RESERVE, MAKE_TRANSITION = Ledger.reserve, attempts.make_transition


def spend_after_the_draw(patch: Patch) -> None:
    def late(kind: EntryKind, postings: object, week: str) -> tuple[Change, ...]:
        later = {EntryKind.DRAW_BEGUN: EntryKind.SEALED}.get(kind, kind)
        return changes_of(later, postings, week)  # type: ignore[arg-type]

    patch.setattr(attempts, "changes_of", late)


def refund_on_burn(patch: Patch) -> None:
    def with_refund(
        connection: object, at: str, attempt: object, transition: Transition, **words: str
    ) -> object:
        entry = MAKE_TRANSITION(connection, at, attempt, transition, **words)  # type: ignore[arg-type]
        if transition is Transition.BURN:
            reserved = attempts.entry_at(connection, attempt.reserved_sequence)  # type: ignore[attr-defined, arg-type]
            assert reserved is not None
            amounts = amounts_by_row(attempts.postings_in(reserved.body), attempt.week)  # type: ignore[attr-defined]
            back = [Change(row, amount.negated(), NOTHING) for row, amount in amounts.items()]
            accounts.change_accounts(connection, attempt.family, back)  # type: ignore[attr-defined, arg-type]
        return entry

    patch.setattr(attempts, "make_transition", with_refund)


def no_sealed_check(patch: Patch) -> None:
    def answer(state: states.ReleaseState) -> ReserveAnswer:
        real = states.answer_to_reserve(state)
        return ReserveAnswer.OPEN_NEW if real is ReserveAnswer.ANSWER_SEALED else real

    patch.setattr(charging, "answer_to_reserve", answer)


def no_cap_check(patch: Patch) -> None:
    patch.setattr(accounts, "first_excess", lambda *_: None)


def windows_that_look_back_only(patch: Patch) -> None:
    from turnstile.ledger import admission
    from turnstile.ledger.balances import changes

    real = admission.most_spent_window

    def back(row: object, week: str, window_weeks: int, taken: object) -> object:
        def until(account_row: changes.AccountRow) -> changes.Amount:
            return taken(account_row) if account_row.week <= week else NOTHING  # type: ignore[operator, no-any-return]

        return real(row, week, window_weeks, until)  # type: ignore[arg-type]

    patch.setattr(admission, "most_spent_window", back)


def unsorted_updates(patch: Patch) -> None:
    patch.setattr(accounts, "in_lock_order", lambda changes: list(reversed(changes)))


def the_snapshot_in_the_key(patch: Patch) -> None:
    def reserve(self: Ledger, request: Request) -> object:
        period = f"{request.key.period}.{request.bindings.snapshot_digest}"
        return RESERVE(self, replace(request, key=ReleaseKey(request.key.programme, period)))

    patch.setattr(Ledger, "reserve", reserve)


def a_second_hold_on_retry(patch: Patch) -> None:
    patch.setattr(charging, "answer_to_reserve", lambda _: ReserveAnswer.OPEN_NEW)


def a_draw_without_a_limit(patch: Patch) -> None:
    patch.setattr(charging, "DRAWS_MAX", 9)


def a_draw_that_forgets_its_bindings(patch: Patch) -> None:
    patch.setattr(charging, "_other_bindings", lambda *_: None)


MUTANTS: dict[Callable[[Patch], None], Callable[[Ledger], None]] = {
    spend_after_the_draw: ledger_rules.a_draw_is_spent_before_it_begins,
    refund_on_burn: ledger_rules.a_burned_draw_stays_charged,
    no_sealed_check: ledger_rules.a_sealed_key_answers_with_its_bytes_and_costs_nothing,
    no_cap_check: ledger_rules.no_cap_of_a_window_is_passed,
    windows_that_look_back_only: ledger_rules.no_cap_of_a_window_is_passed,
    unsorted_updates: ledger_rules.rows_are_locked_in_sorted_order,
    the_snapshot_in_the_key: ledger_rules.a_sealed_key_ignores_late_rows,
    a_second_hold_on_retry: ledger_rules.a_retry_of_a_reservation_resumes_it,
    a_draw_without_a_limit: ledger_rules.a_third_draw_needs_a_person,
    a_draw_that_forgets_its_bindings: ledger_rules.what_was_reserved_is_what_draws,
}


@pytest.mark.parametrize(("mutate", "promise"), MUTANTS.items(), ids=lambda f: f.__name__)
def test_a_broken_ledger_breaks_its_promise(
    mutate: Callable[[Patch], None],
    promise: Callable[[Ledger], None],
    ledger: Ledger,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mutate(monkeypatch)
    with pytest.raises((AssertionError, TurnstileError, pytest.fail.Exception)):
        promise(ledger)


def test_without_the_cap_check_the_database_still_refuses(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_cap_check(monkeypatch)
    for name in ("opal", "other"):
        drawn(ledger, ask(programme=name))
    with pytest.raises(TurnstileError, match="guard"):
        ledger.reserve(ask(programme="third"))
