"""What the next week of a programme will cost each unit, and what it leaves. Sees no data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

from turnstile.estimates.error_bars import error_bar
from turnstile.ledger.balances.amounts import SUMS, AccountLoss, Cap, is_lifetime_unit, word_of
from turnstile.ledger.balances.forecast import costliest
from turnstile.ledger.presentation import most_spent
from turnstile.ledger.records import AccountBalance
from turnstile.operations.amount_words import rounded_up
from turnstile.pipeline.trials.room import crash_sentence, tightest_room
from turnstile.privacy.accounts import Posting, loss_by_unit
from turnstile.programme.domain.files import load_domain
from turnstile.programme.spec import Programme
from turnstile.publishing.card import loss_figures
from turnstile.release.plan import ReleasePlan, make_plan
from turnstile.service_calendar import parse_period


@lru_cache(maxsize=64)
def plan_of(programme: Programme, include: Path, week: str, revision: int = 0) -> ReleasePlan:
    """Return the plan of a week, or of a correction; worked out once for each text."""
    return make_plan(
        programme, load_domain(programme, include), parse_period(week), revision=revision
    )


@lru_cache(maxsize=64)
def crash_words(programme: Programme, include: Path, week: str) -> str:
    """Say what a draw of a week costs that dies before its seal; worked out once for each text."""
    room = tightest_room(programme, load_domain(programme, include), parse_period(week))
    return "" if room is None else crash_sentence(room)


def plan_view(planned: ReleasePlan, balances: tuple[AccountBalance, ...]) -> dict[str, Any]:
    """Return draws, losses and what every capped unit has left before and after the week.

    Args:
        planned: of the next week.
        balances: every account of the family, with the most spent windows around the week.
    """
    draws = [
        {
            "draw": event.label,
            "noise": str(event.noise),
            "scale": str(event.scale),
            "standard_deviation": round(error_bar(event).standard_deviation, 3),
            "half_width_95": error_bar(event).half_width_95,
        }
        for event in {event.label: event for event in planned.events}.values()
    ]
    losses = {str(u): loss_figures(loss) for u, loss in loss_by_unit(planned.events).items()}
    return {
        "week": str(planned.week),
        "plan_digest": planned.digest,
        "draws": draws,
        "loss": losses,
        "left": _left(planned, balances),
    }


def cost_in_words(planned: ReleasePlan) -> str:
    """Return what one draw charges: `epsilon 4 for a trip, epsilon 20 for a card_day`.

    Where a unit's loss is rho, its epsilon at delta 1e-6 is said, rounded up.
    """
    words, is_pure = [], True
    for unit, loss in loss_by_unit(planned.events).items():
        figures = loss_figures(loss)
        if loss.epsilon is not None:
            words.append(f"epsilon {figures['epsilon']} for a {unit}")
        elif loss.rho is not None:
            shown = rounded_up(Fraction(figures["epsilon_at_delta_1e-6"]))
            words.append(f"epsilon {shown} for a {unit}")
            is_pure = False
    text = ", ".join(words)
    return (text if is_pure else f"{text} (at delta 1e-6)") if words else "an unbounded loss"


def _left(planned: ReleasePlan, balances: tuple[AccountBalance, ...]) -> list[dict[str, Any]]:
    """Return cap, taken, asked and left of the account that has least left, unit by unit.

    A unit of a day or a week meets a new week with fresh accounts, and a correction with those of
    the week itself; a lifetime one with what is taken (in its most spent window around the week).
    """
    lines: dict[tuple[str, str, int], dict[str, Any]] = {}
    for balance in balances if planned.revision else most_spent(balances):
        if balance.cap is None or balance.family != planned.family:
            continue
        is_lifetime = is_lifetime_unit(balance.unit)
        is_fresh = not (planned.revision or is_lifetime)
        asked = [
            posting
            for posting in planned.postings
            if posting.unit is balance.unit
            and (is_fresh or is_lifetime or posting.scope == balance.scope)
        ]
        taken = AccountLoss() if is_fresh else balance.spent + balance.held
        for line in _lines(balance.cap, taken, asked):
            account = (line["unit"], line["coordinate"], line["window_weeks"] or 0)
            lines[account] = min(lines.get(account, line), line, key=_left_after)
    return list(lines.values())


def _left_after(line: dict[str, Any]) -> tuple[bool, int]:
    """Order accounts by what they have left; without a bound nothing is."""
    return line["left_after"] is not None, line["left_after"] or 0


def _lines(cap: Cap, taken: AccountLoss, asked: Sequence[Posting]) -> Iterator[dict[str, Any]]:
    """Yield a line for each coordinate that the cap limits, of an account that is asked for."""
    for name in SUMS:
        limit, before = getattr(cap, name), getattr(taken, name)
        if limit is None or not asked:
            continue
        cost = costliest(asked, cap.unit, name)
        yield {
            "unit": cap.unit.value,
            "coordinate": word_of(name),
            "window_weeks": cap.window_weeks,
            "cap": limit,
            "taken": before,
            "asked": cost,
            "left_after": None if before is None or cost is None else limit - before - cost,
        }
