"""Polygons of a public boundary file: GeoJSON, or a layer of a GeoPackage.

National statistical offices publish GeoPackages (the ABS: all of its areas, `SA2_2021_AUST_GDA2020`
with `SA2_CODE21` and `SA2_NAME21`, `POA_CODE21`, `LGA_CODE24`, ...), their services GeoJSON. Both
hold features without a shape ("No usual address", "Migratory"), which no position lies in. A
GeoPackage is an SQLite file whose shapes are WKB behind a short header (OGC 12-128r19, 2.1.3).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from turnstile.errors import InputError

if TYPE_CHECKING:
    from shapely.geometry.base import BaseGeometry

GEOPACKAGE = ".gpkg"
_HEADER = 8
_ENVELOPE_BYTES = (0, 32, 48, 48, 64)
_EMPTY, _MAGIC = 0x10, b"GP"
_WORLD = (-180.0, -90.0, 180.0, 90.0)


def polygons_of(file: Path, name: str, layer: str = "") -> list[tuple[str, BaseGeometry]]:
    """Return the name and the shape of each polygon, by name.

    Args:
        file: GeoJSON, or a GeoPackage (`.gpkg`); longitude and latitude in degrees.
        name: property or column that names each.
        layer: of a GeoPackage; the only one by default.

    Raises:
        InputError: the file cannot be read, has no such layer or property, or is in metres.
    """
    is_package = file.suffix.lower() == GEOPACKAGE
    read = _of_geopackage(file, name, layer) if is_package else _of_geojson(file, name)
    try:
        named = sorted(_with_shapes(read), key=lambda pair: pair[0])
    except (OSError, ValueError, LookupError, TypeError, AttributeError, sqlite3.Error):
        kind = "GeoPackage" if is_package else "GeoJSON"
        rule = f"is no {kind} of polygons that each have a property {name}; give another file"
        raise InputError(where=str(file), field="--boundaries", rule=rule) from None
    west, south, east, north = _WORLD
    for bounds in (shape.bounds for _, shape in named):
        if bounds[0] < west or bounds[1] < south or bounds[2] > east or bounds[3] > north:
            rule = "is not in degrees; give longitude and latitude (GDA2020, GDA94 or WGS 84)"
            raise InputError(where=str(file), field="--boundaries", rule=rule)
    return named


def _with_shapes(
    read: Iterable[tuple[str, BaseGeometry | None]],
) -> Iterator[tuple[str, BaseGeometry]]:
    """Yield those that have a shape."""
    for name, shape in read:
        if shape is not None and not shape.is_empty:
            yield name, shape


def _of_geojson(file: Path, name: str) -> Iterator[tuple[str, BaseGeometry | None]]:
    """Yield the features of a GeoJSON file."""
    from shapely.geometry import shape

    for feature in json.loads(file.read_bytes())["features"]:
        geometry = feature["geometry"]
        yield str(feature["properties"][name]), None if geometry is None else shape(geometry)


def _of_geopackage(file: Path, name: str, layer: str) -> Iterator[tuple[str, BaseGeometry | None]]:
    """Yield the rows of a layer of a GeoPackage."""
    import shapely

    file.stat()  # SQLite would say no more than that it cannot open it
    with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as db:
        known = dict(db.execute("SELECT table_name, column_name FROM gpkg_geometry_columns"))
        chosen = layer or (next(iter(known)) if len(known) == 1 else "")
        if chosen not in known:
            rule = f"is one of {', '.join(sorted(known))}"
            raise InputError(where=str(file), field="--layer", rule=rule)
        columns = {row[1] for row in db.execute(f"PRAGMA table_info({_quoted(chosen)})")}
        if name not in columns:
            raise KeyError(name)
        query = f"SELECT {_quoted(name)}, {_quoted(known[chosen])} FROM {_quoted(chosen)}"  # noqa: S608 - names of the file itself, quoted
        for label, blob in db.execute(query):
            wkb = _wkb(blob)
            yield str(label), None if wkb is None else shapely.from_wkb(wkb)


def _quoted(name: str) -> str:
    """Return a name as SQL has it."""
    return '"{}"'.format(name.replace('"', '""'))


def _wkb(blob: bytes | None) -> bytes | None:
    """Return a shape without the header of a GeoPackage; None where there is none.

    Raises:
        ValueError: it has another header.
    """
    if blob is None:
        return None
    if blob[:2] != _MAGIC or (blob[3] >> 1) & 7 >= len(_ENVELOPE_BYTES):
        raise ValueError("no shape of a GeoPackage")
    return None if blob[3] & _EMPTY else blob[_HEADER + _ENVELOPE_BYTES[(blob[3] >> 1) & 7] :]
