"""Airflow DAG `audit_ledger`: every day, whatever was published is recomputed."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import DAG, CronTriggerTimetable
from watching import audit_ledger

UTC = ZoneInfo("UTC")

with DAG(
    dag_id="audit_ledger",
    description="Chain, balances, signatures, manifests and public bytes, recomputed",
    doc_md="""\
# The daily audit

Recomputes everything that can be checked without private data: the ledger's chain, what its entries
mean, every balance, the signed checkpoints, the manifests, and every byte of every package.
It charges nothing and changes nothing. If it fails, stop releasing and read `docs/RUNBOOK.md`.
The same by hand: `turnstile ledger verify` and `turnstile package verify`.
""",
    schedule=CronTriggerTimetable("30 3 * * *", timezone="UTC"),
    start_date=datetime(2016, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    tags=["operations"],
) as dag:
    PythonOperator(
        task_id="audit",
        python_callable=audit_ledger,
        doc_md=audit_ledger.__doc__,
        retries=0,
        execution_timeout=timedelta(hours=2),
    )
