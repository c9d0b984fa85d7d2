"""Service weeks are ISO weeks in the agency's time zone."""

from __future__ import annotations

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnstile.errors import InputError
from turnstile.service_calendar import ServiceWeek, zone_named


def test_a_week_is_named_as_in_iso_8601() -> None:
    week = ServiceWeek.parse("2016-W30")
    assert week.monday == date(2016, 7, 25)
    assert len(week.days) == 7
    assert str(week) == "2016-W30"


@given(st.dates(min_value=date(1990, 1, 8), max_value=date(2100, 1, 1)))
def test_every_day_belongs_to_exactly_one_week(day: date) -> None:
    week = ServiceWeek.containing(day)
    assert day in week.days
    assert day not in week.plus(1).days
    assert ServiceWeek.parse(str(week)) == week


@pytest.mark.parametrize("text", ["2016-30", "2016-W54", "2021-W53", "W30", "2016-W30-1", ""])
def test_what_is_no_week_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="ISO week"):
        ServiceWeek.parse(text)


def test_a_week_ends_at_local_midnight_whatever_the_daylight_saving() -> None:
    sydney = ZoneInfo("Australia/Sydney")
    # Clocks go back on Sunday 3 April 2016: the week has 169 hours and ends at UTC+10.
    assert ServiceWeek(2016, 13).ends_at(sydney) == datetime(2016, 4, 3, 14, tzinfo=UTC)
    assert ServiceWeek(2016, 12).ends_at(sydney) == datetime(2016, 3, 27, 13, tzinfo=UTC)


def test_an_unknown_zone_is_refused() -> None:
    with pytest.raises(InputError, match="IANA"):
        zone_named("Australia/Sidney", where="opal.yaml")
