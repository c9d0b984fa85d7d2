"""TIDES 1.0: fare transactions become trips, vehicle locations become telemetry."""

from __future__ import annotations

from datetime import date, datetime
from functools import partial

import pytest
from ingested_weeks import Read

from turnstile.errors import InputError
from turnstile.programme.source_spec import Feed, SpeedUnit, TapAction

FARES = "transaction_id,service_date,event_timestamp,token_id,stop_id,fare_action,num_riders"
PINGS = "location_ping_id,service_date,event_timestamp,vehicle_id,latitude,longitude,speed"
MONDAY = date(2016, 7, 25)
READ = "card_id, mode, service_date, tap_on_minute, tap_on_location, tap_off_minute"


@pytest.fixture
def fares(ingested: Read) -> Read:
    """Trips of lines of fare transactions."""
    feed = Feed.TIDES_FARE_TRANSACTIONS
    return partial(ingested, header=FARES, read=READ, feed=feed, modes=("bus",))


def test_enter_and_exit_of_a_token_are_one_trip(fares: Read) -> None:
    rows, counts = fares(
        "1,2016-07-25,2016-07-25T08:00:00+10:00,t,A,Enter,1",
        "2,2016-07-25,2016-07-24T22:30:00Z,t,B,Exit,1",
    )
    assert rows == [("t", "bus", MONDAY, 480, "A", 510)]
    assert counts == {"rows_in": 2, "rows_out": 1, "joined": 1}


def test_a_group_counts_once_and_nobody_does_not_count(fares: Read) -> None:
    rows, counts = fares(
        "1,2016-07-25,2016-07-25T08:00:00,t,A,Enter,12",
        "2,2016-07-25,2016-07-25T09:00:00,t,A,Enter,0",
        "3,2016-07-25,2016-07-25T10:00:00,t,A,Enter,",
    )
    assert [row[3] for row in rows] == [480, 600]
    assert counts["no_riders"] == 1


def test_what_is_no_tap_is_set_aside_unless_the_programme_says_what_it_does(
    fares: Read,
) -> None:
    line = "1,2016-07-25,2016-07-25T08:00:00,t,A,Transfer entrance,1"
    assert fares(line)[1] == {"rows_in": 1, "unknown_action": 1}
    assert fares(line.replace("Transfer entrance", "Purchase"))[1] == {
        "rows_in": 1,
        "other_action": 1,
    }
    rows, _ = fares(line, action_names=(("Transfer entrance", TapAction.ENTER),))
    assert len(rows) == 1


def test_the_service_day_goes_on_past_midnight_and_a_trip_does_not_leave_it(
    fares: Read,
) -> None:
    rows, counts = fares(
        "1,2016-07-25,2016-07-25T23:50:00,t,A,Enter,1",
        "2,2016-07-25,2016-07-26T00:20:00,t,B,Exit,1",
        "3,2016-07-25,2016-07-26T00:30:00,u,A,Enter,1",
        "4,2016-07-26,2016-07-26T05:00:00,u,B,Exit,1",
    )
    assert rows == [("t", "bus", MONDAY, 1430, "A", 20), ("u", "bus", MONDAY, 30, "A", None)]
    assert counts["tap_off_without_tap_on"] == 1


@pytest.mark.parametrize("nothing", ["", "NA", "NaN"])
def test_a_transaction_without_a_token_goes_to_quarantine(fares: Read, nothing: str) -> None:
    rows, counts = fares(f"1,2016-07-25,2016-07-25T08:00:00,{nothing},A,Enter,1")
    assert rows == []
    assert counts == {"rows_in": 1, "card_id_missing": 1}


def test_a_column_of_modes_is_read_and_needed_where_there_are_several(fares: Read) -> None:
    line = "1,2016-07-25,2016-07-25T08:00:00,t,A,Enter,1"
    modes = {"modes": ("bus", "train")}
    assert fares(line, **modes)[1] == {"rows_in": 1, "unknown_mode": 1}
    rows, _ = fares(f"{line},train", header=f"{FARES},mode", **modes)
    assert rows[0][1] == "train"


def test_a_file_of_an_older_tides_is_reported(fares: Read) -> None:
    with pytest.raises(InputError, match="fare_action"):
        fares("1,2016-07-25,x,t,A,Enter,1", header=FARES.replace("fare_action", "action"))


def test_vehicle_locations_are_in_metres_a_second(ingested: Read) -> None:
    feed = Feed.TIDES_VEHICLE_LOCATIONS
    rows, counts = ingested(
        "1,2016-07-25,2016-07-25T08:00:00+05:30,v,21.2,72.8,10",
        "2,2016-07-25,2016-07-25T08:00:30+05:30,v,21.2,72.8,NA",
        "3,2016-07-25,2016-07-25T08:01:00+05:30,v,NA,72.8,10",
        "4,2016-07-25,2016-07-25T08:01:30+05:30,v,21.2,72.8,100",
        "5,2016-07-25,2016-07-25T08:02:00+05:30,NaN,21.2,72.8,10",
        header=PINGS,
        read="vehicle_id, observed_at_utc, minute_of_day, speed_milli_kmh",
        name="itms",
        feed=feed,
        speed_unit=feed.speed_unit,
    )
    assert rows == [("v", datetime(2016, 7, 25, 2, 30), 480, 36_000)]  # noqa: DTZ001 - naive UTC
    rules = ("null_speed", "null_coordinates", "speed_out_of_range", "null_vehicle")
    assert [counts[rule] for rule in rules] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("feed", "unit"),
    [
        (Feed.TIDES_VEHICLE_LOCATIONS, SpeedUnit.MS),
        (Feed.GTFS_VEHICLE_POSITIONS, SpeedUnit.MS),
        (Feed.ITMS, SpeedUnit.KMH),
    ],
)
def test_a_feed_has_the_speed_unit_of_its_specification(feed: Feed, unit: SpeedUnit) -> None:
    assert feed.speed_unit is unit
