"""Guards of the ledger's database, triggers that refuse what is never done: whether they stand."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.engine import Connection

from turnstile.ledger.database.database_tables import METADATA
from turnstile.ledger.records import Finding

GUARDS_0001 = frozenset(
    {
        "entry_no_update",
        "entry_no_delete",
        "attempt_no_delete",
        "account_no_delete",
        "attempt_moves",
        "account_no_refund",
    }
)
GUARDS_0002 = GUARDS_0001 | {
    "entry_follows",
    "head_follows",
    "attempt_opens",
    "attempt_keeps",
    "account_keeps",
    "caps_no_delete",
    "caps_keep",
    "account_opens",
}
GUARDS_0003 = GUARDS_0002 | {"account_caps", "caps_stated", "caps_begin"}
_GUARDS = {"0001": GUARDS_0001, "0002": GUARDS_0002}
_ON_SERVER = frozenset({"entry_no_truncate", "attempt_no_truncate", "account_no_truncate"})
_UNIQUE = {
    "one_open_attempt": ("'reserved'", "'drawing'"),
    "one_sealed_attempt": ("'sealed'", "'published'"),
}
_INDEXES = text("SELECT name, sql AS body FROM sqlite_master WHERE type = 'index' AND sql <> ''")
_INDEXES_ON_SERVER = text("SELECT indexname AS name, indexdef AS body FROM pg_indexes")
_DIGITS = 16
_SQLITE = text(
    "SELECT name, tbl_name AS place, sql AS body FROM sqlite_master WHERE type = 'trigger'"
)
_POSTGRESQL = text(
    """SELECT t.tgname AS name, t.tgrelid::regclass::text AS place,
    pg_get_triggerdef(t.oid) || p.prosrc AS body FROM pg_trigger t
    JOIN pg_proc p ON p.oid = t.tgfoid WHERE NOT t.tgisinternal AND t.tgenabled IN ('O', 'A')"""
)


def guard_findings(connection: Connection, version: str) -> Iterator[Finding]:
    """Yield every guard that is gone, switched off or another one, and every trigger beside them.

    Args:
        connection: of a reading transaction.
        version: of the tables.
    """
    is_server = connection.dialect.name == "postgresql"
    wanted = _GUARDS.get(version, GUARDS_0003)
    wanted = wanted | _ON_SERVER if is_server else wanted
    refuses = "RAISE EXCEPTION" if is_server else "RAISE(ABORT"
    rows = connection.execute(_POSTGRESQL if is_server else _SQLITE).all()
    texts, places = ({row[0]: row[at] for row in rows} for at in (2, 1))
    for name in sorted(name for name in places.keys() - wanted if places[name] in METADATA.tables):
        yield Finding("guard", None, f"the trigger {name} is none that this house made")
    standing = {name for name, body in texts.items() if refuses in body}
    yield from _index_findings(connection, is_server=is_server)
    for name in sorted(wanted - standing):
        yield Finding("guard", None, f"the trigger {name} is gone or switched off")
    if version not in _GUARDS:  # those of earlier versions were made otherwise
        for name in sorted(wanted & standing):
            if _digest(texts[name]) != _known()[connection.dialect.name, name]:
                yield Finding("guard", None, f"the trigger {name} is not the one that was made")


def _index_findings(connection: Connection, *, is_server: bool) -> Iterator[Finding]:
    """Yield every index that keeps a second attempt out, and is gone or another one."""
    rows = connection.execute(_INDEXES_ON_SERVER if is_server else _INDEXES)
    bodies = {row.name: " ".join(row.body.split()) for row in rows}
    for name, states in _UNIQUE.items():
        body = bodies.get(name, "")
        is_whole = all(word in body for word in ("UNIQUE", "(release_key)", *states))
        if not is_whole or " AND " in body.upper():
            yield Finding(
                "guard", None, f"the index {name} is gone, or is not the one that was made"
            )


def _digest(body: str) -> str:
    """Return the digest of a text, however it is laid out."""
    return hashlib.sha256(" ".join(body.split()).encode()).hexdigest()[:_DIGITS]


@cache
def _known() -> Mapping[tuple[str, str], str]:
    """Return the digests of the guards as the migrations make them: database, trigger, digest."""
    lines = Path(__file__).with_name("guards.txt").read_text(encoding="ascii").splitlines()
    return {(fields[0], fields[1]): fields[2] for fields in (line.split() for line in lines)}
