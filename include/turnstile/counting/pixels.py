"""Cells of positions by a table of pixels: small squares that one H3 cell fills, or two share.

Converting a position costs ten times a look into a table, which is a plain join of the engine. A
pixel is known by the centres of itself and of its eight neighbours. All in one cell: cells are
convex, so the pixel lies in it. In two cells: no corner of a third is in the pixel (it is wider
than a right angle, so it would hold one of the nine), and the side that the two share says which it
is, but for positions very near it. All other positions are converted one by one. The table is made
from the public list of cells alone and compared with the conversion when it is made.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import h3
import numpy as np
from numpy.typing import NDArray

from turnstile.counting.cells import OUTSIDE, fine_cells, finest_listed, indices_in
from turnstile.errors import IntegrityError

_PIXELS_OF_EDGE, _LEAST_OF_EDGE = 16, 4  # wanted, and the fewest for which the above holds
_PIXELS_MAX = 2**19
_MARGIN_EDGES = 3
_KM_PER_DEGREE = 111.2
_FARTHEST = (80.0, 180.0)  # degrees; nearer to a pole or across the antimeridian all are converted
_NEAR = 0.03  # pixels from a side
_FAR = 1e9  # pixels; not a number compares as more
_ALONG = np.array([[0.1], [0.3], [0.5], [0.7], [0.9]])  # of a side: where it is compared
_COMPARED = 2000  # positions spread over the table
_CELLS = ("first", "second")
_NO_SIDE = (0.0, 0.0, 1.0)
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Grid:
    """Pixels over a box of degrees.

    Args:
        south: least latitude.
        west: least longitude.
        height: of a pixel, degrees.
        width: of a pixel, degrees.
        rows: how many, from the south.
        columns: how many, from the west.
    """

    south: float
    west: float
    height: float
    width: float
    rows: int
    columns: int

    def positions(self, places: Floats) -> tuple[Floats, Floats]:
        """Return latitudes and longitudes of places in pixels: rows and columns, shape (n, 2)."""
        return self.south + places[:, 0] * self.height, self.west + places[:, 1] * self.width

    def places(self, positions: Floats) -> Floats:
        """Return the places in pixels of latitudes and longitudes, shape (n, 2)."""
        return np.asarray((positions - (self.south, self.west)) / (self.height, self.width))


@dataclass(frozen=True, slots=True)
class PixelTable:
    """What is known of some pixels; of all others nothing is.

    Args:
        grid: where they lie.
        known: columns `pixel`, `first`, `second`, `a`, `b`, `c`, a row for each pixel and one for
            all that is beyond them: a position at (row, column) is in `first` where
            a * row + b * column + c is above `_NEAR`, in `second` where it is below the opposite;
            all zeros tell nothing. Cells are indices in the public list, or `OUTSIDE`.
    """

    grid: Grid
    known: dict[str, NDArray[Any]]

    def cell_sql(self, rows: str, pixels: str) -> str:
        """Return the SELECT of a relation's columns and the integer `cell`; NULL: to be converted.

        Args:
            rows: relation with `latitude` and `longitude`.
            pixels: relation of `known`.
        """
        grid = self.grid
        side = "a * at_row + b * at_column + c"
        return f"""
            SELECT placed.*, CASE WHEN {side} BETWEEN {_NEAR} AND {_FAR} THEN first
                WHEN {side} < -{_NEAR} THEN second END AS cell
            FROM (
                SELECT *, (latitude - {grid.south!r}) / {grid.height!r} AS at_row,
                    (longitude - {grid.west!r}) / {grid.width!r} AS at_column
                FROM {rows}
            ) AS placed
            JOIN {pixels} ON pixel = CASE
                WHEN at_row >= 0 AND at_row < {grid.rows}
                AND at_column >= 0 AND at_column < {grid.columns}
                THEN floor(at_row)::INTEGER * {grid.columns} + floor(at_column)::INTEGER
                ELSE {grid.rows * grid.columns} END
        """  # noqa: S608 - numbers and names of ours

    def with_outside(self, index: int) -> PixelTable:
        """Return the table with another index for what is outside."""
        cells = {
            name: np.where(self.known[name] == OUTSIDE, index, self.known[name]) for name in _CELLS
        }
        return replace(self, known=self.known | cells)

    def compare(self, cells: NDArray[np.uint64], resolution: int) -> None:
        """Compare the table with the conversion, at places spread over its pixels.

        Raises:
            IntegrityError: they disagree.
        """
        pixels = np.linspace(0, len(self.known["pixel"]) - 2, _COMPARED).astype(int)
        first, second, a, b, c = (self.known[name][pixels] for name in (*_CELLS, *"abc"))
        inside = np.stack([np.arange(_COMPARED) * step % 1 for step in (0.7548777, 0.5698403)], 1)
        row, column = np.divmod(pixels, self.grid.columns)
        places = np.stack((row, column), axis=1) + inside
        side = a * places[:, 0] + b * places[:, 1] + c
        tabulated = np.where(side > 0, first, second)
        wanted = indices_in(cells, *self.grid.positions(places), resolution=resolution)
        if (tabulated != wanted)[np.abs(side) > _NEAR].any():
            raise IntegrityError(
                "a pixel of the table of cells and the conversion of a position disagree; "
                "nothing was counted; report this as a fault of the program"
            )


NO_PIXELS = PixelTable(
    Grid(0.0, 0.0, 1.0, 1.0, 0, 0),
    {name: np.zeros(1, dtype=np.int32) for name in ("pixel", *_CELLS)}
    | {name: np.zeros(1) for name in "abc"},
)


@cache
def pixel_table(cells: tuple[int, ...], resolution: int) -> PixelTable:
    """Return the table over the surroundings of some cells, made once in this process.

    Args:
        cells: sorted: the public cells.
        resolution: the finest of the cells, 0-15.

    Raises:
        IntegrityError: the table and the conversion of positions disagree.
    """
    listed = np.array(cells, dtype=np.uint64)
    grid = _grid(listed, resolution)
    table = PixelTable(grid, _known(grid, listed, resolution))
    if grid.rows * grid.columns:
        table.compare(listed, resolution)
    return table


def _grid(cells: NDArray[np.uint64], resolution: int) -> Grid:
    """Return square pixels, a small part of a cell's edge; none where they cannot be."""
    centres = np.array([h3.cell_to_latlng(h3.int_to_str(int(cell))) for cell in cells])
    edge = h3.average_hexagon_edge_length(resolution, unit="km") / _KM_PER_DEGREE
    wider = 1 / math.cos(math.radians(float(centres[:, 0].mean())))
    margin = _MARGIN_EDGES * edge * np.array([1, wider])
    low, high = centres.min(axis=0) - margin, centres.max(axis=0) + margin
    south, west = low.tolist()
    height, width = (high - low).tolist()
    step = max(edge / _PIXELS_OF_EDGE, math.sqrt(height * width / wider / _PIXELS_MAX))
    rows, columns = int(height / step), int(width / step / wider)
    is_far = (np.abs((low, high)) > _FARTHEST).any()
    if is_far or step > edge / _LEAST_OF_EDGE:
        rows = columns = 0
    return Grid(south, west, step, step * wider, rows, columns)


def _known(grid: Grid, cells: NDArray[np.uint64], resolution: int) -> dict[str, NDArray[Any]]:
    """Return the columns of a table."""
    if not grid.rows * grid.columns:
        return NO_PIXELS.known
    rows, columns = grid.rows, grid.columns
    centres = np.indices((rows + 2, columns + 2)).reshape(2, -1).T.astype(np.float64) - 0.5
    fine = fine_cells(*grid.positions(centres), resolution).reshape(rows + 2, columns + 2)
    nine = np.stack(
        [
            fine[row : row + rows, column : column + columns].ravel()
            for row in range(3)
            for column in range(3)
        ]
    )
    low, high = nine.min(axis=0), nine.max(axis=0)
    listed = finest_listed(cells, nine.ravel()).reshape(nine.shape)
    is_one = (listed == listed[0]).all(axis=0)
    is_two = ((nine == low) | (nine == high)).all(axis=0) & ~is_one
    pairs, pair = np.unique(
        np.stack((low[is_two], high[is_two]), axis=1), axis=0, return_inverse=True
    )
    sides = np.array([_side(grid, cell_pair, resolution) for cell_pair in pairs]).reshape(-1, 3)
    side = np.zeros((len(low) + 1, 3))
    side[:-1][is_one] = _NO_SIDE
    side[:-1][is_two] = sides[pair.ravel()]
    first, second = (
        finest_listed(cells, np.append(extremes, cells[:1])) for extremes in (low, high)
    )
    return {
        "pixel": np.arange(len(side), dtype=np.int32),
        **dict(zip(_CELLS, (first.astype(np.int32), second.astype(np.int32)), strict=True)),
        **dict(zip("abc", side.T.copy(), strict=True)),
    }


def _side(grid: Grid, pair: NDArray[np.uint64], resolution: int) -> Floats:
    """Return the line of the side that two cells share, above zero in the first; zeros: no such."""
    names = [h3.int_to_str(int(cell)) for cell in pair]
    if not h3.are_neighbor_cells(*names):
        return np.zeros(3)
    ends = grid.places(np.array(h3.directed_edge_to_boundary(h3.cells_to_directed_edge(*names))))
    along = (ends[-1] - ends[0]) / np.hypot(*(ends[-1] - ends[0]))
    across = np.array([along[1], -along[0]])
    inside = grid.places(np.array([h3.cell_to_latlng(names[0])]))[0]
    across *= np.sign(across @ (inside - ends[0]))
    points = ends[0] + _ALONG * (ends[-1] - ends[0])
    for cell, offset in zip(pair, (_NEAR, -_NEAR), strict=True):  # a side bends less than that
        cells = fine_cells(*grid.positions(points + offset * across), resolution)
        if (cells != cell).any():
            return np.zeros(3)
    return np.append(across, -across @ ends[0])
