"""What a package holds: each description agrees with its schema and with the files beside it."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import geopandas
import pyarrow.parquet as pq
import pytest
import yaml
from frictionless import validate
from jsonschema import Draft202012Validator

from turnstile.programme.field import PUBLIC_ROLES
from turnstile.programme.field_registry import field_of
from turnstile.publishing.files import FILES

TABLES = ("estimates", "tables", "measurements")


def test_every_file_is_a_table_or_of_the_registry_with_its_sources(package: Path) -> None:
    registered = {file.path for file in FILES} | {"manifest.json"}
    assessed = {"plan.json", "assessment.json", "assessment.html"}
    files = [path for path in package.rglob("*") if path.is_file()]
    names = {path.relative_to(package).as_posix() for path in files if path.parent == package}
    assert names <= registered | assessed
    below = {path.parent.name for path in files if path.parent != package}
    assert below <= {*TABLES, "pictures", "tides"}
    assert all(file.sources for file in FILES)


def test_every_column_of_every_table_is_a_public_field_of_the_registry(package: Path) -> None:
    for path in package.glob("*/*.parquet"):
        for name in pq.read_schema(path).names:
            entry = field_of(name)
            assert entry is not None, f"{path.name}: {name}"
            assert entry.role in PUBLIC_ROLES
    assert field_of("card") is None  # the check can fail


def test_the_dictionary_has_a_line_for_every_column(package: Path) -> None:
    with (package / "dictionary.csv").open() as stream:
        dictionary = {(row["file"], row["column"]): row for row in csv.DictReader(stream)}
    for path in package.glob("*/*.parquet"):
        for name in pq.read_schema(path).names:
            row = dictionary[f"{path.parent.name}/{path.stem}", name]
            assert row["description"]
            assert row["type"]


def test_frictionless_accepts_the_descriptor_and_every_table(package: Path) -> None:
    report = validate(str(package / "datapackage.json"))
    assert report.valid, [task.errors[:1] for task in report.tasks if not task.valid]
    paths = {task.place for task in report.tasks}
    assert any(path.endswith(".parquet") for path in paths)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_frictionless_refuses_a_table_that_is_not_as_described(copied: Path, suffix: str) -> None:
    one, other = sorted((copied / "measurements").glob(f"*.{suffix}"))[:2]
    descriptor = copied / "datapackage.json"
    stated = json.loads(descriptor.read_bytes())
    own = f"measurements/{one.name}"
    stated["resources"] = [given for given in stated["resources"] if given["path"] == own]
    descriptor.write_text(json.dumps(stated))  # the others take long, and are as they were
    assert validate(str(descriptor)).valid
    one.write_bytes(other.read_bytes())
    assert not validate(str(descriptor)).valid


def test_the_registry_entry_is_valid_against_the_registrys_schema(
    package: Path, shared_data: Path
) -> None:
    text = (shared_data / "dp_registry/deployments-schema.yaml").read_text()
    validator = Draft202012Validator(yaml.safe_load(text))
    entry = yaml.safe_load((package / "registry_entry.yaml").read_text())
    assert list(validator.iter_errors(entry)) == []
    assert entry["tier"] == 3
    card = json.loads((package / "release_card.json").read_bytes())
    loss = entry["deployment"]["privacy_loss"]
    stated = card["guarantee"]["units"][loss["privacy_unit"]]
    name = next(iter(loss["privacy_parameters"]))
    assert loss["privacy_parameters"][name] == float(stated[name])
    entry["deployment"]["dp_variant"]["variant_name"] = "Perfect DP"
    assert list(validator.iter_errors(entry))


def test_shapes_are_there_for_every_label_of_a_cell(package: Path) -> None:
    shapes = geopandas.read_parquet(package / "cells.parquet")
    as_text = json.loads((package / "cells.geojson").read_bytes())
    assert len(as_text["features"]) == len(shapes)
    assert shapes.geometry.is_valid.all()
    label = "location" if "location" in shapes else "cell"
    table = pq.read_table(next(package.glob("tables/*.parquet"))).to_pandas()
    for column in table.columns:
        if column.endswith(label):
            assert set(table[column]) - {"UNKNOWN"} <= set(shapes[label])


def test_json_ld_names_every_table_with_its_digest(package: Path) -> None:
    manifest = json.loads((package / "manifest.json").read_bytes())
    listed = {one["path"]: one for one in manifest["files"]}
    dataset = json.loads((package / "dataset.jsonld").read_bytes())
    assert dataset["@type"] == "Dataset"
    for one in dataset["distribution"]:
        assert listed[one["contentUrl"]]["sha256"] == one["sha256"]
    graph = json.loads((package / "dcat.jsonld").read_bytes())["@graph"]
    kinds = {one["@type"]: one for one in graph}
    assert kinds["dcat:Dataset"]["dcat:inSeries"]["@id"] == kinds["dcat:DatasetSeries"]["@id"]
    assert len(kinds["dcat:Dataset"]["dcat:distribution"]) == len(dataset["distribution"])
    croissant = json.loads((package / "croissant.json").read_bytes())
    for one in croissant["distribution"]:
        assert listed[one["contentUrl"]]["sha256"] == one["sha256"]
    fields = [f["@id"] for records in croissant["recordSet"] for f in records["field"]]
    assert len(fields) == len(set(fields)) > 10


def test_every_worked_example_of_the_readme_runs(package: Path) -> None:
    examples = re.findall(r"```python\n(.*?)```", (package / "README.md").read_text(), re.DOTALL)
    assert len(examples) == 7
    for example in examples:
        done = subprocess.run(  # noqa: S603 - our own interpreter
            [sys.executable, "-W", "error::FutureWarning", "-c", example],
            cwd=package,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()


def test_a_correction_and_its_reason_stand_in_the_change_log(
    published: Path,
) -> None:
    log = next(published.glob("opal/*/r0/CHANGELOG.md")).read_text()
    assert re.search(r"^- \d{4}-\d\d-\d\d, r0: published$", log, re.MULTILINE)
