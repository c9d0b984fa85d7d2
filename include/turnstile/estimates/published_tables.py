"""Which numbers a table of estimates holds, and which slots of the day each adds up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from turnstile.estimates.roll_ups import SlotGroups, roll_ups
from turnstile.estimates.tap_estimates import (
    MARGINAL_EDGES_SDS,
    PUBLISHED_AS_0,
    SIZE_EDGES,
    SMALLEST_RATE,
    TapEstimates,
)
from turnstile.estimates.tap_numbers import TapNumbers
from turnstile.estimates.trip_marginals import Axes, axes_of
from turnstile.estimates.week_to_estimate import Promise
from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.spec import TableSpec

Floats = NDArray[np.float64]


class Part(StrEnum):
    """Which numbers of a mode's tap-ons or tap-offs a table holds."""

    CELLS = "cells"
    SLOTS = "slots"
    PLACES = "places"
    TOTALS = "totals"


class Grain(StrEnum):
    """Over which stretch of the day each number is a sum."""

    SLOT = "slot"
    HOUR = "hour"
    DAY = "day"


Quantity = tuple[Part, Grain]
CELLS: Quantity = (Part.CELLS, Grain.SLOT)
TOGETHER = 1.3  # at least so much more varies the sum of a day's or network's cells than they apart


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """One table of estimates: its labels, what it holds, and the slots that each number adds up."""

    table: TableSpec
    domain: PublicDomain
    taps: Axes
    quantity: Quantity
    slot_groups: Mapping[str, SlotGroups] | None


def published_tables(promise: Promise, domain: PublicDomain) -> Iterator[PublishedTable]:
    """Yield the tables of estimates: those that were drawn, then their roll-ups."""
    for table in promise.tables:
        taps = axes_of(table.by)
        part = _part(table, taps)
        grain = Grain.DAY if part is Part.PLACES else Grain.SLOT
        yield PublishedTable(table, domain, taps, (part, grain), None)
    for one in roll_ups(promise.tables, domain, slot_minutes=promise.slot_minutes):
        taps = axes_of(one.source.by)
        part = _part(one.source, taps)
        if any(axis in taps[:1] for axis in one.table.by):
            yield PublishedTable(one.table, one.domain, taps, (part, Grain.HOUR), one.slot_groups)
        else:
            of_day = Part.PLACES if part is Part.CELLS else Part.TOTALS
            yield PublishedTable(one.table, one.domain, taps, (of_day, Grain.DAY), None)


def _part(table: TableSpec, taps: Axes) -> Part:
    """Return which numbers a drawn table holds."""
    if table.by == taps:
        return Part.CELLS
    return Part.SLOTS if table.by == taps[:1] else Part.PLACES


def values_of(
    numbers: TapEstimates | TapNumbers, quantity: Quantity, slot_groups: SlotGroups | None
) -> Floats:
    """Return the numbers of a quantity, shape (places, days, slots)."""
    part = quantity[0]
    if part is Part.TOTALS:
        return numbers.totals[None, :, None]
    if part is Part.PLACES:
        return numbers.places[..., None]
    values = numbers.cells if part is Part.CELLS else numbers.slots[None]
    return _summed(values, slot_groups)


def _summed(values: Floats, slot_groups: SlotGroups | None) -> Floats:
    """Return the sums over groups of slots."""
    if slot_groups is None:
        return values
    found: Floats = np.stack([values[..., list(g)].sum(axis=-1) for g in slot_groups], axis=-1)
    return found


def rates_of(estimates: TapEstimates, quantity: Quantity, slot_groups: SlotGroups | None) -> Floats:
    """Return what the errors of a quantity grow with; rates of sums of cells are sums of theirs.

    Shape (places, days, slots).
    """
    if quantity[0] is not Part.CELLS:
        return np.maximum(values_of(estimates, quantity, slot_groups), SMALLEST_RATE)
    return _summed(estimates.rates, slot_groups)


def parts_of(estimates: TapEstimates, quantity: Quantity, slot_groups: SlotGroups | None) -> Floats:
    """Return the variances of the errors of the cells that each number adds up; of cells, rates.

    Shape (places, days, slots).
    """
    if quantity == CELLS or estimates.spread is None:
        return rates_of(estimates, quantity, slot_groups)
    together = 1.0 if quantity[0] is Part.CELLS else TOGETHER
    return together * values_of(estimates.spread, quantity, slot_groups)


def noise_variance(
    numbers: TapNumbers, quantity: Quantity, slot_groups: SlotGroups | None
) -> Floats:
    """Return the variance of the unbiased numbers beside those of a quantity, by slot."""
    part = quantity[0]
    slots = numbers.slots.shape[1]
    if part is Part.PLACES:
        return np.array([numbers.place_variance])
    if part is Part.TOTALS:
        return np.array([numbers.variance_of_slots(slots)])
    sizes = (
        np.ones(slots, np.int64) if slot_groups is None else np.array([len(g) for g in slot_groups])
    )
    if part is Part.CELLS:
        of_cells: Floats = sizes.astype(np.float64) * numbers.cell_variance
        return of_cells
    of_size = {size: numbers.variance_of_slots(size) for size in set(sizes.tolist())}
    return np.array([of_size[size] for size in sizes.tolist()])


def edges_of(quantity: Quantity) -> tuple[float, ...]:
    """Return the edges of size classes: counts of cells, standard deviations of marginals."""
    return (PUBLISHED_AS_0, *SIZE_EDGES) if quantity[0] is Part.CELLS else MARGINAL_EDGES_SDS
