"""Verification: what the ledger's database says, recomputed from its entries and its witnesses."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Row as SqlRow
from sqlalchemy import select
from sqlalchemy.engine import Connection

from turnstile.ledger.accounts import families, family_caps
from turnstile.ledger.admission import binding_caps
from turnstile.ledger.changes import NOTHING, AccountRow
from turnstile.ledger.entries import read_entry
from turnstile.ledger.facts import head
from turnstile.ledger.fold import Fold, FoldedAttempt
from turnstile.ledger.notes import note_findings
from turnstile.ledger.records import Finding, ReleaseKey
from turnstile.ledger.states import ReleaseState
from turnstile.ledger.stored_accounts import rows_in
from turnstile.ledger.tables import ATTEMPT, ENTRY
from turnstile.ledger.witness import Witnesses

MANIFEST = "manifest.json"
APPEARS_WITHIN_S = 2
_ROWS_AT_ONCE = 200


def verify_store(connection: Connection, witnesses: Witnesses) -> Iterator[Finding]:
    """Yield everything in which database, entries, checkpoints and packages disagree."""
    notes, fold = witnesses.notes(), Fold()  # notes first, see Witnesses.notes
    yield from _entries(connection, fold)
    if head(connection) != fold.chain.head:
        yield Finding("chain", head(connection)[0], "is named as the last entry, and is not")
    yield from _attempts(connection, fold)
    for family in sorted(set(families(connection)) | set(fold.accounts)):
        yield from _accounts(connection, fold, family)
    trusted = witnesses.trusted_at(fold.parties)
    for note in notes:
        yield from note_findings(note, fold.hash_at, trusted, fold.parties.is_superseded)
    if witnesses.public is not None:
        yield from manifest_findings(fold.attempts.values(), witnesses.public)


def _entries(connection: Connection, fold: Fold) -> Iterator[Finding]:
    """Fold every entry, checking its columns against its text."""
    query = select(ENTRY).order_by(ENTRY.c.sequence).execution_options(yield_per=_ROWS_AT_ONCE)
    for row in connection.execute(query):
        try:
            entry = read_entry(row.record, row.hash)
        except ValueError as error:
            yield Finding("chain", row.sequence, f"its text is no entry ({error})")
            continue
        columns = (row.sequence, row.kind, row.release_key, row.attempt_id)
        if columns != (entry.sequence, entry.kind.value, entry.key, entry.attempt_id):
            yield Finding("chain", row.sequence, "its columns do not say what its text says")
        yield from fold.follow(entry)


def _attempts(connection: Connection, fold: Fold) -> Iterator[Finding]:
    """Compare the attempts' table with the fold."""
    rows = {row.attempt_id: row for row in connection.execute(select(ATTEMPT))}
    for name in sorted(rows.keys() - fold.attempts.keys()):
        yield Finding("balance", None, f"attempt {name} is in no entry")
    for name, folded in fold.attempts.items():
        if name not in rows:
            yield Finding("balance", folded.reserved_sequence, f"attempt {name} is gone")
        elif _reported(rows[name]) != _folded(folded):
            problem = f"attempt {name} is not what its entries say"
            yield Finding("balance", folded.reserved_sequence, problem)


def _reported(row: SqlRow[Any]) -> tuple[object, ...]:
    """Return what the table says of an attempt."""
    digests = (row.artefact_digest, row.manifest_digest)
    return (row.release_key, row.family, row.week, row.state, *digests, bool(row.is_withdrawn))


def _folded(one: FoldedAttempt) -> tuple[object, ...]:
    """Return what the entries say of an attempt."""
    digests = (one.artefact_digest, one.manifest_digest)
    return (one.key, one.family, one.week, one.state.value, *digests, one.is_withdrawn)


def _accounts(connection: Connection, fold: Fold, family: str) -> Iterator[Finding]:
    """Compare a family's rows and caps with the fold."""
    accounts, rows = fold.accounts[family], rows_in(connection, family)
    for row in sorted(rows.keys() | accounts.spent.keys() | accounts.held.keys()):
        spent, held = rows.get(row, (NOTHING, NOTHING))
        if (spent, held) != (accounts.spent.get(row, NOTHING), accounts.held.get(row, NOTHING)):
            yield Finding("balance", None, f"{family} {_named(row)} is not the sum of its entries")
    folded = binding_caps(cap for caps in accounts.caps.values() for cap in caps)
    if family_caps(connection, family) != folded:
        yield Finding("balance", None, f"the caps of {family} are not what its entries say")


def _named(row: AccountRow) -> str:
    """Name an account row."""
    return f"{row.unit} ({row.scope}{', ' if row.week else ''}{row.week})"


def manifest_findings(attempts: Iterable[FoldedAttempt], public: Path) -> Iterator[Finding]:
    """Compare every published manifest with the digest in the ledger.

    A withdrawn release may be gone; one that is there has to be the one that was published. A
    package appears a moment after its entry, so a missing one is looked for again.
    """
    missing = []
    for one in attempts:
        if one.state is not ReleaseState.PUBLISHED:
            continue
        path = _manifest_of(one, public)
        if path.is_file():
            yield from _compared(one, path)
        elif not one.is_withdrawn:
            missing.append((one, path))
    if missing:
        time.sleep(APPEARS_WITHIN_S)
    for one, path in missing:
        if path.is_file():
            yield from _compared(one, path)
        else:
            problem = f"{one.key} is published, but {path} is missing"
            yield Finding("manifest", one.reserved_sequence, problem)


def _manifest_of(one: FoldedAttempt, public: Path) -> Path:
    """Return where the manifest of a publication is."""
    key = ReleaseKey.parse(one.key)
    return public / key.programme / key.period / f"r{key.revision}" / MANIFEST


def _compared(one: FoldedAttempt, path: Path) -> Iterator[Finding]:
    """Compare one manifest with its digest in the ledger."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if (one.manifest_digest or "").removeprefix("sha256:") != digest:
        problem = f"{path} is not the manifest that {one.key} was published with"
        yield Finding("manifest", one.reserved_sequence, problem)
