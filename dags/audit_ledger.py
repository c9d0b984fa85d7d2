"""Airflow DAG `audit_ledger`: every day, whatever was published is recomputed."""

from datetime import timedelta

from watch_dags import audit_ledger, operations_dag

dag = operations_dag(
    "audit_ledger",
    audit_ledger,
    cron="30 3 * * *",
    description="Chain, balances, signatures, manifests and public bytes, recomputed",
    doc_md="""\
# The daily audit

Recomputes everything that can be checked without private data: the ledger's chain, what its entries
mean, every balance, the signed checkpoints, the manifests, and every byte of every package.
It charges nothing and changes no number; where `log-policy.txt` names public witnesses, they are
asked to cosign the transparency log once more. If it fails, stop releasing and read
`docs/RUNBOOK.md`.
The same by hand: `turnstile ledger verify` and `turnstile package verify`.
""",
    retries=0,
    execution_timeout=timedelta(hours=2),
)
