"""The one verification: what the ledger's database says, recomputed from its entries and traces.

Behind `turnstile ledger verify`, the audit step and the daily audit. It writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Row as SqlRow
from sqlalchemy import select
from sqlalchemy.engine import Connection

from turnstile.errors import InputError
from turnstile.ledger.admission import binding_caps
from turnstile.ledger.attempts import to_attempt
from turnstile.ledger.balances.accounts import families, family_caps
from turnstile.ledger.balances.changes import NOTHING, AccountRow
from turnstile.ledger.balances.stored_accounts import cap_columns_in, rows_in
from turnstile.ledger.custody.at_work import is_published_now
from turnstile.ledger.custody.custody import Custody, clock_findings
from turnstile.ledger.custody.export import key_findings
from turnstile.ledger.custody.notes import LATEST_NOTE, TrustedAt, note_findings
from turnstile.ledger.custody.release_files import file_findings
from turnstile.ledger.custody.shipped import entry_findings, last_shipped
from turnstile.ledger.custody.traces import trace_findings, traces
from turnstile.ledger.custody.vouched_files import beside_package, public_records
from turnstile.ledger.custody.zone_index import ZoneState, zone_findings
from turnstile.ledger.database.database_tables import ATTEMPT, ENTRY
from turnstile.ledger.database.guards import guard_findings
from turnstile.ledger.entries import GENESIS, Entry, EntryKind, instant, read_entry
from turnstile.ledger.facts import head
from turnstile.ledger.fold import Fold
from turnstile.ledger.promise import promise_problems
from turnstile.ledger.records import Attempt, Finding, ReleaseKey
from turnstile.ledger.tlog.beginning import is_log_lost
from turnstile.ledger.tlog.cosigners import cosigners_of
from turnstile.ledger.tlog.public_log import log_findings
from turnstile.ledger.weeks import PUBLIC_KINDS

_ROWS_AT_ONCE = 200
_IN_CHANGE = timedelta(hours=1)
"""After a publication its files are not listed yet; much later they should be."""
_PROMISES = (EntryKind.RESERVED, EntryKind.LOSS_DECLARED)


@dataclass(frozen=True, slots=True)
class Scope:
    """How far a verification goes.

    Args:
        packages: release keys whose files are all read; None for every one.
        trusted: public keys obtained another way, lines of a `ledger.pub`; empty: the ledger's own.
        trusted_in: where they come from, for messages.
    """

    packages: frozenset[str] | None = None
    trusted: tuple[str, ...] = ()
    trusted_in: str = "ledger.pub"


def verify_store(
    connection: Connection, custody: Custody, scope: Scope, version: str
) -> Iterator[Finding]:
    """Yield everything in which database, entries and traces disagree.

    Args:
        connection: of a reading transaction that has not read yet.
        custody: second places and zones.
        scope: how far to go.
        version: of the tables.
    """
    witnesses = custody.witnesses
    # Files first, and the database second: see Witnesses.notes.
    notes, all_traces = witnesses.notes(), traces(witnesses.public, custody.embargoed)
    shipped = {folder: last_shipped(folder) for folder in witnesses.folders}
    fold, last_at, told = Fold(), None, list[Entry]()
    for finding, at in _entries(connection, fold, told):
        last_at = at or last_at
        if finding is not None:
            yield finding
    if head(connection) != fold.chain.head:
        yield Finding("chain", head(connection)[0], "is named as the last entry, and is not")
    yield from _attempts(connection, fold)
    for family in sorted(set(families(connection)) | set(fold.accounts)):
        yield from _accounts(connection, fold, family)
    yield from guard_findings(connection, version)
    yield from witnesses.findings(fold.parties)
    for folder, last in shipped.items():
        yield from entry_findings(folder, last, fold.hash_at, fold.chain.head[0])
    trusted = _trusted(custody, fold, scope)
    for note in notes:
        yield from note_findings(note, fold.hash_at, trusted, fold.parties.is_superseded)
    for note, place in witnesses.lacking(notes, fold.parties, fold.hash_at, trusted):
        problem = f"{place} is gone, or was never written, which {note.path} was written with; "
        problem += "turnstile ledger republish writes it, where the witness can be written to"
        yield Finding("witness", None, problem)
    if scope.trusted:
        yield from key_findings(fold.parties, scope.trusted, scope.trusted_in)
    yield from clock_findings(last_at, custody.clock())
    yield from trace_findings(all_traces, fold.by_key, fold.card_hash_at)
    yield from file_findings(fold, custody, scope.packages)
    if witnesses.public is not None:
        hashes = [fold.hash_at(n) or GENESIS for n in range(1, fold.chain.head[0] + 1)]
        named = () if witnesses.key is None else cosigners_of(witnesses.log_policy)
        known = tuple(cosigner.verifier for cosigner in named)
        yield from log_findings(witnesses.public, fold.parties.logs, hashes, known)
        yield from _zone_findings(
            witnesses.public, fold, told, trusted(fold.chain.head[0]), custody
        )


def _zone_findings(
    public: Path, fold: Fold, told: list[Entry], trusted: tuple[str, ...], custody: Custody
) -> Iterator[Finding]:
    """Compare the public zone with its signed list."""
    recent = instant(custody.clock() - _IN_CHANGE)

    def in_change(length: int) -> frozenset[str]:
        later = (entry for entry in told if entry.sequence > length and entry.at >= recent)
        return frozenset(str(entry.key).partition("/")[0] for entry in later)

    gone = {str(attempt.key) for attempt in fold.attempts.values() if attempt.is_withdrawn}
    gone |= {name.removesuffix(" package") for name in fold.parties.lost}
    # The proof of an entry that is lost is in a log that was left: nobody can make it again.
    declared = {str(entry.key) for entry in told if entry.kind is EntryKind.LOSS_DECLARED}
    declared -= {str(entry.key) for entry in told if entry.kind is EntryKind.PUBLISHED}
    gone |= {beside_package(ReleaseKey.parse(name))[1] for name in declared}
    left = {str(attempt.key) for attempt in fold.attempts.values() if attempt.is_public}
    state = ZoneState(
        trusted=trusted,
        is_wanted=any(
            "zone_index" in entry.body and not is_published_now(custody.embargoed, entry.key)
            for entry in told  # whoever publishes signs the list last
        ),
        may_be_gone=frozenset(gone),
        in_change=in_change,
        left=frozenset(
            key for key in left - gone if is_published_now(custody.embargoed, key) is False
        ),
        stated=frozenset(public_records(told)),
    )
    yield from zone_findings(public, state)
    witnesses = custody.witnesses
    if witnesses.key is not None and is_log_lost(witnesses, fold.parties.logs):
        begin = "turnstile ledger begin-log --reason TEXT"
        problem = f"is gone, or is not the key of the log; restore it, or {begin}"
        yield Finding("log", None, f"{witnesses.log_key} {problem}")
    if state.is_wanted and not (public / LATEST_NOTE).exists():
        problem = f"{public / LATEST_NOTE} is gone; turnstile ledger republish writes it again"
        yield Finding("checkpoint", None, problem)


def _trusted(custody: Custody, fold: Fold, scope: Scope) -> TrustedAt:
    """Return who has to have signed a note."""
    if scope.trusted:
        return lambda _: scope.trusted
    return custody.witnesses.trusted_at(fold.parties)


def _entries(
    connection: Connection, fold: Fold, told: list[Entry]
) -> Iterator[tuple[Finding | None, str | None]]:
    """Fold every entry, checking its columns against its text; yield findings and instants.

    Those that change what is public are added to `told`.
    """
    query = select(ENTRY).order_by(ENTRY.c.sequence).execution_options(yield_per=_ROWS_AT_ONCE)
    for row in connection.execute(query):
        try:
            entry = read_entry(row.record, row.hash)
        except ValueError as error:
            yield Finding("chain", row.sequence, f"its text is no entry ({error})"), None
            continue
        columns = (row.sequence, row.kind, row.release_key, row.attempt_id)
        if columns != (entry.sequence, entry.kind.value, entry.key, entry.attempt_id):
            yield Finding("chain", row.sequence, "its columns do not say what its text says"), None
        for finding in fold.follow(entry):
            yield finding, None
        if entry.kind in PUBLIC_KINDS:
            told.append(entry)
        if entry.kind in _PROMISES:
            for problem in promise_problems(entry):
                yield Finding("promise", entry.sequence, problem), None
        yield None, entry.at


def _attempts(connection: Connection, fold: Fold) -> Iterator[Finding]:
    """Compare the attempts' table with the fold."""
    stored = {row.attempt_id: _stored(row) for row in connection.execute(select(ATTEMPT))}
    for name in sorted(stored.keys() - fold.attempts.keys()):
        yield Finding("balance", None, f"attempt {name} is in no entry")
    for name, attempt in fold.attempts.items():
        if name not in stored:
            yield Finding("balance", attempt.reserved_sequence, f"attempt {name} is gone")
        elif stored[name] != attempt:
            problem = f"attempt {name} is not what its entries say"
            yield Finding("balance", attempt.reserved_sequence, problem)


def _stored(row: SqlRow[Any]) -> Attempt | None:
    """Return what the table says of an attempt; None if nobody can read it."""
    try:
        return to_attempt(row)
    except (InputError, ValueError):
        return None


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
    for row, figures in cap_columns_in(connection, family).items():
        if row in accounts.cap_figures and figures != accounts.cap_figures[row]:
            problem = f"the cap on {family} {_named(row)} is not that of its last reservation"
            yield Finding("balance", None, problem)


def _named(row: AccountRow) -> str:
    return f"{row.unit} ({row.scope}{', ' if row.week else ''}{row.week})"
