"""The ledger: what every passenger unit has lost, over every week ever released (PRIVACY 1, 3, 6).

One durable transaction per call. Calls of a task that died are made again by its retry: each says
in its docstring what a second call does. Time comes from a clock, signatures from `witness`.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path

from sqlalchemy.engine import Connection

from turnstile.errors import BudgetExceeded, IntegrityError, RefusedError
from turnstile.ledger import accounts, attempts, parties_facts, revisions
from turnstile.ledger.admission import setters
from turnstile.ledger.custody import drew_before
from turnstile.ledger.promise import plan_digest
from turnstile.ledger.records import (
    Attempt,
    Bindings,
    Difference,
    Publication,
    ReleaseKey,
    Request,
)
from turnstile.ledger.refusals import budget_exceeded, revision_needed, weeks_of
from turnstile.ledger.states import (
    CHARGED_STATES,
    ReleaseState,
    ReserveAnswer,
    Transition,
    answer_to_reserve,
)
from turnstile.ledger.stewardship import Stewardship, not_possible

DRAWS_MAX = 2


class Ledger(Stewardship):
    """A durable account. Open it with `Ledger.open`."""

    def reserve(self, request: Request) -> Attempt:
        """Hold what a release will cost, or return the attempt that exists already.

        A second call resumes a hold, answers with the sealed attempt (whatever the source holds
        now; look at `artefact_digest`), or burns a draw that was under way and holds a full second
        charge, at most DRAWS_MAX draws a key.

        Raises:
            IntegrityError: something outside of this ledger knows more than it does.
            BudgetExceeded: a cap would be passed; the sentence says what would fit.
            RevisionNeeded: the key is bound to another programme, domain or (while open) snapshot.
            RefusedError: the key has no draw left, or its revision follows nothing.
        """
        if self._custody.witnesses.is_wanted:
            self._custody.require_intact()
        # A refusal is returned, not raised, inside the transaction: what it found out (a burned
        # draw) is a fact that has to stay.
        outcome = self._store.write(lambda c: self._reserve(c, request))
        if isinstance(outcome, RefusedError):
            raise outcome
        return outcome

    def _reserve(self, connection: Connection, request: Request) -> Attempt | RefusedError:
        """Do what the leading attempt of the key calls for."""
        accounts.lock_family(connection, request.family)
        accounts.require_family(connection, request)
        lead = attempts.leading(attempts.attempts(connection, request.key))
        if lead is not None and (refusal := _other_request(connection, lead, request)):
            return refusal
        answer = answer_to_reserve(lead.state if lead else None)
        burns = lead is not None and answer is ReserveAnswer.BURN_AND_OPEN_NEW
        if lead is not None and burns and not attempts.has_started(connection, lead):
            return lead  # charged, and provably no noise yet: taken up without a second charge
        if lead is not None and answer in {ReserveAnswer.RESUME, ReserveAnswer.ANSWER_SEALED}:
            return lead
        if lead is not None and answer is ReserveAnswer.BURN_AND_OPEN_NEW:
            reason = "reserved again while drawing"
            attempts.make_transition(connection, self._now(), lead, Transition.BURN, reason=reason)
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
        refusal = _refusal(connection, request)
        if refusal is not None:
            return refusal
        now = self._now()
        if names := _landing_names(request):
            parties_facts.note_landing(connection, now, names)
        accounts.record_caps(connection, now, request)
        return attempts.open_attempt(connection, now, request, len(found) + 1)

    def refusal_of(self, request: Request) -> RefusedError | None:
        """Return how budget or landing path would refuse a reservation now, or None.

        Nothing is written. The caps are those of the request, beside those of the family's other
        programmes.
        """
        return self._store.read(lambda c: _refusal(c, request))

    def begin_draw(
        self,
        attempt_id: str,
        bindings: Bindings,
        *,
        space: Mapping[Path, int] | None = None,
        code: str = "",
    ) -> Attempt:
        """Turn the hold into spent, durably and everywhere; only then may noise be drawn.

        A second call is refused: whoever lost its process reserves again, which burns this attempt.
        Only an attempt whose charge had not reached every witness goes on under that charge.

        Args:
            attempt_id: as `reserve` returned it.
            bindings: present digests.
            space: bytes that the draw will write, by folder; written there before the charge.
            code: version of the code that is about to draw, for the record.

        Raises:
            RefusedError: the attempt is not reserved.
            RevisionNeeded: programme, domain or snapshot changed since it was reserved.
            IntegrityError: something outside of this ledger knows more than it does.
            InputError: something cannot be written, or a folder is full.
        """
        said = {"code": code} if code else {}
        if not self._custody.witnesses.is_wanted:
            return self._store.write(lambda c: self._begin(c, attempt_id, bindings, said))
        found = self._custody.require_intact()
        self._custody.require_space(space or {})
        self._custody.adopt()
        said["nonce"] = secrets.token_hex(16)  # no two copies of a ledger write the same entry

        def begin(connection: Connection) -> Attempt:
            attempt = self._locked(connection, attempt_id)
            if attempt.state is not ReleaseState.DRAWING:
                return self._begin(connection, attempt_id, bindings, said)
            if drew_before(found, attempt.key) or attempts.has_started(connection, attempt):
                raise not_possible(attempt, Transition.BEGIN_DRAW)
            return attempt

        self._store.write(begin)
        self._custody.ship()
        self._custody.note()
        begun = self._store.write(lambda c: self._start(c, attempt_id))
        self._custody.ship()
        return begun

    def _begin(
        self, connection: Connection, attempt_id: str, bindings: Bindings, said: Mapping[str, str]
    ) -> Attempt:
        """Turn the hold into spent."""
        found = self._locked(connection, attempt_id)
        refusal = _other_bindings(found, bindings) if found.is_open else None
        if refusal is not None:
            raise refusal
        return self._move(connection, found, Transition.BEGIN_DRAW, **said)

    def _start(self, connection: Connection, attempt_id: str) -> Attempt:
        """Let one process draw, once the charge is known everywhere."""
        found = self._locked(connection, attempt_id)
        if found.state is not ReleaseState.DRAWING or attempts.has_started(connection, found):
            raise not_possible(found, Transition.BEGIN_DRAW)
        attempts.start(connection, self._now(), found)
        return found

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
            return self._move(connection, found, Transition.SEAL, artefact_digest=artefact_digest)

        return self._write(act)

    @property
    def has_key(self) -> bool:
        """Something can be signed here."""
        key = self._custody.witnesses.key
        return key is not None and key.exists()

    def sign_payload(self, kind: str, payload: bytes) -> tuple[str, bytes]:
        """Return the ledger's public key and its signature of a payload of a media type.

        Raises:
            InputError: there is no key, or it cannot be read.
        """
        signer = self._custody.witnesses.signer()
        return signer.public_line, signer.sign_payload(kind, payload)

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
            self._move(connection, found, Transition.PUBLISH, manifest_digest=manifest_digest)
            public = attempts.publication(connection, key)
            if public is None:  # pragma: no cover - the move wrote it
                raise IntegrityError(f"{key} has no entry of its publication")
            return public

        publication = self._write(act)
        self._custody.adopt()  # the public zone may be another copy than that of the draw
        self._custody.note((key, manifest_digest.removeprefix("sha256:")))
        return publication


def _refusal(connection: Connection, request: Request) -> RefusedError | None:
    """Return why a request cannot be reserved for the first time, or None."""
    if (names := _landing_names(request)) and (
        refusal := parties_facts.landing_refusal(connection, names)
    ):
        return refusal
    return _budget_refusal(connection, request)


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


def _other_request(connection: Connection, found: Attempt, request: Request) -> RefusedError | None:
    """Refuse a request for a key that is bound to something else.

    A sealed key answers with its bytes whatever the source holds now (PRIVACY 6), and whatever the
    programme says that decides neither loss nor cells.
    """
    if found.is_sealed:
        differences = attempts.differences(connection, found, request.bindings, request.terms)
        differences += _other_plan(found, request)
        return revision_needed(found, differences) if differences else None
    return _other_bindings(found, request.bindings, request.plan_digest)


def _other_plan(found: Attempt, request: Request) -> tuple[Difference, ...]:
    """Compare plans of a sealed key, as if both named the programme that the key is bound to."""
    own, asked = found.bindings, request.plan_digest
    if own.programme_digest != request.bindings.programme_digest:
        bound = (own.programme_digest, own.domain_digest)
        asked = plan_digest(*bound, found.key.period, found.key.revision, request.events)
    return (Difference("plan", found.plan_digest, asked),) if asked != found.plan_digest else ()


def _other_bindings(
    found: Attempt, bindings: Bindings, asked: str | None = None
) -> RefusedError | None:
    """Refuse an open attempt that is bound to something else."""
    if not found.is_open:
        return None
    differences = found.bindings.differences(bindings)
    if asked not in (None, found.plan_digest):
        differences = (*differences, Difference("plan", found.plan_digest, str(asked)))
    return revision_needed(found, differences) if differences else None
