"""What a run will do to the budget, said before it does anything. Pure.

The sentence is made from the ledger's attempts at the key, which decide the same when the steps
come to `reserve` and `draw` (PRIVACY 6).
"""

from __future__ import annotations

from collections.abc import Sequence

from turnstile.ledger.charging import DRAWS_MAX
from turnstile.ledger.entries import Entry, EntryKind
from turnstile.ledger.records import Attempt


def effect_on_budget(attempts: Sequence[Attempt], entries: Sequence[Entry], cost: str) -> str:
    """Say what running the steps of a key again costs.

    Args:
        attempts: at the key, oldest first.
        entries: facts about the key, oldest first.
        cost: what one draw charges, in words, such as `epsilon 4 for a trip`.

    Examples:
        >>> effect_on_budget((), (), "epsilon 4 for a trip")
        'never drawn: once its rows pass validation, epsilon 4 for a trip is charged'
    """
    sealed = next((one for one in attempts if one.is_sealed), None)
    if sealed is not None:
        on = _date_of(entries, sealed, EntryKind.SEALED)
        if sealed.is_public:
            return f"week sealed on {on}: re-issued, 0 charged"
        return f"week sealed on {on}, not published yet: the same bytes go on, 0 charged"
    drawn = sum(one.is_charged for one in attempts)
    last = attempts[-1] if attempts else None
    if last is not None and last.is_held:
        return f"a hold exists and is resumed, no second one: {cost} is charged when it draws"
    if last is not None and (last.is_drawing or last.is_burned):
        lost = "a draw that died stays charged"
        if drawn >= DRAWS_MAX:
            return f"{lost}; no draw is left, a person decides"
        return f"{lost}; another {cost} is charged"
    return f"never drawn: once its rows pass validation, {cost} is charged"


def _date_of(entries: Sequence[Entry], attempt: Attempt, kind: EntryKind) -> str:
    """Return the day on which something happened to an attempt."""
    days = [e.at[:10] for e in entries if e.kind is kind and e.attempt_id == attempt.attempt_id]
    return days[-1] if days else "an unknown day"
