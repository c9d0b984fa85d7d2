"""Means of speed that borrow strength: effects of place, hour and cell, by best linear prediction.

With S a noisy sum of centered speeds, N a noisy number of bus-days and b a first guess of a cell's
mean (all in steps of 0.1 km/h), S - b N has mean N (mu - b) and a declared variance, so
y = b + (S - b N) / n, n the estimated bus-days, is an unbiased look at mu of variance r. Its parts
are a common mean, effects of place and hour (`crossed_effects`), and what is left of a cell: of
the cell itself, and of the buses that happened to pass it, whose variance falls as 1 / n. Each is
normal with a variance of its own; what weeks vary by is read from how all published weeks differ
(`week_differences`), because one week's noise hides it. The variances are those of greatest
likelihood, found by MacKay's iteration (1992, Bayesian interpolation): expectation maximisation
has the same end, but creeps to it where a variance is nearly 0. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from turnstile.estimates.crossed_effects import CrossedEffects, crossed_effects
from turnstile.estimates.week_differences import NO_BUSES, SpeedLook, WeekDifferences, differences

Floats = NDArray[np.float64]
_PASSES, _ROUNDS = 2, 100
_FIRST_VARIANCE = 25.0  # steps^2: effects of half a km/h
_FIRST_VARIANCE_OF_BUSES = 1e4  # steps^2: bus-days that differ by ten km/h
_LEAST_VARIANCE = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class Predicted:
    """Predicted means of all cells, steps, with the variance of their errors."""

    means: Floats
    variances: Floats


@dataclass(frozen=True, slots=True)
class _Variances:
    """Of the effects of places, hours and cells, and of one bus-day; steps^2."""

    of_place: float = _FIRST_VARIANCE
    of_hour: float = _FIRST_VARIANCE
    of_cell: float = _FIRST_VARIANCE
    of_bus: float = _FIRST_VARIANCE_OF_BUSES


def predicted(
    look: SpeedLook, before: Predicted | None = None, weeks: Sequence[SpeedLook] = ()
) -> Predicted:
    """Return the means of all cells, from this look and what was known before.

    Args:
        look: of one week, or sums over several.
        before: means and their uncertainty from earlier weeks; None without any.
        weeks: looks at the earlier weeks one by one.
    """
    known = _without_history(look) if before is None else before
    found = known
    for _ in range(_PASSES):
        base = found.means
        y, r = look.read(base)
        departs = before is not None
        departure = _departure(
            _Looks(y - known.means, r, known.variances, 1 / look.divisors),
            differences(weeks, base, cells_depart=departs),
        )
        found = Predicted(known.means + departure.means, departure.variances)
    return found


def _without_history(look: SpeedLook) -> Predicted:
    """Return the common mean everywhere: nothing else is known."""
    mean = look.sums.sum() / max(look.buses.sum(), NO_BUSES)
    shape = look.sums.shape
    return Predicted(np.full(shape, mean), np.zeros(shape))


@dataclass(frozen=True, slots=True, eq=False)
class _Looks:
    """Looks at departures from what was known; each shape (places, hours).

    Args:
        y: looks.
        r: their variances; infinite where there are none.
        known: variance of what was known of each cell.
        of_a_bus: share of a bus-day in its cell's mean.
    """

    y: Floats
    r: Floats
    known: Floats
    of_a_bus: Floats

    def signal(self, variances: _Variances) -> Floats:
        """Return the variance of what is left of each cell beside place and hour."""
        return variances.of_cell + variances.of_bus * self.of_a_bus + self.known

    def effects(self, variances: _Variances) -> CrossedEffects:
        """Return the effects of places and hours."""
        weights = 1 / (self.r + self.signal(variances))
        return crossed_effects(self.y, weights, 1 / variances.of_place, 1 / variances.of_hour)


def _departure(looks: _Looks, of_weeks: WeekDifferences) -> Predicted:
    """Predict departures from what was known, of variances that they and the weeks show."""
    variances = _Variances()
    for _ in range(_ROUNDS):
        effects = looks.effects(variances)
        variances = _next_variances(variances, looks, effects, of_weeks)
    effects, signal = looks.effects(variances), looks.signal(variances)
    left = np.where(np.isfinite(looks.r), 1 / (1 + signal / looks.r), 1.0)  # r / (r + signal)
    means = effects.fitted + (1 - left) * (looks.y - effects.fitted)
    return Predicted(means, signal * left + left**2 * effects.spread)


def _next_variances(
    before: _Variances, looks: _Looks, effects: CrossedEffects, of_weeks: WeekDifferences
) -> _Variances:
    """Return the variances of the next round."""
    is_seen = np.isfinite(looks.r)
    values = np.concatenate([(looks.y - effects.fitted)[is_seen], of_weeks.values])
    spread = np.concatenate([effects.spread[is_seen], np.zeros(of_weeks.values.shape)])
    of_cell = np.concatenate([np.ones(int(is_seen.sum())), of_weeks.of_cell])
    of_a_bus = np.concatenate([looks.of_a_bus[is_seen], of_weeks.of_a_bus])
    others = np.concatenate([(looks.r + looks.known)[is_seen], of_weeks.noise])
    total = others + before.of_cell * of_cell + before.of_bus * of_a_bus

    def of_part(variance: float, shares: Floats) -> float:
        own = shares > 0
        part = variance * shares[own] / total[own]
        errors = variance * shares[own] * (1 - part) + part**2 * spread[own]
        return _variance(variance, part * values[own] / np.sqrt(shares[own]), errors / shares[own])

    return _Variances(
        of_place=_variance(before.of_place, *effects.of_places),
        of_hour=_variance(before.of_hour, *effects.of_hours),
        of_cell=of_part(before.of_cell, of_cell),
        of_bus=of_part(before.of_bus, of_a_bus),
    )


def _variance(before: float, effects: Floats, variances: Floats) -> float:
    """Return the next variance of some effects, not quite 0.

    Args:
        before: variance that they were predicted with.
        effects: as predicted.
        variances: of their errors.
    """
    known = float((1 - variances / before).sum())  # of how many effects the looks say something
    return max(float((effects**2).sum()) / known if known > 0 else 0.0, _LEAST_VARIANCE)
