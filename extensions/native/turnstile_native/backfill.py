"""Successive weeks through the real scheduler: asked for, watched, and reported when they fail."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, time
from pathlib import Path

from turnstile.errors import TurnstileError
from turnstile.operations.airflow_api import AirflowApi, DagRun, TaskState
from turnstile.operations.airflow_names import dag_of
from turnstile.operations.airflow_now import ASKS, NOT_BEGUN
from turnstile.programme.spec import Programme
from turnstile.service_calendar import ServiceWeek

LEDGER_POOL = "turnstile_ledger"
_ENDED = frozenset({"success", "failed"})
_LAST_LINES = 15


@dataclass(slots=True)
class WeekBackfill:
    """The same weeks of one or more programmes.

    Args:
        api: a healthy Airflow.
        programmes: what is released; their DAGs are `release_<name>`.
        weeks: successive service weeks.
        logs: Airflow's log folder.
        say: where progress goes, line by line.
    """

    api: AirflowApi
    programmes: tuple[Programme, ...]
    weeks: tuple[ServiceWeek, ...]
    logs: Path
    say: Callable[[str], None]
    _shown: dict[str, str] = field(default_factory=dict, init=False)

    def make_pool(self) -> None:
        """Make the ledger's one-slot pool: in a database without it no week comes to its charge."""
        self.api.make_pool(LEDGER_POOL, slots=1, description="One charge at a time")

    def dags_are_parsed(self) -> bool:
        """Return whether every DAG is known.

        Raises:
            TurnstileError: a DAG file cannot be parsed.
        """
        if all(self.api.has_dag(dag_of(programme.name)) for programme in self.programmes):
            return True
        if errors := self.api.import_errors():
            raise TurnstileError("a DAG file cannot be parsed:\n" + "\n".join(errors))
        return False

    def ask(self) -> None:
        """Ask for the weeks of every programme; what an interrupted Airflow left gives way."""
        for programme in self.programmes:
            dag_id = dag_of(programme.name)
            self.api.abandon_unfinished(dag_id)
            self.api.unpause(dag_id)
            for run_id in self.api.release(programme, self.weeks):
                self.say(f"{programme.name:<8} {run_id} was deleted, for {NOT_BEGUN}")

    def stands_still(self) -> bool:
        """Return whether all weeks have ended or wait for people; say what moved since last time.

        Weeks after one that people are asked about wait for it.
        """
        still = [self._stands_still(programme) for programme in self.programmes]  # says each
        return all(still)

    def questions(self) -> tuple[str, ...]:
        """Describe every week that people are asked about."""
        return tuple(
            f"{programme.name} {_week(programme, run)}: people are asked ({task}), and weeks after "
            "it wait for the answer; `make ui` keeps Airflow for it: Budget, Look at the week"
            for programme in self.programmes
            for run in self._runs(programme)
            if (task := self._asks(programme, run))
        )

    def failures(self) -> tuple[str, ...]:
        """Describe every task that failed, with the end of its log."""
        return tuple(
            self._failure(programme, run, task)
            for programme in self.programmes
            for run in self._runs(programme)
            if run.state == "failed"
            for task in self.api.tasks(dag_of(programme.name), run.run_id)
            if task.state == "failed"
        )

    def _stands_still(self, programme: Programme) -> bool:
        """Return whether the weeks of a programme have ended, or one of them waits for people."""
        runs = self._runs(programme)
        live = [run for run in runs if run.state not in _ENDED]
        is_known = len(runs) == len(self.weeks)
        return is_known and (not live or any(self._asks(programme, run) for run in live))

    def _asks(self, programme: Programme, run: DagRun) -> str:
        """Return the task in which a run waits for people; empty if it does not."""
        if run.state != "running":
            return ""
        tasks = self.api.tasks(dag_of(programme.name), run.run_id)
        return next((task.task_id for task in tasks if task.state == ASKS), "")

    def _runs(self, programme: Programme) -> tuple[DagRun, ...]:
        """Return the runs of the asked weeks, and say those that moved."""
        mondays = {_monday(programme, week): week for week in self.weeks}
        runs = [run for run in self.api.runs(dag_of(programme.name)) if run.starts in mondays]
        for run in runs:
            self._say_if_moved(programme, mondays[run.starts], run)
        return tuple(runs)

    def _say_if_moved(self, programme: Programme, week: ServiceWeek, run: DagRun) -> None:
        """Print a run's step, or its end, when it is another than at the last look."""
        name = f"{programme.name:<8} {week}"
        step = run.state
        if run.state == "running":
            tasks = self.api.tasks(dag_of(programme.name), run.run_id)
            step = next((t.task_id for t in tasks if t.state in {"running", ASKS}), "")
        if step and self._shown.get(name) != step:
            self._shown[name] = step
            self.say(f"{name}  {step}")

    def _failure(self, programme: Programme, run: DagRun, task: TaskState) -> str:
        """Name a failed task and show the end of its log."""
        path = self.logs.joinpath(
            f"dag_id={dag_of(programme.name)}",
            f"run_id={run.run_id}",
            f"task_id={task.task_id}",
            f"attempt={task.attempt}.log",
        )
        tail = log_tail(path.read_text(encoding="utf-8")) if path.exists() else ()
        heading = (
            f"{programme.name} {_week(programme, run)}: task {task.task_id} failed; {path} ends:"
        )
        return "\n".join((heading, *(f"    {line}" for line in tail)))


def log_tail(text: str) -> tuple[str, ...]:
    """Return the last messages of a task's log, which holds one JSON object a line."""
    return tuple(_message(line) for line in text.splitlines()[-_LAST_LINES:])


def _message(line: str) -> str:
    """Return the message of one log line; the line itself if it is no JSON object."""
    try:
        entry = json.loads(line)
        reasons = [error["exc_value"] for error in entry.get("error_detail", ())]
        return ": ".join([str(entry["event"]), *reasons])
    except (ValueError, KeyError, TypeError, AttributeError):
        return line


def _week(programme: Programme, run: DagRun) -> ServiceWeek:
    """Return the week of a run."""
    return ServiceWeek.containing(run.starts.astimezone(programme.time.zone).date())


def _monday(programme: Programme, week: ServiceWeek) -> datetime:
    """Return the instant at which a week begins, in UTC: its logical date."""
    return datetime.combine(week.monday, time(), programme.time.zone).astimezone(UTC)
