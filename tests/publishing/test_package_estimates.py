"""Estimates of a package: anybody makes the same bytes from packages alone, and sees a change."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from made_homes import MadeHome

from turnstile.cli import main
from turnstile.publishing.carried import verify_package
from turnstile.publishing.data_tables import NUMBERS
from turnstile.publishing.describe.manifest import MANIFEST, manifest_bytes

WEEKS = ("2016-W30", "2016-W31")
Cli = Callable[..., int]


@pytest.fixture
def package(half_hour_weeks: MadeHome, tmp_path: Path) -> Path:
    """A copy of the second week's package in a zone of its own, without a ledger or a home."""
    shutil.copytree(half_hour_weeks.home / "public", tmp_path / "zone", symlinks=True)
    return tmp_path / "zone" / "opal" / WEEKS[1] / "r0"


def test_estimates_are_made_again_from_packages_alone(package: Path) -> None:
    assert main(["estimates", "verify", str(package)]) == 0


def test_regions_are_sums_of_their_places_and_a_region_that_is_not_is_seen(package: Path) -> None:
    record = json.loads((package / "release_card.json").read_bytes())["estimates"]
    regions = record["promise"]["regions"]
    places, region_table = (
        pd.read_csv(package / f"data/{name}.csv") for name in ("location", "region")
    )
    keys = ["service_date", "mode", "tap"]
    places["region"] = places["location"].map(regions).fillna("UNKNOWN")
    for column in ("value", "unbiased"):
        sums = places.groupby([*keys, "region"])[column].sum().round(1)
        stated = region_table.set_index([*keys, "region"])[column]
        assert np.allclose(sums.loc[stated.index], stated, atol=0.1 if column == "value" else 10)
    assert verify_package.findings(package) == []
    change_an_estimate(package, "region_hour")
    assert any("is not the sum of" in finding for finding in verify_package.findings(package))
    assert main(["estimates", "verify", str(package)]) == 4


def change_an_estimate(package: Path, table: str = "location") -> None:
    path = package / f"data/{table}.csv"
    lines = path.read_text().splitlines(keepends=True)
    parts = lines[5].split(",")
    parts[lines[0].split(",").index('"value"')] = "77.7"
    path.write_text("".join([*lines[:5], ",".join(parts), *lines[6:]]))
    forge(package)


def test_a_changed_estimate_is_seen_though_the_manifest_was_made_anew(package: Path) -> None:
    change_an_estimate(package)
    assert main(["estimates", "verify", str(package)]) == 4


def test_a_table_that_is_missing_is_seen_though_nothing_names_it_any_more(package: Path) -> None:
    card = json.loads((package / "release_card.json").read_bytes())
    card["data"] = [entry for entry in card["data"] if entry["name"] != "hour"]
    (package / "release_card.json").write_text(json.dumps(card))
    for path in package.glob("data/hour.*"):
        path.unlink()
    forge(package)
    assert main(["estimates", "verify", str(package)]) == 4


EMULATED = ("qemu-aarch64-static", "debootstrap", "dpkg-deb")


@pytest.mark.long
@pytest.mark.skipif(not all(map(shutil.which, EMULATED)), reason="needs an emulator and Debian")
def test_another_processor_makes_the_same_bytes(package: Path, tmp_path: Path) -> None:
    script = str(Path(__file__).parents[1] / "support/other_processor.sh")

    def run() -> subprocess.CompletedProcess[str]:
        asked = [script, str(tmp_path / "scratch"), str(package)]
        return subprocess.run(asked, capture_output=True, text=True, check=False)  # noqa: S603

    ran = run()
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.endswith("aarch64: the same bytes\n")
    change_an_estimate(package)
    assert run().returncode == 1


def test_estimates_do_without_no_week_that_they_name(package: Path) -> None:
    shutil.rmtree(package.parents[1] / WEEKS[0])
    assert main(["estimates", "verify", str(package)]) == 2


def test_an_earlier_week_of_other_bytes_is_refused(package: Path) -> None:
    earlier = package.parents[1] / WEEKS[0] / "r0"
    (earlier / "plan.json").write_text((earlier / "plan.json").read_text() + "\n")
    forge(earlier)
    assert main(["estimates", "verify", str(package)]) == 4


def test_every_table_has_values_intervals_and_unbiased_numbers(package: Path) -> None:
    for path in sorted((package / "data").glob("*.parquet")):
        names = pq.read_schema(path).names
        columns = names[names.index("value") :]
        assert columns[:8] == list(NUMBERS[:8])
        assert columns[8:] in (["measured"], [])
    drawn = {path.stem for path in (package / "data").glob("*.parquet")}
    tables = {"day", "hour", "slot", "location", "location_hour", "location_slot"}
    assert drawn == tables | {"region", "region_hour", "region_slot"}


def test_estimates_are_not_negative_lie_in_their_intervals_and_add_up(package: Path) -> None:
    cells = pq.read_table(package / "data/location_slot.parquet").to_pandas()
    places = pq.read_table(package / "data/location.parquet").to_pandas()
    assert (cells["value"] >= 0).all()
    assert (cells["low_90"].isna() | (cells["low_90"] <= cells["value"])).all()
    assert (cells["high_90"].isna() | (cells["high_90"] >= cells["value"])).all()
    keys = ["service_date", "mode", "tap", "location"]
    sums = cells.groupby(keys, observed=True)["value"].sum()
    assert (sums - places.set_index(keys)["value"]).abs().max() < 1e-6


def test_the_card_names_model_inputs_and_measured_error(package: Path) -> None:
    stated = json.loads((package / "release_card.json").read_bytes())["estimates"]
    assert [entry["release"] for entry in stated["earlier"]] == [f"opal/{WEEKS[0]}/r0"]
    assert stated["errors"]["on_time_location"][0]["rmse_estimated"] > 0
    assert "biased" in stated["read_as"]


@pytest.mark.long
def test_a_later_series_changes_no_package_and_is_the_same_bytes_for_everybody(
    package: Path, tmp_path: Path
) -> None:
    before, zone = files_of(package.parents[1]), package.parents[2]
    asked = ["estimates", "series", "opal", "--as-of", WEEKS[1], "--packages", str(zone)]
    assert main([*asked, "--into", str(tmp_path / "series")]) == 0
    assert main([*asked, "--into", str(tmp_path / "series")]) == 0  # a repeat changes nothing
    assert files_of(package.parents[1]) == before
    made, first = files_of(tmp_path / "series"), package.parents[1] / WEEKS[0] / "r0"
    table = "on_time_location.csv"
    of_packages = [values_of(folder) for folder in (first, package)]
    of_series = [pd.read_csv(BytesIO(made[f"{week}/{table}"]))["estimate"] for week in WEEKS]
    assert of_series[1].tolist() == of_packages[1]
    assert of_series[0].tolist() != of_packages[0]
    weeks = json.loads(made["series.json"])["weeks"]
    earlier = weeks[f"opal/{WEEKS[0]}/r0"]["earlier"]
    assert [entry["release"] for entry in earlier] == [f"opal/{WEEKS[1]}/r0"]
    (package.parent / "withdrawn-r0.json").write_text("{}")
    assert main([*asked, "--into", str(tmp_path / "series")]) == 4  # never over an older series


def test_estimates_of_another_model_are_not_called_wrong(
    package: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    card = json.loads((package / "release_card.json").read_bytes())
    card["estimates"]["model"] = "an earlier one"
    (package / "release_card.json").write_text(json.dumps(card))
    forge(package)
    assert main(["estimates", "verify", str(package)]) == 2
    assert "an earlier one" in capsys.readouterr().err


def test_a_changed_statement_about_sums_is_seen(package: Path) -> None:
    card = json.loads((package / "release_card.json").read_bytes())
    card["estimates"]["correlations"]["on_time_location"] = []
    (package / "release_card.json").write_text(json.dumps(card))
    forge(package)
    assert main(["estimates", "verify", str(package)]) == 4


def test_a_sum_of_any_cells_has_an_interval_of_its_own(
    package: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["estimates", "sum", str(package), "--table", "location_slot"]
    of_trains = ["--where", "tap=on", "--where", "mode=train"]
    assert main([*asked, *of_trains, "--where", "slot=08:00,08:30"]) == 0
    drawn = pq.read_table(package / "data/location_slot.parquet").to_pandas()
    drawn = drawn[(drawn["tap"] == "on") & (drawn["mode"] == "train")]
    cells = drawn[drawn["slot"].isin(["08:00", "08:30"])]
    said = capsys.readouterr().out
    assert f"measured: {cells['measured'].sum()}, 90 % interval" in said
    assert "estimate: 90 % interval" in said or "no interval: " in said
    for where, words in {  # nothing that was asked is left out without a word
        ("mode=train,tram",): "no row has mode=tram; labels of mode are bus, ",
        ("slot=08:00", "--where", "slot=08:30"): "slot is named twice: write slot=LABEL,LABEL once",
    }.items():
        assert main([*asked, "--where", "tap=on", "--where", *where]) == 2
        assert words in capsys.readouterr().err
    assert main([*asked, "--where", "mode=train"]) == 2  # every trip is in both taps
    assert main([*asked, "--where", "card=1"]) == 2
    capsys.readouterr()
    assert main([*asked[:-1], "day"]) == 2  # a sum of cells: its errors are no declared noise
    drawn_ones = "name a drawn one: location, location_slot, slot; tools/sums.py"
    assert drawn_ones in capsys.readouterr().err
    assert main([*asked[:-1], "nosuch"]) == 2
    assert drawn_ones in capsys.readouterr().err
    assert main(["estimates", "sum", "/nowhere", "--table", "slot"]) == 2
    assert "is no folder; name a package" in capsys.readouterr().err


def values_of(package: Path) -> list[float]:
    """Return the values of boardings by place and time."""
    table = pq.read_table(package / "data/location_slot.parquet").to_pandas()
    boardings: list[float] = table[table["tap"] == "on"]["value"].tolist()
    return boardings


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def forge(package: Path) -> None:
    """Make a manifest that fits what lies in a package."""
    stated = json.loads((package / MANIFEST).read_bytes())
    (package / MANIFEST).unlink()
    content = manifest_bytes(package, key=stated["key"], sealed_digest=stated["sealed_sha256"])
    (package / MANIFEST).write_bytes(content)
