"""What is used of Airflow beyond its public interface: this says what the next version breaks."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import select

ROOT = Path(__file__).resolve().parents[2]
PUBLIC = {
    "airflow.listeners",
    "airflow.sdk",
    "airflow.sdk.exceptions",
    "airflow.plugins_manager",
    "airflow.timetables.base",
}


@pytest.fixture
def interfaces(bag: Any) -> ModuleType:
    assert bag.dags
    return importlib.import_module("airflow_interfaces")


def _imports(path: Path) -> set[str]:
    """Return the modules of Airflow that a file imports, at its top or inside a function."""
    modules = re.findall(
        r"^\s*(?:from|import) (airflow(?:\.\w+)*)\s", path.read_text(), re.MULTILINE
    )
    return {name for name in modules if not name.startswith("airflow.providers.standard")}


def test_only_one_module_uses_what_is_not_public() -> None:
    beyond = {
        path.name: _imports(path) - PUBLIC
        for folder in ("plugins", "dags")
        for path in (ROOT / folder).glob("*.py")
    }
    assert beyond.pop("airflow_interfaces.py")  # the one, and the search finds it
    assert {name: modules for name, modules in beyond.items() if modules} == {
        "service_periods.py": {"airflow.utils.types"}  # a type, for the checker alone
    }


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("get_dr_count", {"dag_id", "run_ids"}),
        ("get_dagrun_state", {"dag_id", "run_id"}),
        ("get_task_states", {"dag_id", "run_ids"}),
    ],
)
def test_a_task_may_ask_for_runs_and_their_tasks(
    interfaces: ModuleType, name: str, arguments: set[str]
) -> None:
    asked = getattr(interfaces.RuntimeTaskInstance, name)
    assert arguments <= set(inspect.signature(asked).parameters)


def test_states_are_reported_as_the_database_has_them(
    interfaces: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    generated = importlib.import_module("airflow.sdk.api.datamodels._generated")
    state = importlib.import_module("airflow.utils.state")
    assert interfaces._word(state.DagRunState.RUNNING) == "running"
    assert interfaces._word(generated.TaskInstanceState.AWAITING_INPUT) == "awaiting_input"
    asked = interfaces.RuntimeTaskInstance
    monkeypatch.setattr(asked, "get_dr_count", lambda *_, **__: 1)
    monkeypatch.setattr(asked, "get_dagrun_state", lambda *_: state.DagRunState.RUNNING)
    tasks = {"a": {"wait": "success", "draw": None}}
    monkeypatch.setattr(asked, "get_task_states", lambda *_, **__: tasks)
    told = interfaces.run_in_airflow("x", "a")
    assert (told.run_id, told.state) == ("a", "running")
    assert {name: task.state for name, task in told.tasks.items()} == tasks["a"]
    monkeypatch.setattr(asked, "get_dr_count", lambda *_, **__: 0)
    assert interfaces.run_in_airflow("x", "a") is None


def test_a_waiting_question_carries_what_it_is_about(interfaces: ModuleType) -> None:
    assert "kwargs" in inspect.signature(interfaces.TaskAwaitingInput.__init__).parameters or (
        hasattr(interfaces.TaskAwaitingInput, "kwargs")
        or "kwargs" in inspect.getsource(interfaces.TaskAwaitingInput)
    )
    assert set(interfaces.HITLUser.__annotations__) >= {"id", "name"}


def test_rights_users_and_runs_are_where_the_page_looks_for_them(
    interfaces: ModuleType, auth: Any
) -> None:
    assert callable(interfaces.current_user())
    user_of = importlib.import_module("airflow.api_fastapi.auth.managers.simple.user")
    viewer, operator = (
        user_of.SimpleAuthManagerUser(username=role, role=role) for role in ("viewer", "op")
    )
    assert auth is not None
    assert interfaces.may_read_dag("release_opal", viewer)
    assert not interfaces.may_change_runs("release_opal", viewer)
    assert interfaces.may_change_runs("release_opal", operator)
    assert interfaces.paused_by_dag(["release_opal"]) == {}
    assert interfaces.names_people_by_user_id()
    named = {"release_opal": {"a"}}
    assert interfaces.runs_now(named, lambda *_: "2016-W30") == {"release_opal": ()}


def test_the_page_sees_runs_that_live_and_those_it_names_each_with_its_tasks(
    interfaces: ModuleType, auth: Any
) -> None:
    assert auth is not None
    session = importlib.import_module("airflow.utils.session")
    engine = importlib.import_module("airflow.settings").engine
    importlib.import_module("airflow.models.dag_version").DagVersion.metadata.create_all(engine)
    starts = datetime(2016, 7, 24, 14, tzinfo=UTC)
    of_run = {"run_after": starts, "queued_at": starts}
    sent = (
        ("release_opal", "lives", "queued", {"week": "2016-W31"}),
        ("release_opal", "by_its_date", "queued", {"week": "2016-W31"}),
        ("release_opal", "named", "failed", {}),
        ("release_opal", "old", "failed", {}),
        ("release_itms", "named", "success", {}),
    )
    dag_run = importlib.import_module("airflow.models.dagrun").DagRun
    with session.create_session() as opened:
        for n, (dag_id, run_id, state, conf) in enumerate(sent):
            at = starts + timedelta(seconds=n)  # one run of a DAG at one instant
            kind = "backfill" if run_id == "by_its_date" else "manual"
            names = {"dag_id": dag_id, "run_id": run_id, "run_type": kind}
            run = dag_run(logical_date=at, conf=conf, **names, **of_run)
            run._state = state
            opened.add(run)
    try:
        told = interfaces.runs_now(
            {"release_opal": {"named"}}, lambda _, starts, week: week or f"{starts:%G-W%V}"
        )
    finally:
        with session.create_session() as opened:
            opened.query(dag_run).delete()
    seen = {
        (reported_run.run_id, reported_run.period, reported_run.state)
        for reported_run in told.pop("release_opal")
    }
    assert seen == {
        ("lives", "2016-W31", "queued"),
        ("by_its_date", "2016-W29", "queued"),
        ("named", "2016-W29", "failed"),
    }
    assert told == {}


def test_the_page_sees_since_when_a_task_that_is_queued_anew_waits(
    interfaces: ModuleType, run_tables: tuple[Any, Any]
) -> None:
    """Airflow's scheduler makes its moments those of the last time; only its log has the others."""
    session, models = run_tables
    scheduler = importlib.import_module("airflow.jobs.scheduler_job_runner")
    log = importlib.import_module("airflow.models.log").Log
    task = importlib.import_module("airflow.models.taskinstance").TaskInstance
    at = datetime(2016, 7, 24, 14, tzinfo=UTC)
    key = {"dag_id": "release_opal", "run_id": "run"}
    with session.create_session() as opened:
        run = models.DagRun(logical_date=at, run_after=at, run_type="manual", queued_at=at, **key)
        run._state = "running"
        opened.add(run)
        opened.flush()
        of_task = {"id": uuid4(), "task_id": "draw", "state": "queued", "map_index": -1, **key}
        of_task |= {"pool": "p", "pool_slots": 1, "queued_dttm": at + timedelta(minutes=19)}
        opened.execute(task.__table__.insert(), [of_task])
        for minutes in (5, 12, 19):
            line = log(scheduler.TASK_STUCK_IN_QUEUED_RESCHEDULE_EVENT, task_id="draw", **key)
            line.dttm = at + timedelta(minutes=minutes)
            opened.add(line)
    try:
        told = interfaces.runs_now({"release_opal": set()}, lambda *_: "2016-W30")
    finally:
        with session.create_session() as opened:
            opened.query(log).delete()
    (seen,) = told["release_opal"]
    assert seen.tasks["draw"].moved == at + timedelta(minutes=5)


def test_the_page_hears_when_scheduler_and_triggerer_lived_last(
    interfaces: ModuleType, auth: Any
) -> None:
    assert auth is not None
    job = importlib.import_module("airflow.jobs.job").Job
    session = importlib.import_module("airflow.utils.session")
    assert interfaces.last_heard("Scheduler") is None
    at = datetime(2026, 11, 25, 12, tzinfo=UTC)
    beats = {"SchedulerJob": at, "TriggererJob": at + timedelta(hours=1)}
    with session.create_session() as opened:
        opened.add_all(job(job_type=kind, latest_heartbeat=beat) for kind, beat in beats.items())
    try:
        assert interfaces.last_heard("Scheduler") == at
        assert interfaces.last_heard("Triggerer") == at + timedelta(hours=1)
    finally:
        with session.create_session() as opened:
            opened.query(job).delete()


@pytest.fixture
def run_tables(auth: Any) -> Iterator[tuple[Any, Any]]:
    """Airflow's sessions and its models of runs; no run, task or note is left afterwards."""
    assert auth is not None
    session = importlib.import_module("airflow.utils.session")
    models = importlib.import_module("airflow.models.dagrun")
    models.DagRun.metadata.create_all(importlib.import_module("airflow.settings").engine)
    xcom = importlib.import_module("airflow.models.xcom").XComModel
    task = importlib.import_module("airflow.models.taskinstance").TaskInstance
    yield session, models
    with session.create_session() as opened:
        for table in (xcom, task, models.DagRunNote, models.DagRun):
            opened.execute(table.__table__.delete())


@pytest.mark.parametrize(
    ("said", "by", "note"),
    [
        ({"ingest": "old", "draw": "draw: it died"}, None, "draw: it died"),
        ({"ingest": "old"}, None, "ended failed and did not say how"),
        ({"draw": "x" * 2000}, None, "x" * 1000),
        ({"draw": "draw: it died"}, "ada", "hers"),
    ],
)
def test_the_note_of_a_run_is_its_last_sentence_unless_a_person_wrote_one(
    said: dict[str, str],
    by: str | None,
    note: str,
    interfaces: ModuleType,
    run_tables: tuple[Any, Any],
) -> None:
    session, models = run_tables
    at = datetime(2016, 7, 24, 14, tzinfo=UTC)
    key = {"dag_id": "release_opal", "run_id": "run"}
    xcom = importlib.import_module("airflow.models.xcom").XComModel
    task = importlib.import_module("airflow.models.taskinstance").TaskInstance
    with session.create_session() as opened:
        run = models.DagRun(logical_date=at, run_after=at, run_type="manual", **key)
        run._state = "failed"
        opened.add(run)
        opened.flush()
        shared = {"map_index": -1, "pool": "p", "pool_slots": 1, **key}
        tasks = [
            shared | {"id": uuid4(), "task_id": name, "state": state}
            for name, state in (("ingest", "success"), ("draw", "failed"))
        ]
        opened.execute(task.__table__.insert(), tasks)
        left = {"dag_run_id": run.id, "map_index": -1, "key": "sentence", **key}
        texts = [left | {"task_id": name, "value": text} for name, text in said.items()]
        opened.execute(xcom.__table__.insert(), texts)
        if by:
            run.note = ("hers", by)
            opened.flush()
        for _ in range(2):  # cleared, it ends once more
            interfaces.write_note(run)
    with session.create_session() as opened:
        (shown,) = opened.scalars(select(models.DagRunNote.content))
    assert shown.startswith(note)
    assert len(shown) <= 1000


@pytest.mark.parametrize(
    ("before", "typed", "note"),
    [
        (None, None, ("ended failed and did not say how", None)),
        ("ours", "ours", ("ended failed and did not say how", None)),
        (None, "because", ("because", "ada")),
        ("ours", "ours, because", ("ours, because", "ada")),
    ],
)
def test_a_run_can_be_marked_in_airflows_dialog_which_hands_its_note_back(
    before: str | None,
    typed: str | None,
    note: tuple[str, str | None],
    interfaces: ModuleType,
    run_tables: tuple[Any, Any],
) -> None:
    """The dialog hands the note back with the state: 409, or a note that no later end replaced."""
    session, models = run_tables
    service = importlib.import_module("airflow.api_fastapi.core_api.services.public.dag_run")
    at = datetime(2016, 7, 24, 14, tzinfo=UTC)
    key = {"dag_id": "release_opal", "run_id": "run"}
    ada = SimpleNamespace(get_id=lambda: "ada")

    def shown() -> list[tuple[str, str | None]]:
        with session.create_session() as opened:
            rows = opened.execute(select(models.DagRunNote.content, models.DagRunNote.user_id))
            return [(row.content.partition(";")[0], row.user_id) for row in rows]

    with session.create_session() as opened:
        run = models.DagRun(logical_date=at, run_after=at, run_type="manual", **key)
        run._state = "running"
        opened.add(run)
        if before:
            run.note = (before, None)
    with session.create_session() as opened:
        run = opened.scalar(select(models.DagRun))
        service.patch_dag_run_note(dag_run=run, note=typed, user=ada)
        run._state = "failed"
        interfaces.write_note(run)
    assert shown() == [note]
    with session.create_session() as opened:  # cleared: it begins again
        interfaces.forget_note(opened.scalar(select(models.DagRun)))
    assert shown() == ([note] if note[1] else [])
