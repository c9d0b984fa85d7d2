"""How large a package would be is said before the charge, and is what it becomes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from small_deployment import INCLUDE, WEEK, Deployment

from turnstile.cli import main
from turnstile.programme.domain.files import load_domain
from turnstile.programme.loading import load_programme
from turnstile.publishing.package_size import LARGE_BYTES, PackageSize, large_package, package_size
from turnstile.release.plan import make_plan
from turnstile.service_calendar import ServiceWeek

WITHIN = 3  # times, of a small package, whose report and card vary


def test_rows_and_files_of_a_plan_are_those_of_the_package(
    package: Path, copied_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert copied_home.is_dir()
    programme = package.parts[-3]
    assert main(["plan", programme, "--week", WEEK, "--json"]) == 0
    planned = json.loads(capsys.readouterr().out)["package"]
    rows = {
        path.stem: pq.ParquetFile(path).metadata.num_rows for path in package.glob("data/*.parquet")
    }
    assert planned["rows"] == rows
    files = [path for path in package.rglob("*") if path.is_file()]
    asked_for = [path for path in files if path.parent.name in ("tides", "gtfs_ride")]
    assert planned["files"] == len(files) - len(asked_for)
    total_bytes = sum(path.stat().st_size for path in files if path not in asked_for)
    assert total_bytes / WITHIN < planned["bytes"] < WITHIN * total_bytes
    assert main(["plan", programme, "--week", WEEK]) == 0
    assert f"{planned['files']} files, about" in capsys.readouterr().out


@pytest.mark.long
def test_a_package_above_100_mb_is_warned_of_with_the_grain_that_would_do(
    deployment: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "opal"]) == 0
    assert "is above" not in capsys.readouterr().err
    path = deployment.include / "domains/opal_locations.csv"
    header = path.read_text().splitlines()[0]
    modes = ("bus", "ferry", "light_rail", "train")
    places = [f"{mode},stop {n},area {n:05},," for mode in modes for n in range(6_000)]
    path.write_text("\n".join([header, *places]) + "\n")
    deployment.edit("opal", "slot_minutes: 240", "slot_minutes: 15")
    programme = load_programme("opal", deployment.include)
    domain = load_domain(programme, deployment.include)
    plan = make_plan(programme, domain, ServiceWeek.parse(WEEK))
    size = package_size(programme, domain, plan)
    assert size.size_bytes > LARGE_BYTES
    said = large_package(size, programme, deployment.include, plan)
    assert "which is above 100 MB; slot_minutes: " in said
    assert main(["check", "opal"]) == 0
    assert "which is above 100 MB; slot_minutes: " in capsys.readouterr().err


def test_tables_whose_names_begin_alike_have_the_rows_that_they_have_by_other_names(
    tmp_path: Path,
) -> None:
    include = shutil.copytree(INCLUDE, tmp_path / "include")
    size = size_of("opal_flows", include)
    path = include / "programmes/opal_flows.yaml"
    renamed = path.read_text().replace("on_location:", "flows:")
    path.write_text(renamed.replace("flows_of_zones", "flows_of_regions_too"))
    again = size_of("opal_flows", include)
    assert again.rows.keys() != size.rows.keys()
    assert again.cells == size.cells
    path.write_text(path.read_text().replace('midday: "10:00-15:00", ', ""))
    assert size_of("opal_flows", include).cells < size.cells  # a period less is seen


def size_of(name: str, include: Path) -> PackageSize:
    programme = load_programme(name, include)
    domain = load_domain(programme, include)
    plan = make_plan(programme, domain, ServiceWeek.parse(WEEK))
    return package_size(programme, domain, plan)
