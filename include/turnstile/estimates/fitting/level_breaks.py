"""Breaks of level are forgotten: a place is estimated from the weeks after its last break. Pure.

The level of a place, beside that of all places, is compared between the most recent weeks and those
before, for every number of recent weeks (one change point with a normal prior: Chernoff & Zacks
1964). Each has a chance: by how much more likely the levels are if the place changed then, by about
as much as its level is, than by noise and by what places vary by from week to week. Older weeks are
brought to the new level, moved as far as it is known from the old one, by that chance; where it is
more than twice the old one, they hold what the recent weeks, this one among them, make of the place
by themselves. So a station that was closed, opened or moved, a line that was cut, is followed as
far as it shows above its noise, and a place that did not change loses next to nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from turnstile.estimates.fitting.singular_values import shrunk_cells

Floats = NDArray[np.float64]
_PRIOR = 0.9  # that a place changed at all: a change that is missed costs more than one too many
_CHANGE = 1.0  # of a place's level
_WOBBLE = 0.06  # of a place's level from week to week
_LEAST = 0.02  # chances below are none
_MOST_TIMES = 2.0
_MOST_LOG_ODDS, _ALMOST_0 = 500.0, 1e-9


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
    is_known = np.isfinite(deviations).any(axis=1)
    if not is_known.all():  # a week that is a gap on all of these days tells no level
        kept = without_breaks(values, deviation, weeks[is_known], deviations[is_known])
        if kept is None:
            return None
        present = weeks.copy()
        present[is_known] = kept
        return present
    every = np.concatenate([values[None], weeks])
    of_days = np.concatenate([np.full((1, values.shape[1]), deviation), deviations])
    chances, times = chances_of_breaks(*_levels(every, of_days))
    if not chances.any():
        return None
    present = every * (1 - np.cumsum(chances, axis=0))[:, :, None, None]
    for number in range(1, len(every)):
        old = every[number:] * times[number, None, :, None, None]
        is_new = (times[number] > _MOST_TIMES) & (chances[number] > 0)  # noise would grow as much
        if is_new.any():
            precisions = of_days[:number] ** -2.0
            total = precisions.sum(axis=0)
            mean = np.einsum("wd,wpds->pds", precisions / total, every[:number])
            old[:, is_new] = np.maximum(shrunk_cells(mean, total**-0.5), 0)[is_new]
        present[number:] += chances[number, None, :, None, None] * old
    return present[1:]


def chances_of_breaks(levels: Floats, variances: Floats) -> tuple[Floats, Floats]:
    """Return the chance that each place broke before so many recent weeks, and by how many times.

    Args:
        levels: of places, latest week first, shape (weeks, places).
        variances: of their noise, shape (weeks,).

    Returns:
        Two arrays of shape (weeks, places): chances, whose sums over weeks are at most 1, none
        before 0 weeks; and levels since over levels before, as far as they are known to differ.
    """
    weeks, places = levels.shape
    odds, times = np.zeros((weeks, places)), np.ones((weeks, places))
    for recent in range(1, weeks):
        ends = (slice(None, recent), slice(recent, None))
        now, then = (np.maximum(levels[end].mean(axis=0), 0) for end in ends)
        noise = sum(variances[end].sum() / variances[end].size ** 2 for end in ends)
        larger = np.maximum(np.maximum(now, then), noise**0.5)
        same = noise + (_WOBBLE * larger) ** 2
        change = (_CHANGE * larger) ** 2
        known = change / (change + same)
        log_odds = known * (now - then) ** 2 / (2 * same) + 0.5 * np.log(1 - known)
        odds[recent] = _PRIOR / (weeks - 1) * np.exp(np.minimum(log_odds, _MOST_LOG_ODDS))
        times[recent] = (then + known * (now - then)) / np.maximum(then, _ALMOST_0)
    chances = odds / (1 - _PRIOR + odds.sum(axis=0))
    return np.where(chances < _LEAST, 0.0, chances), times


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
