"""Makes the Airflow DAG of a release programme; Airflow puts this folder on `sys.path`.

A new programme is one YAML file under `include/programmes/`: `dags/release_programmes.py` gives it
its DAG. The tasks are the steps of `turnstile.pipeline.steps`, in their order, after a wait until
the period is final. Only identifiers travel between tasks. Each step re-checks what it depends on,
in the ledger and, before it reads, in the landing zone, so nothing here is a gate: marking,
clearing or skipping a task neither draws nor publishes.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from airflow.sdk import DAG, Param, chain, get_parsing_context
from airflow_interfaces import RUN_TYPES
from approval_task import questions
from correction_task import correction_questions
from fetch_task import FetchNew
from run_ended import ReportKilled
from service_periods import ServicePeriods
from step_task import PRIVATE_QUEUE, RETRIES, step_task
from wait_task import WaitUntilFinal

from turnstile.errors import TurnstileError
from turnstile.operations.airflow_names import dag_of
from turnstile.pipeline import steps
from turnstile.pipeline.landing.fetching import address_of
from turnstile.programme.calendar.release_schedule import period_containing, starts_at
from turnstile.programme.examples import broken_beside, readable_examples
from turnstile.programme.loading import load_programme, programme_files
from turnstile.settings import Settings

if TYPE_CHECKING:
    from turnstile.programme.spec import Programme

FIRST_YEAR = 2016
_APPROVE = steps.STEPS.index("approve")  # people are asked just before


def release_dag(name: str, *, file: str) -> DAG:
    """Return the DAG that releases one programme every week, or every period of its own.

    Args:
        name: programme, as in `include/programmes/<name>.yaml`.
        file: `__file__` of the DAG file, shown as the DAG's source.

    Raises:
        InputError: there is no such programme.
        ProgrammeError: its file breaks a rule.
    """
    settings = Settings.from_environment()
    programme = load_programme(name, settings.include)
    zone = programme.time.zone
    with DAG(
        dag_id=dag_of(name),
        description=f"{programme.title}; {_when(programme)}",
        doc_md=_programme_doc(programme),
        schedule=_timetable(programme),
        start_date=datetime(FIRST_YEAR, 1, 1, tzinfo=zone),
        catchup=False,
        is_paused_upon_creation=True,  # its first run draws: somebody starts it
        max_active_runs=1,  # in order: a week that waits for people holds up those after it
        allowed_run_types=RUN_TYPES,
        # What is cleared or repeated goes on with the code of today: an old bug is no promise.
        rerun_with_latest_version=True,
        on_failure_callback=ReportKilled(name),
        params={"week": _week_field(programme)},
        auto_register=False,  # the DAG files do it: one that is half made must not be taken up
        tags=["release", programme.family],
        default_args={
            "owner": programme.publish.curator,
            "retries": RETRIES,
            "retry_delay": timedelta(minutes=2),
        },
    ) as dag:
        wait = WaitUntilFinal(
            task_id="wait", programme=name, doc_md=WaitUntilFinal.__doc__, queue=PRIVATE_QUEUE
        )
        before, after = steps.STEPS[:_APPROVE], steps.STEPS[_APPROVE:]
        fetch = [
            FetchNew(task_id="fetch", programme=name, doc_md=FetchNew.__doc__, queue=PRIVATE_QUEUE)
            for address in (address_of(name, settings),)
            if address is not None
        ]
        chain(
            *fetch,
            wait,
            *correction_questions(programme),
            *(step_task(name, step) for step in before),
            *questions(programme),
            *(step_task(name, step) for step in after),
        )
    dag.fileloc = file
    return dag


def dags_without_a_file(file: str) -> dict[str, DAG]:
    """Return the DAGs of the programmes that have no DAG file of their own, by their names.

    A programme whose file breaks a rule has none; `broken_programmes` says why.

    Args:
        file: `__file__` of the DAG file that asks; a file `release_<programme>.py` beside it is the
            programme's own.
    """
    made = dict(_made(file))
    return {name: dag for name, dag in made.items() if isinstance(dag, DAG)}


def broken_programmes(file: str) -> str:
    """Return what is wrong with the programmes that should have a DAG and cannot; empty if none.

    A broken list of people is reported too: their answers would count for nothing. So is one of
    the examples, of which each has a DAG until it can be read again: no other loses its own.

    Args:
        file: as for `dags_without_a_file`.
    """
    wrong = [
        str(dag_or_error) for _, dag_or_error in _made(file) if not isinstance(dag_or_error, DAG)
    ]
    wrong += [str(error) for _, error in broken_beside(Settings.from_environment().include)]
    return "\n".join(wrong)


def _made(file: str) -> Iterator[tuple[str, DAG | str]]:
    """Yield the DAG of each programme without a file of its own, or what is wrong with it."""
    wanted = get_parsing_context().dag_id  # in a task: its own DAG is enough
    settings = Settings.from_environment()
    include = settings.include
    examples = readable_examples(include) - settings.adopted
    for programme in programme_files(include):
        if programme.name in examples:
            continue
        dag_id = dag_of(programme.name)
        has_file = Path(file).with_name(f"{dag_id}.py").exists()
        if has_file or wanted not in {None, dag_id}:
            continue
        try:
            yield dag_id, release_dag(programme.name, file=file)
        except TurnstileError as error:
            yield dag_id, str(error)
        except Exception as error:  # noqa: BLE001 - one bad file must not take the others' DAGs down
            yield dag_id, f"{programme.path.name}: {type(error).__name__}: {error}"


def _timetable(programme: Programme) -> ServicePeriods:
    """Return when runs are due and which periods they stand for."""
    schedule = programme.schedule
    zone = programme.time.zone
    return ServicePeriods(programme.name, schedule.first_day, schedule.period_days, zone)


def _first_instant(programme: Programme) -> str:
    """Say when a period begins in UTC, by the example of the programme's first in Airflow."""
    day = period_containing(date(FIRST_YEAR, 7, 25), programme.schedule)
    return f"{starts_at(day, programme.time.zone):%A %H:%M} UTC (such as {day} in northern summer)"


def _when(programme: Programme) -> str:
    """Say in the agency's time when a period is released."""
    schedule, zone = programme.schedule, programme.time.zone.key
    days = f"{schedule.final_after_days + 1} day(s) after the last service day"
    return f"final at {schedule.weekly_at:%H:%M} {zone}, {days}"


def _week_field(programme: Programme) -> Param:
    """Return the form's field in which a run by hand names its period."""
    is_week = programme.schedule.first_day is None
    example = "2016-W33" if is_week else "2021-11-15..2021-12-15"
    pattern = r"(\d{4}-W\d{2})?" if is_week else r"(\d{4}-\d{2}-\d{2}\.\.\d{4}-\d{2}-\d{2})?"
    return Param(  # null, not "": Airflow's dialogs hold their button until a text is filled in
        None,
        type=["null", "string"],
        pattern=f"^{pattern}$",
        title="Service week" if is_week else "Period",
        description=f"A run by hand: which to release, such as {example}. A backfill goes by its "
        "dates; a name here stops its runs of all others",
    )


def _programme_doc(programme: Programme) -> str:
    """Return the DAG's page: what is released, by which promise, and what to do when it stops."""
    tables = "\n".join(f"- `{table.name}` by {', '.join(table.by)}" for table in programme.tables)
    return f"""\
# {programme.title}

{programme.description}

One run is one {_period(programme)} in {programme.time.zone.key}. The promise is
`include/programmes/{programme.name}.yaml`; its digest is `{programme.digest[:12]}`.

{tables}

To release weeks, use *Release weeks* on the page *Budget* in the bar on the left: it names them as
the timetable does and shows what they will charge. *Trigger* takes the week in its field `week`.
Airflow's own backfill dialog speaks UTC, and so does its preview: a week of this programme begins
there at {_first_instant(programme)}, and a backfill takes each week that begins in its dates.

A run that failed may be cleared: a week that is sealed re-issues its bytes, uncharged.
`turnstile ledger balance` shows what is spent and what is left.
"""


def _period(programme: Programme) -> str:
    """Say what one run releases."""
    schedule = programme.schedule
    if schedule.first_day is None:
        return "service week, Monday to Monday"
    return f"period of {schedule.period_days} service days, counted from {schedule.first_day},"
