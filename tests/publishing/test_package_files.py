"""What a package holds: each description agrees with its schema and with the files beside it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import geopandas
import pyarrow.parquet as pq
import pytest
import yaml
from frictionless import validate
from jsonschema import Draft202012Validator
from worked_examples import run_examples

from turnstile.programme.field import PUBLIC_ROLES
from turnstile.programme.field_registry import field_of
from turnstile.programme.source_spec import Feed
from turnstile.publishing.card import _estimated_errors
from turnstile.publishing.data_tables import TRIPS, Layout, Source
from turnstile.publishing.describe.readme import counts_other_trips
from turnstile.publishing.describe.registry_entry import records_of
from turnstile.publishing.files import FILES

FILES_AT_MOST = 35
SCREEN_LINES = 45


def test_every_file_is_a_table_or_of_the_registry_with_its_sources(package: Path) -> None:
    registered = {file.path for file in FILES} | {"manifest.json"}
    assessed = {"plan.json", "assessment.json", "assessment.html"}
    files = [path for path in package.rglob("*") if path.is_file()]
    names = {path.relative_to(package).as_posix() for path in files}
    assert {name for name in names if not name.startswith("data/")} <= registered | assessed
    asked_for = {name for name in names if name.startswith(("tides/", "gtfs_ride"))}
    assert len(names - asked_for) <= FILES_AT_MOST
    assert all(file.sources for file in FILES)


def test_every_column_of_every_table_is_a_public_field_of_the_registry(package: Path) -> None:
    for path in package.glob("data/*.parquet"):
        for name in pq.read_schema(path).names:
            entry = field_of(name)
            assert entry is not None, f"{path.name}: {name}"
            assert entry.role in PUBLIC_ROLES
    assert field_of("card") is None  # the check can fail


def test_the_guide_has_a_line_for_every_column(package: Path) -> None:
    lines = (package / "docs/GUIDE.md").read_text().splitlines()
    told = {line.split("`")[1]: line for line in lines if line.startswith("| `")}
    for path in package.glob("data/*.parquet"):
        assert {*pq.read_schema(path).names} <= told.keys()
    assert all(len(line.split("|")[2]) > 20 for line in told.values())


def test_columns_have_the_units_of_their_table_and_slots_their_length(package: Path) -> None:
    resources = json.loads((package / "datapackage.json").read_bytes())["resources"]
    fields = {
        (resource["path"], field["name"]): field
        for resource in resources
        for field in resource.get("schema", {}).get("fields", ())
    }
    name, minutes = ("slot", 240) if package.parts[-3] == "opal" else ("speed_buses", 180)
    path, guide = f"data/{name}.csv", (package / "docs/GUIDE.md").read_text()
    for said in (guide, fields[path, "slot"]["description"]):
        assert f"A slot has {minutes} minutes." in said
    units = [fields[path, column]["unit"] for column in ("value", "high_95", "measured")]
    if name == "slot":
        assert units == ["trips"] * 3
        assert "bus-slots" not in guide
    else:
        assert units == ["buses a day", "buses a day", "bus-days"]
        assert fields["data/speed.csv", "measured"]["unit"] == "0.1 km/h"
        assert "bus-slots of 180 minutes" in guide
        drawn = guide.partition("Units of `measured`: ")[2].partition(".\n")[0].split(", ")
        assert sorted(drawn) == [
            "speed in 0.1 km/h",
            "speed_buses in bus-days",
            "speeding in bus-days",
        ]


def test_what_is_made_of_a_table_with_a_bound_of_its_own_adds_up_with_no_other() -> None:
    """The guide said that sums of places over 13 weeks add up with hours and days."""
    named = {"places": "places", "places_13_weeks": "", "places_year_to_date": "", "day": "on"}
    others = [
        name
        for name, drawn in named.items()
        if counts_other_trips(
            Layout(name, *TRIPS, (Source({}, "", drawn or name, drawn, "count"),), ""), {"places"}
        )
    ]
    assert others == ["places", "places_13_weeks", "places_year_to_date"]


def test_the_first_example_lists_one_end_of_every_trip(published: Path) -> None:
    for folder, is_of_taps in (("opal", True), ("itms", False)):
        first = next(published.glob(f"{folder}/*/r0/README.md")).read_text()
        examples = re.findall(r"```\w+\n(.*?)```", first, re.DOTALL)
        assert [("tap" in example) for example in examples] == [is_of_taps] * 3
        assert "`../../index.html`" in first


def test_frictionless_accepts_the_descriptor_and_every_table(package: Path) -> None:
    report = validate(str(package / "datapackage.json"))
    assert report.valid, [task.errors[:1] for task in report.tasks if not task.valid]
    paths = {task.place for task in report.tasks}
    assert any(path.endswith(".parquet") for path in paths)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_frictionless_refuses_a_table_that_is_not_as_described(copied: Path, suffix: str) -> None:
    path, other = sorted((copied / "data").glob(f"*.{suffix}"))[:2]
    descriptor = copied / "datapackage.json"
    stated = json.loads(descriptor.read_bytes())
    name = f"data/{path.name}"
    stated["resources"] = [given for given in stated["resources"] if given["path"] == name]
    descriptor.write_text(json.dumps(stated))  # the others take long, and are as they were
    assert validate(str(descriptor)).valid
    path.write_bytes(other.read_bytes())
    assert not validate(str(descriptor)).valid


def test_the_registry_entry_is_valid_against_the_registrys_schema(
    package: Path, shared_data: Path
) -> None:
    text = (shared_data / "dp_registry/deployments-schema.yaml").read_text()
    validator = Draft202012Validator(yaml.safe_load(text))
    entry = yaml.safe_load((package / "metadata/registry_entry.yaml").read_text())
    assert list(validator.iter_errors(entry)) == []
    assert entry["tier"] == 3
    card = json.loads((package / "release_card.json").read_bytes())
    loss = entry["deployment"]["privacy_loss"]
    stated = card["guarantee"]["units"][loss["privacy_unit"]]
    name = next(iter(loss["privacy_parameters"]))
    assert loss["privacy_parameters"][name] == float(stated[name])
    entry["deployment"]["dp_variant"]["variant_name"] = "Perfect DP"
    assert list(validator.iter_errors(entry))


def test_the_registry_entry_speaks_of_what_the_programme_holds(package: Path) -> None:
    """One of buses said that several cards of one person are not one unit."""
    deployment = yaml.safe_load((package / "metadata/registry_entry.yaml").read_text())[
        "deployment"
    ]
    domain, unit = (
        deployment["dp_variant"]["data_domain"],
        deployment["privacy_loss"]["privacy_unit_details"],
    )
    if package.parts[-3] == "opal":
        assert domain == (
            "All finite sets of smart-card trips; records outside of the public domain are counted "
            "as UNKNOWN where they have no public slot or place."
        )
        assert unit.endswith("Several cards of one person are not one unit.")
    else:
        assert domain == (
            "All finite sets of positions of vehicles; records outside of the public domain are "
            "left out of every table; how many is private."
        )
        assert "card" not in unit
        assert unit.endswith("Several buses are not one unit.")


@pytest.mark.parametrize(
    ("feed", "records"),
    [
        ("ist_daten", "calls of vehicles at stops"),
        ("gate_counts", "boardings and alightings that name nobody"),
        ("taps", "smart-card taps"),
        ("hired_trips", "hired trips"),
    ],
)
def test_the_registry_entry_has_a_word_for_the_records_of_each_feed(
    feed: str, records: str
) -> None:
    """Those of a counter at a gate were smart-card trips, calls at stops were speeds."""
    assert records_of(Feed(feed)) == records


def test_shapes_are_there_for_every_label_of_a_cell(package: Path) -> None:
    shapes = geopandas.read_file(package / "cells.geojson")
    assert shapes.geometry.is_valid.all()
    label = "location" if "location" in shapes else "cell"
    name = "location" if label == "location" else "speed_buses"
    table = pq.read_table(package / f"data/{name}.parquet").to_pandas()
    assert set(table[label]) - {"UNKNOWN"} == set(shapes[label])


def test_json_ld_names_every_table_with_its_digest(package: Path) -> None:
    manifest = json.loads((package / "manifest.json").read_bytes())
    listed = {entry["path"]: entry for entry in manifest["files"]}
    graph = json.loads((package / "metadata/dcat.jsonld").read_bytes())["@graph"]
    kinds = {node["@type"]: node for node in graph}
    assert kinds["dcat:Dataset"]["dcat:inSeries"]["@id"] == kinds["dcat:DatasetSeries"]["@id"]
    for distribution in kinds["dcat:Dataset"]["dcat:distribution"]:
        digest = distribution["spdx:checksum"]["spdx:checksumValue"]
        assert listed[distribution["dct:title"]]["sha256"] == digest
    croissant = json.loads((package / "metadata/croissant.json").read_bytes())
    for distribution in croissant["distribution"]:
        path = (
            (package / "metadata" / distribution["contentUrl"])
            .resolve()
            .relative_to(package.resolve())
        )
        assert listed[path.as_posix()]["sha256"] == distribution["sha256"]
    fields = [f["@id"] for records in croissant["recordSet"] for f in records["field"]]
    assert len(fields) == len(set(fields)) > 10


def test_every_worked_example_runs_and_the_first_screen_is_one(package: Path) -> None:
    first, guide = ((package / name).read_text() for name in ("README.md", "docs/GUIDE.md"))
    assert len(first.splitlines()) <= SCREEN_LINES
    assert "| good, of what is counted |" in first
    assert "bound of their own count other trips" not in guide  # neither programme has such a table
    assert run_examples(package) == 7


def test_a_table_that_shows_no_number_has_no_estimated_error() -> None:
    shown = {"numbers": 4, "rmse_estimated": 1.5}
    nothing = {"numbers": 0, "rmse_estimated": None}
    card = {"estimates": {"errors": {"speed": [nothing], "speed_hours": [nothing, shown]}}}
    assert _estimated_errors(card) == {"speed_hours": 1.5}


def test_a_correction_and_its_reason_stand_in_the_change_log(
    published: Path,
) -> None:
    log = next(published.glob("opal/*/r0/docs/GUIDE.md")).read_text()
    assert re.search(r"^- \d{4}-\d\d-\d\d, r0: published$", log, re.MULTILINE)
