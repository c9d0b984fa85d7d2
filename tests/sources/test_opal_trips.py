"""Trips as they are delivered become canonical trips: clocks, midnight, UNKNOWN, modes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from quarantined import quarantine_counts

from turnstile.programme.spec import Programme
from turnstile.sources.snapshot import counts_of

HEADER = (
    "card_id,mode,tap_on_date,tap_on_time,tap_on_location,"
    "tap_off_date,tap_off_time,tap_off_location"
)
OFF = "tap_off_date, tap_off_minute, tap_off_location"


def _trips(*lines: str) -> dict[str, str]:
    return {"trips.csv": "\n".join([HEADER, *lines]) + "\n"}


def test_a_trip_past_midnight_belongs_to_the_day_of_its_tap_on(
    zones: Any, programme_of: Callable[..., Programme], rows_of: Callable[..., Any]
) -> None:
    zones.deliver("2016-W30", _trips("c,bus,2016-07-31,23:50,A,2016-08-01,00:10,B"))
    snapshot = zones.ingest(programme_of("opal"), "2016-W30")
    assert snapshot.days == (date(2016, 7, 31),)
    assert rows_of(snapshot) == [
        ("c", "bus", date(2016, 7, 31), 1430, "A", date(2016, 8, 1), 10, "B", "b0")
    ]


@pytest.mark.parametrize(
    "off",
    [",,UNKNOWN", ",,", "2016-07-25,09:00,UNKNOWN", "2016-07-25,09:00,unknown", "2016-07-25,,B"],
)
def test_a_tap_off_that_lacks_place_or_time_is_unknown_altogether(
    zones: Any, programme_of: Callable[..., Programme], rows_of: Callable[..., Any], off: str
) -> None:
    zones.deliver("2016-W30", _trips(f"c,bus,2016-07-25,08:00,A,{off}"))
    snapshot = zones.ingest(programme_of("opal"), "2016-W30")
    assert rows_of(snapshot, OFF) == [(None, None, "UNKNOWN")]


def test_times_may_have_seconds_and_are_truncated_to_the_minute(
    zones: Any, programme_of: Callable[..., Programme], rows_of: Callable[..., Any]
) -> None:
    zones.deliver("2016-W30", _trips("c,bus,2016-07-25,08:00:59,A,2016-07-25,08:30:59,B"))
    snapshot = zones.ingest(programme_of("opal"), "2016-W30")
    assert rows_of(snapshot, "tap_on_minute, tap_off_minute") == [(480, 510)]


def test_a_mode_may_have_another_name_in_the_source(
    zones: Any, programme_of: Callable[..., Programme], rows_of: Callable[..., Any]
) -> None:
    zones.deliver("2016-W30", _trips("c,LR,2016-07-25,08:00,A,,,", "d,bus,2016-07-25,08:00,A,,,"))
    snapshot = zones.ingest(programme_of("opal", mode_names=(("LR", "light_rail"),)), "2016-W30")
    assert rows_of(snapshot, "mode") == [("bus",), ("light_rail",)]


def test_when_the_clock_goes_back_a_trip_may_end_earlier_than_it_began(
    zones: Any, programme_of: Callable[..., Programme]
) -> None:
    # Sydney, 3 April 2016: 03:00 daylight time becomes 02:00 standard time.
    zones.deliver(
        "2016-W13",
        _trips(
            "a,bus,2016-04-03,02:50,A,2016-04-03,02:10,B",  # twenty minutes, over the change
            "b,bus,2016-04-03,02:50,A,2016-04-03,01:59,B",  # never
            "d,bus,2016-04-03,02:59,A,2016-04-03,02:00,B",  # one minute, over the change
            "c,bus,2016-04-03,03:00,A,2016-04-03,02:50,B",  # begun after the change
        ),
    )
    snapshot = zones.ingest(programme_of("opal"), "2016-W13")
    assert quarantine_counts(snapshot)["tap_off_before_tap_on"] == 2


def test_on_another_night_no_trip_ends_before_it_began(
    zones: Any, programme_of: Callable[..., Programme]
) -> None:
    zones.deliver("2016-W30", _trips("a,bus,2016-07-31,02:50,A,2016-07-31,02:10,B"))
    snapshot = zones.ingest(programme_of("opal"), "2016-W30")
    assert quarantine_counts(snapshot)["tap_off_before_tap_on"] == 1
    assert snapshot.days == ()


def test_two_taps_in_one_minute_are_two_trips_and_a_trip_that_came_twice_is_one(
    zones: Any, programme_of: Callable[..., Programme], rows_of: Callable[..., Any]
) -> None:
    line = "c,bus,2016-07-25,08:00:10,A,,,"
    other = "c,bus,2016-07-25,08:00:50,B,,,"
    zones.deliver("2016-W30", _trips(line, line, other))
    snapshot = zones.ingest(programme_of("opal"), "2016-W30")
    assert rows_of(snapshot, "tap_on_minute, tap_on_location") == [(480, "A"), (480, "B")]
    assert counts_of(snapshot)["duplicates"] == 1


def test_a_trip_without_a_card_is_set_aside_and_counted(
    zones: Any, programme_of: Callable[..., Programme]
) -> None:
    line = "c,bus,2016-07-25,08:00,A,,,"
    zones.deliver("2016-W30", _trips(line, line.replace("c", "", 1), line.replace("c", " ", 1)))
    snapshot = zones.ingest(programme_of("opal"), "2016-W30")
    assert counts_of(snapshot)["rows_out"] == 1
    assert quarantine_counts(snapshot)["card_id_missing"] == 2


def test_columns_may_have_other_names_in_the_source(
    zones: Any, programme_of: Callable[..., Programme], rows_of: Callable[..., Any]
) -> None:
    file = _trips("c,bus,2016-07-25,08:00,A,,,")["trips.csv"].replace("card_id", "CardRef")
    zones.deliver("2016-W30", {"trips.csv": file})
    snapshot = zones.ingest(programme_of("opal", columns=(("card_id", "CardRef"),)), "2016-W30")
    assert rows_of(snapshot, "card_id") == [("c",)]
