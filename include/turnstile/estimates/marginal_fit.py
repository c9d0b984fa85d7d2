"""Cells fitted to their marginals by least squares in their own variances, not negative. Pure.

Proportional fitting would load every correction onto the large cells, which are known best. Here
cell (p, s) moves by v_ps (m_p + l_s), v its own variance, with one multiplier for each place and
each slot; cells that would be negative are pinned at 0 and the rest is fitted again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_ROUNDS_AT_MOST = 30
_FREEDOM = 1e-9  # keeps the system of multipliers regular: it has one too many


def fitted_to_marginals(
    cells: Floats, variances: Floats, of_places: Floats, of_slots: Floats
) -> Floats:
    """Return the cells of one day with these sums.

    Args:
        cells: estimates >= 0, shape (places, slots).
        variances: of each, > 0.
        of_places: sums over slots, >= 0, shape (places,).
        of_slots: sums over places, >= 0, with the same total, shape (slots,).
    """
    found, free = cells, np.ones(cells.shape, dtype=np.bool_)
    free[of_places <= 0, :] = False
    free[:, of_slots <= 0] = False
    for _ in range(_ROUNDS_AT_MOST):
        start = np.where(free, cells, 0.0)
        found = start + _correction(start, np.where(free, variances, 0.0), of_places, of_slots)
        negative = free & (found < 0)
        if not negative.any():
            break
        free &= ~negative
    return np.maximum(found, 0)


def _correction(cells: Floats, variances: Floats, of_places: Floats, of_slots: Floats) -> Floats:
    """Return what is added to the cells, by elimination of the multipliers of the longer side."""
    if cells.shape[0] < cells.shape[1]:
        return _correction(cells.T, variances.T, of_slots, of_places).T
    missing_places = of_places - cells.sum(axis=1)
    missing_slots = of_slots - cells.sum(axis=0)
    by_place = variances.sum(axis=1)
    inverse = np.divide(1.0, by_place, out=np.zeros(by_place.shape), where=by_place > 0)
    carried = variances * inverse[:, None]
    by_slot = variances.sum(axis=0)
    system = np.diag(by_slot) - variances.T @ carried
    system += np.diag(np.where(by_slot > 0, _FREEDOM * by_slot, 1.0))
    slots = np.linalg.solve(system, missing_slots - carried.T @ missing_places)
    places = inverse * (missing_places - variances @ slots)
    found: Floats = variances * (places[:, None] + slots[None, :])
    return found
