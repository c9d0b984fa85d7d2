"""Reconciliation: unbiased, consistent, never noisier than measured; and whole tables beside it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from turnstile.estimates.fitting.reconciliation import (
    Measured,
    Partition,
    Reconciled,
    reconcile,
    reconcile_pair,
)

SHAPES = st.tuples(st.integers(1, 4), st.integers(1, 4))
VARIANCES = st.floats(min_value=0.1, max_value=100)
ALL = ("cells", "rows", "columns", "total")


def marginals(cells: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
    total = np.asarray(cells.sum())
    return {"cells": cells, "rows": cells.sum(axis=1), "columns": cells.sum(axis=0), "total": total}


@st.composite
def partitions(draw: st.DrawFn, *, needs: tuple[str, ...] = ()) -> Partition:
    a, b = draw(SHAPES)
    shapes: dict[str, tuple[int, ...]] = {
        "cells": (a, b),
        "rows": (a,),
        "columns": (b,),
        "total": (),
    }
    named = draw(st.sets(st.sampled_from(ALL), min_size=0 if needs else 1)) | set(needs)
    tables = {}
    for name in named:
        size = math.prod(shapes[name])
        values = draw(st.lists(st.integers(-20, 200), min_size=size, max_size=size))
        array = np.array(values, dtype=np.int64).reshape(shapes[name])
        tables[name] = Measured(array, draw(VARIANCES))
    return Partition((a, b), **tables)


def matrix_of(partition: Partition) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Design matrix over the cells and the inverse variances, for plain weighted least squares."""
    a, b = partition.shape
    cells = np.arange(a * b)
    designs = {
        "cells": np.eye(a * b),
        "rows": (cells[np.newaxis, :] // b == np.arange(a)[:, np.newaxis]).astype(float),
        "columns": (cells[np.newaxis, :] % b == np.arange(b)[:, np.newaxis]).astype(float),
        "total": np.ones((1, a * b)),
    }
    tables = [(designs[name], getattr(partition, name)) for name in ALL]
    rows = [(design, table) for design, table in tables if table is not None]
    weights = np.concatenate([np.full(len(d), 1 / t.variance) for d, t in rows])
    return np.vstack([design for design, _ in rows]), weights


@given(partitions(needs=("cells",)))
def test_the_closed_form_is_weighted_least_squares(partition: Partition) -> None:
    design, weights = matrix_of(partition)
    measured = np.concatenate(
        [getattr(partition, n).values.ravel() for n in ALL if getattr(partition, n) is not None]
    )
    covariance = np.linalg.inv(design.T @ (weights[:, np.newaxis] * design))
    expected = covariance @ (design.T @ (weights * measured))
    reconciled = reconcile(partition)
    assert reconciled.cells is not None
    np.testing.assert_allclose(reconciled.cells.ravel(), expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(reconciled.cell_variance, np.diag(covariance), rtol=1e-6)


@given(partitions(needs=("cells",)), st.randoms(use_true_random=False))
def test_the_variance_of_any_sum_of_cells_is_exact(partition: Partition, random: object) -> None:
    design, weights = matrix_of(partition)
    covariance = np.linalg.inv(design.T @ (weights[:, np.newaxis] * design))
    size = math.prod(partition.shape)
    chosen = np.array([random.random() < 0.5 for _ in range(size)])  # type: ignore[attr-defined]
    variance = reconcile(partition).variance_of_sum(chosen.reshape(partition.shape))
    assert variance == pytest.approx(chosen @ covariance @ chosen, rel=1e-6, abs=1e-9)


@given(partitions())
def test_no_output_is_noisier_than_the_table_that_was_measured(partition: Partition) -> None:
    reconciled = reconcile(partition)
    variances = {
        "cells": reconciled.cell_variance,
        "rows": reconciled.row_variance,
        "columns": reconciled.column_variance,
        "total": reconciled.total_variance,
    }
    for name, variance in variances.items():
        table = getattr(partition, name)
        if table is not None:
            assert variance <= table.variance * (1 + 1e-9)


@given(partitions(needs=("cells",)))
def test_the_sums_that_are_promised_are_kept(partition: Partition) -> None:
    reconciled = reconcile(partition)
    assert reconciled.cells is not None
    np.testing.assert_allclose(reconciled.cells.sum(axis=1), reconciled.rows, atol=1e-6)
    np.testing.assert_allclose(reconciled.cells.sum(axis=0), reconciled.columns, atol=1e-6)
    assert reconciled.cells.sum() == pytest.approx(reconciled.total, abs=1e-6)


@given(SHAPES, st.lists(VARIANCES, min_size=4, max_size=4), st.integers(0, 2**30))
def test_tables_without_noise_come_out_as_they_are_so_estimates_are_unbiased(
    shape: tuple[int, int], variances: list[float], seed: int
) -> None:
    size = math.prod(shape)
    cells = np.array([(seed >> n) % 7 for n in range(size)], dtype=np.int64).reshape(shape)
    tables = {
        name: Measured(table, variance)
        for (name, table), variance in zip(marginals(cells).items(), variances, strict=True)
    }
    reconciled = reconcile(Partition(shape, **tables))
    np.testing.assert_allclose(reconciled.cells, cells, atol=1e-9)
    np.testing.assert_allclose(reconciled.rows, cells.sum(axis=1), atol=1e-9)


def test_a_mean_with_wrong_weights_is_noisier_than_the_closed_form() -> None:
    cells = Measured(np.zeros((2, 3), dtype=np.int64), 2.0)
    rows = Measured(np.zeros(2, dtype=np.int64), 8.0)
    reconciled = reconcile(Partition((2, 3), cells=cells, rows=rows))
    plain_mean = (3 * cells.variance + rows.variance) / 4
    assert reconciled.row_variance < plain_mean < 3 * cells.variance


def test_a_table_that_was_not_measured_is_none_and_of_infinite_variance() -> None:
    rows = Measured(np.array([3, 4], dtype=np.int64), 1.0)
    reconciled = reconcile(Partition((2, 3), rows=rows))
    assert reconciled.cells is None
    assert reconciled.columns is None
    assert math.isinf(reconciled.cell_variance)
    assert reconciled.row_variance == pytest.approx(1.0)
    assert reconciled.total == pytest.approx(7.0)


def sides() -> tuple[Reconciled, Reconciled, Reconciled, Reconciled]:
    on = Partition((2, 3), cells=Measured(np.full((2, 3), 5, dtype=np.int64), 2.0))
    off = Partition((2, 2), cells=Measured(np.full((2, 2), 10, dtype=np.int64), 4.0))
    return (*reconcile_pair(on, off), reconcile(on), reconcile(off))


def test_both_taps_share_one_total_that_is_better_than_either() -> None:
    on, off, on_alone, off_alone = sides()
    assert on.total == pytest.approx(off.total)
    assert on_alone.total < on.total < off_alone.total
    assert on.total_variance == pytest.approx(off.total_variance)
    assert on.total_variance < min(on_alone.total_variance, off_alone.total_variance)
    assert on.cell_variance < on_alone.cell_variance


def test_both_taps_still_add_up_after_sharing_a_total() -> None:
    for side in sides()[:2]:
        assert side.cells is not None
        assert side.cells.sum() == pytest.approx(side.total)
        np.testing.assert_allclose(side.cells.sum(axis=1), side.rows)


def test_the_six_figures_of_the_theory_are_reproduced() -> None:
    a, b = 96, 40
    v_x, v_t = 1.84, 7.84  # discrete Laplace of scales 1 and 2
    zero = {n: t for n, t in marginals(np.zeros((a, b), dtype=np.int64)).items() if n != "total"}
    variances = {"cells": v_x, "rows": v_t, "columns": v_t}
    tables = {name: Measured(table, variances[name]) for name, table in zero.items()}
    reconciled = reconcile(Partition((a, b), **tables))
    shown = [
        reconciled.cell_variance,
        reconciled.row_variance,
        reconciled.column_variance,
        reconciled.total_variance,
    ]
    assert np.sqrt(shown) == pytest.approx([1.34, 2.65, 2.73, 14.6], rel=0.01)


def test_a_table_of_the_wrong_shape_or_without_noise_is_refused() -> None:
    with pytest.raises(ValueError, match="shape"):
        Partition((2, 3), rows=Measured(np.zeros(3, dtype=np.int64), 1.0))
    with pytest.raises(ValueError, match="positive variance"):
        Partition((2, 3), rows=Measured(np.zeros(2, dtype=np.int64), 0.0))
    with pytest.raises(ValueError, match="at least one"):
        Partition((2, 3))
