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

from turnstile.errors import TurnstileError
from turnstile.programme.loading import load_programme
from turnstile.release import steps
from turnstile.release.interval import final_at, week_of_interval
from turnstile.settings import Settings, system_clock

if TYPE_CHECKING:
    from airflow.sdk import Context

    from turnstile.programme.spec import Programme

LEDGER_POOL = "turnstile_ledger"
LEDGER_STEPS = frozenset({"reserve", "draw", "publish"})
RETRIES = 2
FIRST_YEAR = 2016
# A run by hand has no week of its own. By name: the SDK keeps its enum private.
RUN_TYPES: Any = ["scheduled", "backfill"]


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
        chain(wait, *(_step_task(name, step) for step in steps.STEPS))
    dag.fileloc = file
    return dag


class WaitUntilFinal(BaseOperator):
    """Wait, without holding a worker, until the week is over and its late rows are in."""

    def __init__(self, *, programme: str, **operator: Any) -> None:  # noqa: ANN401 - Airflow's own
        super().__init__(**operator)
        self.programme = programme

    def execute(self, context: Context) -> None:
        """Return at once for a week that is final already, else let a trigger wait."""
        programme = load_programme(self.programme, Settings.from_environment().include)
        zone, end = programme.time.zone, context["data_interval_end"]
        week = week_of_interval(context["data_interval_start"], end, zone=zone, now=system_clock())
        moment = final_at(week, programme.schedule, zone=zone)
        if system_clock() < moment:
            trigger = DateTimeTrigger(moment=moment)
            self.defer(trigger=trigger, method_name="execute_complete")

    def execute_complete(self, context: Context, event: object = None) -> None:
        """Go on: the moment has come."""


def run_step(
    step: str,
    programme: str,
    data_interval_start: datetime | None = None,
    data_interval_end: datetime | None = None,
) -> str:
    """Run one step of the week that the run's data interval stands for; return its identifier.

    Raises:
        AirflowFailException: the step refused, or failed in a way that a retry cannot mend.
        AirflowException: the infrastructure failed; Airflow tries again.
    """
    settings = Settings.from_environment()
    try:
        zone = load_programme(programme, settings.include).time.zone
        week = week_of_interval(
            data_interval_start, data_interval_end, zone=zone, now=system_clock()
        )
        return steps.step_named(step)(programme, str(week), 0)
    except TurnstileError as refusal:
        failure: AirflowException = AirflowFailException(str(refusal))
    except Exception as error:  # noqa: BLE001 - whatever it is, its text may hold a raw value
        failure = _failure_without_values(error, settings, f"{programme}-{step}")
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
