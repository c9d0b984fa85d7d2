"""Every week of a programme with its state: from ledger, journal, calendar and approvals. Pure.

Made from facts about releases and from what runs reported; never from rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from turnstile.ledger.entries import EntryKind
from turnstile.ledger.weeks import Week
from turnstile.operations.journal import Happening, Line, open_runs
from turnstile.operations.ledger_snapshot import LedgerSnapshot
from turnstile.programme.approval_rule import ApprovalStanding
from turnstile.programme.release_schedule import final_at, final_words, period_containing
from turnstile.programme.spec import Programme
from turnstile.service_calendar import ServicePeriod, parse_period

PUBLIC = frozenset({"published", "revised", "withdrawn"})
REFUSALS = frozenset({"BudgetExceeded", "RefusedError", "RevisionNeeded", "NotFinal"})
_OVERDUE_SHOWN = 12  # squares of weeks that no run took up, after the last known one


@dataclass(frozen=True, slots=True)
class WeekMark:
    """One week of the calendar.

    Args:
        week: ISO week, or days.
        state: a key of `STATES`.
        revision: highest revision that was charged or published.
        run_id: of the last run that took it up; empty if none is known.
        reason: why it is not public, in one sentence, if it is known.
        otherwise: state that the ledger gives it if the run that works on it is dead; empty if
            none works on it, or nothing was reserved yet.
    """

    week: str
    state: str
    revision: int = 0
    run_id: str = ""
    reason: str = ""
    otherwise: str = ""


STATES: dict[str, str] = {
    "published": "public",
    "revised": "public, and corrected since",
    "withdrawn": "was public; taken back",
    "asked": "drawn and charged; people are asked whether it may be public",
    "rejected": "drawn and charged; somebody rejected it",
    "withheld": "drawn and charged, and not public",
    "charged": "charged; its draw has not come to an end",
    "held": "reserved; not drawn, nothing charged",
    "refused": "budget, calendar or promise refused it; nothing charged",
    "stopped": "stopped before anything was charged",
    "under_way": "a run works on it",
    "waiting": "waits for its day or its files",
    "missing": "final, and no run took it up",
    "declared": "somebody stated that it has no release",
}
_IN_ORDER = PUBLIC | {"under_way", "waiting", "declared"}
TROUBLE = tuple(name for name in STATES if name not in _IN_ORDER)
_GIVES_WAY = frozenset({"charged", "refused", "stopped", "waiting", "missing"})
"""States of a week that end once somebody states that it has no release."""


def calendar_of(
    programme: Programme,
    snapshot: LedgerSnapshot,
    journal: Sequence[Line],
    now: datetime,
    approvals: Mapping[str, ApprovalStanding] | None = None,
) -> tuple[WeekMark, ...]:
    """Return every week from the first that was ever taken up to the last that is final.

    Args:
        programme: says when a week is final.
        snapshot: of the ledger.
        journal: lines about the programme, oldest first in each week.
        now: the present instant, aware.
        approvals: where they stand, by release key, of those that wait for people.
    """
    reports: dict[str, list[Line]] = {}
    for line in journal:
        if line.week != "all":
            reports.setdefault(line.week, []).append(line)
    weeks = snapshot.weeks_of(programme.name)
    taken = {name for name, week in weeks.items() if week.attempts}
    known = {parse_period(name) for name in reports.keys() | taken}
    declared, marks = _declared(programme, snapshot), []
    for period in _without_gaps(known, programme, now):
        name = str(period)
        final = final_at(period, programme.schedule, programme.time)
        week = weeks.get(name, Week(name))
        mark = _mark(week, reports.get(name, ()), approvals or {})
        is_drawn = any(attempt.is_drawing for attempt in week.attempts)
        if name in declared and mark.state in _GIVES_WAY and not is_drawn:
            mark = WeekMark(name, "declared", mark.revision, mark.run_id, declared[name])
        elif mark.state == "missing" and final > now:
            mark = WeekMark(name, "waiting")
        elif mark.state == "missing":
            since = final_words(period, programme.schedule, programme.time)
            mark = WeekMark(name, "missing", reason=f"final since {since}")
        marks.append(mark)
    return tuple(marks)


def _declared(programme: Programme, snapshot: LedgerSnapshot) -> dict[str, str]:
    """Return the periods that have no release because somebody said so, and who said why."""
    found = {}
    for line in snapshot.lines:
        if line.kind is EntryKind.NO_RELEASE and line.programme == programme.name:
            said = dict(line.particulars)
            found[line.key.split("/")[1]] = f"no release, {said['person']} stated: {said['reason']}"
    return found


def _without_gaps(
    known: set[ServicePeriod], programme: Programme, now: datetime
) -> tuple[ServicePeriod, ...]:
    """Return periods in order: those known, those between them, and the next that are final."""
    if not known:
        return ()
    by_day = {period.first_day: period for period in known}
    period, last_day = by_day[min(by_day)], max(by_day)
    while period.first_day < last_day:
        by_day.setdefault(period.first_day, period)
        period = period.plus(1)
    for _ in range(_OVERDUE_SHOWN):
        period = period.plus(1)
        if final_at(period, programme.schedule, programme.time) > now:
            break
        by_day[period.first_day] = period
    return tuple(by_day[day] for day in sorted(by_day))


def overdue_since(
    programme: Programme, marks: Sequence[WeekMark], now: datetime
) -> tuple[ServicePeriod, ServicePeriod] | None:
    """Return the first and last period that are final with no run since the last known one."""
    taken_up = [mark.week for mark in marks if mark.state != "missing"]
    if not taken_up:
        return None
    zone, schedule = programme.time.zone, programme.schedule
    first = parse_period(taken_up[-1]).plus(1)
    if final_at(first, schedule, programme.time) > now:
        return None
    last = period_containing(now.astimezone(zone).date(), schedule)
    while final_at(last, schedule, programme.time) > now:
        last = last.plus(-1)
    return first, last


def behind(programme: Programme, marks: Sequence[WeekMark], now: datetime, week: str) -> str:
    """Name the periods after one that are final with no run; empty if there are none.

    Airflow runs the weeks of a programme one after the other, so a run that waits holds them up.
    """
    names = [mark.week for mark in marks]
    later = marks[names.index(week) + 1 :] if week in names else ()
    missing = [mark.week for mark in later if mark.state == "missing"]
    since = overdue_since(programme, marks, now)
    if not missing:
        return ""
    last = str(since[1]) if since else missing[-1]
    return missing[0] if missing[0] == last else f"{missing[0]} to {last}"


def _mark(
    of_ledger: Week, lines: Sequence[Line], approvals: Mapping[str, ApprovalStanding]
) -> WeekMark:
    """Judge one week by its attempts, else by what its runs reported."""
    week = of_ledger.period
    run_id = next((line.run_id for line in reversed(lines) if line.run_id), "")
    ends = (line for line in reversed(lines) if line.happening in _TURNS)
    last = next(ends, None)
    failed = last if last is not None and last.happening is Happening.FAILED else None
    if of_ledger.state is not None:
        mark = _of_attempts(of_ledger, failed, run_id, approvals)
        is_worked_on = last is not None and last.happening in _WORKS
        if is_worked_on and mark.state in _LEFT_BY_DEAD_RUNS:
            return replace(mark, state="under_way", otherwise=mark.state)
        return mark
    if failed is not None:
        is_refusal = failed.details.get("kind") in REFUSALS
        return WeekMark(week, "refused" if is_refusal else "stopped", 0, run_id, _sentence(failed))
    if last is not None and last.happening is Happening.WAITS:
        return WeekMark(week, "waiting", 0, run_id, _sentence(last))
    if open_runs(tuple(lines)):
        return WeekMark(week, "under_way", 0, run_id)
    return WeekMark(week, "missing", 0, run_id)


def _of_attempts(
    of_ledger: Week,
    failed: Line | None,
    run_id: str,
    approvals: Mapping[str, ApprovalStanding],
) -> WeekMark:
    """Judge a week that was reserved by what the ledger says, whether a run works on it or not."""
    reason = _sentence(failed) if failed else ""
    week, live, state = of_ledger.period, of_ledger.live, str(of_ledger.state)
    revision = max(attempt.key.revision for attempt in live)
    if state in PUBLIC:
        return WeekMark(week, state, revision, run_id)
    standing = approvals.get(str(live[-1].key))
    if state == "withheld" and standing is not None and not standing.is_approved:
        if failed is None or standing.rejected_by:
            state = "rejected" if standing.rejected_by else "asked"
            reason = str(standing)
        else:  # the run that asked has ended: Airflow has no question to answer
            reason = f"{reason}; {standing}"
    return WeekMark(week, state, revision, run_id, reason)


def _sentence(line: Line) -> str:
    """Return what a run said of its end or its wait."""
    return str(line.details.get("sentence", ""))


_TURNS = frozenset(
    {
        Happening.BEGUN,
        Happening.RESUMED,
        Happening.WAITS,
        Happening.ASKED,
        Happening.FAILED,
        Happening.ENDED,
    }
)


_WORKS = frozenset({Happening.BEGUN, Happening.RESUMED})
_LEFT_BY_DEAD_RUNS = frozenset({"held", "charged", "withheld"})


def next_week(marks: Sequence[WeekMark]) -> str | None:
    """Return the week after the last one that was charged; None before the first.

    Examples:
        >>> next_week([WeekMark("2016-W30", "published"), WeekMark("2016-W31", "missing")])
        '2016-W31'
    """
    idle = {"missing", "waiting", "held", "under_way"}
    done = [mark.week for mark in marks if (mark.otherwise or mark.state) not in idle]
    return str(parse_period(done[-1]).plus(1)) if done else None
