"""What people said about correcting a sealed release, in the database: each word once.

A word names the one revision that it is about, and the files that it was shown. It allows a draw of
that key and of no other: the next correction is another key and needs other words.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy.engine import Connection

from turnstile.errors import RefusedError
from turnstile.ledger import attempts
from turnstile.ledger.entries import Entry, EntryKind
from turnstile.ledger.facts import append, facts, head
from turnstile.ledger.records import ReleaseKey, for_the_public

_KINDS = (EntryKind.REVISION_ALLOWED, EntryKind.REVISION_DECLINED)


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
    """Return what was said about a correction, oldest first."""
    return tuple(_word(key, entry) for entry in facts(connection, key, *_KINDS))


def say(connection: Connection, at: str, word: RevisionDecision) -> RevisionDecision:
    """Write a word unless the person's last one says the same about the same files.

    Raises:
        RefusedError: the key corrects nothing that is sealed, or is sealed itself.
    """
    head(connection, locked=True)  # nobody seals the key between the look and the word
    _require_next(connection, word.key)
    last = [one for one in words(connection, word.key) if one.person == word.person]
    said = (word.is_allowed, word.role, word.files_digest)
    if last and (last[-1].is_allowed, last[-1].role, last[-1].files_digest) == said:
        return last[-1]
    body = {
        "key": str(word.key),
        "person": word.person,
        "role": word.role,
        "reason": word.reason,
        "files_digest": word.files_digest,
        **for_the_public(word.public_note),
    }
    append(connection, at, _KINDS[0] if word.is_allowed else _KINDS[1], body)
    return word


def _require_next(connection: Connection, key: ReleaseKey) -> None:
    """Refuse a word about anything but the next correction of a sealed release."""
    if key.revision == 0:
        raise RefusedError(f"{key} is a first release; a correction has a revision above 0")
    attempts.sealed(connection, before(key))
    lead = attempts.leading(attempts.attempts(connection, key))
    if lead is not None and lead.is_sealed:
        raise RefusedError(f"{key} is sealed already; the next correction is another revision")


def _word(key: ReleaseKey, entry: Entry) -> RevisionDecision:
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
