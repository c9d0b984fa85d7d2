"""Ways to read a week's noisy cells: clipped, with earlier weeks, with all of their days.

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
from turnstile.estimates.fitting.singular_values import pooled, shrunk, shrunk_cells

Floats = NDArray[np.float64]
TRANSLATION_SDS = 2.75


@dataclass(frozen=True, slots=True, eq=False)
class Weeks:
    """Drawn numbers of several weeks, latest first.

    Args:
        values: shape (weeks, places, days, slots).
        deviations: standard deviation of the noise of each week and day, infinite on a gap.
    """

    values: Floats
    deviations: Floats


def fits(values: Floats, deviation: float, earlier: Weeks | None) -> Floats:
    """Return the fits, shape (2 or 3, places, days, slots): see above.

    Args:
        values: drawn numbers, shape (places, days, slots).
        deviation: standard deviation of their noise.
        earlier: weeks before, where there are any.
    """
    weeks, rates = Weeks(values[None], np.full((1, values.shape[1]), deviation)), []
    if earlier is not None:
        deviations = np.concatenate([weeks.deviations, earlier.deviations])
        every = np.concatenate([weeks.values, earlier.values])
        weeks = Weeks(without_breaks(every, deviations), deviations)
        usual = pooled(weeks.values, deviations)
        rates.append(np.maximum(usual + shrunk_cells(values - usual, deviations[0]), 0))
    rates.append(_of_all_days(weeks) * deviation)
    guarded_rates = [guarded(values, rate, deviation**2) for rate in rates]
    moved = [_towards(values, rate, deviation**2) for rate in guarded_rates]
    return np.stack([np.maximum(values, 0), *moved])


def _of_all_days(weeks: Weeks) -> Floats:
    """Shrink what days have in common, and what they differ by, each by itself.

    The days of all weeks side by side, brought to noise of one size, are turned into their own
    eigenbasis: first what all share, then how weekends, holidays and trends differ from it. Each
    part is a matrix of places by slots that is mostly noise or mostly not. Counts vary about their
    rates, so busy places and slots count for less (weights of rows and columns).

    Returns:
        The first week's days, in standard deviations of their noise.
    """
    known = np.isfinite(weeks.deviations)
    scaled = weeks.values.transpose(0, 2, 1, 3)[known] / weeks.deviations[known, None, None]
    rates = np.maximum(scaled.mean(axis=0), 0) / weeks.deviations[0, 0]  # over variances of noise
    places, slots = (1 + rates.mean(axis=axis, keepdims=True) for axis in (1, 0))
    weights = np.sqrt(places * slots / (1 + rates.mean()))
    scaled = scaled / weights
    _, basis = np.linalg.eigh(np.einsum("dps,eps->de", scaled, scaled))
    ones = np.ones(len(slots.T))
    kept = np.stack([shrunk(part, ones) for part in np.einsum("dps,de->eps", scaled, basis)])
    days = weeks.values.shape[2]
    fit: Floats = np.einsum("eps,de->pds", kept, basis[:days]) * weights[:, None]
    return np.maximum(fit, 0)


def _towards(values: Floats, rates: Floats, noise_variance: float) -> Floats:
    """Move each rate towards its own drawn number by what a count varies about its rate."""
    weight = rates / (rates + noise_variance)
    apart = values - rates
    limit = TRANSLATION_SDS * np.sqrt(noise_variance + rates)
    near = rates + weight * apart
    far = values - np.sign(apart) * (1 - weight) * limit
    return np.maximum(np.where(np.abs(apart) > limit, far, near), 0)
