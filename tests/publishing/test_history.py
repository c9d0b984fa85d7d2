"""What the public reads of a week: facts, roles, and texts that were marked for it; no person."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from turnstile.ledger.balances.amounts import Cap
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.records import Bindings, ReleaseKey, Request
from turnstile.privacy.accounts import Posting
from turnstile.privacy.units import ProtectionUnit
from turnstile.publishing.describe.week_history import history

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
KEY, BOUND = ReleaseKey("opal", "2026-W46"), Bindings("p", "d", "s")


@pytest.mark.parametrize(
    ("note", "lines"),
    [
        ("a depot was closed", ["approved by the role release officer: a depot was closed"]),
        ("", []),
    ],
)
def test_only_what_was_marked_for_the_public_is_printed(
    tmp_path: Path, note: str, lines: list[str]
) -> None:
    ledger = Ledger.open(f"sqlite:///{tmp_path}/ledger.sqlite", clock=lambda: NOW)
    posting = Posting(ProtectionUnit.CARD, "ever", 10, 10, 0)
    asked = Request(
        KEY,
        "cards",
        BOUND,
        "plan",
        events=(),
        postings=(posting,),
        week="2026-W46",
        caps=(Cap(ProtectionUnit.CARD, epsilon_micro=1000),),
    )
    attempt = ledger.reserve(asked).attempt_id
    ledger.begin_draw(attempt, BOUND)
    ledger.seal(attempt, "bytes")
    ledger.approve(KEY, "grace", "release_officer", "looks like last week", public_note=note)
    ledger.refuse(KEY, "ada", "release_officer", "I saw a spike")
    texts = [entry.text for entry in history(ledger, KEY, NOW)]
    assert texts == [*lines, "published"]
    (approved, _) = ledger.approvals(KEY)
    assert (approved.person, approved.reason) == ("grace", "looks like last week")
