"""Ways to read a week's noisy cells: clipped, alone, with earlier weeks, with all of their days.

Cells are locations by days by slots of the tap-ons or tap-offs of one mode. Each fit is not
negative. The last step of those that borrow strength goes cell by cell: a count varies about its
rate by the root of it, so a fitted rate is moved towards the drawn number by Z/(Z + s^2), and never
further from it than 2.75 of its own standard deviations would have it (limited translation: Efron &
Morris 1972), which keeps a burst of a quarter of an hour in sight. Places whose level broke know it
from the weeks since (`level_breaks`). Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from turnstile.estimates.fitting.guard import guarded
from turnstile.estimates.fitting.level_breaks import without_breaks
from turnstile.estimates.fitting.singular_values import shrunk, shrunk_cells

Floats = NDArray[np.float64]
TRANSLATION_SDS = 2.75


@dataclass(frozen=True, slots=True, eq=False)
class Earlier:
    """What earlier weeks know of these cells.

    Args:
        rates: not negative, shape (places, days, slots); the prior.
        weeks: drawn numbers, latest first, shape (weeks, places, days, slots).
        deviations: standard deviation of the noise of each week and day, infinite on a gap.
    """

    rates: Floats
    weeks: Floats
    deviations: Floats


def prior(weeks: Floats, deviations: Floats) -> Earlier:
    """Return the prior from earlier weeks: their precision-weighted mean, singular values shrunk.

    Args:
        weeks: drawn numbers, shape (weeks, places, days, slots).
        deviations: standard deviation of each week's noise on each day, infinite where the day was
            a gap, shape (weeks, days).
    """
    precisions = deviations**-2.0
    total = precisions.sum(axis=0)
    mean = np.einsum("wd,wpds->pds", precisions / total, weeks)
    return Earlier(np.maximum(shrunk_cells(mean, total**-0.5), 0), weeks, deviations)


def fits(values: Floats, deviation: float, earlier: Earlier | None) -> Floats:
    """Return the fits, shape (3 or 4, places, days, slots): see above.

    Args:
        values: drawn numbers, shape (places, days, slots).
        deviation: standard deviation of their noise.
        earlier: the prior, where there is one.
    """
    of_days = np.full(values.shape[1], deviation)
    rates = [np.maximum(shrunk_cells(values, of_days), 0)]
    if earlier is not None:
        weeks = without_breaks(values, deviation, earlier.weeks, earlier.deviations)
        earlier = earlier if weeks is None else prior(weeks, earlier.deviations)
        departure = shrunk_cells(values - earlier.rates, of_days)
        rates.append(np.maximum(earlier.rates + departure, 0))
    rates.append(_of_all_days(values, deviation, earlier))
    guarded_rates = [guarded(values, rate, deviation**2) for rate in rates]
    moved = [_towards(values, rate, deviation**2) for rate in guarded_rates]
    return np.stack([np.maximum(values, 0), *moved])


def _of_all_days(values: Floats, deviation: float, earlier: Earlier | None) -> Floats:
    """Shrink what days have in common, and what they differ by, each by itself.

    The days of all weeks side by side, brought to noise of one size, are turned into their own
    eigenbasis: first what all share, then how weekends, holidays and trends differ from it. Each
    part is a matrix of places by slots that is mostly noise or mostly not.
    """
    scaled = values / deviation
    if earlier is not None:
        known = np.isfinite(earlier.deviations)
        before = earlier.weeks.transpose(0, 2, 1, 3)[known] / earlier.deviations[known, None, None]
        before = before.transpose(1, 0, 2)
        scaled = np.concatenate([scaled, before], axis=1)
    _, basis = np.linalg.eigh(np.einsum("pds,pes->de", scaled, scaled))
    parts = np.einsum("pds,de->eps", scaled, basis)
    ones = np.ones(values.shape[2])
    kept = np.stack([shrunk(part, ones) for part in parts])
    fit: Floats = np.einsum("eps,de->pds", kept, basis[: values.shape[1]]) * deviation
    return np.maximum(fit, 0)


def _towards(values: Floats, rates: Floats, noise_variance: float) -> Floats:
    """Move each rate towards its own drawn number by what a count varies about its rate."""
    weight = rates / (rates + noise_variance)
    apart = values - rates
    limit = TRANSLATION_SDS * np.sqrt(noise_variance + rates)
    near = rates + weight * apart
    far = values - np.sign(apart) * (1 - weight) * limit
    return np.maximum(np.where(np.abs(apart) > limit, far, near), 0)
