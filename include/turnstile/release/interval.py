"""From an orchestrator's data interval to the service week it stands for, and when that is final.

Pure: the present instant is an argument. A run's form or conf never names the week, so that nobody
can point a scheduled run at another one.
"""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from turnstile.errors import InputError, NotFinal
from turnstile.programme.spec import ScheduleSpec
from turnstile.service_calendar import ServicePeriod, ServiceWeek


def week_of_interval(
    start: datetime | None, end: datetime | None, *, zone: ZoneInfo, now: datetime
) -> ServiceWeek:
    """Return the service week that a data interval is, exactly.

    Args:
        start: aware; local midnight of a Monday.
        end: aware; local midnight of the Monday after.
        zone: the agency's time zone.
        now: aware; the present instant.

    Raises:
        InputError: the interval is missing, or is not one service week.
        NotFinal: the week is not over.

    Examples:
        >>> zone = ZoneInfo("Australia/Sydney")
        >>> monday = datetime(2016, 7, 25, tzinfo=zone)
        >>> next_monday = monday + timedelta(weeks=1)
        >>> str(week_of_interval(monday, next_monday, zone=zone, now=next_monday))
        '2016-W30'
    """
    if start is None or end is None:
        rule = "the run has none; start it as a scheduled run or as a backfill"
        raise InputError(where="run", field="data interval", rule=rule)
    week = ServiceWeek.containing(start.astimezone(zone).date())
    midnight = datetime.combine(week.monday, time(), zone)
    if start != midnight.astimezone(UTC) or end != week.ends_at(zone):
        rule = (
            f"it is not one service week, Monday to Monday in {zone.key}; run a backfill of weeks"
        )
        raise InputError(where="run", field="data interval", rule=rule)
    if now < end:
        raise NotFinal(f"week {week} is not over before {week.ends_at(zone):%Y-%m-%d %H:%M} UTC")
    return week


def final_at(week: ServicePeriod, schedule: ScheduleSpec, *, zone: ZoneInfo) -> datetime:
    """Return the instant from which a period may be released, in UTC.

    That is `final_after_days` days after the period's end, at `weekly_at` on the agency's clock.
    """
    day = week.days[-1] + timedelta(days=1 + schedule.final_after_days)
    return datetime.combine(day, schedule.weekly_at, zone).astimezone(UTC)
