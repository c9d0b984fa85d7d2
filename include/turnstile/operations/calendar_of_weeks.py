"""Every week of a programme in its order: those known, those between, those that are due. Pure.

What the state of a week is, `week_states` judges; here is which weeks there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import groupby

from turnstile.ledger.entries import EntryKind
from turnstile.ledger.records import ReleaseKey
from turnstile.ledger.weeks import Week
from turnstile.operations.journal import Happening, Line
from turnstile.operations.ledger_snapshot import EntryLine, LedgerSnapshot
from turnstile.operations.week_states import TURNS_AND_ENDS, Evidence, WeekMark, state_of_week
from turnstile.programme.calendar.release_schedule import final_at, final_words, period_containing
from turnstile.programme.spec import Programme
from turnstile.service_calendar import ServicePeriod, parse_period

OVERDUE_AFTER = timedelta(hours=24)
_OVERDUE_SHOWN = 12  # squares of weeks that no run took up, after the last known one
_GIVES_WAY = frozenset({"charged", "refused", "stopped", "waiting", "missing", "dead"})
"""States of a week that end once somebody states that it has no release."""


def calendar_of(
    programme: Programme, snapshot: LedgerSnapshot, evidence: Evidence, now: datetime
) -> tuple[WeekMark, ...]:
    """Return every week from the first that was ever taken up to the last that is final.

    What people were sent makes no week known.

    Args:
        programme: says when a week is final.
        snapshot: of the ledger.
        evidence: what is known beside it.
        now: the present instant, aware.
    """
    reports: dict[str, list[Line]] = {}
    for line in evidence.lines:
        if line.happening in TURNS_AND_ENDS:
            reports.setdefault(line.week, []).append(line)
    weeks = snapshot.weeks_of(programme.name)
    taken = {name for name, week in weeks.items() if week.attempts}
    runs = (evidence.airflow.runs or {}).get(programme.name, ())
    asked_for = {run.period for run in runs if run.is_live and run.period}
    known = {parse_period(name) for name in reports.keys() | taken | asked_for}
    declared, marks = _declared(snapshot), []
    for period in _without_gaps(known, programme, now):
        name = str(period)
        final = final_at(period, programme.schedule, programme.time)
        week = weeks.get(name, Week(name))
        mark = state_of_week(programme.name, week, evidence, reports.get(name, ()))
        following = 0 if week.last_sealed is None else week.last_sealed + 1
        stated = declared.get(str(ReleaseKey(programme.name, name, following)))
        if stated and week.revision(following).is_reserved_since(stated.sequence):
            stated = None
        mark = _given_way(mark, week, stated, reports.get(name, ()))
        if mark.state == "missing" and final > now:
            mark = WeekMark(name, "waiting")
        elif mark.state == "missing":
            since = final_words(period, programme.schedule, programme.time)
            mark = replace(mark, reason=f"final since {since}")
        marks.append(mark)
    return tuple(marks)


def _declared(snapshot: LedgerSnapshot) -> dict[str, EntryLine]:
    """Return what people stated last of releases that there will not be, by key."""
    return {line.key: line for line in snapshot.lines if line.kind is EntryKind.NO_RELEASE}


def _given_way(
    mark: WeekMark, week: Week, stated: EntryLine | None, reports: Sequence[Line]
) -> WeekMark:
    """Return the mark of a week once somebody stated that what follows its seal has no release.

    A week without a seal has none then. Of a correction nothing is left to say, until another run
    stops, or is dead.
    """
    if stated is None or mark.current.state not in _GIVES_WAY or week.drawing:
        return mark
    if week.last_sealed is not None:
        newest = [line for line in reports[-1:] if line.at[:19] > stated.at[:19]]
        is_over = all(line.happening is Happening.ENDED for line in newest)
        return replace(mark, correction=None) if is_over else mark
    said = dict(stated.particulars)
    reason = f"no release, {said['person']} stated: {said['reason']}"
    return WeekMark(mark.week, "declared", mark.revision, mark.run_id, reason)


def _without_gaps(
    known: set[ServicePeriod], programme: Programme, now: datetime
) -> tuple[ServicePeriod, ...]:
    """Return periods in order: those known, past ones between them, the next that are final.

    A programme may have changed the length of its periods: between two known ones there are those
    of the earlier one's length that have room, after the last those of the present schedule.
    """
    if not known:
        return ()
    today, schedule = now.astimezone(programme.time.zone).date(), programme.schedule
    in_order = sorted(known, key=lambda period: (period.first_day, period.days))
    periods: list[ServicePeriod] = []
    for period, known_next in zip(in_order, (*in_order[1:], None), strict=True):
        periods.append(period)
        between = period.plus(1)
        while known_next and between.days[-1] < known_next.first_day and between.first_day < today:
            periods.append(between)
            between = between.plus(1)
    following = after_last(in_order[-1], programme)
    for _ in range(_OVERDUE_SHOWN):
        if final_at(following, schedule, programme.time) > now:
            break
        periods.append(following)
        following = following.plus(1)
    return tuple(periods)


def after_last(last: ServicePeriod, programme: Programme) -> ServicePeriod:
    """Return the period of the present schedule that follows the last known one of any length."""
    following = last.plus(1)
    scheduled = period_containing(following.first_day, programme.schedule)
    if len(scheduled.days) == len(last.days):
        return following
    return scheduled if scheduled.first_day > last.days[-1] else scheduled.plus(1)


def overdue(
    programme: Programme, marks: Sequence[WeekMark], now: datetime
) -> tuple[tuple[ServicePeriod, ServicePeriod], ...]:
    """Return the first and last of every row of weeks that no run took up for a day since final.

    A row after the last known week goes on to the last week that is final.
    """
    zone, schedule = programme.time.zone, programme.schedule

    def is_late(period: ServicePeriod) -> bool:
        return now - final_at(period, schedule, programme.time) > OVERDUE_AFTER

    def is_overdue(mark: WeekMark) -> bool:
        return mark.state == "missing" and is_late(parse_period(mark.week))

    rows = [list(row) for is_row, row in groupby(marks, is_overdue) if is_row]
    spans = [(parse_period(row[0].week), parse_period(row[-1].week)) for row in rows]
    if rows and rows[-1][-1] is marks[-1]:
        last = period_containing(now.astimezone(zone).date(), schedule)
        while not is_late(last):
            last = last.plus(-1)
        spans[-1] = (spans[-1][0], last)
    return tuple(spans)


def behind(programme: Programme, marks: Sequence[WeekMark], now: datetime, week: str) -> str:
    """Name the periods after one that no run takes up before it; empty if there are none.

    Airflow runs the weeks of a programme one after the other, so a run that waits holds them up.
    """
    names = [mark.week for mark in marks]
    later = names[names.index(week) + 1 :] if week in names else []
    return ", ".join(
        words_of_row(first, last)
        for first, last in overdue(programme, marks, now)
        if str(first) in later
    )


def words_of_row(first: ServicePeriod, last: ServicePeriod) -> str:
    """Return `2016-W31 to 2016-W40`, or the one week."""
    return str(first) if first == last else f"{first} to {last}"


def folded(marks: Sequence[WeekMark]) -> Iterator[tuple[WeekMark, WeekMark, int]]:
    """Yield weeks as rows of one, but long rows that nobody took up as one: first, last, length."""
    for is_missing, each in groupby(marks, lambda mark: mark.state == "missing"):
        row = list(each)
        if is_missing and len(row) > _ROW_SHOWN:
            yield row[0], row[-1], len(row)
        else:
            yield from ((mark, mark, 1) for mark in row)


_ROW_SHOWN = 3  # weeks without a run that are shown one by one


def next_week(programme: Programme, marks: Sequence[WeekMark]) -> str | None:
    """Return the week after the last one that was charged; None before the first."""
    idle = {"missing", "waiting", "held", "under_way", "held_up", "dead"}
    done = [
        at
        for at, mark in enumerate(marks, 1)
        if mark.state not in idle or mark.of_budget not in {"nothing", "held"}
    ]
    if not done:
        return None
    following = [mark.week for mark in marks[done[-1] :]]
    return following[0] if following else str(after_last(parse_period(marks[-1].week), programme))
