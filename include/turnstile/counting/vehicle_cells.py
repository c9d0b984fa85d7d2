"""How readings of vehicles become cells of tables: slots, H3 cells, and what public lists name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from turnstile.counting.cells import OUTSIDE, cell_numbers, indices_in
from turnstile.counting.engine import Connection
from turnstile.counting.pixels import NO_PIXELS, PixelTable, pixel_table
from turnstile.duckdb_engine import text
from turnstile.programme.counting_chain import chain_of
from turnstile.programme.domain.public_domain import UNKNOWN, Dimension, PublicDomain
from turnstile.programme.spec import Programme

Converter = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.int64]]
SLOT, CELL = "slot", "cell"


@dataclass(frozen=True, slots=True)
class VehicleCells:
    """How readings become cells of tables.

    Args:
        to_cells: latitudes and longitudes to whole numbers; `OUTSIDE` drops a reading.
        outside_slot: number of the slot of all other times; `OUTSIDE` drops them.
        pixels: as `to_cells`, for most positions.
        axes: dimensions of the tables.
        listed: (category, value in the rows, index of its label); others are of its last entry,
            whose value is None.
    """

    to_cells: Converter
    outside_slot: int = OUTSIDE
    pixels: PixelTable = NO_PIXELS
    axes: tuple[str, ...] = (SLOT, CELL)
    listed: tuple[tuple[str, str | None, int], ...] = ()

    @property
    def categories(self) -> tuple[str, ...]:
        """The dimensions that are columns of the rows."""
        return tuple(axis for axis in self.axes if axis not in {SLOT, CELL})


def vehicle_cells(programme: Programme, domain: PublicDomain) -> VehicleCells:
    """Return how readings become cells of a programme's tables, which all have the same."""
    mode, axes = domain.modes[0], chain_of(programme, programme.tables[0]).project.tables[0]
    to_cells, pixels = _cells_of(domain.dimension(mode, CELL), programme.domain.h3_resolution)
    if programme.source.feed.names_stops:  # calls at stops have no position, nor tables hexagons
        to_cells, pixels = _no_cells, NO_PIXELS
    listed: list[tuple[str, str | None, int]] = []
    for axis in (domain.dimension(mode, name) for name in axes if name not in {SLOT, CELL}):
        index = {label: place for place, label in enumerate(axis.labels)}
        pairs = [(value, label) for name, value, label in domain.listed if name == axis.name]
        listed += [(axis.name, value, index[label]) for value, label in pairs]
        listed.append((axis.name, None, OUTSIDE if axis.unknown is None else axis.unknown))
    slots = domain.dimension(mode, SLOT)
    return VehicleCells(
        to_cells, OUTSIDE if slots.unknown is None else slots.unknown, pixels, axes, tuple(listed)
    )


def install_lookups(connection: Connection, cells: VehicleCells) -> None:
    """Put the pixels and the values that public lists name into the engine."""
    categories, values, labels = (
        [entry[place] for entry in cells.listed if entry[1] is not None] for place in range(3)
    )
    kinds = (pa.string(), pa.string(), pa.int64())
    columns = [
        pa.array(column, kind)
        for column, kind in zip((categories, values, labels), kinds, strict=True)
    ]
    listed = pa.table(columns, ("category", "value", "label"))
    for name, table in (("pixels", pa.table(cells.pixels.known)), ("listed", listed)):
        connection.register("given", table)
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS FROM given")
        connection.unregister("given")


def labels_sql(cells: VehicleCells) -> str:
    """Return the SQL of the index of each category's label."""
    unknown = {name: label for name, value, label in cells.listed if value is None}
    return "".join(
        f", coalesce(listed_{name}.label, {unknown[name]})::INTEGER AS {name}"
        for name in cells.categories
    )


def joins_sql(cells: VehicleCells) -> str:
    """Return the SQL of the joins of the public lists."""
    return " ".join(
        f"LEFT JOIN listed AS listed_{name} ON listed_{name}.category = {text(name)} "
        f"AND reading.{name} = listed_{name}.value"
        for name in cells.categories
    )


def _no_cells(latitudes: NDArray[np.float64], _: NDArray[np.float64]) -> NDArray[np.int64]:
    """Put every position into one cell."""
    return np.zeros(latitudes.shape, dtype=np.int64)


def _cells_of(axis: Dimension, resolution: int | None) -> tuple[Converter, PixelTable]:
    """Return what turns positions into indices on the axis of cells: one by one, and by pixels."""
    if resolution is None:
        raise ValueError("telemetry needs a resolution of its cells")
    cells = cell_numbers(tuple(label for label in axis.labels if label != UNKNOWN))
    pixels = pixel_table(tuple(cells.tolist()), resolution)
    if axis.unknown is not None:
        pixels = pixels.with_outside(axis.unknown)

    def convert(
        latitudes: NDArray[np.float64], longitudes: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        indices = indices_in(cells, latitudes, longitudes, resolution=resolution)
        return indices if axis.unknown is None else np.where(indices < 0, axis.unknown, indices)

    return convert, pixels
