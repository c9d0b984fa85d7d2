"""What a run will do to the budget, said before it does anything. Pure.

The sentence is made from the ledger's attempts at the key, which decide the same when the steps
come to `reserve` and `draw` (PRIVACY 6). Note, preview and advice say it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from turnstile.ledger.charging import DRAWS_MAX
from turnstile.ledger.entries import EntryKind
from turnstile.ledger.weeks import Revision, Standing


class DatedFact(Protocol):
    """An entry of the ledger, or the line that a list shows of it."""

    @property
    def at(self) -> str:
        """When, ISO 8601."""

    @property
    def kind(self) -> EntryKind:
        """What it says."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What running the steps of a key again does.

    Args:
        sentence: in words, with the cost.
        charges: whether a draw is charged, if a cap allows it.
        is_refused: whether the ledger refuses it whatever a cap allows.
    """

    sentence: str
    charges: bool = False
    is_refused: bool = False


def effect_on_budget(
    revision: Revision,
    facts: Iterable[DatedFact],
    cost: str,
    drawing: frozenset[str] = frozenset(),
) -> Effect:
    """Say what running the steps of a key again costs.

    Args:
        revision: what the ledger has of the key.
        facts: about the key, oldest first.
        cost: what one draw charges, in words, such as `epsilon 4 for a trip`.
        drawing: attempts that a process draws under at this moment.

    Examples:
        >>> effect_on_budget(Revision(), (), "epsilon 4 for a trip").sentence
        'never drawn: once its rows pass validation, epsilon 4 for a trip is charged'
    """
    standing = revision.standing
    if standing in {Standing.SEALED, Standing.PUBLIC}:
        days = [fact.at[:10] for fact in facts if fact.kind is EntryKind.SEALED]
        on = days[-1] if days else "an unknown day"
        if standing is Standing.PUBLIC:
            return Effect(f"week sealed on {on}: re-issued, 0 charged")
        return Effect(f"week sealed on {on}, not published yet: the same bytes go on, 0 charged")
    if standing is Standing.CHARGED and not revision.has_hold:
        dead = _after_a_death(len(revision.drawn), cost)
        if revision.drawn[-1].attempt_id not in drawing:
            return _though_stated(dead, facts)
        # Its lease outlasts a process that was killed, for seconds: both are said.
        lives = "a draw is under way: its seal is waited for, 0 charged"
        return Effect(f"{lives}; should its process have died, {dead.sentence}")
    words = f"never drawn: once its rows pass validation, {cost} is charged"
    if revision.has_hold:
        words = f"a hold exists and is resumed, no second one: {cost} is charged when it draws"
    return _though_stated(Effect(words, charges=True), facts)


def _though_stated(effect: Effect, facts: Iterable[DatedFact]) -> Effect:
    """Say so where somebody stated that there is no release: nobody is bound, and it is public."""
    stated = [fact.at[:10] for fact in facts if fact.kind is EntryKind.NO_RELEASE]
    if not stated:
        return effect
    words = f"that it has no release was stated on {stated[-1]}, in public; {effect.sentence}"
    return replace(effect, sentence=words)


def _after_a_death(drawn: int, cost: str) -> Effect:
    """Say what a key costs whose last draw died, after so many draws."""
    lost = "a draw that died stays charged"
    if drawn >= DRAWS_MAX:
        words = f"{lost}; no draw is left, a person decides (a revision, or no release)"
        return Effect(words, is_refused=True)
    return Effect(f"{lost}; another {cost} is charged", charges=True)
