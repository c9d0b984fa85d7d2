"""A real Airflow over a small deployment of its own, for tests that need a scheduler."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from datetime import time as clock_time
from pathlib import Path
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo

import psutil
import pytest
from held_steps import hold_draws
from ports import free_port
from postgresql_server import metadata_database

from turnstile.cli import main
from turnstile.errors import TurnstileError
from turnstile.ledger.ledger import Ledger
from turnstile.operations.airflow_api import AirflowApi
from turnstile.service_calendar import ServiceWeek
from turnstile.settings import Settings, system_clock
from turnstile_native.native_environment import Secrets, airflow_environment, airflow_home
from turnstile_native.native_stack import NativeStack, _family

ROOT = Path(__file__).resolve().parents[2]
SYDNEY = ZoneInfo("Australia/Sydney")
PASSWORD = "for this test only"  # noqa: S105 - of a throw-away Airflow on the loopback interface
ROLES = {"admin": "admin", "ada": "op", "olga": "op", "eve": "op", "vera": "viewer"}
DAG = "release_opal"
WATCH = ("audit_ledger", "retention", "watchdog", "weekly_digest")
QUICK = {
    "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "5",
    "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "5",
}
"""For `running`: a programme that changes is a DAG of its own within seconds."""
READ_AND_WRITTEN_S = 1


def own_port() -> int:
    """Return a free TCP port; below those of outgoing connections, and each process's own."""
    return free_port(10_000 + os.getpid() % 10_000)


def small_checkout(
    base: Path, edits: Mapping[str, str], edits_of_buses: Mapping[str, str] = MappingProxyType({})
) -> Path:
    """Make a folder that Airflow can run from: few cells, programmes edited; return `include`."""
    include = base / "include"
    for name in ("programmes", "domains"):
        shutil.copytree(ROOT / "include" / name, include / name)
    shutil.copy(ROOT / "include/examples.yaml", include)
    (include / "people.yaml").write_text("release_officer: [admin, ada, olga]\n")
    for name in ("dags", "plugins"):
        shutil.copytree(ROOT / name, base / name, ignore=shutil.ignore_patterns("__pycache__"))
    few_cells = {"slot_minutes: 15": "slot_minutes: 240"}
    for name, replacements in (("opal", {**few_cells, **edits}), ("itms", edits_of_buses)):
        programme = include / f"programmes/{name}.yaml"
        text = programme.read_text()
        for old, new in replacements.items():
            assert old in text
            text = text.replace(old, new)
        programme.write_text(text)
    _hold_steps(base / "plugins")
    return include


def _hold_steps(plugins: Path) -> None:
    """Let tests stop steps of this checkout, and let retries of it come soon."""
    shutil.copy(ROOT / "tests/support/held_steps.py", plugins)
    dag = plugins / "release_dag.py"
    text = dag.read_text().replace("timedelta(minutes=2)}", "timedelta(seconds=5)}")
    dag.write_text(f"{text}\nimport held_steps  # noqa: E402\n\nheld_steps.hold_tasks()\n")


@dataclass
class RealAirflow:
    """A running Airflow.

    Args:
        base: its folder: `include`, `dags`, `plugins`, `var`.
        address: of the API server.
        stack: its processes.
        dag: whose runs are meant.
    """

    base: Path
    address: str
    stack: NativeStack
    apis: dict[str, AirflowApi] = field(default_factory=dict)
    dag: str = DAG

    def api(self, user: str = "admin") -> AirflowApi:
        """Return a client that is logged in as a user."""
        return self.apis.setdefault(user, AirflowApi(self.address, user, PASSWORD))

    def call(self, method: str, path: str, body: Any = None, *, user: str = "admin") -> Any:
        """Make any request of the REST API."""
        return self.api(user)._request(method, path, body)

    @property
    def home(self) -> Path:
        return self.base / "var"

    @property
    def ledger(self) -> Ledger:
        return Ledger.open(
            f"sqlite:///{self.home / 'ledger.sqlite'}",
            clock=system_clock,
            public=self.home / "public",
        )

    def runs(self) -> dict[str, str]:
        """Return the state of the run of each week."""
        return {week_at(run.starts): run.state for run in self.api().runs(self.dag)}

    def run_id(self, week: str) -> str:
        return next(r.run_id for r in self.api().runs(self.dag) if week_at(r.starts) == week)

    def backfill(self, first: str, last: str, behavior: str = "completed", **more: Any) -> Any:
        """Ask for weeks by the REST call."""
        body = {
            "dag_id": self.dag,
            "from_date": monday(first).isoformat(),
            "to_date": monday(last).isoformat(),
            "max_active_runs": 2,
            "reprocess_behavior": behavior,
            "run_on_latest_version": True,
        }
        return self.call("POST", "/api/v2/backfills", body | more)

    def cli(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run an `airflow` command as an operator on this machine would."""
        command = [sys.executable, "-m", "airflow", *arguments]
        environment = self.stack._environment
        return subprocess.run(  # noqa: S603 - our own interpreter
            command, env=environment, capture_output=True, text=True, check=False, timeout=240
        )

    def cli_backfill(
        self, first: str, last: str, behavior: str, *, backwards: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """Ask for weeks by `airflow backfill create`."""
        dates = ("--from-date", monday(first).isoformat(), "--to-date", monday(last).isoformat())
        more = ("--run-backwards",) if backwards else ()
        asked = ("--reprocess-behavior", behavior, "--max-active-runs", "2", *more)
        return self.cli("backfill", "create", "--dag-id", self.dag, *dates, *asked)

    def deliver(self, *weeks: str) -> None:
        """Put made-up files of some weeks into the landing zone."""
        for week in weeks:
            asked = ["sample", "opal", "--weeks", week, "--rows", "2000", "--seed", "3"]
            assert main(asked) == 0

    def hold(self, week: str, moment: str) -> None:
        """Let the week's next step stop at a moment of `held_steps`."""
        self._hold(week, moment).parent.mkdir(parents=True, exist_ok=True)
        self._hold(week, moment).touch()

    def held(self, week: str, moment: str) -> psutil.Process:
        """Wait until the step stands at the moment, and return its process."""
        reached = self._hold(week, f"{moment}.reached")
        self.until(lambda: bool(reached.exists() and reached.read_text()), what=reached.name)
        process = psutil.Process(int(reached.read_text()))
        reached.unlink()
        return process

    def let_go(self, week: str, moment: str) -> None:
        """Let the held step go on."""
        self._hold(week, moment).unlink()

    def _hold(self, week: str, moment: str) -> Path:
        return self.home / "hold" / f"{week}.{moment}"

    def kill_scheduler(self, *, with_workers: bool) -> set[psutil.Process]:
        """Kill the scheduler, and return those of its processes that live on."""
        leader = self.stack._processes["scheduler"]
        family = _family(leader.pid)
        leader.kill()
        leader.wait()
        workers = {process for process in family if process.pid != leader.pid}
        if with_workers:
            for worker in workers:
                worker.kill()
            psutil.wait_procs(workers, timeout=10)
        return {process for process in workers if process.is_running()}

    def until(self, holds: Callable[[], bool], *, what: str, timeout_s: float = 600) -> None:
        self.stack.wait_until(holds, what=what, timeout_s=timeout_s)

    def backfilled(self, *weeks: str) -> None:
        """Wait until the backfill that was asked for last is done; no week may have two runs."""
        self.until_ended(*weeks)
        self.until_no_backfill()
        starts = [run.starts for run in self.api().runs(self.dag)]
        assert len(starts) == len(set(starts))

    def until_ended(self, *weeks: str) -> None:
        """Wait until the runs of these weeks have ended and no backfill is active."""

        def ended() -> bool:
            states = self.runs()
            return all(states.get(week) in {"success", "failed"} for week in weeks)

        self.until(ended, what=f"the runs of {', '.join(weeks)}")

    def until_no_backfill(self) -> None:
        """Wait until Airflow has noticed, half a minute later, that a backfill is done.

        Not canceled: runs of a canceled backfill are not taken up again when they are cleared.
        """

        def none_active() -> bool:
            backfills = self.call("GET", f"/api/v2/backfills?dag_id={self.dag}")["backfills"]
            return all(backfill["completed_at"] for backfill in backfills)

        self.until(none_active, what="the end of the backfill")

    def asks(self, week: str, task: str) -> bool:
        """Say whether a question to people waits for its answer."""
        return week in self.runs() and self.tasks(week).get(task) == "awaiting_input"

    def answer(self, week: str, task: str, user: str, choice: str, *, asked: int = 1) -> None:
        """Answer a question that this try asks so often, as somebody does in Required Actions.

        Not at once: Airflow 3.3 fails a task that is answered before its scheduler has read that it
        waits ("finished with state success, but the state attribute is queued").
        """
        self.until(
            lambda: self.asks(week, task) and self.is_read(week, task, asked),
            what="the scheduler's word that it is asked",
        )
        time.sleep(READ_AND_WRITTEN_S)
        body = {"chosen_options": [choice], "params_input": {"reason": f"{user} says so"}}
        self.call("PATCH", f"{self.path(week, task)}/-1/hitlDetails", body, user=user)

    def is_read(self, week: str, task: str, asked: int = 1) -> bool:
        """Say whether the scheduler has read so often that the question of this try waits."""
        try_number = self.call("GET", self.path(week, task))["try_number"]
        key = f"task_id='{task}', run_id='{self.run_id(week)}', try_number={try_number},"
        logs = (self.home / "airflow/logs").glob("scheduler*.log")
        lines = (line for log in logs for line in log.read_text(errors="replace").splitlines())
        return sum("Received executor event" in line and key in line for line in lines) >= asked

    def mark(self, week: str, task: str, state: str, *, user: str) -> None:
        """Give a task a state by hand; Airflow refuses to give it to one that has it by now."""
        try:
            self.call("PATCH", self.path(week, task), {"new_state": state}, user=user)
        except TurnstileError as refused:
            if f"already in {state} state" not in str(refused):
                raise

    def clear(self, week: str, *tasks: str, user: str = "admin") -> None:
        """Clear tasks of a run and what follows them."""
        body = {
            "dry_run": False,
            "dag_run_id": self.run_id(week),
            "task_ids": list(tasks),
            "include_downstream": True,
            "only_failed": False,
            "reset_dag_runs": True,
        }
        self.call("POST", f"/api/v2/dags/{self.dag}/clearTaskInstances", body, user=user)

    def tasks(self, week: str) -> dict[str, str | None]:
        tasks = self.api().tasks(self.dag, self.run_id(week))
        return {task.task_id: task.state for task in tasks}

    def path(self, week: str, task: str = "") -> str:
        base = f"/api/v2/dags/{self.dag}/dagRuns/{self.run_id(week).replace('+', '%2B')}"
        return f"{base}/taskInstances/{task}" if task else base


def monday(week: str) -> datetime:
    """Return the logical date of a week."""
    first = ServiceWeek.parse(week).monday
    return datetime.combine(first, clock_time(), SYDNEY).astimezone(UTC)


def week_at(start: datetime) -> str:
    """Return the week of a run."""
    return str(ServiceWeek.containing((start + timedelta(hours=12)).astimezone(SYDNEY).date()))


@contextmanager
def running(
    base: Path,
    weeks: str,
    *,
    edits: Mapping[str, str],
    extra: Mapping[str, str],
    edits_of_buses: Mapping[str, str] = MappingProxyType({}),
    port: int | None = None,
    ran_before: bool = False,
    packages: Path | None = None,
) -> Iterator[RealAirflow]:
    """Run an Airflow over a small checkout with landing data for some weeks; stop it afterwards.

    Args:
        base: empty folder.
        weeks: ranges of weeks with landing data, `2016-W30:2016-W33,2018-W10`.
        edits: what is changed in the file of `opal`, old text to new.
        extra: settings of Airflow.
        edits_of_buses: what is changed in the file of `itms`.
        port: TCP port of the API server, from `own_port`.
        ran_before: let the schedule go on with last week, as where the weeks before had runs.
        packages: folder of packages that are installed beside Airflow, providers among them.
    """
    include = small_checkout(base, edits, edits_of_buses)
    if ran_before:
        _go_on_with_last_week(base / "plugins")
    settings = Settings(base / "var", f"sqlite:///{base / 'var/ledger.sqlite'}", (), include)
    own = pytest.MonkeyPatch()
    own.setenv("TURNSTILE_HOME", str(settings.home))
    own.setenv("TURNSTILE_INCLUDE", str(include))
    for asked in weeks.split(","):
        assert main(["sample", "opal", "--weeks", asked, "--rows", "2000", "--seed", "3"]) == 0
    home = airflow_home(settings)
    held, chosen = Secrets.of_folder(home), port or own_port()
    passwords = dict.fromkeys(ROLES, PASSWORD)
    (home / "passwords.json").write_text(json.dumps(passwords))
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("TURNSTILE")}  # noqa: TID251
    environment = airflow_environment(settings, held, port=chosen, inherited=inherited)
    users = ",".join(f"{user}:{role}" for user, role in ROLES.items())
    environment |= {"AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": users, **extra}
    environment["PYTHONPATH"] = hold_draws(base / "held")
    if packages is not None:
        with (base / "held/sitecustomize.py").open("a") as code:
            code.write(f"sys.path.append({str(packages)!r})\n")
    try:
        with metadata_database() as its, NativeStack(home, environment | its) as stack:
            airflow = RealAirflow(base, f"http://127.0.0.1:{chosen}", stack)
            airflow.until(airflow.api().answers, what="the API server's start", timeout_s=300)
            airflow.until(lambda: airflow.api().has_dag(DAG), what="parsing", timeout_s=300)
            pool = {"slots": 1, "description": "One charge at a time"}
            airflow.api().make_pool("turnstile_ledger", **pool)
            airflow.api().unpause(DAG)
            for dag in WATCH:  # they run from the start; a test calls them when it looks
                airflow.until(lambda dag=dag: airflow.api().has_dag(dag), what=dag, timeout_s=300)
                airflow.call("PATCH", f"/api/v2/dags/{dag}", {"is_paused": True})
            stack.start_scheduling()
            yield airflow
    finally:
        own.undo()


def _go_on_with_last_week(plugins: Path) -> None:
    """Take from the timetable that a DAG without runs begins with the week under way."""
    timetable = plugins / "service_periods.py"
    text = timetable.read_text()
    assert "goes_on = last is not None and" in text
    timetable.write_text(
        text.replace("goes_on = last is not None and", "goes_on = last is None or")
    )
