"""Attempts in the database: find, open and move them, inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Row as SqlRow
from sqlalchemy import bindparam, insert, select, update
from sqlalchemy.engine import Connection

from turnstile.errors import InputError, RefusedError
from turnstile.ledger.balances.accounts import change_accounts, family_caps
from turnstile.ledger.balances.changes import changes_of, postings_in, weeks_in
from turnstile.ledger.database.database_tables import ATTEMPT, ENTRY
from turnstile.ledger.encoding import encode_posting
from turnstile.ledger.entries import Entry, EntryKind, read_entry
from turnstile.ledger.facts import append, entry_at, facts
from turnstile.ledger.records import (
    Attempt,
    Bindings,
    Difference,
    ReleaseKey,
    Request,
    for_the_public,
)
from turnstile.ledger.states import (
    CHARGED_STATES,
    OPEN_STATES,
    SEALED_STATES,
    ReleaseState,
    Transition,
    target_of,
)

_KIND_OF_TRANSITION = {
    Transition.BEGIN_DRAW: EntryKind.DRAW_BEGUN,
    Transition.SEAL: EntryKind.SEALED,
    Transition.VOID: EntryKind.VOIDED,
    Transition.BURN: EntryKind.BURNED,
    Transition.PUBLISH: EntryKind.PUBLISHED,
}


_SET_BY_MOVES = ("artefact_digest", "manifest_digest")
_NAMED = select(ATTEMPT).where(ATTEMPT.c.attempt_id == bindparam("name"))
_MOVE = update(ATTEMPT).where(
    ATTEMPT.c.attempt_id == bindparam("moved"), ATTEMPT.c.state == bindparam("before")
)
_OF_KEY = (
    select(ATTEMPT)
    .where(ATTEMPT.c.release_key == bindparam("key"))
    .order_by(ATTEMPT.c.reserved_sequence)
)


def to_attempt(row: SqlRow[Any]) -> Attempt:
    """Make the record of an attempt."""
    return Attempt(
        attempt_id=row.attempt_id,
        key=ReleaseKey.parse(row.release_key),
        family=row.family,
        week=row.week,
        state=ReleaseState(row.state),
        bindings=Bindings(row.programme_digest, row.domain_digest, row.snapshot_digest),
        plan_digest=row.plan_digest,
        artefact_digest=row.artefact_digest,
        manifest_digest=row.manifest_digest,
        reserved_sequence=row.reserved_sequence,
        is_withdrawn=bool(row.is_withdrawn),
    )


def attempt(connection: Connection, attempt_id: str) -> Attempt:
    """Return an attempt by its name.

    Raises:
        InputError: there is none.
    """
    row = connection.execute(_NAMED, {"name": attempt_id}).one_or_none()
    if row is None:
        rule = f"{attempt_id!r} is unknown; reserve first"
        raise InputError(where="ledger", field="attempt", rule=rule)
    return to_attempt(row)


def attempts(connection: Connection, key: ReleaseKey) -> tuple[Attempt, ...]:
    """Return all attempts at a key, in the order in which they were made."""
    return tuple(map(to_attempt, connection.execute(_OF_KEY, {"key": str(key)})))


def lead(connection: Connection, key: ReleaseKey) -> Attempt | None:
    """Return the sealed attempt of a key, else the open one, else the latest, else None."""
    candidates = attempts(connection, key)
    for states in (SEALED_STATES, OPEN_STATES):
        if among := [candidate for candidate in candidates if candidate.state in states]:
            return among[0]
    return candidates[-1] if candidates else None


def open_attempt(connection: Connection, at: str, request: Request, number: int) -> Attempt:
    """Write a reservation and put its hold on every account that it touches."""
    bound = request.bindings
    columns = {
        "family": request.family,
        "week": request.week,
        "programme_digest": bound.programme_digest,
        "domain_digest": bound.domain_digest,
        "snapshot_digest": bound.snapshot_digest,
        "plan_digest": request.plan_digest,
    }
    name = f"{request.key}#{number}"
    body: dict[str, Any] = {
        **columns,
        "attempt": name,
        "key": str(request.key),
        "events": list(request.events),
        "postings": [encode_posting(p) for p in sorted(request.postings)],
        "reason": request.reason,
        "approver": request.approver,
    }
    body |= for_the_public(request.public_note)
    if request.weeks != request.week:
        body["first_week"] = request.first_week
    if request.bounding_key:
        body["bounding_key"] = request.bounding_key
        body |= {"files": sorted(set(request.files)), "exact": request.exact}
    if request.terms:
        body["terms"] = dict(request.terms)
    caps = family_caps(connection, request.family)
    changes = changes_of(EntryKind.RESERVED, request.postings, request.weeks)
    change_accounts(connection, request.family, changes, caps)
    entry = append(connection, at, EntryKind.RESERVED, body)
    insert_attempt(connection, entry)
    return attempt(connection, name)


def insert_attempt(connection: Connection, entry: Entry) -> None:
    """Let the table of attempts hold the one that an entry opens."""
    body = entry.body
    declared = ("state", "artefact_digest", "manifest_digest")
    connection.execute(
        insert(ATTEMPT),
        {
            **{name: body[name] for name in ("family", "week")},
            **{name: body[name] for name in body if name.endswith("_digest")},
            "attempt_id": body["attempt"],
            "release_key": body["key"],
            "state": ReleaseState.RESERVED.value,
            "reserved_sequence": entry.sequence,
            "is_withdrawn": False,
            **{name: body[name] for name in declared if name in body},
        },
    )


def make_transition(
    connection: Connection,
    at: str,
    release_attempt: Attempt,
    transition: Transition,
    **particulars: str,
) -> Entry:
    """Make a transition of an attempt, move the amounts that go with it, and write the fact.

    Args:
        connection: of the transaction that holds the family's lock.
        at: instant of the fact, as `instant` writes it.
        release_attempt: the attempt as read under that lock; its state allows the transition.
        transition: what happens.
        **particulars: of the fact: `reason`, `person`, `nonce`, `code`,
            `artefact_digest` or `manifest_digest`.
    """
    store_transition(connection, release_attempt, transition, particulars)
    body = {"attempt": release_attempt.attempt_id, "key": str(release_attempt.key), **particulars}
    return append(connection, at, _KIND_OF_TRANSITION[transition], body)


def store_transition(
    connection: Connection,
    release_attempt: Attempt,
    transition: Transition,
    particulars: Mapping[str, Any],
) -> None:
    """Let attempts and accounts say what a transition says."""
    columns = {name: particulars[name] for name in _SET_BY_MOVES if name in particulars}
    moved = {"moved": release_attempt.attempt_id, "before": release_attempt.state.value}
    connection.execute(_MOVE, {**moved, "state": target_of(transition).value, **columns})
    reserved = entry_at(connection, release_attempt.reserved_sequence)
    if transition in (Transition.BEGIN_DRAW, Transition.VOID) and reserved is not None:
        postings, weeks = postings_in(reserved.body), weeks_in(reserved.body)
        changes = changes_of(_KIND_OF_TRANSITION[transition], postings, weeks)
        change_accounts(connection, release_attempt.family, changes)


def has_started(connection: Connection, release_attempt: Attempt) -> bool:
    """Say whether noise may exist for an attempt that is drawing.

    A `draw_begun` with a nonce is followed by `draw_started` once every witness holds it; until
    then no noise was drawn, so the attempt may be taken up again under its one charge.
    """
    kinds = (EntryKind.DRAW_BEGUN, EntryKind.DRAW_STARTED)
    entries = [
        e
        for e in facts(connection, release_attempt.key, *kinds)
        if e.attempt_id == release_attempt.attempt_id
    ]
    return any(e.kind is EntryKind.DRAW_STARTED or "nonce" not in e.body for e in entries)


def start(connection: Connection, at: str, release_attempt: Attempt) -> None:
    """Write that noise may exist from now on."""
    body = {"attempt": release_attempt.attempt_id, "key": str(release_attempt.key)}
    append(connection, at, EntryKind.DRAW_STARTED, body)


def withdraw(
    connection: Connection, at: str, release_attempt: Attempt, said: Mapping[str, str]
) -> None:
    """Flag a published attempt, with `person`, `reason` and perhaps a `public_note`."""
    body = {"attempt": release_attempt.attempt_id, "key": str(release_attempt.key), **said}
    append(connection, at, EntryKind.WITHDRAWN, body)
    store_withdrawal(connection, release_attempt.attempt_id)


def store_withdrawal(connection: Connection, attempt_id: str) -> None:
    """Let the table of attempts flag one as withdrawn."""
    this = ATTEMPT.c.attempt_id == attempt_id
    connection.execute(update(ATTEMPT).where(this).values(is_withdrawn=True))


def is_published(connection: Connection, key: ReleaseKey) -> bool:
    """Say whether a key was published, or was declared so by a recovery."""
    told = facts(connection, key, EntryKind.PUBLISHED, EntryKind.LOSS_DECLARED)
    return any(entry.body["manifest_digest"] is not None for entry in told)


def reserved_before(connection: Connection, at: str) -> tuple[str, ...]:
    """Return the attempts that were reserved before an instant and still are."""
    query = (
        select(ATTEMPT.c.attempt_id, ENTRY.c.record, ENTRY.c.hash)
        .join(ENTRY, ENTRY.c.sequence == ATTEMPT.c.reserved_sequence)
        .where(ATTEMPT.c.state == ReleaseState.RESERVED.value)
        .order_by(ATTEMPT.c.reserved_sequence)
    )
    rows = connection.execute(query)
    return tuple(r.attempt_id for r in rows if read_entry(r.record, r.hash).at < at)


def charged_since(connection: Connection, family: str, weeks: tuple[str, str]) -> tuple[str, ...]:
    """Return the releases of a family that hold or spent something in these weeks, oldest first."""
    query = (
        select(ATTEMPT.c.release_key)
        .where(
            ATTEMPT.c.family == family,
            ATTEMPT.c.week.between(*weeks),
            ATTEMPT.c.state != ReleaseState.VOID.value,
        )
        .order_by(ATTEMPT.c.reserved_sequence)
    )
    return tuple(row.release_key for row in connection.execute(query))


def sealed(connection: Connection, key: ReleaseKey) -> Attempt:
    """Return the sealed attempt of a key.

    Raises:
        RefusedError: there is none.
    """
    leading = lead(connection, key)
    if leading is None or not leading.is_sealed:
        state = leading.state.value if leading else "unknown"
        raise RefusedError(f"{key} is {state}, not sealed: no bytes to publish or to withdraw")
    return leading


def differences(
    connection: Connection, release_attempt: Attempt, bindings: Bindings, terms: Mapping[str, str]
) -> tuple[Difference, ...]:
    """Return what decides the loss or the cells of a sealed key and is not as it was.

    Where the reservation states its terms they are compared key by key; one of version 0.1.0
    states none, so there the whole programme has to be the same.
    """
    others = [
        difference
        for difference in release_attempt.bindings.differences(bindings)
        if difference.name != "snapshot"
    ]
    reserved = entry_at(connection, release_attempt.reserved_sequence)
    stated: Mapping[str, str] = reserved.body.get("terms", {}) if reserved else {}
    if stated and terms:
        others = [difference for difference in others if difference.name != "programme"]
        pairs = [(n, stated.get(n, ""), terms.get(n, "")) for n in sorted({*stated, *terms})]
        others += [Difference(*pair) for pair in pairs if pair[1] != pair[2]]
    return tuple(others)


def was_drawn(connection: Connection, key: ReleaseKey) -> bool:
    """Say whether any attempt at a key was charged."""
    return any(past_attempt.state in CHARGED_STATES for past_attempt in attempts(connection, key))
