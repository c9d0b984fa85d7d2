"""Forecast: with the present programmes, in which week each cap is reached. Pure.

A programme's present cost is what its latest reservation posted. Accounts of a day or a week start
anew, so their caps are reached at once or never; lifetime accounts fill up (`account_course`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from turnstile.ledger.admission import binding_caps
from turnstile.ledger.balances.account_course import (
    Course,
    charged_until,
    filled,
    following,
    next_correction,
)
from turnstile.ledger.balances.amounts import COORDINATES, EVER, Cap, is_lifetime_unit
from turnstile.ledger.balances.changes import AccountRow, Amount, pair_of, week_names
from turnstile.ledger.balances.folded_accounts import FoldedAccounts
from turnstile.ledger.fold import Fold
from turnstile.ledger.records import ReleaseKey
from turnstile.ledger.states import ReleaseState
from turnstile.privacy.accounts import Posting
from turnstile.privacy.units import ProtectionUnit
from turnstile.privacy.year_to_date import YEAR_WEEKS
from turnstile.service_calendar import ServiceWeek, parse_period


@dataclass(frozen=True, slots=True)
class CapForecast:
    """What becomes of one coordinate of one cap.

    Args:
        family: accounts of accounts.
        cap: in force, add/remove.
        coordinate: one of `COORDINATES`.
        limit: the cap's figure, in the unit of the coordinate.
        taken: spent or held, in the most spent window of those that a release of today touches; 0
            of an account that starts anew, or where a cost is infinite.
        weekly: cost of one more week of every programme of the family, of longer periods their
            share, rounded up; of an account that starts anew, of one release; None is infinite.
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
    taken: int
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
    return tuple(forecast for name in names for forecast in _of_family(fold, name))


def _of_family(fold: Fold, family: str) -> Iterator[CapForecast]:
    accounts = fold.accounts[family]
    live = [
        attempt
        for attempt in fold.attempts.values()
        if attempt.family == family and attempt.state is not ReleaseState.VOID
    ]
    if not live:
        return
    latest = tuple({attempt.key.programme: attempt for attempt in live}.values())
    weeks = (
        min(week_names(fold.holds[attempt.attempt_id].weeks)[0] for attempt in live),
        max(attempt.week for attempt in live),
    )
    for cap in binding_caps(cap for caps in accounts.caps.values() for cap in caps):
        for coordinate in COORDINATES:
            limit = getattr(cap, coordinate)
            costs = {
                str(attempt.key): costliest(
                    fold.holds[attempt.attempt_id].postings, cap.unit, coordinate
                )
                for attempt in latest
            }
            if limit is not None and (limit or any(cost != 0 for cost in costs.values())):
                past = _past(accounts, cap, coordinate, weeks)
                yield _forecast((family, cap, coordinate), past, costs)


def costliest(postings: Iterable[Posting], unit: ProtectionUnit, coordinate: str) -> int | None:
    """Return what one release costs a unit: of its disjoint accounts, the costliest.

    None is infinite; so is the cost to a unit of which the release states nothing.
    """
    losses = [Amount.of(posting).loss for posting in postings if posting.unit is unit]
    amounts = [getattr(loss, coordinate) for loss in losses]
    return max(amounts) if amounts and None not in amounts else None


def _past(accounts: FoldedAccounts, cap: Cap, coordinate: str, weeks: tuple[str, str]) -> Course:
    """Return what every week so far has taken of a lifetime account, gaps included."""
    first, last = ServiceWeek.parse(weeks[0]), ServiceWeek.parse(weeks[1])
    past = Course(first, [], [], cap.window_weeks, [])
    while past.next_week <= last:
        name = str(past.next_week)
        pair = pair_of(str(past.next_week.plus(-1)))
        for taken, week in ((past.pairs, pair), (past.weeks, name)):
            row = AccountRow(cap.unit.value, EVER, week)
            taken.append(getattr(accounts.taken(row), coordinate))
    return past


def _forecast(
    capped: tuple[str, Cap, str], past: Course, costs: dict[str, int | None]
) -> CapForecast:
    """Forecast one coordinate of one cap of a family.

    Args:
        capped: family, cap and coordinate.
        past: what was taken so far.
        costs: of each programme's latest release, by its key; None is infinite.
    """
    family, cap, coordinate = capped
    limit, start = getattr(cap, coordinate), past.next_week
    weekly = year = correction = fits_in = refused_then = None
    path: tuple[tuple[str, int], ...] = ()
    taken = 0
    reached: str | None = str(start)
    finite = {key: cost for key, cost in costs.items() if cost is not None}
    if len(finite) == len(costs):
        correction = max(finite.values())
        weekly = year = sum(finite.values())
        reached = str(start) if weekly > limit else None
        fits_in = str(start.plus(-1)) if weekly + correction <= limit else None
    if correction is not None and is_lifetime_unit(cap.unit):
        coming = [
            (following(parse_period(ReleaseKey.parse(key).period), start), cost)
            for key, cost in finite.items()
        ]
        year = sum(charged_until(*release, start.plus(YEAR_WEEKS)) for release in coming)
        weekly = -(-year // YEAR_WEEKS)
        taken = past.going_on(coming).most_taken()
        path, reached = filled(past.going_on(coming), limit)
        fits_in, refused_then = next_correction(past.going_on(coming), correction, limit)
    return CapForecast(
        family,
        cap,
        coordinate,
        limit,
        taken,
        weekly,
        year,
        reached,
        path,
        from_week=str(start),
        correction=correction,
        correction_in=fits_in,
        refused_then=refused_then,
    )
