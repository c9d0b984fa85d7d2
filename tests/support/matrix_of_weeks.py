"""The weeks of the backfill matrix, what is done to them, and what every row is held against."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
from accounts_of_weeks import disagreements, weeks_of
from real_airflow import SYDNEY, RealAirflow, running
from row_table import Row
from sinks import Sinks, sinks

from turnstile.pipeline.draw import drawing_apart
from turnstile.service_calendar import ServiceWeek
from turnstile.settings import system_clock

REFUSED, FIRST, NO_FILES, SECOND, THIRD = (f"2016-W{n}" for n in range(30, 35))
HALF_FAILED, NEW_NONE, NEW_FAILED = "2018-W10", "2018-W11", "2018-W12"
HALF_COMPLETED, NEW_COMPLETED = "2019-W40", "2019-W41"
KILLED_ONCE = "2021-W10"
KILLED_TWICE = "2022-W30"
KILLED_EARLY, SCHEDULER_KILLED, BESIDE_RUN = "2023-W40", "2023-W41", "2023-W42"
CLEARED_MIDWAY, MARKED_EARLY = "2024-W50", "2024-W51"
MARKED_LATE, CLEARED_AND_KILLED = "2012-W40", "2012-W41"
ORPHANED, ORPHANED_LONG = "2014-W10", "2014-W11"
SCHEDULED = str(ServiceWeek.containing(system_clock().astimezone(SYDNEY).date()).plus(-1))
AT_FIRST = f"{SCHEDULED}.draw"
DELIVERED = (
    f"{REFUSED}:{FIRST}",
    f"{SECOND}:{THIRD}",
    f"{HALF_FAILED}:{NEW_FAILED}",
    f"{HALF_COMPLETED}:{NEW_COMPLETED}",
    KILLED_ONCE,
    KILLED_TWICE,
    f"{KILLED_EARLY}:{BESIDE_RUN}",
    f"{CLEARED_MIDWAY}:{MARKED_EARLY}",
    f"{ORPHANED}:{ORPHANED_LONG}",
    f"{MARKED_LATE}:{CLEARED_AND_KILLED}",
    SCHEDULED,
)
CANARY = "3085220012345678"
EDITS = {
    'window_weeks: 52, rho: "48"': 'window_weeks: 52, rho: "7/4"',
    'weekly_at: "10:00"': 'weekly_at: "00:00"',  # or nothing goes on on a Monday before ten
}
SETTINGS = {
    "AIRFLOW__CORE__PARALLELISM": "3",
    "AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE": "True",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "30",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
    "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "10",
    "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "20",
}


@dataclass
class Matrix:
    """An Airflow, and the rows that were tried on it."""

    airflow: RealAirflow
    sinks: Sinks
    lines: list[Row] = field(default_factory=list)

    @contextmanager
    def row(self, act: str, draws: Mapping[str, int]) -> Iterator[None]:
        """Do something, and hold what came of it against the draws that may come of it."""
        home = self.airflow.home
        before = weeks_of(home)
        yield
        after = weeks_of(home)
        assert after.unlike(before, draws) == ()
        assert disagreements(home, home.parent / "include") == ()
        drawn = ", ".join(f"{week} {number}" for week, number in draws.items()) or "none"
        rho = f"{sum(draws.values()) * 7 / 12:.3f}"
        kept = sum(after.sealed.get(week) == digest for week, digest in before.sealed.items())
        new = len(after.sealed) - len(before.sealed)
        self.lines.append((act, drawn, rho, f"{kept} of {len(before.sealed)}", str(new)))


@contextmanager
def standing_before_a_draw(base: Path) -> Iterator[Matrix]:
    """Yield an Airflow whose scheduled run of last week stands just before its draw."""
    hold = base / "var/hold" / AT_FIRST
    hold.parent.mkdir(parents=True)
    hold.touch()
    with sinks() as receivers:
        extra = {**SETTINGS, "AIRFLOW_CONN_TURNSTILE_ALERTS": receivers.connection}
        weeks = ",".join(DELIVERED)
        with running(base, weeks, edits=EDITS, extra=extra, ran_before=True) as airflow:
            made = Matrix(airflow, receivers)
            airflow.held(SCHEDULED, "draw")
            yield made


def stop_before_draw(matrix: Matrix, week: str) -> None:
    """Bring a week to its hold in the ledger, and mark its run failed."""
    airflow = matrix.airflow
    with matrix.row("run marked failed by hand between reserve and draw", {}):
        airflow.hold(week, "draw")
        airflow.backfill(week, week)
        process = airflow.held(week, "draw")
        airflow.call("PATCH", airflow.path(week), {"state": "failed"})
        airflow.until(lambda: not process.is_running(), what="the end of the marked task")
        airflow.let_go(week, "draw")
        airflow.backfilled(week)
    assert attempts(airflow, week) == ("reserved",)


def kill_with_worker(process: psutil.Process) -> None:
    """Kill a task and the worker that watches it, as the system does when memory is short."""
    worker = parent_of(process)
    worker.kill()
    process.kill()


def kill_with_task_and_worker(drawing: psutil.Process) -> None:
    """Kill a process that draws and all who could say so, as when a machine loses its power."""
    task = parent_of(drawing)
    kill_with_worker(task)
    drawing.kill()


def parent_of(process: psutil.Process) -> psutil.Process:
    """Return who began a process; of one that draws, its task."""
    parent = process.parent()
    assert parent is not None
    return parent


def until_lease_ends(airflow: RealAirflow) -> None:
    """Wait until the ledger takes no draw that is under way for a living one."""
    airflow.until(lambda: not airflow.ledger.living_draws(), what="the end of the lease")


def cleared_in_its_draw(airflow: RealAirflow, week: str) -> psutil.Process:
    """Clear the task of a draw that is held before its seal, and wait until the next try draws.

    Returns:
        The process that draws; it outlives the task.
    """
    drawing = airflow.held(week, "seal")
    task = parent_of(drawing)
    airflow.clear(week, "draw")
    airflow.until(lambda: not task.is_running(), what="the end of the cleared task")
    airflow.until(lambda: _waits_for_seal(airflow, drawing), what="the next try's process")
    assert drawing.is_running()
    return drawing


def _waits_for_seal(airflow: RealAirflow, drawing: psutil.Process) -> bool:
    """Say whether another process than the one that draws wants to draw for the same home."""
    for process in psutil.process_iter(["cmdline"]):
        words = " ".join(process.info["cmdline"] or [])
        if drawing_apart.__name__ in words and str(airflow.home) in words and process != drawing:
            return True
    return False


def deliver_again(airflow: RealAirflow, week: str) -> None:
    """Let the authority send a file of a week once more, with one row twice."""
    file = min((airflow.home / "landing/opal" / week).glob("*.csv"))
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines, lines[-1]]) + "\n")


def run_by_hand(airflow: RealAirflow, dag: str) -> str:
    """Run one of the two DAGs that watch, and return how it ended."""
    airflow.api().unpause(dag)
    run = airflow.call("POST", f"/api/v2/dags/{dag}/dagRuns", {"logical_date": None})["dag_run_id"]
    path = f"/api/v2/dags/{dag}/dagRuns/{run.replace('+', '%2B')}"
    airflow.until(lambda: airflow.call("GET", path)["state"] in {"success", "failed"}, what=dag)
    return str(airflow.call("GET", path)["state"])


def until_said(progress: Any, sentence: str) -> None:
    """Read what `turnstile run` says until it says this."""
    for line in progress:
        if sentence in line:
            return
    pytest.fail(f"turnstile run never said: {sentence}")


def attempts(airflow: RealAirflow, week: str) -> tuple[str, ...]:
    return weeks_of(airflow.home).attempts[week]


def journal(airflow: RealAirflow, week: str) -> str:
    return (airflow.home / "operations/journal/opal" / f"{week}.jsonl").read_text()


def note(airflow: RealAirflow, week: str) -> str:
    """Return what the run's first task said."""
    response = airflow.call("GET", f"{airflow.path(week, 'wait')}/xcomEntries/return_value")
    return str(response["value"])
