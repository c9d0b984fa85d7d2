"""One step of a release as an Airflow task: an identifier comes back, errors hold no value."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from inspect import cleandoc
from typing import Any, TypeVar

from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import Asset
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from airflow_interfaces import SENTENCE
from period_of_run import programme_and_period, revision_of
from run_reports import LAST_STEP, RunOfWeek, report_failure, report_resumed, report_success

from turnstile.errors import AirflowAway, NotFinal, StoreError, TurnstileError
from turnstile.operations.airflow_names import ZONES, asset_of
from turnstile.pipeline import steps
from turnstile.pipeline.draw.drawing_apart import draw_apart
from turnstile.settings import Settings, system_clock

T = TypeVar("T")
_log = logging.getLogger("turnstile")
LEDGER_POOL = "turnstile_ledger"
LEDGER_STEPS = frozenset({"reserve", "draw", "publish"})
PRIVATE_QUEUE = "private"
"""Of tasks that see raw data: under Celery only the workers of this queue have a private zone."""
RETRIES = 2
LASTS_AT_MOST = timedelta(hours=12)
"""Of a step alone: a wait and a question would be ended with it, however long they may last."""
_DIGEST = {"draw": "sealed_digest", "publish": "manifest_digest"}
"""What these steps return; nothing that was computed from rows stands in an event."""


def step_task(programme: str, step: str) -> PythonOperator:
    """Return the task of one step; a draw is never retried, what touches the ledger is pooled.

    A draw works in a process of its own: clearing or killing its task does not take it down.
    """
    return PythonOperator(
        task_id=step,
        python_callable=run_step,
        op_kwargs={"step": step, "programme": programme},
        doc_md=cleandoc(steps.step_named(step).__doc__ or ""),
        retries=0 if step == "draw" else RETRIES,
        execution_timeout=LASTS_AT_MOST,
        pool=LEDGER_POOL if step in LEDGER_STEPS else "default_pool",
        queue=PRIVATE_QUEUE if step in steps.PRIVATE_STEPS else "default",
        show_return_value_in_logs=False,
        inlets=_assets(programme, step, 0),
        outlets=_assets(programme, step, 1),
    )


def _assets(programme: str, step: str, end: int) -> list[Asset]:
    """Return the asset of the zone that a step reads (0) or writes (1), if it goes between zones.

    Its events say which week came, and nothing of it: another DAG may wait for `opal_public`.
    """
    zones = [ZONES[step][end]] if step in ZONES else []
    return [Asset(name=asset_of(programme, zone), group=zone) for zone in zones]


def run_step(step: str, programme: str, **context: Any) -> str:  # noqa: ANN401 - Airflow's own
    """Run one step of the week that the run stands for; return its identifier.

    Raises:
        AirflowFailException: the step refused, or failed in a way that a retry cannot mend.
        AirflowException: the infrastructure failed; Airflow tries again.
    """

    def act(run: RunOfWeek) -> str:
        report_resumed(run, step)
        if step == steps.ingest.__name__:
            _until_quiet(run)
        act_on = draw_apart if step == steps.draw.__name__ else steps.step_named(step)
        answer = act_on(programme, run.week, run.revision)
        report_success(run, step)
        _tell_consumers(context.get("outlet_events"), run, step, answer)
        _log.info("%s", _of_step(run, step))
        if step == LAST_STEP:
            leave_sentence(context, f"{run.key} is public, and its audit passed")
        return answer

    return of_run(programme, step, context, act)


def _until_quiet(run: RunOfWeek) -> None:
    """Wait until nobody has written to the files for a minute; nobody waits before a correction.

    Raises:
        NotFinal: somebody wrote to them meanwhile.
    """
    from turnstile.pipeline.landing.arrival import QUIET_FOR

    if run.is_sealed() or (quiet_at := run.arrival().complete_at) is None:
        return  # what lacks, the step itself says
    if (rest := quiet_at - system_clock()) > timedelta():
        _log.info("waiting until nobody has written to the files for a minute")
        time.sleep(min(rest, QUIET_FOR).total_seconds())
        if not (now := run.arrival()).is_complete(system_clock()):
            raise NotFinal(f"{run.key}: {now}; then clear this run, 0 charged")


def _of_step(run: RunOfWeek, step: str) -> str:
    """Say that a step is done, how many of how many that is, and what comes next."""
    number = steps.STEPS.index(step) + 1
    told = f"{run.key}: {step} is done, {number} of {len(steps.STEPS)} steps"
    if step == LAST_STEP:
        return told
    following = steps.STEPS[number]
    return f"{told}; next is {following}: {cleandoc(steps.step_named(following).__doc__ or '')}"


def leave_sentence(context: Mapping[str, Any], sentence: str) -> None:
    """Leave what a task has to say of its run, for the run's note; without it, the run goes on."""
    task_instance = context.get("ti")
    if task_instance is not None:
        with suppress(Exception):
            task_instance.xcom_push(SENTENCE, sentence)


def _tell_consumers(events: Any, run: RunOfWeek, step: str, answer: str) -> None:  # noqa: ANN401 - Airflow's own
    """Let the events of a step's assets name week, revision and digest of what came there."""
    said: dict[str, str | int] = {"week": run.week, "revision": run.revision}
    if step in _DIGEST:
        said[_DIGEST[step]] = answer
    made = () if events is None else _assets(run.programme, step, 1)
    for asset in made:
        events[asset].extra = said


def of_run(
    programme: str, task: str, context: Mapping[str, Any], act: Callable[[RunOfWeek], T]
) -> T:
    """Do something for a run's week; whatever goes wrong is reported, without a value.

    Raises:
        AirflowFailException: it refused, or failed in a way that a retry cannot mend.
        AirflowException: the infrastructure failed; Airflow tries again.
    """
    settings = Settings.from_environment()
    run: RunOfWeek | None = None
    try:
        promised, period = programme_and_period(programme, context)
        revision = revision_of(promised, period)
        run_id = str(context.get("run_id") or "")
        run = RunOfWeek(settings, programme, str(period), run_id, revision)
        return act(run)
    except Exception as error:  # noqa: BLE001 - whatever it is, its text may hold a raw value
        kind = type(error).__name__
        failure = failure_without_values(error, settings, f"{programme}-{task}")
    _log.error("%s", failure)  # the log view folds the error that is raised
    if isinstance(failure, AirflowFailException) or _is_last_try(context):
        leave_sentence(context, f"{task}: {failure}")
        if run is not None:
            report_failure(run, task, kind, str(failure))
    # Raised here, not in a handler: otherwise the first exception would travel in __context__.
    raise failure


def _is_last_try(context: Mapping[str, Any]) -> bool:
    """Whether Airflow tries a task no more, so that an outage has stopped the run."""
    task_instance = context.get("ti")
    return task_instance is not None and task_instance.try_number > task_instance.max_tries


def failure_without_values(error: Exception, settings: Settings, name: str) -> AirflowException:
    """Return a failure that reveals no value: our own sentence, or the kind only.

    All about what is not our own is kept in the private zone.
    """
    if isinstance(error, StoreError | AirflowAway):
        return AirflowException(str(error))  # it may be back in a moment
    if isinstance(error, TurnstileError):
        return AirflowFailException(str(error))
    from sqlalchemy.exc import InterfaceError, OperationalError

    report = settings.private / "failures" / f"{name}-{system_clock():%Y%m%dT%H%M%S}.txt"
    told = f"an operator of the private zone reads {report.name}"
    try:
        report.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        report.write_text("".join(traceback.format_exception(error)), encoding="utf-8")
    except OSError as refused:  # raised on from here, it would carry the first one along
        told = f"and no report could be written to the private zone ({refused.strerror})"
    message = f"{name}: {type(error).__name__}; {told}"
    if isinstance(error, OSError | OperationalError | InterfaceError):
        return AirflowException(message)
    return AirflowFailException(message)
