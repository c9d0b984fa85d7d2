"""Airflow DAG `watchdog`: four times an hour, what died without a report is reported."""

from datetime import timedelta

from watch_dags import operations_dag, watch

dag = operations_dag(
    "watchdog",
    watch,
    cron="*/15 * * * *",
    description="Holds and draws that are stuck, runs that died, weeks that are overdue",
    doc_md="""\
# The watchdog

A worker that is killed reports nothing. This DAG compares the journal of runs with Airflow, the
ledger with the clock and the calendar with what is public, and sends each finding once. It charges
nothing and changes nothing. What each alarm means: `docs/RUNBOOK.md`.
""",
    retries=1,
    execution_timeout=timedelta(minutes=10),
)
