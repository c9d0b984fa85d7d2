"""Where a programme stands, answer first: what is out, what is due, what somebody has to do. Pure.

A programme is in order only if nothing of it is in trouble: no week overdue, none charged and not
public, refused, rejected or stopped, no run that died. An alert that was sent changes nothing here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from turnstile.ledger.entries import EntryKind
from turnstile.operations.airflow_now import AHEAD, HELD, AirflowNow
from turnstile.operations.calendar_of_weeks import (
    OVERDUE_AFTER,
    behind,
    next_week,
    overdue,
    words_of_row,
)
from turnstile.operations.journal import Happening, Line
from turnstile.operations.ledger_snapshot import EntryLine
from turnstile.operations.people.release_preview import WeekPreview
from turnstile.operations.week_states import LIVE, PUBLIC, TROUBLE, WeekMark
from turnstile.programme.calendar.release_schedule import final_at, final_words
from turnstile.programme.spec import Programme
from turnstile.service_calendar import parse_period

_NEXT_STEP = {
    "asked": "Look at the week and answer there: approve or reject.",
    "asked_late": "Answer in Airflow under Required Actions, either way: that run ends then.",
    "asked_revision": "Answer in Airflow under Required Actions; no answer keeps the sealed bytes.",
    "rejected": "Who rejected may approve after clearing the task that asks; nothing is refunded.",
    "withheld": "Open the run, read why its last task stopped, and clear that task: nothing more is"
    " charged.",
    "held": "Open the run and clear it: it goes on with the same reservation.",
    "refused": "Nothing more was charged. Read the sentence: what is asked for does not fit.",
    "stopped": "Nothing was charged. Mend the input, then clear the run.",
    "missing": "Release it by name.",
    "expires": "Release it by name, or end its correction, before that day (what that charges is"
    " said before the click); or state turnstile ledger no-release KEY --reason TEXT.",
    "expires_sealed": "Its bytes are drawn and charged, so it has a release: approve it, or end its"
    " correction, before that day. What is assessed may be approved later, too.",
    "expires_public": "Draw its correction before that day, or state turnstile ledger no-release"
    " KEY --reason TEXT of it. If none was begun, its sealed bytes and its package are gone:"
    " restore them from a backup, or correct the week before that day.",
    "stalled": "See to Airflow's scheduler, its triggerer, the workers of its queue and the slots"
    " of its pool (run_stalled); the run goes on by itself then, and waiting charges nothing.",
    "of_backfill": "Unpause the backfill in Airflow; if it was canceled, delete this run there and"
    " release its week by name (run_stalled). What is sealed stands, uncharged.",
    "ahead": "Mark that run failed in Airflow and delete it (run_stalled): until then no other of"
    " the programme begins. Nothing is charged; a week has a run of its own once it is over.",
    "overstays": "Do what the sentence names; the runbook goes on (retention_held).",
    "differs": "Restore what turnstile ledger verify --private names, while backups hold it, and"
    " run that again. Nothing public is wrong; what was counted from cannot be counted again.",
    "disagrees": "Stop releasing, keep every copy, and run turnstile ledger verify; the runbook"
    " goes on (After a disaster).",
}
_OF_A_DRAW = "Its run may be cleared from the task draw on."
_OF_THE_DEAD = {
    "nothing": "Open the run and clear what failed: no step is done twice for that.",
    "held": _NEXT_STEP["held"],
    "charged": _OF_A_DRAW,
    "sealed": _NEXT_STEP["withheld"],
    "public": "The public numbers stand. Open the run and clear what failed.",
}
_CLEARED = frozenset({"dead", "stopped", "held", "charged"})
"""States of which a run that is cleared may draw."""
_BY_ITS_RUN = _CLEARED | {"withheld", "rejected"}
"""States of which the run is cleared, if Airflow still has it."""
_ENDS_ALARM = frozenset({EntryKind.PUBLISHED, EntryKind.NO_RELEASE, EntryKind.DELETED})
_NEVER = datetime.min.replace(tzinfo=UTC)
_HOLDS_UP = {
    "asked": "waits for people",
    "waiting": "waits for its files",
    "asked_revision": "waits for people",
    "under_way": "works",
    "held_up": "is queued",
}


@dataclass(frozen=True, slots=True)
class BrokenProgramme:
    """A programme whose file cannot be read, or a file beside all programmes.

    Args:
        name: of the programme, or of that file.
        problem: which line breaks which rule.
        weeks_public: how many weeks of it are public; None of a file beside them.
    """

    name: str
    problem: str
    weeks_public: int | None = None


@dataclass(frozen=True, slots=True)
class Attention:
    """Something that somebody has to look at.

    Args:
        weeks: which, in words.
        state: a key of `week_states.STATES`, `overdue`, `stalled`, `expires`,
            `overstays`, `disagrees` or `differs`.
        reason: why, in one sentence.
        next_step: what to do.
        run_id: of the run to look at; empty if there is none.
        week: to link to; empty if it is more than one.
    """

    weeks: str
    state: str
    reason: str
    next_step: str
    run_id: str = ""
    week: str = ""


@dataclass(frozen=True, slots=True)
class ProgrammeNow:
    """One programme.

    Args:
        programme: which.
        answer: what is out and what is due, in one sentence.
        last_public: week; None before the first.
        weeks_public: how many.
        in_airflow: `active`, `paused` or `no DAG`.
        attention: most urgent first; empty if the programme is in order.
        is_begun: whether any week was ever taken up.
        not_at_once: why a run that is asked for now would not begin; empty if it would.
    """

    programme: Programme
    answer: str
    last_public: str | None
    weeks_public: int
    in_airflow: str
    attention: tuple[Attention, ...]
    is_begun: bool
    not_at_once: str = ""

    @property
    def verdict(self) -> str:
        """`in order`, `never run`, or how much needs somebody."""
        if self.attention:
            return f"{len(self.attention)} to look at"
        return "in order" if self.is_begun else "never run"


def programme_now(
    programme: Programme,
    marks: Sequence[WeekMark],
    now: datetime,
    airflow: AirflowNow,
    going_on: Mapping[str, WeekPreview],
) -> ProgrammeNow:
    """Judge a programme.

    Args:
        programme: which.
        marks: its calendar.
        now: the present instant, aware.
        airflow: what Airflow says.
        going_on: what the runs of `weeks_to_go_on_with` would do if they were cleared, by week.
    """
    in_airflow = airflow.state_of(programme.name)
    public = [mark.week for mark in marks if mark.state in PUBLIC - {"withdrawn"}]
    going = (mark.current for mark in reversed(marks))
    before = next(filter(partial(_holds_up, programme, airflow), going), None)
    held_up = behind(programme, marks, now, before.week) if before else ""
    late = [
        *_overdue(programme, marks, now, in_airflow, before),
        *map(_paused, standing_still(programme, marks, now, airflow)),
    ]
    attention = [
        *_troubles(marks, before, held_up, going_on, in_airflow),
        *_stalled(programme.name, marks, now, airflow),
        *(_with_cost(notice, going_on.get(notice.week)) for notice in late),
    ]
    return ProgrammeNow(
        programme=programme,
        answer=_answer(programme, marks, public, now, in_airflow),
        last_public=public[-1] if public else None,
        weeks_public=len(public),
        in_airflow=in_airflow,
        attention=tuple(attention),
        is_begun=bool(marks),
        not_at_once=_not_at_once(in_airflow, before, airflow.silence(now)),
    )


def _holds_up(programme: Programme, airflow: AirflowNow, mark: WeekMark) -> bool:
    """Return whether the run of a week lives before which none of a later week begins.

    One of a backfill holds up those of its backfill alone.
    """
    run = airflow.run_of(programme.name, mark.week, mark.run_id)
    is_of_backfill = run is not None and run.backfill is not None
    return mark.state in LIVE and bool(mark.run_id) and not is_of_backfill


def weeks_to_go_on_with(
    programme: Programme, marks: Sequence[WeekMark], now: datetime
) -> tuple[str, ...]:
    """Return the weeks whose run may be cleared or asked for and then draw: such advice costs."""
    judged = (mark.current for mark in marks)
    cleared = (
        mark.week
        for mark in judged
        if mark.state in _CLEARED and mark.of_budget in {"nothing", "held", "charged"}
    )
    return (*cleared, *(str(first) for first, _ in overdue(programme, marks, now)))


def of_ledger(trouble: str) -> Attention:
    """Return what is wrong with the ledger as something to look at."""
    return Attention("the ledger", "disagrees", trouble, _NEXT_STEP["disagrees"])


def of_private_data(trouble: str) -> Attention:
    """Return what of private data is gone or altered as something to look at."""
    return Attention("private data", "differs", trouble, _NEXT_STEP["differs"])


def of_retention(journal: Sequence[Line], entries: Sequence[EntryLine]) -> tuple[Attention, ...]:
    """Return the weeks that lose their private data soon without a release, or keep them too long.

    An alarm stands until the ledger says that the week is public, has no release, or lost its data.

    Args:
        journal: what was reported about one programme.
        entries: of the ledger, about the same programme.
    """
    over = {
        _week_of(entry): datetime.fromisoformat(entry.at)
        for entry in entries
        if entry.kind in _ENDS_ALARM
    }
    days = {
        line.week: str(line.details["day"])
        for line in journal
        if line.happening is Happening.EXPIRES
        and (line.week not in over or over[line.week] < datetime.fromisoformat(line.at))
    }
    public = {entry.key for entry in entries if entry.kind is EntryKind.PUBLISHED}
    drawn = {
        _week_of(entry)
        for entry in entries
        if entry.kind is EntryKind.SEALED and entry.key not in public
    }
    out = {_week_of(entry) for entry in entries if entry.kind is EntryKind.PUBLISHED} - drawn
    steps = dict.fromkeys(out, "expires_public") | dict.fromkeys(drawn, "expires_sealed")
    expiring = (
        Attention(
            week,
            "expires",
            f"its private data go from {day} UTC on",
            _NEXT_STEP[steps.get(week, "expires")],
            week=week,
        )
        for week, day in sorted(days.items())
    )
    return (*expiring, *_overstaying(journal, entries))


def _overstaying(journal: Sequence[Line], entries: Sequence[EntryLine]) -> Iterator[Attention]:
    """Yield the weeks whose private data stay beyond their days, until these are deleted."""
    deleted = {
        (given["period"], given["part"]): datetime.fromisoformat(entry.at)
        for entry in entries
        if entry.kind is EntryKind.DELETED and (given := dict(entry.particulars))
    }
    last = {
        (line.week, line.details["of"], line.details["part"]): line
        for line in journal
        if line.happening is Happening.OVERSTAYS and "part" in line.details
    }
    said = {
        (line.week, str(line.details["why"]))
        for (_, of, part), line in last.items()
        if deleted.get((of, part), _NEVER) < datetime.fromisoformat(line.at)
    }
    for week, why in sorted(said):
        words = f"its private data stay beyond their days: {why}"
        yield Attention(week, "overstays", words, _NEXT_STEP["overstays"], "", week)


def _week_of(entry: EntryLine) -> str:
    """Return the week that an entry of a release, or of a deletion, speaks of."""
    return entry.key.split("/")[1] if entry.key else dict(entry.particulars)["period"]


def _answer(
    programme: Programme,
    marks: Sequence[WeekMark],
    public: Sequence[str],
    now: datetime,
    in_airflow: str,
) -> str:
    """Say what is out and what comes next."""
    out = f"{public[-1]} is out" if public else "nothing is out yet"
    return f"{out}; {_next(programme, marks, now, in_airflow)}."


def _next(programme: Programme, marks: Sequence[WeekMark], now: datetime, in_airflow: str) -> str:
    """Say what comes next: a week that people are asked about, one that is worked on, one due."""
    for state, words in _COMES_NEXT.items():
        going = (mark.current for mark in marks)
        next_mark = next((mark for mark in going if mark.state == state and mark.run_id), None)
        if next_mark is not None and (state != "waiting" or next_mark.reason):
            far = f" ({next_mark.reason})" if state == "under_way" and next_mark.reason else ""
            return f"{words.format(week=next_mark.week, reason=next_mark.reason)}{far}"
    following = next_week(programme, marks)
    if following is None:
        return "it has never run"
    period = parse_period(following)
    due = final_words(period, programme.schedule, programme.time)
    if final_at(period, programme.schedule, programme.time) <= now:
        return f"{following} was due on {due}"
    paused = "; no run will take it up while the DAG is paused" if in_airflow == "paused" else ""
    return f"{following} is due on {due}{paused}"


_COMES_NEXT = {
    "asked": "{week} is drawn, and people are asked",
    "asked_revision": "people are asked about a correction of {week}",
    "under_way": "a run works on {week}",
    "waiting": "{week} waits: {reason}",
    "held_up": "the run of {week} is {reason}",
}


def _not_at_once(in_airflow: str, before: WeekMark | None, silence: str) -> str:
    """Say why a run that is asked for now would not begin; empty if it would."""
    reasons = [f"{silence}: no run begins until it is started again."] if silence else []
    if in_airflow == "paused":
        reasons.append("The DAG is paused: no run begins until somebody unpauses it.")
    if before is not None:
        reasons.append(f"The run of {before.week} comes first, and {_HOLDS_UP[before.state]}.")
    return " ".join(reasons)


def _troubles(
    marks: Sequence[WeekMark],
    before: WeekMark | None,
    held_up: str,
    going_on: Mapping[str, WeekPreview],
    in_airflow: str,
) -> Iterator[Attention]:
    """Yield the weeks that are not as they should be; those without a run are `_overdue`."""
    for week in marks:
        mark = week.current
        if mark.state not in TROUBLE or mark.state == "missing":
            continue
        reason = mark.reason or "it gave no reason; the run's last task has it"
        if week.correction is not None:
            of = f"r{mark.revision}" if mark.revision > week.revision else "a later run"
            reason = f"r{week.revision} is public; {of}: {reason}"
        step = _next_step(mark, week, going_on, in_airflow)
        if mark == before and held_up:
            step += f" Until then {held_up} cannot begin: weeks are released in order."
        yield Attention(mark.week, mark.state, reason, step, mark.run_id, mark.week)


def _next_step(
    mark: WeekMark, week: WeekMark, going_on: Mapping[str, WeekPreview], in_airflow: str
) -> str:
    """Say what to do, and what it costs."""
    is_left = mark.state in {"dead", "stopped"}
    if not mark.run_id and mark.state in _BY_ITS_RUN:
        is_free = mark.of_budget in {"sealed", "public"}
        unpause = "Unpause the DAG. " if in_airflow == "paused" else ""
        step = f"Airflow has no run of it. {unpause}{_NEXT_STEP['missing']}"
        step += " Nothing more is charged." if is_free else ""
    elif week.correction is not None and is_left and mark.of_budget in {"nothing", "public"}:
        step = _OF_THE_DEAD["public"]
    elif mark.state in {"dead", "charged"}:
        step = _OF_THE_DEAD[mark.of_budget]
    elif mark.state == "asked" and mark.of_budget == "public":
        step = _NEXT_STEP["asked_late"]  # the desk shows what lies under embargo alone
    else:
        step = _NEXT_STEP[mark.state]
    if mark.is_ending:
        step = f"Wait until Airflow has ended its run, in a moment. {step}"
    if would := going_on.get(mark.week):
        return f"{step} {_what_it_does(would)}"
    if mark.of_budget == "charged" and mark.state in _CLEARED:
        return f"{step} The runbook says what a further draw costs (draw_stuck)."
    return step


def _what_it_does(would: WeekPreview) -> str:
    """Say what the run of a week does once it goes on, and what that charges."""
    charge = f" (it charges {would.charge})" if would.charge else ""
    return f"What its run then does: {would.effect}{charge}."


def _with_cost(late: Attention, would: WeekPreview | None) -> Attention:
    """Let advice about weeks that are late say what following it charges."""
    if would is None:
        return late
    each = "" if late.weeks == late.week else " So does each week after it."
    return replace(late, next_step=f"{late.next_step} {_what_it_does(would)}{each}")


def _stalled(
    programme: str, marks: Sequence[WeekMark], now: datetime, airflow: AirflowNow
) -> Iterator[Attention]:
    """Yield the first week whose run does not go on though nothing holds it up."""
    for mark in (week_mark.current for week_mark in marks if week_mark.current.state in LIVE):
        run = airflow.run_of(programme, mark.week, mark.run_id)
        if run is not None and (why := airflow.stall(programme, run, now)):
            of_backfill = "of_backfill" if why == HELD else "stalled"
            step = _NEXT_STEP["ahead" if why.startswith(AHEAD) else of_backfill]
            yield Attention(mark.week, "stalled", why, step, run.run_id, mark.week)
            return


def _overdue(
    programme: Programme,
    marks: Sequence[WeekMark],
    now: datetime,
    in_airflow: str,
    before: WeekMark | None,
) -> Iterator[Attention]:
    """Yield the weeks that no run took up, row by row."""
    for first, last in overdue(programme, marks, now):
        due = final_words(first, programme.schedule, programme.time)
        reason = f"due since {due}, and no run took it up"
        step = _NEXT_STEP["missing"]
        if before is not None and parse_period(before.week).first_day < first.first_day:
            reason += f": the run of {before.week} stands before it and {_HOLDS_UP[before.state]}"
            step = f"See to {before.week} first; what no run takes up after that, release by name."
        if in_airflow == "paused":
            reason += "; its DAG is paused"
            step = f"Unpause the DAG. {step}"
        yield Attention(words_of_row(first, last), "overdue", reason, step, "", str(first))


def _paused(mark: WeekMark) -> Attention:
    """Return that the run of a week does not go on because somebody paused the DAG."""
    reason = "its DAG is paused, so its run does not go on"
    return Attention(mark.week, "overdue", reason, "Unpause the DAG.", "", mark.week)


def standing_still(
    programme: Programme, marks: Sequence[WeekMark], now: datetime, airflow: AirflowNow
) -> tuple[WeekMark, ...]:
    """Return the weeks that are late because somebody paused the DAG of their run."""

    def is_late(mark: WeekMark) -> bool:
        final = final_at(parse_period(mark.week), programme.schedule, programme.time)
        return now - final > OVERDUE_AFTER

    def lives(mark: WeekMark) -> bool:  # or it is a draw that goes on without its run
        run = airflow.run_of(programme.name, mark.week, mark.run_id)
        return run is not None and run.is_live

    if airflow.state_of(programme.name) != "paused":
        return ()
    going = (mark.current for mark in marks)
    return tuple(m for m in going if m.state in _STANDS_STILL and is_late(m) and lives(m))


_STANDS_STILL = frozenset({"held_up", "under_way", "waiting"})
