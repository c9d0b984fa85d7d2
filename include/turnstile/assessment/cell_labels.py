"""The labels of published cells, from a public domain."""

from __future__ import annotations

from turnstile.assessment.attacks.timetable_view import CellLabels
from turnstile.programme.domain.public_domain import PublicDomain

SLOTS = ("tap_on_slot", "slot")
AREAS = ("tap_on_location", "cell")


def labels_of_domain(domain: PublicDomain) -> CellLabels:
    """Return the labels of a public domain, with its lookup of locations."""
    slots: set[str] = set()
    areas: dict[str | None, frozenset[str]] = {}
    for cells in domain.cells_by_mode:
        for axis in cells.dimensions:
            if axis.name in SLOTS:
                slots |= set(axis.labels)
            if axis.name in AREAS:
                areas[cells.mode] = frozenset(axis.labels)
    lookup = {(place.mode, place.location): place.area for place in domain.places}
    return CellLabels(frozenset(slots), areas, lookup)
