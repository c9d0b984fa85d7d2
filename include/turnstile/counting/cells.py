"""H3 cells of positions, in bulk: indices in the public list of cells, nothing else leaves.

h3ronpy (the Rust port of H3) converts whole arrays at twice the speed of the `h3` package,
which is the reference in tests. The two agree but for points within rounding error of a cell's
border, where either cell is right.
"""

from __future__ import annotations

import numpy as np
from h3ronpy.vector import coordinates_to_cells
from numpy.typing import NDArray

OUTSIDE = -1
_RESOLUTION_SHIFT, _RESOLUTION_BITS = np.uint64(52), np.uint64(0xF)
_DIGIT_BITS = 3  # an H3 index ends in fifteen digits, one a resolution; unused ones are 7
_FINEST = 15
_LATITUDE_MAX, _LONGITUDE_MAX = 90.0, 180.0
_HEXADECIMAL = 16


def cell_numbers(labels: tuple[str, ...]) -> NDArray[np.uint64]:
    """Return H3 names as integers, in the same order."""
    return np.array([int(label, _HEXADECIMAL) for label in labels], dtype=np.uint64)


def indices_in(
    cells: NDArray[np.uint64],
    latitudes: NDArray[np.float64],
    longitudes: NDArray[np.float64],
    *,
    resolution: int,
) -> NDArray[np.int64]:
    """Return the index of each position's cell in a sorted list of cells, or `OUTSIDE`.

    The list may mix resolutions: a position belongs to the finest listed cell that its own cell of
    the finest resolution descends from, so to one cell at most, whichever cells are listed.

    Args:
        cells: shape (n,), uint64, sorted: the public cells.
        latitudes: shape (m,), degrees; not a number, or beyond 90, is outside.
        longitudes: shape (m,), degrees; not a number, or beyond 180, is outside.
        resolution: the finest of the cells, 0-15.

    Returns:
        shape (m,), int64, -1 to n - 1.
    """
    indices = np.full(latitudes.shape, OUTSIDE, dtype=np.int64)
    on_earth = (np.abs(latitudes) <= _LATITUDE_MAX) & (np.abs(longitudes) <= _LONGITUDE_MAX)
    if not on_earth.any():
        return indices
    position_cells = fine_cells(latitudes[on_earth], longitudes[on_earth], resolution)
    indices[on_earth] = finest_listed(cells, position_cells)
    return indices


def fine_cells(
    latitudes: NDArray[np.float64], longitudes: NDArray[np.float64], resolution: int
) -> NDArray[np.uint64]:
    """Return the H3 cells of positions on Earth, shape (m,), uint64."""
    return np.asarray(coordinates_to_cells(latitudes, longitudes, resolution)).astype(np.uint64)


def resolutions_of(cells: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the resolution of each cell, shape (n,), int64."""
    return ((cells >> _RESOLUTION_SHIFT) & _RESOLUTION_BITS).astype(np.int64)


def ancestors_of(cells: NDArray[np.uint64], resolution: int) -> NDArray[np.uint64]:
    """Return the cells of a coarser resolution that these descend from, by H3's own bits.

    Args:
        cells: shape (n,), uint64, of this resolution or finer ones.
        resolution: 0-15.
    """
    unused = np.uint64((1 << _DIGIT_BITS * (_FINEST - resolution)) - 1)
    without_resolution = cells & ~(_RESOLUTION_BITS << _RESOLUTION_SHIFT)
    return without_resolution | np.uint64(resolution) << _RESOLUTION_SHIFT | unused


def finest_listed(cells: NDArray[np.uint64], descendants: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the index of the finest listed cell that holds each found cell, or `OUTSIDE`.

    Args:
        cells: shape (n,), uint64, sorted.
        descendants: shape (m,), uint64, of the finest resolution of the cells or finer.
    """
    indices = np.full(descendants.shape, OUTSIDE, dtype=np.int64)
    for resolution in sorted(set(resolutions_of(cells).tolist())):
        wanted = ancestors_of(descendants, resolution)
        candidates = np.minimum(np.searchsorted(cells, wanted), len(cells) - 1)
        indices = np.where(cells[candidates] == wanted, candidates, indices)
    return indices
