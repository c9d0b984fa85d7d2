"""Recomputes the estimates of a package from public bytes alone, and names what differs."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from turnstile.errors import InputError
from turnstile.estimates.labelled import csv_bytes
from turnstile.estimates.week_estimates import (
    FOLDER,
    MODEL,
    earlier_releases,
    estimates_of,
    record_of,
)
from turnstile.publishing.package_numbers import estimates_record, week_of_package


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
        rule = f"made by {record['model']!r}; this version makes {MODEL!r}: verify it with its own"
        raise InputError(where=str(folder), field="estimates", rule=rule)
    week = week_of_package(folder, packages)
    found = estimates_of(week)
    made, own = found.tables, record_of(week, earlier_releases(record), found)
    published = {path.stem for path in (folder / FOLDER).glob("*.csv")}
    problems = [f"{name} is missing" for name in sorted(made.keys() - published)]
    problems += [
        f"release_card.json: {name} of the estimates differs"
        for name in own
        if record.get(name) != json.loads(json.dumps(own[name]))
    ]
    problems += [f"{name} is none of the estimates" for name in sorted(published - made.keys())]
    for name in sorted(made.keys() & published):
        expected = csv_bytes(made[name])
        for suffix in ("csv", "parquet"):
            path = folder / FOLDER / f"{name}.{suffix}"
            content = path.read_bytes() if suffix == "csv" else _as_csv(path)
            if content != expected:
                problems.append(f"{path.name}: {_first_difference(content, expected)}")
    return tuple(problems)


def _as_csv(path: Path) -> bytes:
    """Return a Parquet file's numbers as CSV; a file that is none has none."""
    try:
        return csv_bytes(pq.read_table(path))
    except (OSError, pa.ArrowInvalid):
        return b""


def _first_difference(found: bytes, expected: bytes) -> str:
    """Say how many lines differ, and which is the first."""
    lines, wanted = found.splitlines(), expected.splitlines()
    different = [n for n, pair in enumerate(zip(lines, wanted, strict=False)) if pair[0] != pair[1]]
    count = len(different) + abs(len(lines) - len(wanted))
    first = different[0] + 1 if different else min(len(lines), len(wanted)) + 1
    return f"{count} of {len(wanted)} lines differ, the first is line {first}"
