"""The watchdog's eyes: what nobody reported, because whoever should have died or never began.

Looks at the ledger, the journal and the calendar; asks the orchestrator for the state of a run
through a function that is passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial

from turnstile.errors import IntegrityError, TurnstileError
from turnstile.ledger.entries import EntryKind
from turnstile.ledger.folders import release_folders
from turnstile.operations.alerts import Alert, of_budget, of_questions, of_retention, of_run
from turnstile.operations.burned_draws import of_burned
from turnstile.operations.calendar_of_weeks import WeekMark, behind, calendar_of
from turnstile.operations.journal import Happening, Journal, Line, open_runs
from turnstile.operations.ledger_snapshot import LedgerSnapshot
from turnstile.programme.release_schedule import final_at
from turnstile.programme.spec import Programme
from turnstile.publishing.manifest import differences
from turnstile.service_calendar import parse_period
from turnstile.settings import Settings

HOLD_LASTS_AT_MOST = timedelta(hours=24)
DRAW_LASTS_AT_MOST = timedelta(hours=1)
RUN_LASTS_AT_MOST = timedelta(hours=6)
OVERDUE_AFTER = timedelta(hours=24)
_LATENESS = frozenset({"hold_stuck", "draw_stuck", "release_overdue"})
_UNDER_WAY = frozenset({"queued", "running"})
_WORKS = frozenset({"queued", "running", "restarting", "up_for_retry"})
RunNow = tuple[str, Mapping[str, str | None]]
"""State of a run and of each of its tasks, in the orchestrator's words."""
AskRun = Callable[[str, str], RunNow | None]
"""Asks for a run by DAG and run id; None if the orchestrator does not know it."""


def watched(
    picture: LedgerSnapshot,
    programmes: tuple[Programme, ...],
    journal: Journal,
    *,
    run_now: AskRun,
    now: datetime,
) -> tuple[Alert, ...]:
    """Return everything that somebody should know, whether it was reported or not."""
    found, kept = [*of_budget(picture.forecasts)], [*of_burned(picture)]
    for programme in programmes:
        lines = journal.of_programme(programme.name)
        found += _runs(lines, run_now, now)
        for run_id in sorted({line.run_id for line in lines if _speaks(line)}):
            found += of_run(lines, run_id)
        marks = calendar_of(programme, picture, lines, now)
        found += of_questions(lines, now, partial(behind, programme, marks, now))
        found += _overdue(programme, marks, now)
        kept += of_retention(lines)
    # A week whose stop was reported is not reported once more for being late.
    known = {(one.programme, one.week) for one in found if one.rule not in _LATENESS}
    late = [one for one in found if one.rule in _LATENESS]
    late += _stuck(picture, now)
    found = [one for one in found if one.rule not in _LATENESS]
    found += [one for one in late if (one.programme, one.week) not in known]
    return tuple(dict.fromkeys((*found, *kept)))


def _speaks(line: Line) -> bool:
    """Return whether a line may give cause for an alert."""
    return line.happening in {Happening.JUDGED, Happening.FAILED, Happening.RESTATED}


def _stuck(picture: LedgerSnapshot, now: datetime) -> Iterator[Alert]:
    """Yield holds and draws that nobody goes on with."""
    since = {
        (dict(line.particulars).get("attempt", ""), line.kind.value): datetime.fromisoformat(
            line.at
        )
        for line in picture.lines
        if line.kind in {EntryKind.RESERVED, EntryKind.DRAW_BEGUN}
    }
    held = ("hold_stuck", EntryKind.RESERVED, HOLD_LASTS_AT_MOST)
    drawn = ("draw_stuck", EntryKind.DRAW_BEGUN, DRAW_LASTS_AT_MOST)
    for attempt in picture.attempts:
        if not attempt.is_open:
            continue
        rule, kind, limit = held if attempt.is_held else drawn
        began = since.get((attempt.attempt_id, kind.value))
        if began is not None and now - began > limit:
            yield Alert(rule, attempt.key.programme, attempt.week, attempt.attempt_id)


def _overdue(programme: Programme, marks: tuple[WeekMark, ...], now: datetime) -> Iterator[Alert]:
    """Yield the first week after the last public one that should be public by now, if one is."""
    public = [mark.week for mark in marks if mark.state in {"published", "revised", "withdrawn"}]
    if not public:
        return
    declared = {mark.week for mark in marks if mark.state == "declared"}
    due = parse_period(public[-1]).plus(1)
    while str(due) in declared:
        due = due.plus(1)
    moment = final_at(due, programme.schedule, programme.time)
    if now - moment > OVERDUE_AFTER:
        yield Alert("release_overdue", programme.name, str(due))


def _runs(lines: tuple[Line, ...], run_now: AskRun, now: datetime) -> Iterator[Alert]:
    """Yield runs that began and never said how they ended, or that work for too long.

    A run that waits, for its week, for people or for a DAG that is paused, may wait.
    """
    heard = {line.run_id: datetime.fromisoformat(line.at) for line in lines}
    for begun in _open(lines):
        found = run_now(f"release_{begun.programme}", begun.run_id)
        subject = f"{begun.run_id}, taken up {begun.at}"
        if found is None or found[0] not in _UNDER_WAY:
            yield Alert("run_died", begun.programme, begun.week, subject, "", begun.run_id)
        elif _WORKS & set(found[1].values()) and now - heard[begun.run_id] > RUN_LASTS_AT_MOST:
            yield Alert("run_lasts", begun.programme, begun.week, subject, "", begun.run_id)


def _open(lines: tuple[Line, ...]) -> Iterator[Line]:
    """Yield the open runs of every week."""
    weeks: dict[str, list[Line]] = {}
    for line in lines:
        weeks.setdefault(line.week, []).append(line)
    for found in weeks.values():
        yield from open_runs(tuple(found))


def audited(verify: Callable[[], tuple[object, ...]], settings: Settings) -> tuple[Alert, ...]:
    """Verify ledger, checkpoints, manifests and every public byte; return what differs.

    Args:
        verify: the ledger's own verification.
        settings: where the public zone is.
    """
    found = []
    try:
        problems = [getattr(one, "check", "ledger") for one in verify()]
    except (IntegrityError, TurnstileError) as error:
        problems = [type(error).__name__]
    found += [Alert("audit_failed", "ledger", "all", check) for check in sorted(set(problems))]
    for name, package in release_folders(settings.public):
        if differences(package):
            programme, week, revision = name.split("/")
            found.append(Alert("audit_failed", programme, week, f"package {revision}"))
    return tuple(found)
