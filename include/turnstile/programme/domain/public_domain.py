"""The public cells of a programme: every row and column of every table, known before any data.

A domain is made from reviewed files under `include/` and from the programme (`files`), never
from rows: nothing in here or there takes any. It also says how a flat vector of integers is laid
out as the tables of all modes, which is public and the same for exact and for noisy numbers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from turnstile.programme.spec import TableSpec, TimeSpec
from turnstile.service_calendar import minute_of

UNKNOWN = "UNKNOWN"
OTHER = "OTHER"
PERIOD = "day_period"
Listed = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Dimension:
    """One axis of a table.

    Args:
        name: as in the programme's `by`.
        labels: public labels in their fixed order; `UNKNOWN` last, where it exists.
    """

    name: str
    labels: tuple[str, ...]

    @property
    def unknown(self) -> int | None:
        """Place of the `UNKNOWN` label; None where rows outside are dropped."""
        return len(self.labels) - 1 if self.labels[-1] == UNKNOWN else None


@dataclass(frozen=True, slots=True)
class ModeCells:
    """Axes of one mode, in the order of the shape's dimensions."""

    mode: str
    dimensions: tuple[Dimension, ...]


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A location of a mode, the area that it is published as, and REGION/ZONE, if it has one."""

    mode: str
    location: str
    area: str
    zone: str = ""

    @property
    def region(self) -> str:
        """Region of its zone."""
        return region_of(self.zone)


def region_of(zone: str) -> str:
    """Return the region that the label of a zone names; UNKNOWN lies in UNKNOWN.

    Examples:
        >>> region_of("North/Harbour"), region_of(UNKNOWN)
        ('North', 'UNKNOWN')
    """
    return zone.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Segment:
    """Where the table of one mode lies in a flat vector, in row-major order.

    Args:
        mode: whose table.
        shape: labels of each dimension of the table; empty for a total.
        offset: place of its first cell.
    """

    mode: str
    shape: tuple[int, ...]
    offset: int

    @property
    def cells(self) -> int:
        """Cells of this mode's table."""
        return prod(self.shape)


@dataclass(frozen=True, slots=True)
class PublicDomain:
    """All public cells of a programme; make one with `public_domain`.

    Args:
        digest: SHA-256 of labels and lookup.
        version: files, each with the start of the SHA-256 of its bytes, for people.
        cells_by_mode: axes of every mode, in the programme's order of modes.
        places: lookup of locations, sorted; empty for telemetry.
        listed: (dimension, value in the rows, label), sorted: public lists of categories, and
            (`day_period`, stretch, name).
    """

    digest: str
    version: str
    cells_by_mode: tuple[ModeCells, ...]
    places: tuple[Place, ...] = ()
    listed: tuple[Listed, ...] = ()

    @property
    def modes(self) -> tuple[str, ...]:
        """Modes in their fixed order."""
        return tuple(cells.mode for cells in self.cells_by_mode)

    def dimensions(self, mode: str) -> tuple[Dimension, ...]:
        """Return the axes of a mode.

        Raises:
            KeyError: the domain has no such mode.
        """
        return {cells.mode: cells.dimensions for cells in self.cells_by_mode}[mode]

    def dimension(self, mode: str, name: str) -> Dimension:
        """Return one axis of a mode.

        Raises:
            KeyError: the domain has no such mode or axis.
        """
        return {axis.name: axis for axis in self.dimensions(mode)}[name]

    def shape(self, table: TableSpec, mode: str) -> tuple[int, ...]:
        """Return the number of labels of each dimension of a mode's table."""
        return tuple(len(self.dimension(mode, name).labels) for name in table.by)

    def cells(self, table: TableSpec) -> int:
        """Count the cells of a table over all modes: the length of its flat vector."""
        return sum(segment.cells for segment in layout(self, table))


def public_domain(
    version: str,
    cells_by_mode: tuple[ModeCells, ...],
    places: tuple[Place, ...] = (),
    listed: tuple[Listed, ...] = (),
) -> PublicDomain:
    """Return a domain with the digest of its content; equal content has an equal digest.

    Args:
        version: files and starts of their digests.
        cells_by_mode: axes of every mode, in order.
        places: lookup of locations, in any order.
        listed: lookup of categories and periods, in any order.
    """
    sorted_places, sorted_listed = tuple(sorted(places)), tuple(sorted(listed))
    content: dict[str, object] = {
        "cells": [
            [cells.mode, [[axis.name, axis.labels] for axis in cells.dimensions]]
            for cells in cells_by_mode
        ],
        "places": [[place.mode, place.location, place.area] for place in sorted_places],
    }
    if listed:
        content["listed"] = sorted_listed
    axes = {axis.name for cells in cells_by_mode for axis in cells.dimensions}
    if any(axis.endswith(("_region", "_zone")) for axis in axes):  # else nothing is drawn by them
        content["zones"] = [place.zone for place in sorted_places]
    text = json.dumps(content, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()
    return PublicDomain(digest, version, cells_by_mode, sorted_places, sorted_listed)


def published_domain(
    digest: str, axes: Mapping[str, Mapping[str, tuple[str, ...]]]
) -> PublicDomain:
    """Return the public cells as a published package shows them: labels, without the lookup.

    Args:
        digest: that the package states.
        axes: labels in their order, by mode and by axis.
    """
    cells = tuple(
        ModeCells(mode, tuple(Dimension(name, labels) for name, labels in labels_of_axis.items()))
        for mode, labels_of_axis in axes.items()
    )
    return PublicDomain(digest, "", cells)


def layout(domain: PublicDomain, table: TableSpec) -> tuple[Segment, ...]:
    """Return where each mode's table lies in the flat vector of one draw.

    The tables of the modes follow each other in the domain's order, each in row-major order of
    `table.by`. Telemetry has one mode, so one segment.

    Examples:
        >>> slots = Dimension("slot", ("09:00", "10:00"))
        >>> cells = Dimension("cell", ("871", "872", "873"))
        >>> domain = public_domain("v", (ModeCells("bus", (slots, cells)),))
        >>> layout(domain, TableSpec("speed", ("slot", "cell")))
        (Segment(mode='bus', shape=(2, 3), offset=0),)
    """
    segments: list[Segment] = []
    offset = 0
    for mode in domain.modes:
        segments.append(Segment(mode, domain.shape(table, mode), offset))
        offset += segments[-1].cells
    return tuple(segments)


def period_of_slots(listed: Sequence[Listed], time: TimeSpec) -> list[str]:
    """Return the label of the period of every slot of a service day.

    Args:
        listed: of a domain or of lists; its periods.
        time: slots and the begin of a service day.
    """
    stretches: list[tuple[int, int, str]] = []
    for dimension, stretch, name in listed:
        if dimension == PERIOD:
            first, last = stretch.split("-")
            stretches.append((minute_of(first), minute_of(last), name))
    return [
        next((name for first, last, name in stretches if first <= minute < last), OTHER)
        for minute in range(time.day_starts, time.day_ends, time.slot_minutes)
    ]
