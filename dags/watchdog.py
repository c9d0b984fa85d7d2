"""Airflow DAG `watchdog`: four times an hour, what died without telling anybody is told."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import DAG, CronTriggerTimetable
from watching import watch

UTC = ZoneInfo("UTC")

with DAG(
    dag_id="watchdog",
    description="Holds and draws that are stuck, runs that died, weeks that are overdue",
    doc_md="""\
# The watchdog

A worker that is killed tells nobody. This DAG compares the journal of runs with Airflow, the ledger
with the clock and the calendar with what is public, and sends each finding once. It charges nothing
and changes nothing. What each alarm means: `docs/RUNBOOK.md`.
""",
    schedule=CronTriggerTimetable("*/15 * * * *", timezone="UTC"),
    start_date=datetime(2016, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    tags=["operations"],
) as dag:
    PythonOperator(
        task_id="watch",
        python_callable=watch,
        doc_md=watch.__doc__,
        retries=1,
        execution_timeout=timedelta(minutes=10),
    )
