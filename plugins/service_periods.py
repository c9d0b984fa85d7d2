"""The timetable of programmes whose period is not a week: so many service days, and again.

Airflow's own timetables either follow a cron expression, which knows no 31 days, or count hours in
UTC from wherever the clock stands. This one counts service days from the programme's `first_day` in
the agency's zone, so that a period has the same name and days whoever asks for it, and begins and
ends at local midnight on both sides of a change to summer time.
"""

from __future__ import annotations

from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from airflow.plugins_manager import AirflowPlugin
from airflow.timetables.base import DagRunInfo, DataInterval, Timetable
from pendulum import instance

from turnstile.programme.release_schedule import period_containing, starts_at
from turnstile.programme.spec import ScheduleSpec
from turnstile.settings import system_clock

if TYPE_CHECKING:
    from airflow.timetables.base import TimeRestriction
    from pendulum import DateTime

    from turnstile.service_calendar import ServicePeriod


class ServicePeriods(Timetable):
    """Data intervals that are the periods of a programme.

    Args:
        first_day: service day on which some period begins.
        days: service days of a period.
        zone: the agency's time zone.
    """

    def __init__(self, first_day: date, days: int, zone: ZoneInfo) -> None:
        self._schedule = ScheduleSpec(0, time(), days, first_day)
        self._zone = zone
        self.description = f"Every {days} service days from {first_day} on, in {zone.key}"

    @property
    def summary(self) -> str:
        """What the list of DAGs shows."""
        return f"every {self._schedule.period_days} days"

    def serialize(self) -> dict[str, Any]:
        """Write the timetable down for Airflow's database."""
        told = self._schedule
        return {
            "first_day": str(told.first_day),
            "days": told.period_days,
            "zone": self._zone.key,
        }

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> Timetable:
        """Read it back."""
        return cls(date.fromisoformat(data["first_day"]), data["days"], ZoneInfo(data["zone"]))

    def infer_manual_data_interval(self, *, run_after: DateTime) -> DataInterval:
        """Return the last period that is over."""
        return self._interval(self._over(run_after))

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        """Return the period after the last one; without catch-up, none before the latest over."""
        earliest = restriction.earliest
        if last_automated_data_interval is not None:
            end = last_automated_data_interval.end
            earliest = end if earliest is None else max(end, earliest)
        if not restriction.catchup:
            latest_over = self._interval(self._over(system_clock())).start
            earliest = latest_over if earliest is None else max(latest_over, earliest)
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
