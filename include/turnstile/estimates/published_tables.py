"""Which numbers a table of estimates holds, and which places and slots of the day each adds up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from turnstile.estimates.roll_ups import REGION_OF, Blocks, roll_ups
from turnstile.estimates.trips.tap_estimates import (
    MARGINAL_EDGES_SDS,
    PUBLISHED_AS_0,
    SIZE_EDGES,
    SMALLEST_RATE,
    TapEstimates,
)
from turnstile.estimates.trips.tap_numbers import TapNumbers
from turnstile.estimates.trips.trip_marginals import Axes, axes_of
from turnstile.estimates.week_to_estimate import Promise
from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.spec import TableSpec

Floats = NDArray[np.float64]


class Part(StrEnum):
    """Which numbers of a mode's tap-ons or tap-offs a table holds."""

    CELLS = "cells"
    SLOTS = "slots"
    PLACES = "places"
    REGIONS = "regions"
    TOTALS = "totals"


class Grain(StrEnum):
    """Over which stretch of the day each number is a sum."""

    SLOT = "slot"
    HOUR = "hour"
    DAY = "day"


Quantity = tuple[Part, Grain]
CELLS: Quantity = (Part.CELLS, Grain.SLOT)
_HOURS, _DAYS = (Part.CELLS, Grain.HOUR), (Part.PLACES, Grain.DAY)
# What errors of a quantity begin with. Where slots are hours there is no table of hours, and days
# begin with what is usual: with the cells' own their intervals held no more often.
PARTS_OF: dict[Quantity, Quantity] = {
    _HOURS: CELLS,
    _DAYS: _HOURS,
    (Part.REGIONS, Grain.SLOT): CELLS,
    (Part.REGIONS, Grain.HOUR): _HOURS,
    (Part.REGIONS, Grain.DAY): _DAYS,
}
FINEST_FIRST = (
    CELLS,
    *PARTS_OF,
    *((part, grain) for part in (Part.SLOTS, Part.TOTALS) for grain in Grain),
)


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """One table of estimates: its labels, what it holds, and what each number of a mode adds up."""

    table: TableSpec
    domain: PublicDomain
    taps: Axes
    quantity: Quantity
    blocks: Mapping[str, Blocks]


def published_tables(promise: Promise, domain: PublicDomain) -> Iterator[PublishedTable]:
    """Yield the tables of estimates: those that were drawn, then their roll-ups."""
    for table in promise.tables:
        taps = axes_of(table.by)
        part = _part(table, taps)
        grain = Grain.DAY if part is Part.PLACES else Grain.SLOT
        alone = dict.fromkeys(domain.modes, Blocks())
        yield PublishedTable(table, domain, taps, (part, grain), alone)
    minutes, regions = promise.slot_minutes, promise.regions
    for roll_up in roll_ups(promise.tables, domain, slot_minutes=minutes, regions=regions):
        taps = axes_of(roll_up.source.by)
        part = _part(roll_up.source, taps)
        if any(axis in REGION_OF.values() for axis in roll_up.table.by):
            part = Part.REGIONS
        if taps[0] not in roll_up.table.by:
            of_day = {Part.CELLS: Part.PLACES, Part.SLOTS: Part.TOTALS}.get(part, part)
            yield PublishedTable(
                roll_up.table, roll_up.domain, taps, (of_day, Grain.DAY), roll_up.blocks
            )
        else:
            is_fine = all(blocks.slots is None for blocks in roll_up.blocks.values())
            grain = Grain.SLOT if is_fine else Grain.HOUR
            yield PublishedTable(roll_up.table, roll_up.domain, taps, (part, grain), roll_up.blocks)


def _part(table: TableSpec, taps: Axes) -> Part:
    """Return which numbers a drawn table holds."""
    if table.by == taps:
        return Part.CELLS
    return Part.SLOTS if table.by == taps[:1] else Part.PLACES


def values_of(numbers: TapEstimates | TapNumbers, quantity: Quantity, blocks: Blocks) -> Floats:
    """Return the numbers of a quantity, shape (places or regions, days, slots)."""
    part, grain = quantity
    if part is Part.TOTALS:
        return numbers.totals[None, :, None]
    if grain is Grain.DAY:  # of places, as reconciled: not the sums of their slots once more
        return Blocks(places=blocks.places).summed(numbers.places[..., None])
    return blocks.summed(numbers.slots[None] if part is Part.SLOTS else numbers.cells)


def rates_of(estimates: TapEstimates, quantity: Quantity, blocks: Blocks) -> Floats:
    """Return what the errors of a quantity grow with; rates of sums of cells are sums of theirs.

    Shape (places, days, slots).
    """
    if quantity[0] is not Part.CELLS:
        return np.maximum(values_of(estimates, quantity, blocks), SMALLEST_RATE)
    return blocks.summed(estimates.rates)


def noise_variance(numbers: TapNumbers, quantity: Quantity, blocks: Blocks) -> Floats:
    """Return the variance of the unbiased numbers beside those of a quantity.

    Shape (slots,), of regions (regions, 1, slots).
    """
    part, grain = quantity
    slots = numbers.slots.shape[1]
    if part is Part.TOTALS:
        return np.array([numbers.variance_of_slots(slots)])
    of_regions, sizes = blocks.sizes(len(numbers.places), slots)
    if part is Part.REGIONS and grain is Grain.DAY:
        return np.array([numbers.variance_of_places(int(n)) for n in of_regions])[:, None, None]
    if part is Part.PLACES:
        return np.array([numbers.place_variance])
    if part is Part.REGIONS:
        return numbers.cell_variance * np.multiply.outer(of_regions, sizes)[:, None]
    if part is Part.CELLS:
        of_cells: Floats = sizes.astype(np.float64) * numbers.cell_variance
        return of_cells
    of_size = {size: numbers.variance_of_slots(size) for size in set(sizes.tolist())}
    return np.array([of_size[size] for size in sizes.tolist()])


def edges_of(quantity: Quantity) -> tuple[float, ...]:
    """Return the edges of size classes: counts of cells, standard deviations of marginals."""
    return (PUBLISHED_AS_0, *SIZE_EDGES) if quantity[0] is Part.CELLS else MARGINAL_EDGES_SDS
