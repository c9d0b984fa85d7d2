"""Forecast: with the present programmes, in which week each cap is reached. Pure.

A programme's present cost is what its latest reservation posted. Accounts of a day or a week start
anew every week, so their caps are reached at once or never; lifetime accounts fill up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from turnstile.ledger.admission import binding_caps
from turnstile.ledger.amounts import EVER, AccountLoss, Cap, is_lifetime_unit
from turnstile.ledger.changes import AccountRow, Amount
from turnstile.ledger.fold import Fold, FoldedAttempt
from turnstile.ledger.folded_accounts import FoldedAccounts
from turnstile.ledger.states import ReleaseState
from turnstile.privacy.units import ProtectionUnit
from turnstile.service_calendar import ServiceWeek

HORIZON_WEEKS = 520
YEAR_WEEKS = 52
_COORDINATES = ("epsilon_micro", "rho_nano", "delta_femto")


@dataclass(frozen=True, slots=True)
class CapForecast:
    """What becomes of one coordinate of one cap.

    Args:
        family: accounts of accounts.
        cap: in force, add/remove.
        coordinate: `epsilon_micro`, `rho_nano` or `delta_femto`.
        limit: the cap's figure, in the unit of the coordinate.
        weekly: cost of one more week of every programme of the family; None is infinite.
        year: what 52 further weeks cost one instance of the unit; None is infinite.
        reached_in: first week that would be refused; None if that is not within ten years.
        path: pairs (week, taken after it) from the first charged week to the last forecast one.
        from_week: first week of the path that is a forecast.
        correction: what a correction costs, of the costliest programme; None is infinite.
        correction_in: first week, from the last charged one on, whose correction fits while every
            week is released; None if none does.
        refused_then: first week that is refused after that correction; None if none is.
    """

    family: str
    cap: Cap
    coordinate: str
    limit: int
    weekly: int | None
    year: int | None
    reached_in: str | None
    path: tuple[tuple[str, int], ...]
    from_week: str
    correction: int | None
    correction_in: str | None
    refused_then: str | None


def forecasts(fold: Fold, family: str | None = None) -> tuple[CapForecast, ...]:
    """Return a forecast for every coordinate of every cap, of a family or of all.

    Args:
        fold: of all entries.
        family: accounts of accounts; None for all.
    """
    names = sorted(fold.accounts) if family is None else [family]
    return tuple(one for name in names for one in _of_family(fold, name))


def present_cost(attempts: Iterable[FoldedAttempt]) -> dict[ProtectionUnit, AccountLoss]:
    """Return what one week of these programmes costs each unit: the sum of their latest plans.

    Of a programme's disjoint accounts, the costliest counts.

    Args:
        attempts: of one family, in the order of their reservation; void ones do not count.
    """
    costs: dict[ProtectionUnit, AccountLoss] = {}
    for programme in _programme_costs(attempts):
        for unit, amount in programme.items():
            costs[unit] = costs.get(unit, AccountLoss()) + amount.loss
    return costs


def _programme_costs(
    attempts: Iterable[FoldedAttempt],
) -> Iterable[dict[ProtectionUnit, Amount]]:
    """Yield what the latest plan of each programme costs each unit."""
    latest: dict[str, FoldedAttempt] = {}
    for attempt in attempts:
        if attempt.state is not ReleaseState.VOID:
            latest[attempt.key.partition("/")[0]] = attempt
    for attempt in latest.values():
        amounts: dict[ProtectionUnit, list[Amount]] = {}
        for posting in attempt.postings:
            amounts.setdefault(posting.unit, []).append(Amount.of(posting))
        yield {unit: _costliest(own) for unit, own in amounts.items()}


def _costliest(amounts: Iterable[Amount]) -> Amount:
    """Return the largest of every coordinate."""
    return Amount(*(max(column) for column in zip(*amounts, strict=True)))


def _correction_costs(attempts: Iterable[FoldedAttempt]) -> dict[ProtectionUnit, AccountLoss]:
    """Return what one correction costs each unit: the latest plan of the costliest programme."""
    amounts: dict[ProtectionUnit, list[Amount]] = {}
    for programme in _programme_costs(attempts):
        for unit, amount in programme.items():
            amounts.setdefault(unit, []).append(amount)
    return {unit: _costliest(own).loss for unit, own in amounts.items()}


def _of_family(fold: Fold, family: str) -> Iterable[CapForecast]:
    """Forecast every cap of a family."""
    accounts = fold.accounts[family]
    attempts = [one for one in fold.attempts.values() if one.family == family]
    live = [one for one in attempts if one.state is not ReleaseState.VOID]
    if not live:
        return
    costs, corrections = present_cost(attempts), _correction_costs(attempts)
    weeks = sorted(one.week for one in live)
    for cap in binding_caps(cap for caps in accounts.caps.values() for cap in caps):
        for coordinate in _COORDINATES:
            limit = getattr(cap, coordinate)
            cost = costs.get(cap.unit, AccountLoss(None, None))
            if limit is not None and (limit or getattr(cost, coordinate) != 0):
                weekly = getattr(cost, coordinate)
                past = _past(accounts, cap, coordinate, (weeks[0], weeks[-1]))
                start = ServiceWeek.parse(weeks[-1]).plus(1)
                correction = getattr(corrections.get(cap.unit, AccountLoss(None, None)), coordinate)
                yield _forecast((family, cap, coordinate), past, (weekly, correction), start)


def _forecast(
    capped: tuple[str, Cap, str],
    past: Mapping[str, int],
    costs: tuple[int | None, int | None],
    start: ServiceWeek,
) -> CapForecast:
    """Forecast one coordinate of one cap of a family, whose week and correction cost so much."""
    family, cap, coordinate = capped
    weekly, correction = costs
    limit = getattr(cap, coordinate)
    is_lifetime = is_lifetime_unit(cap.unit)
    path: tuple[tuple[str, int], ...] = ()
    reached = None
    if weekly is None:
        reached = str(start)
    elif is_lifetime:
        path, reached = _filled(past, cap, (weekly, limit), start)
    elif weekly > limit:
        reached = str(start)
    year = None if weekly is None else weekly * (YEAR_WEEKS if is_lifetime else 1)
    fits_in = refused_then = None
    if weekly is not None and correction is not None:
        amounts = (weekly, correction, limit)
        if is_lifetime:
            fits_in, refused_then = _next_correction(past, cap, amounts, start)
        elif weekly + correction <= limit:
            fits_in = str(start.plus(-1))
    return CapForecast(
        family,
        cap,
        coordinate,
        limit,
        weekly,
        year,
        reached,
        path,
        from_week=str(start),
        correction=correction,
        correction_in=fits_in,
        refused_then=refused_then,
    )


def _next_correction(
    past: Mapping[str, int], cap: Cap, amounts: tuple[int, int, int], start: ServiceWeek
) -> tuple[str | None, str | None]:
    """Return the first week whose correction fits, and the first that is refused after it.

    A correction is charged to its week. Weeks to come are still empty, so the window that ends with
    the corrected week is the fullest of those that hold it.
    """
    weekly, correction, limit = amounts
    taken, week = dict(past), start.plus(-1)
    reach = cap.window_weeks or len(taken) + HORIZON_WEEKS
    for _ in range(reach + 1):
        total = sum(list(taken.values())[-reach:])
        if total + correction <= limit:
            then = {**taken, str(week): taken[str(week)] + correction}
            return str(week), _filled(then, cap, (weekly, limit), week.plus(1))[1]
        week = week.plus(1)
        taken[str(week)] = weekly
        if sum(list(taken.values())[-reach:]) > limit:
            break
    return None, None


def _past(
    accounts: FoldedAccounts, cap: Cap, coordinate: str, weeks: tuple[str, str]
) -> dict[str, int]:
    """Return what every week so far has taken of a lifetime account, gaps included."""
    taken: dict[str, int] = {}
    week, last = ServiceWeek.parse(weeks[0]), ServiceWeek.parse(weeks[1])
    while week <= last:
        row = AccountRow(cap.unit.value, EVER, str(week))
        taken[str(week)] = getattr(accounts.taken(row), coordinate)
        week = week.plus(1)
    return taken


def _filled(
    past: Mapping[str, int], cap: Cap, amounts: tuple[int, int], start: ServiceWeek
) -> tuple[tuple[tuple[str, int], ...], str | None]:
    """Go on week after week until a cap is reached; return the path and that week."""
    weekly, limit = amounts
    taken = list(past.values())
    names = list(past)
    reach = cap.window_weeks or len(taken) + HORIZON_WEEKS
    path = [(name, sum(taken[max(0, n + 1 - reach) : n + 1])) for n, name in enumerate(names)]
    for n in range(HORIZON_WEEKS):
        week = str(start.plus(n))
        total = sum(taken[max(0, len(taken) + 1 - reach) :]) + weekly
        if total > limit:
            return tuple(path), week
        taken.append(weekly)
        path.append((week, total))
        if cap.window_weeks and n > cap.window_weeks:
            break  # the window holds forecast weeks only: it will not change any more
    return tuple(path), None
