"""Service weeks are ISO weeks in the agency's time zone."""

from __future__ import annotations

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnstile.errors import InputError
from turnstile.service_calendar import ServiceWeek, is_period, parse_period, zone_named


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


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        *((text, "ISO week") for text in ("2016-30", "2016-W00", "W30", "2016-W30-1", "")),
        *((text, "a year has 52, some have 53") for text in ("2016-W54", "2021-W53")),
        *((text, "between 1900 and 2999") for text in ("1899-W01", "3000-W01")),
        *((f"{text}..2016-07-25", "no range") for text in ("2016-07-26", "2016-06-31")),
    ],
)
def test_what_is_no_period_is_refused(text: str, rule: str) -> None:
    with pytest.raises(InputError, match=rule):
        parse_period(text)
    assert not is_period(text)


@pytest.mark.parametrize("text", ["1900-W01", "2020-W53", "2999-W52", "2016-07-25..2016-07-25"])
def test_the_first_and_the_last_possible_ones_are_periods(text: str) -> None:
    assert str(parse_period(text)) == text
    assert is_period(text)


def test_days_in_a_row_are_a_period() -> None:
    month = parse_period("2021-11-15..2021-12-15")
    assert (month.days[0], month.days[-1]) == (date(2021, 11, 15), date(2021, 12, 15))
    assert [week.iso_week for week in month.weeks] == [46, 47, 48, 49, 50]
    assert [str(month.plus(n)) for n in (-1, 1)] == [
        "2021-10-15..2021-11-14",
        "2021-12-16..2022-01-15",
    ]
    assert month.ends_at(ZoneInfo("Asia/Kolkata")) == datetime(2021, 12, 15, 18, 30, tzinfo=UTC)


def test_a_week_ends_at_local_midnight_whatever_the_daylight_saving() -> None:
    sydney = ZoneInfo("Australia/Sydney")
    # Clocks go back on Sunday 3 April 2016: the week has 169 hours and ends at UTC+10.
    assert ServiceWeek(2016, 13).ends_at(sydney) == datetime(2016, 4, 3, 14, tzinfo=UTC)
    assert ServiceWeek(2016, 12).ends_at(sydney) == datetime(2016, 3, 27, 13, tzinfo=UTC)


def test_an_unknown_zone_is_refused() -> None:
    with pytest.raises(InputError, match="IANA"):
        zone_named("Australia/Sidney", where="opal.yaml")
