"""Tables to look at: non-negative integers that add up. Not measurements.

PRIVACY 7.3: keeping counts non-negative biases every sum, so these tables are labelled, kept apart
from the measurements, and never used to compute anything. Post-processing of reconciled tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from turnstile.estimates.reconciliation import Reconciled

_SWEEPS = 30
_SMALLEST_SEED = 1e-6  # lets a row whose cells were all clipped still receive its sum


@dataclass(frozen=True, slots=True, eq=False)
class Presentation:
    """Whole numbers >= 0: sums of `cells` are `rows` and `columns`, all of them sum to `total`.

    A table that was not measured is None.
    """

    total: int
    rows: NDArray[np.int64] | None
    columns: NDArray[np.int64] | None
    cells: NDArray[np.int64] | None


def presentation_of(estimate: Reconciled) -> Presentation:
    """Return the non-negative, integer, consistent tables nearest in kind to the estimates.

    Marginals: Euclidean projection to non-negative numbers with the rounded total, then largest
    remainders. Cells: clipped, fitted to those marginals in turn (Deming & Stephan 1940), rounded
    so that both marginals are kept.
    """
    total = max(0, round(estimate.total))
    rows = None if estimate.rows is None else integer_parts(estimate.rows, total)
    columns = None if estimate.columns is None else integer_parts(estimate.columns, total)
    cells = None
    if estimate.cells is not None and rows is not None and columns is not None:
        cells = integer_table(estimate.cells, rows, columns)
    return Presentation(total, rows, columns, cells)


def integer_parts(values: NDArray[np.float64], total: int) -> NDArray[np.int64]:
    """Return non-negative integers near the values that sum to the total.

    Examples:
        >>> integer_parts(np.array([2.6, -1.0, 2.6]), 4).tolist()
        [2, 0, 2]
    """
    if total == 0:
        return np.zeros(values.shape, dtype=np.int64)
    projected = _on_simplex(values, total)
    integers = np.floor(projected).astype(np.int64)
    order = np.argsort(integers - projected, kind="stable")
    integers[order[: total - int(integers.sum())]] += 1
    return integers


def integer_table(
    values: NDArray[np.float64], rows: NDArray[np.int64], columns: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return a non-negative integer table near the values, with exactly these row and column sums.

    Args:
        values: shape (a, b).
        rows: integer row sums, shape (a,), same total as columns.
        columns: integer column sums, shape (b,).
    """
    fitted = _fitted(np.maximum(values, _SMALLEST_SEED), rows, columns)
    integers = np.floor(fitted).astype(np.int64)
    _take_back(integers, columns)
    row_rest, column_rest = rows - integers.sum(axis=1), columns - integers.sum(axis=0)
    order = np.argsort(np.floor(fitted) - fitted, axis=None, kind="stable")
    round_up(integers, order, row_rest, column_rest)
    _fill_corner(integers, row_rest, column_rest)
    return integers


def _on_simplex(values: NDArray[np.float64], total: int) -> NDArray[np.float64]:
    """Nearest point with non-negative coordinates that sum to the total (Held et al. 1974)."""
    falling = np.sort(values)[::-1]
    shifts = (np.cumsum(falling) - total) / np.arange(1, values.size + 1)
    shift = shifts[np.flatnonzero(falling - shifts > 0)[-1]]
    projected: NDArray[np.float64] = np.maximum(values - shift, 0)
    return projected


def _fitted(
    seed: NDArray[np.float64], rows: NDArray[np.int64], columns: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Scale rows and columns in turn; rows last, so that no row is passed after flooring."""
    table = seed
    for _ in range(_SWEEPS):
        table = table * _ratio(columns, table.sum(axis=0))[np.newaxis, :]
        table = table * _ratio(rows, table.sum(axis=1))[:, np.newaxis]
    return table * (1 - 1e-12)


def _ratio(wanted: NDArray[np.int64], found: NDArray[np.float64]) -> NDArray[np.float64]:
    """What to multiply by; 0 where nothing is wanted or found."""
    ratio: NDArray[np.float64] = np.divide(
        wanted, found, out=np.zeros(found.shape), where=found > 0
    )
    return ratio


def _take_back(integers: NDArray[np.int64], columns: NDArray[np.int64]) -> None:
    """Lower columns whose floors still exceed their sum, because fitting had not settled."""
    for column in np.flatnonzero(integers.sum(axis=0) > columns):
        excess = int(integers[:, column].sum() - columns[column])
        for row in np.argsort(-integers[:, column], kind="stable"):
            taken = min(excess, int(integers[row, column]))
            integers[row, column] -= taken
            excess -= taken


def round_up(
    integers: NDArray[np.int64],
    order: NDArray[np.intp],
    row_rest: NDArray[np.int64],
    column_rest: NDArray[np.int64],
) -> None:
    """Add one to each cell, in this order, whose row and column both lack something."""
    lacking = ((row_rest > 0)[:, None] & (column_rest > 0)).ravel()
    columns = integers.shape[1]
    of_rows, of_columns = row_rest.tolist(), column_rest.tolist()  # read fast, one by one
    raised = []
    for place in order[lacking[order]].tolist():
        row, column = divmod(place, columns)
        if of_rows[row] > 0 and of_columns[column] > 0:
            raised.append(place)
            of_rows[row] -= 1
            of_columns[column] -= 1
    integers.flat[np.array(raised, dtype=np.intp)] += 1
    row_rest[:], column_rest[:] = of_rows, of_columns


def _fill_corner(
    integers: NDArray[np.int64], row_rest: NDArray[np.int64], column_rest: NDArray[np.int64]
) -> None:
    """Place what is left of both marginals, row by row (north-west corner rule)."""
    for row in np.flatnonzero(row_rest):
        for column in np.flatnonzero(column_rest):
            moved = min(int(row_rest[row]), int(column_rest[column]))
            integers[row, column] += moved
            row_rest[row] -= moved
            column_rest[column] -= moved
