"""`turnstile new`: which feed a file is, by the names of its columns, and nothing else of it."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import zipfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import feather

from turnstile.cli import main
from turnstile.errors import InputError
from turnstile.pipeline.trials.room import open_ended, shortage, tightest_room
from turnstile.privacy.accounts import MICRO, NANO, rounded_up
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.domain.building import Stop
from turnstile.programme.domain.files import load_domain
from turnstile.programme.loading import load_programme, parse_programme
from turnstile.programme.source_spec import Feed
from turnstile.release.plan import make_plan
from turnstile.service_calendar import ServiceWeek
from turnstile.sources.feeds.registry import LAYOUTS
from turnstile.sources.feeds.taps import grid_cell_sql
from turnstile_design.first_programme.column_roles import ROLES
from turnstile_design.first_programme.delivered_columns import look_at
from turnstile_design.first_programme.grid_of_places import grid_domain
from turnstile_design.first_programme.new_programme import third_of_cap
from turnstile_samples.tides import write_gtfs

ROOT = Path(__file__).parents[2]
OPAL = (
    "card_id,mode,tap_on_date,tap_on_time,tap_on_location,"
    "tap_off_date,tap_off_time,tap_off_location\n"
)
TAPS = "id_tarjeta,fecha,hora,parada,modo\n"
OF_TAPS = ("card_id=id_tarjeta", "tap_date=fecha", "tap_time=hora", "place=parada", "mode=modo")
VEHICLE = {"vehicle": {"id": "v"}, "timestamp": 1, "position": {"latitude": 1, "longitude": 1}}
POSITION = {"vehicle": VEHICLE | {"position": {"latitude": 1, "longitude": 2, "speed": 3}}}
TRIP = {"trip_id": "t1", "route_id": "r1", "direction_id": 0}
ON_A_TRIP = {"vehicle": POSITION["vehicle"] | {"trip": TRIP}}
FULL = {"vehicle": POSITION["vehicle"] | {"occupancy_status": "FULL"}}
CALL = "FAHRT_BEZEICHNER,ANKUNFTSZEIT,AN_PROGNOSE,AN_PROGNOSE_STATUS,FAELLT_AUS_TF,BPUIC\n"
EVENTS = (
    "passenger_event_id,service_date,event_timestamp,event_type,vehicle_id,stop_id,event_count,"
    "trip_stop_sequence\n"
)
CLOCK = ("--zone", "America/Los_Angeles", "--accept-no-gain", "a sample")
ANSWERS = (
    *("--speed-unit", "km/h", "--date-form", "DD/MM/YYYY", "--all-tap-on", "--protect", "day"),
    *CLOCK,
)
MESSAGE = {"oper": 1, "veh": 2, "tst": "t", "lat": 1, "long": 2, "spd": 3}
WITHIN = {"vehicle": "v", "ts": 1, "pos": {"lat": 1, "lng": 2}, "speed_kn": 3}
OF_WITHIN = (
    *("--feed", "tides_vehicle_locations", "--column=vehicle_id=vehicle"),
    *("--column=observed_at=ts", "--column=latitude=pos.lat", "--column=longitude=pos.lng"),
    "--column=speed=speed_kn",
)
TELEMETRY = {"license_plate": "p", "observationDateTime": "t", "speed": 1}


@pytest.fixture
def new(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., int]:
    """`turnstile new` over a file of a text, in a folder of its own."""
    shutil.copytree(ROOT / "include/programmes", tmp_path / "include/programmes")
    shutil.copytree(ROOT / "include/domains", tmp_path / "include/domains")
    monkeypatch.setenv("TURNSTILE_INCLUDE", str(tmp_path / "include"))
    write_gtfs(tmp_path / "gtfs.zip")

    def run(file: str, text: str, *options: str, answers: tuple[str, ...] = ANSWERS) -> int:
        (tmp_path / file).write_text(text)
        given = [*answers, *options]
        if answers is ANSWERS and text.startswith(("[{", "{")):  # dates of its own standard
            at = given.index("--date-form")
            del given[at : at + 2]
        given = [option.replace("HERE", str(tmp_path)) for option in given]
        return main(["new", "city", "--from", str(tmp_path / file), *given])

    return run


@pytest.mark.parametrize(
    ("file", "text", "feed"),
    [
        ("x.csv", OPAL, Feed.OPAL_TRIPS),
        ("x.json", json.dumps([POSITION, {"other": 1}]), Feed.GTFS_VEHICLE_POSITIONS),
        ("x.ndjson", json.dumps(POSITION) + "\n{}", Feed.GTFS_VEHICLE_POSITIONS),
        (
            "x.csv",
            "vehicle.id,timestamp,position.latitude,position.longitude,position.speed\n",
            Feed.GTFS_VEHICLE_POSITIONS,
        ),
        ("x.json", json.dumps([{"VP": MESSAGE}]), Feed.HFP),
        ("x.json", json.dumps([MESSAGE]), Feed.HFP),
        ("x.json", json.dumps([TELEMETRY | {"location.coordinates": "[1, 2]"}]), Feed.ITMS),
        ("x.json", json.dumps(TELEMETRY | {"location": {"coordinates": [1, 2]}}), Feed.ITMS),
        (
            "x.csv",
            "vehicle_id,event_timestamp,latitude,longitude,speed\n",
            Feed.TIDES_VEHICLE_LOCATIONS,
        ),
    ],
)
def test_a_feed_is_told_by_its_columns(tmp_path: Path, file: str, text: str, feed: Feed) -> None:
    (tmp_path / file).write_text(text)
    assert look_at(tmp_path / file, {}, private=tmp_path).feed is feed


def test_every_field_of_every_feed_has_a_role() -> None:
    fields = {field for layout in LAYOUTS.values() for field, _ in layout.names}
    assert fields <= set(ROLES)


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("file", "text", "options"),
    [
        ("x.csv", OPAL, ("--gtfs", "HERE/gtfs.zip")),
        ("x.csv", EVENTS, ("--gtfs", "HERE/gtfs.zip")),
        (
            "x.csv",
            TAPS,
            ("--gtfs", "HERE/gtfs.zip", "--feed", "taps", *(f"--column={p}" for p in OF_TAPS)),
        ),
        ("x.json", json.dumps([POSITION]), ("--gtfs", "HERE/gtfs.zip")),
        (
            "x.json",
            json.dumps([POSITION]),
            ("--area", str(ROOT / "include/domains/surat_area.geojson"), "--zone", "Asia/Kolkata"),
        ),
    ],
)
def test_what_is_written_is_in_order_and_never_written_over(
    new: Callable[..., int], tmp_path: Path, file: str, text: str, options: tuple[str, ...]
) -> None:
    assert new(file, text, *options) == 0
    assert main(["check", "city"]) == 0
    assert main(["plan", "city", "--week", "2026-W01"]) == 0
    assert new(file, text, *options) == 2
    path = tmp_path / "include/programmes/city.yaml"
    assert load_programme("city", tmp_path / "include").retention is None
    path.write_text(path.read_text().replace("# retention:", "retention:"))
    assert load_programme("city", tmp_path / "include").retention is not None


@pytest.mark.parametrize(
    ("text", "options", "asked"),
    [
        (
            TAPS,
            ("--feed", "taps", *(f"--column={pair}" for pair in OF_TAPS)),
            {
                "source.date_form",
                "source.columns.action",
                "mechanism.unit",
                "time.zone",
                "typical_volume",
            },
        ),
        (
            "license_plate,observationDateTime,speed,latitude,longitude\n",
            (),
            {"source.speed_unit", "mechanism.unit", "time.zone", "typical_volume"},
        ),
        (
            "at,v,latitude,longitude,kmh\n",
            tuple(f"--column={p}" for p in ("event_timestamp=at", "vehicle_id=v", "speed=kmh")),
            {"source.feed", "mechanism.unit", "source.speed_unit", "time.zone", "typical_volume"},
        ),
    ],
)
def test_what_no_column_says_is_asked_and_refused_until_somebody_answers(
    new: Callable[..., int],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    text: str,
    options: tuple[str, ...],
    asked: set[str],
) -> None:
    assert new("x.csv", text, "--gtfs", "HERE/gtfs.zip", *options, answers=()) == 0
    assert set(re.findall(r"to decide: (\S+)", capsys.readouterr().out)) == asked
    page = (tmp_path / "include/programmes/city.decisions.md").read_text()
    assert all(f"| `{key}` |" in page for key in asked)
    assert main(["check", "city"]) == 2
    said = capsys.readouterr().err
    assert all(f"{key}: " in said for key in asked)
    path = tmp_path / "include/programmes/city.yaml"
    programme_text = re.sub(r"speed_unit: decide", "speed_unit: mph", path.read_text())
    programme_text = re.sub(r"date_form: decide", "date_form: DD/MM/YYYY", programme_text)
    programme_text = re.sub(r"feed: decide", "feed: tides_vehicle_locations", programme_text)
    programme_text = re.sub(r"zone: decide", "zone: America/Los_Angeles", programme_text)
    programme_text = re.sub(r"typical_volume: decide", "accept_no_gain: a baseline", programme_text)
    unit = "card_day" if "card_day" in programme_text else "bus_day"
    assert ("`turnstile report city --week W`" in page) is (unit == "card_day")  # of trips alone
    programme_text = re.sub(r"unit: decide", f"unit: {unit}", programme_text)
    if "source.columns.action" in asked:
        programme_text = programme_text.replace(
            "\nsource:", "\nsource:\n  without_action: enter", 1
        )
    path.write_text(re.sub(r"\n    action: .*", "", programme_text))
    assert main(["check", "city"]) == 0


def test_a_column_goes_by_the_feeds_own_name_too_and_another_one_is_refused_with_the_nearest(
    new: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "vehicle_id,at,latitude,longitude,speed\n"
    given = ("--gtfs", "HERE/gtfs.zip", "--column")
    assert new("x.csv", text, *given, "event_timestmp=at") == 2
    assert "did you mean event_timestamp?" in capsys.readouterr().err
    assert new("x.csv", text, *given, "event_timestamp=at", "--feed=tides_vehicle_locations") == 0
    assert dict(load_programme("city", tmp_path / "include").source.columns) == {
        "observed_at": "at"
    }


AT_NOON = {
    "no offset": ("2016-07-25 12:00:00", True),
    "no offset, ISO": ("2016-07-25T12:00:00", True),
    "day first": ("25-07-2016 12:00", True),
    "no record": ("", True),
    "instants": ("2016-07-25T19:00:00Z", False),
    "an offset": ("2016-07-25 12:00:00-07:00", False),
    "since 1970": ("1469473200000", False),
}


@pytest.mark.parametrize("written", AT_NOON)
def test_the_clock_of_times_without_an_offset_is_a_decision_even_where_a_feed_names_the_zone(
    new: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str], written: str
) -> None:
    """Nothing in the files tells zones apart that are a few hours from each other."""
    at, is_asked = AT_NOON[written]
    lines = "card_id,tapped_at,place\n" + (f"a,{at},s1\n" * 3 if at else "")
    given = ("--feed", "taps", "--all-tap-on", "--protect", "day", "--gtfs", "HERE/gtfs.zip")
    assert new("x.csv", lines, *given, *CLOCK[2:], answers=()) == 0
    assert ("to decide: time.zone" in capsys.readouterr().out) is is_asked
    assert main(["check", "city"]) == (2 if is_asked else 0)
    assert ("time.zone: is for a person to decide" in capsys.readouterr().err) is is_asked
    page = (tmp_path / "include/programmes/city.decisions.md").read_text()
    assert "agency states America/Los_Angeles; hours" in page or not is_asked
    path = tmp_path / "include/programmes/city.yaml"
    decided = path.read_text().replace("zone: decide", "zone: America/Denver")
    path.write_text(decided.replace("date_form: decide", "date_form: DD/MM/YYYY"))
    assert main(["check", "city"]) == 0
    stated = str(load_programme("city", tmp_path / "include").time.zone)
    assert stated == ("America/Denver" if is_asked else "America/Los_Angeles")


@given(st.fractions("1/100", 100, max_denominator=10**6), st.sampled_from(["epsilon", "rho"]))
def test_three_draws_of_a_third_of_a_cap_fit_it_as_the_ledger_counts(
    cap: Fraction, coordinate: str
) -> None:
    parts = {"epsilon": MICRO, "rho": NANO}[coordinate]
    drawn = 3 * rounded_up(Fraction(third_of_cap(str(cap), coordinate)), parts)
    assert drawn <= cap * parts < drawn + 3  # they fit, and no larger amount would


# Text of a file, bound, its figures, a draw, and a third of the cap as a plain fraction. A
# programme of that draw alone costs exactly its amount where the scale comes out without rounding.
ONE_DRAW = {
    "rides": (EVENTS, "contributes", range(1, 2), "boardings", "2/3"),
    "cards": (OPAL, "trips_at_most", range(1, 25), "on_time_location", "1/12"),
    "vehicles": (json.dumps([POSITION]), "cells_at_most", range(1, 25), "headway/buses", "1/6"),
}


@pytest.mark.parametrize("kind", ONE_DRAW)
def test_a_written_programme_leaves_room_to_fail_whatever_is_bounded(
    new: Callable[..., int], tmp_path: Path, kind: str
) -> None:
    text, bound, figures, draw, third = ONE_DRAW[kind]
    file = "x.json" if text.startswith("[") else "x.csv"
    assert new(file, text, "--gtfs", "HERE/gtfs.zip") == 0
    include = tmp_path / "include"
    head, tables, rest = re.split(
        r"(?<=\n)(?=tables:|mechanism:)", (include / "programmes/city.yaml").read_text()
    )
    (kept,) = [line for line in tables.splitlines() if f" {draw.partition('/')[0]}:" in line]
    rest = re.sub(r"split: \{.*\}", f'split: {{"{draw}": "1"}}', rest)
    alone = f"{head}\ntables:\n{kept}\n{rest}"
    domain = load_domain(load_programme("city", include), include)

    def short_of_room(text: str) -> list[int]:
        programmes = {n: re.sub(f"{bound}: \\d+", f"{bound}: {n}", text) for n in figures}
        read = {n: parse_programme(text, "city.yaml") for n, text in programmes.items()}
        week = ServiceWeek.parse("2026-W01")
        return [
            n
            for n, programme in read.items()
            if shortage(programme, tightest_room(programme, domain, week))
        ]

    assert short_of_room(alone) == []
    programme = load_programme("city", include)
    assert open_ended(programme) == ""
    if kind == "vehicles":  # what the comment says that a year costs
        planned = make_plan(programme, domain, ServiceWeek.parse("2026-W01"))
        (week,) = [post.rho_nano for post in planned.postings if post.unit is ProtectionUnit.BUS]
        assert week
        assert f"52 weeks {52 * week / NANO:.1f}," in rest
    plain = re.sub(r'^  (rho|epsilon): ".*"', rf'  \1: "{third}"', alone, flags=re.MULTILINE)
    assert short_of_room(plain) != []  # the control: rounded up, three of them pass the cap


def measures_of(include: Path) -> set[str]:
    """What the tables of the written programme measure, and whether a timetable tells delays."""
    programme = load_programme("city", include)
    told = {"timetable"} if programme.source.timetable else set()
    return told | {str(table.measure) for table in programme.tables}


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("text", "wanted", "lists"),
    [
        ("license_plate,observationDateTime,speed,latitude,longitude", set(), set()),
        (
            "license_plate,observationDateTime,speed,latitude,longitude,trip_delay,route_id",
            {"mean_delay"},
            {"route"},
        ),
        (
            "vehicle_id,event_timestamp,latitude,longitude,speed,trip_id_scheduled",
            {"mean_delay", "timetable"},
            {"route", "direction"},
        ),
        (
            "vehicle_id,event_timestamp,latitude,longitude,speed,schedule_deviation",
            {"mean_delay"},
            set(),
        ),
        ("vehicle_id,event_timestamp,latitude,longitude,speed,line", set(), {"route"}),
        (json.dumps([POSITION]), set(), set()),
        (json.dumps([ON_A_TRIP]), {"mean_delay", "timetable"}, {"route", "direction"}),
        (json.dumps([FULL]), {"occupancy"}, set()),
    ],
)
def test_vehicles_are_measured_by_what_columns_and_feed_tell(
    new: Callable[..., int], tmp_path: Path, text: str, wanted: set[str], lists: set[str]
) -> None:
    file = "x.json" if text.startswith("[") else "x.csv"
    line = ("--column", "route=line") if text.endswith("line") else ()
    assert new(file, text + "\n", "--gtfs", "HERE/gtfs.zip", *line) == 0
    include = tmp_path / "include"
    assert measures_of(include) == {"mean_speed", "headway"} | wanted
    page = (include / "programmes/city.decisions.md").read_text()
    assert ("mean speed, headway, delay" in page) == ("mean_delay" in wanted)
    assert ("occupancy |" in page) == ("occupancy" in wanted)
    assert ("by place, or by" in page) == bool(lists)
    written = {p.stem.removeprefix("city_")[:-1] for p in include.glob("domains/city_*s.csv")}
    assert written == lists
    assert main(["check", "city"]) == 0
    assert main(["plan", "city", "--week", "2026-W01"]) == 0


@pytest.mark.parametrize(
    ("file", "text", "told", "not_told"),
    [
        ("x.json", json.dumps([POSITION]), "| mean speed, headway |", "every stop"),
        ("x.json", json.dumps([{"vehicle": VEHICLE}]), "| headway |", "peed"),
        ("x.csv", CALL, "| headway, delay |", "H3 cells"),
    ],
)
def test_a_page_names_what_its_tables_tell_and_no_more(
    new: Callable[..., int], tmp_path: Path, file: str, text: str, told: str, not_told: str
) -> None:
    answers = ("--gtfs", "HERE/gtfs.zip", "--protect", "day", *CLOCK)
    assert new(file, text, answers=answers) == 0
    programmes = tmp_path / "include/programmes"
    page = (programmes / "city.decisions.md").read_text().partition("## What no column")[0]
    assert told in page
    assert not_told not in page
    assert ("`clamp_kmh`" in page) == ("mean_speed" in measures_of(tmp_path / "include"))
    description = load_programme("city", tmp_path / "include").description
    assert ("speed" in description.lower()) == ("mean speed" in told)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([ON_A_TRIP]),
        "vehicle_id,event_timestamp,latitude,longitude,speed,trip_id_scheduled\n",
        "license_plate,observationDateTime,speed,latitude,longitude,route_id,trip_id\n",
    ],
)
def test_what_the_file_says_of_routes_makes_a_programme_by_routes(
    new: Callable[..., int], tmp_path: Path, text: str
) -> None:
    file = "x.json" if text.startswith("[") else "x.csv"
    assert new(file, text, "--gtfs", "HERE/gtfs.zip") == 0
    path = tmp_path / "include/programmes/city.yaml"
    programme_text = path.read_text().replace("# lists:", "lists:")
    programme_text = programme_text.replace("by: [slot, cell]", "by: [slot, route, direction]")
    if "# and under source: columns" in programme_text:
        columns = programme_text.split("# and under source: ")[1].partition("\n")[0]
        programme_text = programme_text.replace("  modes:", f"  {columns}\n  modes:", 1)
    path.write_text(programme_text)
    assert main(["check", "city"]) == 0
    assert main(["plan", "city", "--week", "2026-W01"]) == 0
    assert main(["plan", "city", "--week", "2026-W01", "--grains"]) == 2
    assert {table.by for table in load_programme("city", tmp_path / "include").tables} == {
        ("slot", "route", "direction")
    }


def test_a_feed_by_headway_tells_no_delays_and_the_page_says_so(
    new: Callable[..., int], tmp_path: Path
) -> None:
    with zipfile.ZipFile(tmp_path / "gtfs.zip", "a") as archive:
        lines = "trip_id,start_time,end_time,headway_secs\nt1,06:00:00,09:00:00,600\n"
        archive.writestr("frequencies.txt", lines)
    assert new("x.json", json.dumps([ON_A_TRIP]), "--gtfs", "HERE/gtfs.zip") == 0
    assert measures_of(tmp_path / "include") == {"mean_speed", "headway"}
    page = (tmp_path / "include/programmes/city.decisions.md").read_text()
    assert "none: gtfs.zip runs by headway" in page


@pytest.mark.parametrize(
    ("file", "text", "options", "said"),
    [
        ("x.csv", "9123456,2016-07-25,Elm St\n", (), "its columns are not those of any feed"),
        (
            "x.csv",
            "vehicle_id,timestamp,latitude,longitude,speed,7712345\n",
            (),
            "nearest is tides_vehicle_locations, of which it lacks observed_at (event_timestamp)",
        ),
        ("x.ndjson", json.dumps(WITHIN), (), "its columns are not those of any feed"),
        ("x.csv", "vehicle,ts,lat,lng\n", (), "its columns are not those of any feed"),
        ("x.ndjson", json.dumps(WITHIN), OF_WITHIN, "pos.lat, pos.lng: lies within another value"),
        ("x.csv", OPAL, ("--column", "rout=mode"), "did you mean route?"),
        ("x.csv", OPAL, (), "--gtfs: is missing"),
        ("x.csv", OPAL, ("--gtfs", "HERE/none.zip"), "is not there"),
        ("x.csv", OPAL, ("--gtfs", "HERE/two.zip", "--zone", "Sydney"), "no IANA time zone"),
        ("x.csv", OPAL, ("--column", "card_id"), "write FIELD=NAME"),
        ("x.csv", OPAL, ("--feed", "taps"), "not those of taps"),
        ("x.csv", "\x00\x01", (), "columns"),
        ("x.json", "{", (), "does not begin as json"),
        ("x.parquet", "none", (), "does not begin as parquet"),
        ("x.zip", "none", (), "the archive is cut off, damaged or encrypted"),
        ("x.doc", "none", (), "a landing file ends in"),
        ("x.json", json.dumps([POSITION]), (), "--area: is missing"),
        (
            "x.csv",
            "transaction_id,service_date,event_timestamp,token_id,stop_id,fare_action\n",
            ("--gtfs", "HERE/two.zip"),
            "--mode",
        ),
    ],
)
def test_a_refusal_is_one_sentence_without_a_value_of_the_file(
    new: Callable[..., int],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    file: str,
    text: str,
    options: tuple[str, ...],
    said: str,
) -> None:
    (tmp_path / "stops.txt").write_text("stop_id,stop_name,stop_lat,stop_lon\na,A,1,1\n")
    two_modes(tmp_path / "gtfs.zip", tmp_path / "two.zip")
    assert new(file, text, *options) == 2
    words = capsys.readouterr().err
    assert said in words
    assert "9123456" not in words
    assert "7712345" not in words
    assert "Elm" not in words
    assert not (tmp_path / "include/programmes/city.yaml").exists()


def test_a_name_with_a_point_may_be_a_column(new: Callable[..., int], tmp_path: Path) -> None:
    """Negative control: nothing of it lies within another value."""
    flat = {"vehicle": "v", "ts": 1, "pos.lat": 1, "pos.lng": 2, "speed_kn": 3}
    assert new("x.ndjson", json.dumps(flat), "--gtfs", "HERE/gtfs.zip", *OF_WITHIN) == 0
    assert 'latitude: "pos.lat"' in (tmp_path / "include/programmes/city.yaml").read_text()


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_what_a_type_holds_is_told_from_columns(tmp_path: Path, form: str) -> None:
    nested, flat = pa.Table.from_pylist([POSITION]), pa.Table.from_pylist([WITHIN])
    for name, table in (("position", nested), ("within", flat)):
        if form == "parquet":
            pq.write_table(table, tmp_path / f"{name}.parquet")
        else:
            feather.write_feather(table, str(tmp_path / f"{name}.arrow"))
    feed = look_at(tmp_path / f"position.{form}", {}, private=tmp_path).feed
    assert feed is Feed.GTFS_VEHICLE_POSITIONS
    with pytest.raises(InputError, match="not those of any feed"):
        look_at(tmp_path / f"within.{form}", {}, private=tmp_path)


def two_modes(feed: Path, out: Path) -> None:
    """Write a feed with a second route, of trains."""
    more = {
        "routes.txt": "r2,2,2\n",
        "trips.txt": "r2,daily,t2\n",
        "stop_times.txt": "t2,06:00:00,06:00:00,s1,1\n",
    }
    with zipfile.ZipFile(feed) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).decode() + more.get(name, ""))


def test_what_is_no_name_of_a_column_is_not_repeated(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(OPAL.strip() + ",9123456,phone 0412345678,remark\n")
    sheet = dict(look_at(tmp_path / "x.csv", {}, private=tmp_path).sheet)
    assert "remark" in sheet
    assert not [column for column in sheet if "123456" in column or "04123" in column]


def test_taps_that_name_positions_get_a_grid_of_cells_around_the_public_stops(
    new: Callable[..., int], tmp_path: Path
) -> None:
    header = "card,when,lat,lon\n"
    named = ("card_id=card", "tapped_at=when", "latitude=lat", "longitude=lon")
    columns = [f"--column={pair}" for pair in named]
    assert new("x.csv", header, "--gtfs", "HERE/gtfs.zip", "--feed", "taps", *columns) == 0
    assert main(["check", "city"]) == 0
    programme = load_programme("city", tmp_path / "include")
    with (tmp_path / "include/domains/city.csv").open(newline="") as file:
        cells = {row["location"] for row in csv.DictReader(file)}
    with zipfile.ZipFile(tmp_path / "gtfs.zip") as feed:
        stops = list(csv.DictReader(io.StringIO(feed.read("stops.txt").decode())))
    positions = [(float(s["stop_lat"]), float(s["stop_lon"])) for s in stops]
    decimals = programme.source.grid_decimals
    asked = [grid_cell_sql(f"'{lat}'", f"'{lon}'", decimals) for lat, lon in positions]
    cell_names = duckdb.connect().execute(f"SELECT {', '.join(asked)}").fetchone()
    assert cell_names is not None
    assert set(cell_names) <= cells
    assert "0.00 0.00" not in cells


@pytest.mark.parametrize("degrees", [-0.004, 0.005, -0.005, 34.005, -118.125, 0.0, 1e-7])
def test_a_grid_cell_is_named_as_rows_name_it(degrees: float) -> None:
    stop = Stop("a", "A", degrees, degrees, None, ("bus",))
    cells = {place.location for place in grid_domain([stop]).places}
    text = f"'{degrees:.7f}'"
    cell_names = duckdb.connect().execute(f"SELECT {grid_cell_sql(text, text, 2)}").fetchone()
    assert cell_names is not None
    assert cell_names[0] in cells
    assert len(cells) == 9
