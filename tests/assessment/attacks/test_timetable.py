"""Cells that a public timetable shows to be one vehicle or one stop: from a feed to the report."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from datetime import date
from pathlib import Path

import h3
import pytest

from turnstile.assessment.assessment import assess_release
from turnstile.assessment.attacks.timetable_feed import read_timetable
from turnstile.assessment.attacks.timetable_view import NOT_GIVEN, CellLabels, view
from turnstile.assessment.cell_labels import labels_of_domain
from turnstile.assessment.evidence import Evidence
from turnstile.assessment.report.page import JSON_NAME, PAGE_NAME, write_report
from turnstile.cli import main
from turnstile.errors import InputError
from turnstile.programme.domain.public_domain import Place
from turnstile.release.drawn import Drawn
from turnstile_lab.package.cell_labels import read_lookup
from turnstile_lab.tables import days_of

FEED = {
    "agency.txt": "agency_name,agency_url,agency_timezone\nA,https://a.example,Australia/Sydney\n",
    "calendar.txt": "service_id,monday,tuesday,wednesday,thursday,friday,saturday,sunday,"
    "start_date,end_date\nwork,1,1,1,1,1,0,0,20160718,20160807\nsun,0,0,0,0,0,0,1,20160718,20160807\n",
    "routes.txt": "route_id,route_short_name,route_type\nN70,N70,3\nT1,T1,2\n755,755,3\n",
    "stops.txt": "stop_id,stop_name,stop_lat,stop_lon,parent_station\n"
    "md,Mount Druitt Station,-33.77,150.82,\nmd2,Mount Druitt North,-33.771,150.82,\n"
    "p1,Central Platform 1,-33.88,151.2,cen\ncen,Central,-33.88,151.2,\n",
    "trips.txt": "route_id,service_id,trip_id\nN70,work,n70-1\nN70,sun,n70-2\n755,work,a\n"
    "755,work,b\nT1,work,train-1\nT1,work,every\n",
    "stop_times.txt": "trip_id,arrival_time,departure_time,stop_id,stop_sequence\n"
    "n70-1,28:20:00,28:20:00,md,1\nn70-1,,,md2,2\nn70-1,28:40:00,28:40:00,md,3\n"
    "n70-2,04:30:00,04:30:00,md,1\n"
    "a,08:00:00,08:00:00,md,1\na,08:05:00,08:05:00,md2,2\nb,08:02:00,08:02:00,md,1\n"
    "train-1,08:00:00,08:01:00,p1,1\nevery,06:00:00,06:00:00,p1,1\n",
    "frequencies.txt": "trip_id,start_time,end_time,headway_secs\nevery,09:00:00,10:00:00,600\n",
}
BARE = (
    "mode,date,tap,time,loc,count\n"
    "bus,20160726,on,04:15,2770,19\nbus,20160726,on,04:30,2770,44\nbus,20160726,on,08:00,2770,60\n"
    "train,20160726,on,08:00,Central,60\ntrain,20160726,on,09:00,Central,80\n"
)
LOOKUP = "mode,location,area\nbus,md,2770\nbus,md2,2770\n"


@pytest.fixture
def feed(tmp_path: Path) -> Path:
    """A feed with a night bus, a busy stop and a train by headway."""
    path = tmp_path / "feed.zip"
    with zipfile.ZipFile(path, "w") as packed:
        for name, text in FEED.items():
            packed.writestr(name, text)
    return path


def answer(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> dict[str, object]:
    """Run `turnstile assess --json` and return what it says of the timetable."""
    assert main(["assess", *(str(argument) for argument in arguments), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    figures = [f["figures"] for f in content["findings"] if f["name"] == "timetable"]
    assert len(figures) == 1
    return dict(figures[0])


def test_the_command_lists_cells_of_one_vehicle_and_of_one_stop(
    tmp_path: Path, feed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bus.csv").write_text(BARE)
    (tmp_path / "lookup.csv").write_text(LOOKUP)
    figures = answer(
        capsys, tmp_path / "bus.csv", "--gtfs", feed, "--locations", tmp_path / "lookup.csv"
    )
    assert figures["days"] == ["2016-07-26"]
    cells = {(c["mode"], c["slot"], c["area"]): c for c in figures["cells"]}  # type: ignore[attr-defined]
    assert set(cells) == {
        ("bus", "04:15", "2770"),  # the untimed stop lies at 04:30, half way
        ("bus", "04:30", "2770"),
        ("train", "08:00", "Central"),
        ("train", "09:00", "Central"),
    }
    night = cells["bus", "04:15", "2770"]
    assert (night["one_vehicle"], night["one_stop"], night["days"]) == (True, True, ["Tue"])
    assert cells["bus", "04:30", "2770"]["trip_ids"] == ["n70-1"]
    assert not cells["bus", "04:30", "2770"]["one_stop"]
    headway = cells["train", "09:00", "Central"]
    assert (headway["one_vehicle"], headway["one_stop"]) == (False, True)
    assert figures["cells_of_one_vehicle"] == 3
    assert main(["assess", str(tmp_path / "bus.csv"), "--gtfs", str(feed)]) == 0
    printed = capsys.readouterr().out
    assert "rode that vehicle" in printed
    assert "train, Central, 08:00 (Tue): one vehicle and one stop" in printed
    assert "2 stops are no location of this table" in printed  # without the lookup of postcodes


def test_without_a_timetable_one_sentence_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bus.csv").write_text(BARE)
    assert answer(capsys, tmp_path / "bus.csv") == {"given": False}
    assert main(["assess", str(tmp_path / "bus.csv")]) == 0
    assert NOT_GIVEN in capsys.readouterr().out


def test_days_that_a_feed_does_not_cover_are_read_as_its_first_week(feed: Path) -> None:
    timetable = read_timetable(feed, [date(2030, 1, 1)])
    assert timetable.days[0] == date(2016, 7, 18)
    assert len(timetable.days) == 7
    labels = CellLabels(frozenset({"04:15", "04:30"}), {"bus": frozenset({"2770"})}, {})
    lookup = {("bus", "md"): "2770", ("bus", "md2"): "2770"}
    timetable_view = view(timetable, replace(labels, area_of=lookup))
    sunday = [
        exposure for exposure in timetable_view.exposures if exposure.cell.trip_ids == ("n70-2",)
    ]
    assert [exposure.days for exposure in sunday] == [("Sun",)]


def test_cells_of_a_grid_are_found_by_the_place_of_a_stop(feed: Path) -> None:
    cell = h3.latlng_to_cell(-33.77, 150.82, 7)
    labels = CellLabels(frozenset({"08:00"}), {None: frozenset({cell})}, {})
    timetable_view = view(read_timetable(feed, [date(2016, 7, 26)]), labels)
    assert [
        exposure.cell.area for exposure in timetable_view.exposures
    ] == []  # two buses, two stops
    assert timetable_view.served == 1


def test_tables_by_time_or_by_place_alone_have_cells_too(feed: Path) -> None:
    timetable = read_timetable(feed, [date(2016, 7, 26)])
    by_time = view(timetable, CellLabels(frozenset({"04:15", "04:30"}), {"bus": frozenset()}, {}))
    assert {exposure.cell.area for exposure in by_time.exposures} == {"everywhere"}
    by_place = view(timetable, CellLabels(frozenset(), {"train": frozenset({"Central"})}, {}))
    assert [exposure.cell.slot for exposure in by_place.exposures] == ["all day"]


@pytest.mark.parametrize("content", [None, "no zip"])
def test_what_is_no_feed_is_refused(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "feed.zip"
    if content:
        path.write_text(content)
    with pytest.raises(InputError):
        read_timetable(path)
    with pytest.raises(InputError):
        read_lookup(path)


def test_days_are_reported_from_labels() -> None:
    assert days_of(["20160726", "2016-07-25", "Monday", None]) == [
        date(2016, 7, 25),
        date(2016, 7, 26),
    ]


def test_a_release_reports_what_its_timetable_shows(
    release: Drawn, feed: Path, tmp_path: Path
) -> None:
    places = (Place("bus", "md", "stop 1"), Place("bus", "md2", "stop 2"))
    domain = replace(release.domain, places=places)
    seen = view(read_timetable(feed, [date(2016, 7, 26)]), labels_of_domain(domain))
    folder = tmp_path / "embargoed"
    folder.mkdir()
    write_report(assess_release(release, Evidence(timetable=seen)), folder)
    content = json.loads((folder / JSON_NAME).read_bytes())["timetable"]
    assert content["feed_sha256"] == seen.sha256
    assert {(c["slot"], c["area"]) for c in content["cells"]} == {
        ("04:00", "stop 1"),
        ("04:00", "stop 2"),
        ("08:00", "stop 1"),
        ("08:00", "stop 2"),
    }
    page = (folder / PAGE_NAME).read_text()
    assert "n70-1" in page
    assert "rode that vehicle" in page
    write_report(assess_release(release), folder)
    assert "No timetable was given" in (folder / PAGE_NAME).read_text()
