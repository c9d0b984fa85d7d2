"""Tap-on and tap-off marginals: which drawn tables belong together, and their least squares.

Of each mode and service day the tables over the tap-on's slot and location are reconciled together,
and so are those of the tap-off. Every counted trip counts once in both, so both have one total,
unless rows outside the domain are dropped
(PRIVACY 7.1). The errors come from shapes and declared noise alone: they are known before a draw.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from turnstile.estimates.fitting.combined_noise import MarginalNoise, Noise, SumError, sum_error
from turnstile.estimates.fitting.reconciliation import (
    Measured,
    Partition,
    Reconciled,
    reconcile,
    reconcile_pair,
)
from turnstile.privacy.events import DrawEvent
from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.fields import TAPS, categories
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Outside, Programme

Axes = tuple[str, str]
# A category has one axis and no second one: it is reconciled with nothing.
MARGINAL_AXES: tuple[Axes, ...] = (
    *TAPS,
    *((category.name, "") for category in categories(RowShape.TRIPS)),
)
By = tuple[str, ...]


def axes_of(by: By) -> Axes:
    """Return the axes of the marginals that a table belongs to."""
    return next(axes for axes in MARGINAL_AXES if set(by) <= set(axes))


def shapes_of(
    domain: PublicDomain, mode: str, measured: Collection[By]
) -> dict[Axes, tuple[int, int]]:
    """Return the number of slots and locations of the marginals that drawn tables belong to.

    An axis that no drawn table has counts as one: a package does not say what its labels are.
    """
    used = {axis for by in measured for axis in by}
    return {
        (first, second): (
            len(domain.dimension(mode, first).labels) if first in used else 1,
            len(domain.dimension(mode, second).labels) if second in used else 1,
        )
        for first, second in MARGINAL_AXES
        if any(set(by) <= {first, second} for by in measured)
    }


def reconciled_marginals(
    shapes: Mapping[Axes, tuple[int, int]], measured: Mapping[By, Measured], *, shares_total: bool
) -> dict[Axes, Reconciled]:
    """Reconcile the drawn tables of one mode and day.

    Args:
        shapes: slots and locations of the marginals.
        measured: drawn tables by their dimensions.
        shares_total: True if tap-ons and tap-offs count the same trips, where both are drawn.
    """
    partitions = {}
    for axes in MARGINAL_AXES:
        tables = {by: table for by, table in measured.items() if set(by) <= set(axes)}
        if tables:
            partitions[axes] = Partition(
                shapes[axes],
                cells=tables.get(axes),
                rows=tables.get(axes[:1]),
                columns=tables.get(axes[1:]),
            )
    if not (shares_total and all(tap in partitions for tap in TAPS)):
        return {axes: reconcile(partition) for axes, partition in partitions.items()}
    taps = reconcile_pair(*(partitions.pop(tap) for tap in TAPS))
    alone = {axes: reconcile(partition) for axes, partition in partitions.items()}
    return dict(zip(TAPS, taps, strict=True)) | alone


def shares_total(programme: Programme) -> bool:
    """Whether every counted trip counts once at its tap-on and once at its tap-off."""
    return programme.domain.outside is Outside.UNKNOWN


@dataclass(frozen=True, eq=False)  # no slots: errors are worked out once for each size of block
class MarginalErrors:
    """Errors of the tap-on or tap-off marginals of one mode, known from the plan.

    Args:
        axes: whose errors.
        estimate: least squares of tables of zeros, for its precisions.
        noise: of their tables.
        other: of the other tap's, where both share a total.
    """

    axes: Axes
    estimate: Reconciled
    noise: MarginalNoise
    other: MarginalNoise | None

    @property
    def shape(self) -> tuple[int, int]:
        """Slots and locations."""
        return self.noise.shape

    @cache  # noqa: B019 - lives as long as its handful of objects, a few sizes each
    def of_block(self, slots: int, locations: int) -> SumError:
        """Return the error of the sum over some slots and some locations, whichever they are."""
        return sum_error(self.estimate, self._block(slots, locations), self.noise, self.other)

    def deviation_of_block(self, slots: int, locations: int) -> float:
        """Return the standard deviation of such a sum alone, which is quicker to have."""
        return math.sqrt(self.estimate.variance_of_sum(self._block(slots, locations)))

    def _block(self, slots: int, locations: int) -> NDArray[np.bool_]:
        """Mark the first slots and locations."""
        chosen = np.zeros(self.shape, dtype=np.bool_)
        chosen[:slots, :locations] = True
        return chosen

    def of_table(self, by: By) -> SumError:
        """Return the error of one number of a table with these dimensions."""
        slots, locations = self.shape
        first, second = self.axes
        return self.of_block(1 if first in by else slots, 1 if second in by else locations)


def marginal_errors(
    programme: Programme, domain: PublicDomain, events: Sequence[DrawEvent]
) -> dict[tuple[str, Axes], MarginalErrors]:
    """Return the errors of the marginals of every mode, of a plan of dense draws."""
    event_of = {event.table: event for event in events}
    noises = {table.by: _noise(event_of[table.name]) for table in programme.shared_tables}
    errors = {}
    for mode in domain.modes:
        measured = {
            by: Measured(
                np.zeros([len(domain.dimension(mode, axis).labels) for axis in by], dtype=np.int64),
                noise.variance,
            )
            for by, noise in noises.items()
        }
        shapes = shapes_of(domain, mode, measured)
        estimates = reconciled_marginals(shapes, measured, shares_total=shares_total(programme))
        noise_of = {axes: _noise_of_marginals(axes, noises, shapes[axes]) for axes in estimates}
        for axes, estimate in estimates.items():
            taps = axes in TAPS and all(tap in estimates for tap in TAPS)
            shares = taps and shares_total(programme)
            other = noise_of[TAPS[1 - TAPS.index(axes)]] if shares else None
            errors[mode, axes] = MarginalErrors(axes, estimate, noise_of[axes], other)
    return errors


def _noise(event: DrawEvent) -> Noise:
    return Noise(event.noise, Fraction(event.scale))


def _noise_of_marginals(
    axes: Axes, noises: Mapping[By, Noise], shape: tuple[int, int]
) -> MarginalNoise:
    """Return the noise of the drawn tables over these axes."""
    return MarginalNoise(
        shape, cells=noises.get(axes), rows=noises.get(axes[:1]), columns=noises.get(axes[1:])
    )
