"""Keys and witnesses as facts in the database."""

from __future__ import annotations

import secrets
from pathlib import Path

from sqlalchemy.engine import Connection

from turnstile.errors import InputError
from turnstile.ledger import facts
from turnstile.ledger.custody.custody import Custody
from turnstile.ledger.custody.known_history import parties_in
from turnstile.ledger.custody.shipped import make_witness, witness_id
from turnstile.ledger.custody.signed_note import Signer
from turnstile.ledger.custody.witness import Witnesses, naming
from turnstile.ledger.entries import EntryKind
from turnstile.ledger.parties import Parties
from turnstile.ledger.store import Store


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
    if folder.resolve() not in {one.resolve() for one in custody.witnesses.folders}:
        rule = "is not among the folders of TURNSTILE_WITNESS; name it there first"
        raise InputError(where=str(folder), field="witness", rule=rule)
    with naming(folder):
        name = make_witness(folder)
    body = {"witness": name, "folder": str(folder), "person": said[0], "reason": said[1]}

    def act(connection: Connection) -> None:
        facts.head(connection, locked=True)
        if name not in parties_in(connection).witnesses:
            at = facts.instant(custody.clock())
            facts.append(connection, at, EntryKind.WITNESS_ADDED, body)

    store.write(act)
    if all(witness_id(one) for one in custody.witnesses.folders):
        custody.ship()
    return name
