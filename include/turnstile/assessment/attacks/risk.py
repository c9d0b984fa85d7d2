"""Risk over time: how presence, averaging and the loss of each unit move as weeks are added (B8).

From the plan alone: a forecast, recomputed by each release, for a programme that goes on as it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from turnstile.assessment.attacks.presence import best_guess
from turnstile.assessment.attacks.unit_changes import (
    Changes,
    name_of,
    typical_changes,
    units_of_events,
    worst_changes,
)
from turnstile.ledger.records import AccountBalance
from turnstile.privacy.accounts import MICRO, NANO, Loss
from turnstile.privacy.events import DrawEvent, one_of_each_label
from turnstile.privacy.guarantees import ApproxDp, PureDp, Zcdp, epsilon_shown
from turnstile.privacy.noise_sums import half_width
from turnstile.privacy.noise_terms import Term, term_of
from turnstile.privacy.units import ProtectionUnit

SHOWN_WEEKS = (1, 2, 4, 8, 13, 26, 39, 52)
AHEAD_WEEKS = 52
_SHOWN_AT_DELTA = Fraction(1, 10**6)
_OVER_WEEKS = tuple(unit for unit in ProtectionUnit if unit.is_lifetime)
_NORMAL_FROM_TERMS = 20
_HIDDEN_UP_TO, _IN_PART_UP_TO = 0.6, 0.9  # chance of the best guess
NOUNS = {unit: unit.noun for unit in ProtectionUnit}


@dataclass(frozen=True, slots=True)
class UnitRisk:
    """How well one unit is recognised by an attacker who knows everything else.

    Args:
        unit: whose presence is guessed.
        who: which of them, in words.
        is_worst: whether no unit within the bounds shows more.
        weeks: weekly releases that the unit is in.
        guess_right: chance of the best guess, 1/2 by chance; None where nothing bounds the unit.
        epsilon: of the unit at delta 1e-6; None where nothing bounds it.
    """

    unit: ProtectionUnit
    who: str
    is_worst: bool
    weeks: int
    guess_right: float | None
    epsilon: float | None

    @property
    def verdict(self) -> str:
        """What it means for the unit, in one clause; the limits are 60 and 90 in 100."""
        noun = NOUNS[self.unit]
        over = f" over {_span(self.weeks)}" if self.unit in _OVER_WEEKS else ""
        if self.guess_right is None:
            return f"this release states no protection of {noun}{over}"
        if self.guess_right <= _HIDDEN_UP_TO:
            return f"this release hides {noun}{over}"
        if self.guess_right <= _IN_PART_UP_TO:
            return f"this release hides {noun}{over} in part"
        return f"this release does not hide {noun}{over}"

    @property
    def sentence(self) -> str:
        """The chance and what it means, in words."""
        if self.guess_right is None:
            more = "the more records it has, the more it shows"
            return f"Nothing bounds {NOUNS[self.unit]}: {more}; {self.verdict}."
        after = f"after {_span(self.weeks)}, " if self.unit in _OVER_WEEKS else ""
        times = 100 * self.guess_right
        shown = f"{times:.0f}" if times < 99.5 else "more than 99"  # noqa: PLR2004 - percent
        return (
            f"{after}an attacker who knows everything else recognises {self.who} {shown} times in "
            f"100 (50 by chance); {self.verdict}."
        ).capitalize()


@dataclass(frozen=True, slots=True)
class Forecast:
    """Where a programme stands, and where it goes with releases like this one.

    Args:
        units: each unit, typical and worst, after one week; those over weeks after several.
        steady_cell: pairs (weeks, 95 % half-width of the average of one finest cell, in counts).
        weeks_so_far: releases that the most spent account over weeks holds, as many as this one's
            losses make; None if nobody said.
    """

    units: tuple[UnitRisk, ...]
    steady_cell: tuple[tuple[int, float], ...]
    weeks_so_far: int | None = None

    def answers(self) -> tuple[UnitRisk, ...]:
        """Return what is said first: each unit, over weeks at the farthest that is ahead."""
        last = max(one.weeks for one in self.units)
        return tuple(one for one in self.units if one.unit not in _OVER_WEEKS or one.weeks == last)


def forecast(
    events: Sequence[DrawEvent],
    losses: Mapping[ProtectionUnit, Loss],
    weeks: Sequence[int] = SHOWN_WEEKS,
    *,
    weeks_so_far: int | None = None,
) -> Forecast:
    """Return the risk of each unit, and of those over weeks after each number of weeks.

    Args:
        events: draws of one week.
        losses: that they cost one instance of each unit.
        weeks: numbers of weeks, each >= 1.
        weeks_so_far: this one included; shown, and with a year ahead of it.
    """
    asked = set(weeks)
    if weeks_so_far:
        asked |= {weeks_so_far, weeks_so_far + AHEAD_WEEKS}
    finest = max(one_of_each_label(events), key=lambda event: 1 / event.scale)
    return Forecast(
        units=tuple(
            _risk(unit, losses.get(unit), changes, number, is_worst=is_worst)
            for unit in units_of_events(events)
            for is_worst in (False, True)
            for changes in [(worst_changes if is_worst else typical_changes)(events, unit)]
            for number in (sorted(asked) if unit in _OVER_WEEKS else (1,))
        ),
        steady_cell=tuple((number, _average(finest, number)) for number in sorted(asked)),
        weeks_so_far=weeks_so_far,
    )


def weeks_spent(balances: Sequence[AccountBalance], weekly: Mapping[ProtectionUnit, Loss]) -> int:
    """Return how many weeks like this one the costliest account over weeks has paid for; 0 if none.

    Args:
        balances: of the programme's accounts.
        weekly: what one instance of each unit loses in a week.
    """
    found = [
        -(-spent // own)
        for balance in balances
        if balance.unit in _OVER_WEEKS and balance.unit in weekly
        for spent, own in (
            (balance.spent.rho_nano, _parts(weekly[balance.unit].rho, NANO)),
            (balance.spent.epsilon_micro, _parts(weekly[balance.unit].epsilon, MICRO)),
        )
        if spent is not None and own
    ]
    return max(found, default=0)


def _parts(amount: Fraction | None, parts: int) -> int:
    """Return a ledger amount, rounded up; 0 where it is infinite."""
    return 0 if amount is None else math.ceil(amount * parts)


def _risk(
    unit: ProtectionUnit,
    weekly: Loss | None,
    changes: Changes | None,
    weeks: int,
    *,
    is_worst: bool,
) -> UnitRisk:
    """Return what is known of one unit after so many weeks."""
    chance = None
    if changes is not None:
        chance = best_guess({change: weeks * number for change, number in changes.items()})
    return UnitRisk(
        unit,
        name_of(unit, is_worst=is_worst),
        is_worst,
        weeks,
        chance,
        None if weekly is None else epsilon_after(unit, weekly, weeks),
    )


def _span(weeks: int) -> str:
    """Return a number of weeks in words."""
    if weeks == 1:
        return "a week"
    return "a year" if weeks == AHEAD_WEEKS else f"{weeks} weeks"


def as_figures(one: UnitRisk) -> dict[str, Any]:
    """Return the risk of one unit for JSON."""
    return {
        "unit": str(one.unit),
        "who": one.who,
        "is_worst": one.is_worst,
        "weeks": one.weeks,
        "best_guess": None if one.guess_right is None else round(one.guess_right, 6),
        "epsilon_at_delta_1e-6": one.epsilon,
        "sentence": one.sentence,
    }


def over_weeks(known: Forecast) -> list[dict[str, Any]]:
    """Return what grows with the weeks, for JSON."""
    return [
        {
            "weeks": weeks,
            "best_guess": {
                one.who: None if one.guess_right is None else round(one.guess_right, 6)
                for one in known.units
                if one.weeks == weeks
            },
            "average_half_width_95": round(width, 4),
            "epsilon_at_delta_1e-6": {
                str(one.unit): one.epsilon for one in known.units if one.weeks == weeks
            },
        }
        for weeks, width in known.steady_cell
    ]


def epsilon_after(unit: ProtectionUnit, weekly: Loss, weeks: int) -> float | None:
    """Return the epsilon of one instance of a unit after so many weeks, at delta 1e-6.

    A unit of a week or less is in one week only (parallel composition under add/remove); a card or
    a bus is in all of them, and its weekly losses add up.

    Examples:
        >>> weekly = Loss(Fraction(1), Fraction(1, 2))
        >>> epsilon_after(ProtectionUnit.TRIP, weekly, 52)
        1.0
        >>> epsilon_after(ProtectionUnit.CARD, weekly, 52)
        52.0
    """
    times = weeks if unit in _OVER_WEEKS else 1
    pure: PureDp | ApproxDp | None = None
    if weekly.epsilon is not None:
        pure = ApproxDp(times * weekly.epsilon, times * weekly.delta)
        if weekly.delta == 0:
            pure = PureDp(times * weekly.epsilon)
    concentrated = None
    if weekly.rho is not None:
        concentrated = Zcdp(times * weekly.rho, min(Fraction(1), times * weekly.delta))
    shown = epsilon_shown(pure, concentrated, _SHOWN_AT_DELTA)
    return None if shown is None else float(shown)


def weeks_left(balance: AccountBalance, weekly: Loss) -> int | None:
    """Return how many more weeks like this one fit an account for life; None without a cap.

    A window's cap frees what leaves the window, so it is counted as if nothing did: a floor.

    Args:
        balance: of a card or a bus.
        weekly: what one instance loses in a week.
    """
    cap = balance.cap
    if balance.unit not in _OVER_WEEKS or cap is None:
        return None
    found = [
        _fitting(limit, taken, None if own is None else own * parts)
        for limit, taken, own, parts in (
            (cap.epsilon_micro, _taken(balance, "epsilon_micro"), weekly.epsilon, MICRO),
            (cap.rho_nano, _taken(balance, "rho_nano"), weekly.rho, NANO),
        )
        if limit is not None
    ]
    return min(found, default=None)


def _taken(balance: AccountBalance, amount: str) -> int | None:
    """Return what is spent and held of one amount; None is infinite."""
    parts = (getattr(balance.spent, amount), getattr(balance.held, amount))
    return None if None in parts else sum(parts)


def _fitting(limit: int, taken: int | None, weekly: Fraction | None) -> int:
    """Return how many weekly amounts fit below a limit; 0 if any of them is infinite."""
    if taken is None or weekly is None:
        return 0
    return max(0, int((limit - taken) // weekly)) if weekly else 0


def _average(event: DrawEvent, weeks: int) -> float:
    """95 % half-width of an average over weeks; by the normal distribution once it is long."""
    term: Term = term_of(event, min(weeks, _NORMAL_FROM_TERMS))
    width = half_width([term], 0.95) / term.times
    return float(width * (term.times / weeks) ** 0.5)
