"""What the budget page says, as plain values: one function a view, the same for HTML and JSON.

Made from the ledger, the journal, programme files and published packages; never from rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from turnstile.ledger.entries import EntryKind
from turnstile.ledger.presentation import balance_json, forecast_json, most_spent
from turnstile.ledger.states import CHARGED_STATES, ReleaseState
from turnstile.operations.books import EntryLine, LedgerPicture
from turnstile.operations.journal import Happening, Line
from turnstile.programme.release_schedule import final_at
from turnstile.programme.spec import Programme
from turnstile.service_calendar import ServicePeriod, parse_period

PAGE_LINES = 100


@dataclass(frozen=True, slots=True)
class WeekMark:
    """One week of the calendar.

    Args:
        week: ISO week.
        state: published, revised, withdrawn, withheld, refused, charged, held, missing, waiting.
        revision: highest revision that was charged or published.
        run_id: of the last run that took it up; empty if none is known.
        reason: why it is not published, if it was told.
    """

    week: str
    state: str
    revision: int = 0
    run_id: str = ""
    reason: str = ""


def balance_view(picture: LedgerPicture, families: frozenset[str]) -> list[dict[str, Any]]:
    """Return what `turnstile ledger balance --json` prints, of some families."""
    return [balance_json(one) for one in most_spent(picture.balances) if one.family in families]


def forecast_view(picture: LedgerPicture, families: frozenset[str]) -> list[dict[str, Any]]:
    """Return what `turnstile ledger forecast --json` prints, of some families."""
    return [forecast_json(one) for one in picture.forecasts if one.family in families]


def calendar_of(
    programme: Programme, picture: LedgerPicture, journal: Sequence[Line], now: datetime
) -> tuple[WeekMark, ...]:
    """Return every week from the first that was ever taken up to the last that is over.

    Args:
        programme: says when a week is final.
        picture: of the ledger.
        journal: lines about the programme, oldest first in each week.
        now: the present instant, aware.
    """
    told: dict[str, list[Line]] = {}
    for line in journal:
        if line.week != "all":
            told.setdefault(line.week, []).append(line)
    charged: dict[str, list[Any]] = {}
    for attempt in picture.attempts_of(programme.name):
        charged.setdefault(attempt.key.split("/")[1], []).append(attempt)
    marks = []
    for period in _without_gaps({parse_period(name) for name in told.keys() | charged.keys()}):
        name = str(period)
        final = final_at(period, programme.schedule, zone=programme.time.zone) <= now
        marks.append(_mark(name, charged.get(name, ()), told.get(name, ()), final=final))
    return tuple(marks)


def _without_gaps(known: set[ServicePeriod]) -> tuple[ServicePeriod, ...]:
    """Return periods in order, with those that lie between the first and the last."""
    if not known:
        return ()
    by_day = {period.first_day: period for period in known}
    period, last_day = by_day[min(by_day)], max(by_day)
    while period.first_day < last_day:
        by_day.setdefault(period.first_day, period)
        period = period.plus(1)
    return tuple(by_day[day] for day in sorted(by_day))


def _mark(week: str, attempts: Sequence[Any], lines: Sequence[Line], *, final: bool) -> WeekMark:
    """Judge one week by its attempts, else by what its runs told."""
    run_id = next((line.run_id for line in reversed(lines) if line.run_id), "")
    failed = next((line for line in reversed(lines) if line.happening is Happening.FAILED), None)
    reason = str(failed.told.get("sentence", "")) if failed else ""
    live = [one for one in attempts if one.state is not ReleaseState.VOID]
    if live:
        revision = max(int(one.key.rpartition("/r")[2]) for one in live)
        state = _state_of(live, revision)
        return WeekMark(week, state, revision, run_id, "" if state == "published" else reason)
    if failed is not None:
        is_refusal = failed.told.get("kind") in {"BudgetExceeded", "RefusedError", "RevisionNeeded"}
        return WeekMark(week, "refused" if is_refusal else "withheld", 0, run_id, reason)
    return WeekMark(week, "missing" if final and not lines else "waiting", 0, run_id)


def _state_of(attempts: Sequence[Any], revision: int) -> str:
    """Name the state of a week that was reserved at least once."""
    published = [one for one in attempts if one.state is ReleaseState.PUBLISHED]
    if published:
        if all(one.is_withdrawn for one in published):
            return "withdrawn"
        return "revised" if revision and len(published) > 1 else "published"
    if any(one.state is ReleaseState.SEALED for one in attempts):
        return "withheld"
    return "charged" if any(one.state in CHARGED_STATES for one in attempts) else "held"


def entries_view(
    lines: Sequence[EntryLine], programmes: frozenset[str], wanted: dict[str, str]
) -> list[EntryLine]:
    """Return the facts about some programmes, newest first, as asked for.

    Args:
        lines: every fact, oldest first.
        programmes: that the reader may see.
        wanted: any of `programme`, `kind` and `key` (a part of it); empty texts do not filter.
    """
    programme, kind, key = (wanted.get(name, "") for name in ("programme", "kind", "key"))
    return [
        line
        for line in reversed(lines)
        if line.programme in programmes
        and programme in {"", line.programme}
        and kind in {"", line.kind.value}
        and key in line.key
    ]


def state_of_programme(
    programme: Programme, marks: Sequence[WeekMark], journal: Sequence[Line], in_airflow: str
) -> dict[str, Any]:
    """Return where a programme stands: its last published week, its next, and its last trouble.

    Args:
        programme: whose state it is.
        marks: its calendar.
        journal: lines about it.
        in_airflow: `active`, `paused` or `no DAG`.
    """
    published = [mark.week for mark in marks if mark.state in {"published", "revised"}]
    failed = [line for line in journal if line.happening is Happening.FAILED]
    trouble = max(failed, key=lambda line: line.at, default=None)
    solved = trouble is not None and trouble.week in published
    return {
        "programme": programme.name,
        "title": programme.title,
        "family": programme.family,
        "approval": programme.approval.role if programme.approval.required else "not required",
        "weeks_published": len(published),
        "last_published": published[-1] if published else None,
        "next_week": next_week(marks),
        "is_begun": bool(marks),
        "in_airflow": in_airflow,
        "trouble": None
        if trouble is None or solved
        else {"week": trouble.week, "sentence": str(trouble.told.get("sentence", ""))},
    }


def next_week(marks: Sequence[WeekMark]) -> str | None:
    """Return the week after the last one that was charged; None before the first.

    Examples:
        >>> next_week([WeekMark("2016-W30", "published"), WeekMark("2016-W31", "missing")])
        '2016-W31'
    """
    done = [mark.week for mark in marks if mark.state not in {"missing", "waiting", "held"}]
    return str(parse_period(done[-1]).plus(1)) if done else None


def kinds() -> tuple[str, ...]:
    """Return the kinds of facts that a filter offers."""
    return tuple(kind.value for kind in EntryKind)
