"""A domain is made from public sources alone, and what does not join is named."""

from __future__ import annotations

import csv
import json
import zipfile
from pathlib import Path

import pytest
from hostile_files import LANDING
from hypothesis import given
from hypothesis import strategies as st

from turnstile.cli import main
from turnstile.errors import InputError
from turnstile.programme.domain.building import (
    BuildRules,
    LocationName,
    PostcodePoint,
    Stop,
    build_domain,
    nearest_postcodes,
)
from turnstile.programme.domain.files import load_domain
from turnstile.programme.domain.public_domain import UNKNOWN
from turnstile.programme.domain.public_sources import read_postcodes, read_stops
from turnstile.programme.loading import load_programme

INCLUDE = Path(__file__).parents[2] / "include"
GTFS = {
    "agency.txt": "agency_id,agency_name,agency_url,agency_timezone\n"
    "a,Example,https://transport.example,Australia/Sydney\n",
    "feed_info.txt": "feed_publisher_name,feed_publisher_url,feed_lang,feed_version\n"
    "Example,https://transport.example,en,2016-07\n",
    "routes.txt": "route_id,agency_id,route_short_name,route_type\n"
    "rb,a,1,700\nrt,a,T1,2\nrf,a,F1,4\nrg,a,Gondola,6\n",
    "trips.txt": "route_id,service_id,trip_id\nrb,s,tb\nrt,s,tt\nrf,s,tf\nrg,s,tg\n",
    "calendar.txt": "service_id,monday,tuesday,wednesday,thursday,friday,saturday,sunday,"
    "start_date,end_date\ns,1,1,1,1,1,1,1,20160701,20160731\n",
    "stops.txt": "stop_id,stop_name,stop_lat,stop_lon,location_type,parent_station\n"
    "b1,High St,-33.80,151.00,0,\n"
    "b2,Low St,-33.90,151.20,0,\n"
    "b3,Far St,-30.00,140.00,0,\n"
    "c,Central,-33.88,151.206,1,\n"
    "c1,Central 1,-33.8801,151.206,0,c\n"
    "c2,Central 2,-33.8802,151.206,0,c\n"
    "ce,Central Entrance,-33.88,151.206,2,c\n"
    "w,Wharf 1,-33.86,151.21,0,\n"
    "g,Gondola,-33.86,151.21,0,\n"
    "x,Lost,,,0,\n",
    "stop_times.txt": "trip_id,arrival_time,departure_time,stop_id,stop_sequence\n"
    "tb,04:30:00,04:30:00,b1,1\ntb,05:00:00,05:00:00,b2,2\ntb,25:10:30,25:10:30,b3,3\n"
    "tt,06:00:00,06:00:00,c1,1\ntt,06:10:00,06:10:00,c2,2\n"
    "tf,07:00:00,07:00:00,w,1\ntf,07:30:00,07:30:00,w,2\n"
    "tg,09:00:00,09:00:00,g,1\n",
}
POSTCODES = (
    "Postcode,Lat,Long,Type\n2150,-33.81,151.01,Delivery Area\n2000,-33.89,151.2,Delivery Area\n"
    "1001,-33.9,151.2,LVR\n2999,,,Delivery Area\n"
)


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    with zipfile.ZipFile(tmp_path / "feed.zip", "w") as archive:
        for name, text in GTFS.items():
            archive.writestr(name, text)
    (tmp_path / "postcodes.csv").write_text(POSTCODES)
    return tmp_path


def build(sources: Path, *options: str, feed: str = "feed.zip") -> int:
    out = ["--out", str(sources / "include/domains/built.csv")]
    postcodes = ["--postcodes", str(sources / "postcodes.csv")]
    return main(["domain", "build", str(sources / feed), *postcodes, *out, *options])


def lines(sources: Path) -> list[tuple[str, ...]]:
    with (sources / "include/domains/built.csv").open() as stream:
        return [tuple(row.values())[:3] for row in csv.DictReader(stream)]


def test_a_feed_and_a_lookup_become_a_domain_with_a_report(
    sources: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert build(sources) == 0
    assert lines(sources) == [
        ("bus", "b1", "2150"),
        ("bus", "b2", "2000"),  # the large receiver nearer by is no place
        ("ferry", "w", "Wharf 1"),
        ("train", "c", "Central"),
        ("train", "c1", "Central"),
        ("train", "c2", "Central"),
    ]
    record = json.loads((sources / "include/domains/built.sources.json").read_text())
    assert record["left_out"] == {
        "far_from_postcodes": ["b3"],
        "without_coordinates": ["x"],
        "without_service": ["g"],
    }
    assert record["service_hours"] == {
        "bus": ["04:30", "25:10"],
        "ferry": ["07:00", "07:30"],
        "train": ["06:00", "06:10"],
    }
    assert record["feed_version"] == "2016-07"
    assert set(record["sources"]) == {"feed.zip", "postcodes.csv"}
    output = capsys.readouterr().out
    assert "train: 3 locations in 1 areas, served 06:00 to 06:10" in output
    assert "left out, far from postcodes: 1 stops (b3)" in output


def test_a_folder_gives_the_same_bytes_as_the_archive_and_so_does_a_second_run(
    sources: Path,
) -> None:
    assert build(sources) == 0
    first = (sources / "include/domains/built.csv").read_bytes()
    assert build(sources) == 0
    assert (sources / "include/domains/built.csv").read_bytes() == first
    (sources / "feed").mkdir()
    for name, text in GTFS.items():
        (sources / "feed" / name).write_text(text)
    assert build(sources, feed="feed") == 0
    assert (sources / "include/domains/built.csv").read_bytes() == first


def test_a_programme_reads_the_domain_that_was_built(sources: Path) -> None:
    build(sources)
    text = (INCLUDE / "programmes/opal.yaml").read_text()
    text = text.replace("opal_locations.csv", "built.csv")
    text = text.replace("[bus, ferry, light_rail, train]", "[bus, ferry, train]")
    programmes = sources / "include/programmes"
    programmes.mkdir()
    (programmes / "opal.yaml").write_text(text)
    domain = load_domain(load_programme("opal", sources / "include"), sources / "include")
    assert domain.dimension("bus", "tap_on_location").labels == ("2000", "2150", UNKNOWN)
    assert domain.dimension("train", "tap_on_location").labels == ("Central", UNKNOWN)


def test_a_programme_reads_the_hours_that_were_built(
    sources: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert build(sources, "--margin-minutes", "10") == 0
    assert "for domain.slots: " in capsys.readouterr().out
    hours = (sources / "include/domains/built.hours.csv").read_text()
    assert hours == "mode,first,last\nbus,04:20,25:21\nferry,06:50,07:41\ntrain,05:50,06:21\n"
    text = (INCLUDE / "programmes/opal.yaml").read_text()
    text = text.replace("opal_locations.csv", "built.csv")
    text = text.replace("all_day", "domains/built.hours.csv")
    text = text.replace("[bus, ferry, light_rail, train]", "[bus, ferry, train]")
    (sources / "include/programmes").mkdir()
    (sources / "include/programmes/opal.yaml").write_text(text)
    domain = load_domain(load_programme("opal", sources / "include"), sources / "include")
    slots = {mode: domain.dimension(mode, "tap_on_slot").labels for mode in domain.modes}
    assert slots["ferry"] == ("06:45", "07:00", "07:15", "07:30", UNKNOWN)
    assert slots["train"] == ("05:45", "06:00", "06:15", UNKNOWN)
    assert slots["bus"][4:8] == ("01:00", "01:15", "04:15", "04:30")


def test_a_list_of_stops_has_no_hours(sources: Path) -> None:
    (sources / "stops.txt").write_text(GTFS["stops.txt"])
    assert build(sources, "--mode", "train", feed="stops.txt") == 0
    assert not (sources / "include/domains/built.hours.csv").exists()


def test_another_choice_of_modes_and_limit_is_another_domain(sources: Path) -> None:
    build(sources, "--postcode-modes", "bus,train", "--within-km", "5000")
    assert ("bus", "b3", "2150") in lines(sources)
    assert ("train", "c", "2000") in lines(sources)


def test_a_bare_list_of_stops_needs_a_mode(
    sources: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (sources / "stops.txt").write_text(GTFS["stops.txt"])
    assert build(sources, feed="stops.txt") == 2
    assert "--mode" in capsys.readouterr().err
    assert build(sources, "--mode", "train", feed="stops.txt") == 0
    assert ("train", "c2", "Central") in lines(sources)


@pytest.mark.parametrize(
    ("file", "content", "word"),
    [
        ("postcodes.csv", "Postcode,Lat\n2000,1\n", "longitude"),
        ("postcodes.csv", "Postcode,Lat,Long\n2000,,\n", "no postcode"),
        ("postcodes.csv", None, "is not there"),
        ("feed.zip", "no archive", "GTFS"),
        ("feed.zip", None, "is not there"),
    ],
)
def test_a_source_that_cannot_be_used_is_reported_in_one_sentence(
    sources: Path, capsys: pytest.CaptureFixture[str], file: str, content: str | None, word: str
) -> None:
    (sources / file).unlink()
    if content is not None:
        (sources / file).write_text(content)
    assert build(sources) == 2
    error = capsys.readouterr().err
    assert word in error
    assert error.count("\n") == 1
    assert not (sources / "include").exists()


@pytest.mark.parametrize(
    "name", ["zip: a path upwards", "zip: encrypted", "zip with a changed byte", "zip in zip"]
)
def test_an_archive_that_is_no_feed_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "in/feed.zip"
    path.parent.mkdir()
    path.write_bytes(LANDING[name][1]())
    with pytest.raises(InputError, match=r"stops\.txt|GTFS"):
        read_stops(path, "bus")
    assert not list(tmp_path.rglob("escaped*"))


def test_a_bus_without_a_lookup_is_refused_and_a_train_is_not(sources: Path) -> None:
    out = ["--out", str(sources / "a.csv")]
    assert main(["domain", "build", str(sources / "feed.zip"), *out]) == 2
    (sources / "stops.txt").write_text(GTFS["stops.txt"])
    bare = ["domain", "build", str(sources / "stops.txt"), "--mode", "train"]
    assert main([*bare, *out]) == 0


def stop(stop_id: str, name: str, *, parent: str | None = None, latitude: float = 0.0) -> Stop:
    return Stop(stop_id, name, latitude, 0.0, parent, ("train",))


def test_two_stations_of_one_name_stay_two_areas() -> None:
    stops = (stop("1", "Central"), stop("2", "Central"), stop("3", "UNKNOWN"))
    built = build_domain(stops, (), BuildRules())
    assert [place.area for place in built.places] == ["Central (1)", "Central (2)", "UNKNOWN (3)"]


def test_a_name_that_stands_for_several_areas_is_left_out() -> None:
    stops = (stop("1", "Main St"), stop("2", "Main St", latitude=1.0), stop("3", "Side St"))
    postcodes = (PostcodePoint("1", 0.0, 0.0), PostcodePoint("2", 1.0, 0.0))
    rules = BuildRules(LocationName.STOP_NAME, ("train",))
    built = build_domain(stops, postcodes, rules)
    assert [place.location for place in built.places] == ["Side St"]
    assert built.left_out == {"name_of_several_areas": ("1", "2")}
    near = build_domain((stop("1", "Main St"), stop("2", "Main St")), postcodes, rules)
    assert [place.location for place in near.places] == ["Main St"]


def test_of_points_equally_near_the_lowest_postcode_counts() -> None:
    points = (PostcodePoint("2001", 1.0, 0.0), PostcodePoint("2000", 1.0, 0.0))
    assert nearest_postcodes([stop("s", "S")], points, within_km=200) == {"s": "2000"}
    assert nearest_postcodes([stop("s", "S")], points, within_km=100) == {}


@given(st.floats(-90, 90), st.floats(-180, 180))
def test_distance_knows_the_antimeridian_and_the_poles(latitude: float, longitude: float) -> None:
    here = Stop("s", "S", latitude, longitude, None, ("bus",))
    other_side = longitude - 360 if longitude > 0 else longitude + 360
    same = (PostcodePoint("same", latitude, other_side),)
    assert nearest_postcodes([here], same, within_km=0.001) == {"s": "same"}


def test_the_stops_and_postcodes_of_new_south_wales_go_through(shared_data: Path) -> None:
    folder = shared_data / "nsw"
    listed = read_stops(folder / "stops.txt", "train")
    postcodes = read_postcodes(folder / "nsw_postcodes.csv")
    by_station = build_domain(listed.stops, postcodes, BuildRules())
    assert by_station.left_out == {}
    assert by_station.locations_by_mode == {"train": 1240}
    assert by_station.areas_by_mode == {"train": 385}
    area_of = {place.location: place.area for place in by_station.places}
    assert area_of["264086"] == area_of["26401"] == "Albury Station"
    by_postcode = build_domain(listed.stops, postcodes, BuildRules(postcode_modes=("train",)))
    area_of = {place.location: place.area for place in by_postcode.places}
    assert area_of["233610"] == "2336"  # Aberdeen
    far = by_postcode.left_out.get("far_from_postcodes", ())
    assert len(area_of) + len(far) == 1240
    assert not {"1001", "1002"} & set(area_of.values())  # large receivers in the city


def test_the_reader_of_a_feed_names_what_it_needs(tmp_path: Path) -> None:
    (tmp_path / "stops.txt").write_text(GTFS["stops.txt"])
    (tmp_path / "agency.txt").write_text(GTFS["agency.txt"])
    with pytest.raises(InputError, match="--mode"):
        read_stops(tmp_path, None)
    assert len(read_stops(tmp_path, "bus").stops) == 9
