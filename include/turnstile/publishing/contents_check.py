"""Finds in a package what the allow-list (`allowed_contents`) has no source for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import yaml

from turnstile.estimates.table_names import SUFFIXES
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.field import PUBLIC_ROLES, Role
from turnstile.programme.field_registry import field_of
from turnstile.publishing.allowed_contents import (
    ANYTHING,
    EXPLORER,
    FILES_OF_VERSION_1,
    JSON_FILES,
    LIBRARIES,
    METADATA,
    NAME,
    OTHER_FILES,
    SERIES,
    SERIES_PACKAGES,
    TABLE_FOLDERS,
    TOMBSTONE,
    UNIT,
)
from turnstile.publishing.data_tables import Layout, labels_of
from turnstile.publishing.inner_contents import unknown_inside
from turnstile.publishing.package_reader import DATA, Tables
from turnstile.publishing.week.gtfs_ride import RIDE_COLUMNS
from turnstile.publishing.week.tides_shapes import ACTIVITY_COLUMNS
from turnstile.publishing.week.tides_visits import VISIT_COLUMNS
from turnstile.publishing.written_text import json_bytes, yaml_bytes

_COLUMNS_OF_DRAWS = ("tap", "limit_kmh")
_LONGEST_NAME = 100
_UNLISTED_IN_VERSION_1 = frozenset(
    {
        "cells.geojson",
        "croissant.json",
        "dcat.jsonld",
        "statement.intoto.json",
        "registry_entry.yaml",
    }
)  # whose fields nobody listed then
_FREE_IN_VERSION_1 = ("estimates.promise.", "estimates.errors.", "estimates.correlations.")
_SHAPES = ACTIVITY_COLUMNS | VISIT_COLUMNS | RIDE_COLUMNS


def unknown_contents(folder: Path) -> tuple[str, ...]:
    """Name every file, column and field of a package that has no source here; sorted.

    Args:
        folder: of the package; `plan.json` says which tables were planned.
    """
    try:
        events = json.loads((folder / "plan.json").read_bytes())["events"]
        planned = {(event["table"], event["statistic"]) for event in events}
        tables = Tables(folder)
        data = tables.layouts if tables.version > 1 else {}
    except (OSError, ValueError, KeyError, TypeError):
        return ("plan.json is missing or cannot be read, so nothing says what was planned",)
    unknown: list[str] = []
    declared = _declared(planned, folder) if tables.version > 1 else None
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not path.is_dir():
            is_data = name.startswith(f"{DATA}/")
            problems = _of_data(path, name, data, planned) if is_data else None
            unknown += _of_file(path, name, planned, declared) if problems is None else problems
        elif not any(path.iterdir()):
            unknown.append(f"{name}: a folder of nothing")
    return tuple(unknown) or (tuple(unknown_inside(folder)) if tables.version > 1 else ())


def _declared(planned: set[tuple[str, str]], folder: Path) -> frozenset[str]:
    """Return the names that a field may have where any declared name may stand."""
    tables = {f"{table}{suffix}" for table, _ in planned for suffix in SUFFIXES}
    labels = {f"{table}/{statistic}" for table, statistic in planned}
    statistics = {statistic for _, statistic in planned}
    for path in (folder / DATA).glob("*.parquet"):
        with suppress(pa.ArrowInvalid, OSError):
            labels |= set(labels_of(pq.read_schema(path).names))
    with suppress(OSError, ValueError, KeyError, TypeError):  # who is meant, in the words of risks
        risks = json.loads((folder / "assessment.json").read_bytes())["risk_by_unit"]
        labels |= {str(risk["who"]) for risk in risks if len(str(risk["who"])) < _LONGEST_NAME}
    return frozenset({*tables, *labels, *statistics, *LIBRARIES, *_COLUMNS_OF_DRAWS})


def unknown_in_series(
    index: Mapping[str, Any], tombstones: Iterable[Mapping[str, Any]], packages: Mapping[str, Any]
) -> tuple[str, ...]:
    """Name every field and column without a source: in index, tombstones, packages of a series."""
    unknown = [*_unknown(index, SERIES), *_unknown(packages, SERIES_PACKAGES)]
    for tombstone in tombstones:
        unknown += _unknown(tombstone, TOMBSTONE)
    for table in index["tables"]:
        columns = (column["name"] for version in table["versions"] for column in version["columns"])
        for name in columns:
            known = field_of(name)
            if known is None or known.role not in PUBLIC_ROLES:
                unknown.append(f"{table['name']}: column {name}")
    return tuple(unknown)


def unknown_in_explorer(index: Mapping[str, Any]) -> tuple[str, ...]:
    """Name every field of the explorer's index without a source."""
    return tuple(_unknown(index, EXPLORER))


def _of_file(
    path: Path, name: str, planned: set[tuple[str, str]], declared: frozenset[str] | None
) -> list[str]:
    """Name what is unknown in one file."""
    if path.is_symlink():
        return [f"{name}: is a link, not a file of the package"]
    is_json = name in JSON_FILES and not (declared is None and name in _UNLISTED_IN_VERSION_1)
    if is_json or name in _SHAPES:
        problems = _of_json(path, JSON_FILES[name], declared) if is_json else _of_shape(path, name)
        return [f"{name}: {problem}" for problem in problems]
    if name in OTHER_FILES or name in _written() or name in FILES_OF_VERSION_1:
        return []
    part, _, rest = name.partition("/")
    if part not in TABLE_FOLDERS or path.suffix not in (".csv", ".parquet") or "/" in rest:
        return [f"{name}: no file of a package"]
    suffixes = SUFFIXES if part != "measurements" else ("",)
    if not any(path.stem == table + suffix for table, _ in planned for suffix in suffixes):
        return [f"{name}: no table of the plan, nor a roll-up of one"]
    return [f"{name}: {problem}" for problem in _of_table(path, part, planned)]


def _of_data(
    path: Path, name: str, data: Mapping[str, Layout], planned: set[tuple[str, str]]
) -> list[str]:
    """Name what is unknown in a table of version 2, which the card says the sources of."""
    if path.is_symlink():
        return [f"{name}: is a link, not a file of the package"]
    stem, _, suffix = path.name.partition(".")
    if suffix not in ("csv", "csv.gz", "parquet") or path.parent.name != DATA or stem not in data:
        return [f"{name}: no table that the release card describes"]
    sources = data[stem].sources
    made = {table + suffix for table, _ in planned for suffix in SUFFIXES}
    named = {
        name for source in sources for name in (source.estimates, source.unbiased) if name
    } or {stem}
    drawn = {(source.table, source.statistic) for source in sources if source.table}
    if not (drawn <= planned and (named <= made or drawn)):
        return [f"{name}: no table of the plan, nor a roll-up of one"]
    return [f"{name}: {problem}" for problem in _of_table(path, DATA, planned)]


@cache
def _written() -> frozenset[str]:
    """Name the files of the registry; their writers are loaded for a package alone."""
    from turnstile.publishing.files import FILES

    return frozenset(file.path for file in FILES)


def _of_json(
    path: Path, allowed: Mapping[str, object], declared: frozenset[str] | None
) -> Iterator[str]:
    """Name what is unknown in the fields of a file of JSON or YAML."""
    try:
        text = path.read_text(encoding="utf-8")
        content = yaml.safe_load(text) if path.suffix == ".yaml" else json.loads(text)
    except (ValueError, yaml.YAMLError):
        yield "cannot be read"
        return
    if declared is not None and not _is_plain(content, text, path):
        yield "a comment, a field twice or a space, which no writer of its fields leaves"
    for field in _unknown(content, allowed, declared=declared):
        if declared is None and field.startswith(_FREE_IN_VERSION_1):
            continue
        yield f"field {field} has no source"


def _is_plain(content: Mapping[str, Any], text: str, path: Path) -> bool:
    """Tell whether a text is its fields alone, in the form in which packages hold them."""
    if path.suffix == ".yaml":
        return text.encode() == yaml_bytes(content)
    indented = json_bytes(content, is_sorted=path.stem != "assessment").decode()
    compact = json.dumps(content, separators=(",", ":"))
    return text.removesuffix("\n") in (indented.removesuffix("\n"), compact)


def _of_shape(path: Path, name: str) -> Iterator[str]:
    """Name what is unknown in the columns of a file in the shape of TIDES or GTFS-ride."""
    try:
        names = _schema(path).names
    except (pa.ArrowInvalid, OSError):
        yield "cannot be read"
        return
    for column in set(names) ^ set(_SHAPES[name]):
        yield f"column {column} is missing, or has no source"


def _of_table(path: Path, part: str, planned: set[tuple[str, str]]) -> Iterator[str]:
    """Name what is unknown in the columns of one table."""
    try:
        schema = _schema(path)
    except (pa.ArrowInvalid, OSError):
        yield "cannot be read"
        return
    yield from unknown_columns(schema, path.stem, part, planned)


def unknown_columns(
    schema: pa.Schema, name: str, part: str, planned: set[tuple[str, str]]
) -> Iterator[str]:
    """Name what is unknown in the columns of one table.

    Args:
        schema: its columns.
        name: of the table.
        part: folder that it stands in.
        planned: (table, statistic) of every draw.
    """
    statistics = {statistic for table, statistic in planned if table == name}
    for column in schema:
        known = field_of(column.name)
        if known is None or known.role not in TABLE_FOLDERS[part]:
            yield f"column {column.name} has no source"
        elif part in ("measurements", DATA) and known.role is Role.MEASUREMENT:
            if part != DATA and column.name not in statistics:
                yield f"column {column.name} was not drawn"
            elif column.type != pa.int64():
                yield f"column {column.name} holds no 64-bit integers"
    for key in sorted(set(schema.metadata or {}) - METADATA):
        yield f"metadata {key.decode(errors='replace')} has no source"
    if len(set(schema.names)) < len(schema.names):
        yield "a column stands twice"


def _schema(path: Path) -> pa.Schema:
    """Read the columns of a table."""
    if path.suffix == ".parquet":
        return pq.read_schema(path)
    with pcsv.open_csv(path) as reader:  # packed or not, by its name
        return reader.schema


def _unknown(
    content: object, allowed: object, path: str = "", *, declared: frozenset[str] | None = None
) -> Iterator[str]:
    """Yield the fields of plain values that an allow-list has no entry for.

    Args:
        content: plain values.
        allowed: what may stand there.
        path: of the content.
        declared: names that a field of any name may have; None for any.
    """
    if isinstance(content, list):
        for element in content:
            yield from _unknown(element, allowed, path, declared=declared)
    elif isinstance(content, dict):
        if not isinstance(allowed, Mapping):
            yield path
            return
        if ANYTHING in allowed:
            return
        for key, value in content.items():
            entry = allowed.get(key)
            if entry is None and key in set(ProtectionUnit):
                entry = allowed.get(UNIT)
            if entry is None and (declared is None or key in declared):
                entry = allowed.get(NAME)
            here = f"{path}.{key}" if path else key
            if entry is None:
                yield here
            else:
                yield from _unknown(value, entry, here, declared=declared)
