"""The first task of a run: what the run will do to the budget, and the wait until it may begin."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.triggers.temporal import DateTimeTrigger
from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException
from period_of_run import programme_and_period, revision_of
from telling import RunOfWeek

from turnstile.programme.release_schedule import final_at
from turnstile.settings import Settings, system_clock

if TYPE_CHECKING:
    from airflow.sdk import Context

    from turnstile.programme.spec import Programme
    from turnstile.service_calendar import ServicePeriod

WAIT_FOR_FILES = timedelta(days=2)  # after the period is final; then `ingest` says what is missing
LOOK_FOR_FILES = timedelta(minutes=10)
BY_HAND = "a run by hand has no week; choose Backfill in the same dialog, from Monday to Monday"


class WaitUntilFinal(BaseOperator):
    """Say what the run will do to the budget, then wait until the week is final and has files.

    The wait holds no worker. A week without files is let through two days after it became final:
    `ingest` then refuses it by name.
    """

    def __init__(self, *, programme: str, **operator: Any) -> None:  # noqa: ANN401 - Airflow's own
        super().__init__(**operator)
        self.programme = programme

    def execute(self, context: Context) -> str:
        """Tell what will happen; return it at once for a week that is ready.

        Raises:
            AirflowFailException: the run was started by hand.
        """
        dag_run = context.get("dag_run")
        if getattr(dag_run, "run_type", "") == "manual":
            raise AirflowFailException(BY_HAND)
        programme, period = programme_and_period(self.programme, context)
        run = RunOfWeek(
            Settings.from_environment(),
            self.programme,
            str(period),
            context.get("run_id", ""),
            revision_of(programme, period),
        )
        note = run.begin(str(getattr(dag_run, "triggering_user_name", None) or ""))
        self.log.info(note)
        return self._wait_or(note, context)

    def execute_complete(self, context: Context, event: object = None) -> str:  # noqa: ARG002 - Airflow passes it
        """Look again."""
        return self._wait_or("waited", context)

    def _wait_or(self, answer: str, context: Context) -> str:
        """Defer until the next moment to look, or return the answer."""
        programme, period = programme_and_period(self.programme, context)
        final = final_at(period, programme.schedule, zone=programme.time.zone)
        now = system_clock()
        if now < final:
            self.defer(trigger=DateTimeTrigger(moment=final), method_name="execute_complete")
        if now < final + WAIT_FOR_FILES and not _has_files(programme, period):
            moment = now + LOOK_FOR_FILES
            self.defer(trigger=DateTimeTrigger(moment=moment), method_name="execute_complete")
        return answer


def _has_files(programme: Programme, period: ServicePeriod) -> bool:
    """Tell whether anything has landed for each week that a period touches."""
    landing = Settings.from_environment().landing
    patterns = [programme.source.landing.replace("{week}", str(week)) for week in period.weeks]
    return all(any(landing.glob(pattern)) for pattern in patterns)
