"""Taps become trips by stated rules: order, midnight, missing ends, ids, grid cells, dates."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from functools import partial
from typing import Any

import pytest
from ingested_weeks import Read

from turnstile.errors import InputError
from turnstile.programme.source_spec import DateForm, Feed, TapAction
from turnstile.programme.spec import Programme

HEADER = "tap_id,card_id,mode,action,tapped_at,place"
WEEK = "2016-W30"
MONDAY, TUESDAY, SUNDAY = date(2016, 7, 25), date(2016, 7, 26), date(2016, 7, 31)
ENDS = "card_id, service_date, tap_on_minute, tap_off_date, tap_off_minute, tap_off_location"


@pytest.fixture
def trips(ingested: Read) -> Read:
    """Trips of lines of taps."""
    return partial(ingested, header=HEADER, read=ENDS, feed=Feed.TAPS)


def test_a_tap_on_and_the_next_tap_off_of_the_card_are_one_trip(trips: Read) -> None:
    rows, counts = trips(
        "1,c,bus,enter,2016-07-25 08:00:10,A",
        "3,c,bus,exit,2016-07-25 08:20,B",
        "2,d,bus,exit,2016-07-25 08:10,B",  # of a card that did not tap on
        "4,c,bus,exit,2016-07-25 08:40,B",  # a second one
    )
    assert rows == [("c", MONDAY, 480, MONDAY, 500, "B")]
    assert counts == {"rows_in": 4, "rows_out": 1, "joined": 1, "tap_off_without_tap_on": 2}


def test_a_missing_tap_off_is_unknown(trips: Read) -> None:
    rows, counts = trips(
        "1,c,bus,enter,2016-07-25 08:00,A",
        "2,c,bus,enter,2016-07-25 09:00,A",
        "3,c,bus,exit,2016-07-25 09:30,B",
    )
    assert rows == [
        ("c", MONDAY, 480, None, None, "UNKNOWN"),
        ("c", MONDAY, 540, MONDAY, 570, "B"),
    ]
    assert counts == {"rows_in": 3, "rows_out": 2, "joined": 1}


@pytest.mark.parametrize(
    ("header", "stated", "is_read"),
    [
        ("tap_id,card_id,mode,kind,tapped_at,place", {}, True),
        ("tap_id,card_id,mode,other,tapped_at,place", {}, False),
        ("tap_id,card_id,mode,other,tapped_at,place", {"without_action": TapAction.ENTER}, True),
    ],
)
def test_a_file_without_the_named_column_of_actions_is_refused_unless_that_is_stated(
    trips: Read, header: str, stated: dict[str, Any], *, is_read: bool
) -> None:
    columns = (("action", "kind"),)
    line = "1,c,bus,enter,2016-07-25 08:00,A"
    if is_read:
        assert len(trips(line, header=header, columns=columns, **stated)[0]) == 1
        return
    with pytest.raises(InputError, match=r"a\.csv: kind: the column is missing"):
        trips(line, header=header, columns=columns, **stated)


def test_a_tap_off_before_the_tap_on_ends_nothing(trips: Read) -> None:
    rows, counts = trips("1,c,bus,exit,2016-07-25 07:59,B", "2,c,bus,enter,2016-07-25 08:00,A")
    assert rows == [("c", MONDAY, 480, None, None, "UNKNOWN")]
    assert counts["tap_off_without_tap_on"] == 1


@pytest.mark.parametrize(("off", "is_ended"), [("14:00", True), ("14:01", False)])
def test_a_tap_off_ends_a_trip_up_to_six_hours_later(
    trips: Read, off: str, *, is_ended: bool
) -> None:
    rows, counts = trips("1,c,bus,enter,2016-07-25 08:00,A", f"2,c,bus,exit,2016-07-25 {off},B")
    assert (rows[0][-1] == "B") is is_ended
    assert counts.get("joined", 0) == int(is_ended)


NIGHT = (
    "1,c,bus,enter,2016-07-25 23:50,A",
    "2,c,bus,exit,2016-07-26 00:10,B",
    "3,d,bus,enter,2016-07-31 23:50,A",
    "4,d,bus,exit,2016-08-01 00:10,B",
    "5,e,bus,enter,2016-07-25 03:59,A",  # of the service day before, and so of the week before
    "6,f,bus,enter,2016-07-27 03:59,A",
    "7,f,bus,exit,2016-07-27 04:00,B",
)


def test_a_trip_does_not_leave_its_service_day(trips: Read) -> None:
    rows, counts = trips(*NIGHT[:4])
    assert rows == [
        ("c", MONDAY, 1430, None, None, "UNKNOWN"),
        ("d", SUNDAY, 1430, None, None, "UNKNOWN"),
    ]
    assert counts == {"rows_in": 4, "rows_out": 2, "tap_off_without_tap_on": 1, "outside_week": 1}


def test_a_service_day_may_begin_in_the_night(trips: Read) -> None:
    rows, counts = trips(*NIGHT, day_starts=240)
    assert rows == [
        ("c", MONDAY, 1430, MONDAY, 1450, "B"),
        ("d", SUNDAY, 1430, SUNDAY, 1450, "B"),
        ("f", TUESDAY, 1679, None, None, "UNKNOWN"),
    ]
    counted = {"rows_in": 7, "rows_out": 3, "joined": 2}
    assert counts == counted | {"outside_week": 1, "tap_off_without_tap_on": 1}


def test_two_files_may_hold_the_two_ends_of_a_trip(
    zones: Any, programme_of: Callable[..., Programme], rows_of: Callable[..., Any]
) -> None:
    first = f"{HEADER}\n1,c,bus,enter,2016-07-25 22:50,A\n"
    second = f"{HEADER}\n2,c,bus,exit,2016-07-25 23:10,B\n"
    zones.deliver(WEEK, {"2.csv": first, "1.csv": second})
    rows = rows_of(zones.ingest(programme_of("opal", feed=Feed.TAPS), WEEK), ENDS)
    assert rows == [("c", MONDAY, 1370, MONDAY, 1390, "B")]


def test_at_the_same_time_a_tap_on_comes_before_a_tap_off(trips: Read) -> None:
    rows, counts = trips("1,c,bus,exit,2016-07-25 08:00,B", "2,c,bus,enter,2016-07-25 08:00,A")
    assert rows == [("c", MONDAY, 480, MONDAY, 480, "B")]
    assert counts == {"rows_in": 2, "rows_out": 1, "joined": 1}


def test_taps_of_one_minute_count_in_the_order_of_their_ids_and_none_is_lost(
    trips: Read,
) -> None:
    rows, counts = trips(
        "9,c,bus,exit,2016-07-25 08:00,B",
        "10,c,bus,enter,2016-07-25 08:00,A",
        "11,c,bus,enter,2016-07-25 08:00,C",
    )
    assert rows == [
        ("c", MONDAY, 480, MONDAY, 480, "B"),
        ("c", MONDAY, 480, None, None, "UNKNOWN"),
    ]
    assert counts == {"rows_in": 3, "rows_out": 2, "joined": 1}


def test_a_tap_that_came_twice_counts_once_and_equal_taps_with_ids_of_their_own_count_each(
    trips: Read,
) -> None:
    same = ",c,bus,enter,2016-07-25 08:00,A"
    rows, counts = trips(f"1{same}", f"1{same}", f"2{same}")
    assert len(rows) == 2
    assert counts == {"rows_in": 3, "rows_out": 2, "duplicates": 1}


def test_a_tap_off_of_another_mode_ends_no_trip(trips: Read) -> None:
    rows, counts = trips(
        "1,c,train,enter,2016-07-25 08:00,A",
        "2,c,bus,exit,2016-07-25 08:10,B",
        "3,c,train,exit,2016-07-25 08:20,C",
    )
    assert rows == [("c", MONDAY, 480, MONDAY, 500, "C")]
    assert counts["tap_off_without_tap_on"] == 1


def test_what_breaks_a_rule_goes_to_quarantine_by_the_name_of_the_rule(trips: Read) -> None:
    rows, counts = trips(
        "1,,bus,enter,2016-07-25 08:00,A",
        "2,c,hovercraft,enter,2016-07-25 08:00,A",
        "3,c,bus,enter,2016-07-25 08:00,",
        "4,c,bus,inspected,2016-07-25 08:00,A",
        "5,c,bus,enter,soon,A",
        "6,c,bus,exit,2016-07-25 25:00,A",
        "7,c,bus,enter,2016-08-02 08:00,A",
    )
    assert rows == []
    assert counts == {
        "rows_in": 7,
        "card_id_missing": 1,
        "unknown_mode": 1,
        "null_location": 1,
        "unknown_action": 1,
        "unparsable_timestamp": 2,
        "outside_week": 1,
    }


def test_where_a_file_has_no_actions_every_tap_is_a_tap_on(trips: Read) -> None:
    rows, _ = trips("c,bus,2016-07-25 08:00,A", header="card_id,mode,tapped_at,place")
    assert rows == [("c", MONDAY, 480, None, None, "UNKNOWN")]


def test_the_sources_own_words_are_mapped(trips: Read) -> None:
    rows, counts = trips(
        "c,TRE,CHECK IN,25/07/2016,8,-34.65,-58.449",
        "c,TRE,CHECK OUT,25/07/2016,9,-34.04,-58.45",
        "c,TRE,CHECK OUT SIN CHECKIN,25/07/2016,10,-34.04,-58.45",
        "c,TRE,RECARGA,25/07/2016,10,-34.04,-58.45",
        "d,COL,,05/07/2016,10,-34.04,-58.45",
        header="tarjeta,modo,tipo,fecha,hora,lat,lon",
        read="mode, tap_on_minute, tap_on_location, tap_off_minute, tap_off_location",
        date_form=DateForm.DAY_FIRST,
        mode_names=(("TRE", "train"), ("COL", "bus")),
        action_names=(
            ("CHECK IN", TapAction.ENTER),
            ("CHECK OUT", TapAction.EXIT),
            ("CHECK OUT SIN CHECKIN", TapAction.NO_TAP),
        ),
        columns=(
            ("card_id", "tarjeta"),
            ("mode", "modo"),
            ("action", "tipo"),
            ("tap_date", "fecha"),
            ("tap_time", "hora"),
            ("latitude", "lat"),
            ("longitude", "lon"),
        ),
    )
    assert rows == [("train", 480, "-34.7 -58.4", 540, "-34.0 -58.5")]
    assert counts["other_action"] == counts["unknown_action"] == counts["outside_week"] == 1


@pytest.mark.parametrize("header", ["card_id,place", "card_id,tap_date,place", "tapped_at,place"])
def test_a_file_without_card_or_time_is_reported(trips: Read, header: str) -> None:
    with pytest.raises(InputError, match="the column is missing"):
        trips(",".join("x" for _ in header.split(",")), header=header)


def test_a_file_without_any_place_is_reported(trips: Read) -> None:
    with pytest.raises(InputError, match="place"):
        trips("c,2016-07-25 08:00,1", header="card_id,tapped_at,latitude")
