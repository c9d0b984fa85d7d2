"""What stands between a ledger and a bad day: known keys and witnesses, every trace, space, clock.

Asked before anything is held or charged; notified after everything that was written.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path

from sqlalchemy.engine import Connection

from turnstile.durable_files import create_durably
from turnstile.errors import InputError, IntegrityError
from turnstile.ledger import facts
from turnstile.ledger.custody.known_history import History, parties_in, read_history
from turnstile.ledger.custody.notes import LATEST_NOTE, Note, NoteFolder, note_findings
from turnstile.ledger.custody.shipped import last_shipped, make_witness, newest_findings
from turnstile.ledger.custody.space import require_space
from turnstile.ledger.custody.traces import Trace, TraceKind, trace_findings, traces
from turnstile.ledger.custody.witness import Witnesses, naming
from turnstile.ledger.database.store import Store
from turnstile.ledger.entries import Entry, EntryKind, instant
from turnstile.ledger.parties import FIRST_USE, Parties
from turnstile.ledger.records import Finding, ReleaseKey
from turnstile.ledger.states import ReleaseState
from turnstile.ledger.tlog.beginning import begin_log

_log = logging.getLogger("turnstile")
_CLOCK_SLACK = timedelta(days=1)
QUIET_AT_MOST = timedelta(days=35)
_FROM_NOTHING = frozenset({EntryKind.LOSS_DECLARED, EntryKind.RECOVERED})
"""What a ledger begins with that came back from files alone."""
"""Between two entries of a live deployment; else a person confirms the clock."""


@dataclass(frozen=True, slots=True)
class Custody:
    """Second places and zones of one ledger.

    Args:
        store: of the ledger.
        witnesses: folders that keep notes and entries, and the key.
        embargoed: zone of sealed bytes and staged packages, or None.
        clock: returns the present instant.
    """

    store: Store
    witnesses: Witnesses
    embargoed: Path | None
    clock: Callable[[], datetime]

    @property
    def is_wanted(self) -> bool:
        """Anybody keeps notes."""
        return self.witnesses.is_wanted

    def require_intact(self) -> frozenset[str]:
        """Refuse to go on unless every trace outside of the ledger agrees with it.

        Read are all notes, release cards, packages, staged packages and sealed files, and the last
        entry of every witness; known have to be key, witnesses and clock.

        Returns:
            the keys whose sealed bytes lie under embargo already.

        Raises:
            IntegrityError: one of them does not agree.
        """
        notes = self.witnesses.notes()  # before the ledger, see Witnesses.notes
        all_traces = traces(self.witnesses.public, self.embargoed)
        shipped = {folder: last_shipped(folder) for folder in self.witnesses.folders}
        history = self.store.read(read_history)
        for finding in self._findings(history, all_traces, shipped):
            raise _refusal(finding)
        trusted = self.witnesses.trusted_at(history.parties)
        for note in notes:
            seen = note.checkpoint
            if seen is not None and history.hash_at(seen.sequence) == seen.hash:
                continue  # it says what the ledger says; whoever signed it, nothing is forgotten
            superseded = history.parties.is_superseded
            for finding in note_findings(note, history.hash_at, trusted, superseded):
                raise _refusal(finding)
        return frozenset(trace.key for trace in all_traces if trace.kind is TraceKind.SEALED)

    def require_not_behind(self) -> None:
        """Refuse to write to a ledger that ends before a witness does, or beside it.

        Raises:
            IntegrityError: see above.
        """
        for folder in self.witnesses.mounted:
            for finding in newest_findings(folder, last_shipped(folder), self._hash_at):
                raise _refusal(finding)

    def _hash_at(self, sequence: int) -> str | None:
        """Return the hash of the ledger's entry at a position; None if it ends before."""
        return self.store.read(lambda connection: facts.hash_at(connection, sequence))

    def _findings(
        self, history: History, all_traces: tuple[Trace, ...], shipped: Mapping[Path, int]
    ) -> Iterator[Finding]:
        """Yield what disagrees, cheapest first."""
        yield from self.witnesses.findings(history.parties)
        yield from clock_findings(history.last_at, self.clock())
        for folder, last in shipped.items():
            yield from newest_findings(folder, last, history.hash_at)
        yield from trace_findings(all_traces, history.attempts, history.card_hash_at)

    def adopt(self) -> None:
        """Name key and witnesses in the ledger, if it never named any: on first use.

        Raises:
            InputError: a key cannot be made, or a folder cannot be written.
        """
        if not self.is_wanted:
            return
        parties = self.store.read(parties_in)
        has_log = bool(parties.logs) or self.witnesses.public is None
        has_witness = bool(parties.since) or not self.witnesses.folders
        if parties.key is None or not (has_log and has_witness):
            line = self.witnesses.make_key().public_line
            named = {}
            for folder in self.witnesses.folders:
                with naming(folder):
                    named[make_witness(folder)] = folder
            self.store.write(lambda c: self._name(c, line, named))
            parties = self.store.read(parties_in)
        self.witnesses.keep_keys(parties.key_lines)

    def _name(self, connection: Connection, line: str, named: Mapping[str, Path]) -> None:
        """Write the facts of a first use, unless another process did meanwhile."""
        facts.head(connection, locked=True)
        parties, at = parties_in(connection), instant(self.clock())
        who = dict(zip(("person", "reason"), FIRST_USE, strict=True))
        if parties.key is None:
            body = {"public_line": line, **who}
            facts.append(connection, at, EntryKind.SIGNING_KEY, body)
        if not parties.since:
            for name, folder in named.items():
                body = {"witness": name, "folder": str(folder), **who}
                facts.append(connection, at, EntryKind.WITNESS_ADDED, body)
        if self.witnesses.public is not None and not parties.logs:
            begin_log(connection, at, self.witnesses, who)

    def require_space(self, needed: Mapping[Path, int]) -> None:
        """Make sure that a draw's files can be written everywhere, by writing as much.

        Raises:
            InputError: a folder is full or cannot be written; nothing was charged.
        """
        total = dict(needed)
        sizes = self.witnesses.space()
        if self.store.folder is not None and self.is_wanted:
            sizes[self.store.folder] = max(sizes.values())
        for folder, size in sizes.items():
            total[folder] = total.get(folder, 0) + size
        require_space(total)

    def ship(self) -> None:
        """Write every entry to every witness, and a signed note of the last one.

        So a fact that is rewritten later is seen, whatever its kind. Before its first draw a ledger
        has no key, and no note; nor is there one while the key is gone, cut or another's.

        Raises:
            InputError: a witness cannot be written.
            IntegrityError: another copy of this ledger writes to it.
        """
        self.witnesses.ship(self._entries_after)
        parties, head = self.store.read(lambda c: (parties_in(c), facts.head(c)))
        if self.witnesses.signs_for(parties):
            self._note_at(head, parties)
        elif parties.key is not None:  # the fact stands: its note is written once the key is back
            for finding in self.witnesses.key_findings(parties):
                _log.warning("no note was signed: %s", finding.problem)

    def note(self, release: tuple[ReleaseKey, str] | None = None) -> None:
        """Write a signed note, if there is anywhere to write one."""
        parties, head = self.store.read(lambda c: (parties_in(c), facts.head(c)))
        self._note_at(head, parties, release)

    def _note_at(
        self, head: tuple[int, str], parties: Parties, release: tuple[ReleaseKey, str] | None = None
    ) -> None:
        if self.is_wanted:
            self.witnesses.write(head, release, parties.is_superseded)

    def note_again(self, history: History) -> None:
        """Write the newest note, and that beside every published package, if it is gone or torn.

        And those that a witness lacks, if they say what the ledger says.

        Without the key nothing is written: first it is restored, or another made. Public keys that
        a loss of power cut are whole again.
        """
        public = self.witnesses.public
        if public is None or not self.witnesses.signs_for(history.parties):
            return
        if history.parties.key_lines:
            with suppress(InputError):  # a witness that cannot be written to keeps what it has
                self.witnesses.keep_keys(history.parties.key_lines)
        if Note.read(public / LATEST_NOTE).checkpoint is None:
            self.note()
        beside = NoteFolder(public, is_public=True).path_beside
        for attempt in chain.from_iterable(history.attempts.values()):
            package, note = public / str(attempt.key), Note.read(beside(attempt.key))
            is_lost = f"{attempt.key} package" in history.parties.lost
            is_told = attempt.state is ReleaseState.PUBLISHED and (is_lost or package.is_dir())
            if is_told and attempt.manifest_digest and note.checkpoint is None:
                self.note((attempt.key, attempt.manifest_digest))
        notes, parties = self.witnesses.notes(), history.parties
        trusted = self.witnesses.trusted_at(parties)
        for note, place in self.witnesses.lacking(notes, parties, history.hash_at, trusted):
            with suppress(OSError):  # a witness that cannot be written to stays named
                place.parent.mkdir(exist_ok=True)
                create_durably(place, note.text.encode())

    def _entries_after(self, sequence: int) -> tuple[Entry, ...]:
        return self.store.read(lambda c: facts.entries_after(c, sequence))


def clock_findings(last_at: str | None, now: datetime) -> Iterator[Finding]:
    """Refuse a clock that stands before the last entry. One that runs ahead cannot be noticed."""
    if last_at is None:
        return
    last = datetime.fromisoformat(last_at)
    if now < last - _CLOCK_SLACK:
        problem = (
            f"the clock says {instant(now)}, the ledger's last entry is of {last_at}; set "
            "the clock, or if it is right: turnstile ledger confirm-clock --reason TEXT"
        )
        yield Finding("clock", None, problem)


def clock_known_until(entries: Iterable[Entry], now: datetime) -> datetime:
    """Return until when the clock is known to be right: now, or the last entry before a jump.

    A jump is a longer silence between two entries, or before now, than a live deployment has, or an
    entry before the one that it follows; what the clock says after it counts for nothing until a
    person has confirmed it, however much was written meanwhile. Of a clock that stands before the
    last entry nothing is known, nor is it of a ledger that a recovery made from files alone.
    """
    nothing = datetime.min.replace(tzinfo=UTC)
    last: datetime | None = None
    for entry in entries:
        at = datetime.fromisoformat(entry.at)
        if last is None and entry.kind in _FROM_NOTHING:
            last = nothing  # is left to hold the clock against
        elif entry.kind is EntryKind.CLOCK_CONFIRMED or last is None or _follows(last, at):
            last = at
    if last is None or _follows(last, now):
        return now
    return last if last < now else nothing


def _follows(last: datetime, at: datetime) -> bool:
    """Return whether an instant may come after another by a clock that is right."""
    return -_CLOCK_SLACK <= at - last <= QUIET_AT_MOST


def _refusal(finding: Finding) -> IntegrityError:
    """Say why nothing may be charged."""
    if finding.check in {"witness", "cosigner"} and finding.sequence is None:  # says what to do
        return IntegrityError(f"{finding}: nothing was charged, drawn or removed")
    return IntegrityError(
        f"{finding}; drawing would spend budget that is spent already: nothing was charged, "
        "drawn or removed; restore the newest ledger, or run turnstile ledger recover "
        "--reason TEXT on this machine, which sees it; then run turnstile ledger verify"
    )
