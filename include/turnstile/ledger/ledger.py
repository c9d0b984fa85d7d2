"""The ledger: what every passenger unit has lost, over every week ever released (PRIVACY 1, 3, 6).

What charges and seals stands in `charging`, of the trusted core, to be read by itself. The other
calls are here: what reads, what publishes, what people and audits say, keys and witnesses. One
durable transaction per call; time comes from a clock, signatures from `custody`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Self

from sqlalchemy import func, select
from sqlalchemy.engine import Connection

from turnstile.errors import InputError, IntegrityError, RefusedError
from turnstile.ledger import attempts, facts, landing_paths, leases, revisions, words
from turnstile.ledger.balances.charged_releases import ChargedRelease, charged_releases
from turnstile.ledger.balances.forecast import CapForecast, forecasts
from turnstile.ledger.balances.stored_accounts import account_balances
from turnstile.ledger.bounding_keys import BoundingKeys, TakenUp, bounding_keys_in
from turnstile.ledger.charging import ChargingLedger
from turnstile.ledger.custody import recovery
from turnstile.ledger.custody.custody import Custody
from turnstile.ledger.custody.export import write_export
from turnstile.ledger.custody.known_history import parties_in, read_history
from turnstile.ledger.custody.notes import LATEST_NOTE, Note, NoteFolder
from turnstile.ledger.custody.recovery import Delivered, Recovery
from turnstile.ledger.custody.shipped import witness_id
from turnstile.ledger.custody.signed_note import is_signed_by
from turnstile.ledger.custody.traces import CARD, TraceKind, package_trace, trace_findings
from turnstile.ledger.custody.vouched_files import vouched_files
from turnstile.ledger.custody.witness import ANOTHERS, Witnesses, naming
from turnstile.ledger.custody.zone_index import signed_list, write_index
from turnstile.ledger.database.damaged_database import Remains, damage_in
from turnstile.ledger.database.database_tables import ENTRY
from turnstile.ledger.database.store import Store
from turnstile.ledger.entries import Entry, EntryKind, instant, read_entry
from turnstile.ledger.fold import Fold
from turnstile.ledger.parties import LogBegun, Parties
from turnstile.ledger.records import (
    AccountBalance,
    Assessed,
    Attempt,
    Decision,
    Finding,
    ReleaseKey,
    for_the_public,
)
from turnstile.ledger.refusals import letting_go
from turnstile.ledger.states import ReleaseState, Transition
from turnstile.ledger.tlog.beginning import (
    begin_log,
    is_log_lost,
    log_signer,
    lost_logs,
    set_key_aside,
)
from turnstile.ledger.tlog.cosigners import Answer, ask_all, cosigners_of
from turnstile.ledger.tlog.merkle import Tree
from turnstile.ledger.tlog.public_log import PublicLog, is_log_beyond
from turnstile.ledger.verification import Scope, verify_store
from turnstile.ledger.weeks import PUBLIC_KINDS
from turnstile.service_calendar import ServicePeriod

Clock = Callable[[], datetime]
_ROWS_AT_ONCE = 200
_log = logging.getLogger("turnstile")
_NOTHING: Mapping[str, str] = MappingProxyType({})
_LAST_PUBLIC = select(func.max(ENTRY.c.sequence)).where(
    ENTRY.c.kind.in_([kind.value for kind in PUBLIC_KINDS])
)
_SEALS = {EntryKind.SEALED, EntryKind.LOSS_DECLARED}


class Ledger(ChargingLedger):
    """A durable account; each call sees or makes one state of it. Open it with `Ledger.open`.

    Its rules, in this order: what is charged is never refunded, and one byte string is sealed for a
    key (`charging`); what is read changes nothing; what is published is the sealed, under one
    manifest; what people say is a fact beside the others, and a repeat of it changes nothing; keys
    and witnesses are named before they are used.
    """

    def __init__(
        self, store: Store, *, clock: Clock, witnesses: Witnesses, embargoed: Path | None = None
    ) -> None:
        self._witnesses = witnesses
        self._custody: Custody
        super().__init__(store, clock, Custody(store, witnesses, embargoed, clock))

    @classmethod
    def open(  # noqa: PLR0913 - each a folder of the deployment
        cls,
        url: str,
        *,
        clock: Clock,
        witnesses: Sequence[Path] = (),
        public: Path | None = None,
        embargoed: Path | None = None,
        key: Path | None = None,
        read_only: bool = False,
    ) -> Self:
        """Open a ledger, and make or migrate its tables first if need be.

        Args:
            url: `sqlite:///path` or `postgresql+psycopg://user@host/database`.
            clock: returns the present instant, aware of its zone.
            witnesses: folders of second places for signed checkpoints.
            public: public zone; checkpoints go beside its publications.
            embargoed: zone of sealed bytes; every trace in it is compared before a charge.
            key: private signing key; by default `ledger-key.pem` beside the public zone, else
                beside an SQLite file. Made on first use, and known from then on.
            read_only: make nothing and change nothing, not even the version of the tables.

        Raises:
            InputError: the store cannot be reached or written.
        """
        store = Store(url, read_only=read_only)
        near = public.parent if public is not None else store.folder
        key = key or (None if near is None else near / "ledger-key.pem")
        folders = Witnesses(tuple(witnesses), public, key)
        return cls(store, clock=clock, witnesses=folders, embargoed=embargoed)

    # -- what is read ------------------------------------------------------------------------------

    def attempts(self, key: ReleaseKey) -> tuple[Attempt, ...]:
        """Return every attempt at a key, oldest first; the burned ones were charged too."""
        return self._store.read(lambda c: attempts.attempts(c, key))

    def living_draws(self) -> frozenset[str]:
        """Return the attempts that a process draws under at this moment."""
        return self._store.read(leases.living)

    def package_findings(self, key: ReleaseKey, package: Path) -> tuple[Finding, ...]:
        """Compare what a staged package states with the entries: key, sealed bytes, card's head.

        Args:
            key: release that it is to be published under.
            package: its folder.
        """
        trace = package_trace(TraceKind.STAGED, str(key), package)
        if trace.head is None:
            return (Finding("card", None, f"{package / CARD} names no entry of the ledger"),)
        history = self._store.read(read_history)
        return tuple(trace_findings((trace,), history.attempts, history.card_hash_at))

    def bounding_keys(self) -> BoundingKeys:
        """Return which bounding key was in force when."""
        return self._store.read(bounding_keys_in)

    def is_published(self, key: ReleaseKey) -> bool:
        """Say whether a key was published, or was declared so by a recovery; withdrawn ones too."""
        return self._store.read(lambda c: attempts.is_published(c, key))

    def balance(
        self, family: str | None = None, around: ServicePeriod | None = None
    ) -> tuple[AccountBalance, ...]:
        """Return every account of a family (or of all), sorted, and the most spent windows.

        Args:
            family: accounts of accounts; None for all.
            around: period whose weeks a window has to hold one of; None for windows of all history.
        """
        return self._store.read(lambda c: account_balances(c, family, around))

    def charged(self, family: str) -> tuple[ChargedRelease, ...]:
        """Return every charged attempt of a family with its draws, the burned ones too."""
        return self._store.read(lambda c: charged_releases(c, family))

    def entries(self, *, after: int = 0) -> Iterator[Entry]:
        """Yield every fact after a sequence number, in order, of one state of the ledger."""
        with self._store.reading() as connection:
            connection.execution_options(yield_per=_ROWS_AT_ONCE)
            rows = connection.execute(facts.AFTER, {"after": after})
            for row in rows:
                yield read_entry(row.record, row.hash)

    def entries_of(self, key: ReleaseKey) -> tuple[Entry, ...]:
        """Return every fact about a key, oldest first."""
        return self._store.read(lambda c: facts.facts(c, key, *EntryKind))

    def head(self) -> tuple[int, str]:
        """Return sequence and hash of the last entry; `(0, 64 zeros)` of an empty ledger."""
        return self._store.read(facts.head)

    def verify(self, scope: Scope | None = None) -> tuple[Finding, ...]:
        """Recompute everything that follows from entries and files; return what disagrees.

        Args:
            scope: how far to go; by default every package file by file.

        Raises:
            InputError: the private key may not be read, and no public one is given.
        """
        if self._store.file and (damage := damage_in(self._store.file)):
            recover = "stop runs, then turnstile ledger recover --reason TEXT"
            return (Finding("database", None, f"the file is damaged ({damage}); {recover}"),)
        how, version, custody = scope or Scope(), self._store.version(), self._custody
        if how.trusted and not self._witnesses.may_sign:  # a login that was given no private key
            custody = replace(custody, witnesses=replace(self._witnesses, key=None))
        elif self._witnesses.has_key and not self._witnesses.may_sign:
            rule = "this login may not read it; without it verify by --key, a ledger.pub you kept"
            raise InputError(where=str(self._witnesses.key), field="key", rule=rule)
        return self._store.read(lambda c: tuple(verify_store(c, custody, how, version)))

    def forecast(self, family: str | None = None) -> tuple[CapForecast, ...]:
        """Return in which week each cap is reached with the present programmes."""
        fold = Fold()
        for entry in self.entries():
            tuple(fold.follow(entry))
        return forecasts(fold, family)

    def export(self, folder: Path) -> int:
        """Write a complete, signed copy that verifies without this database; return its length.

        Raises:
            InputError: the folder is not empty or cannot be written, or there is no key.
        """
        return write_export(self.entries(), folder, self._witnesses, self.parties().key_lines)

    def parties(self) -> Parties:
        """Return the keys and witnesses that the ledger knows."""
        return self._store.read(parties_in)

    def public_list(self) -> Mapping[str, str]:
        """Return digests of the public zone by path, as its signed list has them."""
        public = self._witnesses.public
        return {} if public is None else signed_list(public, self.trusted_to_list())

    def notes_beside(self, public: Path, manifests: Mapping[ReleaseKey, str]) -> Iterator[Note]:
        """Yield each note beside a package that a key of this ledger signed.

        Args:
            public: zone.
            manifests: digests of the packages whose notes are asked for.
        """
        trusted = self._witnesses.trusted_at(self.parties())
        for key, manifest in manifests.items():
            note = Note.read(NoteFolder(public, is_public=True).path_beside(key))
            if (seen := note.checkpoint) is None or seen.release != (str(key), manifest):
                continue
            if any(is_signed_by(line, seen) for line in trusted(seen.sequence)):
                yield note

    def trusted_to_list(self) -> tuple[str, ...]:
        """Return the public lines of which one has to have signed the list of the public zone.

        An earlier key counts until something is published under the next one, and no longer: it may
        have been stolen.
        """
        parties = self.parties()
        trusted_lines = self._witnesses.trusted_at(parties)(self.head()[0])
        last = self._store.read(lambda c: c.execute(_LAST_PUBLIC).scalar_one())
        is_new = bool(parties.keys) and parties.keys[-1][0] > (last or 0)
        return tuple(dict.fromkeys((*trusted_lines, *(parties.key_lines if is_new else ()))))

    def assessment(self, key: ReleaseKey) -> Assessed | None:
        """Return what the gates last said of a key, or None."""
        return self._store.read(lambda c: words.assessment(c, key))

    def approvals(self, key: ReleaseKey) -> tuple[Decision, ...]:
        """Return every decision about a key, approvals and refusals, oldest first."""
        return self._store.read(lambda c: words.decisions(c, key))

    def deliveries(self, key: ReleaseKey) -> frozenset[str]:
        """Return the portals at which every byte of a release was read back."""
        return self._store.read(lambda c: words.deliveries(c, key))

    def decisions_on_revision(self, key: ReleaseKey) -> tuple[revisions.RevisionDecision, ...]:
        """Return what is said of making a correction, and was not taken back, oldest first."""
        return self._store.read(lambda c: revisions.words(c, key))

    def proof_of_seal(self, key: ReleaseKey) -> str | None:
        """Return the proof that the seal of a release is in the transparency log.

        None where the ledger has begun no log.

        Args:
            key: of a sealed release.

        Raises:
            InputError: the log's key cannot be read.
        """
        logs = self._logs()
        if not logs:
            return None
        seals = (entry.sequence for entry in self.entries_of(key) if entry.kind in _SEALS)
        return str(logs[-1].proof(max(seals), self._sign_as(logs[-1].begun)))

    # -- what is published -------------------------------------------------------------------------

    @property
    def has_key(self) -> bool:
        """Something can be signed here, under the key that the ledger names if it names one."""
        return self._witnesses.signs_for(self.parties())

    def sign_payload(self, kind: str, payload: bytes) -> tuple[str, bytes]:
        """Return the ledger's public key and its signature of a payload of a media type.

        Raises:
            InputError: there is no key, or it cannot be read.
        """
        signer = self._custody.witnesses.signer()
        return signer.public_line, signer.sign_payload(kind, payload)

    def require_signers(self) -> None:
        """Refuse where what a publication writes cannot be signed.

        Raises:
            InputError: the signing key or the transparency log's is gone, or is another one.
        """
        parties = self.parties()
        signer = self._custody.witnesses.signer() if parties.key is not None else None
        if signer is not None and signer.public_line != parties.key:
            raise InputError(where="the signing key", field="key", rule=ANOTHERS)
        if parties.logs:
            log_signer(self._custody.witnesses, parties.logs[-1])

    def publish(self, key: ReleaseKey, manifest_digest: str) -> None:
        """Say that a sealed release is public, and write signed checkpoints.

        A second call with the same manifest says nothing new.

        Raises:
            IntegrityError: it was published with another manifest.
            RefusedError: nothing is sealed under the key.
            InputError: what it writes cannot be signed.
        """

        def act(connection: Connection) -> None:
            attempt = self._locked(connection, attempts.sealed(connection, key).attempt_id)
            if (
                attempt.state is ReleaseState.PUBLISHED
                and attempt.manifest_digest != manifest_digest
            ):
                raise IntegrityError(
                    f"{key} is published with another manifest; restore the published package, "
                    "or release a revision"
                )
            words = {"manifest_digest": manifest_digest, "zone_index": "signed"}
            self._move(connection, attempt, Transition.PUBLISH, **words)

        # Before it is public: the zone may be another copy than that of the draw, a key be gone.
        self._custody.adopt()
        self.require_signers()
        self._write(act)
        self._custody.note((key, manifest_digest))

    def checkpoint(self) -> str:
        """Sign the head, write it to every witness and to the public zone, and return the note.

        Raises:
            InputError: the ledger has no place for a key, or a folder cannot be written.
        """
        self._custody.adopt()
        self.require_signers()
        self._custody.ship()
        return self._witnesses.write(self.head(), superseded=self.parties().is_superseded)

    def sign_public_zone(self, series: Mapping[str, str] = _NOTHING) -> tuple[Answer, ...]:
        """Bring log and signed list to what is public now; called after every change of the zone.

        Args:
            series: digests of what this process wrote of series and pages, by path in the zone;
                of a file that nobody says to have written the list of before holds on.

        Returns:
            what each cosigner of the log said, where some are named.

        Raises:
            InputError: the key cannot be read, or the zone cannot be written.
        """
        public = self._custody.witnesses.public
        if public is not None and public.is_dir() and self.has_key:
            with naming(public):
                # In this order: a list that states fewer entries than its log is of an older zone.
                logs, length = self._logs(), self.head()[0]
                if length and not (public / LATEST_NOTE).exists():
                    self._custody.note()  # of a publication that was killed before it was sent
                log = logs[-1] if logs else None
                if log is not None:
                    log.write(self._sign_as(log.begun))
                for left in logs[:-1]:
                    left.take_over()  # what was owed it takes no key
                    left.join()
                for lost in lost_logs(self._custody.witnesses, self.parties().logs):
                    lost.write_key()
                answers = () if log is None else self._cosigned(log)
                proofs = [proof for known in logs for proof in known.made().items()]
                made, trusted = {**dict(proofs), **series}, self.trusted_to_list()
                written = vouched_files(self.entries(), self.parties(), made, trusted)
                write_index(public, length, written, self.sign_payload)
                return answers
        return ()

    def noting_again(self) -> Callable[[], None]:
        """Return what writes notes of the public zone that are gone or torn, as the ledger is now.

        Those beside packages and the newest; the history is read once, however often it is called.

        Raises:
            InputError: the key cannot be read, or the zone cannot be written.
        """
        return partial(self._custody.note_again, self._store.read(read_history))

    # -- what people and audits say ----------------------------------------------------------------

    def void_stale(
        self, older_than: timedelta, reason: str = "timed out", *, person: str | None = None
    ) -> tuple[Attempt, ...]:
        """Void every hold that is older; a draw under way never times out."""
        limit = instant(self._clock() - older_than)
        stale = self._store.read(lambda c: attempts.reserved_before(c, limit))
        voided = []
        for attempt_id in stale:
            with suppress(RefusedError):  # it began to draw meanwhile, so it is no longer a hold
                voided.append(self.void(attempt_id, reason, person=person))
        return tuple(voided)

    def withdraw(
        self, key: ReleaseKey, person: str, reason: str, *, public_note: str = ""
    ) -> Attempt:
        """Flag a published release as withdrawn; nothing is refunded. A repeat changes nothing.

        Args:
            key: of the release.
            person: who says so.
            reason: why; it stays internal.
            public_note: what the public is told; empty for nothing but the fact.

        Raises:
            RefusedError: the key is not published.
        """
        said = {"person": person, "reason": reason, **for_the_public(public_note)}

        def act(connection: Connection) -> Attempt:
            attempt = self._locked(connection, attempts.sealed(connection, key).attempt_id)
            if attempt.state is not ReleaseState.PUBLISHED:
                raise RefusedError(f"{key} is not published; there is nothing to withdraw")
            if not attempt.is_withdrawn:
                attempts.withdraw(connection, self._now(), attempt, said)
            return attempts.attempt(connection, attempt.attempt_id)

        return self._write(act)

    def declare_no_release(self, key: ReleaseKey, person: str, reason: str) -> Entry:
        """Write that a period has no release; a repeat changes nothing (PRIVACY 9.2).

        Raises:
            RefusedError: bytes are sealed under the key, or it is held or being drawn.
        """
        body = {"key": str(key), "person": person, "reason": reason}
        return self._write(lambda c: words.declare_no_release(c, self._now(), body))

    def approve(
        self, key: ReleaseKey, person: str, role: str, reason: str, *, public_note: str = ""
    ) -> Decision:
        """Write that a person approves the bytes sealed under a key; a repeat changes nothing.

        The decision names the sealed artefact, or none if nothing is sealed yet. The reason stays
        internal; the public is told the note, if there is one.
        """
        said = {"person": person, "role": role, "reason": reason, **for_the_public(public_note)}
        return self._decide(EntryKind.APPROVED, key, **said)

    def refuse(self, key: ReleaseKey, person: str, role: str, reason: str) -> Decision:
        """Write that a person refuses the release of a key; a repeat changes nothing."""
        return self._decide(EntryKind.REFUSED, key, person=person, role=role, reason=reason)

    def decide_on_revision(
        self, decision: revisions.RevisionDecision
    ) -> revisions.RevisionDecision:
        """Write that a person allows or declines one correction; a repeat changes nothing.

        Whether it is enough to draw, the reader of `decisions_on_revision` judges by roles.

        Raises:
            RefusedError: the key is not the next correction of a sealed release.
        """
        return self._write(lambda c: words.say_on_revision(c, self._now(), decision))

    def admit_family(self, landing: str, family: str, person: str, reason: str) -> Entry:
        """Write that a second budget group may read a landing path that another one has used.

        Raises:
            InputError: no other group has used it.
        """
        body = {"landing": landing, "family": family, "person": person, "reason": reason}
        return self._write(lambda c: landing_paths.admit_family(c, self._now(), body))

    def record_assessment(self, assessed: Assessed) -> Assessed:
        """Write what the gates said of sealed bytes; a repeat of the last one changes nothing."""
        return self._write(lambda c: words.record_assessment(c, self._now(), assessed))

    def record_audit(self, key: ReleaseKey, *, outcome: str, report_digest: str) -> Entry:
        """Write that a release was audited; a repeat with the same report changes nothing."""
        body = {"key": str(key), "outcome": outcome, "report_digest": report_digest}
        return self._write(lambda c: words.record_audit(c, self._now(), body))

    def record_delivery(self, key: ReleaseKey, portal: str, manifest_digest: str) -> None:
        """Write that every byte of a release was read back from a portal; a repeat writes nothing.

        Raises:
            RefusedError: the key is not published with this manifest.
        """
        self._write(lambda c: words.record_delivery(c, self._now(), key, portal, manifest_digest))

    def record_deletion(
        self, programme: str, period: str, part: str, days: int, **said: str
    ) -> Entry:
        """Write that private data of a period are deleted by retention, just before they are.

        What comes back, from a copy perhaps, is deleted again, and that is stated again.

        Args:
            programme: whose promise it is.
            period: of the data.
            part: `files`, `rows` or `exact`.
            days: that the programme keeps them.
            **said: due day, `due`, and `reason`; and where more goes at once than goes without a
                person, whose reason that is, `person`.
        """
        body = {"programme": programme, "period": period, "part": part, "days": days, **said}
        return self._write(lambda c: facts.append(c, self._now(), EntryKind.DELETED, body))

    def recover(  # noqa: PLR0913 - each a thing that a person says or that is left
        self,
        person: str,
        reason: str,
        *,
        families: Mapping[str, str] | None = None,
        remains: Remains | None = None,
        delivered: Delivered | None = None,
        ends_draws: bool = False,
    ) -> Recovery:
        """Bring the ledger back to what witnesses, packages and sealed files prove.

        A second call finds nothing to do.

        Args:
            person: who declares what was lost.
            reason: what happened.
            families: budget group of a programme, where nothing else names it.
            remains: of a damaged database.
            delivered: of which files releases are whose entries are lost.
            ends_draws: whether draws that a process works on at this moment are ended too.

        Where a checkpoint of the transparency log holds entries that are lost, another log begins.

        Raises:
            InputError: a trace cannot be read, or a budget group is not known.
            IntegrityError: a witness holds another history.
            RefusedError: a process draws.
        """
        said, groups = (person, reason), dict(families or {})
        done = recovery.recover(
            self._custody, groups, said, remains or Remains(), delivered, ends_draws=ends_draws
        )
        if not self.parties().keys and self._witnesses.has_key:
            # The key that folders were given is named again, or it is a stranger's file there; so
            # are those before it, or their lines beside packages accuse.
            public_line = self._witnesses.signer().public_line
            if self._witnesses.kept_lines():
                earlier = [line for line in self._witnesses.signing_lines() if line != public_line]
                self._name_keys((*earlier, public_line), person, reason)
        self._custody.ship()
        public, history = self._custody.witnesses.public, self._store.read(read_history)
        self._custody.note_again(history)
        logs = history.parties.logs
        if public is not None and (
            is_log_lost(self._witnesses, logs) or is_log_beyond(public, logs, history.of_entries)
        ):
            self.begin_log(person, reason)
        return done

    def begin_log(self, person: str, reason: str, origin: str | None = None) -> LogBegun:
        """Begin another transparency log over all entries, under a key and an origin of its own.

        Args:
            person: who says so.
            reason: why.
            origin: its name for ever, such as `transport.example.org/opal`; None: after its key.

        Raises:
            InputError: there is no public zone, no key can be made, or the name cannot be one.
        """
        if origin is not None and not re.fullmatch(r"[!-*,-~]+", origin):
            rule = f"{origin!r} cannot name a log: no blank, no plus sign, letters of ASCII"
            raise InputError(where="ledger", field="origin", rule=rule)
        if origin in {log.origin for log in self.parties().logs}:
            rule = f"{origin!r} names a log that was begun before, whose proofs stay; another one"
            raise InputError(where="ledger", field="origin", rule=rule)
        if self._custody.witnesses.public is None:
            rule = "there is no public zone, where a log is kept"
            raise InputError(where="ledger", field="log", rule=rule)
        set_key_aside(self._custody.witnesses)
        who = {"person": person, "reason": reason}
        self._write(lambda c: begin_log(c, self._now(), self._custody.witnesses, who, origin))
        return self.parties().logs[-1]

    # -- keys, witnesses, clock --------------------------------------------------------------------

    def rotate_key(self, person: str, reason: str) -> str:
        """Take up a new signing key and return its public line; notes before keep the old one.

        The file of the key in force, if there is one, is moved aside. A key file that the ledger
        does not know is taken up as it is.

        Raises:
            InputError: there is no place for a key, or it cannot be made.
        """
        parties = self.parties()
        # A key that no entry names signed the notes so far: folders kept its public line.
        kept = () if parties.keys else self._witnesses.signing_lines()
        line = words.next_key(self._witnesses, parties, kept).public_line
        self._name_keys((*kept, line), person, reason)
        self._witnesses.keep_keys(self.parties().key_lines)
        self._custody.note()
        return line

    def add_witness(self, folder: Path, person: str, reason: str) -> str:
        """Make a folder a witness, ship every entry to it, and return its name.

        Raises:
            InputError: the folder cannot be written, or is not named in TURNSTILE_WITNESS.
        """
        return words.add_witness(self._store, self._custody, folder, (person, reason))

    def remove_witness(self, name: str, person: str, reason: str) -> str:
        """Let a witness go, by the first digits of its name or by its folder; return its name.

        Raises:
            InputError: the ledger knows no such witness.
        """
        known = self.parties().witnesses
        matches = [
            witness_id
            for witness_id, folder in known.items()
            if name == folder or witness_id.startswith(name)
        ]
        if len(matches) != 1:
            rule = f"{name!r} names {len(matches)} of this ledger's witnesses: {sorted(known)}"
            raise InputError(where="ledger", field="witness", rule=rule)
        body = {"witness": matches[0], "person": person, "reason": reason}
        self._write(
            lambda c: facts.append(c, self._now(), EntryKind.WITNESS_REMOVED, body), ship=False
        )
        left = tuple(f for f in self._witnesses.folders if witness_id(f) != matches[0])
        replace(self._custody, witnesses=replace(self._witnesses, folders=left)).ship()
        return matches[0]

    def name_bounding_key(
        self,
        take_up: Callable[[Collection[str]], TakenUp],
        *said: str,
    ) -> TakenUp:
        """Take up a new bounding key and write its name.

        Args:
            take_up: replaces the key, given the names of those that have to be there.
            said: person and reason, which declare lost what is not.

        Raises:
            RefusedError: a release is held or drawn under the old one.
        """

        def act(connection: Connection) -> TakenUp:
            facts.head(connection, locked=True)
            for key_attempts in read_history(connection).attempts.values():
                for attempt in key_attempts:
                    if attempt.is_open:
                        raise RefusedError(
                            f"{attempt.key} is held or drawn under the bounding key; let it end, "
                            f"or {letting_go(attempt)}, then rotate"
                        )
            taken = take_up(bounding_keys_in(connection).kept)
            body = {**taken._asdict(), "person": said[0], "reason": said[1]}
            facts.append(connection, self._now(), EntryKind.BOUNDING_KEY, body)
            return taken

        return self._write(act)

    def confirm_clock(self, person: str, reason: str) -> Entry:
        """Write that the clock is right, though the last entry was written later."""
        body = {"person": person, "reason": reason}
        return self._write(lambda c: facts.append(c, self._now(), EntryKind.CLOCK_CONFIRMED, body))

    # -- inside ----------------------------------------------------------------------------

    def _name_keys(self, lines: Sequence[str], person: str, reason: str) -> None:
        """Write which keys sign notes, in their order."""

        def act(connection: Connection) -> None:
            for line in lines:
                body = {"public_line": line, "person": person, "reason": reason}
                facts.append(connection, self._now(), EntryKind.SIGNING_KEY, body)

        self._write(act)

    def _decide(self, kind: EntryKind, key: ReleaseKey, **said: str) -> Decision:
        """Write a decision: `person`, `role` and `reason`."""
        return self._write(lambda c: words.decide(c, self._now(), kind, key, said))

    def _cosigned(self, log: PublicLog) -> tuple[Answer, ...]:
        """Ask the cosigners that are named; none of them delays a publication by its silence."""
        named = cosigners_of(self._custody.witnesses.log_policy)
        answers = tuple(ask_all(log, named, lambda: self.head()[0])) if named else ()
        for answer in answers:
            _log.log(logging.ERROR if answer.is_alarm else logging.INFO, "%s", answer.sentence)
            if answer.is_alarm and answer.name not in self.parties().disputed_by:
                body = {"origin": log.begun.origin, "cosigner": answer.name}
                with suppress(IntegrityError, InputError):  # before a witness, or only read here
                    self._write(partial(self._dispute, body))
        return answers

    def _dispute(self, body: Mapping[str, str], connection: Connection) -> None:
        """Write that a cosigner has seen another tree: it stands until another log is begun."""
        facts.append(connection, self._now(), EntryKind.LOG_DISPUTED, body)

    def _logs(self) -> list[PublicLog]:
        """Return every log, that in force last; none where there is nowhere to keep them."""
        public, history = self._custody.witnesses.public, self._store.read(read_history)
        if public is None:
            return []
        tree = Tree.of(history.of_entries)
        return [PublicLog(public, begun, tree) for begun in history.parties.logs]

    def _sign_as(self, begun: LogBegun) -> Callable[[str], str]:
        signer = log_signer(self._custody.witnesses, begun)
        return lambda text: signer.note(begun.origin, text)
