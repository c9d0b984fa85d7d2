"""The real SUBE day of Buenos Aires: its week, its public grid, and where a tap lies in it."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

from turnstile_design.first_programme.grid_of_places import area_of

WEEK, DAY = "2019-W48", "2019-11-27"
# A box around the agglomeration, from the map: 34.2 to 35.2 south, 57.8 to 59.2 west.
SOUTH_TENTHS, WEST_TENTHS = range(342, 353), range(578, 593)


def grid() -> str:
    """Every cell of the box, for every mode: public, whether anybody ever taps there or not."""
    lines = ["mode,location,area"]
    for mode in ("bus", "subway", "train"):
        for south in SOUTH_TENTHS:
            for west in WEST_TENTHS:
                cell = f"-{south / 10:.1f} -{west / 10:.1f}"
                lines.append(f"{mode},{cell},{published(cell)}")
    return "\n".join(lines) + "\n"


def published(cell: str) -> str:
    """The area that a cell of the rows is published as."""
    north, east = map(Decimal, cell.split())
    return area_of(north, east)


def place_of(latitude: str, longitude: str) -> str:
    sides = (
        Decimal(side)
        .quantize(Decimal("1e-6"), ROUND_HALF_UP)
        .quantize(Decimal("0.1"), ROUND_HALF_UP)
        for side in (latitude, longitude)
    )
    return " ".join(map(str, sides))
