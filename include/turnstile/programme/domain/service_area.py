"""H3 cells of a service area: of a polygon, of a list of cells, or of stops and a ring around them.

H3 is the hexagonal grid of Uber (h3geo.org). A cell belongs to a polygon if the center of the cell
lies in it. Public geometry only; positions of vehicles never come here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import h3


def cells_of_polygon(geometry: dict[str, Any], resolution: int) -> tuple[str, ...]:
    """Return the cells whose centers lie in a GeoJSON Polygon or MultiPolygon, sorted.

    Args:
        geometry: GeoJSON geometry object, longitude before latitude.
        resolution: 0-15.

    Raises:
        ValueError: the geometry is no polygon, or covers the center of no cell.
    """
    if geometry.get("type") not in ("Polygon", "MultiPolygon"):
        raise ValueError("holds no Polygon or MultiPolygon; draw the service area as one")
    try:
        cells = h3.geo_to_cells(geometry, resolution)
    except (ValueError, TypeError, KeyError, IndexError):
        raise ValueError("is a broken polygon; close its rings, longitude first") from None
    if not cells:
        raise ValueError(
            f"covers the center of no cell of resolution {resolution}; "
            "use a larger polygon or a finer resolution"
        )
    return tuple(sorted(cells))


def cells_around(
    stops: Iterable[tuple[float, float]], resolution: int, ring_cells: int
) -> tuple[str, ...]:
    """Return the cells of stops and those at most so many steps away, sorted.

    Args:
        stops: pairs (latitude, longitude), degrees.
        resolution: 0-15.
        ring_cells: steps around each stop's cell, >= 0.

    Examples:
        >>> len(cells_around([(21.17, 72.83)], 7, 1))
        7
    """
    of_stops = {h3.latlng_to_cell(latitude, longitude, resolution) for latitude, longitude in stops}
    disks = (h3.grid_disk(cell, ring_cells) for cell in of_stops)
    return tuple(sorted({cell for disk in disks for cell in disk}))


def checked_cell(text: str, finest: int, coarsest: int) -> str:
    """Return a cell's name in H3's own spelling.

    Raises:
        ValueError: no cell, or one of another resolution.
    """
    cell = text.strip().lower()
    if not h3.is_valid_cell(cell):
        raise ValueError("is no H3 cell; write for example 8742d9d6bffffff")
    if not coarsest <= h3.get_resolution(cell) <= finest:
        allowed = str(finest) if finest == coarsest else f"{coarsest} to {finest}"
        raise ValueError(
            f"has resolution {h3.get_resolution(cell)}, but the programme says {allowed}"
        )
    return cell
