"""How the mean speeds of published weeks differ, cell by cell: what a week varies by. Pure.

Of k looks at a cell, k - 1 orthonormal (Helmert) contrasts hold all that they say of differences
between weeks, and nothing of the mean that the weeks share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
NO_BUSES = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class SpeedLook:
    """Noisy sums and bus-days of every cell; shape (places, hours).

    Args:
        sums: centered, steps.
        buses: bus-days.
        estimated_buses: bus-days with borrowed strength, >= 0.
        sum_deviation: standard deviation of the sums' noise, steps.
        bus_deviation: of the bus-days' noise.
    """

    sums: Floats
    buses: Floats
    estimated_buses: Floats
    sum_deviation: float
    bus_deviation: float

    @property
    def divisors(self) -> Floats:
        """Bus-days to divide by: never fewer than one."""
        return np.maximum(self.estimated_buses, NO_BUSES)

    def read(self, base: Floats) -> tuple[Floats, Floats]:
        """Return looks at the means about a first guess, and their variances; infinite without."""
        n = self.divisors
        y = base + (self.sums - base * self.buses) / n
        r = (self.sum_deviation**2 + base**2 * self.bus_deviation**2) / n**2
        return y, np.where(self.estimated_buses < NO_BUSES, np.inf, r)


@dataclass(frozen=True, slots=True, eq=False)
class WeekDifferences:
    """Contrasts of weeks; each shape (contrasts of all cells,), steps.

    Args:
        values: with the shift that all cells share taken out.
        noise: variances of their noise.
        of_cell: share of the variance of a cell's own departures in that of each contrast.
        of_a_bus: the same of the variance of one bus-day.
    """

    values: Floats
    noise: Floats
    of_cell: Floats
    of_a_bus: Floats


def differences(weeks: Sequence[SpeedLook], base: Floats, *, cells_depart: bool) -> WeekDifferences:
    """Return how weeks differ; nothing of fewer than two.

    Args:
        weeks: looks at each.
        base: first guess of the means, steps, shape (places, hours).
        cells_depart: whether what is estimated departs from week to week too, or is what the weeks
            share, in which case they differ by their buses alone.
    """
    none = np.zeros(0)
    if not weeks:
        return WeekDifferences(none, none, none, none)
    y, r = np.stack([one.read(base) for one in weeks], axis=1)
    is_seen = np.isfinite(r).all(axis=0)
    if len(weeks) == 1 or not is_seen.any():
        return WeekDifferences(none, none, none, none)
    from scipy.linalg import helmert  # a tenth of a second of imports, where weeks are compared

    contrasts = helmert(len(weeks))
    values, noise = contrasts @ y[:, is_seen], contrasts**2 @ r[:, is_seen]
    of_a_bus = contrasts**2 @ np.stack([1 / one.divisors for one in weeks])[:, is_seen]
    shift = np.average(values, axis=1, weights=1 / noise)[:, None]
    return WeekDifferences(
        (values - shift).ravel(),
        noise.ravel(),
        np.full(values.size, float(cells_depart)),
        of_a_bus.ravel(),
    )
