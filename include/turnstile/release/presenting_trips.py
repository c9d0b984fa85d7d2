"""Trips as people read them: tables of one day and mode, reconciled by least squares.

On and off have equal totals, because every counted trip counts once in each (PRIVACY 7).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from turnstile.privacy.presentation import Presentation, presentation_of
from turnstile.privacy.reconciliation import (
    Measured,
    Partition,
    Reconciled,
    reconcile,
    reconcile_pair,
)
from turnstile.programme.domain import layout
from turnstile.programme.spec import Outside, TableSpec
from turnstile.publishing.labelled import labelled
from turnstile.release.drawn import Drawn

_SIDES = (("tap_on_slot", "tap_on_location"), ("tap_off_slot", "tap_off_location"))
Vector = NDArray[np.int64] | NDArray[np.float64]


def trip_tables(drawn: Drawn) -> dict[str, pa.Table]:
    """Reconcile every partition and put the parts together again."""
    tables = drawn.programme.tables
    vectors = {table.name: drawn.vectors(table, "count") for table in tables}
    days = list(next(iter(vectors.values())))
    names = ("count", "estimate", "standard_deviation")
    columns: dict[str, dict[str, list[Vector]]] = {
        table.name: {name: [] for name in names} for table in tables
    }
    for day in days:
        parts: dict[str, list[tuple[Vector, ...]]] = {t.name: [] for t in tables}
        for mode in drawn.domain.modes:
            measured = _measured(drawn, {t.name: vectors[t.name][day] for t in tables}, mode)
            for side, estimate in _reconciled(drawn, measured, mode):
                shown = presentation_of(estimate)
                for table in tables:
                    if set(table.by) <= set(side):
                        parts[table.name].append(_flat(table, side, estimate, shown))
        for name, chunks in parts.items():
            for column, vectors_of_modes in zip(names, zip(*chunks, strict=True), strict=True):
                columns[name][column].append(np.concatenate(vectors_of_modes))
    return {
        table.name: labelled(drawn.domain, table, days, columns[table.name]) for table in tables
    }


def _measured(
    drawn: Drawn, vectors: Mapping[str, NDArray[np.int64]], mode: str
) -> dict[tuple[str, ...], Measured]:
    """Return one mode's tables of one day, by their dimensions."""
    found = {}
    for table in drawn.programme.tables:
        segment = next(s for s in layout(drawn.domain, table) if s.mode == mode)
        values = vectors[table.name][segment.offset : segment.offset + segment.cells]
        found[table.by] = Measured(values.reshape(segment.shape), drawn.variance(table, "count"))
    return found


def _reconciled(
    drawn: Drawn, measured: Mapping[tuple[str, ...], Measured], mode: str
) -> list[tuple[tuple[str, str], Reconciled]]:
    """Reconcile the sides of one partition; with equal totals where every trip counts in both."""
    partitions = {}
    for slot, location in _SIDES:
        tables = {by: table for by, table in measured.items() if set(by) <= {slot, location}}
        if tables:
            shape = (
                len(drawn.domain.dimension(mode, slot).labels),
                len(drawn.domain.dimension(mode, location).labels),
            )
            partitions[slot, location] = Partition(
                shape,
                cells=tables.get((slot, location)),
                rows=tables.get((slot,)),
                columns=tables.get((location,)),
            )
    if len(partitions) == len(_SIDES) and drawn.programme.domain.outside is Outside.UNKNOWN:
        pair = reconcile_pair(*partitions.values())
        return list(zip(partitions, pair, strict=True))
    return [(side, reconcile(partition)) for side, partition in partitions.items()]


def _flat(
    table: TableSpec, side: tuple[str, str], estimate: Reconciled, shown: Presentation
) -> tuple[Vector, ...]:
    """Return presented counts, estimates and standard deviations of one table, flat."""
    values: NDArray[np.float64] | None
    if table.by == side:
        counts, values, variance = shown.cells, estimate.cells, estimate.cell_variance
    elif table.by == side[:1]:
        counts, values, variance = shown.rows, estimate.rows, estimate.row_variance
    else:
        counts, values, variance = shown.columns, estimate.columns, estimate.column_variance
    if counts is None or values is None:
        raise ValueError(f"table {table.name} was not measured")
    deviations = np.full(values.size, round(math.sqrt(variance), 4))
    return counts.ravel(), values.ravel().round(3), deviations
