"""The timetable of every programme: service weeks, or so many service days, and again.

Airflow's own timetables either follow a cron expression, which knows no 31 days, or count hours in
UTC from wherever the clock stands, and call a run by an instant in UTC. This one counts service
days in the agency's zone, so that a period has the same name and days whoever asks for it, begins
and ends at local midnight on both sides of a change to summer time, and calls its run by programme
and period: `opal_2016-W33`. Only a backfill from Airflow's own dialog is called by an instant:
Airflow 3.3 asks no timetable there.
"""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from airflow.plugins_manager import AirflowPlugin
from airflow.timetables.base import DagRunInfo, DataInterval, Timetable
from pendulum import instance

from turnstile.programme.calendar.release_schedule import period_containing, run_name, starts_at
from turnstile.programme.spec import ScheduleSpec
from turnstile.settings import system_clock

if TYPE_CHECKING:
    from airflow.timetables.base import TimeRestriction
    from airflow.utils.types import DagRunType
    from pendulum import DateTime

    from turnstile.service_calendar import ServicePeriod

_JUST_OVER = timedelta(hours=1)  # Airflow may ask again before its scheduler makes the run
_CLOCKS_DIFFER = timedelta(minutes=10)  # the dialog's date is that of the browser


class ServicePeriods(Timetable):
    """Data intervals that are the periods of a programme.

    Args:
        programme: name; runs are called by it.
        first_day: service day on which some period begins; None for weeks from Monday on.
        days: service days of a period.
        zone: the agency's time zone.
    """

    def __init__(self, programme: str, first_day: date | None, days: int, zone: ZoneInfo) -> None:
        self._programme = programme
        self._schedule = ScheduleSpec(0, time(), days, first_day)
        self._zone = zone
        self.description = (
            f"Service weeks, Monday to Monday in {zone.key}"
            if first_day is None
            else f"Every {days} service days from {first_day} on, in {zone.key}"
        )

    @property
    def summary(self) -> str:
        """What the list of DAGs shows."""
        days = "week" if self._schedule.first_day is None else f"{self._schedule.period_days} days"
        return f"every {days}, {self._zone.key}"

    def serialize(self) -> dict[str, Any]:
        """Write the timetable down for Airflow's database."""
        first = self._schedule.first_day
        return {
            "programme": self._programme,
            "first_day": None if first is None else str(first),
            "days": self._schedule.period_days,
            "zone": self._zone.key,
        }

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> Timetable:
        """Read it back, also as version 0.1.0 wrote it."""
        first = None if data["first_day"] is None else date.fromisoformat(data["first_day"])
        return cls(data.get("programme", ""), first, data["days"], ZoneInfo(data["zone"]))

    def generate_run_id(
        self,
        *,
        run_type: DagRunType,
        run_after: DateTime,
        data_interval: DataInterval | None,
        **_: Any,  # noqa: ANN401 - Airflow's own
    ) -> str:
        """Call a run by programme and period; one by hand by its time: a form names its period."""
        if run_type == "manual" or data_interval is None:
            return f"{self._programme}_by_hand_{run_after:%Y%m%dT%H%M%S.%f}"
        return run_name(self._programme, self._at(data_interval.start))

    def infer_manual_data_interval(self, *, run_after: DateTime) -> DataInterval:
        """Return the period that begins at a moment, else the last one that is over.

        Raises:
            ValueError: the moment lies ahead. Airflow would begin the run, do nothing of it before
                then, and begin no other of the programme meanwhile.
        """
        if run_after > system_clock() + _CLOCKS_DIFFER:
            rule = "lies ahead; leave it empty, and name the week in the field of that name"
            raise ValueError(f"the logical date {run_after:%Y-%m-%d %H:%M} UTC {rule}")
        period = self._at(run_after)
        is_its_start = starts_at(period, self._zone) == run_after
        return self._interval(period if is_its_start else self._over(run_after))

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        """Return the period after the last one.

        Without catch-up, a DAG that is unpaused for the first time, or after a longer pause, begins
        with the period under way: nobody has asked for those before, and their files may never have
        come. *Release weeks* asks for them. The one that was under way until an hour ago still is
        the first: Airflow asks every half minute, and may ask at its end before it makes its run.
        """
        earliest, last = restriction.earliest, last_automated_data_interval
        if last is not None:
            earliest = last.end if earliest is None else max(last.end, earliest)
        if not restriction.catchup:
            now = system_clock()
            over = self._interval(self._over(now))
            goes_on = last is not None and last.end >= over.start
            first = over.start if goes_on or now - over.end < _JUST_OVER else over.end
            earliest = first if earliest is None else max(first, earliest)
        if earliest is None:
            return None
        interval = self._interval(self._not_before(earliest))
        if restriction.latest is not None and interval.start > restriction.latest:
            return None
        return DagRunInfo.interval(interval.start, interval.end)

    def _at(self, moment: datetime) -> ServicePeriod:
        """Return the period that a moment lies in."""
        return period_containing(moment.astimezone(self._zone).date(), self._schedule)

    def _over(self, moment: datetime) -> ServicePeriod:
        """Return the last period that is over at a moment."""
        return self._at(moment).plus(-1)

    def _not_before(self, moment: datetime) -> ServicePeriod:
        """Return the first period that begins at a moment or after it."""
        period = self._at(moment)
        return period if starts_at(period, self._zone) >= moment else period.plus(1)

    def _interval(self, period: ServicePeriod) -> DataInterval:
        """Return a period as Airflow has it."""
        ends = period.ends_at(self._zone)
        return DataInterval(instance(starts_at(period, self._zone)), instance(ends))


class ServicePeriodsPlugin(AirflowPlugin):
    """Makes the timetable known to every part of Airflow."""

    name = "service_periods"
    timetables = [ServicePeriods]  # noqa: RUF012 - as Airflow declares it
