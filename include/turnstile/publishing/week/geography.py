"""Shapes of the public cells: H3 hexagons, or points of the published locations.

From the public domain alone: `domain.locations` for trips, the H3 index for telemetry.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from turnstile.programme.domain.public_domain import UNKNOWN, PublicDomain
from turnstile.programme.domain.public_file import open_public_file
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Programme

_DECIMALS = 6
_CELL = "cell"
Position = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Feature:
    """One cell or location.

    Args:
        mode: whose location; empty for H3 cells.
        label: as in the tables.
        ring: longitude and latitude of a closed ring, or of the one point.
    """

    mode: str
    label: str
    ring: tuple[Position, ...]

    @property
    def is_point(self) -> bool:
        """Whether this is a point."""
        return len(self.ring) == 1

    @property
    def center(self) -> Position:
        """Mean of the corners."""
        corners = self.ring if self.is_point else self.ring[:-1]
        return (
            sum(x for x, _ in corners) / len(corners),
            sum(y for _, y in corners) / len(corners),
        )


def features_of(programme: Programme, domain: PublicDomain, include: Path) -> tuple[Feature, ...]:
    """Return the shape of every public cell; of a location, the mean of the stops it stands for.

    A location file without coordinates has no shapes, and tables without H3 cells have none.
    """
    if programme.source.feed.shape is RowShape.TELEMETRY:
        return _hexagons(domain) if _CELL in programme.tables[0].by else ()
    file = open_public_file(programme, "domain.locations", programme.domain.locations, include)
    if not {"latitude", "longitude"} <= set(file.columns()):
        return ()
    stops: dict[tuple[str, str], list[Position]] = defaultdict(list)
    known = {(place.mode, place.location) for place in domain.places}
    for _, (mode, location, area, latitude, longitude) in file.rows(
        "mode", "location", "area", "latitude", "longitude"
    ):
        if (mode, location) in known:
            stops[mode, area].append((float(longitude), float(latitude)))
    return tuple(
        Feature(mode, area, (_mean(positions),))
        for (mode, area), positions in sorted(stops.items())
    )


def _hexagons(domain: PublicDomain) -> tuple[Feature, ...]:
    """Return the hexagon of each H3 cell."""
    import h3

    labels = domain.dimension(domain.modes[0], _CELL).labels
    hexagons = []
    for label in labels:
        if label != UNKNOWN:
            corners = [_rounded(lon, lat) for lat, lon in h3.cell_to_boundary(label)]
            hexagons.append(Feature("", label, (*corners, corners[0])))
    return tuple(hexagons)


def _mean(positions: list[Position]) -> Position:
    return _rounded(
        sum(x for x, _ in positions) / len(positions), sum(y for _, y in positions) / len(positions)
    )


def _rounded(longitude: float, latitude: float) -> Position:
    """Return a position to a tenth of a meter."""
    return round(longitude, _DECIMALS), round(latitude, _DECIMALS)


Place = tuple[str, str]
"""Mode, empty where rows name none, and label."""
Numbers = Mapping[Place, Mapping[str, float | str | None]]


def keys_of_rows(mode: str, label: str) -> tuple[Place, Place]:
    """Return what rows call the place of a shape: with its mode, or without where there is one."""
    return (mode, label), ("", label)


def geojson(features: tuple[Feature, ...], label: str, numbers: Numbers) -> bytes:
    """Return shapes as GeoJSON (RFC 7946).

    Args:
        features: what to write.
        label: name of the column that the tables are joined by.
        numbers: further properties, by place as rows name it.
    """
    content = {
        "type": "FeatureCollection",
        "features": [
            {
                "type": "Feature",
                "properties": {
                    **({"mode": feature.mode} if feature.mode else {}),
                    label: feature.label,
                    **next((numbers[key] for key in keys if key in numbers), {}),
                },
                "geometry": {"type": "Point", "coordinates": feature.ring[0]}
                if feature.is_point
                else {"type": "Polygon", "coordinates": [feature.ring]},
            }
            for feature in features
            for keys in [keys_of_rows(feature.mode, feature.label)]
        ],
    }
    return (json.dumps(content, separators=(",", ":")) + "\n").encode()
