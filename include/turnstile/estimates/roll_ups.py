"""Roll-ups of reconciled tables, hours, days and regions: sums of numbers that are public anyway.

Post-processing, so free; each has its own exact error (`trip_marginals`), because errors of numbers
that were reconciled together are not independent: adding up their variances would be wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from turnstile.estimates.table_names import DAILY, HOURLY, REGIONS
from turnstile.programme.domain.public_domain import UNKNOWN, Dimension, PublicDomain
from turnstile.programme.fields import TAPS
from turnstile.programme.spec import Programme, TableSpec

MINUTES_PER_HOUR = 60
REGION_OF = {place: place.replace("location", "region") for _, place in TAPS}
Groups = tuple[tuple[int, ...], ...]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Blocks:
    """What each number of a mode adds up.

    Args:
        slots: for each hour (or for the day) the indices of its slots; None: each by itself.
        places: for each region the indices of its places; None: each by itself.
    """

    slots: Groups | None = None
    places: Groups | None = None

    def summed(self, values: Floats) -> Floats:
        """Return the sums of values; places on their first axis, slots on the last."""
        if self.places is not None:
            values = np.stack([values[list(group)].sum(axis=0) for group in self.places])
        if self.slots is not None:
            values = np.stack(
                [values[..., list(group)].sum(axis=-1) for group in self.slots], axis=-1
            )
        return values

    def sizes(self, places: int, slots: int) -> tuple[Ints, Ints]:
        """Return how many places and how many slots the numbers add up, of so many."""
        return _sizes(self.places, places), _sizes(self.slots, slots)


def _sizes(groups: Groups | None, alone: int) -> Ints:
    """Return the size of each group; 1 of each that stands alone."""
    return (
        np.ones(alone, np.int64) if groups is None else np.array([len(group) for group in groups])
    )


@dataclass(frozen=True, slots=True)
class RollUp:
    """One table added up over slots, over places, or over both.

    Args:
        table: as published; its slots are hours, or it has none; its places may be regions.
        source: table that is added up.
        blocks: what each number adds up, by mode.
        domain: public cells of the rolled-up table.
    """

    table: TableSpec
    source: TableSpec
    blocks: Mapping[str, Blocks]
    domain: PublicDomain


def regions_of(tables: Sequence[TableSpec], domain: PublicDomain) -> dict[str, str]:
    """Return the region of each published location; empty where no table is added up to regions."""
    if not any(table.by in TAPS for table in tables):
        return {}
    return {place.area: place.region for place in domain.places if place.region}


def roll_ups_of(programme: Programme, domain: PublicDomain) -> tuple[RollUp, ...]:
    """Return the roll-ups of the tables of a programme that share their records."""
    tables, minutes = programme.shared_tables, programme.time.slot_minutes
    regions = regions_of(tables, domain)
    return roll_ups(tables, domain, slot_minutes=minutes, regions=regions)


def roll_ups(
    tables: Sequence[TableSpec],
    domain: PublicDomain,
    *,
    slot_minutes: int,
    regions: Mapping[str, str],
) -> tuple[RollUp, ...]:
    """Return the roll-ups of drawn tables: hourly where a slot is shorter, daily, and by region.

    Args:
        tables: that were drawn.
        domain: their public cells.
        slot_minutes: length of a slot.
        regions: of published locations (`regions_of`); empty if there are none.
    """
    rolled: list[RollUp] = []
    for table in tables:
        alone = RollUp(table, table, dict.fromkeys(domain.modes, Blocks()), domain)
        rolled += _over_slots(alone, slot_minutes)
        if table.by in TAPS and regions:
            by_region = _over_places(table, domain, regions)
            rolled += (by_region, *_over_slots(by_region, slot_minutes))
    return tuple(rolled)


def _over_places(table: TableSpec, domain: PublicDomain, regions: Mapping[str, str]) -> RollUp:
    """Add a table's places up to regions."""
    slot, place = table.by

    def grouped(axis: Dimension) -> dict[str, tuple[int, ...]]:
        groups = _grouped(axis.labels, lambda label: regions.get(label, UNKNOWN))
        return {
            name: groups[name]
            for name in sorted(groups, key=lambda region: (region == UNKNOWN, region))
        }

    def by_region(axis: Dimension) -> Dimension:
        return Dimension(REGION_OF[place], tuple(grouped(axis))) if axis.name == place else axis

    blocks = {
        mode: Blocks(places=tuple(grouped(domain.dimension(mode, place)).values()))
        for mode in domain.modes
    }
    spec = replace(table, name=table.name + REGIONS, by=(slot, REGION_OF[place]))
    return RollUp(spec, table, blocks, _relabelled(domain, by_region))


def _over_slots(roll_up: RollUp, slot_minutes: int) -> Iterator[RollUp]:
    """Yield hours and days of a table."""
    slot = next((axis for axis in roll_up.table.by if axis.endswith("_slot")), "")
    if not slot:
        return
    labels = {mode: roll_up.domain.dimension(mode, slot).labels for mode in roll_up.domain.modes}
    if slot_minutes < MINUTES_PER_HOUR:
        by_hour = replace(roll_up.table, name=roll_up.table.name + HOURLY)
        hours = {
            mode: tuple(_grouped(slot_labels, _hour).values())
            for mode, slot_labels in labels.items()
        }
        yield RollUp(
            by_hour, roll_up.source, _with_slots(roll_up, hours), domain_by_hour(roll_up.domain)
        )
    places = tuple(axis for axis in roll_up.table.by if axis != slot)
    a_day = replace(roll_up.table, name=roll_up.table.name + DAILY, by=places)
    all_day = {mode: (tuple(range(len(slot_labels))),) for mode, slot_labels in labels.items()}
    yield RollUp(a_day, roll_up.source, _with_slots(roll_up, all_day), roll_up.domain)


def _with_slots(roll_up: RollUp, slots: Mapping[str, Groups]) -> dict[str, Blocks]:
    """Return what each number adds up where slots do not stand alone."""
    return {mode: replace(blocks, slots=slots[mode]) for mode, blocks in roll_up.blocks.items()}


def domain_by_hour(domain: PublicDomain) -> PublicDomain:
    """Return the same cells with hours in the place of slots."""
    return _relabelled(domain, _by_hour)


def _relabelled(domain: PublicDomain, of: Callable[[Dimension], Dimension]) -> PublicDomain:
    """Return the same cells with other axes."""
    return replace(
        domain,
        cells_by_mode=tuple(
            replace(cells, dimensions=tuple(of(axis) for axis in cells.dimensions))
            for cells in domain.cells_by_mode
        ),
    )


def _by_hour(axis: Dimension) -> Dimension:
    """Return an axis of slots as one of hours; others as they are."""
    if not axis.name.endswith("slot"):
        return axis
    return replace(axis, labels=tuple(_grouped(axis.labels, _hour)))


def _grouped(labels: Sequence[str], of: Callable[[str], str]) -> dict[str, tuple[int, ...]]:
    """Return the indices of the labels of each hour or region; UNKNOWN is one of its own."""
    groups: dict[str, list[int]] = {}
    for index, label in enumerate(labels):
        groups.setdefault(of(label), []).append(index)
    return {name: tuple(indices) for name, indices in groups.items()}


def _hour(label: str) -> str:
    """Return the start of the hour of a slot."""
    return label if label == UNKNOWN else f"{label[:2]}:00"
