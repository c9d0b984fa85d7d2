"""Whoever set a run going again is found in Airflow's audit log, or nobody may approve."""

from __future__ import annotations

import importlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import httpx
import pytest

from turnstile.errors import NotApproved
from turnstile.operations.airflow_api import AirflowApi

DAG, RUN = "release_opal", "scheduled__2016-08-01"
WEEK = datetime(2016, 7, 24, 14, tzinfo=UTC)


@pytest.fixture
def module(bag: Any) -> ModuleType:
    assert bag.dags
    return importlib.import_module("audit_log")


def _line(event: str, **other: Any) -> dict[str, Any]:
    """A line as Airflow writes it, of olga about the run."""
    extra = json.dumps(other.pop("extra", {"method": "POST"}))
    line = {"event": event, "dag_id": DAG, "run_id": RUN, "task_id": None, "owner": "olga"}
    return line | {"extra": extra} | other


def _backfill(first: datetime, last: datetime) -> dict[str, Any]:
    extra = {"dag_id": DAG, "from_date": first.isoformat(), "to_date": last.isoformat()}
    return _line("create_backfill", run_id=None, extra=extra)


def _users(module: ModuleType, line: dict[str, Any]) -> frozenset[str]:
    return frozenset(module.users_in(module.lines_about([line], DAG, RUN, WEEK)))


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(_line("clear_dag_run"), id="run cleared"),
        pytest.param(
            _line("post_clear_task_instances", extra={"task_ids": ["draw"]}), id="task cleared"
        ),
        pytest.param(
            _line("post_clear_task_instances", extra={"task_ids": ["ask", "ask_revision"]}),
            id="question about a revision cleared, and so the draw after it",
        ),
        pytest.param(
            _line(
                "post_clear_task_instances",
                run_id="another",
                extra={"task_ids": ["draw"], "reset_dag_runs": False, "include_future": True},
            ),
            id="task cleared in another run and those after it",
        ),
        pytest.param(_line("patch_dag_run"), id="run marked"),
        pytest.param(_line("patch_task_instance", task_id="ask"), id="task marked"),
        pytest.param(_backfill(WEEK - timedelta(days=7), WEEK), id="backfill over the week"),
        pytest.param(_line("clear_dag_runs", dag_id="~", run_id=None), id="many runs cleared"),
    ],
)
def test_who_set_the_run_going_again_is_named(module: ModuleType, line: dict[str, Any]) -> None:
    assert _users(module, line) == {"olga"}


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(_line("clear_dag_run", run_id="another"), id="another run"),
        pytest.param(_line("clear_dag_run", dag_id="release_itms"), id="another programme"),
        pytest.param(
            _line("post_clear_task_instances", extra={"task_ids": ["ask_1", "ask_2"]}),
            id="asked again",
        ),
        pytest.param(
            _backfill(WEEK + timedelta(days=1), WEEK + timedelta(days=9)), id="other weeks"
        ),
    ],
)
def test_who_did_something_else_is_not(module: ModuleType, line: dict[str, Any]) -> None:
    assert _users(module, line) == frozenset()


def test_a_log_that_cannot_be_read_lets_nobody_approve_a_run_that_was_cleared(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = SimpleNamespace(dag_id=DAG, run_id=RUN, logical_date=WEEK, clear_number=0)
    assert module.who_set_going_again(run) == frozenset()  # and nothing is read
    run.clear_number = 1
    with pytest.raises(NotApproved, match="turnstile_airflow"):
        module.who_set_going_again(run)
    lines = SimpleNamespace(events=lambda _: [_line("clear_dag_run")])
    monkeypatch.setattr(module, "airflow_api", lambda: lines)
    assert module.who_set_going_again(run) == {"olga"}


@pytest.mark.parametrize("answers", [None, 503, 401, 403])
def test_a_wait_tries_again_where_the_api_is_away_and_refuses_who_may_not_read_it(
    module: ModuleType,
    step_task: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    answers: int | None,
) -> None:
    """Ten seconds without it ended the wait of `persons: 2` for good."""
    monkeypatch.setenv("TURNSTILE_HOME", str(tmp_path))
    exceptions = importlib.import_module("airflow.sdk.exceptions")
    api = AirflowApi("http://127.0.0.1:9", "olga", "secret")

    def send(method: str, path: str, *_: object) -> httpx.Response:
        if answers is None:
            raise httpx.ConnectError("refused")
        return httpx.Response(answers, request=httpx.Request(method, f"{api.address}{path}"))

    monkeypatch.setattr(AirflowApi, "_send", lambda _, *words: send(*words))
    monkeypatch.setattr("turnstile.operations.airflow_api._PAUSE_S", 0)
    monkeypatch.setattr(module, "airflow_api", lambda: api)
    run = SimpleNamespace(dag_id=DAG, run_id=RUN, logical_date=WEEK, clear_number=1)
    of_week = {"data_interval_start": WEEK, "data_interval_end": WEEK + timedelta(weeks=1)}
    with pytest.raises(exceptions.AirflowException) as failure:
        step_task.of_run("opal", "wait", of_week, lambda _: module.who_set_going_again(run))
    is_final = isinstance(failure.value, exceptions.AirflowFailException)
    assert is_final == (answers in {401, 403})


def test_a_clear_that_a_run_under_way_goes_on_with_names_who_did_it(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Airflow counts no clear of tasks that leaves the run's own state alone."""
    run = SimpleNamespace(dag_id=DAG, run_id=RUN, logical_date=WEEK, clear_number=0)
    left = {"task_ids": ["draw"], "reset_dag_runs": False}
    log = [
        _line("post_clear_task_instances", owner="ada", extra=left),
        _line("post_clear_task_instances", extra=left | {"task_ids": ["ask"]}),
        _line("patch_dag_run", owner="eve", extra={"note": "looks odd"}),
        _line("post_clear_task_instances", owner="eve", run_id="another", extra=left),
    ]
    monkeypatch.setattr(module, "airflow_api", lambda: SimpleNamespace(events=lambda _: log))
    assert module.who_set_going_again(run) == {"ada"}

    def unread() -> None:
        raise OSError

    monkeypatch.setattr(module, "airflow_api", unread)
    with pytest.raises(NotApproved, match="cannot be read"):
        module.who_set_going_again(run)


@pytest.mark.parametrize("event", ["patch_task_instance", "patch_task_group_instances"])
def test_who_marks_a_task_that_waits_is_named_though_airflow_counts_no_clear(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch, event: str
) -> None:
    run = SimpleNamespace(dag_id=DAG, run_id=RUN, logical_date=WEEK, clear_number=0)
    marks = {"new_state": "success"}
    log = [
        _line(event, owner="ada", task_id="wait", extra=marks),
        _line(event, owner="eve", task_id="wait", extra={"note": "looks odd"}),
        _line(event, owner="eve", task_id="wait", run_id="another", extra=marks),
    ]
    monkeypatch.setattr(module, "airflow_api", lambda: SimpleNamespace(events=lambda _: log))
    assert module.who_set_going_again(run) == {"ada"}


def test_who_started_another_week_is_not_asked_for(module: ModuleType) -> None:
    assert "trigger_dag_run" not in module.SETS_GOING  # its line names no run


def test_a_run_that_somebody_set_going_whom_no_line_names_lets_nobody_approve(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Airflow 3.3 writes no line where several tasks are marked at once."""
    run = SimpleNamespace(dag_id=DAG, run_id=RUN, logical_date=WEEK, clear_number=2)
    asked_again = _line("post_clear_task_instances", owner="ada", extra={"task_ids": ["ask"]})
    lines = SimpleNamespace(events=lambda _: [_line("clear_dag_run"), asked_again])
    monkeypatch.setattr(module, "airflow_api", lambda: lines)
    assert module.who_set_going_again(run) == {"olga"}
    run.clear_number = 3
    for other in (  # that set nothing going, and hide nobody
        _backfill(WEEK - timedelta(days=7), WEEK),
        _line("patch_task_instance", extra={"note": "looks odd"}),
        _line("patch_dag_run", extra={"state": "failed"}),
        _line("bulk_dag_runs", run_id="~"),
    ):
        log = [_line("clear_dag_run"), asked_again, other]
        monkeypatch.setattr(
            module, "airflow_api", lambda log=log: SimpleNamespace(events=lambda _: log)
        )
        with pytest.raises(NotApproved, match="Delete the run"):
            module.who_set_going_again(run)
    log[-1] = _line("patch_task_instance", extra={"new_state": "success"})
    assert module.who_set_going_again(run) == {"olga"}


def test_a_backfill_is_of_no_run_that_names_its_week_in_a_field(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = SimpleNamespace(dag_id=DAG, run_id=RUN, logical_date=None, clear_number=1)
    log = [_backfill(WEEK - timedelta(days=7), WEEK), _line("clear_dag_run", owner="eve")]
    monkeypatch.setattr(module, "airflow_api", lambda: SimpleNamespace(events=lambda _: log))
    assert module.who_set_going_again(run) == {"eve"}


def test_people_are_distinguished_by_user_name_where_ids_are_numbers(bag: Any) -> None:
    assert bag.dags
    people = importlib.import_module("people_task")
    event = {
        "chosen_options": ["Approve"],
        "params_input": {"reason": "fine"},
        "responded_by_user": {"id": "3", "name": "ada"},
    }
    assert people.answer_in(event, "Approve").person == "ada"
    assert people.answer_in(event | {"responded_by_user": None}, "Approve").person is None


@pytest.mark.parametrize(("manager", "assigned"), [("x.SimpleAuthManager", 1), ("x.Fab", 0)])
def test_airflow_knows_whom_to_ask_only_where_its_ids_are_names(
    bag: Any, monkeypatch: pytest.MonkeyPatch, manager: str, assigned: int
) -> None:
    assert bag.dags
    people = importlib.import_module("people_task")
    loading = importlib.import_module("turnstile.programme.loading")
    settings = importlib.import_module("turnstile.settings").Settings.from_environment()
    monkeypatch.setenv("AIRFLOW__CORE__AUTH_MANAGER", manager)
    assignees = people.assigned(loading.load_programme("opal", settings.include))
    assert len(assignees or ()) == assigned
