"""Least squares over the tables of one partition: consistent, and never noisier than measured.

PRIVACY 7. The tables of a partition (a slots by b places) are a cell table, its row sums, its
column sums and its total, each drawn with its own noise, or any subset of them. They all describe
one exact table, whose space splits into four orthogonal parts (total, rows, columns, interaction);
in each, every measurement is an unbiased estimate with uncorrelated, equal errors, so the inverse
variances add up (Xiao, He, Zhang & Kifer 2023, ResidualPlanner; here in closed form):

    P_int = 1/v_x,  P_row = 1/v_x + b/v_t,  P_col = 1/v_x + a/v_l,
    P_tot = 1/v_x + b/v_t + a/v_l + ab/v_n.

The measured tables must be marginals of one exact table. Tables in which a unit counts once per
cell of *that* table are not, and are to be left as they are. All of this reads drawn tables only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """One drawn table.

    Args:
        values: as drawn; shape (a, b), (a,), (b,) or ().
        variance: of the noise of each value, > 0 (`noise.noise_variance`).
    """

    values: NDArray[np.int64] | NDArray[np.float64]
    variance: float


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """The drawn tables of one mode and day, of its tap-ons or its tap-offs.

    Args:
        shape: a slots, b places.
        cells: shape (a, b), if drawn.
        rows: sums over places, shape (a,), if drawn.
        columns: sums over slots, shape (b,), if drawn.
        total: shape (), if drawn.
    """

    shape: tuple[int, int]
    cells: Measured | None = None
    rows: Measured | None = None
    columns: Measured | None = None
    total: Measured | None = None

    def __post_init__(self) -> None:
        """Check shapes and variances.

        Raises:
            ValueError: nothing was measured, a shape does not fit, or a variance is not positive.
        """
        a, b = self.shape
        expected = ((self.cells, (a, b)), (self.rows, (a,)), (self.columns, (b,)), (self.total, ()))
        if all(table is None for table, _ in expected):
            raise ValueError("a partition needs at least one drawn table")
        for table, shape in expected:
            if table is not None and (table.values.shape != shape or not table.variance > 0):
                raise ValueError(f"a table of shape {shape} and positive variance is due here")


@dataclass(frozen=True, slots=True)
class Precisions:
    """Inverse variance of one unit-length coordinate in each of the four parts; 0 if unmeasured."""

    total: float
    rows: float
    columns: float
    interaction: float


@dataclass(frozen=True, slots=True, eq=False)
class Reconciled:
    """The best linear unbiased estimates; tables that were not measured at all are None.

    Row sums of `cells` are `rows`, its column sums `columns`, and all of them sum to `total`.

    Args:
        shape: a slots, b places.
        precisions: of the four parts.
        total: estimate of the total.
        row_effects: row sums minus their mean, shape (a,).
        column_effects: column sums minus their mean, shape (b,).
        interaction: what is left of the cells, shape (a, b).
    """

    shape: tuple[int, int]
    precisions: Precisions
    total: float
    row_effects: NDArray[np.float64] | None
    column_effects: NDArray[np.float64] | None
    interaction: NDArray[np.float64] | None

    @property
    def rows(self) -> NDArray[np.float64] | None:
        """Sums over places, shape (a,)."""
        return None if self.row_effects is None else self.total / self.shape[0] + self.row_effects

    @property
    def columns(self) -> NDArray[np.float64] | None:
        """Sums over slots, shape (b,)."""
        if self.column_effects is None:
            return None
        return self.total / self.shape[1] + self.column_effects

    @property
    def cells(self) -> NDArray[np.float64] | None:
        """Estimates of the cells, shape (a, b)."""
        if self.interaction is None or self.row_effects is None or self.column_effects is None:
            return None
        a, b = self.shape
        rows, columns = self.row_effects[:, np.newaxis] / b, self.column_effects[np.newaxis, :] / a
        return self.total / (a * b) + rows + columns + self.interaction

    @property
    def total_variance(self) -> float:
        """Variance of the total."""
        return self.shape[0] * self.shape[1] / self.precisions.total

    @property
    def row_variance(self) -> float:
        """Variance of every row sum; infinite if rows were not measured."""
        a, b = self.shape
        return _over((a - 1) * b / a, self.precisions.rows) + b / a / self.precisions.total

    @property
    def column_variance(self) -> float:
        """Variance of every column sum; infinite if columns were not measured."""
        a, b = self.shape
        return _over((b - 1) * a / b, self.precisions.columns) + a / b / self.precisions.total

    @property
    def cell_variance(self) -> float:
        """Variance of every cell; infinite if cells were not measured."""
        cell = np.zeros(self.shape, dtype=np.bool_)
        cell[0, 0] = True
        return self.variance_of_sum(cell)

    def variance_of_sum(self, chosen: NDArray[np.bool_]) -> float:
        """Return the exact variance of the sum of chosen cells.

        Args:
            chosen: shape (a, b).
        """
        a, b = self.shape
        total = float(chosen.sum()) ** 2 / (a * b)
        rows = float((chosen.sum(axis=1).astype(float) ** 2).sum()) / b
        columns = float((chosen.sum(axis=0).astype(float) ** 2).sum()) / a
        parts = (
            (total, self.precisions.total),
            (rows - total, self.precisions.rows),
            (columns - total, self.precisions.columns),
            (float(chosen.sum()) - rows - columns + total, self.precisions.interaction),
        )
        return sum(_over(length, precision) for length, precision in parts)


def reconcile(drawn: Partition) -> Reconciled:
    """Return the least-squares estimates of one partition.

    Args:
        drawn: its measured tables; at least one.
    """
    sources = (
        (drawn.cells, 1.0),
        (drawn.rows, float(drawn.shape[1])),
        (drawn.columns, float(drawn.shape[0])),
        (drawn.total, float(drawn.shape[0] * drawn.shape[1])),
    )
    weights = [0.0 if table is None else lengths / table.variance for table, lengths in sources]
    precisions = Precisions(
        total=sum(weights),
        rows=weights[0] + weights[1],
        columns=weights[0] + weights[2],
        interaction=weights[0],
    )
    totals = [0.0 if table is None else float(table.values.sum()) for table, _ in sources]
    cells = None if drawn.cells is None else drawn.cells.values.astype(np.float64)
    return Reconciled(
        shape=drawn.shape,
        precisions=precisions,
        total=sum(map(float.__mul__, weights, totals)) / precisions.total,
        row_effects=_effects(None if cells is None else cells.sum(axis=1), drawn.rows, weights[:2]),
        column_effects=_effects(
            None if cells is None else cells.sum(axis=0), drawn.columns, weights[:3:2]
        ),
        interaction=None if cells is None else _interaction(cells),
    )


def reconcile_pair(on: Partition, off: Partition) -> tuple[Reconciled, Reconciled]:
    """Return the estimates of tap-ons and tap-offs, where every record counts once in each.

    Their true totals are equal, so both take the inverse-variance mean of the two totals. Valid
    only if a record that is dropped from one is dropped from the other too.
    """
    tap_ons, other = reconcile(on), reconcile(off)
    shared_variance = 1 / (1 / tap_ons.total_variance + 1 / other.total_variance)
    shared = shared_variance * (
        tap_ons.total / tap_ons.total_variance + other.total / other.total_variance
    )
    return _with_total(tap_ons, shared, shared_variance), _with_total(
        other, shared, shared_variance
    )


def _with_total(estimate: Reconciled, total: float, variance: float) -> Reconciled:
    """Put another total, of another variance, under the same effects (they are uncorrelated)."""
    precision = estimate.shape[0] * estimate.shape[1] / variance
    return replace(estimate, total=total, precisions=replace(estimate.precisions, total=precision))


def _effects(
    from_cells: NDArray[np.float64] | None, marginal: Measured | None, weights: list[float]
) -> NDArray[np.float64] | None:
    """Weighted mean of the two estimates of the deviations of row (or column) sums."""
    parts = []
    if from_cells is not None:
        parts.append(weights[0] * (from_cells - from_cells.mean()))
    if marginal is not None:
        parts.append(weights[1] * (marginal.values - marginal.values.mean()))
    if not parts:
        return None
    effects: NDArray[np.float64] = np.sum(parts, axis=0) / sum(weights)
    return effects


def _interaction(cells: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cells without row means, column means and (taken out twice) the grand mean."""
    rows, columns = cells.mean(axis=1, keepdims=True), cells.mean(axis=0, keepdims=True)
    rest: NDArray[np.float64] = cells - rows - columns + cells.mean()
    return rest


def _over(squared_length: float, precision: float) -> float:
    """Variance of a part; infinite if it was not measured, 0 if the sum does not touch it."""
    if squared_length <= 1e-12:  # noqa: PLR2004 - a float zero
        return 0.0
    return squared_length / precision if precision > 0 else float("inf")
