"""Regions and zones of published locations: H3 cells of two resolutions, from public coordinates.

An authority that has regions of its own (councils, statistical areas) writes the file by hand:
`area,region,zone`. A location lies where the mean of its stops lies, over all modes.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from turnstile.errors import InputError
from turnstile.programme.domain.csv_text import csv_text

HEADER = ("area", "region", "zone")
_COLUMNS = ("area", "latitude", "longitude")


def read_areas(path: Path) -> dict[str, tuple[float, float]]:
    """Return the mean latitude and longitude of each published location of a domain file.

    Raises:
        InputError: no such file, or it lacks a column or a coordinate.
    """
    stops: dict[str, list[tuple[float, float]]] = defaultdict(list)
    try:
        with path.open(encoding="utf-8-sig", newline="") as opened:
            for row in csv.DictReader(opened):
                area, latitude, longitude = (row[column] for column in _COLUMNS)
                stops[area].append((float(latitude), float(longitude)))
    except (OSError, KeyError, TypeError, ValueError, csv.Error):
        rule = f"is no CSV file with {', '.join(_COLUMNS)}; turnstile domain build writes one"
        raise InputError(where=path.name, field="locations", rule=rule) from None
    return {
        area: (
            sum(latitude for latitude, _ in coordinates) / len(coordinates),
            sum(longitude for _, longitude in coordinates) / len(coordinates),
        )
        for area, coordinates in stops.items()
    }


def regions_csv(areas: Mapping[str, tuple[float, float]], coarse: int, fine: int) -> str:
    """Return the text of a file of regions; a zone is an H3 cell, and its region the parent.

    Args:
        areas: latitude and longitude of each, degrees.
        coarse: resolution of regions, 0 to 15.
        fine: resolution of zones, above that.

    Examples:
        >>> print(regions_csv({"Central": (-33.883, 151.206)}, 5, 6), end="")
        area,region,zone
        Central,85be0e37fffffff,86be0e347ffffff
    """
    import h3

    zones = ((area, h3.latlng_to_cell(*place, fine)) for area, place in sorted(areas.items()))
    return csv_text(HEADER, ((area, h3.cell_to_parent(zone, coarse), zone) for area, zone in zones))
