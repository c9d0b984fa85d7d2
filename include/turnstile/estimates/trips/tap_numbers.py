"""A week of one mode's tap-ons or tap-offs as numbers: drawn cells beside reconciled marginals.

Least squares over the drawn tables of each day (`reconciliation`) gives marginals that are unbiased
and add up; cells stay as drawn, because least squares hardly changes them and makes their noise
dependent. The same is made of every look at the noise (`fission`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from turnstile.estimates.fitting.fission import FITTED_TIMES, JUDGED_TIMES, split
from turnstile.estimates.fitting.reconciliation import Measured, Reconciled
from turnstile.estimates.trips.trip_marginals import Axes, By, reconciled_marginals

Floats = NDArray[np.float64]
SHAKE = 0.2  # of what a look adds
_LEFT_OUT = 0.005  # of a total: by how much bounds differ in what they leave out
_CHANCE_SDS = 3.0  # by which totals may lie apart by chance


@dataclass(frozen=True, slots=True, eq=False)
class DrawnDays:
    """One drawn table of one mode on the days of a week.

    Args:
        values: shape (days, *dimensions).
        variance: of the noise of each value.
    """

    values: Floats
    variance: float

    def looks(self, seed: str) -> tuple[DrawnDays, DrawnDays]:
        """Return two independent looks: one to fit, one to judge."""
        fitted, judge = split(self.values, sqrt(self.variance), seed)
        return (
            DrawnDays(fitted, self.variance * FITTED_TIMES),
            DrawnDays(judge, self.variance * JUDGED_TIMES),
        )


@dataclass(frozen=True, slots=True, eq=False)
class OwnTotals:
    """Totals of a mode's days that were drawn under a bound of their own, beside reconciled ones.

    Their bound leaves out other trips, so they tell the reconciled totals but for a little, and
    nothing where they are far from them.

    Args:
        values: shape (days,).
        weight: of them beside the reconciled totals, 0 to 1, shape (days,).
    """

    values: Floats
    weight: Floats

    @classmethod
    def beside(cls, values: Floats, variance: float, numbers: TapNumbers) -> OwnTotals:
        """Weigh totals beside the reconciled ones, each by its variance.

        Args:
            values: as drawn, shape (days,).
            variance: of their noise.
            numbers: with the reconciled totals.
        """
        reconciled = numbers.reconciled.total_variance
        apart = (values - numbers.totals) ** 2
        by_chance = (reconciled + variance) * (1 + _CHANCE_SDS * sqrt(2 / values.size))
        beyond = max(float(apart.mean()) - by_chance, 0.0)
        left_out = variance + np.maximum((_LEFT_OUT * values) ** 2, beyond)
        return cls(values, reconciled / (reconciled + left_out))


@dataclass(frozen=True, slots=True, eq=False)
class TapNumbers:
    """Tap-ons (or tap-offs) of one mode in one week.

    Args:
        cells: as drawn, shape (places, days, slots).
        slots: reconciled sums over places, shape (days, slots).
        places: reconciled sums over slots, shape (places, days).
        totals: reconciled, shape (days,).
        cell_variance: of the noise of a drawn cell.
        reconciled: least squares of one day, for its variances, which are the same on every day.
        has_slots: True if sums over places were drawn as a table of their own.
        has_places: the same of sums over slots.
        own_totals: drawn under a bound of their own, if they were.
    """

    cells: Floats
    slots: Floats
    places: Floats
    totals: Floats
    cell_variance: float
    reconciled: Reconciled
    has_slots: bool
    has_places: bool
    own_totals: OwnTotals | None = None

    @property
    def likely_totals(self) -> Floats:
        """What is known of the totals by all that was drawn of them, shape (days,)."""
        if self.own_totals is None:
            return self.totals
        apart = self.own_totals.values - self.totals
        likely: Floats = self.totals + self.own_totals.weight * apart
        return likely

    @property
    def slot_variance(self) -> float:
        """Variance of a reconciled sum over places."""
        return self.reconciled.row_variance

    @property
    def place_variance(self) -> float:
        """Variance of a reconciled sum over slots."""
        return self.reconciled.column_variance

    def shaken(self, look: TapNumbers) -> TapNumbers:
        """Return the numbers with a little of what a look adds to their noise."""
        parts = ("cells", "slots", "places", "totals")
        added = {name: getattr(look, name) - getattr(self, name) for name in parts}
        return replace(self, **{name: getattr(self, name) + SHAKE * added[name] for name in parts})

    def variance_of_slots(self, count: int) -> float:
        """Return the variance of the reconciled sum over some slots and all places."""
        chosen = np.zeros(self.reconciled.shape, dtype=np.bool_)
        chosen[:count] = True
        return self.reconciled.variance_of_sum(chosen)

    def variance_of_places(self, count: int) -> float:
        """Return the variance of the reconciled sum over some places and all slots."""
        chosen = np.zeros(self.reconciled.shape, dtype=np.bool_)
        chosen[:, :count] = True
        return self.reconciled.variance_of_sum(chosen)


def tap_numbers(
    tables: Mapping[By, DrawnDays], shapes: Mapping[Axes, tuple[int, int]], *, shares_total: bool
) -> dict[Axes, TapNumbers]:
    """Reconcile the drawn tables of one mode, day by day.

    Args:
        tables: by their dimensions; those of taps whose cells were not drawn are left out.
        shapes: slots and places of tap-on and tap-off.
        shares_total: True if both count the same trips.
    """
    days = len(next(iter(tables.values())).values)
    by_day = [
        reconciled_marginals(
            shapes,
            {
                by: Measured(drawn_days.values[day], drawn_days.variance)
                for by, drawn_days in tables.items()
            },
            shares_total=shares_total,
        )
        for day in range(days)
    ]
    return {
        taps: _tap_numbers(tables, taps, [estimates[taps] for estimates in by_day])
        for taps in by_day[0]
        if taps in tables
    }


def _tap_numbers(
    tables: Mapping[By, DrawnDays], taps: Axes, by_day: list[Reconciled]
) -> TapNumbers:
    """Put the days together."""
    cells = tables[taps]
    rows, columns = [day.rows for day in by_day], [day.columns for day in by_day]
    return TapNumbers(
        cells=np.ascontiguousarray(cells.values.transpose(2, 0, 1)),
        slots=np.array(rows),
        places=np.array(columns).T,
        totals=np.array([day.total for day in by_day]),
        cell_variance=cells.variance,
        reconciled=by_day[0],
        has_slots=taps[:1] in tables,
        has_places=taps[1:] in tables,
    )
