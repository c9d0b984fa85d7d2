"""What a whole chain may not say: entries of somebody who can hash are read for their meaning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ledger_asks import ask, drawn, noon, published

from turnstile.ledger.entries import EntryKind, make_entry
from turnstile.ledger.fold import Fold
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.promise import promise_problems

AT = "2016-08-08T12:00:00+00:00"
Body = dict[str, Any]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """On one store: a fold reads entries, wherever they lie."""
    return Ledger.open(f"sqlite:///{tmp_path}/ledger.sqlite", clock=noon)


RESERVED, SEALED, DECLARED = EntryKind.RESERVED, EntryKind.SEALED, EntryKind.LOSS_DECLARED
PUBLIC = {"attempt": "opal/2016-W30/r0#1", "key": "opal/2016-W30/r0"}
DRAWN = {"attempt": "opal/2016-W31/r0#1", "key": "opal/2016-W31/r0"}
HELD = {"attempt": "opal/2016-W32/r0#1", "key": "opal/2016-W32/r0"}
NOBODYS = {"attempt": "opal/2016-W30/r0#7"}
NEXT_WEEK = {"attempt": "opal/2016-W33/r0#1", "key": "opal/2016-W33/r0", "week": "2016-W33"}
RIGHT, MOVED = "", "concerns an attempt that was never reserved"
NO_LOSS, NO_WITHDRAWAL = "declares a loss without a draw", "withdraws what was not published"
NO_START, NO_CORRECTION = "starts a draw that was not charged", "which is not the next correction"


@pytest.mark.parametrize(
    ("kind", "like", "words", "problem"),
    [
        (EntryKind.CAP_SET, EntryKind.CAP_SET, {"family": "another"}, "moves a programme from"),
        (RESERVED, None, {}, "its body cannot be read (KeyError)"),
        (RESERVED, RESERVED, PUBLIC, "reserves opal/2016-W30/r0, which is open or sealed"),
        (RESERVED, RESERVED, HELD, "reserves opal/2016-W32/r0, which is open or sealed"),
        (RESERVED, RESERVED, NEXT_WEEK, "passes the cap on card (2016-W30..2016-W33) in epsilon"),
        (RESERVED, RESERVED, NEXT_WEEK | {"postings": []}, "the cap on card (unstated)"),
        (DECLARED, RESERVED, NOBODYS | {"state": "reserved", "draws": 1}, NO_LOSS),
        (DECLARED, RESERVED, NOBODYS | {"state": "burned", "draws": 0}, NO_LOSS),
        (DECLARED, RESERVED, NOBODYS | {"state": "burned", "draws": 1}, RIGHT),
        (DECLARED, RESERVED, NOBODYS | {"state": "sealed", "draws": 1}, "is sealed already"),
        (DECLARED, RESERVED, NEXT_WEEK | {"state": "sealed", "draws": 1}, RIGHT),
        (SEALED, SEALED, NOBODYS, MOVED),
        (SEALED, SEALED, {"key": "opal/2016-W31/r0"}, MOVED),
        (SEALED, SEALED, HELD, "states seal of an attempt that is reserved"),
        (SEALED, SEALED, DRAWN, RIGHT),
        (EntryKind.WITHDRAWN, None, PUBLIC, RIGHT),
        (EntryKind.WITHDRAWN, None, DRAWN, NO_WITHDRAWAL),
        (EntryKind.WITHDRAWN, None, NOBODYS, NO_WITHDRAWAL),
        (EntryKind.DRAW_STARTED, None, DRAWN, RIGHT),
        (EntryKind.DRAW_STARTED, None, HELD, NO_START),
        (EntryKind.DRAW_STARTED, None, NOBODYS, NO_START),
        (EntryKind.REVISION_ALLOWED, None, {"key": "opal/2016-W30/r1"}, RIGHT),
        (EntryKind.REVISION_ALLOWED, None, {"key": "opal/2016-W30/r2"}, NO_CORRECTION),
        (EntryKind.REVISION_ALLOWED, None, {"key": "opal/2016-W31/r1"}, NO_CORRECTION),
        (EntryKind.SIGNING_KEY, None, {}, "its body cannot be read (KeyError)"),
    ],
)
def test_an_entry_that_may_not_be_is_named_though_its_hash_is_right(
    ledger: Ledger, kind: EntryKind, like: EntryKind | None, words: Body, problem: str
) -> None:
    published(ledger, ask())
    drawn(ledger, ask("2016-W31"))
    ledger.reserve(ask("2016-W32"))
    entries, fold = list(ledger.entries()), Fold()
    assert not [finding for entry in entries for finding in fold.follow(entry)]
    body = next((dict(entry.body) for entry in entries if entry.kind is like), {}) | words
    before = dict(fold.attempts)
    findings = [*fold.follow(make_entry(fold.chain.head, AT, kind, body))]
    if kind in {SEALED, EntryKind.WITHDRAWN}:
        assert (fold.attempts == before) == bool(problem)  # what may not be moves nothing
    assert {finding.check for finding in findings} == ({"meaning"} if problem else set())
    assert problem in "".join(finding.problem for finding in findings)
    if kind is EntryKind.DRAW_STARTED:  # whatever was said of the first, nothing starts again
        again = [*fold.follow(make_entry(fold.chain.head, AT, kind, body))]
        assert [finding.problem for finding in again] == [NO_START + ", or started before"]


def test_a_loss_below_what_the_draws_cost_is_no_promise(ledger: Ledger) -> None:
    """In one figure alone, too; and what costs without limit is covered by no figure."""
    ledger.reserve(ask())
    (reserved,) = [e for e in ledger.entries() if e.kind is EntryKind.RESERVED]
    endless = ask(epsilon_micro=None)
    forged: list[Body] = [{"events": [*endless.events], "plan_digest": endless.plan_digest}]
    for figure in (2, 3):
        postings = [[*stated] for stated in reserved.body["postings"]]
        postings[0][figure] -= 1
        forged.append({"postings": postings})
    for words in forged:
        entry = make_entry((0, "0" * 64), AT, reserved.kind, dict(reserved.body) | words)
        (problem,) = promise_problems(entry)
        assert problem.startswith("states less loss for")


@pytest.mark.parametrize("events", [[{}], [{"table": 1}], "none"])
def test_draws_that_cannot_be_read_are_no_promise(ledger: Ledger, events: object) -> None:
    ledger.reserve(ask())
    (reserved,) = [e for e in ledger.entries() if e.kind is EntryKind.RESERVED]
    assert [*promise_problems(reserved)] == []
    forged = make_entry((0, "0" * 64), AT, reserved.kind, dict(reserved.body) | {"events": events})
    assert [*promise_problems(forged)] == ["states draws that cannot be read"]
