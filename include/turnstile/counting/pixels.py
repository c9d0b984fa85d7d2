"""Cells of positions by a table of pixels: small squares of degrees that lie inside one H3 cell.

Converting a position costs ten times a look into a table, and buses are where buses were. A pixel
is filled when a batch first has many positions in it: it holds a cell if nine points, up to half a
pixel beyond its sides, lie in one and the same cell. The sides of a hexagon bend by far less than
half a pixel, so every position in it has that cell; all others are converted one by one. Positions
of each batch are compared with the conversion.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from h3 import average_hexagon_edge_length, cell_to_latlng, int_to_str
from numpy.typing import NDArray

from turnstile.counting.cells import OUTSIDE, fine_cells, finest_listed, indices_in
from turnstile.errors import IntegrityError

_PIXELS_OF_EDGE = 20
_PIXELS_MAX = 2**24
_MARGIN_EDGES = 3
_KM_PER_DEGREE = 111.2
_WORTH_FILLING = 9  # positions in a batch: as many as a pixel costs
_COMPARED = 64  # positions of a batch
_UNSEEN, _MIXED = -3, -2
_POINTS = np.array([(row, column) for row in (-0.5, 0.5, 1.5) for column in (-0.5, 0.5, 1.5)])
Floats = NDArray[np.float64]


class PixelTable:
    """A table over the surroundings of some cells; it fills as it is used.

    Args:
        cells: shape (n,), uint64, sorted: the public cells.
        resolution: the finest of the cells, 0-15.
    """

    def __init__(self, cells: NDArray[np.uint64], resolution: int) -> None:
        self._cells, self._resolution = cells, resolution
        centers = np.array([cell_to_latlng(int_to_str(int(cell))) for cell in cells])
        edge = average_hexagon_edge_length(resolution, unit="km") / _KM_PER_DEGREE
        self._corner = centers.min(axis=0) - _MARGIN_EDGES * edge
        sides = centers.max(axis=0) + _MARGIN_EDGES * edge - self._corner
        self._step = max(edge / _PIXELS_OF_EDGE, math.sqrt(float(sides.prod()) / _PIXELS_MAX))
        self._rows, self._columns = (int(side / self._step) for side in sides)
        self._found = np.full(self._rows * self._columns, _UNSEEN, dtype=np.int32)

    def indices(self, latitudes: Floats, longitudes: Floats) -> NDArray[np.int64]:
        """Return what `cells.indices_in` returns.

        Raises:
            IntegrityError: a pixel and the conversion disagree.
        """
        rows, columns = (latitudes - self._corner[0], longitudes - self._corner[1])
        rows, columns = np.floor(rows / self._step), np.floor(columns / self._step)
        inside = (rows >= 0) & (rows < self._rows) & (columns >= 0) & (columns < self._columns)
        pixels = rows[inside].astype(np.int64) * self._columns + columns[inside].astype(np.int64)
        self._fill(pixels)
        indices = np.full(latitudes.shape, _UNSEEN, dtype=np.int64)
        indices[inside] = self._found[pixels]
        sure = np.flatnonzero(indices >= OUTSIDE)
        unsure = np.flatnonzero(indices < OUTSIDE)
        indices[unsure] = self._converted(latitudes[unsure], longitudes[unsure])
        some = sure[:: max(1, len(sure) // _COMPARED)]
        if (self._converted(latitudes[some], longitudes[some]) != indices[some]).any():
            raise IntegrityError(
                "a pixel of the table of cells and the conversion of a position disagree; "
                "nothing was counted; report this as a fault of the program"
            )
        return indices

    def _converted(self, latitudes: Floats, longitudes: Floats) -> NDArray[np.int64]:
        """Convert positions one by one."""
        return indices_in(self._cells, latitudes, longitudes, resolution=self._resolution)

    def _fill(self, pixels: NDArray[np.int64]) -> None:
        """Fill what has many positions of this batch."""
        unseen, times = np.unique(pixels[self._found[pixels] == _UNSEEN], return_counts=True)
        new = unseen[times >= _WORTH_FILLING]
        if not len(new):
            return
        places = np.stack((new // self._columns, new % self._columns), axis=1)
        points = self._corner + (places[:, None, :] + _POINTS) * self._step
        on_earth = (np.abs(points) <= (90.0, 180.0)).all(axis=(1, 2))
        new, points = new[on_earth], points[on_earth].reshape(-1, 2)
        fine = fine_cells(points[:, 0].copy(), points[:, 1].copy(), self._resolution)
        fine = fine.reshape(len(new), len(_POINTS))
        is_sure = (fine == fine[:, :1]).all(axis=1)
        self._found[new] = np.where(is_sure, finest_listed(self._cells, fine[:, 0]), _MIXED)


@cache
def pixel_table(cells: tuple[int, ...], resolution: int) -> PixelTable:
    """Return the one table of some cells in this process."""
    return PixelTable(np.array(cells, dtype=np.uint64), resolution)
