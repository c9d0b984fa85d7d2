"""Facts of the ledger: append-only, numbered, each fixed by a hash over canonical bytes. Pure.

An entry is what happened, never what follows from it; every balance is a fold over entries. A kind
with its version keeps its meaning for ever; a new meaning is a new version.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from turnstile.errors import NoEntryError
from turnstile.ledger.encoding import canonical, digest_of

GENESIS = "0" * 64
VERSION = 1

_REPORTED = (
    "attempt",
    "family",
    "landing",
    "person",
    "role",
    "reason",
    "public_note",
    "artefact_digest",
    "manifest_digest",
    "outcome",
    "code",
    "portal",
    "witness",
    "part",
    "period",
    "due",
)


class EntryKind(StrEnum):
    """What can happen, and what version 1 of its body holds."""

    CAP_SET = "cap_set"  # family, programme, caps: replaces the programme's earlier caps
    RESERVED = "reserved"  # attempt, key, family, week, bindings, plan, events, postings, exact
    DRAW_BEGUN = "draw_begun"  # attempt, key, nonce, code: its postings are spent from now on
    DRAW_STARTED = "draw_started"  # attempt, key: after a draw_begun with a nonce; noise may be
    SEALED = "sealed"  # attempt, key, artefact_digest
    BURNED = "burned"  # attempt, key, reason: charged, without a refund
    VOIDED = "voided"  # attempt, key, reason: the hold is released
    PUBLISHED = "published"  # attempt, key, manifest_digest
    WITHDRAWN = "withdrawn"  # attempt, key, person, reason: a flag, without a refund
    APPROVED = "approved"  # key, person, role, reason, artefact_digest
    REFUSED = "refused"  # key, person, role, reason, artefact_digest
    ASSESSED = "assessed"  # key, artefact_digest, outcome, report_digest
    AUDITED = "audited"  # key, outcome, report_digest
    REVISION_ALLOWED = "revision_allowed"  # key, person, role, reason, files_digest
    REVISION_DECLINED = "revision_declined"  # key, person, role, reason, files_digest
    SIGNING_KEY = "signing_key"  # public_line, person, reason: signs notes from here on
    LOG_BEGUN = "log_begun"  # origin, public_line, size, root, person, reason: a tree over entries
    LOG_DISPUTED = "log_disputed"  # origin, cosigner: it has seen another tree than this log's
    WITNESS_ADDED = "witness_added"  # witness, folder, person, reason
    WITNESS_REMOVED = "witness_removed"  # witness, person, reason
    LOSS_DECLARED = "loss_declared"  # as reserved, plus state, draws, digests, files, stands_for
    RECOVERED = "recovered"  # person, reason, recoveries, over, superseded: [[sequence, hash], ...]
    CLOCK_CONFIRMED = "clock_confirmed"  # person, reason: the clock is right from here on
    NO_RELEASE = "no_release"  # key, person, reason: a period without a release
    LANDING_USED = "landing_used"  # landing, family, programme
    DELIVERED = "delivered"  # key, portal, manifest_digest: every byte was read back from there
    DELETED = "deleted"  # programme, period, part, days, due, reason, perhaps person
    BOUNDING_KEY = "bounding_key"  # name, previous, lost, person, reason: of what follows
    FAMILY_ADMITTED = "family_admitted"  # landing, family, person, reason


@dataclass(frozen=True, slots=True)
class Entry:
    """One fact.

    Args:
        sequence: 1, 2, 3 and so on, without a gap.
        previous: hash of the entry before, 64 zeros for the first.
        at: when it was written, ISO 8601 in UTC.
        kind: what happened.
        version: of the kind.
        body: particulars of the kind.
        record: the canonical text of all the above; what the hash is made over.
        hash: SHA-256 of the record, hexadecimal.
    """

    sequence: int
    previous: str
    at: str
    kind: EntryKind
    version: int
    body: Mapping[str, Any]
    record: str
    hash: str

    @property
    def key(self) -> str | None:
        """Release key concerned, as text."""
        return self.body.get("key")

    @property
    def attempt_id(self) -> str | None:
        """Attempt concerned."""
        return self.body.get("attempt")

    @property
    def particulars(self) -> tuple[tuple[str, str], ...]:
        """What a list shows of the body beside the key, by name: no events, no postings."""
        said = ((name, str(self.body[name])) for name in _REPORTED if self.body.get(name))
        return tuple((name, in_one_line(words)) for name, words in said)


def in_one_line(words: str) -> str:
    r"""Return what a person wrote so that it ends no line and turns no text around.

    Examples:
        >>> print(in_one_line("late, sorry\n[now] opal: all is well"))
        late, sorry\u000a[now] opal: all is well
    """
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in words)


def instant(at: datetime) -> str:
    """Write an instant as entries and the lines of journals carry it: UTC, to the second."""
    return at.astimezone(UTC).isoformat(timespec="seconds")


def make_entry(head: tuple[int, str], at: str, kind: EntryKind, body: Mapping[str, Any]) -> Entry:
    """Return the entry that follows a head.

    Args:
        head: sequence and hash of the last entry; `(0, GENESIS)` of an empty ledger.
        at: ISO 8601 in UTC.
        kind: what happened.
        body: its particulars, JSON values without floats.
    """
    sequence = head[0] + 1
    record = canonical(
        {
            "sequence": sequence,
            "previous": head[1],
            "at": at,
            "kind": kind.value,
            "version": VERSION,
            "body": body,
        }
    )
    return Entry(sequence, head[1], at, kind, VERSION, body, record, digest_of(record))


def read_entry(record: str, written_hash: str) -> Entry:
    """Read an entry from its record.

    Raises:
        NoEntryError: the record is not one of version 1, or names an unknown kind.
    """
    try:
        parts = json.loads(record)
        kind, version = EntryKind(parts["kind"]), parts["version"]
        sequence, previous, at, body = (parts[n] for n in ("sequence", "previous", "at", "body"))
    except (KeyError, TypeError, ValueError) as error:
        raise NoEntryError("the record is not an entry; see turnstile doctor") from error
    if version != VERSION:
        raise NoEntryError(f"version {version} of {kind} is unknown; use a newer turnstile")
    return Entry(sequence, previous, at, kind, VERSION, body, record, written_hash)
