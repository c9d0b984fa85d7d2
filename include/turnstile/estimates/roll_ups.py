"""Hourly and daily roll-ups of reconciled tables: sums of numbers that are public anyway.

Post-processing, so free; each has its own exact error (`trip_marginals`), because errors of numbers
that were reconciled together are not independent: adding up their variances would be wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from turnstile.programme.domain.public_domain import UNKNOWN, Dimension, PublicDomain
from turnstile.programme.spec import TableSpec

MINUTES_PER_HOUR = 60
SlotGroups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class RollUp:
    """One table added up over slots.

    Args:
        table: as published; its slots are hours, or it has none.
        source: table that is added up.
        slot_groups: of each mode, for each hour (or for the day) the indices of its slots.
        domain: public cells of the rolled-up table.
    """

    table: TableSpec
    source: TableSpec
    slot_groups: Mapping[str, SlotGroups]
    domain: PublicDomain


def roll_ups(
    tables: Sequence[TableSpec], domain: PublicDomain, *, slot_minutes: int
) -> tuple[RollUp, ...]:
    """Return the roll-ups of drawn tables: hourly where a slot is shorter, and daily."""
    hourly = domain_by_hour(domain)
    found = []
    for table in tables:
        slots = [axis for axis in table.by if axis.endswith("_slot")]
        if not slots:
            continue
        labels = {mode: domain.dimension(mode, slots[0]).labels for mode in domain.modes}
        if slot_minutes < MINUTES_PER_HOUR:
            by_hour = replace(table, name=f"{table.name}_hourly")
            hours = {mode: _groups(own) for mode, own in labels.items()}
            found.append(RollUp(by_hour, table, hours, hourly))
        places = tuple(axis for axis in table.by if axis not in slots)
        a_day = replace(table, name=f"{table.name}_daily", by=places)
        all_day = {mode: (tuple(range(len(own))),) for mode, own in labels.items()}
        found.append(RollUp(a_day, table, all_day, domain))
    return tuple(found)


def domain_by_hour(domain: PublicDomain) -> PublicDomain:
    """Return the same cells with hours in the place of slots."""
    return replace(
        domain,
        cells_by_mode=tuple(
            replace(cells, dimensions=tuple(_by_hour(axis) for axis in cells.dimensions))
            for cells in domain.cells_by_mode
        ),
    )


def _by_hour(axis: Dimension) -> Dimension:
    """Return an axis of slots as one of hours; others as they are."""
    if not axis.name.endswith("slot"):
        return axis
    return replace(axis, labels=tuple(dict.fromkeys(_hour(label) for label in axis.labels)))


def _groups(labels: tuple[str, ...]) -> SlotGroups:
    """Return the indices of the slots of each hour; UNKNOWN is an hour of its own."""
    hours: dict[str, list[int]] = {}
    for index, label in enumerate(labels):
        hours.setdefault(_hour(label), []).append(index)
    return tuple(tuple(indices) for indices in hours.values())


def _hour(label: str) -> str:
    """Return the start of the hour of a slot."""
    return label if label == UNKNOWN else f"{label[:2]}:00"
