"""Tasks of the two DAGs that watch: the audit of every day, and the watchdog."""

from __future__ import annotations

from airflow.sdk.exceptions import AirflowFailException
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from telling import send_alerts

from turnstile.settings import Settings, system_clock


def audit_ledger() -> str:
    """Recompute chain, balances, signatures, manifests and every public byte; alert and fail."""
    from turnstile.operations.watch import audited
    from turnstile.release.context import open_ledger

    settings = Settings.from_environment()
    ledger = open_ledger(settings)
    alerts = audited(ledger.verify, settings)
    send_alerts(alerts, settings)
    if alerts:
        raise AirflowFailException("\n".join(str(alert) for alert in alerts))
    sequence, head = ledger.head()
    return f"{sequence} entries, head {head[:16]}: nothing differs"


def watch() -> str:
    """Look for what nobody was told, and tell it."""
    from turnstile.operations.journal import Journal
    from turnstile.operations.page import BudgetPage
    from turnstile.operations.watch import watched

    settings = Settings.from_environment()
    page = BudgetPage(settings, system_clock)
    alerts = watched(
        page.picture(),
        page.programmes(),
        Journal.of(settings),
        state_of_run=state_of_run,
        now=system_clock(),
    )
    new = send_alerts(alerts, settings)
    return f"{len(alerts)} findings, {len(new)} told now"


def state_of_run(dag_id: str, run_id: str) -> str | None:
    """Return the state that Airflow gives a run; None if it does not know it."""
    if RuntimeTaskInstance.get_dr_count(dag_id, run_ids=[run_id]) == 0:
        return None
    return str(RuntimeTaskInstance.get_dagrun_state(dag_id, run_id))
