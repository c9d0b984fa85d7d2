"""A public grid of places for taps that name a position and no stop: the cells around public stops.

Cells are named as `sources.feeds.taps` names them: latitude and longitude of the center, rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal

from turnstile.programme.domain.building import BuiltDomain, BuiltPlace, Stop

DECIMALS = 2  # about 1 km


def grid_domain(stops: Sequence[Stop]) -> BuiltDomain:
    """Return the cell of every stop and its eight neighbours, for each mode of the stop.

    Args:
        stops: of a public feed; those without coordinates are left out.
    """
    step = Decimal(1).scaleb(-DECIMALS)
    around = (-step, Decimal(0), step)
    cells = {
        (mode, north, east)
        for stop in stops
        if stop.latitude is not None and stop.longitude is not None
        for mode in stop.modes
        for north in (_rounded(stop.latitude, step) + way for way in around)
        for east in (_rounded(stop.longitude, step) + way for way in around)
    }
    places = [
        BuiltPlace(mode, cell_of(north, east), area_of(north, east), float(north), float(east))
        for mode, north, east in sorted(cells)
    ]
    return BuiltDomain(tuple(places))


def cell_of(north: Decimal, east: Decimal) -> str:
    """Return the name that rows have of a cell.

    Examples:
        >>> cell_of(Decimal("-34.6"), Decimal("-58.4"))
        '-34.6 -58.4'
    """
    return " ".join(str(abs(side) if side == 0 else side) for side in (north, east))


def area_of(north: Decimal, east: Decimal) -> str:
    """Return the name that a cell is published under: no spreadsheet takes it for a formula.

    Examples:
        >>> area_of(Decimal("-34.6"), Decimal("-58.4"))
        '34.6S 58.4W'
    """
    return f"{abs(north)}{'S' if north < 0 else 'N'} {abs(east)}{'W' if east < 0 else 'E'}"


def _rounded(degrees: float, step: Decimal) -> Decimal:
    """Round away from 0 at the border of two cells, as rows are."""
    of_rows = Decimal(str(degrees)).quantize(Decimal("1e-6"), ROUND_HALF_UP)
    return of_rows.quantize(step, ROUND_HALF_UP)
