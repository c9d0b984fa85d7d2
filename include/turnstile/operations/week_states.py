"""The state of a week: from ledger, journal and Airflow together, and what it means. Pure.

There is one such judgement. Page, mail, digest, watchdog and commands say what it says. A week is
called dead only if Airflow says that its run is over; a draw that has a living lease is never.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from turnstile.errors import NotArrived, RefusedError
from turnstile.ledger.weeks import Revision, Standing, Week
from turnstile.operations.airflow_now import HELD, WAITS, AirflowNow, RunNow
from turnstile.operations.journal import Happening, Line, error_of
from turnstile.programme.approval_rule import ApprovalStanding

PUBLIC = frozenset({"published", "revised", "withdrawn"})

STATES: dict[str, str] = {
    "published": "public",
    "revised": "public, and corrected since",
    "withdrawn": "was public; taken back",
    "asked": "drawn and charged; people are asked whether it may be public",
    "asked_revision": "its files changed; people are asked whether it is to be corrected",
    "rejected": "drawn and charged; somebody rejected it",
    "withheld": "drawn and charged, and not public",
    "charged": "charged; its draw has not come to an end",
    "held": "reserved; not drawn, nothing charged",
    "refused": "budget, calendar or promise refused it; nothing more charged",
    "stopped": "stopped before anything was charged",
    "dead": "its run is over in Airflow, or was deleted there, and did not say how",
    "under_way": "a run works on it",
    "held_up": "its run is queued in Airflow",
    "waiting": "waits for its day or its files",
    "missing": "final, and no run took it up",
    "declared": "somebody stated that it has no release",
}
IN_ORDER = PUBLIC | {"under_way", "held_up", "waiting", "declared"}
TROUBLE = tuple(name for name in STATES if name not in IN_ORDER)
LIVE = frozenset({"asked", "asked_revision", "waiting", "under_way", "held_up"})
"""States of a week whose run lives."""

OF_PEOPLE = frozenset({"asked", "asked_revision"})
"""States of a week about which Airflow has a question open."""
TURNS = frozenset(Happening(name) for name in ("begun", "resumed", "waits", "asked"))
TURNS_AND_ENDS = TURNS | {Happening.FAILED, Happening.ENDED}


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known beside the ledger.

    Args:
        lines: of the journal about one programme, oldest first in each week.
        approvals: where they stand, by release key, of those that wait for people.
        airflow: what it says.
        drawing: attempts whose draw has a living lease.
        absent: keys that the ledger says are public, of which no package is there yet, or any more.
    """

    lines: Sequence[Line] = ()
    approvals: Mapping[str, ApprovalStanding] = field(default_factory=dict)
    airflow: AirflowNow = field(default_factory=AirflowNow)
    drawing: frozenset[str] = frozenset()
    absent: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class WeekMark:
    """One week of the calendar.

    Args:
        week: ISO week, or days.
        state: a key of `STATES`.
        revision: highest revision that was charged or published.
        run_id: of the run that took it up last; empty if none is known, or if Airflow has the run
            of a week that is not public no more.
        reason: how far it is, or why it is not public, in one sentence, if it is known.
        of_budget: what the ledger has of it: `nothing`, `held`, `charged`, `sealed`, `public`.
        is_ending: whether Airflow has not ended the run yet that said why it failed.
        correction: of a public week, what becomes of the revision that would follow it, or of a
            run that stopped after it was public; None if nothing does.
    """

    week: str
    state: str
    revision: int = 0
    run_id: str = ""
    reason: str = ""
    of_budget: str = "nothing"
    is_ending: bool = False
    correction: WeekMark | None = None

    @property
    def current(self) -> WeekMark:
        """What goes on now: its correction where there is one, else the week itself."""
        return self.correction or self


def state_of_week(
    programme: str, week: Week, evidence: Evidence, lines: Sequence[Line]
) -> WeekMark:
    """Judge one week.

    Args:
        programme: name.
        week: what the ledger has of it.
        evidence: what is known beside it.
        lines: of the journal about the week, oldest first.
    """
    newest = max((attempt.key.revision for attempt in week.live), default=0)
    there = tuple(r for r in week.published if str(r.key) not in evidence.absent)
    week, is_absent = replace(week, published=there), len(there) < len(week.published)
    # What was said before it was public is over.
    since = max((revision.published.at[:19] for revision in week.published), default="")
    later = [line for line in lines if line.at[:19] >= since]
    revision = week.revision(newest)
    run_id = next((line.run_id for line in reversed(lines) if line.run_id), "")
    standing = Standing.SEALED if is_absent else revision.standing
    mark = WeekMark(week.period, "missing", newest, run_id, of_budget=standing)
    if _is_taken_up_since(programme, week.period, run_id, evidence.airflow, lines):
        mark = replace(mark, state="under_way")
    else:
        mark = _judged(programme, mark, revision, evidence, later)
    if is_absent and mark.state in {"withheld", "dead"}:
        mark = replace(mark, reason="; ".join(filter(None, (mark.reason, _ABSENT))))
    if not week.published:
        return mark
    public = WeekMark(
        week.period,
        str(week.state),
        (week.in_force or week.published[-1]).key.revision,
        mark.run_id or run_id,
        of_budget="public",
    )
    return public if mark.state in PUBLIC | {"missing"} else replace(public, correction=mark)


def _is_taken_up_since(
    programme: str, period: str, run_id: str, airflow: AirflowNow, lines: Sequence[Line]
) -> bool:
    """Return whether a run that Airflow says is over, or has not, spoke after Airflow was asked.

    That it lives is all that is known of it then: its question may not be open yet.
    """
    run = airflow.run_of(programme, period, run_id)
    if (run is not None and run.is_live) or not airflow.is_older(programme, period, len(lines)):
        return False
    return lines[-1].happening in TURNS


def _judged(
    programme: str,
    mark: WeekMark,
    revision: Revision,
    evidence: Evidence,
    lines: Sequence[Line],
) -> WeekMark:
    """Judge the newest revision of a week, of which `mark` says period, revision and run."""
    last = next((line for line in reversed(lines) if line.happening in TURNS_AND_ENDS), None)
    run = evidence.airflow.run_of(programme, mark.week, mark.run_id)
    run_id = run.run_id if run is not None else mark.run_id
    mark = replace(mark, run_id=run_id)
    standing = next(
        (
            approval
            for attempt in revision.attempts
            if (approval := evidence.approvals.get(str(attempt.key)))
        ),
        None,
    )
    was_asked = evidence.airflow.was_asked
    if _lives(last, run, was_asked=was_asked):
        queued = evidence.airflow.why_queued(programme, run)
        return _of_live_run(mark, last, run, standing, queued)
    is_gone = was_asked and run is None  # somebody deleted it in Airflow
    is_ending = run is not None and run.is_live
    mark = replace(mark, is_ending=is_ending, run_id="" if is_gone else run_id)
    if any(attempt.attempt_id in evidence.drawing for attempt in revision.attempts):
        return replace(mark, state="under_way", reason=_DRAWS_ON)
    has_ended_well = run is not None and run.state == "success"
    has_ended_well |= is_gone and last is not None and _is_past_questions(last)
    if has_ended_well and mark.of_budget == "public" and last and last.happening in TURNS:
        return mark  # some of its tasks were cleared alone, and nothing of it is left to do
    return _of_ended_run(mark, last, standing, was_asked=was_asked)


def _is_past_questions(last: Line) -> bool:
    """Return whether a run went on last with a step: of a public week that asks nobody any more."""
    step = str(last.details.get("step", ""))
    return last.happening is Happening.RESUMED and not step.startswith(("fetch", "wait", "ask"))


_ABSENT = "the ledger says that it is public, and its package is not there: turnstile doctor"
_ASKS_LATE = "one more run of it asks still, and no answer changes what is public"
# A lease outlasts a machine that lost its power, by a minute at most.
_DRAWS_ON = "its draw goes on without its run, or died within the last minute: the next one shows"


def _lives(last: Line | None, run: RunNow | None, *, was_asked: bool) -> bool:
    """Return whether a run goes on: Airflow says so; where nobody asked it, the journal does."""
    if run is not None:
        return run.is_live and not _has_just_failed(last, run)
    return not was_asked and last is not None and last.happening in TURNS


def _has_just_failed(last: Line | None, run: RunNow) -> bool:
    """Return whether nothing of a run is left but the task that said why it failed."""
    if last is None or last.happening is not Happening.FAILED or last.run_id != run.run_id:
        return False
    live = {name: task for name, task in run.tasks.items() if task.state not in _OVER}
    failed = live.pop(str(last.details.get("step", "")), None)
    if run.state == "queued" or live:
        return False
    if failed is None or failed.state != "running":  # what was cleared is scheduled again
        return failed is None
    return failed.began is None or failed.began < datetime.fromisoformat(last.at)


_OVER = frozenset({None, "success", "failed", "upstream_failed", "skipped", "removed"})


def _of_live_run(
    mark: WeekMark,
    last: Line | None,
    run: RunNow | None,
    standing: ApprovalStanding | None,
    queued: str,
) -> WeekMark:
    """Say how far a run is."""
    said = last.happening if last is not None and _is_of(last, run) else None
    sentence = _sentence(last) if last is not None else ""
    if run is not None and run.never_begins:
        return replace(mark, state="held_up", reason=HELD)
    if run is not None and run.state == "queued":
        return replace(mark, state="held_up", reason=queued)
    knows_tasks = run is not None and bool(run.tasks)
    asks = run.asks if run is not None else ""
    if said is Happening.ASKED and last is not None and not knows_tasks:
        asks = str(last.details.get("task", ""))
    if asks.startswith("ask_revision"):
        return replace(mark, state="asked_revision", reason=sentence)
    if asks:
        why = _ASKS_LATE if mark.of_budget == "public" else str(standing or sentence)
        return replace(mark, state="asked", reason=why)
    is_deferred = run is not None and bool(run.first(WAITS))
    if said is Happening.WAITS and (is_deferred or not knows_tasks):
        since = f" (since {last.at[:16].replace('T', ' ')} UTC)" if last is not None else ""
        return replace(mark, state="waiting", reason=f"{sentence}{since}")
    return replace(mark, state="under_way", reason=_progress(run))


def _is_of(line: Line, run: RunNow | None) -> bool:
    """Return whether a line was written by a run."""
    return run is None or line.run_id == run.run_id


def _progress(run: RunNow | None) -> str:
    """Say which step a run works on, how far that is and since when."""
    work = run.works_on if run is not None else None
    if run is None or work is None:
        return ""
    step, task = work
    done = sum(task_now.state == "success" for task_now in run.tasks.values())
    since = f" since {task.began:%H:%M} UTC" if task.began is not None else ""
    return f"{step}{since}; {done} of {len(run.tasks)} tasks are done"


def _of_ended_run(
    mark: WeekMark, last: Line | None, standing: ApprovalStanding | None, *, was_asked: bool
) -> WeekMark:
    """Say what a run left that is over."""
    failed = last if last is not None and last.happening is Happening.FAILED else None
    reason = _sentence(failed) if failed is not None else ""
    if mark.of_budget == "sealed" and standing is not None and standing.rejected_by:
        return replace(mark, state="rejected", reason=str(standing))
    if was_asked and last is not None and last.happening in TURNS:
        end = "is over and did not say how" if mark.run_id else "was deleted in Airflow"
        left = f"its run, taken up {last.at}, {end}; {LEFT[mark.of_budget]}"
        return replace(mark, state="dead", reason=left)
    if mark.of_budget == "sealed":
        waits = str(standing) if standing is not None and not standing.is_approved else ""
        return replace(mark, state="withheld", reason="; ".join(filter(None, (reason, waits))))
    if mark.of_budget in {"held", "charged"}:
        return replace(mark, state=mark.of_budget, reason=reason)
    if failed is None:
        return mark
    is_refusal = mark.of_budget == "nothing" and issubclass(error_of(failed), RefusedError)
    is_refusal &= not issubclass(error_of(failed), NotArrived)
    return replace(mark, state="refused" if is_refusal else "stopped", reason=reason)


LEFT = {
    "nothing": "nothing is charged",
    "held": "its reservation stands, and nothing is charged",
    "charged": "its draw was charged and did not come to its seal",
    "sealed": "its numbers are drawn, charged and sealed, and not public",
    "public": "its numbers are public",
}


def _sentence(line: Line) -> str:
    """Return what a run said of its end or its wait."""
    return str(line.details.get("sentence", ""))
