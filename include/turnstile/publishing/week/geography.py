"""Shapes of the public cells: H3 hexagons, or points of the published locations.

From the public domain alone: `domain.locations` for trips, the H3 index for telemetry. GeoParquet
1.1 is written directly: a column of WKB and one entry of metadata.
"""

from __future__ import annotations

import json
import struct
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from turnstile.programme.domain.public_domain import UNKNOWN, PublicDomain
from turnstile.programme.domain.public_file import open_public_file
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Programme

_DECIMALS = 6
_CELL = "cell"
_LITTLE_ENDIAN, _WKB_POINT, _WKB_POLYGON = 1, 1, 3
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
    found = []
    for label in labels:
        if label != UNKNOWN:
            corners = [_rounded(lon, lat) for lat, lon in h3.cell_to_boundary(label)]
            found.append(Feature("", label, (*corners, corners[0])))
    return tuple(found)


def _mean(positions: list[Position]) -> Position:
    """Return the mean of positions."""
    return _rounded(
        sum(x for x, _ in positions) / len(positions), sum(y for _, y in positions) / len(positions)
    )


def _rounded(longitude: float, latitude: float) -> Position:
    """Return a position to a tenth of a meter."""
    return round(longitude, _DECIMALS), round(latitude, _DECIMALS)


Numbers = Mapping[tuple[str, str], Mapping[str, float | str | None]]


def geojson(features: tuple[Feature, ...], label: str, numbers: Numbers) -> bytes:
    """Return shapes as GeoJSON (RFC 7946).

    Args:
        features: what to write.
        label: name of the column that the tables are joined by.
        numbers: further properties, by mode and label.
    """
    content = {
        "type": "FeatureCollection",
        "features": [
            {
                "type": "Feature",
                "properties": {
                    **({"mode": one.mode} if one.mode else {}),
                    label: one.label,
                    **numbers.get((one.mode, one.label), {}),
                },
                "geometry": {"type": "Point", "coordinates": one.ring[0]}
                if one.is_point
                else {"type": "Polygon", "coordinates": [one.ring]},
            }
            for one in features
        ],
    }
    return (json.dumps(content, separators=(",", ":")) + "\n").encode()


def geoparquet(features: tuple[Feature, ...], label: str) -> bytes:
    """Return shapes as GeoParquet 1.1; coordinates are longitude and latitude (OGC:CRS84)."""
    positions = [position for one in features for position in one.ring]
    geometries = sorted({"Point" if one.is_point else "Polygon" for one in features})
    bounds = [f([p[axis] for p in positions]) for f in (min, max) for axis in (0, 1)]
    about = {
        "version": "1.1.0",
        "primary_column": "geometry",
        "columns": {"geometry": {"encoding": "WKB", "geometry_types": geometries, "bbox": bounds}},
    }
    columns = {label: [one.label for one in features]}
    if any(one.mode for one in features):
        columns = {"mode": [one.mode for one in features], **columns}
    table = pa.table({**columns, "geometry": pa.array([_wkb(o) for o in features], pa.binary())})
    sink = BytesIO()
    named = table.replace_schema_metadata({b"geo": json.dumps(about).encode()})
    pq.write_table(named, sink, compression="zstd")
    return sink.getvalue()


def _wkb(feature: Feature) -> bytes:
    """Return a shape as well-known binary, little-endian."""
    if feature.is_point:
        return struct.pack("<BI2d", _LITTLE_ENDIAN, _WKB_POINT, *feature.ring[0])
    flat = [number for position in feature.ring for number in position]
    head = struct.pack("<BIII", _LITTLE_ENDIAN, _WKB_POLYGON, 1, len(feature.ring))
    return head + struct.pack(f"<{len(flat)}d", *flat)
