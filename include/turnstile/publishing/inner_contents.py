"""What stands inside the files of a package beside fields and columns, and what cannot be judged.

Copies are made again from the tables and compared: CSV from Parquet, the first table, the numbers
of the map, the list of digests. Pages hold the elements and attributes that templates write, and no
comment; pictures hold shapes alone; rows stand in one order, which no number decides.
"""

from __future__ import annotations

import json
import re
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from turnstile.estimates.labelled import csv_bytes, parquet_bytes
from turnstile.publishing.allowed_contents import PAGES
from turnstile.publishing.data_tables import labels_of
from turnstile.publishing.package_reader import DATA, Tables, csv_of
from turnstile.publishing.week.geography import Place, keys_of_rows

START, MAP, SUMS = "START_HERE.csv", "cells.geojson", "SHA256SUMS"
_PAGES, _TEXTS = (".html", ".svg"), (".md",)
NOT_JUDGED: Mapping[str, str] = {
    "words": "texts, titles and descriptions: what they say is read by people",
    "labels": "labels in the dictionaries of Parquet that no row has, as of public cells left out",
    "pictures": "shapes, styles and names of elements that pages have: not measured again",
    "figures": "figures, versions and outlines in declared fields: not worked out again here",
    "estimates": (
        "an estimate that was moved within its interval, alike in every copy: the tools of the "
        "package work out intervals, not the model again"
    ),
    "order": "an order of rows that is alike in all tables and in the map",
    "packing": "how a large table is packed: what comes out of it is compared",
    "tools": "programs in tools/, which are those of the version that made the package",
    "explorer": "the pages beside the packages, but for the fields of their index",
}
"""What a reader of a package alone cannot compare with anything: named where it is assessed."""
_METAS = frozenset({"viewport", "color-scheme", None})
_CHUNKS = frozenset(
    {b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND", b"pHYs", b"sRGB", b"gAMA", b"sBIT"}
)
_COMMENT = re.compile(r"(?im)<!(?!doctype html>)|<\?|</\w+[^\w>]|/\*|^\[[^\]]*\]:")
_Order = defaultdict[tuple[str, object], dict[object, set[object]]]
"""Of each column and mode: which labels came just before each label."""
_OF_PLACES = frozenset({"service_date", "mode", "tap", "location"})
_GZIP_HEADER = re.compile(rb"\x1f\x8b\x08\0{5}[\0\x02\x04][\x03\x13\xff]")
"""No name, comment, field or time; three levels and systems (RFC 1952, 2.3)."""
_ROUNDED = 0.051  # a half of the last place of each number, and what binary numbers add


def unknown_inside(folder: Path) -> Iterator[str]:
    """Yield what stands inside the files of a package and comes from nowhere that is known.

    Args:
        folder: of the package, of version 2.
    """
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        for problem in _of_kind(path):
            yield f"{name}: {problem}"
    yield from _of_tables(folder, Tables(folder))
    yield from _of_sums(folder)


def _of_kind(path: Path) -> Iterator[str]:
    """Yield what does not belong into a page, a text, a picture or a list."""
    if path.suffix in _PAGES:
        page = _Page()
        page.feed(path.read_text(encoding="utf-8"))
        yield from sorted(page.problems)
    if path.suffix in (*_PAGES, *_TEXTS) and _COMMENT.search(path.read_text(encoding="utf-8")):
        yield "a comment, or what else nobody reads"
    elif path.suffix == ".png":
        yield from (f"metadata {kind}" for kind in _kinds(path.read_bytes()) if kind)


class _Page(HTMLParser):
    """Collects what a page holds beside what templates write."""

    def __init__(self) -> None:
        super().__init__()
        self.problems: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Look at an element and its attributes."""
        if tag not in PAGES["elements"]:
            self.problems.add(f"element {tag}")
        known = PAGES["attributes"]
        self.problems |= {f"attribute {name} of {tag}" for name, _ in attrs if name not in known}
        named = dict(attrs)
        if tag == "meta" and named.get("name") not in _METAS:
            self.problems.add(f"metadata {named.get('name')}")


def _kinds(content: bytes) -> Iterator[str]:
    """Yield the chunks of a PNG that hold no pixels, and what follows its end."""
    at = 8
    while at + 8 <= len(content):
        size, kind = int.from_bytes(content[at : at + 4], "big"), content[at + 4 : at + 8]
        if kind not in _CHUNKS:
            yield kind.decode("latin-1")
        at += 12 + size
        if kind == b"IEND":
            break
    if at != len(content):
        yield "after its end"


def _of_tables(folder: Path, tables: Tables) -> Iterator[str]:
    """Yield which copies of numbers are not those of the tables, and rows in another order."""
    order: _Order = defaultdict(dict)
    first = (folder / START).read_bytes() if (folder / START).exists() else None
    is_copy = first is None
    for name in tables.layouts:
        rows = tables.rows(name)
        path, content = csv_of(folder, name), csv_bytes(rows)
        is_copy = is_copy or content == first
        if not path.exists() or _unpacked(path, len(content)) != content:
            yield f"{DATA}/{path.name}: is not what {name}.parquet holds"
        if path.suffix != ".gz" and path.with_suffix(".csv.gz").exists():
            yield f"{DATA}/{name}.csv.gz: lies beside {path.name}"
        if not _in_order(rows, order):
            yield f"{DATA}/{name}.parquet: its rows stand in an order of their own"
        if any(field.metadata for field in rows.schema):
            yield f"{DATA}/{name}.parquet: a column has metadata"
        if not _is_written_as_here(folder / DATA / f"{name}.parquet", rows):
            yield f"{DATA}/{name}.parquet: is not written as its rows are"
        for problem in _beside_intervals(rows):
            yield f"{DATA}/{name}.parquet: {problem}"
    if not is_copy:
        yield f"{START}: is no copy of a table"
    if (folder / MAP).exists():
        yield from _of_map(json.loads((folder / MAP).read_bytes()), tables, order)


def _unpacked(path: Path, size: int) -> bytes | None:
    """Return what a file holds, packed by any level or library; None if anything is beside it.

    No more of it is unpacked than a table has: a few bytes may hold any number of others.
    """
    content = path.read_bytes()
    if path.suffix != ".gz":
        return content
    stream = zlib.decompressobj(wbits=31)
    try:
        unpacked = stream.decompress(content, size + 1)
    except zlib.error:
        return None
    is_alone = stream.eof and not stream.unused_data and _GZIP_HEADER.match(content)
    return unpacked if is_alone else None


def _is_written_as_here(path: Path, rows: pa.Table) -> bool:
    """Tell whether a table is its rows alone; one that another version wrote is not asked."""
    writer = pq.read_metadata(path).created_by
    return not writer.endswith(f" {pa.__version__}") or parquet_bytes(rows) == path.read_bytes()


def _in_order(rows: pa.Table, order: _Order) -> bool:
    """Tell whether rows go by their labels, each label before those that it precedes elsewhere.

    A table may leave cells out, so no table alone says the order of all labels.
    """
    for column, before, label in _steps(rows):
        order[column].setdefault(label, set()).add(before)
    try:
        for known in order.values():
            TopologicalSorter(known).prepare()
    except CycleError:
        return False
    return True


def _steps(rows: pa.Table) -> Iterator[tuple[tuple[str, object], object, object]]:
    """Yield column and mode of the first label that differs from the row before, and both labels.

    Each step comes once, however many rows take it.
    """
    names = labels_of(rows.column_names)
    if not names:
        return
    coded = [_coded(rows.column(name)) for name in names]
    codes = np.stack([column_codes for _, column_codes in coded])
    differ = codes[:, 1:] != codes[:, :-1]
    first = differ.argmax(axis=0)
    no_modes: tuple[list[object], NDArray[np.int64]] = ([None], np.zeros_like(codes[0]))
    modes = coded[names.index("mode")] if "mode" in names else no_modes
    for number, (name, (labels, label_codes)) in enumerate(zip(names, coded, strict=True)):
        at = np.flatnonzero(differ[number] & (first == number))
        of_mode, mode = no_modes if name == "mode" else modes
        pairs = (mode[at + 1] * len(labels) + label_codes[at]) * len(labels) + label_codes[at + 1]
        for pair in np.unique(pairs).tolist():
            both, label = divmod(pair, len(labels))
            group, before = divmod(both, len(labels))
            yield (name, of_mode[group]), labels[before], labels[label]


def _coded(column: pa.ChunkedArray) -> tuple[list[object], NDArray[np.int64]]:
    """Return the labels of a column, and the number of each row's."""
    kind = column.type
    plain = column.cast(kind.value_type) if pa.types.is_dictionary(kind) else column
    coded = plain.combine_chunks().dictionary_encode(null_encoding="encode")
    return coded.dictionary.to_pylist(), coded.indices.to_numpy().astype(np.int64)


def _beside_intervals(rows: pa.Table) -> Iterator[str]:
    """Yield if a number lies outside of its own interval."""
    names = {"value", "low_95", "high_95"}
    if not names <= set(rows.column_names):
        return
    columns = [rows.column(name) for name in ("value", "low_95", "high_95")]
    known = np.logical_and.reduce([column.is_valid().to_numpy() for column in columns])
    value, low, high = (column.to_numpy() for column in columns)
    if not np.all((low - _ROUNDED <= value)[known] & (value <= high + _ROUNDED)[known]):
        yield "a number lies outside of its interval"


def _of_map(shapes: Mapping[str, Any], tables: Tables, order: _Order) -> Iterator[str]:
    """Yield where the map's numbers are not sums of a table's, or its places in another order."""
    if "location" not in tables.layouts:
        return  # the map of vehicles shows means, which do not add up
    sums: defaultdict[Place, list[float]] = defaultdict(list)
    rows = tables.rows("location")
    if not set(labels_of(rows.column_names)) <= _OF_PLACES:
        return
    for row in rows.to_pylist():
        if row.get("tap", "on") == "on" and row["value"] is not None:
            sums[row.get("mode", ""), row["location"]].append(row["value"])
    places = [feature["properties"] for feature in shapes["features"]]
    for place in places:
        keys = keys_of_rows(place.get("mode", ""), place.get("location", ""))
        parts = next((sums[key] for key in keys if key in sums), [])
        off = abs((place.get("value") or 0) - sum(parts))
        if place.get("value") is not None and off > _ROUNDED * (1 + len(parts)):
            yield f"{MAP}: the number of {place.get('location')} is not that of its table"
            return
    labels = {
        name: [properties.get(name) for properties in places]
        for name in ("mode", "location")
        if name in rows.column_names
    }
    if not _in_order(
        pa.table({n: pa.array(values, pa.string()) for n, values in labels.items()}), order
    ):
        yield f"{MAP}: its places stand in an order of their own"


def _of_sums(folder: Path) -> Iterator[str]:
    """Yield which lines of the list of digests are of no file of the package."""
    if not (folder / SUMS).exists():
        return
    lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    if [line[66:] for line in lines] != sorted(line[66:] for line in lines):
        yield f"{SUMS}: files in an order of their own"
    for line in lines:
        digest, _, name = line.partition("  ")
        path = folder / name
        if not name or not path.is_file() or sha256(path.read_bytes()).hexdigest() != digest:
            yield f"{SUMS}: {name or 'a line'} is no file of the package as it is"
