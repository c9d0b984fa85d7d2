"""Croissant by mlcroissant and JSON-LD by rdflib, in an environment of their own (ADR 10)."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from of_an_index import uv

pytestmark = pytest.mark.long
_CHECK = """
import json, sys
from pathlib import Path
import mlcroissant, rdflib

folder = Path(sys.argv[1])
found = {}
described = mlcroissant.Dataset(jsonld=str(folder / "metadata/croissant.json"))
tables = described.metadata.record_sets
found["records"] = [len(next(iter(described.records(record_set=t.uuid)))) for t in tables]
content = (folder / "metadata/dcat.jsonld").read_bytes()
graph = rdflib.Graph().parse(data=content, format="json-ld")
found["dcat"] = sorted({str(kind) for kind in graph.objects(None, rdflib.RDF.type)})
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter that has both libraries; they are heavy, and nothing else needs them."""
    folder = tmp_path_factory.mktemp("harvesters")
    interpreter = folder / "bin/python"
    wanted = ("mlcroissant[parquet]==1.1.1", "rdflib==7.6.0")
    uv("venv", "--quiet", "--clear", folder)
    uv("pip", "install", "--quiet", "--python", interpreter, *wanted)
    return interpreter


def _checked(python: Path, package: Path) -> subprocess.CompletedProcess[str]:
    command = [python, "-W", "ignore", "-c", _CHECK, package]
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603


def test_harvesters_read_what_describes_a_package(python: Path, package: Path) -> None:
    done = _checked(python, package)
    assert done.returncode == 0, done.stderr
    harvest = json.loads(done.stdout)
    tables = list(package.glob("data/*.parquet"))
    assert len(harvest["records"]) == len(tables)
    assert min(harvest["records"]) > 2
    kinds = ("Dataset", "DatasetSeries", "Distribution")
    assert {f"http://www.w3.org/ns/dcat#{kind}" for kind in kinds} <= set(harvest["dcat"])


def test_a_description_of_other_columns_is_refused(
    python: Path, package: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "package"
    shutil.copytree(package, copy)
    text = (copy / "metadata/croissant.json").read_text()
    (copy / "metadata/croissant.json").write_text(text.replace('"cr:RecordSet"', '"cr:Recordset"'))
    assert _checked(python, copy).returncode != 0
