"""The watchdog's eyes: what nobody reported, because whoever should have died or never began.

It judges no week itself: the state of each is that of the page (`week_states`), and what it sends
says the same words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial

from turnstile.errors import TurnstileError
from turnstile.ledger.custody.folders import release_folders
from turnstile.ledger.entries import EntryKind
from turnstile.ledger.ledger import Ledger
from turnstile.ledger.tlog.cosigners import Answer
from turnstile.ledger.weeks import Week
from turnstile.operations.burned_draws import of_burned
from turnstile.operations.calendar_of_weeks import behind
from turnstile.operations.journal import Happening, Line
from turnstile.operations.ledger_snapshot import LedgerSnapshot
from turnstile.operations.programme_now import Attention, BrokenProgramme, ProgrammeNow
from turnstile.operations.watchdog.alerts import (
    DISAGREE,
    Alert,
    of_budget,
    of_questions,
    of_retention,
    of_run,
)
from turnstile.operations.watchdog.last_verification import FAILED, OF_LEDGER
from turnstile.operations.week_states import LEFT, LIVE, OF_PEOPLE, TROUBLE, WeekMark
from turnstile.publishing.describe.manifest import differences
from turnstile.settings import Settings

HOLD_LASTS_AT_MOST = timedelta(hours=24)
DRAW_LASTS_AT_MOST = timedelta(hours=1)
RUN_LASTS_AT_MOST = timedelta(hours=6)
_LATENESS = frozenset({"hold_stuck", "draw_stuck", "release_overdue"})
_OF_A_STOP = frozenset({"week_stopped", "week_refused", "week_missing"})
"""Rules of which nobody is told any more, late, once the week goes on or is public.

Nor of what came once more, whatever its rule.
"""
_SAY_SO = _OF_A_STOP | {"run_died", "run_stalled"}
"""Rules that tell of a week that it does not go on."""
_RULE_OF = {"dead": "run_died", "overdue": "release_overdue", "stalled": "run_stalled"}


def watched(
    picture: LedgerSnapshot,
    programmes: Sequence[tuple[ProgrammeNow, Sequence[WeekMark], Sequence[Line]]],
    broken: Sequence[BrokenProgramme],
    of_days: Iterable[Alert],
    now: datetime,
) -> tuple[Alert, ...]:
    """Return everything that somebody should know, whether it was reported or not.

    Args:
        picture: of the ledger.
        programmes: where each stands, its calendar and its journal.
        broken: programmes that cannot be read.
        of_days: what was found of ledger, packages and private data, and which look is missing.
        now: the present instant, aware.
    """
    alerts, kept = [*of_budget(picture.forecasts)], [*of_burned(picture), *of_days]
    troubled = set[tuple[str, str]]()
    for state, marks, lines in programmes:
        alerts += _of_attention(state)
        alerts += _lasting(state, marks, lines, now)
        judged = [mark.current for mark in marks]
        name = state.programme.name
        troubled |= {(name, mark.week) for mark in judged if mark.state in TROUBLE}
        for run_id in sorted({line.run_id for line in lines if _speaks(line)}):
            alerts += (
                alert
                for alert in of_run(lines, run_id)
                if (name, alert.week) in troubled or not (alert.rule in _OF_A_STOP or alert.again)
            )
        asked = {(mark.week, mark.run_id) for mark in judged if mark.state in OF_PEOPLE}
        questions = of_questions(lines, now, partial(behind, state.programme, marks, now))
        alerts += (question for question in questions if (question.week, question.run_id) in asked)
        for is_later, alert in _stuck(picture, name, marks, lines, now):
            (kept if is_later else alerts).append(alert)
        kept += of_retention(lines)
    for programme in broken:
        alerts.append(
            Alert("programme_broken", programme.name, "all", programme.problem, programme.problem)
        )
    # A week whose stop was reported is not reported once more for being late.
    disagree = {(alert.programme, alert.week) for alert in alerts if alert.rule == DISAGREE}
    known = {(alert.programme, alert.week) for alert in alerts if alert.rule in _SAY_SO}
    known |= disagree & troubled
    late = [alert for alert in alerts if alert.rule in _LATENESS]
    alerts = [alert for alert in alerts if alert.rule not in _LATENESS]
    alerts += [alert for alert in late if (alert.programme, alert.week) not in known]
    return tuple(dict.fromkeys((*alerts, *kept)))


def _of_attention(state: ProgrammeNow) -> Iterator[Alert]:
    """Yield what nobody reported of a programme, in the page's words."""
    for item in state.attention:
        if item.state in _RULE_OF:
            yield Alert(
                _RULE_OF[item.state],
                state.programme.name,
                item.week,
                _subject(item),
                f"{item.weeks}: {item.reason}. {item.next_step}",
                item.run_id,
            )


def _subject(item: Attention) -> str:
    """Return what tells two deaths or stalls of a week apart, so that each is reported once."""
    is_once = item.state in {"dead", "stalled"}
    return f"{item.run_id}, {item.reason.partition(';')[0]}" if is_once else ""


def _speaks(line: Line) -> bool:
    """Return whether a line may give cause for an alert."""
    return line.happening in {Happening.JUDGED, Happening.FAILED, Happening.RESTATED}


def _stuck(
    picture: LedgerSnapshot,
    programme: str,
    marks: Sequence[WeekMark],
    lines: Sequence[Line],
    now: datetime,
) -> Iterator[tuple[bool, Alert]]:
    """Yield holds and draws that nobody goes on with; True for those begun after a stop was told.

    No word of that stop is about them.
    """
    stopped = {
        line.week: datetime.fromisoformat(line.at)
        for line in lines
        if line.happening is Happening.FAILED
    }
    since = {
        (dict(line.particulars).get("attempt", ""), line.kind.value): datetime.fromisoformat(
            line.at
        )
        for line in picture.lines
        if line.kind in {EntryKind.RESERVED, EntryKind.DRAW_BEGUN}
    }
    live = {current.week for mark in marks if (current := mark.current).state in LIVE}
    held = ("hold_stuck", EntryKind.RESERVED, HOLD_LASTS_AT_MOST)
    drawn = ("draw_stuck", EntryKind.DRAW_BEGUN, DRAW_LASTS_AT_MOST)
    for week in picture.weeks_of(programme).values():
        for attempts, (rule, kind, limit) in ((week.held, held), (week.drawing, drawn)):
            for attempt in () if week.period in live else attempts:
                began = since.get((attempt.attempt_id, kind.value))
                if began is not None and now - began > limit:
                    alert = Alert(rule, programme, week.period, attempt.attempt_id)
                    yield began > stopped.get(week.period, began), alert


def _lasting(
    state: ProgrammeNow, marks: Sequence[WeekMark], lines: Sequence[Line], now: datetime
) -> Iterator[Alert]:
    """Yield runs that work for too long.

    A run that waits, for its week, for people or for a DAG that is paused, may wait.
    """
    programme = state.programme.name
    for mark in (week_mark.current for week_mark in marks):
        if mark.state != "under_way" or not mark.reason or state.in_airflow == "paused":
            continue
        heard = [line for line in lines if line.run_id == mark.run_id and line.week == mark.week]
        if heard and now - datetime.fromisoformat(heard[-1].at) > RUN_LASTS_AT_MOST:
            taken_up = next((line.at for line in heard if line.happening is Happening.BEGUN), "")
            subject = f"{mark.run_id}, taken up {taken_up or heard[0].at}"
            yield Alert("run_lasts", programme, mark.week, subject, "", mark.run_id)


def of_unheard(
    picture: LedgerSnapshot, programme: str, run_id: str, period: str, lines: Sequence[Line]
) -> tuple[Alert, ...]:
    """Return that a run failed of which the journal has no word; what it charged the ledger knows.

    Args:
        picture: of the ledger.
        programme: whose run it is.
        run_id: that Airflow ended as failed.
        period: that it stands for; empty where it named none, or nobody knows.
        lines: of the programme's journal.
    """
    if any(line.run_id == run_id for line in lines):
        return ()
    left = "which week it stands for is not known"
    if period:
        week = picture.weeks_of(programme).get(period, Week(period))
        newest = max((attempt.key.revision for attempt in week.live), default=0)
        left = LEFT[week.revision(newest).standing]
    words = (
        f"a run failed, and the journal has no word of it; {left}. Its note in Airflow says why; "
        "mend that, then release the week by name"
    )
    return (Alert("run_died", programme, period or "all", run_id, words, run_id),)


def of_lost(problem: str, sound: str) -> Alert:
    """Return the one alarm of a ledger by which nobody can go, until it is back.

    Args:
        problem: what is wrong with which.
        sound: when it was verified last, so that its next loss is another alarm.
    """
    words = f"{problem}. Stop releasing, and do what turnstile doctor says"
    return Alert("ledger_lost", "ledger", "all", f"sound {sound}", words)


def audited(verify: Callable[[], tuple[object, ...]], settings: Settings) -> tuple[str, ...]:
    """Verify ledger, checkpoints, manifests and every public byte.

    Returns:
        Programme, week and what of it differs, as `tell_verification` is told.

    Args:
        verify: the ledger's own verification.
        settings: where the public zone is.
    """
    try:
        problems = {getattr(finding, "check", "ledger") for finding in verify()}
    except TurnstileError as error:
        problems = {f"{FAILED} verified ({type(error).__name__})"}
    packages = (
        f"{name.rpartition('/')[0]}/package {name.rpartition('/')[2]}"
        for name, package in release_folders(settings.public)
        if differences(package)
    )
    return (*(f"{OF_LEDGER}{check}" for check in sorted(problems)), *packages)


def cosigned(send: Callable[[Callable[[], object]], None], ledger: Ledger) -> tuple[str, ...]:
    """Ask the cosigners of the transparency log once more; return who knows another history.

    Args:
        send: brings what a call signs to where the public zone is.
        ledger: that signs.
    """
    said = list[Answer]()
    send(lambda: said.extend(ledger.sign_public_zone()))
    # By the name under which `audited` finds it from then on, until another log is begun.
    return (f"{OF_LEDGER}cosigner",) if any(answer.is_alarm for answer in said) else ()
