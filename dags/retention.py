"""Airflow DAG `retention`: every day, private data go after their programme's days."""

from datetime import timedelta

from step_task import PRIVATE_QUEUE
from watch_dags import delete_what_is_due, operations_dag

dag = operations_dag(
    "retention",
    delete_what_is_due,
    cron="30 4 * * *",
    description="Raw files, rows and exact tables are deleted after the programme's days",
    doc_md="""\
# Retention

Deletes what a programme's `retention` says, each deletion with an entry in the ledger; a programme
without that section keeps everything. A week without a release, or with a correction under way,
loses its data only after an alarm has been out for two weeks. What stays is compared with the
ledger: what is gone or altered is an alarm (`private_differs`). What stays, until when and why:
`turnstile retention`. See `docs/OPERATIONS.md`.
""",
    queue=PRIVATE_QUEUE,
    retries=1,
    execution_timeout=timedelta(hours=1),
)
