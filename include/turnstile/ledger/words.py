"""What people, audits and portals said, and which keys and witnesses are named: facts.

A repeat of the same word writes nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy.engine import Connection

from turnstile.errors import InputError, RefusedError
from turnstile.ledger import attempts, facts, leases, revisions
from turnstile.ledger.custody.custody import Custody
from turnstile.ledger.custody.known_history import parties_in
from turnstile.ledger.custody.shipped import make_witness, witness_id
from turnstile.ledger.custody.signed_note import Signer
from turnstile.ledger.custody.witness import Witnesses, naming
from turnstile.ledger.database.store import Store
from turnstile.ledger.entries import Entry, EntryKind, instant
from turnstile.ledger.parties import Parties
from turnstile.ledger.records import Assessed, Attempt, Decision, ReleaseKey, for_the_public
from turnstile.ledger.refusals import letting_go


@dataclass(frozen=True, slots=True)
class Repeat:
    """When a word says again what its speaker said last.

    Args:
        by: particulars that tell one speaker from another.
        same: particulars in which a repeat agrees with the last word.
        among: kinds between which a speaker may change; none where there is but one.
        taken_back_by: kinds that take back what was said before, whoever said it.
    """

    by: tuple[str, ...] = ()
    same: tuple[str, ...] = ()
    among: tuple[EntryKind, ...] = ()
    taken_back_by: tuple[EntryKind, ...] = ()


_DECIDED = (EntryKind.APPROVED, EntryKind.REFUSED)
_DECISION = Repeat(by=("person",), same=("artefact_digest", "role"), among=_DECIDED)
_ASSESSMENT = Repeat(same=("artefact_digest", "outcome", "report_digest"))
_AUDIT = Repeat(by=("outcome", "report_digest"))
_CORRECTION = Repeat(
    by=("person",),
    same=("role", "files_digest"),
    among=revisions.KINDS,
    taken_back_by=revisions.TAKEN_BACK_BY,
)
_DELIVERY = Repeat(by=("portal",))
_WITHOUT = Repeat(among=(EntryKind.NO_RELEASE, EntryKind.RESERVED, *revisions.KINDS))


def _say(
    connection: Connection, at: str, kind: EntryKind, body: Mapping[str, Any], repeat: Repeat
) -> Entry:
    """Append what is said of the release `key`, unless it repeats its speaker's last word."""
    facts.head(connection, locked=True)  # nobody says the same between the look and the word
    ends = repeat.taken_back_by
    kinds = (*(repeat.among or (kind,)), *ends)
    said = reversed(facts.facts(connection, ReleaseKey.parse(body["key"]), *kinds))
    last = next((e for e in said if e.kind in ends or _agree(e, body, repeat.by)), None)
    if last is not None and last.kind is kind and _agree(last, body, repeat.same):
        return last
    return facts.append(connection, at, kind, body)


def _agree(said: Entry, body: Mapping[str, Any], names: tuple[str, ...]) -> bool:
    return all(said.body.get(name) == body[name] for name in names)


def decisions(connection: Connection, key: ReleaseKey) -> tuple[Decision, ...]:
    """Return what people decided about a key, oldest first."""
    return tuple(_decision(key, entry) for entry in facts.facts(connection, key, *_DECIDED))


def _decision(key: ReleaseKey, entry: Entry) -> Decision:
    return Decision(
        key=key,
        is_approval=entry.kind is EntryKind.APPROVED,
        person=entry.body["person"],
        role=entry.body["role"],
        reason=entry.body["reason"],
        artefact_digest=entry.body["artefact_digest"],
        at=entry.at,
        sequence=entry.sequence,
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
    facts.head(connection, locked=True)  # nothing is sealed between the look and the word
    lead = attempts.lead(connection, key)
    body = {**word, "key": str(key), "artefact_digest": lead.artefact_digest if lead else None}
    return _decision(key, _say(connection, at, kind, body, _DECISION))


def say_on_revision(
    connection: Connection, at: str, word: revisions.RevisionDecision
) -> revisions.RevisionDecision:
    """Write a word unless the person's last one says the same about the same files.

    Raises:
        RefusedError: the key corrects nothing that is sealed, or is sealed itself.
    """
    facts.head(connection, locked=True)  # nobody seals the key between the look and the word
    _require_next(connection, word.key)
    kind = revisions.KINDS[0] if word.is_allowed else revisions.KINDS[1]
    body = {
        "key": str(word.key),
        "person": word.person,
        "role": word.role,
        "reason": word.reason,
        "files_digest": word.files_digest,
        **for_the_public(word.public_note),
    }
    return revisions.to_word(word.key, _say(connection, at, kind, body, _CORRECTION))


def _require_next(connection: Connection, key: ReleaseKey) -> None:
    """Refuse a word about anything but the next correction of a sealed release."""
    if key.revision == 0:
        raise RefusedError(f"{key} is a first release; a correction has a revision above 0")
    attempts.sealed(connection, revisions.before(key))
    lead = attempts.lead(connection, key)
    if lead is not None and lead.is_sealed:
        raise RefusedError(f"{key} is sealed already; the next correction is another revision")


def assessment(connection: Connection, key: ReleaseKey) -> Assessed | None:
    """Return the last assessment of a key, or None."""
    said = facts.facts(connection, key, EntryKind.ASSESSED)
    if not said:
        return None
    body = said[-1].body
    return Assessed(key, body["artefact_digest"], body["outcome"], body["report_digest"])


def record_assessment(connection: Connection, at: str, assessed: Assessed) -> Assessed:
    """Write what the gates said of sealed bytes, unless the last assessment is the same."""
    body = {
        "key": str(assessed.key),
        "artefact_digest": assessed.artefact_digest,
        "outcome": assessed.outcome,
        "report_digest": assessed.report_digest,
    }
    _say(connection, at, EntryKind.ASSESSED, body, _ASSESSMENT)
    return assessed


def record_audit(connection: Connection, at: str, body: Mapping[str, str]) -> Entry:
    """Write the outcome of an audit, `key`, `outcome` and `report_digest`, unless it is written."""
    return _say(connection, at, EntryKind.AUDITED, body, _AUDIT)


def deliveries(connection: Connection, key: ReleaseKey) -> frozenset[str]:
    """Return the portals at which every byte of a release was read back."""
    delivered = facts.facts(connection, key, EntryKind.DELIVERED)
    return frozenset(entry.body["portal"] for entry in delivered)


def record_delivery(
    connection: Connection, at: str, key: ReleaseKey, portal: str, manifest_digest: str
) -> None:
    """Write that a release is at a portal unless it is written already.

    Raises:
        RefusedError: the key is not published with this manifest.
    """
    facts.head(connection, locked=True)
    lead = attempts.lead(connection, key)
    if lead is None or lead.manifest_digest != manifest_digest:
        raise RefusedError(f"{key} is not published with this manifest; nothing was written")
    body = {"key": str(key), "portal": portal, "manifest_digest": manifest_digest}
    _say(connection, at, EntryKind.DELIVERED, body, _DELIVERY)


def declare_no_release(connection: Connection, at: str, body: Mapping[str, str]) -> Entry:
    """Write that a period has no release, with `key`, `person` and `reason`, unless it is written.

    Once it was reserved, or spoken of as a correction, since, it is written again: that is over.

    Raises:
        RefusedError: it is sealed, held or being drawn at this moment, or it corrects nothing.
    """
    key = ReleaseKey.parse(body["key"])
    facts.head(connection, locked=True)
    lead = attempts.lead(connection, key)
    if lead is not None and lead.is_sealed:
        was = "was published and withdrawn" if lead.is_withdrawn else f"is {lead.state.value}"
        raise RefusedError(f"{key} {was}: its bytes are drawn and charged, and it has a release")
    if lead is not None and (lead.is_held or _is_being_drawn(connection, lead)):
        may = f"{lead.attempt_id} is {lead.state.value}, so it may have a release yet"
        raise RefusedError(f"{may}; wait for its end, or {letting_go(lead)}; then state it again")
    if key.revision and not attempts.was_drawn(connection, revisions.before(key)):
        raise RefusedError(f"{key} corrects what was never drawn; state it of the first release")
    return _say(connection, at, EntryKind.NO_RELEASE, body, _WITHOUT)


def _is_being_drawn(connection: Connection, attempt: Attempt) -> bool:
    return attempt.is_drawing and leases.holder_of(connection, attempt.attempt_id) is not None


def next_key(witnesses: Witnesses, parties: Parties, kept: tuple[str, ...]) -> Signer:
    """Return the key that signs from now on: one that the ledger does not know yet, or a new one.

    Raises:
        InputError: there is no place for a key, or it cannot be made.
    """
    path = witnesses.key
    if path is not None and path.exists():
        try:
            is_known = Signer.load(path).public_line in (*parties.key_lines, *kept)
        except InputError:
            is_known = True  # unreadable, so of no further use
        if is_known:
            with naming(path.parent):
                path.rename(path.with_name(f"{path.name}.retired-{secrets.token_hex(4)}"))
    return witnesses.make_key()


def add_witness(store: Store, custody: Custody, folder: Path, said: tuple[str, str]) -> str:
    """Make a folder a witness, name it, and ship every entry to it.

    Raises:
        InputError: the folder cannot be written, or is not named in TURNSTILE_WITNESS.
    """
    if folder.resolve() not in {path.resolve() for path in custody.witnesses.folders}:
        rule = "is not among the folders of TURNSTILE_WITNESS; name it there first"
        raise InputError(where=str(folder), field="witness", rule=rule)
    with naming(folder):
        name = make_witness(folder)
    body = {"witness": name, "folder": str(folder), "person": said[0], "reason": said[1]}

    def act(connection: Connection) -> None:
        facts.head(connection, locked=True)
        if name not in parties_in(connection).witnesses:
            at = instant(custody.clock())
            facts.append(connection, at, EntryKind.WITNESS_ADDED, body)

    store.write(act)
    if all(witness_id(path) for path in custody.witnesses.folders):
        custody.ship()
    return name
