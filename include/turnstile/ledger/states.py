"""The life of a release key (PRIVACY 6): its transitions, who makes them, and repeats.

    reserve            begin_draw            seal             publish
    ------> RESERVED ------------> DRAWING ------> SEALED ------------> PUBLISHED (+ withdrawn)
               |                      |
               | void                 | burn
               v                      v
              VOID                  BURNED

A key is looked up without the digest of its input. It has at most one open attempt (RESERVED or
DRAWING) and at most one sealed attempt (SEALED or PUBLISHED), for ever. Charge = draw: the hold
becomes spent, durably, before any noise exists, and nothing is ever refunded. Pure, no IO.
"""

from __future__ import annotations

from enum import StrEnum


class ReleaseState(StrEnum):
    """Where one attempt at a release key stands."""

    RESERVED = "reserved"  # a hold on every account; no noise yet; may time out to VOID
    DRAWING = "drawing"  # charged; noise may exist; never times out to VOID
    SEALED = "sealed"  # the only artefact that this key will ever have
    PUBLISHED = "published"  # the manifest is public; withdrawing is a flag, without a refund
    VOID = "void"  # hold released, nothing charged
    BURNED = "burned"  # charged, and its artefact, should one turn up, is refused


class Transition(StrEnum):
    """What may happen to an attempt, and who does it."""

    BEGIN_DRAW = "begin_draw"
    """By the one draw task, just before it meets the random source. A second call is refused:
    two processes must not draw under one charge. Reserve again instead."""
    SEAL = "seal"
    """By the draw task that began. A repeat with the same digest changes nothing; with another
    digest it is an integrity failure; on a burned attempt it is refused (a zombie's late work)."""
    VOID = "void"
    """By a task that stops before the draw, a time-out, or a person. A repeat changes nothing."""
    BURN = "burn"
    """By `reserve` that finds a draw under way, a task that failed, or a person. A repeat changes
    nothing."""
    PUBLISH = "publish"
    """By the publish task, after gates and approvals. A repeat with the same manifest answers the
    same; with another manifest it is an integrity failure."""


TRANSITIONS: dict[Transition, tuple[ReleaseState, ReleaseState]] = {
    Transition.BEGIN_DRAW: (ReleaseState.RESERVED, ReleaseState.DRAWING),
    Transition.SEAL: (ReleaseState.DRAWING, ReleaseState.SEALED),
    Transition.VOID: (ReleaseState.RESERVED, ReleaseState.VOID),
    Transition.BURN: (ReleaseState.DRAWING, ReleaseState.BURNED),
    Transition.PUBLISH: (ReleaseState.SEALED, ReleaseState.PUBLISHED),
}

OPEN_STATES = frozenset({ReleaseState.RESERVED, ReleaseState.DRAWING})
SEALED_STATES = frozenset({ReleaseState.SEALED, ReleaseState.PUBLISHED})
CHARGED_STATES = frozenset(ReleaseState) - {ReleaseState.RESERVED, ReleaseState.VOID}


class ReserveAnswer(StrEnum):
    """What `reserve` does with the attempt that it finds on a key."""

    OPEN_NEW = "open_new"  # nothing open, nothing sealed: a new hold
    RESUME = "resume"  # a hold exists: no second one
    ANSWER_SEALED = "answer_sealed"  # the same bytes again, no charge, whatever the source holds
    BURN_AND_OPEN_NEW = "burn_and_open_new"  # noise may exist: a full second charge


_RESERVE_ANSWERS = {
    ReleaseState.RESERVED: ReserveAnswer.RESUME,
    ReleaseState.DRAWING: ReserveAnswer.BURN_AND_OPEN_NEW,
    ReleaseState.SEALED: ReserveAnswer.ANSWER_SEALED,
    ReleaseState.PUBLISHED: ReserveAnswer.ANSWER_SEALED,
    ReleaseState.VOID: ReserveAnswer.OPEN_NEW,
    ReleaseState.BURNED: ReserveAnswer.OPEN_NEW,
}


def answer_to_reserve(state: ReleaseState) -> ReserveAnswer:
    """Say what a reservation does on a key whose leading attempt is in this state.

    Examples:
        >>> answer_to_reserve(ReleaseState.VOID).value
        'open_new'
    """
    return _RESERVE_ANSWERS[state]


def is_allowed(transition: Transition, state: ReleaseState) -> bool:
    """Say whether a move may start from a state."""
    return TRANSITIONS[transition][0] is state


def target_of(transition: Transition) -> ReleaseState:
    """Return the state in which a transition ends."""
    return TRANSITIONS[transition][1]


def is_repeat(transition: Transition, state: ReleaseState) -> bool:
    """Say whether the transition was made before, so that a second call may change nothing.

    Begin_draw is never a repeat; a published attempt was sealed before.

    Examples:
        >>> is_repeat(Transition.SEAL, ReleaseState.PUBLISHED)
        True
        >>> is_repeat(Transition.BEGIN_DRAW, ReleaseState.DRAWING)
        False
    """
    if transition is Transition.BEGIN_DRAW:
        return False
    return state is target_of(transition) or (
        transition is Transition.SEAL and state in SEALED_STATES
    )
