"""Airflow DAG `weekly_digest`: on Mondays, how every programme stands."""

from datetime import timedelta

from watch_dags import operations_dag, weekly_digest

dag = operations_dag(
    "weekly_digest",
    weekly_digest,
    cron="0 7 * * MON",
    description="How every programme stands: what is out, what is due, what is left of each cap",
    doc_md="""\
# The weekly digest

One message on Monday, 07:00 UTC, to whom `turnstile_alerts_notice` (or `turnstile_alerts`) names:
the first lines of the page *Budget*. It charges nothing and changes nothing.
""",
    retries=1,
    execution_timeout=timedelta(minutes=10),
)
