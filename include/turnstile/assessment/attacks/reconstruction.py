"""Reconstruction: exact small tables guessed from all their noisy marginals at once.

Least squares (Dinur & Nissim 2003; Kasiviswanathan, Rudelson & Smith 2013) and the linear program
that is the most likely table under Laplace noise. Both are post-processing: on a release they can
recover no more than its epsilon allows; on synthetic tables they show how much that is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_LARGEST = 2_000  # cells; beyond, the linear program takes longer than a gate may


@dataclass(frozen=True, slots=True, eq=False)
class NoisyMarginals:
    """A noisy table and its noisy margins.

    Args:
        cells: shape (rows, columns).
        rows: shape (rows,), noisy row sums of the exact table, drawn on their own; empty without.
        columns: shape (columns,), the same for columns.
        scales: of the noise of cells, rows, columns, in counts, all of one family.
    """

    cells: NDArray[np.int64]
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    scales: tuple[float, float, float]


def least_squares(noisy: NoisyMarginals) -> NDArray[np.float64]:
    """Return the table that fits cells and margins best, each weighted by its noise."""
    design, target, scales = _system(noisy)
    weight = 1 / scales
    solved, *_ = np.linalg.lstsq(design * weight[:, None], target * weight, rcond=None)
    return np.asarray(solved.reshape(noisy.cells.shape))


def linear_program(noisy: NoisyMarginals) -> NDArray[np.float64]:
    """Return the most likely non-negative table under Laplace noise: least weighted distance."""
    from scipy.optimize import linprog
    from scipy.sparse import eye, hstack

    design, target, scales = _system(noisy)
    unknowns, equations = design.shape[1], design.shape[0]
    split = hstack([design, eye(equations), -eye(equations)])
    cost = np.concatenate((np.zeros(unknowns), 1 / scales, 1 / scales))
    solved = linprog(cost, A_eq=split, b_eq=target, bounds=(0, None), method="highs")
    if not solved.success:
        raise RuntimeError("the linear program of a table has no solution")
    return np.asarray(solved.x[:unknowns].reshape(noisy.cells.shape))


def exact_share(guess: NDArray[np.float64], truth: NDArray[np.int64]) -> float:
    """Return the share of cells that a guess gets exactly right, on synthetic tables."""
    return float(np.mean(np.rint(guess) == truth))


def _system(
    noisy: NoisyMarginals,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the equations: which cells each noisy number adds up, the number and its scale."""
    if noisy.cells.size > _LARGEST:
        raise ValueError(f"a table of {noisy.cells.size} cells is above {_LARGEST}; take a part")
    indices = np.arange(noisy.cells.size).reshape(noisy.cells.shape)
    lines = [*indices[: noisy.rows.size], *indices.T[: noisy.columns.size]]
    design = np.zeros((noisy.cells.size + len(lines), noisy.cells.size))
    design[indices.ravel(), indices.ravel()] = 1
    for number, line in enumerate(lines, start=noisy.cells.size):
        design[number, line] = 1
    target = np.concatenate((noisy.cells.ravel(), noisy.rows, noisy.columns)).astype(np.float64)
    sizes = (noisy.cells.size, noisy.rows.size, noisy.columns.size)
    return design, target, np.repeat(np.array(noisy.scales), sizes)
