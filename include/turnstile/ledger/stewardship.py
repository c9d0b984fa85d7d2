"""What people and audits say to the ledger, each a fact: decisions, keys, witnesses, clock."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from sqlalchemy.engine import Connection

from turnstile.errors import InputError, RefusedError
from turnstile.ledger import attempts, facts, landing_paths, revisions, words
from turnstile.ledger.custody import recovery
from turnstile.ledger.custody.known_history import read_history
from turnstile.ledger.custody.recovery import Delivered, Recovery
from turnstile.ledger.entries import Entry, EntryKind
from turnstile.ledger.parties import LogBegun
from turnstile.ledger.records import Assessed, Attempt, Decision, ReleaseKey, for_the_public
from turnstile.ledger.states import ReleaseState
from turnstile.ledger.tlog.beginning import begin_log, is_log_lost, set_key_aside
from turnstile.ledger.tlog.public_log import log_findings
from turnstile.ledger.view import LedgerView


class Stewardship(LedgerView):
    """A ledger that people speak to; what only a release may do is in `Ledger`."""

    def void_stale(
        self, older_than: timedelta, reason: str = "timed out", *, person: str | None = None
    ) -> tuple[Attempt, ...]:
        """Void every hold that is older; a draw under way never times out."""
        limit = facts.instant(self._clock() - older_than)
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
            RefusedError: bytes are sealed under the key.
        """
        body = {"key": str(key), "person": person, "reason": reason}
        return self._write(lambda c: words.declare_no_release(c, self._now(), body))

    # -- decisions and audits ----------------------------------------------------------------

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

    def record_deletion(self, programme: str, period: str, part: str, days: int) -> Entry:
        """Write that private data of a period are deleted by retention, just before they are.

        What comes back, from a copy perhaps, is deleted again, and that is stated again.

        Args:
            programme: whose promise it is.
            period: of the data.
            part: `files`, `rows` or `exact`.
            days: that the programme keeps them.
        """
        body = {"programme": programme, "period": period, "part": part, "days": days}
        return self._write(lambda c: facts.append(c, self._now(), EntryKind.DELETED, body))

    def recover(
        self,
        person: str,
        reason: str,
        *,
        families: Mapping[str, str] | None = None,
        salvaged: Sequence[Entry] = (),
        delivered: Delivered | None = None,
    ) -> Recovery:
        """Bring the ledger back to what witnesses, packages and sealed files prove.

        A second call finds nothing to do.

        Args:
            person: who declares what was lost.
            reason: what happened.
            families: budget group of a programme, where nothing else names it.
            salvaged: entries of a damaged database that still read.
            delivered: of which files releases are whose entries are lost.

        Where a checkpoint of the transparency log holds entries that are lost, another log begins.

        Raises:
            InputError: a trace cannot be read, or a budget group is not known.
            IntegrityError: a witness holds another history.
        """
        said = (person, reason)
        done = recovery.recover(self._custody, dict(families or {}), said, salvaged, delivered)
        if not self.parties().keys and self._witnesses.has_key:
            # Keys before the present one are named again, or their lines beside packages accuse.
            public_line = self._witnesses.signer().public_line
            if earlier := [line for line in self._witnesses.kept_lines() if line != public_line]:
                self._name_keys((*earlier, public_line), person, reason)
        self._custody.ship()
        public, history = self._custody.witnesses.public, self._store.read(read_history)
        self._custody.note_again(history)
        logs, hashes = history.parties.logs, history.of_entries
        if public is not None and (
            is_log_lost(self._witnesses, logs) or any(log_findings(public, logs, hashes))
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

    # -- keys, witnesses, clock --------------------------------------------------------------

    def rotate_key(self, person: str, reason: str) -> str:
        """Take up a new signing key and return its public line; notes before keep the old one.

        The file of the key in force, if there is one, is moved aside. A key file that the ledger
        does not know is taken up as it is.

        Raises:
            InputError: there is no place for a key, or it cannot be made.
        """
        parties = self.parties()
        # A key that no entry names signed the notes so far: folders kept its public line.
        kept = () if parties.keys else self._witnesses.kept_lines()
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
        return matches[0]

    def name_bounding_key(self, take_up: Callable[[], tuple[str | None, str]], *said: str) -> str:
        """Take up a new bounding key and write its name; return it.

        Args:
            take_up: replaces the key; returns the old one's name, if it is there, and its own.
            said: person and reason.

        Raises:
            RefusedError: a release is held or drawn under the old one.
        """

        def act(connection: Connection) -> str:
            facts.head(connection, locked=True)
            for key_attempts in read_history(connection).attempts.values():
                for attempt in key_attempts:
                    if attempt.is_open:
                        raise RefusedError(
                            f"{attempt.key} is held or drawn under the bounding key; let it end, "
                            "or turnstile ledger void or burn it, then rotate"
                        )
            previous, name = take_up()
            body = {"name": name, "previous": previous, "person": said[0], "reason": said[1]}
            facts.append(connection, self._now(), EntryKind.BOUNDING_KEY, body)
            return name

        return self._write(act)

    def confirm_clock(self, person: str, reason: str) -> Entry:
        """Write that the clock is right, though the last entry was written later."""
        body = {"person": person, "reason": reason}
        return self._write(lambda c: facts.append(c, self._now(), EntryKind.CLOCK_CONFIRMED, body))

    # -- inside ------------------------------------------------------------------------------

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
