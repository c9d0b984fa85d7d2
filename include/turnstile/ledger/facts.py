"""Facts in the database: append to the chain and read back, inside the caller's transaction.

The head's one row is what appending transactions wait for, and always the last lock they take.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Select, bindparam, insert, select, update
from sqlalchemy.engine import Connection

from turnstile.ledger.database.database_tables import ENTRY, HEAD
from turnstile.ledger.entries import Entry, EntryKind, make_entry, read_entry
from turnstile.ledger.records import ReleaseKey

# Statements are made once: to make one takes as long as SQLite takes to answer it.
_HEAD = select(HEAD.c.sequence, HEAD.c.hash)
_HEAD_LOCKED = _HEAD.with_for_update()
_WRITE, _MOVE_HEAD = insert(ENTRY), update(HEAD)
_RECORD = select(ENTRY.c.record, ENTRY.c.hash)
AFTER = _RECORD.where(ENTRY.c.sequence > bindparam("after")).order_by(ENTRY.c.sequence)
_HASH_AT = select(ENTRY.c.hash).where(ENTRY.c.sequence == bindparam("at"))
_AT = _RECORD.where(ENTRY.c.sequence == bindparam("at"))
_FACTS = _RECORD.where(
    ENTRY.c.release_key == bindparam("of"), ENTRY.c.kind.in_(bindparam("kinds", expanding=True))
).order_by(ENTRY.c.sequence)


def of_kinds(kinds: Iterable[EntryKind]) -> Select[Any]:
    """Return the query of all facts of some kinds, oldest first."""
    named = [kind.value for kind in kinds]
    return _RECORD.where(ENTRY.c.kind.in_(named)).order_by(ENTRY.c.sequence)


def head(connection: Connection, *, locked: bool = False) -> tuple[int, str]:
    """Return sequence and hash of the last entry, waiting for other appenders if locked."""
    row = connection.execute(_HEAD_LOCKED if locked else _HEAD).one()
    return row.sequence, row.hash


def append(connection: Connection, at: str, kind: EntryKind, body: Mapping[str, Any]) -> Entry:
    """Append a fact to the chain, blinded: its hash, which is public, confirms nobody's guess."""
    blinded = {"blinding": secrets.token_hex(16), **body}
    entry = make_entry(head(connection, locked=True), at, kind, blinded)
    write_entry(connection, entry)
    return entry


def write_entry(connection: Connection, entry: Entry) -> None:
    """Write the entry that follows the head, and move the head to it."""
    connection.execute(
        _WRITE,
        {
            "sequence": entry.sequence,
            "kind": entry.kind.value,
            "release_key": entry.key,
            "attempt_id": entry.attempt_id,
            "record": entry.record,
            "hash": entry.hash,
        },
    )
    connection.execute(_MOVE_HEAD, {"sequence": entry.sequence, "hash": entry.hash})


def entry_at(connection: Connection, sequence: int) -> Entry | None:
    """Return one fact."""
    row = connection.execute(_AT, {"at": sequence}).one_or_none()
    return None if row is None else read_entry(row.record, row.hash)


def entries_after(connection: Connection, sequence: int) -> tuple[Entry, ...]:
    """Return the facts after a number, in order."""
    rows = connection.execute(AFTER, {"after": sequence})
    return tuple(read_entry(row.record, row.hash) for row in rows)


def hash_at(connection: Connection, sequence: int) -> str | None:
    """Return the hash of one fact, or None if the ledger has not come that far."""
    return connection.execute(_HASH_AT, {"at": sequence}).scalar()


def facts(connection: Connection, key: ReleaseKey, *kinds: EntryKind) -> tuple[Entry, ...]:
    """Return the facts of these kinds about a key, oldest first."""
    rows = connection.execute(_FACTS, {"of": str(key), "kinds": [kind.value for kind in kinds]})
    return tuple(read_entry(row.record, row.hash) for row in rows)
