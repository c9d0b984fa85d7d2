"""Risk over time: how presence, averaging and the loss of each unit move as weeks are added (B8).

From the plan alone: a forecast, recomputed by each release, for a programme that goes on as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from turnstile.assessment.attacks.presence import guess_after
from turnstile.ledger.records import AccountBalance
from turnstile.privacy.accounts import MICRO, NANO, Loss
from turnstile.privacy.events import DrawEvent, one_of_each_label
from turnstile.privacy.guarantees import ApproxDp, PureDp, Zcdp, epsilon_shown
from turnstile.privacy.noise_sums import half_width
from turnstile.privacy.noise_terms import Term, term_of
from turnstile.privacy.units import VEHICLE_UNITS, ProtectionUnit
from turnstile.release.plan import loss_by_unit

SHOWN_WEEKS = (1, 2, 4, 8, 13, 26, 39, 52)
GROUPS = (1, 5, 12)
_SHOWN_AT_DELTA = Fraction(1, 10**6)
_LIFELONG = (ProtectionUnit.CARD, ProtectionUnit.BUS)
_NORMAL_FROM_TERMS = 20


@dataclass(frozen=True, slots=True)
class WeekRisk:
    """Where a programme stands after so many weekly releases like this one.

    Args:
        weeks: releases so far.
        guess_right: pairs (people, chance of the best guess whether they come every week).
        average_half_width_95: of the average of one finest cell over the weeks, in counts.
        epsilon_by_unit: pairs (unit, epsilon at delta 1e-6); None where nothing bounds it.
    """

    weeks: int
    guess_right: tuple[tuple[int, float], ...]
    average_half_width_95: float
    epsilon_by_unit: tuple[tuple[ProtectionUnit, float | None], ...]


def forecast(
    events: Sequence[DrawEvent], weeks: Sequence[int] = SHOWN_WEEKS
) -> tuple[WeekRisk, ...]:
    """Return the risk after each number of weeks.

    Args:
        events: draws of one week.
        weeks: numbers of weeks, each >= 1.
    """
    kinds = one_of_each_label(events)
    loss = loss_by_unit(tuple(events))
    finest = max(kinds, key=lambda event: 1 / event.scale)
    return tuple(
        WeekRisk(
            weeks=number,
            guess_right=tuple((g, guess_after(kinds, group=g, weeks=number)) for g in GROUPS),
            average_half_width_95=_average(finest, number),
            epsilon_by_unit=tuple(
                (unit, epsilon_after(unit, own, number)) for unit, own in sorted(loss.items())
            ),
        )
        for number in weeks
    )


def counted(events: Sequence[DrawEvent], number: int = 1) -> str:
    """Return so many of what is counted, in words: people, or buses.

    Examples:
        >>> counted([], 12)
        '12 people'
    """
    is_bus = any(unit in VEHICLE_UNITS for event in events for unit, _ in event.sensitivities)
    one, many = ("bus", "buses") if is_bus else ("person", "people")
    return f"{number} {one if number == 1 else many}"


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
    times = weeks if unit in _LIFELONG else 1
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
    if balance.unit not in _LIFELONG or cap is None:
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
