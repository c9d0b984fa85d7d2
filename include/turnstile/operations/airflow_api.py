"""The few requests that are made of a running Airflow, over its REST API (v2)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

import httpx

from turnstile.errors import AirflowAway, TurnstileError
from turnstile.operations.airflow_names import dag_of
from turnstile.operations.airflow_now import (
    NO_WORKER_YET,
    REQUEUED,
    UNDER_WAY,
    AirflowNow,
    RunNow,
    RunsAsked,
    TaskNow,
    latest,
    named_week,
    waiting_since,
)
from turnstile.operations.week_requests import KnownRun, week_requests
from turnstile.programme.calendar.release_schedule import starts_at
from turnstile.programme.spec import Programme
from turnstile.service_calendar import ServicePeriod

_TIMEOUT_S = 90  # longer than one process waits for another's SQLite transaction
_ANSWER_CHARACTERS = 500
_NOT_FOUND = 404
_SERVER_ERROR = 500  # from here on: SQLite was busy, most likely
_ATTEMPTS = 5
_PAUSE_S = 2


@dataclass(frozen=True, slots=True)
class DagRun:
    """One run of a DAG. `ended` is None while it lasts."""

    run_id: str
    state: str
    starts: datetime


@dataclass(frozen=True, slots=True)
class TaskState:
    """One task of a run: its state (None before it is scheduled) and latest attempt."""

    task_id: str
    state: str | None
    attempt: int


@dataclass(slots=True)
class AirflowApi:
    """A client of one Airflow.

    Args:
        address: `http://127.0.0.1:8080`.
        user: user name.
        password: the user's password.
    """

    address: str
    user: str
    password: str
    _token: str | None = field(default=None, init=False)

    def answers(self) -> bool:
        """Return whether the API server listens."""
        try:
            return self._send("GET", "/api/v2/version").is_success
        except httpx.HTTPError:
            return False

    def has_dag(self, dag_id: str) -> bool:
        """Return whether the DAG has been parsed."""
        try:
            return not self._request("GET", f"/api/v2/dags/{dag_id}")["is_stale"]
        except LookupError:
            return False

    def import_errors(self) -> tuple[str, ...]:
        """Return the stack traces of the DAG files that cannot be parsed."""
        errors = self._request("GET", "/api/v2/importErrors")["import_errors"]
        return tuple(f"{error['filename']}: {error['stack_trace']}" for error in errors)

    def make_pool(self, name: str, *, slots: int, description: str) -> None:
        """Create a pool, or set the slots of the one there is."""
        body = {"name": name, "slots": slots, "description": description}
        try:
            self._request("PATCH", f"/api/v2/pools/{name}", body | {"include_deferred": False})
        except LookupError:
            self._request("POST", "/api/v2/pools", body)

    def unpause(self, dag_id: str) -> None:
        """Let the scheduler run a DAG's runs."""
        self._request("PATCH", f"/api/v2/dags/{dag_id}", {"is_paused": False})

    def abandon_unfinished(self, dag_id: str) -> None:
        """Give up the runs that an interrupted Airflow left behind.

        A backfill ends with its runs. Were it canceled, Airflow would begin none of them again.
        """
        for run in self.runs(dag_id):
            if run.state in UNDER_WAY:
                path = f"/api/v2/dags/{dag_id}/dagRuns/{quote(run.run_id)}"
                self._request("PATCH", path, {"state": "failed"})

    def release(self, programme: Programme, periods: Sequence[ServicePeriod]) -> tuple[str, ...]:
        """Start the runs of some periods, or clear those that there are.

        Returns:
            Runs that Airflow would never begin, of a backfill that is paused or was canceled: they
            were deleted, and others took their places.
        """
        dag_id, zone = dag_of(programme.name), programme.time.zone
        known = {run.starts: KnownRun(run.run_id, run.state) for run in self.runs(dag_id)}
        held, deleted = self._held_back(dag_id), list[str]()
        for start in (starts_at(period, zone) for period in periods):
            if start in known and known[start].run_id in held:
                run_id = known.pop(start).run_id
                self._request("DELETE", f"/api/v2/dags/{dag_id}/dagRuns/{quote(run_id)}")
                deleted.append(run_id)
        for asked in week_requests(programme, periods, known):
            if asked.path:
                self._request("POST", asked.path, asked.body)
        return tuple(deleted)

    def runs(self, dag_id: str) -> tuple[DagRun, ...]:
        """Return the runs of a DAG that stand for a week, oldest week first."""
        rows = self._pages(f"/api/v2/dags/{dag_id}/dagRuns", "dag_runs", ())
        runs = [
            DagRun(run["dag_run_id"], run["state"], _instant(run["data_interval_start"]))
            for run in rows
            if run["data_interval_start"]
        ]
        return tuple(sorted(runs, key=lambda run: run.starts))

    def tasks(self, dag_id: str, run_id: str) -> tuple[TaskState, ...]:
        """Return the tasks of a run."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/{quote(run_id)}/taskInstances"
        rows = self._request("GET", path)["task_instances"]
        return tuple(TaskState(row["task_id"], row["state"], row["try_number"]) for row in rows)

    def now(
        self, asked: RunsAsked, period_of: Callable[[str, datetime | None, str], str]
    ) -> AirflowNow:
        """Return what Airflow says of some programmes.

        Args:
            asked: which runs.
            period_of: names the period of a run, from its DAG, logical date and the form's field.
        """
        paused: dict[str, bool] = {}
        runs: dict[str, tuple[RunNow, ...]] = {}
        for name, ids in asked.runs.items():
            dag_id, dag_runs = dag_of(name), []
            try:
                dag = self._request("GET", f"/api/v2/dags/{dag_id}")
            except LookupError:
                runs[name] = ()
                continue
            if not dag["is_stale"]:
                paused[name] = bool(dag["is_paused"])
            path = f"/api/v2/dags/{dag_id}/dagRuns"
            living = [("state", state) for state in sorted(UNDER_WAY)]
            rows = {row["dag_run_id"]: row for row in self._pages(path, "dag_runs", living)}
            for run_id in set(ids) - rows.keys():
                with suppress(LookupError):
                    rows[run_id] = self._request("GET", f"{path}/{quote(run_id)}")
            is_of_backfill = any(row["run_type"] == "backfill" for row in rows.values())
            backfills = self._backfills(dag_id) if is_of_backfill else []
            for run_id, row in rows.items():
                starts = _instant(row["logical_date"]) if row["logical_date"] else None
                named = named_week(row["run_type"], row.get("conf"))
                of_run = self._request("GET", f"{path}/{quote(run_id)}/taskInstances")
                tasks = {
                    instance["task_id"]: _task_now(instance)
                    for instance in of_run["task_instances"]
                }
                if any(task.state in NO_WORKER_YET for task in tasks.values()):
                    tasks = waiting_since(tasks, self._requeued(dag_id, run_id))
                period, since = period_of(dag_id, starts, named), _last(row, *_OF_RUN)
                held, of = _is_held(row, backfills), _backfill_of(row, backfills)
                backfill = int(of.get("id", 0)) if of is not None else None
                now = RunNow(run_id, period, row["state"], tasks, since, held, starts, backfill)
                dag_runs.append(now)
            runs[name] = tuple(dag_runs)
        health = self._request("GET", "/api/v2/monitor/health")
        scheduler, triggerer = (
            _last(health.get(part) or {}, f"latest_{part}_heartbeat")
            for part in ("scheduler", "triggerer")
        )
        return AirflowNow(paused, runs, scheduler, asked, triggerer)

    def events(self, names: Iterable[str]) -> tuple[dict[str, Any], ...]:
        """Return the lines of the audit log about some kinds of events, oldest first."""
        asked = [*(("included_events", name) for name in names), ("order_by", "event_log_id")]
        return tuple(self._pages("/api/v2/eventLogs", "event_logs", asked))

    def _requeued(self, dag_id: str, run_id: str) -> list[tuple[str, datetime]]:
        """Return task and moment of each line which says that no worker took a task of a run.

        There are none for a reader who may not read them.
        """
        query = [("dag_id", dag_id), ("run_id", run_id), ("event", REQUEUED)]
        with suppress(TurnstileError):
            rows = self._pages("/api/v2/eventLogs", "event_logs", query)
            return [(row["task_id"], _instant(row["when"])) for row in rows]
        return []

    def _held_back(self, dag_id: str) -> frozenset[str]:
        """Return the runs that Airflow would never begin, whatever is cleared."""
        query = [("run_type", "backfill")]
        rows = self._pages(f"/api/v2/dags/{dag_id}/dagRuns", "dag_runs", query)
        backfills = self._backfills(dag_id) if rows else []
        return frozenset(row["dag_run_id"] for row in rows if _is_held(row, backfills))

    def _backfills(self, dag_id: str) -> list[dict[str, Any]]:
        """Return the backfills of a DAG; none to a reader who may not list them."""
        with suppress(TurnstileError):
            return self._pages("/api/v2/backfills", "backfills", [("dag_id", dag_id)])
        return []

    def _pages(
        self, path: str, name: str, query: Sequence[tuple[str, str]]
    ) -> list[dict[str, Any]]:
        """Return all that a list holds; Airflow hands out a hundred at once."""
        rows: list[dict[str, Any]] = []
        while True:
            asked = urlencode([*query, ("limit", "100"), ("offset", str(len(rows)))])
            page = self._request("GET", f"{path}?{asked}")
            rows += page[name]
            if not page[name] or len(rows) >= page["total_entries"]:
                return rows

    def _request(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Any:  # noqa: ANN401 - JSON
        """Send one request with the user's token and return the JSON answer.

        Raises:
            LookupError: Airflow knows no such thing.
            TurnstileError: Airflow refuses.
            AirflowAway: it does not answer.
        """
        for _ in range(_ATTEMPTS):
            try:
                answer = self._send(method, path, body, self._authorization())
                if answer.is_success:
                    return answer.json() if answer.content else {}
                message = _refusal(answer, method, path)
            except httpx.HTTPError as error:
                message = f"Airflow does not answer {method} {path}: {error}"
            time.sleep(_PAUSE_S)
        raise AirflowAway(message)

    def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Send one request, over a connection that is closed after it.

        A machine's proxy has no business with the loopback interface.
        """
        with httpx.Client(
            base_url=self.address, timeout=_TIMEOUT_S, trust_env=False, follow_redirects=True
        ) as client:
            return client.request(method, path, json=body, headers=headers)

    def _authorization(self) -> dict[str, str]:
        """Return the header that carries the user's token; asked for once."""
        if self._token is None:
            login = {"username": self.user, "password": self.password}
            answer = self._send("POST", "/auth/token", login)
            if answer.is_client_error:
                who = f"the login of {self.user or 'nobody'!r}"
                rule = "it takes the address of Airflow itself, and user and password of somebody"
                raise TurnstileError(
                    f"{self.address} answers {answer.status_code} to {who}: {rule}"
                )
            answer.raise_for_status()
            self._token = str(answer.json()["access_token"])
        return {"Authorization": f"Bearer {self._token}"}


def _refusal(answer: httpx.Response, method: str, path: str) -> str:
    """Return what Airflow says where it may be asked again.

    Raises:
        LookupError: Airflow knows no such thing.
        TurnstileError: Airflow refuses.
    """
    if answer.status_code == _NOT_FOUND:
        raise LookupError(path)
    text = answer.text[:_ANSWER_CHARACTERS]
    message = f"Airflow answers {answer.status_code} to {method} {path}: {text}"
    if answer.status_code < _SERVER_ERROR:
        raise TurnstileError(message)
    return message


def _is_held(run: Mapping[str, Any], backfills: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the last backfill over a run of one is paused; canceling pauses it, too."""
    return bool((_backfill_of(run, backfills) or {}).get("is_paused"))


def _backfill_of(
    run: Mapping[str, Any], backfills: Sequence[Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    """Return the last backfill over a run of one; empty where it is not known, None of others."""
    if run["run_type"] != "backfill":
        return None
    at = _instant(run["logical_date"])
    over = [b for b in backfills if _instant(b["from_date"]) <= at <= _instant(b["to_date"])]
    return max(over, key=lambda b: int(b["id"]), default={})


def _task_now(row: Mapping[str, Any]) -> TaskNow:
    """Read a task as the API writes it."""
    return TaskNow(row["state"], _last(row, "start_date"), _last(row, *_OF_TASK))


_OF_RUN = ("queued_at", "start_date")
_OF_TASK = ("scheduled_when", "queued_when", "start_date", "end_date")


def _last(row: Mapping[str, Any], *names: str) -> datetime | None:
    """Return the latest of the instants in a row that has them."""
    return latest(_instant(row[name]) for name in names if row.get(name))


def _instant(text: str) -> datetime:
    """Read an instant as the API writes it."""
    return datetime.fromisoformat(text)
