"""The ledger's sentences in SQL: append a fact, move an attempt, touch accounts in sorted order.

Every function works inside the caller's transaction. A transaction that changes a family's book
locks the family's row first, then accounts in sorted order, and the head last, so transactions wait
for each other and never in a circle.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Row as SqlRow
from sqlalchemy import and_, bindparam, insert, or_, select, text, update
from sqlalchemy.engine import Connection

from turnstile.errors import InputError
from turnstile.ledger.balance import (
    NOTHING,
    WHOLE,
    Amount,
    Change,
    Excess,
    Row,
    amounts_by_row,
    binding_caps,
    changes_of,
    first_excess,
    postings_in,
)
from turnstile.ledger.encoding import canonical, decode_cap, encode_cap, encode_posting
from turnstile.ledger.entries import Entry, EntryKind, make_entry, read_entry
from turnstile.ledger.records import (
    Attempt,
    Bindings,
    Cap,
    Decision,
    Publication,
    ReleaseKey,
    Request,
    is_lifelong,
)
from turnstile.ledger.states import OPEN_STATES, SEALED_STATES, Move, ReleaseState, target_of
from turnstile.ledger.tables import ACCOUNT, AMOUNTS, ATTEMPT, CAPS, ENTRY, HEAD
from turnstile.service_calendar import ServiceWeek

_KIND_OF_MOVE = {
    Move.BEGIN_DRAW: EntryKind.DRAW_BEGUN,
    Move.SEAL: EntryKind.SEALED,
    Move.VOID: EntryKind.VOIDED,
    Move.BURN: EntryKind.BURNED,
    Move.PUBLISH: EntryKind.PUBLISHED,
}
_ROW = ("unit", "scope", "week")
_SIDES = [f"{side}_{name}" for side in ("spent", "held") for name in AMOUNTS]
_CAP_FIGURES = ("epsilon_micro", "rho_nano", "delta_femto")


def instant(at: datetime) -> str:
    """Write an instant for an entry: UTC, to the second."""
    return at.astimezone(UTC).isoformat(timespec="seconds")


def head(connection: Connection, *, locked: bool = False) -> tuple[int, str]:
    """Return sequence and hash of the last entry, waiting for other appenders if locked."""
    query = select(HEAD.c.sequence, HEAD.c.hash)
    row = connection.execute(query.with_for_update() if locked else query).one()
    return row.sequence, row.hash


def append(connection: Connection, at: str, kind: EntryKind, body: Mapping[str, Any]) -> Entry:
    """Append a fact to the chain."""
    entry = make_entry(head(connection, locked=True), at, kind, body)
    connection.execute(
        insert(ENTRY),
        {
            "sequence": entry.sequence,
            "kind": entry.kind.value,
            "release_key": entry.key,
            "attempt_id": entry.attempt_id,
            "record": entry.record,
            "hash": entry.hash,
        },
    )
    connection.execute(update(HEAD).values(sequence=entry.sequence, hash=entry.hash))
    return entry


def entry_at(connection: Connection, sequence: int) -> Entry | None:
    """Return one fact."""
    query = select(ENTRY.c.record, ENTRY.c.hash).where(ENTRY.c.sequence == sequence)
    row = connection.execute(query).one_or_none()
    return None if row is None else read_entry(row.record, row.hash)


def lock_family(connection: Connection, family: str) -> None:
    """Wait for this family's turn; everything read afterwards stays true until the commit."""
    connection.execute(
        text(
            "INSERT INTO family (family, turns) VALUES (:family, 1) "
            "ON CONFLICT (family) DO UPDATE SET turns = family.turns + 1"
        ),
        {"family": family},
    )


def family_caps(connection: Connection, family: str) -> tuple[Cap, ...]:
    """Return the caps in force in a family: the smallest of all its programmes."""
    rows = connection.execute(select(CAPS.c.caps).where(CAPS.c.family == family))
    return binding_caps(decode_cap(cap) for (written,) in rows for cap in json.loads(written))


def families(connection: Connection) -> tuple[str, ...]:
    """Return the families that have a book, sorted."""
    rows = connection.execute(text("SELECT family FROM family ORDER BY family"))
    return tuple(row.family for row in rows)


def record_caps(connection: Connection, at: str, request: Request) -> None:
    """Write a programme's caps as a fact, if they are not what the ledger holds.

    Raises:
        InputError: the programme kept its book in another family until now, or states no cap.
    """
    if not request.caps:
        rule = "a programme without a cap may not spend; state caps in its file"
        raise InputError(where=request.key.programme, field="caps", rule=rule)
    programme, written = request.key.programme, [encode_cap(cap) for cap in request.caps]
    lock_family(connection, request.family)
    known = connection.execute(select(CAPS).where(CAPS.c.programme == programme)).one_or_none()
    if known is not None and known.family != request.family:
        rule = (
            f"its losses are booked in family {known.family!r}, not {request.family!r}; a new book "
            "would forget them: keep the family, or give the programme another name"
        )
        raise InputError(where=programme, field="family", rule=rule)
    if known is not None and known.caps == canonical(written):
        return
    body = {"family": request.family, "programme": programme, "caps": written}
    append(connection, at, EntryKind.CAP_SET, body)
    values = {"family": request.family, "caps": canonical(written)}
    if known is None:
        connection.execute(insert(CAPS), {"programme": programme, **values})
    else:
        connection.execute(update(CAPS).where(CAPS.c.programme == programme).values(values))


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
    query = select(ATTEMPT).where(ATTEMPT.c.attempt_id == attempt_id)
    row = connection.execute(query).one_or_none()
    if row is None:
        rule = f"{attempt_id!r} is unknown; reserve first"
        raise InputError(where="ledger", field="attempt", rule=rule)
    return to_attempt(row)


def attempts(connection: Connection, key: ReleaseKey) -> tuple[Attempt, ...]:
    """Return all attempts at a key, in the order in which they were made."""
    query = select(ATTEMPT).where(ATTEMPT.c.release_key == str(key))
    rows = connection.execute(query.order_by(ATTEMPT.c.reserved_sequence))
    return tuple(map(to_attempt, rows))


def leading(found: Sequence[Attempt]) -> Attempt | None:
    """Return the sealed attempt, else the open one, else the latest, else None."""
    for states in (SEALED_STATES, OPEN_STATES):
        for one in found:
            if one.state in states:
                return one
    return found[-1] if found else None


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
    body = {
        **columns,
        "attempt": name,
        "key": str(request.key),
        "events": list(request.events),
        "postings": [encode_posting(p) for p in sorted(request.postings)],
        "reason": request.reason,
        "approver": request.approver,
    }
    caps = family_caps(connection, request.family)
    changes = changes_of(EntryKind.RESERVED, request.postings, request.week)
    change_accounts(connection, request.family, changes, caps)
    entry = append(connection, at, EntryKind.RESERVED, body)
    connection.execute(
        insert(ATTEMPT),
        {
            **columns,
            "attempt_id": name,
            "release_key": str(request.key),
            "state": ReleaseState.RESERVED.value,
            "reserved_sequence": entry.sequence,
            "is_withdrawn": False,
        },
    )
    return attempt(connection, name)


def make_move(
    connection: Connection, at: str, found: Attempt, move: Move, **particulars: str
) -> Entry:
    """Move an attempt, move the amounts that go with it, and write the fact.

    Args:
        connection: of the transaction that holds the family's lock.
        at: instant of the fact, as `instant` writes it.
        found: the attempt as read under that lock; its state allows the move.
        move: what happens.
        **particulars: of the fact: `reason`, `artefact_digest` or `manifest_digest`.
    """
    kind = _KIND_OF_MOVE[move]
    columns = {name: value for name, value in particulars.items() if name != "reason"}
    connection.execute(
        update(ATTEMPT)
        .where(ATTEMPT.c.attempt_id == found.attempt_id, ATTEMPT.c.state == found.state.value)
        .values(state=target_of(move).value, **columns)
    )
    if move in (Move.BEGIN_DRAW, Move.VOID):
        reserved = entry_at(connection, found.reserved_sequence)
        postings = postings_in(reserved.body) if reserved else ()
        change_accounts(connection, found.family, changes_of(kind, postings, found.week))
    body = {"attempt": found.attempt_id, "key": str(found.key), **particulars}
    return append(connection, at, kind, body)


def change_accounts(
    connection: Connection,
    family: str,
    changes: Sequence[Change],
    caps: Sequence[Cap] | None = None,
) -> None:
    """Add changes to account rows, in sorted order, under the CHECK of each row.

    Args:
        connection: of the transaction that holds the family's lock.
        family: whose book.
        changes: what to add to which row.
        caps: caps to hold each row against from now on; None leaves the row's own.
    """
    if not changes:
        return
    ordered = sorted(changes, key=lambda change: change.row)
    figures = [
        {
            **{f"b_{name}": value for name, value in zip(_ROW, change.row, strict=True)},
            **dict(zip([f"b_{s}" for s in _SIDES], (*change.spent, *change.held), strict=True)),
            **(_cap_figures(change.row, caps) if caps is not None else {}),
        }
        for change in ordered
    ]
    if caps is not None:
        connection.execute(
            text(_INSERT_ROW), [{"family": family, **change.row._asdict()} for change in ordered]
        )
    values = {s: ACCOUNT.c[s] + bindparam(f"b_{s}") for s in _SIDES}
    if caps is not None:
        values |= {f"cap_{name}": bindparam(f"b_cap_{name}") for name in _CAP_FIGURES}
    row = [ACCOUNT.c[name] == bindparam(f"b_{name}") for name in _ROW]
    connection.execute(
        update(ACCOUNT).where(ACCOUNT.c.family == family, *row).values(values), figures
    )


_INSERT_ROW = (
    f"INSERT INTO account (family, unit, scope, week, {', '.join(_SIDES)}) "  # noqa: S608 - names
    f"VALUES (:family, :unit, :scope, :week, {', '.join('0' for _ in _SIDES)}) "
    "ON CONFLICT (family, unit, scope, week) DO NOTHING"
)


def _cap_figures(row: Row, caps: Sequence[Cap]) -> dict[str, int | None]:
    """Return the caps that hold for one row by itself; a window cap holds for each of its weeks."""
    is_week = row.week != WHOLE
    caps_here = [
        cap
        for cap in caps
        if cap.unit.value == row.unit and (cap.window_weeks is not None) == is_week
    ]
    merged: dict[str, int | None] = {}
    for name in _CAP_FIGURES:
        figures = [f for cap in caps_here if (f := getattr(cap, name)) is not None]
        merged[f"b_cap_{name}"] = min(figures, default=None)
    return merged


def amount_columns() -> list[Any]:
    """Return the columns of a row, its key first, then spent and held figures."""
    return [*(ACCOUNT.c[name] for name in _ROW), *(ACCOUNT.c[name] for name in _SIDES)]


def taken_by_row(
    connection: Connection, request: Request, caps: Sequence[Cap]
) -> dict[Row, Amount]:
    """Return what the rows that a request touches, and the weeks around it, have taken."""
    reach = max((cap.window_weeks or 1 for cap in caps), default=1) - 1
    week = ServiceWeek.parse(request.week)
    scopes = {posting.scope for posting in request.postings}
    windowed = [unit for unit in {p.unit for p in request.postings} if is_lifelong(unit)]
    query = select(*amount_columns()).where(
        ACCOUNT.c.family == request.family,
        or_(
            and_(ACCOUNT.c.scope.in_(scopes), ACCOUNT.c.week == WHOLE),
            and_(
                ACCOUNT.c.unit.in_([unit.value for unit in windowed]),
                ACCOUNT.c.week.between(str(week.plus(-reach)), str(week.plus(reach))),
            ),
        ),
    )
    size = len(AMOUNTS)
    return {
        Row(*row[:3]): Amount(*row[3 : 3 + size]).plus(Amount(*row[3 + size :]))
        for row in connection.execute(query)
    }


def excess_of(connection: Connection, request: Request) -> Excess | None:
    """Return the first cap that a request would pass, or None."""
    caps = family_caps(connection, request.family)
    taken = taken_by_row(connection, request, caps)
    asked = amounts_by_row(request.postings, request.week)
    return first_excess(caps, asked, request.week, lambda row: taken.get(row, NOTHING))


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


def hash_at(connection: Connection, sequence: int) -> str | None:
    """Return the hash of one fact, or None if the ledger has not come that far."""
    return connection.execute(select(ENTRY.c.hash).where(ENTRY.c.sequence == sequence)).scalar()


def facts(connection: Connection, key: ReleaseKey, *kinds: EntryKind) -> tuple[Entry, ...]:
    """Return the facts of these kinds about a key, oldest first."""
    query = (
        select(ENTRY.c.record, ENTRY.c.hash)
        .where(ENTRY.c.release_key == str(key), ENTRY.c.kind.in_([k.value for k in kinds]))
        .order_by(ENTRY.c.sequence)
    )
    return tuple(read_entry(row.record, row.hash) for row in connection.execute(query))


def publication(connection: Connection, key: ReleaseKey) -> Publication:
    """Return the fact that a key was published, which has to exist."""
    (entry,) = facts(connection, key, EntryKind.PUBLISHED)
    return Publication(entry.sequence, entry.hash)


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


def withdraw(connection: Connection, at: str, found: Attempt, *, person: str, reason: str) -> None:
    """Flag a published attempt."""
    body = {"attempt": found.attempt_id, "key": str(found.key), "person": person, "reason": reason}
    append(connection, at, EntryKind.WITHDRAWN, body)
    this = ATTEMPT.c.attempt_id == found.attempt_id
    connection.execute(update(ATTEMPT).where(this).values(is_withdrawn=True))


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
