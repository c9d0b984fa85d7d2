"""Bus-days of every cell, and what is not known of them: whether a bus passed, and how many. Pure.

A cell of place p and hour t has no bus with probability pi_t; else its bus-days n are negative
binomial about r_p g_t with shape k, so that places differ in traffic and hours share a profile. The
rates r are on a grid with a prior of their own that the places show (`_places_prior`, by
expectation maximisation; half of it begins at 0, where no bus ever comes). What the drawn number C
says of n is the density of its noise about n. Everything is a sum over fixed grids: no random
numbers, no search.

Earlier weeks, where there are any, say what each cell usually has. A place whose numbers are better
explained without them, a line that closed or moved, is estimated without them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_RATES = 28
_LEAST_RATE, _MOST_RATE = 0.02, 4.0  # in deviations of the noise; times the busiest place
_SHAPES = (1.5, 5.0, 15.0)
_EMPTY_TIMES = (0.5, 1.0, 2.0)
_ROUNDS, _EM_STEPS = 3, 25
_EMPTY_CELLS, _EMPTY_SHARE, _MOST_EMPTY = 10.0, 0.1, 0.9  # Beta prior of pi
_HOUR_STEP = 0.5  # how far the profile may move from hour to hour, of its mean
_LEAST_PROFILE = 1e-3
_FINE = 24  # bus-days that are looked at one by one; beyond, in parts of the noise
_STEPS_A_DEVIATION = 2.5
_PLACE_VARIES, _CELL_VARIES = 0.15, 0.08  # relative: rates from week to week
_FACTORS = 9  # of a place's rate, that are looked at
_MOST_LEVEL = 10.0  # of a week, times the usual one
_FORGOTTEN = 0.05  # prior probability that a place is not as it was
_LEAST_SHAPE, _MOST_SHAPE = 1e-3, 1e3
_TINY = 1e-300


@dataclass(frozen=True, slots=True, eq=False)
class BusDays:
    """Bus-days of a table; each shape (places, hours) if nothing else is said.

    Args:
        mean: of what is known of each cell's bus-days.
        variance: of it.
        empty: probability that no bus passed.
        unserved: probability that hardly any bus passes a place: fewer than its hours' noise
            together could tell from none, shape (places,).
        rates: of places, shape (places,); they follow the profile of hours.
        rate_errors: relative standard deviations of the rates, an error that hours share.
        profile: of hours, about 1, shape (hours,).
        grid: bus-days that were looked at, shape (numbers,).
        chances: of each of them, shape (places, hours, numbers).
    """

    mean: Floats
    variance: Floats
    empty: Floats
    unserved: Floats
    rates: Floats
    rate_errors: Floats
    profile: Floats
    grid: Floats
    chances: Floats


def bus_days(values: Floats, deviation: float, usual: BusDays | None = None) -> BusDays:
    """Return what drawn numbers say of the bus-days behind them.

    Args:
        values: drawn, shape (places, hours).
        deviation: standard deviation of their noise.
        usual: bus-days of earlier weeks, on average, as if of as many days as these.
    """
    look = _Look.of(values, deviation)
    fits = [_fitted(look, shape, times) for shape in _SHAPES for times in _EMPTY_TIMES]
    logs = np.array([fit.likelihood.sum() for fit in fits])
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()

    def mixed(name: str) -> Floats:
        parts = (w * getattr(fit, name) for w, fit in zip(weights, fits, strict=True))
        mean: Floats = np.sum(list(parts), axis=0)
        return mean

    chances, rates = mixed("chances"), mixed("rates")
    if usual is not None:
        chances = _as_usual(look, usual, chances, mixed("likelihood"))
    chances = np.swapaxes(chances, 0, 1)
    mean = chances @ look.grid
    errors = np.sqrt(np.maximum(mixed("rate_squares") - rates**2, 0))
    return BusDays(
        mean=mean,
        variance=np.maximum(chances @ look.grid**2 - mean**2, 0),
        empty=chances[:, :, 0],
        unserved=mixed("unserved"),
        rates=rates,
        rate_errors=errors / np.maximum(rates, _TINY),
        profile=mixed("profile"),
        grid=look.grid,
        chances=chances,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Look:
    """Drawn numbers, and the bus-days that may be behind them.

    Args:
        values: shape (hours, places).
        deviation: of their noise.
        grid: bus-days from 0 to more than can be there.
        widths: how many bus-days each stands for.
        seen: density of what was drawn for each, shape (hours, places, numbers).
    """

    values: Floats
    deviation: float
    grid: Floats
    widths: Floats
    seen: Floats

    @classmethod
    def of(cls, values: Floats, deviation: float) -> _Look:
        """Lay the grid."""
        most = max(float(values.max()), 0.0) + 5 * deviation
        step = max(1.0, np.floor(deviation / _STEPS_A_DEVIATION))
        grid = np.concatenate([np.arange(_FINE + 1.0), np.arange(_FINE + step, most + step, step)])
        edges = np.concatenate([[-0.5], (grid[1:] + grid[:-1]) / 2, [grid[-1] + step / 2]])
        apart = (values.T[:, :, None] - grid) / deviation
        return cls(values.T, deviation, grid, np.diff(edges), np.exp(-(apart**2) / 2))

    def ways(self, shape: Floats | float) -> Floats:
        """Return the part of negative binomial probabilities that the shape decides, logarithms."""
        from scipy.special import gammaln  # a fifth of a second of imports, for the step that fits

        log_ways: Floats = gammaln(self.grid + shape) - gammaln(shape) - gammaln(self.grid + 1)
        return log_ways

    def chances(self, mean: Floats, shape: Floats | float, ways: Floats) -> Floats:
        """Return the negative binomial probability of each number of bus-days, on a last axis."""
        mean = np.maximum(mean, _TINY)
        logs = ways - shape * np.log1p(mean / shape) + self.grid * np.log(mean / (mean + shape))
        chances: Floats = np.exp(logs) * self.widths
        chances /= np.maximum(chances.sum(axis=-1, keepdims=True), _TINY)
        return chances


@dataclass(frozen=True, slots=True, eq=False)
class _Fitted:
    """Bus-days under one shape and one share of empty cells.

    Args:
        likelihood: logarithm, by place.
        chances: of each number of bus-days, shape (hours, places, numbers).
        unserved: of each place.
        rates: of places; their means.
        rate_squares: means of their squares.
        profile: of hours.
    """

    likelihood: Floats
    chances: Floats
    unserved: Floats
    rates: Floats
    rate_squares: Floats
    profile: Floats


def _fitted(look: _Look, shape: float, times: float) -> _Fitted:
    """Return the bus-days under one shape, in rounds: rates of places, profile, empty cells."""
    hours = len(look.values)
    busiest = max(float(look.values.mean(axis=0).max()), look.deviation / hours**0.5)
    least, most = _LEAST_RATE * look.deviation, _MOST_RATE * busiest
    rates = np.concatenate([[0.0], np.geomspace(least, most, _RATES)])
    prior = np.concatenate([[0.5], np.full(_RATES, 0.5 / _RATES)])
    profile, empty = np.ones(hours), np.full(hours, _EMPTY_SHARE * times)
    ways = look.ways(shape)
    for number in range(_ROUNDS):
        counts = (1 - empty)[:, None, None] * look.chances(
            np.outer(profile, rates)[:, :, None], shape, ways
        )
        counts[:, :, 0] += empty[:, None]
        of_cells = np.maximum(look.seen @ np.swapaxes(counts, 1, 2), _TINY)
        logs = np.log(of_cells).sum(axis=0)
        prior = _places_prior(logs, prior)
        joint = logs + np.log(prior)
        top = joint.max(axis=1, keepdims=True)
        posterior = np.exp(joint - top)
        likelihood = top[:, 0] + np.log(posterior.sum(axis=1))
        posterior /= posterior.sum(axis=1, keepdims=True)
        if number < _ROUNDS - 1:
            profile = _profile(look, posterior @ rates, empty)
            none = (posterior[:, 1:] / of_cells[:, :, 1:]).sum(axis=2) * look.seen[:, :, 0]
            expected = empty * none.sum(axis=1) + _EMPTY_CELLS * _EMPTY_SHARE
            served = (1 - posterior[:, 0]).sum() + _EMPTY_CELLS
            empty = np.minimum(times * expected / served, _MOST_EMPTY)
    return _Fitted(
        likelihood,
        look.seen * ((posterior / of_cells) @ counts),
        posterior[:, rates < look.deviation / hours**0.5].sum(axis=1),
        posterior @ rates,
        posterior @ rates**2,
        profile,
    )


def _places_prior(logs: Floats, prior: Floats) -> Floats:
    """Return the prior of rates that the places show."""
    likelihood = np.exp(logs - logs.max(axis=1, keepdims=True))
    for _ in range(_EM_STEPS):
        joint = likelihood * prior
        prior = (joint / joint.sum(axis=1, keepdims=True)).mean(axis=0) + 1e-6
        prior /= prior.sum()
    return prior


def _profile(look: _Look, rates: Floats, empty: Floats) -> Floats:
    """Return how hours differ: regressed on the rates, smoothed by a walk, about 1."""
    hours = len(look.values)
    squares = float((rates**2).sum())
    if squares <= 0:
        return np.ones(hours)
    read = (look.values @ rates) / squares / (1 - empty)
    precision = squares * (1 - empty) ** 2 / look.deviation**2
    steps = np.diff(np.eye(hours), axis=0) / _HOUR_STEP
    smooth = np.linalg.solve(np.diag(precision) + steps.T @ steps, precision * read)
    smooth = np.maximum(smooth, _LEAST_PROFILE)
    profile: Floats = smooth / smooth.mean()
    return profile


def _as_usual(look: _Look, usual: BusDays, chances: Floats, alone: Floats) -> Floats:
    """Return the chances of each number of bus-days with what earlier weeks say.

    Args:
        look: at this week.
        usual: of earlier weeks.
        chances: without them.
        alone: logarithm of the likelihood without them, by place.
    """
    squares = float((usual.mean**2).sum())
    level = float((usual.mean.T * look.values).sum() / max(squares, _TINY))
    level = min(max(level, 1 / _MOST_LEVEL), _MOST_LEVEL)
    mean = np.maximum(level * usual.mean.T, _TINY)[:, :, None]
    variance = level**2 * usual.variance.T[:, :, None] + (_CELL_VARIES * mean) ** 2
    shape = np.clip(mean**2 / np.maximum(variance, _TINY), _LEAST_SHAPE, _MOST_SHAPE)
    steps, ways = np.linspace(-2.5, 2.5, _FACTORS), look.ways(shape)
    prior = np.exp(-(steps**2) / 2)
    posteriors, logs = [], []
    for step, weight in zip(steps, prior / prior.sum(), strict=True):
        factor = np.exp(_PLACE_VARIES * step)
        joint = look.seen * look.chances(factor * mean, shape, ways)
        of_cells = np.maximum(joint.sum(axis=2, keepdims=True), _TINY)
        posteriors.append(joint / of_cells)
        logs.append(np.log(of_cells).sum(axis=(0, 2)) + np.log(weight) + np.log(1 - _FORGOTTEN))
    posteriors.append(chances)
    logs.append(alone + np.log(_FORGOTTEN))
    weights = np.exp(np.stack(logs) - np.max(logs, axis=0))
    weights /= weights.sum(axis=0)
    mixed: Floats = np.einsum("fp,ftpn->tpn", weights, np.stack(posteriors))
    return mixed
