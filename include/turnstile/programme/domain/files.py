"""Reads the public domain of a programme from its files under `include/`.

The only arguments are the programme and that folder, and a file outside of it is refused: a domain
that was read from the data cannot be made here (docs/PRIVACY.md, public domains).
"""

from __future__ import annotations

import json
from enum import Enum
from functools import lru_cache
from pathlib import Path

from turnstile.programme.domain.mode_slots import is_all_day, slots_by_mode
from turnstile.programme.domain.public_domain import (
    PERIOD,
    UNKNOWN,
    Dimension,
    ModeCells,
    Place,
    PublicDomain,
    public_domain,
)
from turnstile.programme.domain.public_file import PublicFile, check_label, open_public_file, refuse
from turnstile.programme.domain.public_lists import public_lists
from turnstile.programme.domain.service_area import cells_around, cells_of_polygon, checked_cell
from turnstile.programme.fields import categories
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import DomainSpec, Outside, Programme

_READ_AT_MOST = 8  # lookups of places that a process keeps
_LATITUDE_MAX, _LONGITUDE_MAX = 90.0, 180.0


def load_domain(programme: Programme, include: Path) -> PublicDomain:
    """Return the public cells of a programme.

    Args:
        programme: names the files and the slots.
        include: folder of `domains/`.

    Raises:
        ProgrammeError: a file is missing, lies outside of `include`, or breaks a rule; or a table
            asks for a dimension that the rows do not have.
    """
    trips = programme.source.feed.shape is RowShape.TRIPS
    domain = _trip_domain(programme, include) if trips else _telemetry_domain(programme, include)
    known = [axis.name for axis in domain.cells_by_mode[0].dimensions]
    for table in programme.tables:
        if unknown := set(table.by) - set(known):
            rule = f"no dimension {min(unknown)!r}; use some of {', '.join(known)}"
            refuse(f"{programme.name}.yaml", f"tables.{table.name}.by", rule)
    return domain


def _axis(
    name: str, labels: tuple[str, ...], domain: DomainSpec, *, can_miss: bool = True
) -> Dimension:
    """Return an axis; it ends with UNKNOWN if a row can lie outside and is kept then."""
    keeps = can_miss and domain.outside is Outside.UNKNOWN
    return Dimension(name, (*labels, UNKNOWN) if keeps else labels)


def _trip_domain(programme: Programme, include: Path) -> PublicDomain:
    """Read slots and areas of every mode."""
    file = open_public_file(programme, "domain.locations", programme.domain.locations, include)
    places = _places(file, programme.source.modes)
    more = public_lists(programme, include)
    places = more.zoned(places)
    domain, length = programme.domain, programme.time.slot_minutes
    slots, hours_version = slots_by_mode(programme, include)
    cells_by_mode = []
    for mode in programme.source.modes:
        areas = tuple(sorted({place.area for place in places if place.mode == mode}))
        if not areas:
            refuse(file.name, "mode", f"no location of mode {mode!r}; add its locations")
        axes = (
            # A tap-on always has a time, so it misses the slots only if these leave a gap.
            _axis("tap_on_slot", slots[mode], domain, can_miss=not is_all_day(slots[mode], length)),
            _axis("tap_on_location", areas, domain),
            _axis("tap_off_slot", slots[mode], domain),
            _axis("tap_off_location", areas, domain),
            *(
                _axis(field.name, field.labels, domain)
                for field in categories(RowShape.TRIPS)
                if field.labels and any(field.name in table.by for table in programme.tables)
            ),
            *(
                _axis(name, labels, domain, can_miss=name != PERIOD)
                for name, labels in more.axes(tuple(p for p in places if p.mode == mode))
                if any(name in table.by for table in programme.tables)
            ),
        )
        cells_by_mode.append(ModeCells(mode, axes))
    versions = (file.version, hours_version, *more.versions)
    version = ", ".join(name for name in versions if name)
    return public_domain(version, tuple(cells_by_mode), places, more.listed)


@lru_cache(_READ_AT_MOST)  # every step of a week opens its domain anew
def _places(file: PublicFile, modes: tuple[str, ...]) -> tuple[Place, ...]:
    """Read the lookup of locations; lines of modes that the programme does not have are unused."""
    seen: dict[tuple[str, str], Place] = {}
    for where, (mode, location, area) in file.rows("mode", "location", "area"):
        if UNKNOWN in (location, area):
            refuse(where, "area", f"{UNKNOWN} is reserved for rows outside; use another name")
        check_label(where, "area", area)
        if (mode, location) in seen:
            refuse(where, "location", "is listed twice for its mode; delete one of the two lines")
        seen[mode, location] = Place(mode, location, area)
    return tuple(place for place in seen.values() if place.mode in modes)


def _telemetry_domain(programme: Programme, include: Path) -> PublicDomain:
    """Read slots and H3 cells."""
    domain = programme.domain
    file = open_public_file(programme, "domain.service_area", domain.service_area, include)
    if domain.h3_resolution is None:
        refuse(f"{programme.name}.yaml", "domain.h3_resolution", "is missing; write 7")
    cells = _area_cells(file, domain, domain.h3_resolution)
    more = public_lists(programme, include)
    slots, _ = slots_by_mode(programme, include)
    length = programme.time.slot_minutes
    cells_by_mode = tuple(
        ModeCells(
            mode,
            (
                _axis("slot", slots[mode], domain, can_miss=not is_all_day(slots[mode], length)),
                _axis("cell", cells, domain),
                *(
                    _axis(name, labels, domain)
                    for name, labels in more.axes(())
                    if any(name in table.by for table in programme.tables)
                ),
            ),
        )
        for mode in programme.source.modes
    )
    timetable = programme.source.timetable
    versions = [file.version, *more.versions]
    if timetable is not None:  # decides rows and no cell: it is named, and not in the digest
        versions.append(open_public_file(programme, "source.timetable", timetable, include).version)
    version = ", ".join(versions)
    return public_domain(version, cells_by_mode, (), more.listed)


class AreaKind(Enum):
    """What states a service area; only stops have rings, only a list of cells has coarser ones."""

    POLYGON = "a polygon"
    CELLS = "a list of H3 cells"
    STOPS = "a list of stops"


def kind_of_area(file: PublicFile) -> AreaKind:
    """Return the kind of a service area by name and header of its file."""
    if file.name.endswith((".geojson", ".json")):
        return AreaKind.POLYGON
    return AreaKind.CELLS if "cell" in file.columns() else AreaKind.STOPS


def _area_cells(file: PublicFile, domain: DomainSpec, resolution: int) -> tuple[str, ...]:
    """Return the cells of a service area, by the kind of its file."""
    kind = kind_of_area(file)
    if kind is AreaKind.POLYGON:
        return _polygon_cells(file, resolution)
    if kind is AreaKind.CELLS:
        coarsest = resolution if domain.h3_coarsest is None else domain.h3_coarsest
        return _listed_cells(file, resolution, coarsest)
    of_gtfs = "stop_lat" in file.columns()
    degrees = ("stop_lat", "stop_lon") if of_gtfs else ("latitude", "longitude")
    return _stop_cells(file, degrees, resolution, domain.ring_cells)


def _polygon_cells(file: PublicFile, resolution: int) -> tuple[str, ...]:
    """Return the cells of all polygons of a GeoJSON file."""
    try:
        document = json.loads(file.text())
        features = document.get("features", [document])
        geometries = [feature.get("geometry", feature) for feature in features]
    except (ValueError, AttributeError, TypeError):
        refuse(file.name, "geometry", "is not GeoJSON; write a Feature with a Polygon")
    try:
        parts = [cells_of_polygon(geometry, resolution) for geometry in geometries]
    except ValueError as error:
        refuse(file.name, "geometry", str(error))
    if not parts:
        refuse(file.name, "features", "is empty; write a Feature with a Polygon")
    return tuple(sorted({cell for part in parts for cell in part}))


def _listed_cells(file: PublicFile, finest: int, coarsest: int) -> tuple[str, ...]:
    """Return the cells of a list, of one resolution or of several."""
    cells: set[str] = set()
    for where, (text,) in file.rows("cell"):
        try:
            cells.add(checked_cell(text, finest, coarsest))
        except ValueError as error:
            refuse(where, "cell", str(error))
    if not cells:
        refuse(file.name, "cell", "lists no cell; add some")
    return tuple(sorted(cells))


def _stop_cells(
    file: PublicFile, columns: tuple[str, str], resolution: int, ring_cells: int
) -> tuple[str, ...]:
    """Return the cells of stops and of the rings around them."""
    stops = [
        (
            _degrees(where, columns[0], values[0], _LATITUDE_MAX),
            _degrees(where, columns[1], values[1], _LONGITUDE_MAX),
        )
        for where, values in file.rows(*columns)
    ]
    if not stops:
        refuse(file.name, columns[0], "lists no stop; add some")
    return cells_around(stops, resolution, ring_cells)


def _degrees(where: str, column: str, text: str, most: float) -> float:
    """Return a public coordinate."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not -most <= value <= most:
        refuse(where, column, f"must be a number of degrees, -{most:.0f} to {most:.0f}")
    return value
