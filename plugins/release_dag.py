"""Makes the Airflow DAG of a release programme; Airflow puts this folder on `sys.path`.

A new programme is one YAML file under `include/programmes/` and one short file under `dags/`:

    from release_dag import release_dag
    dag = release_dag("ferries", file=__file__)

The tasks are the steps of `turnstile.release.steps`, in their order, after a wait until the week is
final. Only identifiers travel between tasks. Each step re-checks in the ledger what it depends on,
so nothing here is a gate: marking, clearing or skipping a task neither draws nor publishes.
"""

from __future__ import annotations

import traceback
from datetime import datetime, timedelta
from inspect import cleandoc
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.python import PythonOperator
from airflow.providers.standard.triggers.temporal import DateTimeTrigger
from airflow.sdk import DAG, BaseOperator, CronDataIntervalTimetable, chain
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from approval_task import questions
from telling import RunOfWeek, told, told_failure

from turnstile.errors import TurnstileError
from turnstile.programme.loading import load_programme
from turnstile.release import steps
from turnstile.release.interval import final_at, week_of_interval
from turnstile.service_calendar import ServiceWeek
from turnstile.settings import Settings, system_clock

if TYPE_CHECKING:
    from airflow.sdk import Context

    from turnstile.programme.spec import Programme

LEDGER_POOL = "turnstile_ledger"
LEDGER_STEPS = frozenset({"reserve", "draw", "publish"})
RETRIES = 2
FIRST_YEAR = 2016
WAIT_FOR_FILES = timedelta(days=2)  # after the week is final; then `ingest` says what is missing
LOOK_FOR_FILES = timedelta(minutes=10)
BY_HAND = "a run by hand has no week; choose Backfill in the same dialog, from Monday to Monday"
_APPROVE = steps.STEPS.index("approve")  # people are asked just before
# Airflow's own backfill dialog opens only where a run by hand is allowed too; `wait` refuses those,
# because they have no week of their own. By name: the SDK keeps its enum private.
RUN_TYPES: Any = ["scheduled", "backfill", "manual"]


def release_dag(name: str, *, file: str) -> DAG:
    """Return the DAG that releases one programme every week.

    Args:
        name: programme, as in `include/programmes/<name>.yaml`.
        file: `__file__` of the DAG file, shown as the DAG's source.

    Raises:
        InputError: there is no such programme.
        ProgrammeError: its file breaks a rule.
    """
    programme = load_programme(name, Settings.from_environment().include)
    zone = programme.time.zone
    with DAG(
        dag_id=f"release_{name}",
        description=programme.title,
        doc_md=_programme_doc(programme),
        schedule=CronDataIntervalTimetable("0 0 * * MON", timezone=zone.key),
        start_date=datetime(FIRST_YEAR, 1, 1, tzinfo=zone),
        catchup=False,
        max_active_runs=1,
        allowed_run_types=RUN_TYPES,
        tags=["release", programme.family],
        default_args={"retries": RETRIES, "retry_delay": timedelta(minutes=2)},
    ) as dag:
        wait = WaitUntilFinal(task_id="wait", programme=name, doc_md=WaitUntilFinal.__doc__)
        before, after = steps.STEPS[:_APPROVE], steps.STEPS[_APPROVE:]
        chain(
            wait,
            *(_step_task(name, step) for step in before),
            *questions(programme),
            *(_step_task(name, step) for step in after),
        )
    dag.fileloc = file
    return dag


class WaitUntilFinal(BaseOperator):
    """Say what the run will do to the budget, then wait until the week is final and has files.

    The wait holds no worker. A week without files is let through two days after it became final:
    `ingest` then refuses it by name.
    """

    def __init__(self, *, programme: str, **operator: Any) -> None:  # noqa: ANN401 - Airflow's own
        super().__init__(**operator)
        self.programme = programme

    def execute(self, context: Context) -> str:
        """Tell what will happen; return it at once for a week that is ready.

        Raises:
            AirflowFailException: the run was started by hand.
        """
        dag_run = context.get("dag_run")
        if getattr(dag_run, "run_type", "") == "manual":
            raise AirflowFailException(BY_HAND)
        week, _ = self._week(context)
        starter = str(getattr(dag_run, "triggering_user_name", None) or "")
        run = RunOfWeek(
            Settings.from_environment(), self.programme, str(week), context.get("run_id", "")
        )
        note = run.begin(starter)
        self.log.info(note)
        return self._wait_or(note, context)

    def execute_complete(self, context: Context, event: object = None) -> str:  # noqa: ARG002 - Airflow passes it
        """Look again."""
        return self._wait_or("waited", context)

    def _wait_or(self, answer: str, context: Context) -> str:
        """Defer until the next moment to look, or return the answer."""
        week, programme = self._week(context)
        final = final_at(week, programme.schedule, zone=programme.time.zone)
        now = system_clock()
        if now < final:
            self.defer(trigger=DateTimeTrigger(moment=final), method_name="execute_complete")
        if now < final + WAIT_FOR_FILES and not _has_files(programme, week):
            moment = now + LOOK_FOR_FILES
            self.defer(trigger=DateTimeTrigger(moment=moment), method_name="execute_complete")
        return answer

    def _week(self, context: Context) -> tuple[ServiceWeek, Programme]:
        """Return the run's week, and the programme."""
        programme = load_programme(self.programme, Settings.from_environment().include)
        interval = (context["data_interval_start"], context["data_interval_end"])
        week = week_of_interval(*interval, zone=programme.time.zone, now=system_clock())
        return week, programme


def _has_files(programme: Programme, week: ServiceWeek) -> bool:
    """Tell whether anything has landed for a week."""
    pattern = programme.source.landing.replace("{week}", str(week))
    return any(Settings.from_environment().landing.glob(pattern))


def run_step(
    step: str,
    programme: str,
    data_interval_start: datetime | None = None,
    data_interval_end: datetime | None = None,
    run_id: str = "",
) -> str:
    """Run one step of the week that the run's data interval stands for; return its identifier.

    Raises:
        AirflowFailException: the step refused, or failed in a way that a retry cannot mend.
        AirflowException: the infrastructure failed; Airflow tries again.
    """
    settings = Settings.from_environment()
    run: RunOfWeek | None = None
    try:
        zone = load_programme(programme, settings.include).time.zone
        week = week_of_interval(
            data_interval_start, data_interval_end, zone=zone, now=system_clock()
        )
        run = RunOfWeek(settings, programme, str(week), run_id)
        answer = steps.step_named(step)(programme, str(week), 0)
    except TurnstileError as refusal:
        kind = type(refusal).__name__
        failure: AirflowException = AirflowFailException(str(refusal))
    except Exception as error:  # noqa: BLE001 - whatever it is, its text may hold a raw value
        kind = type(error).__name__
        failure = _failure_without_values(error, settings, f"{programme}-{step}")
    else:
        told(run, step)
        return answer
    if run is not None and isinstance(failure, AirflowFailException):
        told_failure(run, step, kind, str(failure))
    # Raised here, not in a handler: otherwise the first exception would travel in __context__.
    raise failure


def _step_task(programme: str, step: str) -> PythonOperator:
    """Return the task of one step; a draw is never retried, what touches the ledger is pooled."""
    return PythonOperator(
        task_id=step,
        python_callable=run_step,
        op_kwargs={"step": step, "programme": programme},
        doc_md=cleandoc(steps.step_named(step).__doc__ or ""),
        retries=0 if step == "draw" else RETRIES,
        pool=LEDGER_POOL if step in LEDGER_STEPS else "default_pool",
        show_return_value_in_logs=False,
    )


def _failure_without_values(error: Exception, settings: Settings, name: str) -> AirflowException:
    """Keep the whole story in the private zone, and return a failure that tells its kind only."""
    from sqlalchemy.exc import InterfaceError, OperationalError

    report = settings.private / "failures" / f"{name}-{system_clock():%Y%m%dT%H%M%S}.txt"
    report.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    report.write_text("".join(traceback.format_exception(error)), encoding="utf-8")
    message = f"{name}: {type(error).__name__}; an operator of the private zone reads {report.name}"
    if isinstance(error, OSError | OperationalError | InterfaceError):
        return AirflowException(message)
    return AirflowFailException(message)


def _programme_doc(programme: Programme) -> str:
    """Return the DAG's page: what is released, by which promise, and what to do when it stops."""
    tables = "\n".join(f"- `{table.name}` by {', '.join(table.by)}" for table in programme.tables)
    return f"""\
# {programme.title}

{programme.description}

One run is one service week, Monday to Monday in {programme.time.zone.key}. The promise is
`include/programmes/{programme.name}.yaml`; its digest is `{programme.digest[:12]}`.

{tables}

A run that failed may be cleared: a week that is sealed re-issues its bytes, uncharged.
`turnstile ledger balance` shows what is spent and what is left.
"""
