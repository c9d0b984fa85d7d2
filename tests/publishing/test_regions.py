"""Sums by region: every place in one region, sums and errors as added up by hand."""

from __future__ import annotations

import csv
import json
import shutil
import sqlite3
import struct
from collections import defaultdict
from contextlib import closing
from pathlib import Path

import h3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shapely import from_wkt, to_geojson, to_wkb

from turnstile.cli import main

Sums = dict[tuple[str, ...], dict[str, str]]


def _regions(package: Path, out: Path, *options: str) -> Sums:
    assert main(["package", "regions", str(package), *options, "--out", str(out)]) == 0
    with out.open() as stream:
        rows = list(csv.DictReader(stream))
    return {(row["region"], row.get("mode", "")): row for row in rows}


def _table(package: Path, name: str) -> list[dict[str, str]]:
    with (package / f"data/{name}.csv").open() as stream:
        return [row for row in csv.DictReader(stream) if row.get("tap", "on") == "on"]


def _points(package: Path) -> dict[tuple[str, str], list[float]]:
    features = json.loads((package / "cells.geojson").read_bytes())["features"]
    return {
        (feature["properties"]["mode"], feature["properties"]["location"]): feature["geometry"][
            "coordinates"
        ]
        for feature in features
    }


@pytest.fixture
def opal(published: Path) -> Path:
    return next(published.glob("opal/*/r0"))


def test_sums_of_h3_cells_are_those_of_their_stops(opal: Path, tmp_path: Path) -> None:
    regions = _regions(
        opal,
        tmp_path / "out.csv",
        "--table",
        "location",
        "--h3",
        "6",
        "--by",
        "mode",
    )
    points = _points(opal)
    values: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for row in _table(opal, "location"):
        place = points.get((row["mode"], row["location"]))
        region = "OUTSIDE" if place is None else h3.latlng_to_cell(place[1], place[0], 6)
        values[region, row["mode"]].append(int(row["measured"]))
    card = json.loads((opal / "release_card.json").read_bytes())
    (sd,) = {d["standard_deviation"] for d in card["draws"] if d["table"] == "on_location"}
    assert regions.keys() == values.keys()
    for key, counts in values.items():
        assert float(regions[key]["value"]) == sum(counts)
        assert float(regions[key]["standard_deviation"]) == pytest.approx(sd * len(counts) ** 0.5)


def test_polygons_name_regions_and_share_no_stop(opal: Path, tmp_path: Path) -> None:
    west, east, middle = 140.0, 160.0, 151.0
    names = {"East": (middle, east), "West": (west, middle), "Away": (0.0, 1.0)}
    features = [
        {
            "type": "Feature",
            "properties": {"SA4": name},
            "geometry": {
                "type": "Polygon",
                "coordinates": [[[a, -40], [b, -40], [b, -20], [a, -20], [a, -40]]],
            },
        }
        for name, (a, b) in names.items()
    ]
    areas = tmp_path / "areas.geojson"
    areas.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    options = [
        *("--table", "location", "--column", "unbiased"),
        *("--boundaries", str(areas), "--name", "SA4"),
    ]
    regions = _regions(opal, tmp_path / "out.csv", *options)
    assert {region for region, _ in regions} <= {"East", "West", "OUTSIDE"}
    assert len(regions) > 1
    cells = sum(int(row["cells"]) for row in regions.values())
    assert cells == len(_table(opal, "location"))
    assert all(
        float(row["low_95"]) < float(row["value"]) < float(row["high_95"])
        for row in regions.values()
    )
    assert main(["package", "regions", str(opal), *options[:-1], "SA2"]) == 2


_EAST = "POLYGON ((151 -40, 160 -40, 160 -20, 151 -20, 151 -40))"
_WEST = "POLYGON ((140 -40, 151 -40, 151 -20, 140 -20, 140 -40))"
# As the ABS publishes them: codes and names by edition, areas without a shape among the others.
_AREAS = {
    "11701": ("Sydney Inner City", _EAST),
    "12504": ("Parramatta", _WEST),
    "19799": ("No usual address", None),
}


def _geojson(file: Path) -> None:
    """Write areas as the ABS's services give them."""
    features = [
        {
            "type": "Feature",
            "properties": {"SA2_CODE21": code, "SA2_NAME21": name},
            "geometry": None if text is None else json.loads(to_geojson(from_wkt(text))),
        }
        for code, (name, text) in _AREAS.items()
    ]
    file.write_text(json.dumps({"type": "FeatureCollection", "features": features}))


def _geopackage(file: Path) -> None:
    """Write areas as the ABS's download has them: several layers, an envelope before each shape."""
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("CREATE TABLE gpkg_geometry_columns (table_name, column_name, srs_id)")
        for layer in ("SA1_2021_AUST_GDA2020", "SA2_2021_AUST_GDA2020"):
            db.execute("INSERT INTO gpkg_geometry_columns VALUES (?, 'geom', 7844)", [layer])
            db.execute(f"CREATE TABLE {layer} (fid, SA2_CODE21, SA2_NAME21, geom)")
        for code, (name, text) in _AREAS.items():
            blob = None
            if text is not None:
                west, south, east, north = (shape := from_wkt(text)).bounds
                head = struct.pack("<2sBBi4d", b"GP", 0, 3, 7844, west, east, south, north)
                blob = head + to_wkb(shape)
            row = (1, code, name, blob)
            db.execute("INSERT INTO SA2_2021_AUST_GDA2020 VALUES (?, ?, ?, ?)", row)


@pytest.mark.parametrize("name", ["areas.geojson", "areas.gpkg"])
def test_boundaries_as_a_statistical_office_publishes_them(
    opal: Path, tmp_path: Path, name: str
) -> None:
    areas = tmp_path / name
    (_geopackage if name.endswith("gpkg") else _geojson)(areas)
    layer = ["--layer", "SA2_2021_AUST_GDA2020"] if name.endswith("gpkg") else []
    table = ["--table", "location", "--boundaries", str(areas)]
    regions = _regions(opal, tmp_path / "out.csv", *table, *layer, "--name", "SA2_CODE21")
    assert {"11701", "12504"} <= {region for region, _ in regions} <= {"11701", "12504", "OUTSIDE"}
    points = _points(opal)
    east = [
        int(row["measured"])
        for row in _table(opal, "location")
        if points.get((row["mode"], row["location"]), [0])[0] > 151
    ]
    assert int(regions["11701", ""]["cells"]) == len(east)
    assert float(regions["11701", ""]["value"]) == sum(east)
    command = ["package", "regions", str(opal), *table]
    assert main([*command, *layer, "--name", "SA2_CODE16"]) == 2
    if layer:
        assert main([*command, "--name", "SA2_CODE21"]) == 2  # two layers
        areas.write_bytes(b"no database")
        assert main([*command, *layer, "--name", "SA2_CODE21"]) == 2
    else:
        areas.write_text(areas.read_text().replace("151", "334000"))
        assert main([*command, "--name", "SA2_CODE21"]) == 2  # a projection, in metres


def test_hexagons_of_buses_roll_up_by_their_centre(published: Path, tmp_path: Path) -> None:
    itms = next(published.glob("itms/*/r0"))
    options = ["--table", "speed_buses", "--h3", "5"]
    regions = _regions(itms, tmp_path / "out.csv", *options)
    values: defaultdict[tuple[str, str], int] = defaultdict(int)
    for row in _table(itms, "speed_buses"):
        values[h3.cell_to_parent(row["cell"], 5), ""] += int(row["measured"])
    assert {key: float(row["value"]) for key, row in regions.items()} == values
    assert main(["package", "regions", str(itms), *options[:-1], "8"]) == 2  # finer than published


def test_regions_by_mode_of_a_package_of_one_mode_are_those_of_that_mode(
    opal: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its tables have no column of modes, and the command of the docs was refused."""
    alone = tmp_path / "r0"
    shutil.copytree(opal, alone)
    card = json.loads((alone / "release_card.json").read_bytes())
    card["terms"]["modes"] = ["train"]
    (alone / "release_card.json").write_text(json.dumps(card))
    rows = pq.read_table(alone / "data/location.parquet").to_pandas()
    rows = rows[rows["mode"] == "train"].drop(columns="mode")
    pq.write_table(pa.Table.from_pandas(rows), alone / "data/location.parquet")
    rows.to_csv(alone / "data/location.csv", index=False)
    options = ["--table", "location", "--h3", "6"]
    by_mode = _regions(alone, tmp_path / "by.csv", *options, "--by", "mode", "--by", "service_date")
    assert by_mode == _regions(alone, tmp_path / "of.csv", *options, "--by", "service_date")
    assert main(["package", "regions", str(alone), *options, "--by", "slot"]) == 2
    assert "and slot; name another table" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options",
    [
        ["--table", "slot", "--h3", "6"],
        ["--table", "absent", "--h3", "6"],
        ["--table", "location", "--h3", "16"],
        ["--table", "location", "--h3", "6", "--by", "weather"],
        ["--table", "location", "--boundaries", "absent.geojson"],
    ],
)
def test_what_cannot_be_rolled_up_is_refused(opal: Path, options: list[str]) -> None:
    assert main(["package", "regions", str(opal), *options]) == 2
