"""Breaks of level are forgotten: a place is estimated from the weeks after its last break. Pure.

The level of a place, beside that of all places, is compared between the most recent weeks and those
before, for every number of recent weeks (one change point with a normal prior: Chernoff & Zacks
1964). Each has a chance: by how much more likely the levels are if the place changed then, by about
as much as its level is, than by noise and by what places vary by from week to week. A place that
closed this very week, all but for a few, has a chance of its own: one week shows it late. Older
weeks are brought to the new level, moved as far as it is known from the old one, by that chance;
where it is more than twice the old one, they hold what the recent weeks, this one among them, make
of the place by themselves. So a station that was closed, opened or moved, a line that was cut, is
followed as far as it shows above its noise. A place whose level does not stand out of the noise of
a week could not be seen to change: it keeps all of its weeks, and loses nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from turnstile.estimates.fitting.singular_values import pooled

Floats = NDArray[np.float64]
_CHANGED, _CLOSED = 0.7, 0.25  # prior chances: a change that is missed costs more than one too many
_CHANGE = 1.0  # of a place's level
_CLOSED_AT, _CLOSED_SD = 0.1, 0.15  # parts of its level that a place has left
_WOBBLE = 0.06  # of a place's level from week to week
_SEEN_SDS = 2.0  # of the noise of a level: what may be there, and what must be to be seen to change
_LEAST = 0.02  # chances below are none
_MOST_TIMES = 2.0
_MOST_LOG_ODDS, _ALMOST_0 = 500.0, 1e-9


def without_breaks(weeks: Floats, deviations: Floats) -> Floats:
    """Return weeks with each place at its present level.

    Args:
        weeks: drawn numbers, this week's first, latest first, shape (weeks, places, days, slots).
        deviations: of their noise on each day, infinite on a gap, shape (weeks, days).
    """
    present = weeks.copy()
    is_known = np.isfinite(deviations).any(axis=1)  # a gap on all of these days tells no level
    every, of_days = weeks[is_known], deviations[is_known]
    chances, times = chances_of_breaks(*_levels(every, of_days))
    moved = every * (1 - np.cumsum(chances, axis=0))[:, :, None, None]
    for number in range(1, len(every)):
        old = every[number:] * times[number, None, :, None, None]
        is_new = (times[number] > _MOST_TIMES) & (chances[number] > 0)  # noise would grow as much
        if is_new.any():
            old[:, is_new] = pooled(every[:number], of_days[:number])[is_new]
        moved[number:] += chances[number, None, :, None, None] * old
    present[is_known] = moved
    return present


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
    variances = np.maximum(variances, _ALMOST_0**2)  # where nothing is above 0, all are 0
    odds, times = np.zeros((weeks, places)), np.ones((weeks, places))
    for recent in range(1, weeks):
        ends = (slice(None, recent), slice(recent, None))
        now, then = (np.maximum(levels[end].mean(axis=0), 0) for end in ends)
        of_now, of_then = (variances[end].sum() / variances[end].size ** 2 for end in ends)
        least = [now - _SEEN_SDS * of_now**0.5, then - _SEEN_SDS * of_then**0.5]
        larger = np.max([*least, levels.mean(axis=0), np.full(places, _ALMOST_0)], axis=0)
        same = of_now + of_then + (_WOBBLE * larger) ** 2
        change = (_CHANGE * larger) ** 2
        known = change / (change + same)
        chance = _CHANGED / (weeks - 1) * _odds(now - then, same, now - then, same + change)
        level = then + known * (now - then)
        if recent == 1:
            left = (_CLOSED_SD * then) ** 2
            apart, variance = levels[0] - _CLOSED_AT * then, of_now + left
            variance = variance + _CLOSED_AT**2 * of_then
            closed = _CLOSED * _odds(levels[0] - then, same, apart, variance)
            at = np.maximum(_CLOSED_AT * then + apart * left / variance, 0)
            level = (chance * level + closed * at) / (chance + closed)
            chance = chance + closed
        odds[recent] = chance * (larger > _SEEN_SDS * variances.mean() ** 0.5)
        times[recent] = level / np.maximum(then, _ALMOST_0)
    chances = odds / (1 - _CHANGED - _CLOSED + odds.sum(axis=0))
    return np.where(chances < _LEAST, 0.0, chances), times


def _odds(apart: Floats, variance: Floats, other: Floats, other_variance: Floats) -> Floats:
    """Return how many times as likely the other normal deviate is as the first."""
    log_odds = (apart**2 / variance - other**2 / other_variance) / 2
    odds: Floats = np.exp(np.minimum(log_odds, _MOST_LOG_ODDS))
    return odds * np.sqrt(variance / other_variance)


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
