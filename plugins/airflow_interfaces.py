"""Everything that is used of Airflow beyond its public interface, in one place.

`tests/dags/test_airflow_interfaces.py` says what breaks when Airflow changes one of these. The rest
of the plugins imports `airflow.sdk`, `airflow.plugins_manager`, `airflow.timetables` and providers
only. What only the API server has is imported inside the functions that it calls.
"""
# No `from __future__ import annotations`: FastAPI reads annotations of `current_user`'s users.

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow.configuration import conf
from airflow.sdk.exceptions import TaskAwaitingInput
from airflow.sdk.execution_time.hitl import HITLUser
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

from turnstile.operations.airflow_now import (
    NO_WORKER_YET,
    REQUEUED,
    UNDER_WAY,
    RunNow,
    TaskNow,
    latest,
    named_week,
    waiting_since,
)
from turnstile.operations.week_requests import KnownRun

if TYPE_CHECKING:
    from fastapi import FastAPI, Request

__all__ = ["HITLUser", "TaskAwaitingInput"]

RUN_TYPES: Any = ["scheduled", "backfill", "manual"]
"""By name: the SDK keeps its enum private."""


SENTENCE = "sentence"
"""Key of the XCom in which a task leaves what it has to say of its run."""
_NOTE_CHARACTERS = 1000


def write_note(dag_run: Any) -> None:  # noqa: ANN401 - a row of Airflow's database
    """Let the note of a run that has ended be its sentence; in the process that ended it.

    It goes with that process's own transaction, in a statement that no other note makes fail. A
    note that a person wrote stays; one that Airflow's dialog hands back as it was is none.
    """
    from airflow.models.dagrun import DagRunNote
    from airflow.models.taskinstance import TaskInstance
    from airflow.models.xcom import XComModel
    from sqlalchemy import inspect, select
    from sqlalchemy.dialects import postgresql, sqlite
    from sqlalchemy.orm import object_session

    session = object_session(dag_run)
    if session is None:
        return
    of_run = {"dag_id": dag_run.dag_id, "run_id": dag_run.run_id}
    said = select(XComModel.task_id, XComModel.value).filter_by(key=SENTENCE, **of_run)
    left = {row.task_id: _text(row.value) for row in session.execute(said)}
    state = _word(dag_run.state)
    ended = select(TaskInstance.task_id).filter_by(state=state, **of_run)
    words = [left[name] for name in session.scalars(ended) if name in left]
    silent = f"ended {state} and did not say how; the page Budget says where its week stands"
    note = (words[-1] if words else silent)[:_NOTE_CHARACTERS]
    if (handed_in := vars(dag_run).get("dag_run_note")) and inspect(handed_in).modified:
        if _is_as_it_was(handed_in):
            handed_in.content, handed_in.user_id = note, None
        return
    dialect = sqlite if session.get_bind().dialect.name == "sqlite" else postgresql
    session.execute(
        dialect.insert(DagRunNote)
        .values(dag_run_id=dag_run.id, content=note)
        .on_conflict_do_update(
            index_elements=["dag_run_id"],
            set_={"content": note},
            where=DagRunNote.user_id.is_(None),
        )
    )


def forget_note(dag_run: Any) -> None:  # noqa: ANN401 - a row of Airflow's database
    """Let a run that goes on again say nothing of how it ended before."""
    from airflow.models.dagrun import DagRunNote
    from sqlalchemy import delete
    from sqlalchemy.orm import object_session

    if (session := object_session(dag_run)) is not None:
        ours = DagRunNote.dag_run_id == dag_run.id, DagRunNote.user_id.is_(None)
        session.execute(delete(DagRunNote).where(*ours))


def _is_as_it_was(note: Any) -> bool:  # noqa: ANN401 - a row of Airflow's database
    """Return whether who marks a run hands its note back unchanged, as the dialog always does."""
    from sqlalchemy import inspect

    now = inspect(note).attrs
    who = now.user_id.history
    is_ours = [*who.deleted, *who.unchanged] in ([], [None])
    return is_ours and (not note.content or not now.content.history.has_changes())


def _text(value: Any) -> str:  # noqa: ANN401 - as a task sent it, or as JSON once more
    """Return a text that was left as XCom."""
    with suppress(ValueError, TypeError):
        return str(json.loads(value))
    return str(value)


def run_in_airflow(dag_id: str, run_id: str) -> RunNow | None:
    """Return the state of a run and of its tasks, asked from inside a task; None if unknown."""
    if RuntimeTaskInstance.get_dr_count(dag_id, run_ids=[run_id]) == 0:
        return None
    state = RuntimeTaskInstance.get_dagrun_state(dag_id, run_id)
    tasks = RuntimeTaskInstance.get_task_states(dag_id, run_ids=[run_id]).get(run_id, {})
    return RunNow(
        run_id,
        "",
        _word(state),
        {name: TaskNow(task_state and _word(task_state)) for name, task_state in tasks.items()},
    )


def _requeued(
    session: Any,  # noqa: ANN401 - of Airflow's database
    dag_ids: Iterable[str],
    run_ids: Iterable[str],
) -> dict[tuple[str, str], list[tuple[str, datetime]]]:
    """Return task and moment of each line which says that no worker took a task, by DAG and run."""
    from airflow.models.log import Log
    from sqlalchemy import select

    lines = select(Log.dag_id, Log.run_id, Log.task_id, Log.dttm).where(
        Log.event == REQUEUED, Log.dag_id.in_(tuple(dag_ids)), Log.run_id.in_(tuple(run_ids))
    )
    of_runs: dict[tuple[str, str], list[tuple[str, datetime]]] = {}
    for line in session.execute(lines):
        of_runs.setdefault((line.dag_id, line.run_id), []).append((line.task_id, line.dttm))
    return of_runs


def _word(state: Any) -> str:  # noqa: ANN401 - a text, or an enum whose text is not its value
    """Return a state as Airflow's database has it."""
    return str(getattr(state, "value", state))


def names_people_by_user_id() -> bool:
    """Return whether user ids are user names: so it is in the simple auth manager only."""
    return "Simple" in conf.get("core", "auth_manager", fallback="")


def set_gauge(name: str, value: int, labels: Mapping[str, str]) -> None:
    """Hand a figure to Airflow's own metrics; nothing happens where they are switched off."""
    from airflow.sdk.observability import stats

    stats.gauge(name, value, tags=dict(labels))


def address_of_ui() -> str:
    """Return where people find this Airflow, without a slash at the end."""
    return str(conf.get("api", "base_url", fallback="") or "http://localhost:8080").rstrip("/")


def current_user() -> Any:  # noqa: ANN401 - a FastAPI dependency
    """Return the dependency that yields the user of a request, or refuses it."""
    from airflow.api_fastapi.core_api.security import get_user

    return get_user


def may_read_dag(dag_id: str, user: Any) -> bool:  # noqa: ANN401 - Airflow's own
    """Return whether a user may read a DAG."""
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.models.resource_details import DagDetails

    details = DagDetails(id=dag_id)
    return bool(get_auth_manager().is_authorized_dag(method="GET", details=details, user=user))


def may_change_runs(dag_id: str, user: Any) -> bool:  # noqa: ANN401 - Airflow's own
    """Return whether a user may start, clear and mark the runs of a DAG."""
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.models.resource_details import (
        DagAccessEntity,
        DagDetails,
    )

    manager, details = get_auth_manager(), DagDetails(id=dag_id)
    entity = DagAccessEntity.RUN
    return all(
        manager.is_authorized_dag(method=method, access_entity=entity, details=details, user=user)
        for method in ("POST", "PUT")
    )


def paused_by_dag(dag_ids: Iterable[str]) -> dict[str, bool]:
    """Return the DAGs that Airflow has parsed, and whether each is paused; in the API server."""
    from airflow.models.dag import DagModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    known = select(DagModel.dag_id, DagModel.is_paused)
    known = known.where(DagModel.dag_id.in_(tuple(dag_ids)), DagModel.is_stale.is_(False))
    with create_session() as session:
        return {row.dag_id: row.is_paused for row in session.execute(known)}


def runs_now(
    asked: Mapping[str, Collection[str]], period_of: Callable[[str, datetime | None, str], str]
) -> dict[str, tuple[RunNow, ...]]:
    """Return the runs of some DAGs that live or are asked about by name; in the API server.

    Args:
        asked: names of runs by DAG.
        period_of: names the period of a run, from its DAG, logical date and the form's field.
    """
    from airflow.models.backfill import Backfill
    from airflow.models.dagrun import DagRun
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.session import create_session
    from sqlalchemy import or_, select

    named = {run_id for ids in asked.values() for run_id in ids}
    wanted = select(
        *(DagRun.dag_id, DagRun.run_id, DagRun.run_type, DagRun.state),
        *(DagRun.logical_date, DagRun.conf, DagRun.queued_at, DagRun.start_date),
        *(DagRun.backfill_id, Backfill.is_paused),
    )
    wanted = wanted.outerjoin(Backfill, Backfill.id == DagRun.backfill_id).where(
        DagRun.dag_id.in_(tuple(asked)),
        or_(DagRun.state.in_(tuple(UNDER_WAY)), DagRun.run_id.in_(tuple(named))),
    )
    columns = (TaskInstance.dag_id, TaskInstance.run_id, TaskInstance.task_id, TaskInstance.state)
    moments = ("scheduled_dttm", "queued_dttm", "start_date", "end_date")
    runs_by_dag: dict[str, list[RunNow]] = {dag_id: [] for dag_id in asked}
    with create_session() as session:
        runs = session.execute(wanted).all()
        ids = tuple({run.run_id for run in runs})
        rows = session.execute(
            select(*columns, *(getattr(TaskInstance, name) for name in moments)).where(
                TaskInstance.dag_id.in_(tuple(asked)), TaskInstance.run_id.in_(ids)
            )
        ).all()
        waits = any(_word(row.state) in NO_WORKER_YET for row in rows)
        requeued = _requeued(session, asked, ids) if waits else {}
    tasks: dict[tuple[str, str], dict[str, TaskNow]] = {}
    for row in rows:
        of_run = tasks.setdefault((row.dag_id, row.run_id), {})
        moved = latest(getattr(row, name) for name in moments)
        of_run[row.task_id] = TaskNow(row.state and _word(row.state), row.start_date, moved)
    for run in runs:
        week = named_week(run.run_type, run.conf)
        period = period_of(run.dag_id, run.logical_date, week)
        key = (run.dag_id, run.run_id)
        known = waiting_since(tasks.get(key, {}), requeued.get(key, ()))
        since = latest((run.queued_at, run.start_date))
        held, state = bool(run.is_paused), _word(run.state)
        of = run.backfill_id
        now = RunNow(run.run_id, period, state, known, since, held, run.logical_date, of)
        runs_by_dag[run.dag_id].append(now)
    return {dag_id: tuple(ones) for dag_id, ones in runs_by_dag.items()}


def last_heard(part: str) -> datetime | None:
    """Return when any `Scheduler` or `Triggerer` gave a sign of life last; in the API server."""
    from airflow.jobs.job import Job
    from airflow.utils.session import create_session
    from sqlalchemy import func, select

    beats = select(func.max(Job.latest_heartbeat)).where(Job.job_type == f"{part}Job")
    with create_session() as session:
        return session.scalar(beats)


def runs_by_start(dag_id: str) -> dict[datetime, KnownRun]:
    """Return the runs of a DAG by their logical date; in the API server."""
    from airflow.models.backfill import Backfill
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import select

    known = select(DagRun.logical_date, DagRun.run_id, DagRun.state, Backfill.is_paused)
    known = known.outerjoin(Backfill, Backfill.id == DagRun.backfill_id)  # canceling pauses it
    known = known.where(DagRun.dag_id == dag_id, DagRun.logical_date.is_not(None))
    with create_session() as session:
        return {
            row.logical_date: KnownRun(row.run_id, _word(row.state), bool(row.is_paused))
            for row in session.execute(known)
        }


def application_of_airflow() -> "FastAPI":
    """Return the API server's own application, of which the page is a part."""
    from airflow.api_fastapi.main import app

    return app


def credentials_of(request: "Request") -> dict[str, str]:
    """Return the headers that ask Airflow's own API in the name of a request's user."""
    from airflow.api_fastapi.auth.managers.base_auth_manager import COOKIE_NAME_JWT_TOKEN

    if "authorization" in request.headers:
        return {"Authorization": request.headers["authorization"]}
    return {"Authorization": f"Bearer {request.cookies.get(COOKIE_NAME_JWT_TOKEN, '')}"}
