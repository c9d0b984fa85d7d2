"""Recomputes the estimates of a package from public bytes alone, and names what differs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from turnstile.errors import InputError
from turnstile.estimates.labelled import csv_bytes
from turnstile.estimates.table_names import DAILY
from turnstile.estimates.usable import Grade
from turnstile.estimates.week_estimates import (
    FOLDER,
    MODEL,
    earlier_releases,
    estimates_of,
    record_of,
)
from turnstile.publishing.data_tables import ENDS, NUMBERS, USABLE, VALUE, labels_of
from turnstile.publishing.package_numbers import estimates_record, week_of_package
from turnstile.publishing.package_reader import Tables, csv_content, texts_of, where

_WORDS = {"read_as", "withheld"}  # for people: they name files, which are others in version 1


def estimate_differences(folder: Path, packages: Path) -> tuple[str, ...]:
    """Return what in the package's estimates is not what its numbers give; empty if all is.

    Args:
        folder: the package.
        packages: folder in which earlier releases lie by their keys.

    Raises:
        InputError: the package states no estimates, or those of another model, or an earlier
            release is not there.
        IntegrityError: an earlier release is not the one that was used.
    """
    record = estimates_record(folder)
    if record["model"] != MODEL:
        by = Tables(folder).card["libraries"].get("turnstile", "0.1.0")
        rule = (
            f"made by {record['model']!r} of turnstile {by}; this version makes {MODEL!r}: verify "
            f"it with turnstile {by} as it was when the package was made"
        )
        raise InputError(where=str(folder), field="estimates", rule=rule)
    week = week_of_package(folder, packages)
    estimates = estimates_of(week)
    expected = record_of(week, earlier_releases(record), estimates)
    problems = [
        f"release_card.json: {name} of the estimates differs"
        for name in sorted(expected.keys() - _WORDS)
        if record.get(name) != json.loads(json.dumps(expected[name]))
    ]
    tables = Tables(folder)
    compare = _of_parts if tables.version == 1 else _of_tables
    return (*problems, *compare(tables, estimates.tables))


def _of_tables(tables: Tables, made: Mapping[str, pa.Table]) -> Iterator[str]:
    """Compare the columns of value and interval with the estimates, in both formats."""
    stated = {
        published_source.estimates
        for layout in tables.layouts.values()
        for published_source in layout.sources
    }
    # Of two sums over a day's slots, of cells and as drawn, the drawn table stands for both.
    lacking = (name for name in made if name not in stated and not name.endswith(DAILY))
    yield from (f"{name} is missing" for name in lacking)
    for name, layout in tables.layouts.items():
        rows = tables.rows(name)
        if csv_bytes(rows) != csv_content(tables.folder, name):
            yield f"{name}: the CSV file differs from the Parquet file"
        for source in (candidate for candidate in layout.sources if candidate.estimates):
            if source.estimates not in made:
                yield f"{name} is none of the estimates"
                continue
            estimates = made[source.estimates]
            if label := next((axis for axis in source.where if axis in estimates.column_names), ""):
                estimates = where(estimates, {label: source.where[label]})
            source_rows = where(rows, source.where)
            if source_rows.num_rows != estimates.num_rows:
                yield f"{name} has other rows than the estimates"
                continue
            is_gap = pc.equal(texts_of(source_rows, USABLE), Grade.GAP.value)
            named = {VALUE: "estimate"} | {end: end for end in ENDS}
            expected = {
                column: pc.if_else(is_gap, None, estimates[of]) for column, of in named.items()
            }
            known = {*NUMBERS, *labels_of(source_rows.column_names)}
            further = [
                n
                for n in estimates.column_names
                if n in source_rows.column_names and n not in known
            ]
            expected |= {name: estimates[name] for name in further}
            content = csv_bytes(source_rows.select([*expected]))
            if content != (wanted := csv_bytes(pa.table(expected))):
                yield f"{name}: {_first_difference(content, wanted)}"


def _of_parts(tables: Tables, made: Mapping[str, pa.Table]) -> Iterator[str]:
    """Compare the tables of estimates of a package of version 1, in both formats."""
    folder = tables.folder / FOLDER
    published = {path.stem for path in folder.glob("*.csv")}
    yield from (f"{name} is missing" for name in sorted(made.keys() - published))
    yield from (f"{name} is none of the estimates" for name in sorted(published - made.keys()))
    for name in sorted(made.keys() & published):
        expected = csv_bytes(made[name])
        for suffix in ("csv", "parquet"):
            path = folder / f"{name}.{suffix}"
            content = path.read_bytes() if suffix == "csv" else _as_csv(path)
            if content != expected:
                yield f"{path.name}: {_first_difference(content, expected)}"


def _as_csv(path: Path) -> bytes:
    """Return a Parquet file's numbers as CSV; a file that is none has none."""
    try:
        return csv_bytes(pq.read_table(path))
    except (OSError, pa.ArrowInvalid):
        return b""


def _first_difference(content: bytes, expected: bytes) -> str:
    """Say how many lines differ, and which is the first."""
    lines, wanted = content.splitlines(), expected.splitlines()
    different = [n for n, pair in enumerate(zip(lines, wanted, strict=False)) if pair[0] != pair[1]]
    count = len(different) + abs(len(lines) - len(wanted))
    first = different[0] + 1 if different else min(len(lines), len(wanted)) + 1
    return f"{count} of {len(wanted)} lines differ, the first is line {first}"
