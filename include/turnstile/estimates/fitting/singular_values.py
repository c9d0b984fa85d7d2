"""Optimal shrinkage of singular values: what a noisy matrix knows of the matrix under its noise.

A matrix of places by (day, slot) whose rows keep their daily shape is near to one of low rank, and
noise of a known standard deviation is not. Gavish & Donoho (2017, Optimal shrinkage of singular
values, IEEE Transactions on Information Theory 63(4), section III.A, Frobenius loss): with an m by
n matrix, m <= n, b = m/n and y a singular value over (standard deviation times the root of n), put

    sqrt((y^2 - b - 1)^2 - 4 b) / y

in the place of y where y > 1 + sqrt(b), and 0 elsewhere. Pure.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def shrunk_cells(values: Floats, of_days: Floats) -> Floats:
    """Shrink the matrix of places by (day, slot).

    Args:
        values: shape (places, days, slots).
        of_days: standard deviation of the noise of each day.
    """
    places, days, slots = values.shape
    cells = shrunk(values.reshape(places, days * slots), np.repeat(of_days, slots))
    return cells.reshape(values.shape)


def pooled(weeks: Floats, deviations: Floats) -> Floats:
    """Return what weeks have in common: their precision-weighted mean, shrunk, not negative.

    Args:
        weeks: drawn numbers, shape (weeks, places, days, slots).
        deviations: of the noise of each week and day, infinite on a gap, shape (weeks, days).
    """
    precisions = deviations**-2.0
    total = precisions.sum(axis=0)
    mean = np.einsum("wd,wpds->pds", precisions / total, weeks)
    return np.maximum(shrunk_cells(mean, total**-0.5), 0)


def shrunk(matrix: Floats, deviations: Floats) -> Floats:
    """Return the matrix with its singular values shrunk.

    Columns are brought to noise of one size first. The singular vectors come from the smaller of
    the two Gram matrices, which is exact enough: what is kept lies above the edge of the noise.

    Args:
        matrix: signal and independent noise, shape (rows, columns).
        deviations: standard deviation of the noise of each column, > 0, shape (columns,).
    """
    from scipy.linalg import eigh  # a third of a second of imports, for the step that fits

    scaled = matrix / deviations
    rows, columns = scaled.shape
    longer = max(rows, columns)
    aspect = min(rows, columns) / longer
    gram = (scaled @ scaled.T if rows <= columns else scaled.T @ scaled) / longer
    edge = (1 + np.sqrt(aspect)) ** 2
    squares, vectors = eigh(gram, subset_by_value=(edge, np.inf), overwrite_a=True)
    factors = np.sqrt(np.maximum((squares - aspect - 1) ** 2 - 4 * aspect, 0)) / squares
    kept = vectors * factors
    low_rank = kept @ (vectors.T @ scaled) if rows <= columns else (scaled @ vectors) @ kept.T
    denoised: Floats = low_rank * deviations
    return denoised
