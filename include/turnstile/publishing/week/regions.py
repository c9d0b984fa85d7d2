"""Sums of a package's numbers by region: H3 cells, or polygons of a public boundary file.

A place belongs to the region that its published point lies in; a hexagon to its H3 parent, and to
the polygon that its centre lies in. Sums are those of the package's own `sums.py`, so their errors
are exact for measurements and for reconciled numbers, whatever cells a region is made of.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from math import isnan
from pathlib import Path

from turnstile.errors import InputError
from turnstile.programme.domain.csv_text import csv_text
from turnstile.publishing.carried.sums import TAP, Row, Sum
from turnstile.publishing.data_tables import MODE
from turnstile.publishing.package_reader import Tables
from turnstile.publishing.week.boundaries import polygons_of
from turnstile.publishing.week.geography import Place, keys_of_rows
from turnstile.publishing.week.sums import Sums

OUTSIDE = "OUTSIDE"
RegionOf = Callable[[str, float, float], str]
"""Label of a place, longitude and latitude in degrees to the name of a region."""


def h3_regions(resolution: int) -> RegionOf:
    """Return the H3 cell of a position, or the parent of a published cell.

    Raises:
        InputError: no such resolution.
    """
    import h3

    if not 0 <= resolution <= 15:  # noqa: PLR2004 - of H3
        raise InputError(where="--h3", field="resolution", rule="is 0 to 15")

    def region_of(label: str, longitude: float, latitude: float) -> str:
        if not h3.is_valid_cell(label):
            return str(h3.latlng_to_cell(latitude, longitude, resolution))
        cell_resolution = h3.get_resolution(label)
        if cell_resolution < resolution:
            rule = (
                f"the published cells are of resolution {cell_resolution}; take it or a coarser one"
            )
            raise InputError(where="--h3", field="resolution", rule=rule)
        return str(h3.cell_to_parent(label, resolution))

    return region_of


def polygon_regions(boundaries: Path, name: str, layer: str = "") -> RegionOf:
    """Return the polygon that a position lies in or on; the first by name where several meet.

    Args:
        boundaries: polygons, in longitude and latitude (`boundaries.polygons_of`).
        name: property that names each.
        layer: of a GeoPackage.

    Raises:
        InputError: the file cannot be read, or a polygon has no such property.
    """
    from shapely import STRtree
    from shapely.geometry import Point

    named = polygons_of(boundaries, name, layer)
    tree = STRtree([polygon for _, polygon in named])

    def region_of(_: str, longitude: float, latitude: float) -> str:
        indices = tree.query(Point(longitude, latitude), predicate="covered_by")
        return named[min(indices)][0] if len(indices) else OUTSIDE

    return region_of


def sums_by_region(  # noqa: PLR0913 - what a sum is of
    folder: Path,
    table: str,
    region_of: RegionOf,
    by: Sequence[str] = (),
    *,
    column: str = "measured",
    tap: str = "on",
) -> list[tuple[tuple[str, ...], Sum]]:
    """Return the sum of each region, and of each value of further columns.

    Args:
        folder: package.
        table: name of a table with one column of places.
        region_of: names the region of a position.
        by: further columns of labels, `tap`, `mode` or `service_date` (`without_one_mode`).
        column: `measured`, or another that `sums.py` adds up.
        tap: end of the trip that is counted, of a table that has both, unless asked `by` it.

    Raises:
        InputError: the package has no shapes, or the table no such column.
    """
    package = Sums(folder)
    rows = package.rows(table)
    columns, by = rows[0].keys() if rows else (), without_one_mode(folder, by)
    if TAP in columns and TAP not in by:
        rows = [row for row in rows if row[TAP] == tap]
    places = [name for name in columns if name in ("location", "cell")]
    if len(places) != 1 or not set(by) <= set(columns):
        rule = f"needs one column of places and {', '.join(by) or 'no other'}; name another table"
        raise InputError(where=table, field="--table", rule=rule)
    regions = _regions(folder, region_of)
    chosen: defaultdict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        region = regions.get(_place(row, places[0]), OUTSIDE)
        chosen[region, *(row[name] for name in by)].append(row)
    try:
        package.require(table, column)
        return [
            (labels, package.total_of(table, group, column))
            for labels, group in sorted(chosen.items())
        ]
    except ValueError as error:
        raise InputError(where=str(folder), field="--table", rule=str(error)) from None


def without_one_mode(folder: Path, by: Sequence[str]) -> list[str]:
    """Leave out the mode where a package has one alone: no table of it names that."""
    modes = Tables(folder).card.get("terms", {}).get("modes", ())
    return [name for name in by if name != MODE or len(modes) != 1]


def sums_csv(sums: Sequence[tuple[tuple[str, ...], Sum]], by: Sequence[str]) -> bytes:
    """Return sums as CSV: labels, cells, value, deviation, intervals; empty where there is none."""
    rows = []
    for labels, total in sums:
        numbers = ("" if isnan(value) else round(value, 4) for value in total[1:-1])
        rows.append((*labels, total.cells, *numbers, total.no_interval))
    return csv_text(("region", *by, *Sum._fields), rows).encode()


def _regions(folder: Path, region_of: RegionOf) -> Mapping[Place, str]:
    """Return the region of each place, as rows name it."""
    path = folder / "cells.geojson"
    if not path.is_file():
        rule = "has no cells.geojson: its public places have no coordinates"
        raise InputError(where=str(folder), field="package", rule=rule)
    regions: dict[Place, str] = {}
    for feature in json.loads(path.read_bytes())["features"]:
        properties, shape = feature["properties"], feature["geometry"]
        label = properties.get("location") or properties["cell"]
        corners = (
            [shape["coordinates"]] if shape["type"] == "Point" else shape["coordinates"][0][1:]
        )
        longitude, latitude = (sum(axis) / len(corners) for axis in zip(*corners, strict=True))
        keys = keys_of_rows(properties.get("mode", ""), label)
        regions |= dict.fromkeys(keys, region_of(label, longitude, latitude))
    return regions


def _place(row: Row, column: str) -> Place:
    """Return mode and label of a row's place."""
    return ("" if column == "cell" else row.get("mode", ""), row[column])
