"""A step in a task: its identifier travels, a refusal is told once, and no raw value leaves."""

from __future__ import annotations

import importlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from turnstile.errors import BudgetExceeded
from turnstile.pipeline import steps

SYDNEY = ZoneInfo("Australia/Sydney")
START = datetime(2016, 7, 25, tzinfo=SYDNEY).astimezone(UTC)
END = START + timedelta(weeks=1)


@pytest.fixture
def wait_task(bag: Any) -> ModuleType:
    assert bag.dags
    return importlib.import_module("wait_task")


@pytest.fixture
def exceptions(bag: Any) -> ModuleType:
    assert bag.dags
    return importlib.import_module("airflow.sdk.exceptions")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TURNSTILE_HOME", str(tmp_path))
    return tmp_path


def _step_that_raises(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(programme: str, week: str, revision: int) -> str:
        assert (programme, week, revision) == ("opal", "2016-W30", 0)
        raise error

    monkeypatch.setattr(steps, "step_named", lambda _: fail)


def test_only_an_identifier_travels(step_task: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "step_named", lambda name: lambda *key: f"{name}:{key}")
    answer = step_task.run_step("count", "opal", START, END)
    assert answer == "count:('opal', '2016-W30', 0)"


def test_a_refusal_is_final_and_carries_its_sentence(
    step_task: ModuleType, exceptions: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    _step_that_raises(monkeypatch, BudgetExceeded("asks for 2, 1 is left"))
    with pytest.raises(exceptions.AirflowFailException, match="asks for 2, 1 is left"):
        step_task.run_step("reserve", "opal", START, END)


def test_no_raw_value_travels_in_an_unforeseen_failure(
    step_task: ModuleType, exceptions: ModuleType, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    _step_that_raises(monkeypatch, ValueError("could not convert card 3085220012345678"))
    with pytest.raises(exceptions.AirflowFailException) as caught:
        step_task.run_step("ingest", "opal", START, END)
    assert "3085220012345678" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    (report,) = (home / "private/failures").iterdir()
    assert "3085220012345678" in report.read_text(encoding="utf-8")
    assert report.name in str(caught.value)


def test_a_fault_of_the_infrastructure_is_tried_again(
    step_task: ModuleType, exceptions: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    _step_that_raises(monkeypatch, ConnectionResetError("10.0.0.1"))
    with pytest.raises(exceptions.AirflowException) as caught:
        step_task.run_step("ingest", "opal", START, END)
    assert not isinstance(caught.value, exceptions.AirflowFailException)
    assert "10.0.0.1" not in str(caught.value)


def test_a_run_that_stands_for_no_week_is_refused(
    step_task: ModuleType, exceptions: ModuleType
) -> None:
    with pytest.raises(exceptions.AirflowFailException, match="backfill"):
        step_task.run_step("ingest", "opal")


def _wait(wait_task: ModuleType, now: datetime, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("wait_task", "period_of_run"):
        monkeypatch.setattr(importlib.import_module(name), "system_clock", lambda: now)
    task = wait_task.WaitUntilFinal(task_id="wait", programme="opal")
    context = {"data_interval_start": START, "data_interval_end": END, "run_id": "backfill__1"}
    return task.execute(context)


def test_a_week_that_is_over_but_not_final_waits_without_a_worker(
    wait_task: ModuleType, exceptions: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(exceptions.TaskDeferred) as deferred:
        _wait(wait_task, END + timedelta(minutes=1), monkeypatch)
    assert deferred.value.trigger.moment == datetime(2016, 8, 1, 10, tzinfo=SYDNEY)


def test_a_final_week_without_files_waits_for_them_and_not_for_ever(
    wait_task: ModuleType, exceptions: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(exceptions.TaskDeferred) as deferred:
        _wait(wait_task, END + timedelta(days=1), monkeypatch)
    assert deferred.value.trigger.moment == END + timedelta(days=1, minutes=10)
    assert "never drawn" in _wait(wait_task, END + timedelta(days=3), monkeypatch)


def test_a_final_week_with_files_goes_on_at_once_and_says_what_it_costs(
    wait_task: ModuleType, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    landed = home / "landing/opal/2016-W30/opal.csv"
    landed.parent.mkdir(parents=True)
    landed.touch()
    note = _wait(wait_task, END + timedelta(days=1), monkeypatch)
    assert note.startswith("opal/2016-W30/r0: never drawn: once its rows pass validation, ")
    (line,) = (home / "operations/journal/opal/2016-W30.jsonl").read_text().splitlines()
    assert '"run_id": "backfill__1"' in line
    assert note in line


def test_a_run_by_hand_is_refused_before_anything(
    wait_task: ModuleType, exceptions: ModuleType, home: Path
) -> None:
    task = wait_task.WaitUntilFinal(task_id="wait", programme="opal")
    by_hand = SimpleNamespace(run_type="manual", triggering_user_name="admin")
    interval = {"data_interval_start": START, "data_interval_end": END, "run_id": "manual__1"}
    with pytest.raises(exceptions.AirflowFailException, match="choose Backfill"):
        task.execute({"dag_run": by_hand, **interval})
    assert not (home / "operations").exists()
