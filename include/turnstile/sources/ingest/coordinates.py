"""SQL that finds positions that cannot be, and those whose latitude and longitude were swapped."""

from __future__ import annotations

from turnstile.programme.source_spec import Extent


def on_earth_sql(latitude: str, longitude: str) -> str:
    """Return SQL that is true for a position on earth, poles and antimeridian included."""
    return f"({latitude} BETWEEN -90 AND 90 AND {longitude} BETWEEN -180 AND 180)"


def swapped_sql(extent: Extent | None) -> str:
    """Return SQL that is true where `lat` and `lon` are swapped.

    Such a position is not where it should be, but would be with its two numbers exchanged: on
    earth, or, where the programme states one, in its extent.
    """
    if extent is None:
        return f"NOT {on_earth_sql('lat', 'lon')} AND {on_earth_sql('lon', 'lat')}"
    return f"NOT {_inside_sql(extent, 'lat', 'lon')} AND {_inside_sql(extent, 'lon', 'lat')}"


def _inside_sql(extent: Extent, latitude: str, longitude: str) -> str:
    """SQL that is true within a box; one with west > east is across the antimeridian."""
    south, west, north, east = (
        float(side) for side in (extent.south, extent.west, extent.north, extent.east)
    )
    joined = "AND" if west <= east else "OR"
    return (
        f"({latitude} BETWEEN {south} AND {north} "
        f"AND ({longitude} >= {west} {joined} {longitude} <= {east}))"
    )
