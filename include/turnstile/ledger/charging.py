"""What charges and what seals: reserve, begin to draw, seal (PRIVACY 1, 3, 6).

One durable transaction per call. Calls of a task that died are made again by its retry: each says
in its docstring what a second call does. Time comes from a clock. What people say to a ledger, what
reads it for them and what keeps its second places builds on this (`ledger`).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Protocol, TypeVar

from sqlalchemy import BindParameter, bindparam, select
from sqlalchemy.engine import Connection

from turnstile.errors import BudgetExceeded, DrawGoesOn, IntegrityError, RefusedError
from turnstile.ledger import attempts, facts, landing_paths, leases, revisions
from turnstile.ledger.admission import setters
from turnstile.ledger.balances import accounts
from turnstile.ledger.database.database_tables import ATTEMPT, ENTRY
from turnstile.ledger.database.store import Store
from turnstile.ledger.entries import instant, read_entry
from turnstile.ledger.promise import plan_digest
from turnstile.ledger.records import Attempt, Bindings, Difference, ReleaseKey, Request
from turnstile.ledger.refusals import budget_exceeded, revision_needed, weeks_of
from turnstile.ledger.same_units import unit_refusal
from turnstile.ledger.states import (
    CHARGED_STATES,
    ReleaseState,
    ReserveAnswer,
    Transition,
    answer_to_reserve,
    is_allowed,
    is_repeat,
)
from turnstile.ledger.weeks import PUBLIC_KINDS, Revision, Week
from turnstile.ledger.weeks import weeks_of as history_of

_THESE: BindParameter[str] = bindparam("these")
_MADE = select(ATTEMPT).where(ATTEMPT.c.release_key.like(_THESE, escape="!"))
_MADE = _MADE.order_by(ATTEMPT.c.reserved_sequence)
_SAID = facts.of_kinds(PUBLIC_KINDS).where(ENTRY.c.release_key.like(_THESE, escape="!"))

T = TypeVar("T")
DRAWS_MAX = 2


class SecondPlaces(Protocol):
    """What knows of a ledger from outside of it: asked before a charge, told of every entry."""

    @property
    def is_wanted(self) -> bool:
        """Anybody keeps notes of this ledger."""

    def require_intact(self) -> frozenset[str]:
        """Refuse unless every trace outside agrees; return the keys whose bytes lie there drawn."""

    def require_not_behind(self) -> None:
        """Refuse to write to a ledger that ends before a second place does."""

    def require_space(self, needed: Mapping[Path, int]) -> None:
        """Refuse unless so many bytes fit into each folder."""

    def adopt(self) -> None:
        """Name key and witnesses in the ledger on first use."""

    def ship(self) -> None:
        """Bring every entry to every witness."""

    def note(self) -> None:
        """Write a signed note of the head."""


class ChargingLedger:
    """A durable account: what a release may do to it, and what a draw reads of it.

    Args:
        store: its database.
        clock: returns the present instant, aware of its zone.
        custody: its second places.
    """

    def __init__(self, store: Store, clock: Callable[[], datetime], custody: SecondPlaces) -> None:
        self._store = store
        self._clock = clock
        self._custody = custody

    def find(self, key: ReleaseKey) -> Attempt | None:
        """Return the sealed attempt of a key, else the open one, else the latest, else None."""
        return self._store.read(lambda c: attempts.lead(c, key))

    def revision(self, key: ReleaseKey) -> Revision:
        """Return what became of a key; a revision without attempts if nobody reserved it."""
        return Revision(self._store.read(lambda c: attempts.attempts(c, key)))

    def differences(
        self, attempt: Attempt, bindings: Bindings, terms: Mapping[str, str]
    ) -> tuple[Difference, ...]:
        """Return what decides loss or cells of a sealed release and is not as it was sealed.

        Args:
            attempt: the sealed attempt.
            bindings: present digests; the snapshot's is not looked at.
            terms: present terms of the programme, by key.
        """
        return self._store.read(lambda c: attempts.differences(c, attempt, bindings, terms))

    def week(self, programme: str, period: str) -> Week:
        """Return what became of one period; an empty one if the ledger knows nothing of it."""
        return self.weeks(programme, period).get(period, Week(period))

    def weeks(self, programme: str, period: str | None = None) -> Mapping[str, Week]:
        """Return what became of every period of a programme (or of one), by its name."""
        of_these = f"{programme}/" if period is None else f"{programme}/{period}/"
        these = {"these": of_these.replace("_", "!_") + "%"}

        def read(connection: Connection) -> Mapping[str, Week]:
            rows = connection.execute(_MADE, these).all()
            said_of = connection.execute(_SAID, these).all()
            return history_of(
                programme,
                map(attempts.to_attempt, rows),
                (read_entry(row.record, row.hash) for row in said_of),
            )

        return self._store.read(read)

    def exact_of(self, attempt: Attempt) -> str:
        """Return the commitment to the exact tables for which an attempt was reserved."""
        return self._store.read(lambda c: _exact_of(c, attempt))

    def reserve(self, request: Request, *, holder: str = "") -> Attempt:
        """Hold what a release will cost, or return the attempt that exists already.

        A second call resumes a hold, answers with the sealed attempt (whatever the source holds
        now; look at `artefact_digest`), or burns a draw that was under way and holds a full second
        charge, at most DRAWS_MAX draws a key.

        Args:
            request: what the ledger has to know.
            holder: names the lock that is held here; a draw under it is dead, whatever its lease.

        Raises:
            DrawGoesOn: another process draws under the key; ask again for its seal.
            IntegrityError: something outside of this ledger knows more than it does.
            BudgetExceeded: a cap would be passed; the sentence says what would fit.
            RevisionNeeded: the key is bound to another programme, domain or (while open) snapshot,
                or was charged, and not drawn, for another exact count.
            RefusedError: the key has no draw left, or its revision follows nothing.
        """
        drew = self._custody.require_intact() if self._custody.is_wanted else frozenset[str]()
        # A refusal is returned, not raised, inside the transaction: what it found out (a burned
        # draw) is a fact that has to stay.
        outcome = self._store.write(lambda c: self._reserve(c, request, holder, drew))
        made = self._store.read(lambda c: attempts.attempts(c, request.key))
        if any(attempt.state is ReleaseState.BURNED for attempt in made):
            self._custody.ship()  # a hold goes with its charge; that a draw ended, at once
        if isinstance(outcome, RefusedError):
            raise outcome
        return outcome

    def _reserve(
        self, connection: Connection, request: Request, holder: str, drew: frozenset[str]
    ) -> Attempt | RefusedError:
        """Do what the leading attempt of the key calls for; keys that drew have bytes somewhere."""
        accounts.lock_family(connection, request.family)
        if moved := accounts.family_refusal(connection, request):
            return moved
        lead = attempts.lead(connection, request.key)
        if lead is not None:
            if refusal := _other_request(connection, lead, request):
                return refusal
            answer = answer_to_reserve(lead.state)
            if answer in {ReserveAnswer.RESUME, ReserveAnswer.ANSWER_SEALED}:
                return lead
            if answer is ReserveAnswer.BURN_AND_OPEN_NEW:
                if _is_drawn_by_another(connection, lead, holder):
                    return _goes_on(lead)
                if not (str(request.key) in drew or attempts.has_started(connection, lead)):
                    # Charged, and provably no noise yet: no second charge, and no other count.
                    return _other_count(connection, lead, request) or lead
                why = "reserved again while drawing"
                attempts.make_transition(connection, self._now(), lead, Transition.BURN, reason=why)
        return self._open_attempt(connection, request)

    def _open_attempt(self, connection: Connection, request: Request) -> Attempt | RefusedError:
        """Make a new attempt if draws and caps allow it."""
        past_attempts = attempts.attempts(connection, request.key)
        if sum(attempt.state in CHARGED_STATES for attempt in past_attempts) >= DRAWS_MAX:
            return RefusedError(
                f"{request.key} was drawn {DRAWS_MAX} times and never sealed; a third draw needs a "
                "person: find out why, then release a revision with a reason and an approver"
            )
        # Each group has a lock of its own; what is asked of all groups waits for what others write.
        facts.head(connection, locked=True)
        refusal = _refusal(connection, request)
        if refusal is not None:
            return refusal
        now = self._now()
        if names := _landing_names(request):
            landing_paths.note_landing(connection, now, names)
        accounts.record_caps(connection, now, request)
        return attempts.open_attempt(connection, now, request, len(past_attempts) + 1)

    def refusal_of(self, request: Request) -> RefusedError | None:
        """Return how family, budget, landing path or names of units would refuse it now, or None.

        Nothing is written. The caps are those of the request, beside those of the family's other
        programmes.
        """
        return self._store.read(
            lambda c: accounts.family_refusal(c, request) or _refusal(c, request)
        )

    def begin_draw(
        self,
        attempt_id: str,
        bindings: Bindings,
        *,
        space: Mapping[Path, int] | None = None,
        code: str = "",
        holder: str = "",
    ) -> Attempt:
        """Turn the hold into spent, durably and everywhere; only then may noise be drawn.

        A second call is refused: whoever lost its process reserves again, which burns this attempt.
        Only an attempt whose charge had not reached every witness goes on under that charge.

        Args:
            attempt_id: as `reserve` returned it.
            bindings: present digests.
            space: bytes that the draw will write, by folder; written there before the charge.
            code: version of the code that is about to draw, for the record.
            holder: names the lock under which it is drawn; with it, the draw has a lease that
                `renew_lease` keeps running.

        Raises:
            RefusedError: the attempt is not reserved.
            RevisionNeeded: programme, domain or snapshot changed since it was reserved.
            IntegrityError: something outside of this ledger knows more than it does.
            InputError: something cannot be written, or a folder is full.
        """
        said = {"code": code} if code else {}
        if not self._custody.is_wanted:
            return self._store.write(lambda c: self._begin(c, attempt_id, bindings, said, holder))
        drew = self._custody.require_intact()
        self._custody.require_space(space or {})
        self._custody.adopt()
        said["nonce"] = secrets.token_hex(16)  # no two copies of a ledger write the same entry

        def begin(connection: Connection) -> Attempt:
            attempt = self._locked(connection, attempt_id)
            if attempt.state is not ReleaseState.DRAWING:
                return self._begin(connection, attempt_id, bindings, said, holder)
            if str(attempt.key) in drew or attempts.has_started(connection, attempt):
                raise not_possible(attempt, Transition.BEGIN_DRAW)
            if _is_drawn_by_another(connection, attempt, holder):
                raise _goes_on(attempt)
            if holder:
                leases.take(connection, attempt_id, holder)
            return attempt

        self._store.write(begin)
        self._custody.ship()
        self._custody.note()
        begun = self._store.write(lambda c: self._start(c, attempt_id, holder))
        self._custody.ship()
        return begun

    def renew_lease(self, attempt_id: str, holder: str) -> None:
        """Say that the draw goes on; nothing if another process has taken it over."""
        self._store.write(lambda c: leases.renew(c, attempt_id, holder))

    def end_lease(self, holder: str) -> None:
        """Say that nobody draws under a lock that is held here: whoever did has died."""
        self._store.write(lambda c: leases.end(c, holder))

    def _begin(
        self,
        connection: Connection,
        attempt_id: str,
        bindings: Bindings,
        said: Mapping[str, str],
        holder: str,
    ) -> Attempt:
        """Turn the hold into spent."""
        attempt = self._locked(connection, attempt_id)
        refusal = _other_bindings(attempt, bindings) if attempt.is_open else None
        if refusal is not None:
            raise refusal
        if holder:
            leases.take(connection, attempt_id, holder)
        return self._move(connection, attempt, Transition.BEGIN_DRAW, **said)

    def _start(self, connection: Connection, attempt_id: str, holder: str) -> Attempt:
        """Let one process draw, once the charge is known everywhere."""
        attempt = self._locked(connection, attempt_id)
        if _is_drawn_by_another(connection, attempt, holder):
            raise _goes_on(attempt)
        if attempt.state is not ReleaseState.DRAWING or attempts.has_started(connection, attempt):
            raise not_possible(attempt, Transition.BEGIN_DRAW)
        attempts.start(connection, self._now(), attempt)
        return attempt

    def seal(self, attempt_id: str, artefact_digest: str) -> Attempt:
        """Fix the one artefact of the key, for ever.

        A second call with the same digest changes nothing.

        Raises:
            IntegrityError: the attempt is sealed with another digest.
            RefusedError: the attempt never drew, or was burned (a late artefact is worthless).
        """

        def act(connection: Connection) -> Attempt:
            attempt = self._locked(connection, attempt_id)
            if attempt.is_sealed and attempt.artefact_digest != artefact_digest:
                raise IntegrityError(
                    f"{attempt.key} is sealed with another artefact; a key has one for ever: "
                    "discard the new bytes and ask a person"
                )
            return self._move(connection, attempt, Transition.SEAL, artefact_digest=artefact_digest)

        return self._write(act)

    def void(self, attempt_id: str, reason: str, *, person: str | None = None) -> Attempt:
        """Release a hold; nothing was charged. A second call changes nothing.

        Raises:
            RefusedError: the attempt has begun to draw, so it stays charged.
        """
        return self._end(attempt_id, Transition.VOID, reason, person)

    def burn(self, attempt_id: str, reason: str, *, person: str | None = None) -> Attempt:
        """Give up a draw; it stays charged. A second call changes nothing.

        Raises:
            DrawGoesOn: a process draws under it at this moment.
            RefusedError: the attempt is not drawing.
        """
        return self._end(attempt_id, Transition.BURN, reason, person)

    # -- inside ------------------------------------------------------------------------------

    def _write(self, act: Callable[[Connection], T], *, ship: bool = True) -> T:
        """Run a transaction, then bring what it wrote to every witness.

        Raises:
            IntegrityError: a witness holds entries that this ledger does not: whatever were written
                now would part the two for good.
        """
        if ship:
            self._custody.require_not_behind()
        answer = self._store.write(act)
        if ship:
            self._custody.ship()
        return answer

    def _locked(self, connection: Connection, attempt_id: str) -> Attempt:
        """Read an attempt again once its family is locked."""
        accounts.lock_family(connection, attempts.attempt(connection, attempt_id).family)
        return attempts.attempt(connection, attempt_id)

    def _move(
        self, connection: Connection, attempt: Attempt, transition: Transition, **particulars: str
    ) -> Attempt:
        """Make a transition, or nothing if it was made before.

        Raises:
            RefusedError: the state does not allow it.
        """
        if is_repeat(transition, attempt.state):
            return attempt
        if not is_allowed(transition, attempt.state):
            raise not_possible(attempt, transition)
        attempts.make_transition(connection, self._now(), attempt, transition, **particulars)
        return attempts.attempt(connection, attempt.attempt_id)

    def _end(
        self, attempt_id: str, transition: Transition, reason: str, person: str | None
    ) -> Attempt:
        """Void or burn."""
        words = {"reason": reason} | ({"person": person} if person else {})

        def act(connection: Connection) -> Attempt:
            attempt = self._locked(connection, attempt_id)
            if transition is Transition.BURN and _is_drawn_by_another(connection, attempt, ""):
                raise _goes_on(attempt)
            return self._move(connection, attempt, transition, **words)

        return self._write(act)

    def _now(self) -> str:
        """Return the present instant as entries write it."""
        return instant(self._clock())


def _refusal(connection: Connection, request: Request) -> RefusedError | None:
    """Return why a request cannot be reserved for the first time, or None."""
    before = revisions.before(request.key) if request.key.revision else None
    if before is not None and not attempts.was_drawn(connection, before):
        return RefusedError(
            f"{request.key} corrects {before}, which was never drawn; release that one first"
        )
    if (names := _landing_names(request)) and (
        refusal := landing_paths.landing_refusal(connection, names, request)
    ):
        return refusal
    return unit_refusal(connection, request) or _budget_refusal(connection, request)


def _landing_names(request: Request) -> tuple[str, str, str] | None:
    """Return landing pattern, budget group and programme, None if no files are read."""
    if request.landing is None:
        return None
    return request.landing, request.family, request.key.programme


def _budget_refusal(connection: Connection, request: Request) -> BudgetExceeded | None:
    """Return the refusal of a request that would pass a cap, or None."""
    excess = accounts.excess_of(connection, request)
    if excess is None:
        return None
    weeks = weeks_of(excess.scope, request.week)
    since = attempts.charged_since(connection, request.family, weeks)
    stated = accounts.caps_by_programme(connection, request.family)
    set_by = setters({**stated, request.key.programme: request.caps}, excess.cap)
    return budget_exceeded(request.key, excess, since, set_by)


def _is_drawn_by_another(connection: Connection, attempt: Attempt, holder: str) -> bool:
    """Return whether a draw has a lease that runs, and is not under the lock held here."""
    return attempt.is_drawing and leases.holder_of(connection, attempt.attempt_id) not in {
        None,
        holder,
    }


def _goes_on(attempt: Attempt) -> DrawGoesOn:
    """Say that a draw is not to be burned."""
    return DrawGoesOn(
        f"{attempt.attempt_id} is being drawn by a process at this moment; its seal is near, and "
        f"nothing is burned. Should that process have died, its lease ends within {leases.LEASE_S} "
        "seconds; then ask again"
    )


def _other_request(
    connection: Connection, attempt: Attempt, request: Request
) -> RefusedError | None:
    """Refuse a request for a key that is bound to something else.

    A sealed key answers with its bytes whatever the source holds now (PRIVACY 6), and whatever the
    programme says that decides neither loss nor cells.
    """
    if attempt.is_sealed:
        differences = attempts.differences(connection, attempt, request.bindings, request.terms)
        differences += _other_plan(attempt, request)
        return revision_needed(attempt, differences) if differences else None
    return _other_bindings(attempt, request.bindings, request.plan_digest)


def _other_plan(attempt: Attempt, request: Request) -> tuple[Difference, ...]:
    """Compare plans of a sealed key, as if both named the programme that the key is bound to."""
    bindings, asked = attempt.bindings, request.plan_digest
    if bindings.programme_digest != request.bindings.programme_digest:
        bound = (bindings.programme_digest, bindings.domain_digest)
        asked = plan_digest(*bound, attempt.key.period, attempt.key.revision, request.events)
    return (Difference("plan", attempt.plan_digest, asked),) if asked != attempt.plan_digest else ()


def _other_bindings(
    attempt: Attempt, bindings: Bindings, asked: str | None = None
) -> RefusedError | None:
    """Refuse an open attempt that is bound to something else."""
    if not attempt.is_open:
        return None
    differences = attempt.bindings.differences(bindings)
    if asked not in (None, attempt.plan_digest):
        differences = (*differences, Difference("plan", attempt.plan_digest, str(asked)))
    return revision_needed(attempt, differences) if differences else None


def _exact_of(connection: Connection, attempt: Attempt) -> str:
    """Return the commitment to the exact tables for which an attempt was reserved, if any is."""
    entry = facts.entry_at(connection, attempt.reserved_sequence)
    return "" if entry is None else str(entry.body.get("exact", ""))


def _other_count(connection: Connection, attempt: Attempt, request: Request) -> RefusedError | None:
    """Refuse to draw another exact count than the one that was charged for."""
    old = _exact_of(connection, attempt)
    if old in {"", request.exact}:
        return None
    return revision_needed(attempt, (Difference("exact count", old, request.exact),))


def not_possible(attempt: Attempt, transition: Transition) -> RefusedError:
    """Say that a state does not allow a transition."""
    what_next = (
        f"to take it back: turnstile ledger withdraw {attempt.key} --reason TEXT"
        if attempt.state is ReleaseState.PUBLISHED
        else "run the week again to go on from there"
    )
    state = f"{attempt.attempt_id} is {attempt.state.value}"
    return RefusedError(f"{state}: {transition.value} is not possible; {what_next}")
