"""Guards of the ledger's database, triggers that refuse what is never done: whether they stand."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import text
from sqlalchemy.engine import Connection

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
_SQLITE = text("SELECT name, sql AS body FROM sqlite_master WHERE type = 'trigger'")
_POSTGRESQL = text(
    """SELECT t.tgname AS name, p.prosrc AS body FROM pg_trigger t
    JOIN pg_proc p ON p.oid = t.tgfoid WHERE NOT t.tgisinternal AND t.tgenabled IN ('O', 'A')"""
)


def guard_findings(connection: Connection, version: str) -> Iterator[Finding]:
    """Yield every guard that is gone, switched off, or refuses nothing any more.

    Args:
        connection: of a reading transaction.
        version: of the tables.
    """
    is_server = connection.dialect.name == "postgresql"
    wanted = _GUARDS.get(version, GUARDS_0003)
    wanted = wanted | _ON_SERVER if is_server else wanted
    rows = connection.execute(_POSTGRESQL if is_server else _SQLITE)
    refuses = "RAISE EXCEPTION" if is_server else "RAISE(ABORT"
    standing = {row.name for row in rows if refuses in row.body}
    for name in sorted(wanted - standing):
        yield Finding("guard", None, f"the trigger {name} is gone or switched off")
