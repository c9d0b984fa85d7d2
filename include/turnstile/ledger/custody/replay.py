"""Entries brought back into the database, bit by bit, and what follows from them beside them."""

from __future__ import annotations

from sqlalchemy.engine import Connection

from turnstile.ledger import attempts, facts
from turnstile.ledger.balances import accounts
from turnstile.ledger.balances.changes import changes_of, declared_changes, postings_in, weeks_in
from turnstile.ledger.entries import Entry, EntryKind
from turnstile.ledger.states import Transition

_MOVES = {
    EntryKind.DRAW_BEGUN: Transition.BEGIN_DRAW,
    EntryKind.SEALED: Transition.SEAL,
    EntryKind.VOIDED: Transition.VOID,
    EntryKind.BURNED: Transition.BURN,
    EntryKind.PUBLISHED: Transition.PUBLISH,
}


def replay(connection: Connection, entry: Entry) -> None:
    """Append an entry as it was written, and store what it means.

    Args:
        connection: of a writing transaction whose head is the entry before.
        entry: whose chain and meaning were checked.
    """
    facts.write_entry(connection, entry)
    store(connection, entry)


def store(connection: Connection, entry: Entry) -> None:
    """Let the tables beside the entries say what an entry means."""
    body = entry.body
    if entry.kind is EntryKind.CAP_SET:
        accounts.store_caps(connection, body)
    elif entry.kind is EntryKind.RESERVED:
        _hold(connection, entry)
    elif entry.kind is EntryKind.LOSS_DECLARED:
        _spend(connection, entry)
    elif entry.kind in _MOVES:
        attempt = attempts.attempt(connection, body["attempt"])
        attempts.store_transition(connection, attempt, _MOVES[entry.kind], body)
    elif entry.kind is EntryKind.WITHDRAWN:
        attempts.store_withdrawal(connection, body["attempt"])


def _hold(connection: Connection, entry: Entry) -> None:
    """Store a reservation."""
    body = entry.body
    accounts.lock_family(connection, body["family"])
    changes = changes_of(EntryKind.RESERVED, postings_in(body), weeks_in(body))
    caps = accounts.family_caps(connection, body["family"])
    accounts.change_accounts(connection, body["family"], changes, caps)
    attempts.insert_attempt(connection, entry)


def _spend(connection: Connection, entry: Entry) -> None:
    """Store a declared loss; a cap that it passes cannot undo that it happened."""
    body = entry.body
    family = body["family"]
    accounts.lock_family(connection, family)
    changes = declared_changes(postings_in(body), weeks_in(body), body["draws"])
    accounts.change_accounts(connection, family, changes, ())
    attempts.insert_attempt(connection, entry)
