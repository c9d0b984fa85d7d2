"""What is said at once when Airflow ends a run: its note, and an alarm of one that did not say how.

A task that is killed says nothing. When its run is over, Airflow's own DAG processor calls
`ReportKilled`, which sends what the watchdog would send a quarter of an hour later, in its words.
Where that process sees no journal (under Compose it does not), the watchdog alone reports.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from airflow.listeners import hookimpl
from airflow.plugins_manager import AirflowPlugin
from airflow.sdk import BaseNotifier
from airflow_interfaces import forget_note, write_note

from turnstile.operations.airflow_names import dag_of, programme_of
from turnstile.operations.airflow_now import AirflowNow, RunNow, named_week
from turnstile.operations.journal import FOLDER, Journal
from turnstile.settings import Settings, system_clock

if TYPE_CHECKING:
    from airflow.sdk import Context


_log = logging.getLogger("turnstile")


class ReportKilled(BaseNotifier):
    """Send what is known of a run that failed and was not sent by its own tasks."""

    def __init__(self, programme: str) -> None:
        super().__init__()
        self.programme = programme

    def notify(self, context: Context) -> None:
        """Judge the week of the run as page and watchdog do, and notify people of it."""
        from audit_log import airflow_of_api
        from run_reports import send_alerts

        from turnstile.operations.budget_page.page import BudgetPage
        from turnstile.operations.watchdog.watch import of_unheard

        settings = Settings.from_environment()
        if not (settings.home / FOLDER).is_dir():
            _log.info("no journal here; the watchdog reports what the run did not say")
            return
        page, run_id = BudgetPage(settings, system_clock), str(context["run_id"])
        if lost := page.lost():
            send_alerts(lost, settings)
            return
        # Without Airflow's API it is known at least that the run which just failed did.
        failed = AirflowNow(runs={self.programme: (RunNow(run_id, "", "failed"),)})
        alerts = page.watched(airflow_of_api(page, page.ever_known()) or failed)
        lines = Journal.of(settings).of_programme(self.programme)
        dag_run = context.get("dag_run")  # None where no task of it is known
        named = named_week(getattr(dag_run, "run_type", ""), getattr(dag_run, "conf", None))
        starts = getattr(dag_run, "logical_date", None)
        period = page.period_of_run(dag_of(self.programme), starts, named)
        unheard = of_unheard(page.snapshot(), self.programme, run_id, period, lines)
        about = (alert for alert in alerts if alert.run_id == run_id)
        send_alerts((*about, *unheard), settings)


@hookimpl
def on_dag_run_running(dag_run: Any, msg: str) -> None:  # noqa: ANN401, ARG001 - Airflow's own
    """Forget the note of a release that was cleared."""
    _noted(dag_run, forget_note)


@hookimpl
def on_dag_run_success(dag_run: Any, msg: str) -> None:  # noqa: ANN401, ARG001 - Airflow's own
    """Write the note of a release that succeeded."""
    _noted(dag_run, write_note)


@hookimpl
def on_dag_run_failed(dag_run: Any, msg: str) -> None:  # noqa: ANN401, ARG001 - Airflow's own
    """Write the note of a release that failed."""
    _noted(dag_run, write_note)


def _noted(dag_run: Any, note: Callable[[Any], None]) -> None:  # noqa: ANN401 - Airflow's own
    """Do something with the note of a run of a programme; trouble in that stops nothing."""
    if not programme_of(str(dag_run.dag_id)):
        return
    try:
        note(dag_run)
    except Exception as error:  # noqa: BLE001 - whatever it is, the scheduler goes on
        _log.warning("the note of a run was not written: %s", type(error).__name__)


class RunEndedPlugin(AirflowPlugin):
    """Lets Airflow call this module when a run ends."""

    name = "run_ended"
    listeners = [sys.modules[__name__]]  # noqa: RUF012 - as Airflow declares it
