"""The two sides of a partition: which drawn tables belong together, and their least squares.

A partition is one mode on one service day; its sides are tap-on and tap-off. Every counted trip
counts once on both, so both have one total, unless rows outside the domain are dropped
(PRIVACY 7.1). The errors come from shapes and declared noise alone: they are known before a draw.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from turnstile.estimates.combined_noise import Noise, SideNoise, SumError, sum_error
from turnstile.estimates.reconciliation import (
    Measured,
    Partition,
    Reconciled,
    reconcile,
    reconcile_pair,
)
from turnstile.privacy.events import DrawEvent
from turnstile.programme.domain import PublicDomain
from turnstile.programme.fields import TAPS, categories
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Outside, Programme

Side = tuple[str, str]
# A category has one axis and no second one: it is reconciled with nothing.
SIDES: tuple[Side, ...] = (*TAPS, *((one.name, "") for one in categories(RowShape.TRIPS)))
By = tuple[str, ...]


def side_of(by: By) -> Side:
    """Return the side that a table belongs to."""
    return next(side for side in SIDES if set(by) <= set(side))


def shape_of(domain: PublicDomain, mode: str, side: Side) -> tuple[int, int]:
    """Return the number of slots and places of a side."""
    slots, places = (len(domain.dimension(mode, axis).labels) if axis else 1 for axis in side)
    return slots, places


def shapes_of(domain: PublicDomain, mode: str) -> dict[Side, tuple[int, int]]:
    """Return the shape of each side whose axes a mode has."""
    axes = {axis.name for axis in domain.dimensions(mode)} | {""}
    return {side: shape_of(domain, mode, side) for side in SIDES if set(side) <= axes}


def reconciled_sides(
    shapes: Mapping[Side, tuple[int, int]], measured: Mapping[By, Measured], *, shares_total: bool
) -> dict[Side, Reconciled]:
    """Reconcile the drawn tables of one mode and day.

    Args:
        shapes: slots and places of each side.
        measured: drawn tables by their dimensions.
        shares_total: True if both sides count the same trips, where both are drawn.
    """
    partitions = {}
    for side in SIDES:
        tables = {by: table for by, table in measured.items() if set(by) <= set(side)}
        if tables:
            partitions[side] = Partition(
                shapes[side],
                cells=tables.get(side),
                rows=tables.get(side[:1]),
                columns=tables.get(side[1:]),
            )
    if not (shares_total and all(tap in partitions for tap in TAPS)):
        return {side: reconcile(partition) for side, partition in partitions.items()}
    taps = reconcile_pair(*(partitions.pop(tap) for tap in TAPS))
    alone = {side: reconcile(partition) for side, partition in partitions.items()}
    return dict(zip(TAPS, taps, strict=True)) | alone


def shares_total(programme: Programme) -> bool:
    """Whether every counted trip counts once at its tap-on and once at its tap-off."""
    return programme.domain.outside is Outside.UNKNOWN


@dataclass(frozen=True, eq=False)  # no slots: errors are worked out once for each size of block
class SideErrors:
    """Errors of one side of one mode, known from the plan.

    Args:
        side: whose errors.
        estimate: least squares of tables of zeros, for its precisions.
        own: noise of the side's tables.
        other: of the other side's, where both share a total.
    """

    side: Side
    estimate: Reconciled
    own: SideNoise
    other: SideNoise | None

    @property
    def shape(self) -> tuple[int, int]:
        """Slots and places."""
        return self.own.shape

    @cache  # noqa: B019 - lives as long as its handful of objects, a few sizes each
    def of_block(self, slots: int, places: int) -> SumError:
        """Return the error of the sum over some slots and some places, whichever they are."""
        return sum_error(self.estimate, self._block(slots, places), self.own, self.other)

    def deviation_of_block(self, slots: int, places: int) -> float:
        """Return the standard deviation of such a sum alone, which is quicker to have."""
        return math.sqrt(self.estimate.variance_of_sum(self._block(slots, places)))

    def _block(self, slots: int, places: int) -> NDArray[np.bool_]:
        """Mark the first slots and places."""
        chosen = np.zeros(self.shape, dtype=np.bool_)
        chosen[:slots, :places] = True
        return chosen

    def of_table(self, by: By) -> SumError:
        """Return the error of one number of a table with these dimensions."""
        slots, places = self.shape
        first, second = self.side
        return self.of_block(1 if first in by else slots, 1 if second in by else places)


def side_errors(
    programme: Programme, domain: PublicDomain, events: Sequence[DrawEvent]
) -> dict[tuple[str, Side], SideErrors]:
    """Return the errors of every mode and side of a plan of dense draws."""
    kinds = {event.table: event for event in events}
    noises = {table.by: _noise(kinds[table.name]) for table in programme.shared_tables}
    found = {}
    for mode in domain.modes:
        measured = {
            by: Measured(
                np.zeros([len(domain.dimension(mode, axis).labels) for axis in by], dtype=np.int64),
                noise.variance,
            )
            for by, noise in noises.items()
        }
        estimates = reconciled_sides(
            shapes_of(domain, mode), measured, shares_total=shares_total(programme)
        )
        laws = {side: _side_noise(side, noises, shape_of(domain, mode, side)) for side in estimates}
        for side, estimate in estimates.items():
            taps = side in TAPS and all(tap in estimates for tap in TAPS)
            shares = taps and shares_total(programme)
            other = laws[TAPS[1 - TAPS.index(side)]] if shares else None
            found[mode, side] = SideErrors(side, estimate, laws[side], other)
    return found


def _noise(event: DrawEvent) -> Noise:
    """Return the noise of a draw."""
    return Noise(event.noise, Fraction(event.scale))


def _side_noise(side: Side, noises: Mapping[By, Noise], shape: tuple[int, int]) -> SideNoise:
    """Return the noise of a side's tables."""
    return SideNoise(
        shape, cells=noises.get(side), rows=noises.get(side[:1]), columns=noises.get(side[1:])
    )
