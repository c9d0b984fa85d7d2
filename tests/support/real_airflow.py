"""A real Airflow over a small deployment of its own, for tests that need a scheduler."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from datetime import time as clock_time
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from turnstile.cli import main
from turnstile.deployment.airflow_api import AirflowApi
from turnstile.deployment.native_environment import Secrets, airflow_environment, airflow_home
from turnstile.deployment.native_stack import NativeStack, free_port
from turnstile.ledger.ledger import Ledger
from turnstile.service_calendar import ServiceWeek
from turnstile.settings import Settings, system_clock

ROOT = Path(__file__).resolve().parents[2]
SYDNEY = ZoneInfo("Australia/Sydney")
PASSWORD = "for this test only"  # noqa: S105 - of a throw-away Airflow on the loopback interface
ROLES = {"admin": "admin", "ada": "op", "olga": "op", "eve": "op", "vera": "viewer"}
DAG = "release_opal"


def small_checkout(base: Path, edits: Mapping[str, str]) -> Path:
    """Make a folder that Airflow can run from: few cells, programmes edited; return `include`."""
    include = base / "include"
    for name in ("programmes", "domains"):
        shutil.copytree(ROOT / "include" / name, include / name)
    (include / "people.yaml").write_text("release_officer: [admin, ada, olga]\n")
    for name in ("dags", "plugins"):
        shutil.copytree(ROOT / name, base / name, ignore=shutil.ignore_patterns("__pycache__"))
    opal = include / "programmes/opal.yaml"
    text = opal.read_text().replace("slot_minutes: 15", "slot_minutes: 240")
    for old, new in edits.items():
        assert old in text
        text = text.replace(old, new)
    opal.write_text(text)
    return include


@dataclass
class RealAirflow:
    """A running Airflow.

    Args:
        base: its folder: `include`, `dags`, `plugins`, `var`.
        address: of the API server.
        stack: its processes.
    """

    base: Path
    address: str
    stack: NativeStack
    apis: dict[str, AirflowApi] = field(default_factory=dict)

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
        return {week_at(run.starts): run.state for run in self.api().runs(DAG)}

    def run_id(self, week: str) -> str:
        return next(r.run_id for r in self.api().runs(DAG) if week_at(r.starts) == week)

    def backfill(self, first: str, last: str, behavior: str = "completed", **more: Any) -> Any:
        """Ask for weeks by the REST call."""
        body = {
            "dag_id": DAG,
            "from_date": monday(first).isoformat(),
            "to_date": monday(last).isoformat(),
            "max_active_runs": 2,
            "reprocess_behavior": behavior,
            "run_on_latest_version": True,
        }
        return self.call("POST", "/api/v2/backfills", body | more)

    def until(self, holds: Callable[[], bool], *, what: str, timeout_s: float = 240) -> None:
        self.stack.wait_until(holds, what=what, timeout_s=timeout_s)

    def until_ended(self, *weeks: str) -> None:
        """Wait until the runs of these weeks have ended and no backfill is active."""

        def ended() -> bool:
            states = self.runs()
            return all(states.get(week) in {"success", "failed"} for week in weeks)

        self.until(ended, what=f"the runs of {', '.join(weeks)}", timeout_s=600)

    def until_no_backfill(self) -> None:
        """Wait until Airflow has noticed, half a minute later, that a backfill is done.

        Not canceled: runs of a canceled backfill are not taken up again when they are cleared.
        """

        def none_active() -> bool:
            found = self.call("GET", f"/api/v2/backfills?dag_id={DAG}")["backfills"]
            return all(one["completed_at"] for one in found)

        self.until(none_active, what="the end of the backfill")

    def tasks(self, week: str) -> dict[str, str | None]:
        tasks = self.api().tasks(DAG, self.run_id(week))
        return {task.task_id: task.state for task in tasks}

    def path(self, week: str, task: str = "") -> str:
        base = f"/api/v2/dags/{DAG}/dagRuns/{self.run_id(week).replace('+', '%2B')}"
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
    base: Path, weeks: str, *, edits: Mapping[str, str], extra: Mapping[str, str], port: int = 18180
) -> Iterator[RealAirflow]:
    """Run an Airflow over a small checkout with landing data for some weeks; stop it afterwards."""
    include = small_checkout(base, edits)
    settings = Settings(base / "var", f"sqlite:///{base / 'var/ledger.sqlite'}", (), include)
    for name, value in (("HOME", settings.home), ("INCLUDE", include)):
        os.environ[f"TURNSTILE_{name}"] = str(value)  # noqa: TID251 - the command reads it
    assert main(["sample", "opal", "--weeks", weeks, "--rows", "2000", "--seed", "3"]) == 0
    home = airflow_home(settings)
    held, chosen = Secrets.of_folder(home), free_port(port)
    passwords = dict.fromkeys(ROLES, PASSWORD)
    (home / "passwords.json").write_text(json.dumps(passwords))
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("TURNSTILE")}  # noqa: TID251
    environment = airflow_environment(settings, held, port=chosen, inherited=inherited)
    users = ",".join(f"{user}:{role}" for user, role in ROLES.items())
    environment |= {"AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": users, **extra}
    try:
        with NativeStack(home, environment) as stack:
            airflow = RealAirflow(base, f"http://127.0.0.1:{chosen}", stack)
            airflow.until(airflow.api().answers, what="the API server's start", timeout_s=300)
            airflow.until(lambda: airflow.api().has_dag(DAG), what="parsing", timeout_s=300)
            pool = {"slots": 1, "description": "One charge at a time"}
            airflow.api().make_pool("turnstile_ledger", **pool)
            airflow.api().unpause(DAG)
            stack.start_scheduling()
            yield airflow
    finally:
        for name in ("HOME", "INCLUDE"):
            os.environ.pop(f"TURNSTILE_{name}", None)  # noqa: TID251 - set above
