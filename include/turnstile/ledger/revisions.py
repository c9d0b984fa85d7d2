"""What people said about correcting a sealed release, in the database: each word once.

A word names the one revision that it is about, and the files that it was shown. It allows a draw of
that key and of no other: the next correction is another key and needs other words. Who states that
a correction has no release says no to all files that others had said yes to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlalchemy.engine import Connection

from turnstile.ledger import facts
from turnstile.ledger.entries import Entry, EntryKind
from turnstile.ledger.records import ReleaseKey

KINDS = (EntryKind.REVISION_ALLOWED, EntryKind.REVISION_DECLINED)
TAKEN_BACK_BY = (EntryKind.NO_RELEASE,)


@dataclass(frozen=True, slots=True)
class RevisionDecision:
    """What a person said about a correction.

    Args:
        key: of the correction, `opal/2016-W30/r1`.
        is_allowed: whether it may be drawn.
        person: who said so.
        role: in which role.
        reason: why, in the person's words.
        files_digest: keyed commitment to the landing files that the word is about.
        public_note: what the public is to be told; the reason stays internal.
    """

    key: ReleaseKey
    is_allowed: bool
    person: str
    role: str
    reason: str
    files_digest: str
    public_note: str = ""

    @property
    def is_approval(self) -> bool:
        """Whether it says yes, as the rule of approvals asks."""
        return self.is_allowed


def before(key: ReleaseKey) -> ReleaseKey:
    """Return the revision that a revision corrects."""
    return ReleaseKey(key.programme, key.period, key.revision - 1)


def next_after(key: ReleaseKey) -> ReleaseKey:
    """Return the revision that would correct a release."""
    return ReleaseKey(key.programme, key.period, key.revision + 1)


def words(connection: Connection, key: ReleaseKey) -> tuple[RevisionDecision, ...]:
    """Return what was said of a correction, oldest first.

    What was allowed before it was stated to have no release, who stated that has declined.
    """
    said: list[RevisionDecision] = []
    for entry in facts.facts(connection, key, *KINDS, *TAKEN_BACK_BY):
        if entry.kind in TAKEN_BACK_BY:
            said = [_taken_back(word, entry) for word in said]
        else:
            said.append(to_word(key, entry))
    return tuple(said)


def _taken_back(word: RevisionDecision, stated: Entry) -> RevisionDecision:
    """Return a word as it stands after a statement that there is no release."""
    if not word.is_allowed:
        return word
    person, reason = stated.body["person"], stated.body["reason"]
    return replace(word, is_allowed=False, person=person, reason=reason, public_note="")


def to_word(key: ReleaseKey, entry: Entry) -> RevisionDecision:
    """Read a word."""
    body = entry.body
    return RevisionDecision(
        key=key,
        is_allowed=entry.kind is EntryKind.REVISION_ALLOWED,
        person=body["person"],
        role=body["role"],
        reason=body["reason"],
        files_digest=body["files_digest"],
        public_note=body.get("public_note", ""),
    )
