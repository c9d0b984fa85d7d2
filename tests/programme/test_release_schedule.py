"""A run's data interval stands for exactly one service week, or for none."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnstile.errors import InputError, NotFinal
from turnstile.programme.calendar.release_schedule import (
    final_at,
    period_containing,
    period_of_interval,
    starts_at,
)
from turnstile.programme.spec import ScheduleSpec, TimeSpec
from turnstile.service_calendar import ServiceDays, ServiceWeek

SYDNEY = ZoneInfo("Australia/Sydney")
WEEKS = ScheduleSpec(final_after_days=0, weekly_at=time(10))
FIRST_DAY = date(2021, 11, 15)
MONTHS = ScheduleSpec(final_after_days=0, weekly_at=time(10), period_days=31, first_day=FIRST_DAY)
LATER = datetime(2100, 1, 1, tzinfo=UTC)


def _monday(week: ServiceWeek, zone: ZoneInfo) -> datetime:
    return datetime.combine(week.monday, time(), zone).astimezone(UTC)


@given(
    st.dates(min_value=datetime(2016, 1, 4, tzinfo=UTC).date(), max_value=LATER.date()),
    st.sampled_from(["Australia/Sydney", "Asia/Kolkata", "America/Chicago", "UTC"]),
)
def test_every_week_is_found_again_from_its_interval(day: datetime, name: str) -> None:
    zone = ZoneInfo(name)
    week = ServiceWeek.containing(day)
    start, end = _monday(week, zone), _monday(week.plus(1), zone)
    assert period_of_interval(start, end, WEEKS, zone=zone, now=end) == week


def test_a_week_of_daylight_saving_is_a_week() -> None:
    week = ServiceWeek(2016, 39)  # 26 September to 2 October: 167 hours in Sydney
    start, end = _monday(week, SYDNEY), _monday(week.plus(1), SYDNEY)
    assert end - start == timedelta(hours=167)
    assert period_of_interval(start, end, WEEKS, zone=SYDNEY, now=end) == week


@pytest.mark.parametrize(
    ("start", "end"),
    [
        pytest.param(timedelta(days=1), timedelta(days=1), id="tuesday to tuesday"),
        pytest.param(timedelta(hours=6), timedelta(hours=6), id="six in the morning"),
        pytest.param(timedelta(), timedelta(weeks=1), id="two weeks"),
        pytest.param(timedelta(), timedelta(weeks=-1), id="no time at all"),
    ],
)
def test_an_interval_that_is_no_service_week_is_refused(start: timedelta, end: timedelta) -> None:
    week = ServiceWeek(2016, 30)
    first, last = _monday(week, SYDNEY) + start, _monday(week.plus(1), SYDNEY) + end
    with pytest.raises(InputError, match="not one service week"):
        period_of_interval(first, last, WEEKS, zone=SYDNEY, now=LATER)


def test_midnight_elsewhere_is_no_midnight_here() -> None:
    start, end = datetime(2016, 7, 25, tzinfo=UTC), datetime(2016, 8, 1, tzinfo=UTC)
    assert str(period_of_interval(start, end, WEEKS, zone=ZoneInfo("UTC"), now=LATER)) == "2016-W30"
    with pytest.raises(InputError, match="Australia/Sydney"):
        period_of_interval(start, end, WEEKS, zone=SYDNEY, now=LATER)


def test_a_run_without_an_interval_is_refused() -> None:
    with pytest.raises(InputError, match="backfill"):
        period_of_interval(None, None, WEEKS, zone=SYDNEY, now=LATER)


def test_a_week_that_is_not_over_is_refused_until_its_last_instant() -> None:
    week = ServiceWeek(2016, 30)
    start, end = _monday(week, SYDNEY), _monday(week.plus(1), SYDNEY)
    with pytest.raises(NotFinal, match="2016-W30 is not over"):
        period_of_interval(start, end, WEEKS, zone=SYDNEY, now=end - timedelta(microseconds=1))
    assert period_of_interval(start, end, WEEKS, zone=SYDNEY, now=end) == week


def test_a_week_is_final_some_days_after_its_end_on_the_agencys_clock() -> None:
    schedule = ScheduleSpec(final_after_days=4, weekly_at=time(10))
    moment = final_at(ServiceWeek(2016, 39), schedule, TimeSpec(SYDNEY, slot_minutes=15))
    assert moment.astimezone(SYDNEY) == datetime(2016, 10, 7, 10, tzinfo=SYDNEY)


@pytest.mark.parametrize(("days", "hour"), [(0, 4), (1, 3)])
def test_a_week_is_never_final_before_its_last_service_day_is_over(days: int, hour: int) -> None:
    schedule = ScheduleSpec(final_after_days=days, weekly_at=time(3))
    clock = TimeSpec(SYDNEY, slot_minutes=15, day_starts=240)
    moment = final_at(ServiceWeek(2016, 39), schedule, clock)  # clocks change on its Sunday
    assert moment.astimezone(SYDNEY) == datetime(2016, 10, 3 + days, hour, tzinfo=SYDNEY)


@given(st.dates(min_value=date(2016, 1, 4)), st.integers(1, 400).filter(lambda n: n != 7))
def test_every_day_lies_in_one_period_of_its_length(day: date, length: int) -> None:
    schedule = ScheduleSpec(0, time(10), length, FIRST_DAY)
    period = period_containing(day, schedule)
    assert isinstance(period, ServiceDays)
    assert day in period.days
    assert len(period.days) == length
    assert (period.first_day - FIRST_DAY).days % length == 0
    assert {period_containing(each, schedule) for each in period.days} == {period}
    assert period_containing(period.last_day + timedelta(days=1), schedule) == period.plus(1)


def test_a_month_of_daylight_saving_is_found_again_from_its_interval() -> None:
    month = period_containing(date(2022, 10, 2), MONTHS)  # an hour is lost that night in Sydney
    start, end = starts_at(month, SYDNEY), month.ends_at(SYDNEY)
    assert end - start == timedelta(days=31, hours=-1)
    assert period_of_interval(start, end, MONTHS, zone=SYDNEY, now=end) == month
    with pytest.raises(NotFinal, match="is not over"):
        period_of_interval(start, end, MONTHS, zone=SYDNEY, now=end - timedelta(seconds=1))


@pytest.mark.parametrize("shift", [timedelta(days=1), timedelta(days=7), timedelta(hours=1)])
def test_days_that_are_no_period_of_the_programme_are_refused(shift: timedelta) -> None:
    month = ServiceDays(FIRST_DAY, date(2021, 12, 15))
    start, end = starts_at(month, SYDNEY), month.ends_at(SYDNEY)
    assert period_of_interval(start, end, MONTHS, zone=SYDNEY, now=LATER) == month
    with pytest.raises(InputError, match="31 service days counted from 2021-11-15"):
        period_of_interval(start + shift, end + shift, MONTHS, zone=SYDNEY, now=LATER)
