"""The DAGs beside the releases: audit, watchdog, digest and retention, and their tasks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import DAG, CronTriggerTimetable
from airflow.sdk.exceptions import AirflowFailException
from airflow_interfaces import run_in_airflow, set_gauge
from audit_log import airflow_of_api
from run_reports import send_alerts
from step_task import failure_without_values

from turnstile.errors import IntegrityError
from turnstile.operations.airflow_names import dag_of
from turnstile.settings import Settings, system_clock

if TYPE_CHECKING:
    from turnstile.operations.airflow_now import AirflowNow
    from turnstile.operations.budget_page.page import BudgetPage
    from turnstile.operations.deployment_state import DeploymentState


def operations_dag(
    dag_id: str,
    act: Callable[[], str],
    *,
    cron: str,
    description: str,
    doc_md: str,
    **operator: Any,  # noqa: ANN401 - Airflow's own
) -> DAG:
    """Return a DAG of one task that looks at the present state, whatever was missed meanwhile.

    Args:
        dag_id: name of the DAG.
        act: the task; its name and docstring are the task's.
        cron: when it runs, in UTC.
        description: one line for the list of DAGs.
        doc_md: the DAG's page.
        **operator: of the task: `retries`, `execution_timeout`.
    """
    with DAG(
        dag_id=dag_id,
        description=description,
        doc_md=doc_md,
        schedule=CronTriggerTimetable(cron, timezone="UTC"),
        start_date=datetime(2016, 1, 1, tzinfo=UTC),
        catchup=False,
        max_active_runs=1,
        is_paused_upon_creation=False,  # who watches starts with what is watched
        tags=["operations"],
    ) as dag:
        PythonOperator(task_id=act.__name__, python_callable=act, doc_md=act.__doc__, **operator)
    return dag


def audit_ledger() -> str:
    """Recompute chain, balances, signatures, manifests and every public byte; alert and fail."""
    from turnstile.ledger.of_deployment import open_ledger
    from turnstile.operations.deployment_state import DeploymentState
    from turnstile.operations.journal import Journal
    from turnstile.operations.watchdog.last_verification import tell_verification
    from turnstile.operations.watchdog.private_comparison import of_looks
    from turnstile.operations.watchdog.watch import audited, cosigned
    from turnstile.release.zone_copies import zones

    settings = Settings.from_environment()
    zones(settings).refresh()
    if lost := _sent_of_loss(DeploymentState(settings, system_clock)):
        raise AirflowFailException(lost)
    ledger = open_ledger(settings)
    sequence, head = ledger.head()
    names, journal = audited(ledger.verify, settings), Journal.of(settings)
    if not names:  # never what differs is signed
        names = cosigned(zones(settings).send_public, ledger)
    tell_verification(journal, system_clock(), (sequence, head), names)
    alerts = [alert for alert in of_looks(journal) if alert.rule == "audit_failed"]
    send_alerts(alerts, settings)
    if names:
        raise AirflowFailException("\n".join(str(alert) for alert in alerts))
    return f"{sequence} entries, head {head[:16]}: nothing differs"


def _sent_of_loss(state: DeploymentState) -> str:
    """Send the alarm of a ledger that is lost or damaged; return what it says, empty if it is not.

    What is looked at beside it would be told of weeks that nobody knows anything of.
    """
    lost = state.lost()
    send_alerts(lost, state.settings)
    return "".join(alert.sentence for alert in lost)


def watch() -> str:
    """Look for what nobody reported, and report it; set the gauges."""
    from turnstile.operations.budget_page.page import BudgetPage
    from turnstile.operations.watchdog.gauges import gauges

    settings = Settings.from_environment()
    page = BudgetPage(settings, system_clock)
    if lost := _sent_of_loss(page):
        return lost
    alerts = page.watched(_airflow_now(page))
    new = send_alerts(alerts, settings)
    for gauge in gauges(page.snapshot(), page.programmes(), system_clock()):
        set_gauge(gauge.name, gauge.value, dict(gauge.labels))
    return f"{len(alerts)} findings, {len(new)} sent now"


def _airflow_now(page: BudgetPage) -> AirflowNow:
    """Return what Airflow says, as to the page; of the journal's runs alone without its API.

    The API is asked by the user of the connection `turnstile_airflow`.
    """
    from turnstile.operations.airflow_now import AirflowNow

    programmes = frozenset(page.names())
    airflow = airflow_of_api(page, programmes)
    if airflow is not None:
        return airflow
    asked = page.runs_asked(programmes)
    runs = {
        name: tuple(run for run_id in sorted(ids) if (run := run_in_airflow(dag_of(name), run_id)))
        for name, ids in asked.runs.items()
    }
    return AirflowNow(runs=runs, asked=asked)


def delete_what_is_due() -> str:
    """Delete private data after their programme's days; compare what stays with the ledger.

    The watchdog sends what differs, and the page says it: both read the journal.
    """
    from turnstile.ledger.of_deployment import open_ledger
    from turnstile.operations.journal import Journal
    from turnstile.operations.retention_day import RetentionDay
    from turnstile.operations.watchdog.private_comparison import compared, tell_comparison
    from turnstile.pipeline.private_zone.private_verification import private_findings
    from turnstile.pipeline.private_zone.retention import RETENTION

    settings = Settings.from_environment()
    gone, failed = list[str](), dict[str, str]()

    def delete() -> None:
        day = RetentionDay(settings, system_clock())
        gone.extend(f"{verdict.kept.name} {verdict.kept.part}" for verdict in day.act())
        gone.extend(sorted({verdict.held for verdict in day.waiting()}))

    def compare() -> None:
        look = partial(private_findings, settings, open_ledger(settings))
        journal = Journal.of(settings)
        undeleted = failed.get(delete.__name__, "")
        findings = compared(
            look, lambda names: tell_comparison(journal, system_clock(), names, undeleted)
        )
        for finding in findings:
            raise IntegrityError(str(finding))

    failures = []
    for act in (delete, compare):  # a day that fails hides nothing that backups may still hold
        try:
            act()
        except Exception as error:  # noqa: BLE001 - its text may hold a name that somebody chose
            failed[act.__name__] = type(error).__name__
            failures.append(failure_without_values(error, settings, f"{RETENTION}-{act.__name__}"))
    if failures:
        raise type(failures[0])("; and ".join(dict.fromkeys(map(str, failures))))
    return "; ".join(gone) or "nothing is due"


def weekly_digest() -> str:
    """Say how every programme stands."""
    from turnstile.operations.budget_page.page import BudgetPage
    from turnstile.operations.watchdog.alerts import Alert

    settings, week = Settings.from_environment(), f"{system_clock():%G-W%V}"
    page = BudgetPage(settings, system_clock)
    if lost := _sent_of_loss(page):
        send_alerts([Alert("weekly_digest", "ledger", week, sentence=lost)], settings)
        return lost
    airflow = _airflow_now(page)
    alerts = [
        Alert(
            "weekly_digest", programme.name, week, sentence=page.in_one_sentence(programme, airflow)
        )
        for programme in page.programmes()
    ]
    alerts += [
        Alert("weekly_digest", broken.name, week, sentence=f"cannot be read: {broken.problem}")
        for broken in page.broken(page.ever_known())
    ]
    return f"{len(send_alerts(alerts, settings))} programmes reported"
