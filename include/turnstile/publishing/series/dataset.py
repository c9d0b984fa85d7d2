"""All releases in force as a Parquet dataset: a folder a table and schema version, a file a period.

    series/data/location/v1/2016-W30-r0.parquet

Every file of a version has the same columns: `period`, `revision`, then those of package version 2,
which packages of version 1 are read as (`package_reader`). Rows of a version mean the same: other
columns, slots, places or bounds (`terms_of`) are another version, numbered in the order of
publication, so that numbers never change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from turnstile.arrow_columns import column
from turnstile.estimates.labelled import parquet_bytes
from turnstile.ledger.records import ReleaseKey
from turnstile.ledger.weeks import PublishedRevision
from turnstile.publishing.carried.sums import terms_of
from turnstile.publishing.contents import type_of
from turnstile.publishing.data_tables import labels_of
from turnstile.publishing.package_reader import DATA, Tables

Pairs = tuple[tuple[str, str], ...]
LABELS = (("period", "string"), ("revision", "integer"))


@dataclass(frozen=True, slots=True)
class Schema:
    """What the rows of a table hold and mean.

    Args:
        columns: name and type of each.
        terms: which decide what a row counts, by name (`terms_of`).
    """

    columns: Pairs
    terms: Pairs


@dataclass(frozen=True, slots=True)
class SeriesTable:
    """One table of all packages.

    Args:
        name: `location`.
        versions: what the rows of each schema version are; the first is version 1.
        parts: revision and version of each file, in the order of the calendar.
    """

    name: str
    versions: tuple[Schema, ...]
    parts: tuple[tuple[PublishedRevision, int], ...]

    def path_of(self, revision: PublishedRevision, version: int) -> str:
        """Return where a part lies, below the series."""
        return (
            f"{DATA}/{self.name}/v{version}/{revision.key.period}-r{revision.key.revision}.parquet"
        )


def series_tables(
    in_force: Sequence[PublishedRevision],
    all_published: Sequence[PublishedRevision],
    schemas: Mapping[ReleaseKey, Mapping[str, Schema]],
) -> tuple[SeriesTable, ...]:
    """Return every table that a release in force has, by name.

    Args:
        in_force: in the order of the calendar; their packages are there.
        all_published: whose packages are there, withdrawn and superseded ones too: they keep their
            version numbers taken.
        schemas: of the tables of each (`schemas_of`).
    """
    order = sorted(all_published, key=lambda revision: revision.published.sequence)
    names = sorted({name for revision in in_force for name in schemas[revision.key]})
    tables = []
    for name in names:
        versions = tuple(
            dict.fromkeys(
                schemas[revision.key][name] for revision in order if name in schemas[revision.key]
            )
        )
        parts = tuple(
            (revision, versions.index(schemas[revision.key][name]) + 1)
            for revision in in_force
            if name in schemas[revision.key]
        )
        tables.append(SeriesTable(name, versions, parts))
    return tuple(tables)


def schemas_of(package: Tables) -> Mapping[str, Schema]:
    """Return what the rows of every table of a package hold and mean."""
    return {
        name: Schema(
            tuple((field.name, type_of(field.type)) for field in package.rows(name).schema),
            terms_in(package, name),
        )
        for name in package.layouts
    }


def terms_in(package: Tables, name: str) -> Pairs:
    """Return the terms of a table of a package, which stand in its card."""
    sources = package.layouts[name].sources
    made_of = [source.table or source.unbiased or source.estimates for source in sources]
    return tuple(terms_of(package.card, labels_of(package.columns(name)), made_of).items())


def part_bytes(package: Path, name: str, revision: PublishedRevision) -> bytes:
    """Return the file of one table and period."""
    table = Tables(package).rows(name).replace_schema_metadata()
    labels = {
        "period": pa.array([revision.key.period]),
        "revision": pa.array([revision.key.revision], pa.int64()),
    }
    rows = column(np.zeros(len(table), dtype=np.int32))
    for index, (label, _) in enumerate(LABELS):
        table = table.add_column(index, label, labels[label].take(rows))
    return parquet_bytes(table)
