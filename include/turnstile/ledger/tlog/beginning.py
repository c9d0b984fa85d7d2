"""How a transparency log begins: over the entries that a ledger has, under a key of its own.

The notes of a ledger are signed under another key and name. Under the log's they would be
checkpoints with a false root, which proves misbehaviour to every cosigner.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.engine import Connection

from turnstile.errors import InputError
from turnstile.ledger import facts
from turnstile.ledger.custody.folders import listed
from turnstile.ledger.custody.known_history import parties_in
from turnstile.ledger.custody.signed_note import Signer
from turnstile.ledger.custody.witness import Witnesses, naming
from turnstile.ledger.custody.zone_index import LOG
from turnstile.ledger.database.database_tables import ENTRY
from turnstile.ledger.entries import Entry, EntryKind
from turnstile.ledger.parties import LogBegun
from turnstile.ledger.tlog.checkpoints import Verifier
from turnstile.ledger.tlog.merkle import Tree
from turnstile.ledger.tlog.public_log import PublicLog


def begin_log(
    connection: Connection,
    at: str,
    witnesses: Witnesses,
    who: Mapping[str, str],
    origin: str | None = None,
) -> Entry:
    """Write the fact that names a log: origin, key, and the root over the entries so far.

    Args:
        connection: of the caller's transaction.
        at: instant of the fact.
        witnesses: where the log's key is, or is made.
        who: person and reason.
        origin: name of the log, for ever; None for one after its key.

    Raises:
        InputError: the key cannot be made or read.
    """
    size, _ = facts.head(connection, locked=True)
    hashes = connection.execute(select(ENTRY.c.hash).order_by(ENTRY.c.sequence)).scalars()
    signer = Signer.make(witnesses.log_key)
    digits = _digits_of(signer)
    origin = origin or f"turnstile-{digits}"
    known = {Verifier.of(log.public_line).digits for log in parties_in(connection).logs}
    there = () if witnesses.public is None else listed(witnesses.public / LOG)
    body = {
        "origin": origin,
        "public_line": signer.line_of(origin),
        "earlier": [folder.name for folder in there if folder.name not in known],
        "size": size,
        "root": Tree.of(hashes).root(size).hex(),
        **who,
    }
    return facts.append(connection, at, EntryKind.LOG_BEGUN, body)


def log_signer(witnesses: Witnesses, begun: LogBegun) -> Signer:
    """Return the key of a log.

    Raises:
        InputError: it cannot be read, or is another one.
    """
    with suppress(InputError):
        signer = Signer.load(witnesses.log_key)
        if signer.line_of(begun.origin) == begun.public_line:
            return signer
    rule = (
        f"is gone, or is not the key of the log {begun.origin}; restore it, or begin another log: "
        "turnstile ledger begin-log --reason TEXT"
    )
    raise InputError(where=str(witnesses.log_key), field="key", rule=rule)


def is_log_lost(witnesses: Witnesses, logs: Sequence[LogBegun]) -> bool:
    """Return whether a log was begun whose key is gone, so that it cannot go on."""
    with suppress(InputError):
        if logs:
            log_signer(witnesses, logs[-1])
        return False
    return True


def lost_logs(witnesses: Witnesses, logs: Sequence[LogBegun]) -> Iterator[PublicLog]:
    """Yield logs whose beginning the ledger lost and whose public key is gone or torn.

    A key that was set aside tells it; what such a log is called stands in its checkpoints.
    """
    public = witnesses.public
    if public is None:
        return
    for name in sorted({name for log in logs for name in log.earlier}):
        folder = public / LOG / name
        with suppress(OSError, ValueError):
            line = (folder / "log.pub").read_text(encoding="utf-8")
            if line.endswith("\n") and Verifier.of(line).digits == name:
                continue
        checkpoints = (folder / "checkpoint", *sorted(folder.glob("checkpoints/*")))
        origins = {_first_line(path) for path in checkpoints if path.is_file()} - {""}
        for path, origin in product(sorted(witnesses.log_key.parent.glob("log-key*.pem")), origins):
            with suppress(InputError, ValueError):
                line = Signer.load(path).line_of(origin)
                if Verifier.of(line).digits == name:
                    yield PublicLog(public, LogBegun(0, origin, line), Tree.of(()))


def _first_line(path: Path) -> str:
    with suppress(OSError, ValueError):
        return path.read_text(encoding="utf-8").partition("\n")[0]
    return ""


def set_key_aside(witnesses: Witnesses) -> None:
    """Move the key of the log in force aside, so that the next log gets one of its own."""
    path = witnesses.log_key
    try:
        name = _digits_of(Signer.load(path))
    except InputError:  # gone, or torn by a disk
        name = f"unreadable-{secrets.token_hex(4)}"
    with naming(path.parent), suppress(FileNotFoundError):
        path.rename(path.with_name(f"log-key-{name}.pem"))


def _digits_of(signer: Signer) -> str:
    """Return what a key is called before its log has a name."""
    return Verifier.of(signer.line_of("turnstile")).digits
