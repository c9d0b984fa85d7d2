"""Means of speed that borrow strength: effects of place, hour and cell, by best linear prediction.

With S a noisy sum of centered speeds, N a noisy number of bus-days and b a first guess of a cell's
mean (all in steps of 0.1 km/h), S - b N has mean N (mu - b) and a declared variance, so
y = b + (S - b N) / n, n the estimated bus-days, is an unbiased look at mu of variance r. Its parts
are a common mean, effects of place and hour, and what is left of a cell, each normal with a
variance of its own (Henderson 1975, best linear unbiased prediction). The variances are those of
greatest likelihood, found by MacKay's iteration (1992, Bayesian interpolation): expectation
maximisation has the same end, but creeps to it where a variance is nearly 0, as that of departures
from earlier weeks is, and stopped on its way it made intervals too wide. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_PASSES, _ROUNDS = 2, 100
_FIRST_VARIANCE = 25.0  # steps^2: effects of half a km/h
_LEAST_VARIANCE = 1e-3
_FLAT_PRECISION = 1e-9  # of the common mean
_NO_BUSES = 1.0


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


@dataclass(frozen=True, slots=True, eq=False)
class Predicted:
    """Predicted means of all cells, steps, with the variance of their errors."""

    means: Floats
    variances: Floats


def predicted(look: SpeedLook, before: Predicted | None = None) -> Predicted:
    """Return the means of all cells, from this look and what was known before.

    Args:
        look: of one week, or sums over several.
        before: means and their uncertainty from earlier weeks; None without any.
    """
    known = _without_history(look) if before is None else before
    base = known.means
    found = known
    for _ in range(_PASSES):
        n = np.maximum(look.estimated_buses, _NO_BUSES)
        y = base + (look.sums - base * look.buses) / n - known.means
        r = (look.sum_deviation**2 + base**2 * look.bus_deviation**2) / n**2
        r = np.where(look.estimated_buses < _NO_BUSES, np.inf, r)
        departure = _departure(y, r, known.variances)
        found = Predicted(known.means + departure.means, departure.variances)
        base = found.means
    return found


def _without_history(look: SpeedLook) -> Predicted:
    """Return the common mean everywhere: nothing else is known."""
    mean = look.sums.sum() / max(look.buses.sum(), _NO_BUSES)
    shape = look.sums.shape
    return Predicted(np.full(shape, mean), np.zeros(shape))


def _departure(y: Floats, r: Floats, known: Floats) -> Predicted:
    """Predict departures from what was known, of variances that the departures themselves show.

    Args:
        y: looks at the departures.
        r: variances of the looks; infinite where there are none.
        known: variance of what was known of each cell.
    """
    places = len(y)
    of_place = of_hour = of_cell = _FIRST_VARIANCE
    is_seen = np.isfinite(r)
    for _ in range(_ROUNDS):
        signal = of_cell + known
        effects = _effects(y, 1 / (r + signal), 1 / of_place, 1 / of_hour)
        share = of_cell / (r + signal)
        own = share * (y - effects.fitted)
        own_variance = of_cell - share * of_cell + share**2 * effects.spread
        of_place = _variance(of_place, *effects.each[:, 1 : places + 1])
        of_hour = _variance(of_hour, *effects.each[:, places + 1 :])
        of_cell = _variance(of_cell, own[is_seen], own_variance[is_seen])
    left = np.where(is_seen, 1 / (1 + signal / r), 1.0)  # r / (r + signal)
    means = effects.fitted + (1 - left) * (y - effects.fitted)
    return Predicted(means, signal * left + left**2 * effects.spread)


@dataclass(frozen=True, slots=True, eq=False)
class _Effects:
    """Sums of common mean, place and hour, their variances; each effect over its own variance."""

    fitted: Floats
    spread: Floats
    each: Floats


def _effects(y: Floats, weights: Floats, of_place: float, of_hour: float) -> _Effects:
    """Solve the mixed-model equations, whose matrix is that of two crossed factors.

    The block of the places is diagonal, so only the mean and the hours have to be solved for, by
    their Schur complement: 13 equations for twelve hours, whatever the number of places.

    Args:
        y: shape (places, hours).
        weights: of each look, same shape.
        of_place: prior precision of the effects of places.
        of_hour: of those of hours.
    """
    by_place, by_hour = weights.sum(axis=1), weights.sum(axis=0)
    rest = np.diag(np.concatenate([[by_place.sum() + _FLAT_PRECISION], by_hour + of_hour]))
    rest[0, 1:] = rest[1:, 0] = by_hour
    coupled = np.column_stack([by_place, weights])
    scaled = coupled / (by_place + of_place)[:, None]
    covariance = np.linalg.inv(rest - coupled.T @ scaled)  # of mean and hours
    with_place = -scaled @ covariance
    place_variance = 1 / (by_place + of_place) - (with_place * scaled).sum(axis=1)
    pulled = weights * y
    of_rest = np.concatenate([[pulled.sum()], pulled.sum(axis=0)])
    of_places = pulled.sum(axis=1) / (by_place + of_place)
    others = covariance @ (of_rest - coupled.T @ of_places)
    place = of_places - scaled @ others
    variances = np.diag(covariance)
    both = with_place[:, :1] + covariance[0, 1:] + with_place[:, 1:]
    effects = np.concatenate([others[:1], place, others[1:]])
    spread = np.concatenate([variances[:1], place_variance, variances[1:]])
    return _Effects(
        fitted=others[0] + place[:, None] + others[1:],
        spread=variances[0] + place_variance[:, None] + variances[1:] + 2 * both,
        each=np.stack([effects, spread]),
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
