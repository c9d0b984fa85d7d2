"""The ledger: what every passenger unit has lost, over every week ever released (PRIVACY 1, 3, 6).

One durable transaction per call. Calls of a task that died are made again by its retry: each says
in its docstring what a second call does. Time comes from a clock, signatures from `witness`.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

from sqlalchemy.engine import Connection

from turnstile.errors import BudgetExceeded, IntegrityError, RefusedError
from turnstile.ledger import accounts, attempts, decisions, facts, revisions
from turnstile.ledger.entries import Entry, EntryKind
from turnstile.ledger.records import (
    Assessed,
    Attempt,
    Bindings,
    Decision,
    Publication,
    ReleaseKey,
    Request,
)
from turnstile.ledger.refusals import budget_exceeded, revision_needed, weeks_of
from turnstile.ledger.states import (
    CHARGED_STATES,
    Move,
    ReleaseState,
    ReserveAnswer,
    answer_to_reserve,
    is_allowed,
    is_repeat,
)
from turnstile.ledger.view import LedgerView
from turnstile.ledger.witness import note_findings

DRAWS_MAX = 2


class Ledger(LedgerView):
    """A durable account. Open it with `Ledger.open`."""

    # -- the life of a key -------------------------------------------------------------------

    def reserve(self, request: Request) -> Attempt:
        """Hold what a release will cost, or return the attempt that exists already.

        A second call resumes a hold, answers with the sealed attempt (whatever the source holds
        now; look at `artefact_digest`), or burns a draw that was under way and holds a full second
        charge, at most DRAWS_MAX draws a key.

        Raises:
            BudgetExceeded: a cap would be passed; the sentence says what would fit.
            RevisionNeeded: the key is bound to another programme, domain or (while open) snapshot.
            RefusedError: the key has no draw left, or its revision follows nothing.
        """
        # A refusal is returned, not raised, inside the transaction: what it found out (new caps, a
        # burned draw) is a fact that has to stay.
        outcome = self._store.write(lambda c: self._reserve(c, request))
        if isinstance(outcome, RefusedError):
            raise outcome
        return outcome

    def _reserve(self, connection: Connection, request: Request) -> Attempt | RefusedError:
        """Do what the leading attempt of the key calls for."""
        accounts.lock_family(connection, request.family)
        accounts.record_caps(connection, self._now(), request)
        lead = attempts.leading(attempts.attempts(connection, request.key))
        if lead is not None and (
            refusal := _other_bindings(lead, request.bindings, request.plan_digest)
        ):
            return refusal
        answer = answer_to_reserve(lead.state if lead else None)
        if lead is not None and answer in {ReserveAnswer.RESUME, ReserveAnswer.ANSWER_SEALED}:
            return lead
        if lead is not None and answer is ReserveAnswer.BURN_AND_OPEN_NEW:
            reason = "reserved again while drawing"
            attempts.make_move(connection, self._now(), lead, Move.BURN, reason=reason)
        return self._open_attempt(connection, request)

    def _open_attempt(self, connection: Connection, request: Request) -> Attempt | RefusedError:
        """Make a new attempt if draws and caps allow it."""
        found = attempts.attempts(connection, request.key)
        if sum(one.state in CHARGED_STATES for one in found) >= DRAWS_MAX:
            return RefusedError(
                f"{request.key} was drawn {DRAWS_MAX} times and never sealed; a third draw needs a "
                "person: find out why, then release a revision with a reason and an approver"
            )
        if request.key.revision and not attempts.was_drawn(
            connection, revisions.before(request.key)
        ):
            return RefusedError(
                f"{request.key} corrects {revisions.before(request.key)}, which was never drawn; "
                "release that one first"
            )
        refusal = _budget_refusal(connection, request)
        if refusal is not None:
            return refusal
        return attempts.open_attempt(connection, self._now(), request, len(found) + 1)

    def refusal_of(self, request: Request) -> BudgetExceeded | None:
        """Return how the budget would refuse a reservation now, or None; nothing is written.

        The caps are those of the family's last reservation.
        """
        return self._store.read(lambda c: _budget_refusal(c, request))

    def begin_draw(self, attempt_id: str, bindings: Bindings) -> Attempt:
        """Turn the hold into spent, durably; only then may noise be drawn.

        A second call is refused: whoever lost its process reserves again, which burns this attempt.

        Raises:
            RefusedError: the attempt is not reserved.
            RevisionNeeded: programme, domain or snapshot changed since it was reserved.
            IntegrityError: this ledger is behind a published checkpoint, or another ledger.
            InputError: a witness cannot be written; nothing was charged.
        """
        self._refuse_if_behind()
        self._witnesses.prepare()

        def begin(connection: Connection) -> Attempt:
            found = self._locked(connection, attempt_id)
            refusal = _other_bindings(found, bindings) if found.is_open else None
            if refusal is not None:
                raise refusal
            return self._move(connection, found, Move.BEGIN_DRAW)

        begun = self._store.write(begin)
        self._witness()
        return begun

    def seal(self, attempt_id: str, artefact_digest: str) -> Attempt:
        """Fix the one artefact of the key, for ever.

        A second call with the same digest changes nothing.

        Raises:
            IntegrityError: the attempt is sealed with another digest.
            RefusedError: the attempt never drew, or was burned (a late artefact is worthless).
        """

        def act(connection: Connection) -> Attempt:
            found = self._locked(connection, attempt_id)
            if found.is_sealed and found.artefact_digest != artefact_digest:
                raise IntegrityError(
                    f"{found.key} is sealed with another artefact; a key has one for ever: "
                    "discard the new bytes and ask a person"
                )
            return self._move(connection, found, Move.SEAL, artefact_digest=artefact_digest)

        return self._store.write(act)

    def void(self, attempt_id: str, reason: str) -> Attempt:
        """Release a hold; nothing was charged. A second call changes nothing.

        Raises:
            RefusedError: the attempt has begun to draw, so it stays charged.
        """
        return self._end(attempt_id, Move.VOID, reason)

    def burn(self, attempt_id: str, reason: str) -> Attempt:
        """Give up a draw; it stays charged. A second call changes nothing.

        Raises:
            RefusedError: the attempt is not drawing.
        """
        return self._end(attempt_id, Move.BURN, reason)

    def void_stale(self, older_than: timedelta) -> tuple[Attempt, ...]:
        """Void every hold that is older; a draw under way never times out."""
        limit = facts.instant(self._clock() - older_than)
        stale = self._store.read(lambda c: attempts.reserved_before(c, limit))
        voided = []
        for attempt_id in stale:
            with suppress(RefusedError):  # it began to draw meanwhile, so it is no longer a hold
                voided.append(self.void(attempt_id, "timed out"))
        return tuple(voided)

    def publish(self, key: ReleaseKey, manifest_digest: str) -> Publication:
        """Say that a sealed release is public, and write signed checkpoints.

        A second call with the same manifest answers the same.

        Raises:
            IntegrityError: it was published with another manifest.
            RefusedError: nothing is sealed under the key.
        """

        def act(connection: Connection) -> Publication:
            found = self._locked(connection, attempts.sealed(connection, key).attempt_id)
            if found.state is ReleaseState.PUBLISHED and found.manifest_digest != manifest_digest:
                raise IntegrityError(
                    f"{key} is published with another manifest; restore the published package, "
                    "or release a revision"
                )
            self._move(connection, found, Move.PUBLISH, manifest_digest=manifest_digest)
            return attempts.publication(connection, key)

        publication = self._store.write(act)
        self._witness(key)
        return publication

    def withdraw(self, key: ReleaseKey, person: str, reason: str) -> Attempt:
        """Flag a published release as withdrawn; nothing is refunded. A repeat changes nothing.

        Raises:
            RefusedError: the key is not published.
        """

        def act(connection: Connection) -> Attempt:
            found = self._locked(connection, attempts.sealed(connection, key).attempt_id)
            if found.state is not ReleaseState.PUBLISHED:
                raise RefusedError(f"{key} is not published; there is nothing to withdraw")
            if not found.is_withdrawn:
                attempts.withdraw(connection, self._now(), found, person=person, reason=reason)
            return attempts.attempt(connection, found.attempt_id)

        return self._store.write(act)

    # -- what people and audits say ----------------------------------------------------------

    def approve(self, key: ReleaseKey, person: str, role: str, reason: str) -> Decision:
        """Write that a person approves the bytes sealed under a key; a repeat changes nothing.

        The decision names the sealed artefact, or none if nothing is sealed yet.
        """
        return self._decide(EntryKind.APPROVED, key, person=person, role=role, reason=reason)

    def refuse(self, key: ReleaseKey, person: str, role: str, reason: str) -> Decision:
        """Write that a person refuses the release of a key; a repeat changes nothing."""
        return self._decide(EntryKind.REFUSED, key, person=person, role=role, reason=reason)

    def decide_on_revision(self, word: revisions.RevisionDecision) -> revisions.RevisionDecision:
        """Write that a person allows or declines one correction; a repeat changes nothing.

        Whether it is enough to draw, the reader of `decisions_on_revision` judges by roles.

        Raises:
            RefusedError: the key is not the next correction of a sealed release.
        """
        return self._store.write(lambda c: revisions.say(c, self._now(), word))

    def record_assessment(self, found: Assessed) -> Assessed:
        """Write what the gates said of sealed bytes; a repeat of the last one changes nothing."""
        return self._store.write(lambda c: decisions.record_assessment(c, self._now(), found))

    def record_audit(self, key: ReleaseKey, *, outcome: str, report_digest: str) -> Entry:
        """Write that a release was audited; a repeat with the same report changes nothing."""
        body = {"key": str(key), "outcome": outcome, "report_digest": report_digest}

        return self._store.write(lambda c: decisions.record_audit(c, self._now(), body))

    # -- inside ------------------------------------------------------------------------------

    def _locked(self, connection: Connection, attempt_id: str) -> Attempt:
        """Read an attempt again once its family is locked."""
        accounts.lock_family(connection, attempts.attempt(connection, attempt_id).family)
        return attempts.attempt(connection, attempt_id)

    def _move(
        self, connection: Connection, found: Attempt, move: Move, **particulars: str
    ) -> Attempt:
        """Make a move, or nothing if it was made before.

        Raises:
            RefusedError: the state does not allow it.
        """
        if is_repeat(move, found.state):
            return found
        if not is_allowed(move, found.state):
            raise RefusedError(
                f"{found.attempt_id} is {found.state.value}: {move.value} is not possible; "
                "reserve again and go on from what that answers"
            )
        attempts.make_move(connection, self._now(), found, move, **particulars)
        return attempts.attempt(connection, found.attempt_id)

    def _end(self, attempt_id: str, move: Move, reason: str) -> Attempt:
        """Void or burn."""
        return self._store.write(
            lambda c: self._move(c, self._locked(c, attempt_id), move, reason=reason)
        )

    def _decide(self, kind: EntryKind, key: ReleaseKey, **word: str) -> Decision:
        """Write a decision: `person`, `role` and `reason`."""
        return self._store.write(lambda c: decisions.decide(c, self._now(), kind, key, word))

    def _refuse_if_behind(self) -> None:
        """Compare the newest checkpoints with the local chain.

        Raises:
            IntegrityError: a checkpoint is ahead of this ledger, or of another history.
        """

        def hash_at(sequence: int) -> str | None:
            return self._store.read(lambda c: facts.hash_at(c, sequence))

        for note in self._witnesses.newest():
            for finding in note_findings(note, hash_at):
                raise IntegrityError(
                    f"{finding.problem}; drawing would spend budget that is spent already: restore "
                    "the newest ledger, then run `turnstile ledger verify`"
                )

    def _witness(self, key: ReleaseKey | None = None) -> None:
        """Write checkpoints if there is anywhere to write them."""
        if self._witnesses.is_wanted:
            self._witnesses.write(self.head(), key)


def _budget_refusal(connection: Connection, request: Request) -> BudgetExceeded | None:
    """Return the refusal of a request that would pass a cap, or None."""
    excess = accounts.excess_of(connection, request)
    if excess is None:
        return None
    weeks = weeks_of(excess.scope, request.week)
    since = attempts.charged_since(connection, request.family, weeks)
    return budget_exceeded(request.key, excess, since)


def _other_bindings(
    found: Attempt, bindings: Bindings, plan_digest: str | None = None
) -> RefusedError | None:
    """Refuse a key that is bound to something else.

    A sealed key answers with its bytes whatever the source holds now (PRIVACY 6), so there the
    snapshot alone is no difference.
    """
    if not (found.is_open or found.is_sealed):
        return None
    differences = found.bindings.differences(bindings)
    if plan_digest not in (None, found.plan_digest):
        differences = (*differences, "plan")
    if not differences or (found.is_sealed and differences == ("snapshot",)):
        return None
    return revision_needed(found, differences)
