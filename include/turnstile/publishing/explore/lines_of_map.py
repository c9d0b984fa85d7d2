"""What the map shows beside the places: lines of a public file that the programme has.

The boundary of a service area, or the ways of vehicles of a public timetable (GTFS `shapes.txt`).
Positions are brought to a plane square of `SIDE` units, north up; a page of another scale needs no
degrees. Nothing here comes from rows.
"""

from __future__ import annotations

import csv
import io
import json
import math
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from turnstile.programme.domain.public_file import open_public_file, refuse
from turnstile.programme.spec import Programme
from turnstile.publishing.week.geography import Feature, Position

SIDE = 1000
_TOLERANCE = 1.5  # units that a line may be off: less than the width of its stroke
_GEOJSON = (".geojson", ".json")
_UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, zipfile.BadZipFile)
Line = list[Position]


@dataclass(frozen=True, slots=True)
class Plane:
    """How degrees become units of the map.

    Args:
        west: longitude of the left edge.
        north: latitude of the upper edge.
        by_longitude: units a degree of longitude.
        by_latitude: units a degree of latitude.
    """

    west: float
    north: float
    by_longitude: float
    by_latitude: float

    @classmethod
    def around(cls, positions: Sequence[Position]) -> Plane:
        """Return the plane in which positions fill the square, alike in both directions."""
        west, east = (pick(x for x, _ in positions) for pick in (min, max))
        south, north = (pick(y for _, y in positions) for pick in (min, max))
        narrow = math.cos(math.radians((south + north) / 2))
        scale = SIDE / max((east - west) * narrow, north - south, 1e-6)
        return cls(west, north, narrow * scale, scale)

    def place(self, position: Position) -> tuple[float, float]:
        """Return where a position lies, from the upper left corner."""
        x, y = position
        return (
            round((x - self.west) * self.by_longitude, 1),
            round((self.north - y) * self.by_latitude, 1),
        )


def lines_of(programme: Programme, include: Path, plane: Plane) -> list[list[float]]:
    """Return the lines of the map, each as its flat coordinates; none without a public file.

    Args:
        programme: that names the files.
        include: folder of public files.
        plane: of the map.
    """
    from shapely import LineString

    lines = []
    for line in public_lines(programme, include):
        simple = LineString([plane.place(position) for position in line]).simplify(_TOLERANCE)
        lines.append([round(coordinate, 1) for xy in simple.coords for coordinate in xy])
    return lines


def corners_of(features: Iterable[Feature]) -> list[Position]:
    """Return the corners of all shapes."""
    return [corner for feature in features for corner in feature.ring]


def public_lines(programme: Programme, include: Path) -> list[Line]:
    """Return the lines of the first public file that has any, in degrees.

    Raises:
        ProgrammeError: no such file, or none whose lines can be read.
    """
    area, timetable = programme.domain.service_area, programme.domain.timetable
    if area is not None and area.endswith(_GEOJSON):
        file = open_public_file(programme, "domain.service_area", area, include)
        try:
            return [*_of_geojson(json.loads(file.content))]
        except _UNREADABLE:
            refuse(area, "domain.service_area", "is no GeoJSON whose positions are numbers")
    if timetable is not None:
        file = open_public_file(programme, "domain.timetable", timetable, include)
        try:
            return [*_of_shapes(file.content)]
        except _UNREADABLE:
            rule = "shapes.txt needs shape_id, shape_pt_lat, shape_pt_lon and shape_pt_sequence"
            refuse(timetable, "domain.timetable", f"{rule}, numbers in each row, or take it out")
    return []


def _of_geojson(content: Mapping[str, Any]) -> Iterator[Line]:
    """Yield every line and ring of a GeoJSON object."""
    for part in (*content.get("features", ()), *content.get("geometries", ())):
        yield from _of_geojson(part)
    if content.get("geometry"):
        yield from _of_geojson(content["geometry"])
    yield from _lists_of_positions(content.get("coordinates", []))


def _lists_of_positions(nested: Sequence[Any]) -> Iterator[Line]:
    """Yield the innermost lists of at least two positions."""
    if not nested or isinstance(nested[0], int | float):
        return
    if isinstance(nested[0][0], int | float):
        if len(nested) > 1:
            yield [(float(position[0]), float(position[1])) for position in nested]
        return
    for part in nested:
        yield from _lists_of_positions(part)


def _of_shapes(content: bytes) -> Iterator[Line]:
    """Yield the ways of a GTFS feed, each once; none where it has no `shapes.txt`."""
    with zipfile.ZipFile(io.BytesIO(content)) as feed:
        if "shapes.txt" not in feed.namelist():
            return
        text = feed.read("shapes.txt").decode("utf-8-sig")
    ways: defaultdict[str, list[tuple[int, Position]]] = defaultdict(list)
    for row in csv.DictReader(io.StringIO(text)):
        position = (float(row["shape_pt_lon"]), float(row["shape_pt_lat"]))
        ways[row["shape_id"]].append((int(row["shape_pt_sequence"]), position))
    lines = {tuple(position for _, position in sorted(way)) for way in ways.values()}
    yield from (list(line) for line in sorted(lines) if len(line) > 1)
