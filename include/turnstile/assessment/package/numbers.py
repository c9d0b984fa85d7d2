"""The noisy numbers of a published package, for the gates that also run before a publication."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from turnstile.assessment.gates.numbers import (
    Numbers,
    Totals,
    Vector,
    pairs_of_siblings,
    totals_of,
)
from turnstile.privacy.events import DrawEvent
from turnstile.publishing.package_reader import Package, axes_of, nested_pairs
from turnstile.release.sealed import Artefact, NoisyTable

_DAY = "service_date"


def numbers_of_package(package: Package, earlier: tuple[Package, ...] = ()) -> Numbers:
    """Return the measurements of a package as the gates read them.

    Args:
        package: that is judged.
        earlier: other packages of the programme, newest first.
    """
    return Numbers(
        tuple(_vectors(package)),
        tuple(_totals(package)),
        tuple(_artefact(one) for one in earlier),
        tuple(_shared(package)),
    )


def _vectors(package: Package) -> Iterator[Vector]:
    """Yield the numbers of each draw; those that are not published are left out."""
    for event in package.events:
        table = package.tables.get(event.table)
        if table is None or event.statistic not in table.column_names:
            continue
        day = None
        if _DAY in table.column_names:
            day = min(block.service_date for block in event.blocks)
            table = table.filter(pc.equal(_days(table), day.isoformat()))
        yield Vector(event, day, _integers(table, event.statistic))


def _totals(package: Package) -> Iterator[Totals]:
    """Yield totals minus the sums of their published parts, a day at a time."""
    for coarse, fine in nested_pairs(package):
        joined = _joined(package, coarse, fine)
        days = pc.unique(joined.column(_DAY)).to_pylist() if _DAY in joined.column_names else [None]
        for day in days:
            own = joined if day is None else joined.filter(pc.equal(joined.column(_DAY), day))
            difference = _integers(own, "count_sum") - _integers(own, "count")
            on = f" on {day}" if day else ""
            parts = _integers(own, "count_count")
            yield totals_of(
                f"{coarse.table} and {fine.table}{on}",
                difference.astype(np.float64),
                (parts, np.ones_like(parts)),
                (fine, coarse),
            )


def _shared(package: Package) -> Iterator[Totals]:
    """Yield differences of the totals of two tables of the same counts, a day at a time."""
    for one, other in pairs_of_siblings(list(nested_pairs(package))):
        tables = [_by_mode(package.tables[event.table]) for event in (one, other)]
        keys = [name for name in (_DAY, "mode") if name in tables[0].column_names]
        joined = tables[0].join(tables[1], keys=keys, join_type="inner", right_suffix=" of other")
        days = pc.unique(joined.column(_DAY)).to_pylist() if _DAY in keys else [None]
        for day in days:
            own = joined if day is None else joined.filter(pc.equal(joined.column(_DAY), day))
            sums, cells = (
                [_integers(own, f"count_{name}{suffix}") for suffix in ("", " of other")]
                for name in ("sum", "count")
            )
            on = f" on {day}" if day else ""
            yield totals_of(
                f"{one.table} and {other.table}{on}",
                (sums[0] - sums[1]).astype(np.float64),
                (cells[0], cells[1]),
                (one, other),
            )


def _by_mode(table: pa.Table) -> pa.Table:
    """Return the sum and the number of cells of each day and mode."""
    keys = [name for name in (_DAY, "mode") if name in axes_of(table)]
    added = [("count", "sum"), ("count", "count")]
    return _plain(table, keys, "count").group_by(keys).aggregate(added)


def _joined(package: Package, coarse: DrawEvent, fine: DrawEvent) -> pa.Table:
    """Return each total beside the sum and the number of its parts."""
    total, parts = package.tables[coarse.table], package.tables[fine.table]
    keys = axes_of(total)
    added = (
        _plain(parts, keys, "count")
        .group_by(keys)
        .aggregate([("count", "sum"), ("count", "count")])
    )
    return _plain(total, keys, "count").join(added, keys=keys, join_type="inner")


def _plain(table: pa.Table, keys: list[str], value: str) -> pa.Table:
    """Return keys as texts and one column of numbers."""
    columns = {name: pc.cast(table.column(name), pa.string()) for name in keys}
    return pa.table({**columns, value: table.column(value)})


def _artefact(package: Package) -> Artefact:
    """Return what a package published as a sealed artefact holds it."""
    return Artefact(
        tuple(
            NoisyTable(one.event.table, one.event.statistic, one.service_date, one.values)
            for one in _vectors(package)
        )
    )


def _days(table: pa.Table) -> pa.ChunkedArray:
    """Return service days as texts."""
    return pc.cast(table.column(_DAY), pa.string())


def _integers(table: pa.Table, name: str) -> NDArray[np.int64]:
    """Return a column as 64-bit integers."""
    return np.asarray(table.column(name).to_numpy()).astype(np.int64)
