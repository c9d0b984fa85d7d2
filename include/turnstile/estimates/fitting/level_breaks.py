"""Breaks of level are forgotten: a place is estimated from the weeks after its last break. Pure.

The level of a place, beside that of all places, is compared between the most recent weeks and those
before, for every number of recent weeks (the likelihood ratio of one change point, Hinkley 1970).
Beyond three standard deviations, of the noise and of what places vary by from week to week, it is a
break: a station that was closed, opened or moved, a line that was cut. Older weeks of that place
are brought to its new level; where that is more than twice the old one, they hold what the recent
weeks, this one among them, make of the place by themselves. One place in fifty breaks by noise
alone, and then loses next to nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from turnstile.estimates.fitting.singular_values import shrunk_cells

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
BREAK_SDS = 3.0
_WOBBLE = 0.06  # of a place's level from week to week
_MOST_TIMES = 2.0


def without_breaks(
    values: Floats, deviation: float, weeks: Floats, deviations: Floats
) -> Floats | None:
    """Return earlier weeks with each place at its present level; None if no place broke.

    Args:
        values: this week's drawn numbers, shape (places, days, slots).
        deviation: standard deviation of their noise.
        weeks: those of earlier weeks, latest first, shape (weeks, places, days, slots).
        deviations: of their noise on each day, infinite on a gap, shape (weeks, days).
    """
    every = np.concatenate([values[None], weeks])
    of_days = np.concatenate([np.full((1, values.shape[1]), deviation), deviations])
    levels, variances = _levels(every, of_days)
    recent = recent_weeks(levels, variances)
    if (recent == len(every)).all():
        return None
    for number in np.unique(recent[recent < len(every)]):
        places = np.flatnonzero(recent == number)
        now, then = (np.maximum(levels[end, places].mean(axis=0), 0) for end in _ends(number))
        times = now / np.maximum(then, 1e-9)
        old = every[number:, places] * times[None, :, None, None]
        is_new = times > _MOST_TIMES  # noise would grow as much
        if is_new.any():
            precisions = of_days[:number] ** -2.0
            total = precisions.sum(axis=0)
            mean = np.einsum("wd,wpds->pds", precisions / total, every[:number])
            old[:, is_new] = np.maximum(shrunk_cells(mean, total**-0.5), 0)[places[is_new]]
        every[number:, places] = old
    return every[1:]


def recent_weeks(levels: Floats, variances: Floats) -> Ints:
    """Return how many weeks each place has had its level, this one counted, shape (places,).

    Args:
        levels: of places, latest week first, shape (weeks, places).
        variances: of their noise, shape (weeks,).
    """
    weeks, places = levels.shape
    best, durations = np.full(places, BREAK_SDS**2), np.full(places, weeks)
    for recent in range(1, weeks):
        ends = _ends(recent)
        now, then = (levels[end].mean(axis=0) for end in ends)
        noise = sum(variances[end].sum() / variances[end].size ** 2 for end in ends)
        varied = (_WOBBLE * np.maximum(now, then)) ** 2
        score = (now - then) ** 2 / (noise + varied)
        durations, best = np.where(score > best, recent, durations), np.maximum(score, best)
    return durations


def _levels(every: Floats, deviations: Floats) -> tuple[Floats, Floats]:
    """Return each week's level of each place, shape (weeks, places), and the noise's variance.

    Levels are multiples of what an average place has in each slot, which tells more of a place
    than its plain sum, at this week's level of all places.

    Args:
        every: drawn numbers, shape (weeks, places, days, slots).
        deviations: of their noise, shape (weeks, days).
    """
    profile = np.maximum(every.mean(axis=(0, 1)), 0.0)
    known = np.isfinite(deviations)
    energy = np.maximum(known @ (profile**2).sum(axis=1), 1e-9)
    levels = np.einsum("wpds,ds,wd->wp", every, profile, known) / energy[:, None]
    noise = np.where(known, deviations, 0.0) ** 2
    variances = noise @ (profile**2).sum(axis=1) / energy**2
    network = np.maximum(levels.mean(axis=1), 1e-9)
    times = network[0] / network
    return levels * times[:, None], variances * times**2


def _ends(recent: int) -> tuple[slice, slice]:
    """Return the weeks since a break, and those before it."""
    return slice(None, recent), slice(recent, None)
