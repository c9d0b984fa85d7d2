"""Forty plants of a true number in a package: each is named, or said not to be judged."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import shutil
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import yaml

from turnstile.estimates.labelled import parquet_bytes
from turnstile.publishing.contents_check import unknown_contents
from turnstile.publishing.inner_contents import NOT_JUDGED, unknown_inside
from turnstile.publishing.package_reader import Tables, csv_file

TRUE = 20_123
Plant = Callable[[Path], object]


@pytest.fixture
def spoiled(published: Path, tmp_path: Path) -> Path:
    """A package of trips, to be spoiled."""
    (package,) = published.glob("**/opal/2016-W30/r0")
    return Path(shutil.copytree(package, tmp_path / "r0"))


def field(file: str, *keys: str | int) -> Plant:
    """Write a true number into a field that nobody declared."""

    def plant(package: Path) -> None:
        path = package / file
        text = path.read_text()
        content = yaml.safe_load(text) if file.endswith(".yaml") else json.loads(text)
        place: Any = content
        for key in keys[:-1]:
            place = place[next(iter(place))] if key == "*" else place[key]
        place[keys[-1]] = TRUE
        path.write_text(yaml.safe_dump(content) if file.endswith(".yaml") else json.dumps(content))

    return plant


def text(file: str, old: str, new: str) -> Plant:
    """Put a text into a file."""

    def plant(package: Path) -> None:
        path = package / file
        content = path.read_text()
        assert old in content
        path.write_text(content.replace(old, new, 1))

    return plant


def table(name: str, change: Callable[[pa.Table], pa.Table], *, both: bool = True) -> Plant:
    """Change a table, in Parquet alone or in its CSV too."""

    def plant(package: Path) -> None:
        path = package / f"data/{name}.parquet"
        rows = change(pq.read_table(path))
        path.write_bytes(parquet_bytes(rows))
        if both:
            at, content = csv_file(f"data/{name}", rows)
            (package / at).write_bytes(content)

    return plant


def packed(name: str, pack: Callable[[bytes], bytes], *, beside: bool = False) -> Plant:
    """Pack the CSV of a table, as a large one is."""

    def plant(package: Path) -> None:
        path = package / f"data/{name}.csv"
        path.with_suffix(".csv.gz").write_bytes(pack(path.read_bytes()))
        if not beside:
            path.unlink()

    return plant


def gzip_of(content: bytes, level: int = 6) -> bytes:
    """Pack with nothing beside the content."""
    return gzip.compress(content, level, mtime=0)


def with_name(content: bytes) -> bytes:
    """Pack with the name of a file in the header."""
    target = io.BytesIO()
    with gzip.GzipFile(str(TRUE), "wb", fileobj=target, mtime=0) as file:
        file.write(content)
    return target.getvalue()


def last_twice(content: bytes) -> bytes:
    """Say the last row of a table twice."""
    return content + content.splitlines(keepends=True)[-1]


def moved(rows: pa.Table, by: float) -> pa.Table:
    """Move one estimate."""
    values = rows.column("value").to_numpy().copy()
    values[3] += by
    return rows.set_column(rows.column_names.index("value"), "value", pa.array(values))


def by_value(rows: pa.Table) -> pa.Table:
    """Rows by their number."""
    return rows.take(pc.sort_indices(rows, sort_keys=[("value", "descending")]))


def map_by_value(package: Path) -> None:
    """The places of the map by their number."""
    path = package / "cells.geojson"
    content = json.loads(path.read_bytes())
    content["features"].sort(key=lambda feature: -(feature["properties"]["value"] or 0))
    path.write_text(json.dumps(content, separators=(",", ":")))


def map_number(package: Path) -> None:
    """A true number in place of the map's."""
    path = package / "cells.geojson"
    content = json.loads(path.read_bytes())
    content["features"][0]["properties"]["value"] += 40
    path.write_text(json.dumps(content, separators=(",", ":")))


def first_number(package: Path) -> None:
    """A true number in the file that people open first."""
    path = package / "START_HERE.csv"
    rows = list(csv.reader(io.StringIO(path.read_text())))
    rows[1][3] = str(TRUE)
    path.write_text("\n".join(",".join(row) for row in rows) + "\n")


def png(*chunks: tuple[bytes, bytes]) -> bytes:
    """A picture of one pixel, with chunks beside it."""
    head = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    picture = b"\x89PNG\r\n\x1a\n"
    for kind, content in (
        (b"IHDR", head),
        *chunks,
        (b"IDAT", zlib.compress(b"\0\0")),
        (b"IEND", b""),
    ):
        picture += struct.pack(">I", len(content)) + kind + content
        picture += struct.pack(">I", zlib.crc32(kind + content))
    return picture


def file(name: str, content: bytes) -> Plant:
    """Add a file."""

    def plant(package: Path) -> None:
        (package / name).parent.mkdir(exist_ok=True)
        (package / name).write_bytes(content)

    return plant


def with_word(rows: pa.Table, word: str) -> pa.Table:
    """A label in the dictionary of a column that no row has."""
    coded = rows.column("mode").cast(pa.string()).combine_chunks().dictionary_encode()
    words = pa.array([*coded.dictionary.to_pylist(), word])
    column = pa.DictionaryArray.from_arrays(coded.indices, words)
    return rows.set_column(rows.column_names.index("mode"), "mode", column)


def metadata(rows: pa.Table) -> pa.Table:
    """A true number in the metadata of a column."""
    first = rows.schema.field(0).with_metadata({b"true": b"20123"})
    return rows.cast(pa.schema([first, *list(rows.schema)[1:]]))


PLANTS: dict[str, tuple[Plant, str]] = {
    "a property of the map": (
        field("cells.geojson", "features", 0, "properties", "true"),
        "properties.true",
    ),
    "a property of its geometry": (
        field("cells.geojson", "features", 0, "geometry", "n"),
        "geometry.n",
    ),
    "beside the features of the map": (field("cells.geojson", "true_total"), "true_total"),
    "in the header of a packed table": (packed("location_slot", with_name), "is not what"),
    "behind a packed table": (
        packed("location_slot", lambda table: b"".join(map(gzip_of, (table, b"")))),
        "is not what",
    ),
    "in the time of a packed table": (
        packed("location_slot", lambda table: gzip.compress(table, mtime=TRUE)),
        "is not what",
    ),
    "in a packed table": (
        packed("location_slot", lambda table: gzip_of(last_twice(table))),
        "is not what",
    ),
    "in a packed table beside the plain one": (
        packed("location_slot", lambda table: gzip_of(last_twice(table)), beside=True),
        "lies beside",
    ),
    "a number of the map": (map_number, "is not that of its table"),
    "the order of the map": (map_by_value, "cells.geojson: its places stand in an order"),
    "on the card": (field("release_card.json", "rows_read"), "rows_read"),
    "in the card's promise": (
        field("release_card.json", "estimates", "promise", "rows"),
        "promise.rows",
    ),
    "in a table of the card's promise": (
        field("release_card.json", "estimates", "promise", "tables", 0, "rows"),
        "tables.rows",
    ),
    "in the card's errors": (
        field("release_card.json", "estimates", "errors", "*", 0, "true"),
        "true",
    ),
    "an error of no table": (
        field("release_card.json", "estimates", "errors", "true"),
        "errors.true",
    ),
    "in the card's correlations": (
        field("release_card.json", "estimates", "correlations", "*", 0, "true"),
        "true",
    ),
    "a library that is none": (field("release_card.json", "libraries", "rows-20123"), "rows-20123"),
    "a library of no card": (field("release_card.json", "libraries", "scipy"), "scipy"),
    "a count that is no table's": (
        field("release_card.json", "guarantee", "counted", "all"),
        "counted.all",
    ),
    "in the terms of a table": (field("release_card.json", "terms", "tables", "*", "rows"), "rows"),
    "in the charges": (field("release_card.json", "charges", 0, "true"), "charges.true"),
    "in the plan": (field("plan.json", "events", 0, "rows"), "events.rows"),
    "in the assessment": (field("assessment.json", "true_total"), "true_total"),
    "in a gate": (field("assessment.json", "gates", 0, "true"), "gates.true"),
    "a risk of nobody": (
        field("assessment.json", "risk_over_weeks", 0, "best_guess", "true"),
        "true",
    ),
    "in the descriptor": (field("datapackage.json", "resources", 0, "rows"), "resources.rows"),
    "in the manifest": (field("manifest.json", "rows"), "field rows"),
    "in Croissant": (field("metadata/croissant.json", "recordSet", 0, "field", 0, "n"), "field.n"),
    "in the context of Croissant": (
        field("metadata/croissant.json", "@context", "n"),
        "@context.n",
    ),
    "in DCAT": (field("metadata/dcat.jsonld", "@graph", 0, "dct:rows"), "dct:rows"),
    "in the statement": (field("statement.intoto.json", "rows"), "field rows"),
    "in the registry's entry": (
        field("metadata/registry_entry.yaml", "deployment", "rows"),
        "deployment.rows",
    ),
    "a comment of the registry's entry": (
        text("metadata/registry_entry.yaml", "tier: 3", "# 20123\ntier: 3"),
        "a comment",
    ),
    "a comment of the report": (text("report.html", "<main", "<!-- 20123 --><main"), "a comment"),
    "metadata of the report": (
        text("report.html", "<title", '<meta name="rows" content="20123"><title'),
        "metadata rows",
    ),
    "an attribute of the report": (
        text("report.html", "<h1", '<h1 data-true="20123"'),
        "data-true",
    ),
    "metadata of a picture in the report": (
        text("report.html", "<defs>", "<metadata>20123</metadata><defs>"),
        "element metadata",
    ),
    "a description of a picture in the assessment": (
        text("assessment.html", "<path", "<desc>20123</desc><path"),
        "element desc",
    ),
    "a comment of the assessment": (
        text("assessment.html", "<h2", "<!-- 20123 --><h2"),
        "a comment",
    ),
    "a comment of the guide": (text("docs/GUIDE.md", "\n", "\n<!-- 20123 -->\n"), "a comment"),
    "a comment of the card to read": (
        text("release_card.md", "\n", "\n<!-- 20123 -->\n"),
        "a comment",
    ),
    "the first table": (first_number, "is no copy of a table"),
    "CSV alone": (
        table("slot", lambda rows: moved(rows, 3.0), both=False),
        "is not what slot.parquet",
    ),
    "an estimate outside of its interval": (
        table("slot", lambda rows: moved(rows, 900.0)),
        "outside of its",
    ),
    "rows by their number": (table("location_slot", by_value), "in an order of their own"),
    "metadata of a column": (table("slot", metadata, both=False), "a column has metadata"),
    "a line of the list of digests": (
        text("SHA256SUMS", "", "20123  true\n"),
        "is no file of the package",
    ),
    "a picture with a text": (file("map.png", png((b"tEXt", b"rows\x0020123"))), "map.png"),
}
PLANTS |= {
    "a comment in a style": (text("report.html", "<style>", "<style>/* 20123 */"), "a comment"),
    "in the end of an element": (text("report.html", "</h1>", '</h1 n="20123">'), "a comment"),
    "an instruction": (text("report.html", "<body", "<?xml version 20123?><body"), "a comment"),
    "a section of characters": (
        text("report.html", "<body", "<![CDATA[20123]]><body"),
        "a comment",
    ),
    "a field that stands twice": (
        text("release_card.json", "{", '{"title": "20123", '),
        "a field twice",
    ),
    "so many spaces": (text("release_card.json", "{", "{" + 23 * " "), "a space"),
    "the order of fields": (
        lambda package: (package / "manifest.json").write_text(
            json.dumps(
                dict(reversed(json.loads((package / "manifest.json").read_text()).items())),
                indent=1,
            )
        ),
        "a field twice or a space",
    ),
    "a comment behind a line": (
        text("metadata/registry_entry.yaml", "tier: 3", "tier: 3 # 20123"),
        "a comment",
    ),
    "a field of YAML that stands twice": (
        text("metadata/registry_entry.yaml", "\ndeployment:", "\ndeployment: 20123\ndeployment:"),
        "a field twice",
    ),
    "a reference of the guide": (
        text("docs/GUIDE.md", "\n", "\n[//]: # (20123)\n"),
        "a comment",
    ),
    "groups of so many rows": (
        lambda package: pq.write_table(
            pq.read_table(package / "data/slot.parquet"),
            package / "data/slot.parquet",
            row_group_size=23,
        ),
        "not written as its rows are",
    ),
    "the order of the list of digests": (
        lambda package: (package / "SHA256SUMS").write_text(
            "".join(reversed((package / "SHA256SUMS").read_text().splitlines(keepends=True)))
        ),
        "files in an order of their own",
    ),
    "the name of a folder": (lambda package: (package / "20123").mkdir(), "a folder of nothing"),
}
NAMED: dict[str, tuple[Plant, str]] = {
    "a label of no row": (
        table("slot", lambda rows: with_word(rows, "20123"), both=False),
        "labels",
    ),
    "the name of an element": (text("report.html", "<h1", '<h1 class="t20123"'), "pictures"),
    "a rule of style": (text("report.html", "<style>", "<style>.t20123{color:red}"), "pictures"),
    "a figure of the card": (
        text("release_card.json", '"burned_draws": 0', '"burned_draws": 20123'),
        "figures",
    ),
    "a word of the guide": (text("docs/GUIDE.md", "\n", "\n20123 rows were read.\n"), "words"),
    "an estimate within its interval": (
        table("location_slot", lambda rows: moved(rows, 0.1)),
        "estimates",
    ),
    "a table that another version packed": (
        packed("location_slot", lambda table: gzip_of(table, 9)),
        "packing",
    ),
    "a table that another library packed": (
        packed("location_slot", lambda table: gzip_of(table, 1)),
        "packing",
    ),
    "a line of a tool": (text("tools/sums.py", '"""', '"""20123 '), "tools"),
}


@pytest.mark.parametrize("name", PLANTS)
def test_a_plant_stops_the_publication(spoiled: Path, name: str) -> None:
    plant, words = PLANTS[name]
    plant(spoiled)
    assert any(words in problem for problem in unknown_contents(spoiled)), unknown_contents(spoiled)


def test_an_honest_package_holds_nothing_unknown(package: Path) -> None:
    assert unknown_contents(package) == ()
    assert len(PLANTS) >= 55


@pytest.mark.parametrize("name", NAMED)
def test_what_cannot_be_compared_is_named_where_it_is_assessed(spoiled: Path, name: str) -> None:
    plant, kind = NAMED[name]
    plant(spoiled)
    problems = [
        problem for problem in unknown_contents(spoiled) if not problem.startswith("SHA256SUMS")
    ]
    assert problems == []
    page = (spoiled / "assessment.html").read_text()
    assert NOT_JUDGED[kind].partition(":")[0] in re.sub(r"&#39;", "'", page)


def test_a_picture_holds_pixels_alone(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png())
    (tmp_path / "b.png").write_bytes(png((b"eXIf", b"20123")))
    (tmp_path / "c.png").write_bytes(png() + b"20123")
    (tmp_path / "plan.json").write_text("{}")
    (tmp_path / "release_card.json").write_text(json.dumps({"data": []}))
    problems = list(unknown_inside(tmp_path))
    assert [problem.partition(":")[0] for problem in problems] == ["b.png", "c.png"]
    assert Tables(tmp_path).layouts == {}
    assert np.isfinite(TRUE)
