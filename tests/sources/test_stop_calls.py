"""Arrivals at stops: what is observed, how late it is, and what a programme may ask of them."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from turnstile.errors import InputError, ProgrammeError
from turnstile.programme.id_form import IdForm, IdKind, LetterCase
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
        (" trip t1", 478, "E", 7), (" trip t1", 479, "A", 30), (" trip t1", 480, "B", -5),
    ]  # fmt: skip
    counts = counts_of(snapshot)
    assert (counts["not_observed"], counts["duplicates"]) == (4, 3)


def calls_of(trip: str, *seconds: int, vehicle: str = "") -> bytes:
    entity = message_of("FeedEntity")(id=b"1")
    update = entity.trip_update
    update.trip.trip_id, update.timestamp = trip.encode(), SECONDS
    if vehicle:
        update.vehicle.id = vehicle.encode()
    for second in seconds:
        update.stop_time_update.add(stop_id=b"A").arrival.time = second
    return bytes(entity.SerializeToString())


@pytest.mark.parametrize("second", [-(2**63), 2**63 - 1, -1, 0, 10_000_000_000])
def test_an_arrival_at_no_time_costs_itself(
    zones: Any, programme_of: Callable[..., Programme], rows_of: Any, second: int
) -> None:
    entities = [calls_of("t1", SECONDS), calls_of("t2", second)]
    zones.deliver(WEEK, {"a.pb": message_of("FeedMessage")(entity=entities).SerializeToString()})
    programme = by_stop(programme_of("itms_delays", feed=Feed.GTFS_TRIP_UPDATES))
    assert rows_of(zones.ingest(programme, WEEK), READ) == [(" trip t1", 480, "A", None)]


@pytest.mark.parametrize(
    ("form", "spellings", "name"),
    [
        (IdForm(IdKind.DIGITS, length=4), ["7", "0007", " 7", "7.0", "\u200b7"], "0007"),
        (IdForm(IdKind.TEXT, case=LetterCase.UPPER), ["t a", "T  A", "\u200bt a\t"], "T A"),
    ],
)
def test_a_trip_that_names_itself_has_one_spelling_as_vehicles_have(
    zones: Any,
    programme_of: Callable[..., Programme],
    rows_of: Any,
    form: IdForm,
    spellings: list[str],
    name: str,
) -> None:
    """Else each spelling would be a vehicle of its own, with bounds of its own."""
    entities = [calls_of(trip, SECONDS - 60 * n) for n, trip in enumerate(spellings)]
    entities += [calls_of("7e+2", SECONDS), calls_of("[t]", SECONDS, vehicle="7e+2")]
    zones.deliver(WEEK, {"a.pb": message_of("FeedMessage")(entity=entities).SerializeToString()})
    programme = programme_of("itms_delays", feed=Feed.GTFS_TRIP_UPDATES, vehicle_form=form)
    snapshot = zones.ingest(by_stop(programme), WEEK)
    assert rows_of(snapshot, "vehicle_id") == [(f" trip {name}",)] * len(spellings)
    assert counts_of(snapshot)["vehicle_id_of_another_form"] == 2


def test_a_trip_that_names_itself_is_no_vehicle_of_its_id(
    zones: Any, programme_of: Callable[..., Programme], rows_of: Any
) -> None:
    entities = [calls_of("7", SECONDS), calls_of("8", SECONDS, vehicle="7")]
    zones.deliver(WEEK, {"a.pb": message_of("FeedMessage")(entity=entities).SerializeToString()})
    programme = by_stop(programme_of("itms_delays", feed=Feed.GTFS_TRIP_UPDATES))
    assert rows_of(zones.ingest(programme, WEEK), "vehicle_id") == [(" trip 7",), ("7",)]


def test_trips_of_floats_name_no_vehicle(
    zones: Any, programme_of: Callable[..., Programme]
) -> None:
    paths: dict[str, list[object]] = {"trip.trip_id": [7.0], "stop_time_update.stop_id": ["A"]}
    paths |= {"stop_time_update.arrival.time": [SECONDS], "stop_time_update.arrival.delay": [5]}
    written = io.BytesIO()
    columns = {f"trip_update.{path}": cells for path, cells in paths.items()}
    pq.write_table(pa.table(columns), written)
    zones.deliver(WEEK, {"a.parquet": written.getvalue()})
    form = IdForm(IdKind.TEXT, case=LetterCase.KEEP)
    programme = programme_of("itms_delays", feed=Feed.GTFS_TRIP_UPDATES, vehicle_form=form)
    with pytest.raises(InputError, match=r"trip_update\.trip\.trip_id.*DOUBLE"):
        zones.ingest(by_stop(programme), WEEK)


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
