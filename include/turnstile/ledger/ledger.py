"""The ledger: what every passenger unit has lost, over every week ever released (PRIVACY 1-3).

One durable transaction per call. Calls of a task that died are made again by its retry: each says
in its docstring what a second call does. Time comes from a clock, signatures from `witness`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.engine import Connection

from turnstile.errors import IntegrityError, RefusedError
from turnstile.ledger import accounts, attempts, decisions, facts
from turnstile.ledger.balances import balances
from turnstile.ledger.entries import Entry, EntryKind, read_entry
from turnstile.ledger.records import (
    AccountBalance,
    Attempt,
    Bindings,
    Decision,
    Finding,
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
from turnstile.ledger.store import Store
from turnstile.ledger.tables import ENTRY
from turnstile.ledger.witness import Witnesses

Clock = Callable[[], datetime]
DRAWS_MAX = 2
_ROWS_AT_ONCE = 200


class Ledger:
    """A durable account. Open it with `Ledger.open`."""

    def __init__(self, store: Store, *, clock: Clock, witnesses: Witnesses) -> None:
        self._store = store
        self._clock = clock
        self._witnesses = witnesses

    @classmethod
    def open(
        cls,
        url: str,
        *,
        clock: Clock,
        witnesses: Sequence[Path] = (),
        public: Path | None = None,
        key: Path | None = None,
    ) -> Ledger:
        """Open a ledger, and make or migrate its tables first if need be.

        Args:
            url: `sqlite:///path` or `postgresql+psycopg://user@host/database`.
            clock: returns the present instant, aware of its zone.
            witnesses: folders of second places for signed checkpoints.
            public: public zone; checkpoints go beside its publications.
            key: private signing key; by default `ledger-key.pem` beside the public zone, else
                beside an SQLite file. Made on first use.

        Raises:
            InputError: the store cannot be reached or written.
        """
        store = Store(url)
        near = public.parent if public is not None else store.folder
        key = key or (None if near is None else near / "ledger-key.pem")
        return cls(store, clock=clock, witnesses=Witnesses(tuple(witnesses), public, key))

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
        if request.key.revision and not attempts.was_drawn(connection, _before(request.key)):
            return RefusedError(
                f"{request.key} corrects {_before(request.key)}, which was never drawn; "
                "release that one first"
            )
        excess = accounts.excess_of(connection, request)
        if excess is not None:
            weeks = weeks_of(excess.scope, request.week)
            since = attempts.charged_since(connection, request.family, weeks)
            return budget_exceeded(request.key, excess, since)
        return attempts.open_attempt(connection, self._now(), request, len(found) + 1)

    def begin_draw(self, attempt_id: str, bindings: Bindings) -> Attempt:
        """Turn the hold into spent, durably; only then may noise be drawn.

        A second call is refused: whoever lost its process reserves again, which burns this attempt.

        Raises:
            RefusedError: the attempt is not reserved.
            RevisionNeeded: programme, domain or snapshot changed since it was reserved.
            IntegrityError: this ledger is behind a published checkpoint, or another ledger.
        """
        self._store.read(self._refuse_if_behind)

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
        return tuple(self.void(attempt_id, "timed out") for attempt_id in stale)

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

    def approvals(self, key: ReleaseKey) -> tuple[Decision, ...]:
        """Return every decision about a key, approvals and refusals, oldest first."""
        return self._store.read(lambda c: decisions.decisions(c, key))

    def record_audit(self, key: ReleaseKey, *, outcome: str, report_digest: str) -> Entry:
        """Write that a release was audited; a repeat with the same report changes nothing."""
        body = {"key": str(key), "outcome": outcome, "report_digest": report_digest}

        return self._store.write(lambda c: decisions.record_audit(c, self._now(), body))

    # -- what the ledger knows ---------------------------------------------------------------

    def find(self, key: ReleaseKey) -> Attempt | None:
        """Return the sealed attempt of a key, else the open one, else the latest, else None."""
        return self._store.read(lambda c: attempts.leading(attempts.attempts(c, key)))

    def attempts(self, key: ReleaseKey) -> tuple[Attempt, ...]:
        """Return every attempt at a key, oldest first; the burned ones were charged too."""
        return self._store.read(lambda c: attempts.attempts(c, key))

    def publication(self, key: ReleaseKey) -> Publication | None:
        """Return where the ledger stood when a key was published, or None."""

        def look(connection: Connection) -> Publication | None:
            is_public = any(facts.facts(connection, key, EntryKind.PUBLISHED))
            return attempts.publication(connection, key) if is_public else None

        return self._store.read(look)

    def balance(self, family: str | None = None) -> tuple[AccountBalance, ...]:
        """Return every account of a family (or of all), sorted, and the fullest windows."""
        return self._store.read(lambda c: balances(c, family))

    def entries(self) -> Iterator[Entry]:
        """Yield every fact in order, of one state of the ledger."""
        with self._store.snapshot() as connection, connection.begin():
            query = select(ENTRY.c.record, ENTRY.c.hash).order_by(ENTRY.c.sequence)
            rows = connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(query)
            for row in rows:
                yield read_entry(row.record, row.hash)

    def head(self) -> tuple[int, str]:
        """Return sequence and hash of the last entry; `(0, 64 zeros)` of an empty ledger."""
        return self._store.read(facts.head)

    def verify(self) -> tuple[Finding, ...]:
        """Recompute chain, meaning, balances, signatures and manifests; return what disagrees."""
        from turnstile.ledger.verification import verify_store

        return self._store.read(lambda c: tuple(verify_store(c, self._witnesses)))

    def checkpoint(self) -> str:
        """Sign the head, write it to every witness and to the public zone, and return the note.

        Raises:
            InputError: the ledger has no place for a key, or a folder cannot be written.
        """
        return self._witnesses.write(self.head())

    # -- inside ------------------------------------------------------------------------------

    def _now(self) -> str:
        """Return the present instant as entries write it."""
        return facts.instant(self._clock())

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

    def _refuse_if_behind(self, connection: Connection) -> None:
        """Compare the newest checkpoints with the local chain.

        Raises:
            IntegrityError: a checkpoint is ahead of this ledger, or of another history.
        """
        problem = next(self._witnesses.disagreements(lambda n: facts.hash_at(connection, n)), None)
        if problem is not None:
            raise IntegrityError(
                f"{problem.problem}; drawing would spend budget that is spent already: restore "
                "the newest ledger, then run `turnstile ledger verify`"
            )

    def _witness(self, key: ReleaseKey | None = None) -> None:
        """Write checkpoints if there is anywhere to write them."""
        if self._witnesses.is_wanted:
            self._witnesses.write(self.head(), key)


def _before(key: ReleaseKey) -> ReleaseKey:
    """Return the revision that a revision corrects."""
    return ReleaseKey(key.programme, key.period, key.revision - 1)


def _other_bindings(
    found: Attempt, bindings: Bindings, plan_digest: str | None = None
) -> RefusedError | None:
    """Refuse a key that is bound to something else.

    A sealed key answers with its bytes whatever the source holds now (PRIVACY 2), so there the
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
