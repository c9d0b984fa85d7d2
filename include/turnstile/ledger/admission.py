"""The one rule that admits or refuses a loss: no account passes a cap in any window. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from turnstile.ledger.balances.amounts import COORDINATES, SUMS, Cap, word_of
from turnstile.ledger.balances.changes import (
    ALL_WEEKS,
    NOTHING,
    AccountRow,
    Amount,
    pair_of,
    week_names,
)
from turnstile.privacy.units import NeighboringRelation, ProtectionUnit
from turnstile.service_calendar import ServiceWeek

CapFigures = tuple[int | None, int | None, int | None]
"""Caps on one account row: epsilon, rho, delta in the ledger's units; None caps nothing."""


def under_add_remove(cap: Cap) -> Cap:
    """Return a cap as it is enforced: add/remove, and every delta stated.

    Replace-one is a group of two: half the epsilon, a quarter of the rho (Bun & Steinke 2016,
    Proposition 1.9), rounded down.
    """
    is_replace = cap.relation is NeighboringRelation.REPLACE
    epsilon, rho = cap.epsilon_micro, cap.rho_nano
    return Cap(
        unit=cap.unit,
        epsilon_micro=epsilon // 2 if is_replace and epsilon is not None else epsilon,
        rho_nano=rho // 4 if is_replace and rho is not None else rho,
        delta_femto=cap.delta_femto or 0,
        window_weeks=cap.window_weeks,
    )


def binding_caps(caps: Iterable[Cap]) -> tuple[Cap, ...]:
    """Return the caps in force: of every coordinate of a unit and window, the smallest.

    Args:
        caps: of all programmes of a family.
    """
    smallest: dict[tuple[ProtectionUnit, int], Cap] = {}
    for cap in map(under_add_remove, caps):
        account = (cap.unit, cap.window_weeks or 0)
        smallest[account] = _smaller(smallest.get(account, cap), cap)
    return tuple(cap for _, cap in sorted(smallest.items()))


def _smaller(cap: Cap, other: Cap) -> Cap:
    """Take the smaller of every coordinate."""
    return Cap(
        unit=cap.unit,
        epsilon_micro=_least(cap.epsilon_micro, other.epsilon_micro),
        rho_nano=_least(cap.rho_nano, other.rho_nano),
        delta_femto=_least(cap.delta_femto, other.delta_femto),
        window_weeks=cap.window_weeks,
    )


def _least(amount: int | None, other: int | None) -> int | None:
    """Return the smaller amount, of which None caps nothing."""
    if amount is None or other is None:
        return other if amount is None else amount
    return min(amount, other)


@dataclass(frozen=True, slots=True)
class Excess:
    """Why a loss is refused: one coordinate of one account would pass one cap.

    Args:
        cap: in force, add/remove.
        scope: account, or window `2015-W32..2016-W30`.
        coordinate: `epsilon`, `rho` or `delta`.
        asked: in the ledger's unit of the coordinate; None is infinite.
        taken: spent or held before; None is infinite.
        limit: the cap's figure.
    """

    cap: Cap
    scope: str
    coordinate: str
    asked: int | None
    taken: int | None
    limit: int


Taken = Callable[[AccountRow], Amount]
"""What a row has spent and holds; NOTHING for a row that does not exist."""


def first_excess(
    caps: Iterable[Cap], asked: Mapping[AccountRow, Amount], weeks: str, taken: Taken
) -> Excess | None:
    """Return the first cap that a loss would pass, or None if it is admitted.

    A cap on a unit for which the loss states nothing is passed too: no figure is no bound.

    Args:
        caps: in force, from `binding_caps`.
        asked: loss by row, from `amounts_by_row`.
        weeks: service week of the loss, or FIRST..LAST.
        taken: looks rows up.
    """
    for cap in caps:
        for scope, before, more in _accounts_under(cap, asked, weeks, taken):
            excess = _excess(cap, scope, before, more)
            if excess is not None:
                return excess
    return None


def most_taken(
    caps: Iterable[Cap], asked: Mapping[AccountRow, Amount], weeks: str, taken: Taken
) -> dict[Cap, Amount]:
    """Return what has been taken of each cap by that account of a loss which has least left.

    Args:
        caps: in force, from `binding_caps`.
        asked: the loss by row, from `amounts_by_row`; taken already.
        weeks: service week of the loss, or FIRST..LAST.
        taken: looks rows up.
    """
    amounts: dict[Cap, Amount] = {}
    for cap in caps:
        before = [amount for _, amount, _ in _accounts_under(cap, asked, weeks, taken)]
        amounts[cap] = Amount(*(max(column) for column in zip(*before, strict=True)))
    return amounts


def _accounts_under(
    cap: Cap, asked: Mapping[AccountRow, Amount], weeks: str, taken: Taken
) -> Iterable[tuple[str, Amount, Amount]]:
    """Yield scope, figure before and figure asked of each account that a cap holds for."""
    rows = [row for row in asked if row.unit == cap.unit.value and row.week == ALL_WEEKS]
    if not rows:
        yield "unstated", NOTHING, Amount(epsilon_unbounded=1, rho_unbounded=1)
    for row in rows:
        if cap.window_weeks is None:
            yield row.scope, taken(row), asked[row]
        else:
            scope, before = most_spent_window(row, weeks, cap.window_weeks, taken)
            yield scope, before, asked[row]


def most_spent_window(
    row: AccountRow, weeks: str, window_weeks: int, taken: Taken
) -> tuple[str, Amount]:
    """Return the window around a period that has taken most, coordinate by coordinate.

    Backfills charge weeks before others, so every window that holds a week of the period counts.
    The window named is the one that has taken most (`AccountLoss.rank`); the figure is at least
    that of each window.
    """
    names, pair_names = _weeks_around(weeks, window_weeks)
    unit, scope = row.unit, row.scope
    figures = [taken(AccountRow(unit, scope, name)) for name in names]
    pairs = [taken(AccountRow(unit, scope, name)) for name in pair_names]
    windows = list(_window_sums(figures, pairs, window_weeks))
    most_spent = max(range(len(windows)), key=lambda n: (windows[n].loss.rank, n))
    upper = Amount(*(max(column) for column in zip(*windows, strict=True)))
    return f"{names[most_spent]}..{names[most_spent + window_weeks - 1]}", upper


@lru_cache(maxsize=1024)
def _weeks_around(weeks: str, window_weeks: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return every week that shares a window with a period, and the pairs of neighbors in them."""
    charged = week_names(weeks)
    first = ServiceWeek.parse(charged[0]).plus(1 - window_weeks)
    names = [str(first.plus(n)) for n in range(len(charged) + 2 * (window_weeks - 1))]
    return tuple(names), tuple(pair_of(name) for name in names[:-1])


def _window_sums(figures: list[Amount], pairs: list[Amount], window_weeks: int) -> Iterable[Amount]:
    """Slide a window over weekly figures, less those of the pairs that lie in it, in one pass."""
    total = NOTHING
    for n, figure in enumerate(figures):
        total = total.plus(figure)
        if n and window_weeks > 1:
            total = total.minus(pairs[n - 1])
        if n >= window_weeks:
            total = total.minus(figures[n - window_weeks])
            if window_weeks > 1:
                total = total.plus(pairs[n - window_weeks])
        if n >= window_weeks - 1:
            yield total


def _excess(cap: Cap, scope: str, before: Amount, more: Amount) -> Excess | None:
    """Compare one account with one cap."""
    had, asked = before.loss, more.loss
    for name in COORDINATES:
        limit, taken, wanted = (getattr(of, name) for of in (cap, had, asked))
        if limit is None:
            continue
        if taken is None or wanted is None or taken + wanted > limit:
            return Excess(cap, scope, word_of(name), wanted, taken, limit)
    return None


def cap_figures(row: AccountRow, caps: Iterable[Cap]) -> CapFigures:
    """Return the caps that hold for one row by itself; a window cap holds for each of its weeks."""
    is_week = row.week != ALL_WEEKS
    here = [
        cap
        for cap in caps
        if cap.unit.value == row.unit and (cap.window_weeks is not None) == is_week
    ]
    epsilon, rho, delta = (
        min((f for cap in here if (f := getattr(cap, name)) is not None), default=None)
        for name in COORDINATES
    )
    return (epsilon, rho, delta)


def setters(stated: Mapping[str, Iterable[Cap]], cap: Cap) -> tuple[str, ...]:
    """Return the programmes that state a figure of a cap in force, sorted.

    Args:
        stated: caps by programme, as their files state them.
        cap: in force, from `binding_caps`.
    """
    return tuple(
        sorted(
            programme
            for programme, caps in stated.items()
            if any(_sets(under_add_remove(stated_cap), cap) for stated_cap in caps)
        )
    )


def _sets(stated: Cap, cap: Cap) -> bool:
    """Return whether a stated cap gives a figure of the one in force."""
    if (stated.unit, stated.window_weeks) != (cap.unit, cap.window_weeks):
        return False
    pairs = [(getattr(stated, name), getattr(cap, name)) for name in SUMS]
    return any(amount is not None and amount == figure for amount, figure in pairs)
