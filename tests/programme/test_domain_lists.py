"""Public lists of a timetable: what each id that rows may name is published as."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from turnstile.cli import main
from turnstile_samples.tides import STOPS, write_gtfs

TRIPS = "route_id,service_id,trip_id,direction_id\nr1,d,t1,0\nr1,d,t2,1\nr2,d,t3,\n"
ROUTES = "route_id,route_short_name,route_long_name,route_type\nr1,7,Harbour,3\nr2,,Hills,3\n"


@pytest.fixture
def feed(tmp_path: Path) -> Path:
    """A feed of two routes and three trips, one of which names no direction."""
    write_gtfs(tmp_path / "old.zip")
    made = tmp_path / "gtfs.zip"
    with zipfile.ZipFile(tmp_path / "old.zip") as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            replacement = {"trips.txt": TRIPS, "routes.txt": ROUTES}.get(name)
            new.writestr(name, replacement or old.read(name))
    return made


@pytest.mark.parametrize(
    ("options", "pairs"),
    [
        (("--of", "route"), ["t1,7", "t2,7", "t3,Hills"]),
        (("--of", "route", "--by", "itself"), ["r1,7", "r2,Hills"]),
        (("--of", "direction"), ["t1,0", "t2,1"]),
        (("--of", "direction", "--by", "itself"), ["0,0", "1,1"]),
        (("--of", "vehicle_trip"), ["t1,t1", "t2,t2", "t3,t3"]),
        (
            ("--of", "stop_visit"),
            sorted(f"t1/{n + 1},t1/{n + 1}/s{n}" for n in range(STOPS)),
        ),
    ],
)
def test_a_list_names_what_each_id_is_published_as(
    feed: Path, tmp_path: Path, options: tuple[str, ...], pairs: list[str]
) -> None:
    out = tmp_path / "include/domains/list.csv"
    assert main(["domain", "lists", str(feed), *options, "--out", str(out)]) == 0
    assert out.read_text().splitlines() == ["value,label", *pairs]


@pytest.mark.parametrize("options", [("--of", "shoes"), ("--of", "route", "--by", "name")])
def test_another_category_is_refused(
    feed: Path, tmp_path: Path, options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "list.csv"
    assert main(["domain", "lists", str(feed), *options, "--out", str(out)]) == 2
    assert "is unknown; write one of" in capsys.readouterr().err
    assert not out.exists()
