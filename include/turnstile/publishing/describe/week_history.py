"""What the ledger says happened to a week, as lines for people."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from turnstile.ledger.entries import Entry, EntryKind
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.records import ReleaseKey
from turnstile.publishing.contents import Change


def history(ledger: Ledger, key: ReleaseKey, built_at: datetime) -> tuple[Change, ...]:
    """Return the changes of a week up to this revision, oldest first; this one comes last.

    Names of people and their reasons stay in the ledger; printed is what they marked as public.

    Args:
        ledger: whose entries are public.
        key: release that is being published.
        built_at: instant of this package.
    """
    earlier = [
        change
        for revision in range(key.revision + 1)
        for change in _of(ledger, ReleaseKey(key.programme, key.period, revision))
    ]
    return (*earlier, Change(built_at.date().isoformat(), key.revision, "published"))


def _of(ledger: Ledger, key: ReleaseKey) -> Iterator[Change]:
    """Yield what readers need to know of one revision."""
    for entry in ledger.entries_of(key):
        if text := _text(entry):
            yield Change(entry.at[:10], key.revision, text)


def _text(entry: Entry) -> str | None:
    """Say what an entry means for somebody who reads the data; None for most entries."""
    note = f": {entry.body['public_note']}" if entry.body.get("public_note") else ""
    if entry.kind is EntryKind.RESERVED and entry.body.get("reason"):
        return f"correction{note}"
    if entry.kind is EntryKind.PUBLISHED:
        return "published"
    if entry.kind is EntryKind.WITHDRAWN:
        return f"withdrawn{note}"
    if entry.kind is EntryKind.APPROVED and note:
        return f"approved by the role {entry.body['role'].replace('_', ' ')}{note}"
    return None
