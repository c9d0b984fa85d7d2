"""Planning reports of a week stay in the private zone; what is chosen in public is charged."""

from __future__ import annotations

import csv
import json
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import h3
import pytest
from small_deployment import INCLUDE, WEEK, Deployment

from turnstile.errors import InputError
from turnstile.programme.domain.files import load_domain
from turnstile.programme.loading import load_programme
from turnstile.programme.source_spec import Feed
from turnstile.service_calendar import ServiceWeek
from turnstile_design.private_reports.private_report import write_report

Cli = Callable[..., int]


def table(path: Path) -> list[dict[str, str]]:
    notice, *lines = path.read_text().splitlines()
    assert notice.startswith("# PRIVATE")
    return list(csv.DictReader(lines))


def test_the_report_is_private_and_no_package_holds_a_byte_of_it(
    assessed: Deployment, turnstile: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("turnstile_design")
    spent = assessed.spent()
    assert turnstile("itms", "report", "--week", WEEK) == 0
    output = capsys.readouterr().out
    folder = assessed.home / "private" / "itms" / WEEK / "r0" / "planning"
    assert output == f"private: {folder}\n"  # a path, no number of the data
    files = sorted(folder.iterdir())
    assert {path.suffix for path in files} == {".csv", ".svg"}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert assessed.spent() == spent
    assert not list(assessed.public.glob("*/*/r*"))
    assert turnstile("run", "itms", "--week", WEEK) == 0
    published = b"".join(path.read_bytes() for path in assessed.public.rglob("*") if path.is_file())
    for path in files:
        assert path.name.encode() not in published
    assert b"PRIVATE" not in published


@pytest.mark.long
def test_the_report_has_the_sources_tables(landed: Deployment, turnstile: Cli) -> None:
    turnstile("itms", "report", "--week", WEEK)
    folder = landed.home / "private" / "itms" / WEEK / "r0" / "planning"
    rows = table(folder / "resolutions.csv")
    assert [row["resolution"] for row in rows] == ["6", "7", "8"]
    finer = [[float(row[name]) for row in rows] for name in ("cells", "hats")]
    assert all(numbers == sorted(numbers) for numbers in finer)
    buses = [float(row["mean_buses_per_hat_and_day"]) for row in rows]
    assert buses == sorted(buses, reverse=True)
    hours = table(folder / "records_by_hour.csv")
    assert sum(int(row["records"]) for row in hours) > 19_000
    assert {row["hour"] for row in hours if row["is_selected"] == "True"} == {
        str(hour) for hour in range(9, 21)
    }
    bias = [float(row["speeding_bias_buses_a_day"]) for row in table(folder / "choice_of_k.csv")]
    assert bias == sorted(bias, reverse=True)


def test_a_report_on_trips_is_refused(landed: Deployment, turnstile: Cli) -> None:
    assert turnstile("itms", "report", "opal", "--week", WEEK) == 2
    assert landed.nothing_happened()


def test_a_report_on_calls_at_stops_which_have_no_position_is_refused(tmp_path: Path) -> None:
    programme = load_programme("itms", INCLUDE)
    source = replace(programme.source, feed=Feed.GTFS_TRIP_UPDATES)
    calls, week = replace(programme, source=source), ServiceWeek.parse(WEEK)
    domain = load_domain(programme, INCLUDE)
    with pytest.raises(InputError, match="positions of vehicles"):
        write_report(calls, domain, week, rows_folder=tmp_path, folder=tmp_path)


@pytest.mark.long
def test_cells_are_chosen_from_a_survey_that_was_charged(
    landed: Deployment, turnstile: Cli
) -> None:
    package = landed.public / "itms_survey" / WEEK / "r0"
    chosen = landed.include / "domains" / "chosen.csv"
    # Of the area's 137 coarse cells, each with noise of its own, a third keep fine ones and nearly
    # all are listed themselves: one resolution is left alone with a chance of 1e-24.
    choose = ("itms", "cells", package, "--out", chosen, "--coarsest", 7, "--least", 0)
    assert turnstile(*choose) == 2  # nothing is published, so nothing can be chosen from
    assert turnstile("run", "itms_survey", "--week", WEEK) == 0
    survey = landed.spent()["bus_day:2016-07-25"]
    assert survey == pytest.approx(20_000_000, abs=2)  # 1/50
    assert turnstile(*choose) == 0
    cells = chosen.read_text().split()[1:]
    assert {h3.get_resolution(cell) for cell in cells} == {7, 8}
    landed.edit("itms", "domains/surat_area.geojson", "domains/chosen.csv")
    landed.edit("itms", "h3_resolution: 7", "h3_resolution: 8\n  h3_coarsest: 7")
    assert turnstile("run", "itms", "--week", WEEK) == 0
    written = landed.public / "itms" / WEEK / "r0/data/speed.csv"
    lines = written.read_text().splitlines()
    assert {row["cell"] for row in csv.DictReader(lines)} == set(cells)
    plan = json.loads((written.parents[1] / "plan.json").read_bytes())
    assert plan["domain_digest"]
    both = landed.spent()["bus_day:2016-07-25"]
    assert both is not None
    assert both == pytest.approx(survey + 100_000_000, rel=1e-6)  # 1/10
