"""What people and audits said, in the database; a repeat of the same word writes nothing."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy.engine import Connection

from turnstile.errors import RefusedError
from turnstile.ledger import attempts
from turnstile.ledger.entries import Entry, EntryKind
from turnstile.ledger.facts import append, facts, head
from turnstile.ledger.records import Assessed, Decision, ReleaseKey


def decisions(connection: Connection, key: ReleaseKey) -> tuple[Decision, ...]:
    """Return what people decided about a key, oldest first."""
    return tuple(
        Decision(
            key=key,
            is_approval=entry.kind is EntryKind.APPROVED,
            person=entry.body["person"],
            role=entry.body["role"],
            reason=entry.body["reason"],
            artefact_digest=entry.body["artefact_digest"],
            at=entry.at,
            sequence=entry.sequence,
        )
        for entry in facts(connection, key, EntryKind.APPROVED, EntryKind.REFUSED)
    )


def decide(
    connection: Connection, at: str, kind: EntryKind, key: ReleaseKey, word: Mapping[str, str]
) -> Decision:
    """Write a decision unless the person's last one, about the same bytes, says the same.

    Args:
        connection: of the caller's transaction.
        at: instant of the fact.
        kind: APPROVED or REFUSED.
        key: release that is decided on.
        word: `person`, `role` and `reason`.
    """
    head(connection, locked=True)  # nobody says the same between the look and the word
    lead = attempts.leading(attempts.attempts(connection, key))
    artefact = lead.artefact_digest if lead else None
    said = [one for one in decisions(connection, key) if one.person == word["person"]]
    now = (kind is EntryKind.APPROVED, artefact, word["role"])
    if said and (said[-1].is_approval, said[-1].artefact_digest, said[-1].role) == now:
        return said[-1]
    append(connection, at, kind, {**word, "key": str(key), "artefact_digest": artefact})
    return decisions(connection, key)[-1]


def assessment(connection: Connection, key: ReleaseKey) -> Assessed | None:
    """Return the last assessment of a key, or None."""
    found = facts(connection, key, EntryKind.ASSESSED)
    if not found:
        return None
    body = found[-1].body
    return Assessed(key, body["artefact_digest"], body["outcome"], body["report_digest"])


def record_assessment(connection: Connection, at: str, found: Assessed) -> Assessed:
    """Write what the gates said of sealed bytes, unless the last assessment is the same."""
    head(connection, locked=True)
    if assessment(connection, found.key) != found:
        body = {
            "key": str(found.key),
            "artefact_digest": found.artefact_digest,
            "outcome": found.outcome,
            "report_digest": found.report_digest,
        }
        append(connection, at, EntryKind.ASSESSED, body)
    return found


def record_audit(connection: Connection, at: str, body: Mapping[str, str]) -> Entry:
    """Write the outcome of an audit unless it is written already.

    Args:
        connection: of the caller's transaction.
        at: instant of the fact.
        body: `key`, `outcome` and `report_digest`.
    """
    key = ReleaseKey.parse(body["key"])
    head(connection, locked=True)
    for entry in facts(connection, key, EntryKind.AUDITED):
        if body.items() <= entry.body.items():
            return entry
    return append(connection, at, EntryKind.AUDITED, body)


def deliveries(connection: Connection, key: ReleaseKey) -> frozenset[str]:
    """Return the portals at which every byte of a release was read back."""
    return frozenset(entry.body["portal"] for entry in facts(connection, key, EntryKind.DELIVERED))


def record_delivery(
    connection: Connection, at: str, key: ReleaseKey, portal: str, manifest_digest: str
) -> None:
    """Write that a release is at a portal unless it is written already.

    Raises:
        RefusedError: the key is not published with this manifest.
    """
    head(connection, locked=True)
    lead = attempts.leading(attempts.attempts(connection, key))
    if lead is None or lead.manifest_digest != manifest_digest:
        raise RefusedError(f"{key} is not published with this manifest; nothing was written")
    if portal not in deliveries(connection, key):
        body = {"key": str(key), "portal": portal, "manifest_digest": manifest_digest}
        append(connection, at, EntryKind.DELIVERED, body)
