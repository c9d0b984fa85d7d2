"""`datapackage.json`: the Data Package v2 descriptor of a package's files.

A table is described once, by its CSV file; the Parquet file of the same rows stands beside it with
its digest and no `bytes`: frictionless counts bytes of text only. Sizes of all files stand in the
manifest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from turnstile.programme.field import Field
from turnstile.programme.field_registry import field_of, title_of
from turnstile.publishing.contents import Contents, TableFile
from turnstile.publishing.data_tables import NUMBERS, VALUE
from turnstile.publishing.describe.licences import path_of
from turnstile.publishing.week.gtfs_ride import ride_files
from turnstile.publishing.week.tides_shapes import column_of_shape, shapes_of
from turnstile.publishing.written_text import json_bytes

PARQUET = "application/vnd.apache.parquet"


def write(contents: Contents) -> bytes:
    """Return the descriptor."""
    return json_bytes(datapackage(contents))


def datapackage(contents: Contents) -> dict[str, Any]:
    """Return the descriptor of the tables and shapes that are written."""
    programme, plan = contents.drawn.programme, contents.drawn.plan
    licence = {"name": programme.publish.licence}
    if path := path_of(programme.publish.licence):
        licence["path"] = path
    return {
        "$schema": "https://datapackage.org/profiles/2.0/datapackage.json",
        "name": contents.name,
        "title": f"{programme.title}, {plan.week}",
        "description": programme.description,
        "version": f"{plan.week}.r{plan.revision}",
        "created": f"{contents.built_at.date()}T00:00:00Z",  # to the day
        "licenses": [licence],
        "contributors": [{"title": programme.publish.curator, "roles": ["curator"]}],
        "sources": [{"title": f"Records of {programme.publish.curator}, not published"}],
        "privacy": {"guarantee": contents.card["guarantee"]["units"], "card": "release_card.json"},
        "resources": [
            *(resource for table in contents.tables for resource in _resources(contents, table)),
            *_shapes(contents),
            *_tides(contents),
        ],
    }


def _resources(contents: Contents, table: TableFile) -> Iterator[dict[str, Any]]:
    """Describe the two files of a table."""
    name = f"data-{table.name}".replace("_", "-")
    layout, csv, parquet = (table.layout, *map(contents.record, (table.csv, table.parquet)))
    description = f"{layout.what[:1].upper()}{layout.what[1:]}, {layout.unit}."
    yield {
        "name": f"{name}-csv",
        "type": "table",
        "path": csv.path,
        "format": "csv",
        "mediatype": "text/csv",
        "encoding": "utf-8",
        "description": description,
        "hash": f"sha256:{csv.sha256}",
        "bytes": csv.size_bytes,
        "schema": _schema(contents, table),
    }
    yield {
        "name": f"{name}-parquet",
        "type": "file",
        "path": parquet.path,
        "format": "parquet",
        "mediatype": PARQUET,
        "description": f"{description} The same rows.",
        "hash": f"sha256:{parquet.sha256}",
    }


def _schema(contents: Contents, table: TableFile) -> dict[str, Any]:
    """Describe the columns of a table; its labels are a key, but of rows that stand for records."""
    fields = {"fields": [_field(contents, table, *column) for column in table.columns]}
    has_key = table.labels and VALUE in dict(table.columns)
    return fields | ({"primaryKey": table.labels} if has_key else {})


def _field(contents: Contents, table: TableFile, name: str, kind: str) -> dict[str, str]:
    """Describe one column, from the field registry, in the units of its table."""
    entry = field_of(name)
    about = {"name": name, "type": kind, "title": title_of(name)}
    if entry is None:
        return about
    if name in NUMBERS and entry.unit:
        about["unit"] = table.layout.unit_of(name)
    return _described(entry) | about | {"description": contents.about(name)}


def _described(field: Field) -> dict[str, str]:
    """Describe one column that is as the registry has it."""
    about = {"name": field.name, "type": str(field.type), "title": field.title}
    return about | {"description": field.description} | ({"unit": field.unit} if field.unit else {})


def _tides(contents: Contents) -> Iterator[dict[str, Any]]:
    """Describe the files in the shapes of TIDES and GTFS-ride, where there are any."""
    programme = contents.drawn.programme
    for path, columns in (shapes_of(programme) | ride_files(programme)).items():
        record = contents.record(path)
        yield {
            "name": path.rpartition(".")[0].replace("/", "-").replace("_", "-"),
            "type": "table",
            "path": path,
            "format": "csv",
            "mediatype": "text/csv",
            "description": "In the shape of TIDES 1.0 or GTFS-ride, or errors beside it.",
            "hash": f"sha256:{record.sha256}",
            "bytes": record.size_bytes,
            "encoding": "utf-8",
            "schema": {"fields": [_described(column_of_shape(name)) for name in columns]},
        }


def _shapes(contents: Contents) -> Iterator[dict[str, Any]]:
    """Describe the shapes of the cells, where there are any."""
    if contents.features:
        record = contents.record("cells.geojson")
        yield {
            "name": "cells-geojson",
            "path": record.path,
            "format": "geojson",
            "mediatype": "application/geo+json",
            "description": "Shapes of the published cells or locations.",
            "bytes": record.size_bytes,
            "hash": f"sha256:{record.sha256}",
        }
