"""Makes the Airflow DAG of a release programme; Airflow puts this folder on `sys.path`.

A new programme is one YAML file under `include/programmes/`: `dags/release_programmes.py` gives it
its DAG. The tasks are the steps of `turnstile.pipeline.steps`, in their order, after a wait until
the period is final. Only identifiers travel between tasks. Each step re-checks in the ledger what
it depends on, so nothing here is a gate: marking, clearing or skipping a task neither draws nor
publishes.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, CronDataIntervalTimetable, chain, get_parsing_context
from approval_task import questions
from revision_task import revision_questions
from service_periods import ServicePeriods
from step_task import RETRIES, step_task
from wait_task import WaitUntilFinal

from turnstile.errors import TurnstileError
from turnstile.pipeline import steps
from turnstile.programme.loading import load_programme, programme_files
from turnstile.programme.people import holders
from turnstile.settings import Settings

if TYPE_CHECKING:
    from turnstile.programme.spec import Programme

FIRST_YEAR = 2016
_APPROVE = steps.STEPS.index("approve")  # people are asked just before
# Airflow's own backfill dialog opens only where a run by hand is allowed too; `wait` refuses those,
# because they have no week of their own. By name: the SDK keeps its enum private.
RUN_TYPES: Any = ["scheduled", "backfill", "manual"]


def release_dag(name: str, *, file: str) -> DAG:
    """Return the DAG that releases one programme every week, or every period of its own.

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
        dag_id=_dag_id(name),
        description=programme.title,
        doc_md=_programme_doc(programme),
        schedule=_timetable(programme),
        start_date=datetime(FIRST_YEAR, 1, 1, tzinfo=zone),
        catchup=False,
        max_active_runs=1,
        allowed_run_types=RUN_TYPES,
        auto_register=False,  # the DAG files do it: one that is half made must not be taken up
        tags=["release", programme.family],
        default_args={"retries": RETRIES, "retry_delay": timedelta(minutes=2)},
    ) as dag:
        wait = WaitUntilFinal(task_id="wait", programme=name, doc_md=WaitUntilFinal.__doc__)
        before, after = steps.STEPS[:_APPROVE], steps.STEPS[_APPROVE:]
        chain(
            wait,
            *revision_questions(programme),
            *(step_task(name, step) for step in before),
            *questions(programme),
            *(step_task(name, step) for step in after),
        )
    dag.fileloc = file
    return dag


def dags_without_a_file(file: str) -> dict[str, DAG]:
    """Return the DAGs of the programmes that have no DAG file of their own, by their names.

    A programme whose file breaks a rule has none; `broken_programmes` tells why.

    Args:
        file: `__file__` of the DAG file that asks; a file `release_<programme>.py` beside it is the
            programme's own.
    """
    made = dict(_made(file))
    return {name: dag for name, dag in made.items() if isinstance(dag, DAG)}


def broken_programmes(file: str) -> str:
    """Return what is wrong with the programmes that should have a DAG and cannot; empty if none.

    A broken list of people is told too: their answers would count for nothing.

    Args:
        file: as for `dags_without_a_file`.
    """
    wrong = [str(one) for _, one in _made(file) if not isinstance(one, DAG)]
    try:
        holders("any role", Settings.from_environment().include)
    except TurnstileError as error:
        wrong.append(str(error))
    return "\n".join(wrong)


def _made(file: str) -> Iterator[tuple[str, DAG | str]]:
    """Yield the DAG of each programme without a file of its own, or what is wrong with it."""
    wanted = get_parsing_context().dag_id  # in a task: its own DAG is enough
    for programme in programme_files(Settings.from_environment().include):
        dag_id = _dag_id(programme.name)
        has_file = Path(file).with_name(f"{dag_id}.py").exists()
        if has_file or wanted not in {None, dag_id}:
            continue
        try:
            yield dag_id, release_dag(programme.name, file=file)
        except TurnstileError as error:
            yield dag_id, str(error)
        except Exception as error:  # noqa: BLE001 - one bad file must not take the others' DAGs down
            yield dag_id, f"{programme.path.name}: {type(error).__name__}: {error}"


def _dag_id(programme: str) -> str:
    """Name the DAG of a programme."""
    return f"release_{programme}"


def _timetable(programme: Programme) -> CronDataIntervalTimetable | ServicePeriods:
    """Return when runs are due and which periods they stand for."""
    schedule, zone = programme.schedule, programme.time.zone
    if schedule.first_day is None:
        return CronDataIntervalTimetable("0 0 * * MON", timezone=zone.key)
    return ServicePeriods(schedule.first_day, schedule.period_days, zone)


def _programme_doc(programme: Programme) -> str:
    """Return the DAG's page: what is released, by which promise, and what to do when it stops."""
    tables = "\n".join(f"- `{table.name}` by {', '.join(table.by)}" for table in programme.tables)
    return f"""\
# {programme.title}

{programme.description}

One run is one {_period(programme)} in {programme.time.zone.key}. The promise is
`include/programmes/{programme.name}.yaml`; its digest is `{programme.digest[:12]}`.

{tables}

A run that failed may be cleared: a week that is sealed re-issues its bytes, uncharged.
`turnstile ledger balance` shows what is spent and what is left.
"""


def _period(programme: Programme) -> str:
    """Say what one run releases."""
    schedule = programme.schedule
    if schedule.first_day is None:
        return "service week, Monday to Monday"
    return f"period of {schedule.period_days} service days, counted from {schedule.first_day},"
