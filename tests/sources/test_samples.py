"""Samples: the same bytes for a seed, public names, calibrated, corruption seen by its name."""

from __future__ import annotations

import argparse
import csv
import dataclasses
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h3
import numpy as np
import numpy.typing as npt
import pytest

from turnstile.errors import InputError
from turnstile.programme.spec import Programme
from turnstile.service_calendar import ServiceWeek
from turnstile.sources.ingest.snapshot import counts_of
from turnstile_samples import command as sample
from turnstile_samples import itms, opal
from turnstile_samples.corruption import Corruption

DOMAINS = Path(__file__).resolve().parents[2] / "include" / "domains"
WEEK = "2016-W30"


def _sample(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    sample.add_parser(parser.add_subparsers())
    args = parser.parse_args(["sample", *arguments])
    return int(args.command(args))


def _digests(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


@pytest.fixture(scope="session")
def places() -> opal.Places:
    return opal.read_places(DOMAINS / "opal_locations.csv")


@pytest.fixture(scope="session")
def area() -> npt.NDArray[np.float64]:
    return itms.read_area(DOMAINS / "surat_area.geojson")


@pytest.mark.parametrize("form", ["csv", "csv.gz", "parquet", "json"])
@pytest.mark.parametrize("programme", ["opal", "itms"])
def test_the_same_seed_gives_the_same_bytes(tmp_path: Path, programme: str, form: str) -> None:
    usual = [programme, "--weeks", WEEK, "--rows", "500", "--format", form]
    for folder, seed in (("a", "7"), ("b", "7"), ("c", "8")):
        assert _sample(*usual, "--seed", seed, "--out", str(tmp_path / folder)) == 0
    first, second, other = (_digests(tmp_path / folder) for folder in "abc")
    assert first == second
    assert len(first) == 7
    assert first.keys() == other.keys()
    assert not set(first.values()) & set(other.values())


def test_each_week_of_a_range_has_its_own_folder_and_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _sample("opal", "--weeks", "2016-W30:2016-W32", "--rows", "700", "--out", str(tmp_path))
    folders = sorted(path.name for path in (tmp_path / "opal").iterdir())
    assert folders == ["2016-W30", "2016-W31", "2016-W32"]
    assert capsys.readouterr().out.count("7 files in") == 3
    assert len(set(_digests(tmp_path).values())) == 21


@pytest.mark.parametrize("delivered", ["opal-2016-07-25.csv", "trips.parquet"])
def test_files_that_somebody_delivered_stay(tmp_path: Path, delivered: str) -> None:
    folder = tmp_path / "opal" / WEEK
    folder.mkdir(parents=True)
    (folder / delivered).write_text("taps of people\n")
    asked = ["opal", "--weeks", WEEK, "--rows", "70", "--out", str(tmp_path)]
    with pytest.raises(InputError, match="holds other files of this week: say --replace"):
        _sample(*asked)
    assert [path.read_text() for path in folder.iterdir()] == ["taps of people\n"]
    assert _sample(*asked, "--replace") == 0
    made = _digests(folder)
    assert len(made) == 7
    assert _sample(*asked) == 0  # the same again is no other file
    assert _digests(folder) == made


def test_a_second_sample_of_a_week_leaves_no_file_of_the_first(tmp_path: Path) -> None:
    _sample("opal", "--weeks", WEEK, "--rows", "700", "--out", str(tmp_path))
    again = ["opal", "--weeks", WEEK, "--rows", "700", "--out", str(tmp_path)]
    _sample(*again, "--format", "json", "--corruption", "missing-day", "--replace")
    names = sorted(path.name for path in (tmp_path / "opal" / WEEK).iterdir())
    assert len(names) == 6
    assert all(name.endswith(".json") for name in names)


def test_every_place_of_a_sampled_trip_is_in_the_public_file_under_its_mode(
    tmp_path: Path, zones: Any, programme_of: Callable[..., Programme], rows_of: Callable[..., Any]
) -> None:
    _sample("opal", "--weeks", WEEK, "--rows", "3000", "--out", str(tmp_path / "made"))
    (tmp_path / "made" / "opal").rename(zones.landing)
    snapshot = zones.ingest(programme_of("opal"), WEEK)
    with (DOMAINS / "opal_locations.csv").open(encoding="utf-8", newline="") as stream:
        public = {(row["mode"], row["location"]) for row in csv.DictReader(stream)}
    begun = set(rows_of(snapshot, "mode, tap_on_location"))
    ended = {(mode, place) for mode, place in rows_of(snapshot, "mode, tap_off_location")}
    assert begun <= public
    assert {(mode, place) for mode, place in ended if place != "UNKNOWN"} <= public
    assert counts_of(snapshot)["rows_in"] == 3000


def test_sampled_trips_are_calibrated(places: opal.Places) -> None:
    rows = opal.opal_rows(ServiceWeek(2016, 30), 100_000, 1, places=places, corruptions=frozenset())
    assert {len(column) for column in rows.values()} == {100_000}
    shares = np.bincount(rows["mode"]) / 100_000
    assert np.allclose(shares, [0.381, 0.025, 0.064, 0.530], atol=0.01)
    assert abs((rows["off_place"] < 0).mean() - 0.02) < 0.003
    assert 0.001 < (rows["off_minute"] >= 1440).mean() < 0.02
    weekday = rows["on_minute"][rows["day"] < 5] // 60
    by_hour = np.bincount(weekday, minlength=24)
    assert by_hour[8] > 1.5 * by_hour[11] < by_hour[17]
    per_card_day = np.unique(rows["card"] * 7 + rows["day"], return_counts=True)[1]
    assert np.median(per_card_day) == 2
    assert per_card_day.max() > 10
    stated = opal._shares(opal._TRIPS_SHARES)  # a card that was drawn twice for a day has more
    observed_shares = np.bincount(per_card_day, minlength=len(stated) + 1)[1:] / len(per_card_day)
    assert np.abs(observed_shares - stated).max() < 0.015
    busiest = np.sort(np.bincount(rows["on_place"]))[::-1]
    assert busiest[:100].sum() > 0.5 * busiest.sum()


def test_cards_come_again_the_next_week(places: opal.Places) -> None:
    usual = {"places": places, "corruptions": frozenset()}
    first, next_week = (
        opal.opal_rows(ServiceWeek(2016, week), 20_000, 1, **usual)["card"] for week in (30, 31)
    )
    assert len(np.intersect1d(first, next_week)) > 0.3 * len(np.unique(first))


def test_sampled_buses_are_calibrated(area: npt.NDArray[np.float64]) -> None:
    rows = itms.itms_rows(ServiceWeek(2016, 30), 400_000, 1, area=area, corruptions=frozenset())
    assert len(np.unique(rows["bus"])) == 800
    hour = rows["second"] // 3600
    assert (hour.min(), hour.max()) == (5, 20)
    every = slice(None, None, 4)
    places = zip(rows["latitude"][every] / 1e6, rows["longitude"][every] / 1e6, strict=True)
    cell = np.unique([h3.latlng_to_cell(*place, 7) for place in places], return_inverse=True)
    assert 100 <= len(cell[0]) <= 130
    bus_day = rows["bus"][every] * 7 + rows["day"][every]
    hats = np.unique((bus_day * 24 + hour[every]) * 1000 + cell[1]) // 24000
    per_bus_day = np.unique(hats, return_counts=True)[1]
    assert 8 < per_bus_day.mean() < 20
    assert per_bus_day.max() < 100
    assert rows["speed"].max() <= 65 * itms.SPEED_CODE_SCALE


def test_the_service_area_has_about_120_cells() -> None:
    polygon = json.loads((DOMAINS / "surat_area.geojson").read_text())["features"][0]["geometry"]
    assert len(h3.geo_to_cells(polygon, 7)) == 120


@pytest.mark.parametrize(
    "arguments",
    [
        ["opal", "--weeks", "2016-W60"],
        ["opal", "--weeks", "2016-W32:2016-W30"],
        ["opal", "--weeks", WEEK, "--rows", "0"],
        ["opal", "--weeks", WEEK, "--seed", "-1"],
        ["opal", "--weeks", WEEK, "--corruption", "wrong-unit"],
        ["itms", "--weeks", WEEK, "--corruption", "dust"],
        ["hfp", "--weeks", WEEK, "--corruption", "late"],
    ],
)
def test_what_cannot_be_sampled_is_reported(tmp_path: Path, arguments: list[str]) -> None:
    with pytest.raises(InputError):
        _sample(*arguments, "--out", str(tmp_path))
    assert not list(tmp_path.iterdir())


def test_one_row_is_a_sample_too(places: opal.Places, area: npt.NDArray[np.float64]) -> None:
    week = ServiceWeek(2016, 30)
    corruptions = frozenset(
        {Corruption.DUPLICATES, Corruption.NULLS, Corruption.OUTLIERS, Corruption.LATE}
    )
    assert len(opal.opal_rows(week, 1, 1, places=places, corruptions=corruptions)["day"]) == 2
    assert len(itms.itms_rows(week, 1, 1, area=area, corruptions=corruptions)["day"]) == 2


def test_places_without_a_mode_are_reported(tmp_path: Path) -> None:
    (tmp_path / "places.csv").write_text("mode,location\nbus,A\n")
    with pytest.raises(InputError, match="no place of mode ferry"):
        opal.read_places(tmp_path / "places.csv")
    with pytest.raises(InputError, match="not there"):
        opal.read_places(tmp_path / "none.csv")
    assert dataclasses.is_dataclass(opal.Places)


def test_a_range_of_weeks_crosses_the_year() -> None:
    weeks = sample.parse_weeks("2020-W52:2021-W01")
    assert [str(week) for week in weeks] == ["2020-W52", "2020-W53", "2021-W01"]


def test_a_range_that_runs_backwards_is_refused() -> None:
    with pytest.raises(InputError, match="backwards"):
        sample.parse_weeks("2016-W32:2016-W30")
