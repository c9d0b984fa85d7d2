"""What the orchestrator says of programmes, runs and tasks, in its own words. Pure.

Whoever asks it hands the answer on in these records: the API server reads its database, a task asks
through its SDK, a command asks nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

UNDER_WAY = frozenset({"queued", "running"})
"""States of a run that lives."""
WORKS = frozenset({"queued", "running", "restarting", "up_for_retry"})
"""States of a task that a worker has, or gets by itself."""
ASKS = "awaiting_input"
WAITS = "deferred"
HAS_NO_SLOT = "scheduled"
NO_WORKER_YET = frozenset({"queued", HAS_NO_SLOT})
_GOES_ON = frozenset({"running", "restarting", "up_for_retry", "up_for_reschedule", WAITS, ASKS})
"""States of a task that a worker, a clock or a person has."""
SILENT_AFTER = timedelta(minutes=5)
STALLED_AFTER = timedelta(minutes=15)
REQUEUED = "stuck in queued reschedule"
"""Event of Airflow's log: no worker took a task for so long that it was queued anew."""
_REQUEUED_WITHIN = timedelta(minutes=15)  # `task_queued_timeout`, 10 by default, and a look at it
NOT_BEGUN = "Airflow begins no run of a backfill that is paused or was canceled"
HELD = f"queued, and {NOT_BEGUN}"
AHEAD = "Airflow does nothing of a run whose logical date lies ahead"


def named_week(run_type: str, conf: Mapping[str, object] | None) -> str:
    """Return the week that the form of a run by hand named; a backfill goes by its dates.

    Examples:
        >>> named_week("manual", {"week": "2016-W33"}), named_week("backfill", {"week": "2016-W33"})
        ('2016-W33', '')
    """
    return str((conf or {}).get("week") or "") if run_type == "manual" else ""


def latest(moments: Iterable[datetime | None]) -> datetime | None:
    """Return the last of the moments that are known; None if none is."""
    return max((moment for moment in moments if moment is not None), default=None)


def _silence(name: str, heard: datetime | None, now: datetime) -> str:
    """Say that a part of Airflow is not heard; empty while it is, or if that is not known."""
    if heard is None or now - heard <= SILENT_AFTER:
        return ""
    return f"Airflow's {name} was last heard on {heard:%Y-%m-%d at %H:%M} UTC"


@dataclass(frozen=True, slots=True)
class TaskNow:
    """One task of a run.

    Args:
        state: Airflow's word; None before it is scheduled.
        began: its present try, aware; None where it has not begun or that is not known.
        moved: when it was scheduled, queued, begun or ended last, aware; None if that is not known.
    """

    state: str | None
    began: datetime | None = None
    moved: datetime | None = None


def waiting_since(
    tasks: Mapping[str, TaskNow], requeued: Iterable[tuple[str, datetime]]
) -> dict[str, TaskNow]:
    """Return tasks as moved when they were first queued anew: that moves nothing.

    Args:
        tasks: of a run, by their names.
        requeued: task and moment of each line that says so.
    """
    waiting = dict(tasks)
    for name, at in sorted(requeued, key=lambda line: line[1], reverse=True):
        task = waiting.get(name)
        if task is None or task.state not in NO_WORKER_YET or task.moved is None:
            continue
        if task.moved - at <= _REQUEUED_WITHIN:  # else it ran between the two
            waiting[name] = replace(task, moved=min(task.moved, at))
    return waiting


@dataclass(frozen=True, slots=True)
class RunNow:
    """One run.

    Args:
        run_id: its name in its DAG.
        period: that it stands for; empty if that is not known.
        state: Airflow's word.
        tasks: by their names, in their order.
        since: when it was queued or begun, aware; None if that is not known.
        is_held_back: whether its backfill is paused or was canceled: Airflow begins no run of one.
        starts: its logical date, aware; None without one.
        backfill: number of its backfill, 0 if that is not known; None if it is of none.
    """

    run_id: str
    period: str
    state: str
    tasks: Mapping[str, TaskNow] = field(default_factory=dict)
    since: datetime | None = None
    is_held_back: bool = False
    starts: datetime | None = None
    backfill: int | None = None

    @property
    def still_since(self) -> datetime | None:
        """Since when nothing of it moves, though no worker, clock or person has a task of it."""
        if not self.is_live or any(task.state in _GOES_ON for task in self.tasks.values()):
            return None
        return latest((self.since, *(task.moved for task in self.tasks.values())))

    @property
    def never_begins(self) -> bool:
        """Whether it waits for its turn in a backfill that Airflow does not go on with."""
        return self.state == "queued" and self.is_held_back

    def stuck(self, now: datetime) -> str:
        """Say why Airflow does nothing of it, whatever is started or cleared; empty if it would."""
        if self.never_begins:
            return HELD
        is_ahead = self.starts is not None and self.starts > now
        return f"{AHEAD} ({self.starts:%Y-%m-%d %H:%M} UTC)" if is_ahead else ""

    @property
    def is_live(self) -> bool:
        """Whether Airflow goes on with it, or will."""
        return self.state in UNDER_WAY

    @property
    def works_on(self) -> tuple[str, TaskNow] | None:
        """The task that a worker has, or gets by itself."""
        return next(((n, task) for n, task in self.tasks.items() if task.state in WORKS), None)

    @property
    def asks(self) -> str:
        """The task that waits for an answer; empty if none does."""
        return self.first(ASKS)

    def first(self, state: str) -> str:
        """Return the first task in a state; empty if none is."""
        return next((name for name, task in self.tasks.items() if task.state == state), "")


@dataclass(frozen=True, slots=True)
class RunsAsked:
    """What the orchestrator is asked, and what the journal has said by then.

    Args:
        runs: names of runs to ask about beside those that live, by programme.
        turns: how many turns and ends of runs the journal has, by programme and week.
    """

    runs: Mapping[str, frozenset[str]]
    turns: Mapping[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class AirflowNow:
    """What the orchestrator says.

    Args:
        paused: programmes that it has a DAG of, and whether it is paused.
        runs: of each programme that was asked about, those that live or that the journal names;
            None if nobody was asked.
        heard: when its scheduler gave a sign of life last, aware; None if that is not known.
        asked: what it answered; None where everything in the journal is older than the answer.
        triggerer_heard: when what wakes waiting tasks gave one, aware; None if that is not known.
    """

    paused: Mapping[str, bool] = field(default_factory=dict)
    runs: Mapping[str, tuple[RunNow, ...]] | None = None
    heard: datetime | None = None
    asked: RunsAsked | None = None
    triggerer_heard: datetime | None = None

    def is_older(self, programme: str, period: str, turns: int) -> bool:
        """Return whether the journal has said more of a period than when this was asked for.

        Its turns and ends are counted, so that no two machines need the same clock.
        """
        return self.asked is not None and turns > self.asked.turns.get((programme, period), 0)

    def silence(self, now: datetime) -> str:
        """Say that its scheduler is not heard; empty while it is, or if that is not known."""
        return _silence("scheduler", self.heard, now)

    def stall(self, programme: str, run: RunNow, now: datetime) -> str:
        """Say that a run does not go on though nothing holds it up; empty if it may yet.

        Whatever waits behind another run, or for a DAG that is paused, waits in order.
        """
        if not run.is_live or self.paused.get(programme, False):
            return ""
        if silence := self.silence(now):
            return f"{silence}; nothing begins or ends without it"
        if run.first(WAITS):
            silence = _silence("triggerer", self.triggerer_heard, now)
            return silence and f"{silence}; its task waits, and nothing wakes it"
        if stuck := run.stuck(now):
            return stuck
        is_behind = run.state == "queued" and self.begun_before(programme, run) is not None
        if is_behind or (since := run.still_since) is None or now - since <= STALLED_AFTER:
            return ""
        at = f"since {since:%Y-%m-%d %H:%M} UTC"
        words = f"it is {run.state} {at}; Airflow schedules no task of it"
        if run.works_on:
            words = f"its task {run.works_on[0]} waits for a worker {at}; none takes it"
        elif held := run.first(HAS_NO_SLOT):
            words = f"its task {held} waits for a slot {at}; its pool has none free, or is gone"
        return words

    @property
    def was_asked(self) -> bool:
        """Whether it was asked about runs."""
        return self.runs is not None

    def state_of(self, programme: str) -> str:
        """Return `active`, `paused` or `no DAG`."""
        if programme not in self.paused:
            return "no DAG"
        return "paused" if self.paused[programme] else "active"

    def run_of(self, programme: str, period: str, run_id: str) -> RunNow | None:
        """Return the run that works on a period: one that lives before the one that is named."""
        runs = [
            run
            for run in (self.runs or {}).get(programme, ())
            if run.period == period or (run_id and run.run_id == run_id)
        ]
        runs.sort(key=lambda run: (run.is_live, run.run_id == run_id))
        return runs[-1] if runs else None

    def why_queued(self, programme: str, run: RunNow | None) -> str:
        """Say why a run that is queued has not begun."""
        if self.paused.get(programme, False):
            return "queued; its DAG is paused"
        if (before := self.begun_before(programme, run)) is None:
            return "queued; Airflow begins it in its turn"
        return f"queued behind the run of {before.period or before.run_id}"

    def begun_before(self, programme: str, run: RunNow | None) -> RunNow | None:
        """Return the run that has begun and that another waits for, if it is queued.

        Airflow begins the runs of a backfill beside all others, and bounds each kind by itself.
        """
        if run is None:
            return None
        runs = (self.runs or {}).get(programme, ())
        begun = (other for other in runs if other.state == "running" and other != run)
        return next((other for other in begun if other.backfill == run.backfill), None)
