"""Trips as people read them: tables of one day and mode, reconciled by least squares.

On and off have equal totals, because every counted trip counts once in each (PRIVACY 7). A
thresholded programme has nothing to reconcile (`thresholded_tables`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from datetime import date
from itertools import product

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from turnstile.estimates.fitting.combined_noise import SumError
from turnstile.estimates.fitting.reconciliation import Measured, Reconciled
from turnstile.estimates.labelled import labelled
from turnstile.estimates.roll_ups import Blocks, roll_ups_of
from turnstile.estimates.table_names import ROWS
from turnstile.estimates.thresholded_tables import synthetic_rows, thresholded_tables
from turnstile.estimates.trips.trip_marginals import (
    Axes,
    MarginalErrors,
    marginal_errors,
    reconciled_marginals,
    shapes_of,
    shares_total,
)
from turnstile.estimates.year_to_date import year_tables
from turnstile.programme.domain.public_domain import layout
from turnstile.programme.spec import TableSpec
from turnstile.release.drawn import Drawn

_DECIMALS = 4
RECONCILED = "reconciled"
Floats = NDArray[np.float64]
Columns = dict[str, list[Floats]]


def trip_tables(drawn: Drawn) -> dict[str, pa.Table]:
    """Return the published tables of a release of trips."""
    if drawn.programme.mechanism.kind.is_thresholded:
        tables = thresholded_tables(drawn)
    else:
        tables = _reconciled_tables(drawn)
    if not drawn.programme.publish.synthetic_rows:
        return tables
    names = [table.name for table in drawn.programme.tables]
    return {**tables, **{name + ROWS: synthetic_rows(tables[name]) for name in names}}


def _reconciled_tables(drawn: Drawn) -> dict[str, pa.Table]:
    """Reconcile every partition, put the parts together again, and roll them up."""
    programme, domain = drawn.programme, drawn.domain
    rolled = roll_ups_of(programme, domain)
    shared = shares_total(programme)
    errors = marginal_errors(programme, domain, drawn.events)
    days = list(drawn.vectors(programme.shared_tables[0], "count"))
    columns: dict[str, Columns] = defaultdict(lambda: defaultdict(list))
    for day, mode in product(days, domain.modes):
        measured = _measured(drawn, day, mode)
        shapes = shapes_of(domain, mode, measured)
        marginals = reconciled_marginals(shapes, measured, shares_total=shared)
        for axes, estimate in marginals.items():
            own_errors = errors[mode, axes]
            for table in (spec for spec in programme.shared_tables if set(spec.by) <= set(axes)):
                numbers = _numbers(table, axes, estimate)
                _add(columns[table.name], numbers, own_errors.of_table(table.by))
            for roll_up in (
                candidate for candidate in rolled if set(candidate.source.by) <= set(axes)
            ):
                numbers = _numbers(roll_up.source, axes, estimate)
                _add_rolled(columns[roll_up.table.name], numbers, roll_up.blocks[mode], own_errors)
    fine = {t.name: labelled(domain, t, days, columns[t.name]) for t in programme.shared_tables}
    coarse = {
        r.table.name: labelled(r.domain, r.table, days, columns[r.table.name]) for r in rolled
    }
    separate_tables: dict[str, pa.Table] = {}
    for table in (spec for spec in programme.tables if spec.trips_max is not None):
        of_year = table.year_from is not None
        separate_tables |= (
            year_tables(drawn, table) if of_year else {table.name: _as_drawn(drawn, table)}
        )
    return {**fine, **separate_tables, **coarse}


def _as_drawn(drawn: Drawn, table: TableSpec) -> pa.Table:
    """Return a table with a bound of its own: there is nothing to reconcile it with."""
    vectors = drawn.vectors(table, "count")
    deviation = round(math.sqrt(drawn.variance(table, "count")), _DECIMALS)
    columns: Columns = {
        RECONCILED: [vector.astype(np.float64) for vector in vectors.values()],
        "standard_deviation": [np.full(vector.size, deviation) for vector in vectors.values()],
    }
    return labelled(drawn.domain, table, list(vectors), columns)


def _measured(drawn: Drawn, day: date | None, mode: str) -> dict[tuple[str, ...], Measured]:
    """Return one mode's tables of one day, by their dimensions."""
    measured = {}
    for table in drawn.programme.shared_tables:
        segment = next(s for s in layout(drawn.domain, table) if s.mode == mode)
        vector = drawn.vectors(table, "count")[day]
        values = vector[segment.offset : segment.offset + segment.cells]
        measured[table.by] = Measured(values.reshape(segment.shape), drawn.variance(table, "count"))
    return measured


def _numbers(table: TableSpec, axes: Axes, estimate: Reconciled) -> Floats:
    """Pick the part of reconciled marginals that a table publishes; slots first."""
    if table.by == axes:
        values = estimate.cells
    else:
        values = estimate.rows if table.by == axes[:1] else estimate.columns
    if values is None:
        raise ValueError(f"table {table.name} was not measured")
    return values


def _add(columns: Columns, numbers: Floats, error: SumError) -> None:
    """Append one part of a table."""
    columns[RECONCILED].append(numbers.ravel().round(3))
    deviation = round(error.standard_deviation, _DECIMALS)
    columns["standard_deviation"].append(np.full(numbers.size, deviation))


def _add_rolled(columns: Columns, numbers: Floats, blocks: Blocks, errors: MarginalErrors) -> None:
    """Append one part of a roll-up: sums over slots and places, each with the error of its size.

    Args:
        columns: of the roll-up.
        numbers: slots, or slots by places.
        blocks: what each number adds up.
        errors: of their marginals.
    """
    places, slots = blocks.sizes(numbers.size // len(numbers), len(numbers))
    if numbers.ndim == 1:
        places = np.array([errors.shape[1]])
    of_places, place = np.unique(places, return_inverse=True)
    of_slots, slot = np.unique(slots, return_inverse=True)
    by_size = [[errors.of_block(int(s), int(p)) for p in of_places] for s in of_slots]
    columns[RECONCILED].append(blocks.summed(numbers.T).T.ravel().round(3))
    for name in ("standard_deviation", "half_width_90", "half_width_95"):
        of_size = np.array([[round(getattr(e, name), _DECIMALS) for e in row] for row in by_size])
        columns[name].append(of_size[np.ix_(slot, place)].ravel())
