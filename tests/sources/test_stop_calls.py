"""Arrivals at stops: what is observed, how late it is, and what a programme may ask of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from turnstile.errors import ProgrammeError
from turnstile.programme.loading import parse_programme
from turnstile.programme.source_spec import Feed
from turnstile.programme.spec import Programme
from turnstile.sources.ingest.gtfs_realtime import message_of
from turnstile.sources.ingest.snapshot import counts_of

INCLUDE = Path(__file__).resolve().parents[2] / "include"
WEEK, SECONDS = "2016-W30", 1_469_413_800  # 2016-07-25 02:30 UTC, 08:00 in India
READ = "vehicle_id, minute_of_day, stop, delay_s"
HEADER = "FAHRT_BEZEICHNER;BPUIC;ANKUNFTSZEIT;AN_PROGNOSE;AN_PROGNOSE_STATUS;FAELLT_AUS_TF"
DUE, AT = "25.07.2016 08:00", "25.07.2016 08:01:30"


def by_stop(programme: Programme) -> Programme:
    domain = replace(programme.domain, lists=(("stop", "domains/stops.csv"),))
    return replace(programme, domain=domain)


def test_an_arrival_of_ist_daten_is_observed_or_it_is_set_aside(
    zones: Any, programme_of: Callable[..., Programme], rows_of: Any
) -> None:
    lines = [
        f"f1;850;{DUE};{AT};REAL;false",
        f"f2;850;{DUE};25.07.2016 07:59:50;REAL;false",
        f"f3;850;{DUE};{AT};PROGNOSE;false",
        f"f4;850;{DUE};{AT};REAL;true",
        "f5;850;;;;false",
        f"f6;850;;{AT};REAL;false",
        f";850;{DUE};{AT};REAL;false",
        f"f8;;{DUE};{AT};REAL;false",
        f"f9;850;{DUE};soon;REAL;false",
    ]
    zones.deliver(WEEK, {"a.csv": "\n".join([HEADER, *lines]) + "\n"})
    programme = by_stop(programme_of("itms_delays", feed=Feed.IST_DATEN))
    snapshot = zones.ingest(programme, WEEK)
    assert rows_of(snapshot, READ) == [
        ("f1", 481, "850", 90), ("f2", 479, "850", -10), ("f6", 481, "850", None),
    ]  # fmt: skip
    counts = {rule: number for rule, number in counts_of(snapshot).items() if number}
    rules = {"not_observed": 3, "null_vehicle": 1, "null_stop": 1, "unparsable_timestamp": 1}
    assert counts == {"rows_in": 9, "rows_out": 3} | rules


def test_an_update_is_observed_once_its_time_has_come(
    zones: Any, programme_of: Callable[..., Programme], rows_of: Any
) -> None:
    entity = message_of("FeedEntity")(id=b"1")
    update = entity.trip_update
    update.trip.trip_id, update.timestamp = b"t1", SECONDS
    for stop, second, late, relation in (
        (b"A", SECONDS - 60, 30, 0),
        (b"B", SECONDS, -5, 0),
        (b"C", SECONDS + 1, 0, 0),
        (b"D", SECONDS - 1, 0, 1),
    ):
        call = update.stop_time_update.add(stop_id=stop, schedule_relationship=relation)
        call.arrival.time, call.arrival.delay = second, late
    left = update.stop_time_update.add(stop_id=b"E")
    left.departure.time, left.departure.delay = SECONDS - 120, 7
    message = message_of("FeedMessage")(entity=[entity.SerializeToString()] * 2)
    zones.deliver(WEEK, {"a.pb": message.SerializeToString()})
    programme = by_stop(programme_of("itms_delays", feed=Feed.GTFS_TRIP_UPDATES))
    snapshot = zones.ingest(programme, WEEK)
    assert rows_of(snapshot, READ) == [
        ("t1", 478, "E", 7), ("t1", 479, "A", 30), ("t1", 480, "B", -5),
    ]  # fmt: skip
    counts = counts_of(snapshot)
    assert (counts["not_observed"], counts["duplicates"]) == (4, 3)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("[slot, stop]", "[slot, cell]", "states no position"),
        ("measure: headway", "measure: mean_speed, clamp_kmh: 60", "states no speed"),
        ("feed: ist_daten", "feed: ist_daten\n  timetable: domains/gtfs.zip", "is for positions"),
    ],
)
def test_what_no_record_states_is_refused(old: str, new: str, says: str) -> None:
    text = (INCLUDE / "programmes/itms_delays.yaml").read_text()
    text = text.replace("feed: itms", "feed: ist_daten").replace("[slot, cell]", "[slot, stop]")
    text = text.replace("domain:\n", "domain:\n  lists: {stop: domains/stops.csv}\n")
    parse_programme(text, "itms_delays.yaml")
    with pytest.raises(ProgrammeError, match=says):
        parse_programme(text.replace(old, new), "itms_delays.yaml")
