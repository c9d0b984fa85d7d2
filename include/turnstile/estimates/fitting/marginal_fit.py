"""Cells fitted to their marginals by least squares, not negative. Pure.

Every cell moves by one amount for its place and one for its slot; cells that would be negative are
pinned at 0 and the rest is fitted again. Fitting in proportion, or by the cells' own free,
would load the correction onto the large cells, which are known best: what a sum of cells misses
comes from the bias that its many small ones share.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_ROUNDS_AT_MOST = 30
_FREEDOM = 1e-9  # keeps the system regular: it has one amount too many


def fitted_to_marginals(cells: Floats, of_places: Floats, of_slots: Floats) -> Floats:
    """Return the cells of one day with these sums.

    Args:
        cells: estimates >= 0, shape (places, slots).
        of_places: sums over slots, >= 0, shape (places,).
        of_slots: sums over places, >= 0, with the same total, shape (slots,).
    """
    fitted, free = cells, np.ones(cells.shape, dtype=np.bool_)
    free[of_places <= 0, :] = False
    free[:, of_slots <= 0] = False
    for _ in range(_ROUNDS_AT_MOST):
        start = np.where(free, cells, 0.0)
        fitted = start + _correction(start, free.astype(np.float64), of_places, of_slots)
        negative = free & (fitted < 0)
        if not negative.any():
            break
        free &= ~negative
    return np.maximum(fitted, 0)


def _correction(cells: Floats, free: Floats, of_places: Floats, of_slots: Floats) -> Floats:
    """Return what is added to free cells, by elimination of the amounts of the longer axis."""
    if cells.shape[0] < cells.shape[1]:
        return _correction(cells.T, free.T, of_slots, of_places).T
    missing_places = of_places - cells.sum(axis=1)
    missing_slots = of_slots - cells.sum(axis=0)
    by_place = free.sum(axis=1)
    inverse = np.divide(1.0, by_place, out=np.zeros(by_place.shape), where=by_place > 0)
    carried = free * inverse[:, None]
    by_slot = free.sum(axis=0)
    system = np.diag(by_slot) - free.T @ carried
    system += np.diag(np.where(by_slot > 0, _FREEDOM * by_slot, 1.0))
    slots = np.linalg.solve(system, missing_slots - carried.T @ missing_places)
    places = inverse * (missing_places - free @ slots)
    correction: Floats = free * (places[:, None] + slots[None, :])
    return correction
