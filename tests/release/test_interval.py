"""A run's data interval stands for exactly one service week, or for none."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnstile.errors import InputError, NotFinal
from turnstile.programme.spec import ScheduleSpec
from turnstile.release.interval import final_at, week_of_interval
from turnstile.service_calendar import ServiceWeek

SYDNEY = ZoneInfo("Australia/Sydney")
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
    assert week_of_interval(start, end, zone=zone, now=end) == week


def test_a_week_of_daylight_saving_is_a_week() -> None:
    week = ServiceWeek(2016, 39)  # 26 September to 2 October: 167 hours in Sydney
    start, end = _monday(week, SYDNEY), _monday(week.plus(1), SYDNEY)
    assert end - start == timedelta(hours=167)
    assert week_of_interval(start, end, zone=SYDNEY, now=end) == week


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
        week_of_interval(first, last, zone=SYDNEY, now=LATER)


def test_midnight_elsewhere_is_no_midnight_here() -> None:
    start, end = datetime(2016, 7, 25, tzinfo=UTC), datetime(2016, 8, 1, tzinfo=UTC)
    assert str(week_of_interval(start, end, zone=ZoneInfo("UTC"), now=LATER)) == "2016-W30"
    with pytest.raises(InputError, match="Australia/Sydney"):
        week_of_interval(start, end, zone=SYDNEY, now=LATER)


def test_a_run_without_an_interval_is_refused() -> None:
    with pytest.raises(InputError, match="backfill"):
        week_of_interval(None, None, zone=SYDNEY, now=LATER)


def test_a_week_that_is_not_over_is_refused_until_its_last_instant() -> None:
    week = ServiceWeek(2016, 30)
    start, end = _monday(week, SYDNEY), _monday(week.plus(1), SYDNEY)
    with pytest.raises(NotFinal, match="2016-W30 is not over"):
        week_of_interval(start, end, zone=SYDNEY, now=end - timedelta(microseconds=1))
    assert week_of_interval(start, end, zone=SYDNEY, now=end) == week


def test_a_week_is_final_some_days_after_its_end_on_the_agencys_clock() -> None:
    schedule = ScheduleSpec(final_after_days=4, weekly_at=time(10))
    moment = final_at(ServiceWeek(2016, 39), schedule, zone=SYDNEY)
    assert moment.astimezone(SYDNEY) == datetime(2016, 10, 7, 10, tzinfo=SYDNEY)
