"""What a whole chain may not say: entries of somebody who can hash are read for their meaning."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ledger_asks import ask, noon, published

from turnstile.ledger.entries import Entry, EntryKind, make_entry
from turnstile.ledger.fold import Fold
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.promise import promise_problems

AT = "2016-08-08T12:00:00+00:00"
Body = dict[str, Any]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """On one store: a fold reads entries, wherever they lie."""
    return Ledger.open(f"sqlite:///{tmp_path}/ledger.sqlite", clock=noon)


def _of(kind: EntryKind, entries: list[Entry]) -> Body:
    return dict(next(entry.body for entry in entries if entry.kind is kind))


def _moved(entries: list[Entry]) -> Body:
    return _of(EntryKind.CAP_SET, entries) | {"family": "another"}


def _declared(state: str, draws: int) -> Callable[[list[Entry]], Body]:
    more = {"state": state, "draws": draws, "attempt": "opal/2016-W30/r0#7"}
    return lambda entries: _of(EntryKind.RESERVED, entries) | more


def _of_nobody(entries: list[Entry]) -> Body:
    return _of(EntryKind.SEALED, entries) | {"attempt": "opal/2016-W30/r0#7"}


def _of_another_key(entries: list[Entry]) -> Body:
    return _of(EntryKind.SEALED, entries) | {"key": "opal/2016-W31/r0"}


@pytest.mark.parametrize(
    ("kind", "body", "words"),
    [
        (EntryKind.CAP_SET, _moved, "moves a programme from family"),
        (EntryKind.RESERVED, dict, "its body cannot be read (KeyError)"),
        (EntryKind.LOSS_DECLARED, _declared("reserved", 1), "declares a loss without a draw"),
        (EntryKind.LOSS_DECLARED, _declared("burned", 0), "declares a loss without a draw"),
        (EntryKind.LOSS_DECLARED, _declared("sealed", 1), "which is sealed already"),
        (EntryKind.SEALED, _of_nobody, "concerns an attempt that was never reserved"),
        (EntryKind.SEALED, _of_another_key, "concerns an attempt that was never reserved"),
    ],
)
def test_an_entry_that_may_not_be_is_named_though_its_hash_is_right(
    ledger: Ledger, kind: EntryKind, body: Callable[[list[Entry]], Body], words: str
) -> None:
    published(ledger, ask())
    entries, fold = list(ledger.entries()), Fold()
    assert not [finding for entry in entries for finding in fold.follow(entry)]
    forged = make_entry(fold.chain.head, AT, kind, body(entries) if body is not dict else {})
    findings = [*fold.follow(forged)]
    assert {finding.check for finding in findings} == {"meaning"}
    assert any(words in finding.problem for finding in findings)


@pytest.mark.parametrize("events", [[{}], [{"table": 1}], "none"])
def test_draws_that_cannot_be_read_are_no_promise(ledger: Ledger, events: object) -> None:
    ledger.reserve(ask())
    (reserved,) = [e for e in ledger.entries() if e.kind is EntryKind.RESERVED]
    assert [*promise_problems(reserved)] == []
    forged = make_entry((0, "0" * 64), AT, reserved.kind, dict(reserved.body) | {"events": events})
    assert [*promise_problems(forged)] == ["states draws that cannot be read"]
