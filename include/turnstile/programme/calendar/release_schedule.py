"""From an orchestrator's data interval to the service period it stands for, and when that is final.

Pure: the present instant is an argument. The form of a run by hand names its period; a scheduled
one goes by its interval, and nobody can point it at another.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from turnstile.errors import InputError, NotFinal
from turnstile.programme.spec import ScheduleSpec, TimeSpec
from turnstile.service_calendar import ServiceDays, ServicePeriod, ServiceWeek


def period_containing(day: date, schedule: ScheduleSpec) -> ServicePeriod:
    """Return the period of a schedule in which a service day lies.

    Examples:
        >>> month = ScheduleSpec(0, time(10), 31, date(2021, 11, 15))
        >>> str(period_containing(date(2021, 12, 15), month))
        '2021-11-15..2021-12-15'
        >>> str(period_containing(date(2021, 11, 14), month))
        '2021-10-15..2021-11-14'
    """
    if schedule.first_day is None:
        return ServiceWeek.containing(day)
    length = schedule.period_days
    number = (day - schedule.first_day).days // length
    first = schedule.first_day + timedelta(days=number * length)
    return ServiceDays(first, first + timedelta(days=length - 1))


def run_name(programme: str, period: ServicePeriod) -> str:
    """Return what the run of a period is called, in letters that an orchestrator allows.

    Examples:
        >>> run_name("opal", ServiceWeek(2016, 33))
        'opal_2016-W33'
        >>> run_name("itms_month", ServiceDays(date(2021, 11, 15), date(2021, 12, 15)))
        'itms_month_2021-11-15_to_2021-12-15'
    """
    return f"{programme}_{period}".replace("..", "_to_")


def starts_at(period: ServicePeriod, zone: ZoneInfo) -> datetime:
    """Return the instant at which a period's first service day begins, in UTC."""
    return datetime.combine(period.first_day, time(), zone).astimezone(UTC)


def period_of_interval(
    start: datetime | None,
    end: datetime | None,
    schedule: ScheduleSpec,
    *,
    zone: ZoneInfo,
    now: datetime,
) -> ServicePeriod:
    """Return the period that a data interval is, exactly.

    Args:
        start: aware; local midnight of the period's first day, a Monday for weeks.
        end: aware; local midnight after its last day.
        schedule: how long periods are, and where they begin.
        zone: the agency's time zone.
        now: aware; the present instant.

    Raises:
        InputError: the interval is missing, or is not one period.
        NotFinal: the period is not over.

    Examples:
        >>> zone = ZoneInfo("Australia/Sydney")
        >>> monday = datetime(2016, 7, 25, tzinfo=zone)
        >>> end = monday + timedelta(weeks=1)
        >>> str(period_of_interval(monday, end, ScheduleSpec(0, time(10)), zone=zone, now=end))
        '2016-W30'
    """
    if start is None or end is None:
        rule = "the run has none; start it as a scheduled run or as a backfill"
        raise InputError(where="run", field="data interval", rule=rule)
    period = period_containing(start.astimezone(zone).date(), schedule)
    if start != starts_at(period, zone) or end != period.ends_at(zone):
        raise InputError(
            where="run", field="data interval", rule=_what_it_should_be(schedule, zone)
        )
    require_over(period, zone, now)
    return period


def require_over(period: ServicePeriod, zone: ZoneInfo, now: datetime) -> None:
    """Refuse a period of which a day is still to come.

    Raises:
        NotFinal: it is not over.
    """
    end = period.ends_at(zone)
    if now < end:
        name = "week" if isinstance(period, ServiceWeek) else "period"
        raise NotFinal(f"{name} {period} is not over before {end:%Y-%m-%d %H:%M} UTC")


def _what_it_should_be(schedule: ScheduleSpec, zone: ZoneInfo) -> str:
    """Say which data intervals a schedule has."""
    if schedule.first_day is None:
        return (
            f"it is not one service week, Monday to Monday in {zone.key}; run a backfill of weeks"
        )
    return (
        f"it is not one period of {schedule.period_days} service days counted from "
        f"{schedule.first_day} in {zone.key}; run a backfill of such periods"
    )


def final_at(period: ServicePeriod, schedule: ScheduleSpec, clock: TimeSpec) -> datetime:
    """Return the instant from which a period may be released, in UTC.

    That is `final_after_days` days after the period's end, at `weekly_at` on the agency's clock,
    and never before the last service day is over, which may be hours after midnight.

    Examples:
        >>> night = TimeSpec(ZoneInfo("UTC"), slot_minutes=15, day_starts=240)
        >>> f"{final_at(ServiceWeek(2016, 30), ScheduleSpec(0, time(0, 30)), night):%A %H:%M}"
        'Monday 04:00'
    """
    last = period.days[-1]
    asked = last + timedelta(days=1 + schedule.final_after_days)
    ends = datetime.combine(last, time(), clock.zone) + timedelta(minutes=clock.day_ends)
    return max(datetime.combine(asked, schedule.weekly_at, clock.zone), ends).astimezone(UTC)


def final_words(period: ServicePeriod, schedule: ScheduleSpec, clock: TimeSpec) -> str:
    """Return `final_at` as people of the agency say it.

    Examples:
        >>> sydney = TimeSpec(ZoneInfo("Australia/Sydney"), slot_minutes=15)
        >>> final_words(ServiceWeek(2016, 31), ScheduleSpec(0, time(10)), sydney)
        'Monday 08 August 2016, 10:00 (Australia/Sydney)'
    """
    final = final_at(period, schedule, clock).astimezone(clock.zone)
    return f"{final:%A %d %B %Y, %H:%M} ({clock.zone.key})"
