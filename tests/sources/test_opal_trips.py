"""Trips as they are delivered become canonical trips: clocks, midnight, UNKNOWN, modes."""

from __future__ import annotations

from datetime import date
from functools import partial

import pytest
from ingested_weeks import Read

HEADER = (
    "card_id,mode,tap_on_date,tap_on_time,tap_on_location,"
    "tap_off_date,tap_off_time,tap_off_location"
)


@pytest.fixture
def trips(ingested: Read) -> Read:
    """Canonical trips of lines."""
    return partial(ingested, header=HEADER)


def test_a_trip_past_midnight_belongs_to_the_day_of_its_tap_on(trips: Read) -> None:
    rows, _ = trips("c,bus,2016-07-31,23:50,A,2016-08-01,00:10,B")
    assert rows == [("c", "bus", date(2016, 7, 31), 1430, "A", date(2016, 8, 1), 10, "B", "b0")]


@pytest.mark.parametrize(
    "off",
    [",,UNKNOWN", ",,", "2016-07-25,09:00,UNKNOWN", "2016-07-25,09:00,unknown", "2016-07-25,,B"],
)
def test_a_tap_off_that_lacks_place_or_time_is_unknown_altogether(trips: Read, off: str) -> None:
    read = "tap_off_date, tap_off_minute, tap_off_location"
    rows, _ = trips(f"c,bus,2016-07-25,08:00,A,{off}", read=read)
    assert rows == [(None, None, "UNKNOWN")]


def test_times_may_have_seconds_and_are_truncated_to_the_minute(trips: Read) -> None:
    line = "c,bus,2016-07-25,08:00:59,A,2016-07-25,08:30:59,B"
    rows, _ = trips(line, read="tap_on_minute, tap_off_minute")
    assert rows == [(480, 510)]


def test_24_00_is_the_first_minute_of_the_next_day_and_a_later_time_costs_itself(
    trips: Read,
) -> None:
    rows, counts = trips(
        "c,bus,2016-07-25,24:00:00,A,2016-07-25,24:00,B",
        "d,bus,2016-07-31,24:00,A,,,",
        "e,bus,2016-07-25,25:00,A,,,",
        "f,bus,2016-07-25,23:50,A,2016-07-25,24:01,B",
        read="service_date, tap_on_minute, tap_off_date, tap_off_minute",
    )
    assert rows == [(date(2016, 7, 26), 0, date(2016, 7, 26), 0)]
    assert counts == {"rows_in": 4, "rows_out": 1, "outside_week": 1, "unparsable_timestamp": 2}


def test_a_mode_may_have_another_name_in_the_source(trips: Read) -> None:
    lines = ("c,LR,2016-07-25,08:00,A,,,", "d,bus,2016-07-25,08:00,A,,,")
    rows, _ = trips(*lines, read="mode", mode_names=(("LR", "light_rail"),))
    assert rows == [("bus",), ("light_rail",)]


def test_when_the_clock_goes_back_a_trip_may_end_earlier_than_it_began(trips: Read) -> None:
    # Sydney, 3 April 2016: 03:00 daylight time becomes 02:00 standard time.
    _, counts = trips(
        "a,bus,2016-04-03,02:50,A,2016-04-03,02:10,B",  # twenty minutes, over the change
        "b,bus,2016-04-03,02:50,A,2016-04-03,01:59,B",  # never
        "d,bus,2016-04-03,02:59,A,2016-04-03,02:00,B",  # one minute, over the change
        "c,bus,2016-04-03,03:00,A,2016-04-03,02:50,B",  # begun after the change
        week="2016-W13",
    )
    assert counts == {"rows_in": 4, "rows_out": 2, "tap_off_before_tap_on": 2}


def test_on_another_night_no_trip_ends_before_it_began(trips: Read) -> None:
    rows, counts = trips("a,bus,2016-07-31,02:50,A,2016-07-31,02:10,B")
    assert (rows, counts) == ([], {"rows_in": 1, "tap_off_before_tap_on": 1})


def test_two_taps_in_one_minute_are_two_trips_and_a_trip_that_came_twice_is_one(
    trips: Read,
) -> None:
    line = "c,bus,2016-07-25,08:00:10,A,,,"
    other = "c,bus,2016-07-25,08:00:50,B,,,"
    rows, counts = trips(line, line, other, read="tap_on_minute, tap_on_location")
    assert rows == [(480, "A"), (480, "B")]
    assert counts == {"rows_in": 3, "rows_out": 2, "duplicates": 1}


def test_a_trip_without_a_card_is_set_aside_and_counted(trips: Read) -> None:
    line = "c,bus,2016-07-25,08:00,A,,,"
    _, counts = trips(line, line.replace("c", "", 1), line.replace("c", " ", 1))
    assert counts == {"rows_in": 3, "rows_out": 1, "card_id_missing": 2}


def test_columns_may_have_other_names_in_the_source(trips: Read) -> None:
    options = {"header": HEADER.replace("card_id", "CardRef"), "columns": (("card_id", "CardRef"),)}
    rows, _ = trips("c,bus,2016-07-25,08:00,A,,,", read="card_id", **options)
    assert rows == [("c",)]
