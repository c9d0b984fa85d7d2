"""The first task of a run: what the run will do to the budget, and the wait until it may begin."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.triggers.temporal import DateTimeTrigger
from airflow.sdk import BaseOperator
from fetch_task import away_words, fetch_for, fetched_words
from run_reports import report_goes_on
from step_task import of_run

from turnstile.errors import LandingAway, NotArrived
from turnstile.programme.calendar.release_schedule import final_at, final_words
from turnstile.programme.loading import load_programme
from turnstile.service_calendar import parse_period
from turnstile.settings import system_clock

if TYPE_CHECKING:
    from datetime import datetime

    from airflow.sdk import Context
    from run_reports import RunOfWeek

WAIT_FOR_FILES = timedelta(days=2)  # after the period is final; then somebody must look
LOOK_FOR_FILES = timedelta(minutes=10)


class WaitUntilFinal(BaseOperator):
    """Say what the run will do to the budget, then wait until the week is final and complete.

    The wait holds no worker. A week that the budget would refuse is refused here, before anything
    is read. A week that is not complete two days after it became final did not arrive.
    """

    def __init__(self, *, programme: str, **operator: Any) -> None:  # noqa: ANN401 - Airflow's own
        super().__init__(**operator)
        self.programme = programme

    def execute(self, context: Context) -> str:
        """Tell what will happen; return it at once for a week that is ready.

        Raises:
            AirflowFailException: the run names no week, or the budget refuses it.
        """
        return of_run(self.programme, self.task_id, context, lambda run: self._begin(run, context))

    def execute_complete(self, context: Context, event: object = None) -> str:  # noqa: ARG002 - Airflow passes it
        """Look again."""

        def look(run: RunOfWeek) -> str:
            self._wait_until_complete(run, context)
            report_goes_on(run, self.task_id)
            return "waited"

        return of_run(self.programme, self.task_id, context, look)

    def _begin(self, run: RunOfWeek, context: Context) -> str:
        """Tell what the run will do; refuse what would be refused anyway."""
        dag_run = context.get("dag_run")
        note = run.begin(str(getattr(dag_run, "triggering_user_name", None) or ""))
        self.log.info(note)
        if refusal := run.refusal(dag_run):
            raise refusal
        self._wait_until_complete(run, context)
        return note

    def _wait_until_complete(self, run: RunOfWeek, context: Context) -> None:
        """Defer until the next moment to look, unless the week may be read.

        A server that is away is waited for as long as files are, in a late run from its start on.

        Raises:
            NotArrived: the wait is over.
        """
        if run.is_sealed():
            return  # the sealed bytes stand, whatever the landing zone holds now
        away, started = self._fetch(run), getattr(context.get("dag_run"), "start_date", None)
        programme = load_programme(self.programme, run.settings.include)
        period = parse_period(run.week)
        final, now = final_at(period, programme.schedule, programme.time), system_clock()
        if now < final:
            words = final_words(period, programme.schedule, programme.time)
            self._look_at(final, run, f"{period} is final on {words}")
        arrived, name = run.arrival(), "Week" if programme.schedule.first_day is None else "Period"
        if away:  # what is here may lack what it has anew
            if now >= max(final, started or final) + WAIT_FOR_FILES:
                raise NotArrived(f"{name} {period} did not arrive: {away}")
            self._look_at(now + LOOK_FOR_FILES, run, away)
        if arrived.is_complete(now):
            return
        if arrived.missing and now >= final + WAIT_FOR_FILES:
            raise NotArrived(f"{name} {period} did not arrive: {arrived}")
        self._look_at(arrived.complete_at or now + LOOK_FOR_FILES, run, str(arrived))

    def _fetch(self, run: RunOfWeek) -> str:
        """Copy what is new; return in words that nobody can be asked, empty if somebody was."""
        try:
            if came := fetch_for(run):
                self.log.info("%s", fetched_words(came))
        except LandingAway as away:
            return away_words(away)
        return ""

    def _look_at(self, moment: datetime, run: RunOfWeek, why: str) -> None:
        """Say what is waited for, and defer."""
        self.log.info("waiting: %s", why)
        run.waits(why)
        self.defer(trigger=DateTimeTrigger(moment=moment), method_name="execute_complete")
