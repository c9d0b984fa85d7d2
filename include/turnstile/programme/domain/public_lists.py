"""Public lists beside the places: values of categories, regions and zones of areas, periods.

A list says which values of a raw column are known, and as what each is published. Regions and zones
say where an area lies, for tables of origins and destinations. Both are reviewed files under
`include/`; rows never come near them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from turnstile.programme.domain.mode_slots import clock
from turnstile.programme.domain.public_domain import (
    OTHER,
    PERIOD,
    UNKNOWN,
    Listed,
    Place,
    period_of_slots,
)
from turnstile.programme.domain.public_file import PublicFile, check_label, open_public_file, refuse
from turnstile.programme.spec import Programme, TimeSpec

_BETWEEN = "/"
Axes = Iterator[tuple[str, tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class PublicLists:
    """What a programme's lists say.

    Args:
        listed: (dimension, value, label) of every list, and (`day_period`, stretch, name).
        categories: dimensions of the lists, in the programme's order.
        periods: labels of periods in the order of the day; empty if there are none.
        zone_of: REGION/ZONE of each area; None without a file of regions.
        regions_file: its name.
        versions: of the files.
    """

    listed: tuple[Listed, ...]
    categories: tuple[str, ...]
    periods: tuple[str, ...]
    zone_of: dict[str, str] | None
    regions_file: str
    versions: tuple[str, ...]

    def zoned(self, places: tuple[Place, ...]) -> tuple[Place, ...]:
        """Return places with their zones.

        Raises:
            ProgrammeError: an area has none.
        """
        if self.zone_of is None:
            return places
        for place in places:
            if place.area not in self.zone_of:
                refuse(self.regions_file, "area", f"has no line of area {place.area!r}; add it")
        return tuple(replace(place, zone=self.zone_of[place.area]) for place in places)

    def axes(self, places: tuple[Place, ...]) -> Axes:
        """Yield name and labels of each dimension that the lists make, for the places of a mode."""
        for name in self.categories:
            labels = {label for dimension, _, label in self.listed if dimension == name}
            yield name, tuple(sorted(labels))
        if self.periods:
            yield PERIOD, self.periods
        if self.zone_of is not None:
            zones = tuple(sorted({place.zone for place in places}))
            regions = tuple(sorted({place.region for place in places}))
            for end in ("origin", "destination"):
                yield f"{end}_region", regions
                yield f"{end}_zone", zones


def public_lists(programme: Programme, include: Path) -> PublicLists:
    """Read the lists that a programme names.

    Raises:
        ProgrammeError: a file is missing, or breaks a rule.
    """
    listed: list[Listed] = []
    versions = []
    for name, path in programme.domain.lists:
        file = open_public_file(programme, f"domain.lists.{name}", path, include)
        listed += _values(file, name)
        versions.append(file.version)
    zone_of, regions_file = None, ""
    if programme.domain.regions is not None:
        file = open_public_file(programme, "domain.regions", programme.domain.regions, include)
        zone_of, regions_file = _zones(file), file.name
        versions.append(file.version)
    stretches = [
        (PERIOD, f"{clock(period.first_minute)}-{clock(period.last_minute)}", period.name)
        for period in programme.domain.periods
    ]
    return PublicLists(
        listed=(*listed, *stretches),
        categories=programme.listed,
        periods=_period_labels(stretches, programme.time),
        zone_of=zone_of,
        regions_file=regions_file,
        versions=tuple(versions),
    )


def _period_labels(stretches: Sequence[Listed], time: TimeSpec) -> tuple[str, ...]:
    """Return the labels that slots have, the named ones first."""
    if not stretches:
        return ()
    labels = dict.fromkeys(period_of_slots(stretches, time))
    rest = (OTHER,) if OTHER in labels else ()
    return (*(name for name in labels if name != OTHER), *rest)


def _values(file: PublicFile, dimension: str) -> Iterator[Listed]:
    seen: set[str] = set()
    for where, (value, label) in file.rows("value", "label"):
        if label == UNKNOWN:
            refuse(where, "label", f"{UNKNOWN} is reserved for values that are not listed")
        check_label(where, "label", label)
        if value in seen:
            refuse(where, "value", "is listed twice; delete one of the two lines")
        seen.add(value)
        yield dimension, value, label
    if not seen:
        refuse(file.name, "value", "lists nothing; add the values that are known")


def _zones(file: PublicFile) -> dict[str, str]:
    """Read the zone of each area, named after its region."""
    zone_of_area: dict[str, str] = {}
    for where, (area, region, zone) in file.rows("area", "region", "zone"):
        if area in zone_of_area:
            refuse(where, "area", "is listed twice; delete one of the two lines")
        if _BETWEEN in region or UNKNOWN in (region, zone):
            refuse(where, "region", f"{UNKNOWN} and {_BETWEEN} are reserved; use another name")
        check_label(where, "region", region)
        check_label(where, "zone", zone)
        zone_of_area[area] = f"{region}{_BETWEEN}{zone}"
    return zone_of_area
