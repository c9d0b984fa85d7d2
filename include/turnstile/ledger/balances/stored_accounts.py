"""Balances as the database keeps them: one record an account, and one a most spent window."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace

from sqlalchemy import select
from sqlalchemy.engine import Connection

from turnstile.ledger.admission import CapFigures, setters
from turnstile.ledger.balances.accounts import (
    amount_columns,
    caps_by_programme,
    families,
    family_caps,
)
from turnstile.ledger.balances.amounts import COORDINATES, AccountLoss, Cap
from turnstile.ledger.balances.changes import ALL_WEEKS, NOTHING, AccountRow, Amount
from turnstile.ledger.database.database_tables import ACCOUNT, AMOUNTS
from turnstile.ledger.records import AccountBalance
from turnstile.privacy.units import ProtectionUnit
from turnstile.service_calendar import ServicePeriod, ServiceWeek

_KEYS, _SIZE = len(AccountRow._fields), len(AMOUNTS)
Taken = tuple[Amount, Amount]
Weeks = dict[str, Taken]


def account_balances(
    connection: Connection, family: str | None = None, around: ServicePeriod | None = None
) -> tuple[AccountBalance, ...]:
    """Return every account of a family, or of all, sorted by unit and scope.

    A lifetime unit has its account `ever`, and for each cap over a window the most spent window: of
    all, or of those that hold a week of a period.
    """
    names = families(connection) if family is None else (family,)
    return tuple(balance for name in names for balance in _of_family(connection, name, around))


def _of_family(
    connection: Connection, family: str, around: ServicePeriod | None
) -> Iterator[AccountBalance]:
    caps = family_caps(connection, family)
    stated = caps_by_programme(connection, family)
    set_by = {id(cap): setters(stated, cap) for cap in caps}
    lifetime = {cap.unit.value: cap for cap in caps if cap.window_weeks is None}
    units = {unit.value: unit for unit in ProtectionUnit}
    weeks: defaultdict[str, Weeks] = defaultdict(dict)
    losses = _Losses()
    query = select(*amount_columns()).where(ACCOUNT.c.family == family)
    order = (ACCOUNT.c.unit, ACCOUNT.c.scope, ACCOUNT.c.week)
    middle = _KEYS + _SIZE
    for row in connection.execute(query.order_by(*order)).all():
        name, scope, week = row[:_KEYS]
        if week == ALL_WEEKS:
            unit, spent, held = units[name], losses[row[_KEYS:middle]], losses[row[middle:]]
            cap = lifetime.get(name)
            programmes = set_by.get(id(cap), ())
            yield AccountBalance(family, unit, scope, spent, held, cap, programmes)
        else:
            weeks[name][week] = (Amount(*row[_KEYS:middle]), Amount(*row[middle:]))
    for balance in _windows(family, caps, weeks, around):
        yield replace(balance, cap_set_by=set_by.get(id(balance.cap), ()))


class _Losses(dict[tuple[int, ...], AccountLoss]):
    """Losses by their figures: weeks of one programme cost the same, so few are made."""

    def __missing__(self, figures: tuple[int, ...]) -> AccountLoss:
        """Make a loss the first time it is met."""
        loss = self[figures] = Amount(*figures).loss
        return loss


def _windows(
    family: str, caps: Iterable[Cap], weeks: dict[str, Weeks], around: ServicePeriod | None
) -> Iterator[AccountBalance]:
    """Yield the most spent window of each cap over a window."""
    for cap in caps:
        rows = weeks.get(cap.unit.value)
        if cap.window_weeks is None or not rows:
            continue
        if around is not None:
            rows = _near(rows, around, cap.window_weeks)
        scope, spent, held = _most_spent(rows, cap.window_weeks)
        yield AccountBalance(family, cap.unit, scope, spent.loss, held.loss, cap)


def _near(rows: Weeks, period: ServicePeriod, window_weeks: int) -> Weeks:
    """Return the weeks, and pairs of them, that share a window with a period, and its own weeks.

    A window of these alone that holds no week of it has taken no more than one that does.
    """
    first = str(period.weeks[0].plus(1 - window_weeks))
    last = str(period.weeks[-1].plus(window_weeks - 1))
    near = {str(week): (NOTHING, NOTHING) for week in period.weeks}
    for name, taken in rows.items():
        week, _, neighbor = name.partition("..")
        if first <= week and (neighbor or week) <= last:
            near[name] = taken
    return near


def _most_spent(rows: Weeks, window_weeks: int) -> tuple[str, Amount, Amount]:
    """Return the window that has taken most; one that ends in a charged week is always among them.

    Windows without a charged last week take no more than an earlier one, so only those are summed.
    """
    best: tuple[tuple[int | bool, ...], str, Amount, Amount] | None = None
    pairs = {name.partition("..")[0]: taken for name, taken in rows.items() if ".." in name}
    charged = sorted((ServiceWeek.parse(week).monday, week) for week in rows if ".." not in week)
    nothing = (NOTHING, NOTHING)
    first, total = 0, nothing
    for n, (monday, week) in enumerate(charged):
        total = _plus(total, rows[week])
        if n:  # a pair exists only where both of its weeks are charged
            total = _minus(total, pairs.get(charged[n - 1][1], nothing))
        while (monday - charged[first][0]).days >= 7 * window_weeks:
            gone = charged[first][1]
            total = _plus(_minus(total, rows[gone]), pairs.get(gone, nothing))
            first += 1
        spent, held = total
        rank = spent.plus(held).loss.rank
        if best is None or rank >= best[0]:
            start = ServiceWeek.parse(week).plus(1 - window_weeks)
            best = (rank, f"{start}..{week}", spent, held)
    if best is None:  # pragma: no cover - callers pass at least one week
        return ALL_WEEKS, NOTHING, NOTHING
    return best[1:]


def _plus(taken: Taken, other: Taken) -> Taken:
    """Add spent and held."""
    return taken[0].plus(other[0]), taken[1].plus(other[1])


def _minus(taken: Taken, other: Taken) -> Taken:
    """Take spent and held away."""
    return taken[0].minus(other[0]), taken[1].minus(other[1])


def rows_in(connection: Connection, family: str) -> dict[AccountRow, tuple[Amount, Amount]]:
    """Return every row of a family's accounts, spent and held."""
    query = select(*amount_columns()).where(ACCOUNT.c.family == family)
    middle = _KEYS + _SIZE
    return {
        AccountRow(*row[:_KEYS]): (Amount(*row[_KEYS:middle]), Amount(*row[middle:]))
        for row in connection.execute(query)
    }


def cap_columns_in(connection: Connection, family: str) -> dict[AccountRow, CapFigures]:
    """Return the caps that stand in every row of a family's accounts."""
    caps = [ACCOUNT.c[f"cap_{name}"] for name in COORDINATES]
    keys = [ACCOUNT.c[name] for name in AccountRow._fields]
    query = select(*keys, *caps).where(ACCOUNT.c.family == family)
    return {
        AccountRow(*row[:_KEYS]): (row[_KEYS], row[_KEYS + 1], row[_KEYS + 2])
        for row in connection.execute(query)
    }
