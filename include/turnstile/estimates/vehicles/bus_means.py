"""Mean speeds (or delays) of cells, of the city, its places and its hours, with their errors. Pure.

A drawn sum S of a cell with n bus-days, in steps about the middle of the range, is read as

    S = n (mu + b1 x_p + b2 x_t + a_p + h_t) + e,

x_p and x_t the logarithms of traffic by place and by hour: sparse places are faster, less alike.
Bus-days are known by `bus_counts` alone: what is not known of them is in the variance of e and,
where a place's hours share it, in that of a_p. What places, hours and cells vary by is not known
either: the fit is made at every point of a grid of these three, each weighed by its likelihood and
a public prior (half-normal, in parts of the range). Where little is known intervals are wide.

A cell's own mean comes last: for every number of bus-days that it may have had, the prediction from
all other cells and its own sum, mixed by their probabilities. A cell is shown where it is occupied
beyond doubt, the table where its means say more of how they differ than their errors hide.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from turnstile.estimates.vehicles.bus_counts import BusDays

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Moments = tuple[Floats, Floats]  # means and variances
MOST_RATIO = 0.70  # of predicted error to spread, of a table that is shown
MOST_EMPTY = 1 / 400  # of the cells that are shown, by the model
_LEVEL, _LEVEL_SD = 0.35, 0.15  # of speeds, in parts of the range
_DELAY_LEVEL = 0.55  # of delays: a little late
_SLOPE_SD = 3 / 65
_SPREADS = (1 / 8, 1 / 16, 1 / 9)  # half-normal priors: of places, hours and cells
_POINTS = ((0.15, 0.4, 0.8, 1.3, 2.0), (0.15, 0.7, 1.5), (0.15, 0.5, 1.0, 1.7))  # in parts of them
_OF_BUSES = ((9 / 65, 0.25), (14 / 65, 0.5), (19 / 65, 0.25))  # spread of a bus-day, its weight
_DEPARTS = 0.3  # of all priors, where earlier weeks are known
_SPARSER = 0.25  # power of traffic that places' differences fall with
_MOST_LOG_PLACE, _MOST_LOG_HOUR = 2.5, 2.0
_CHOICE = 0.3 / 65  # what the choice of pairs may move a mean of many cells
_HOUR_SDS = 4.0
_LEAST_CELLS = 30  # of a table: fewer do not show how cells differ
_LEAST_BUS_DAYS = 1e-3
_LEAST_WEIGHT = 1e-4  # of a point of the grid
_TAILS = 1.2  # of a cell's variance: some differ by more than a normal curve has, as motorways do
_OWN_LEAST = 0.1  # of the variance of a cell, what its place's other hours do not share
_MOST_KNOWN = 0.9  # of a prediction, by the cell itself
_TINY = 1e-300
_NEXT_TO_NOTHING = 1e-100
_AXES: dict[str, int | tuple[int, int]] = {"places": 1, "hours": 0, "city": (0, 1)}


@dataclass(frozen=True, slots=True, eq=False)
class Means:
    """Means in steps about the middle of the range.

    Args:
        values: means.
        variances: of their errors.
        is_shown: whether they are of buses that were there beyond doubt.
    """

    values: Floats
    variances: Floats
    is_shown: Bools


@dataclass(frozen=True, slots=True, eq=False)
class BusMeans:
    """Means of a table.

    Args:
        cells: shape (places, hours).
        ratio: predicted error of the cells that are shown over the spread of their means; infinite
            of too few.
        sums: of `places`, `hours` and the `city`.
    """

    cells: Means
    ratio: float
    sums: dict[str, Means]


@dataclass(frozen=True, eq=False)  # without slots: columns are remembered
class SumLook:
    """Drawn sums, and what is known of the bus-days in them.

    Args:
        sums: steps about the middle of the range, shape (places, hours).
        deviation: standard deviation of their noise.
        buses: of the same cells.
        count_sds: drawn bus-days of each hour, in standard deviations of their noise.
        span: of the range, steps.
        is_delay: whether the range lies about no delay.
        weeks: of which these are the mean.
    """

    sums: Floats
    deviation: float
    buses: BusDays
    count_sds: Floats
    span: float
    is_delay: bool = False
    weeks: int = 1

    @property
    def of_a_bus(self) -> float:
        """Variance of one bus-day's mean about its cell's, as assumed."""
        return sum(w * (spread * self.span) ** 2 for spread, w in _OF_BUSES) / self.weeks

    @cached_property
    def columns(self) -> Floats:
        """Of the common mean, of both slopes and of the hours, shape (places, hours, unknowns)."""
        places, hours = self.sums.shape
        columns = np.zeros((places, hours, 3 + hours))
        columns[:, :, 0] = 1
        columns[:, :, 1] = self.place_traffic[:, None]
        columns[:, :, 2] = _logs(self.buses.profile, self.buses.mean.sum(axis=0), _MOST_LOG_HOUR)
        columns[:, np.arange(hours), 3 + np.arange(hours)] = 1
        return columns

    @cached_property
    def place_traffic(self) -> Floats:
        """Logarithm of the traffic of each place."""
        return _logs(self.buses.rates, self.buses.mean.sum(axis=1), _MOST_LOG_PLACE)


def _logs(values: Floats, weights: Floats, most: float) -> Floats:
    """Return logarithms about their weighted mean, not too far from it."""
    logs = np.log(np.maximum(values, _LEAST_BUS_DAYS))
    about = float(np.average(logs, weights=weights + _LEAST_BUS_DAYS))
    return np.clip(logs - about, -most, most)


def bus_means(look: SumLook, usual: BusMeans | None = None) -> BusMeans:
    """Return what sums say of means and, where earlier weeks are known, of departures from them."""
    known = _Known.of(look, usual)
    fits = [_Fit.of(look, known, point) for point in product(*_POINTS)]
    most = max(fit.likelihood for fit in fits)
    weights = np.exp([fit.likelihood - most for fit in fits])
    kept = [
        (weight, fit)
        for weight, fit in zip(weights / weights.sum(), fits, strict=True)
        if weight > _LEAST_WEIGHT
    ]
    values, variances, empty = _cells(look, *_mixed([(w, fit.cells) for w, fit in kept]))
    shown = _beyond_doubt(empty)
    ratio = np.inf
    if shown.sum() >= _LEAST_CELLS:
        error, spread = float(variances[shown].mean()), float(values[shown].var())
        spread *= max(1 - float(np.sqrt(2 / shown.sum())), 0)  # as little as few cells may have
        ratio = float(np.sqrt(error / max(error + spread, _TINY)))
    are_there = {
        "places": _beyond_doubt(look.buses.unserved),
        "hours": look.count_sds > _HOUR_SDS,
        "city": np.ones(1, dtype=np.bool_),
    }
    sums = {name: _mixed([(w, fit.sums[name]) for w, fit in kept]) for name in are_there}
    choice = (_CHOICE * look.span) ** 2
    means = {
        name: Means(moments[0], moments[1] + choice, are_there[name])
        for name, moments in sums.items()
    }
    return BusMeans(Means(values, _TAILS * variances, shown), ratio, means)


def _mixed(parts: list[tuple[float, Moments]]) -> Moments:
    """Return mean and variance of a mixture."""
    total = sum(weight for weight, _ in parts)
    mean = np.sum([w * value for w, (value, _) in parts], axis=0) / total
    squares = np.sum([w * (spread + value**2) for w, (value, spread) in parts], axis=0) / total
    return mean, np.maximum(squares - mean**2, 0)


def _beyond_doubt(empty: Floats) -> Bools:
    """Return the surest, as many as are empty by no more than a share of them all."""
    order = np.argsort(empty, axis=None, kind="stable")
    share = np.cumsum(empty.ravel()[order]) / np.arange(1, order.size + 1)
    is_sure = np.zeros(empty.size, dtype=np.bool_)
    is_sure[order[: int((share <= MOST_EMPTY).sum())]] = True
    return is_sure.reshape(empty.shape)


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """What is known before the sums are looked at, steps.

    Args:
        base: mean of each cell, shape (places, hours).
        variance: of it, but for what a place's hours share.
        of_place: variance of what they share, shape (places,).
        level: size of a bus-day's part of the sum, about the middle; a number, or of each cell.
        scale: of all priors.
    """

    base: Floats
    variance: Floats
    of_place: Floats
    level: Floats
    scale: float

    @classmethod
    def of(cls, look: SumLook, usual: BusMeans | None) -> _Known:
        """Return the public priors, or what earlier weeks say."""
        if usual is not None:
            cells, places = usual.cells, usual.sums["places"].variances
            own_variance = np.maximum(
                cells.variances - places[:, None], cells.variances * _OWN_LEAST
            )
            return cls(cells.values, own_variance, places, cells.values, _DEPARTS)
        prior = (_DELAY_LEVEL if look.is_delay else _LEVEL) * look.span - look.span / 2
        total, noise = look.buses.mean.sum(), look.sums.size * look.deviation**2
        level_precision = (_LEVEL_SD * look.span) ** -2.0
        level = (total * look.sums.sum() / noise + prior * level_precision) / (
            total**2 / noise + level_precision
        )
        shape = look.sums.shape
        return cls(np.full(shape, prior), np.zeros(shape), np.zeros(len(look.sums)),
                   np.full(shape, level), 1.0)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    """One point of the grid.

    Args:
        likelihood: its logarithm, with the prior of the point.
        cells: what is predicted of each cell without its own sum, and what cells differ by.
        sums: of places, hours and the city.
    """

    likelihood: float
    cells: Moments
    sums: dict[str, Moments]

    @classmethod
    def of(cls, look: SumLook, known: _Known, point: tuple[float, ...]) -> _Fit:
        """Fit where places, hours and cells differ by so much."""
        taus = [a * b * look.span * known.scale for a, b in zip(point, _SPREADS, strict=True)]
        n, v, errors = look.buses.mean, look.buses.variance, look.buses.rate_errors
        count_variance = np.maximum(v - (n * errors[:, None]) ** 2, 0) * known.level**2
        own_error = taus[2] ** 2 + known.variance
        variance = look.deviation**2 + count_variance + (n**2 + v) * own_error + n * look.of_a_bus
        left = look.sums - n * known.base
        effects = _Effects.of(
            look.columns,
            n**2 / variance,
            n * left / variance,
            _EffectPriors(
                (taus[0] * np.exp(-_SPARSER * look.place_traffic)) ** 2 + known.of_place,
                (known.level[:, 0] * np.minimum(errors, 1)) ** 2,
                np.array(
                    [(_LEVEL_SD * look.span * known.scale) ** -2.0]
                    + [(_SLOPE_SD * look.span * known.scale) ** -2.0] * 2
                    + [taus[1] ** -2.0] * n.shape[1]
                ),
            ),
        )
        misfit = float((left**2 / variance).sum()) - effects.explained
        volume = float(np.log(variance).sum()) + effects.volume
        sums = {
            name: _mean_over(look, known, effects, taus[2], axis) for name, axis in _AXES.items()
        }
        values, spread = effects.without_own()
        return cls(
            -(misfit + volume) / 2 - sum(coordinate**2 for coordinate in point) / 2,
            (known.base + values, spread + own_error),
            sums,
        )


def _mean_over(
    look: SumLook, known: _Known, effects: _Effects, tau: float, axis: int | tuple[int, int]
) -> Moments:
    """Return the means of places, of hours or of the city, each cell by its bus-days."""
    n = look.buses.mean
    total = np.maximum(n.sum(axis=axis, keepdims=True), _TINY)
    share, cells = n / total, known.base + effects.values
    level = (share * cells).sum(axis=axis, keepdims=True)
    alone = share**2 * (tau**2 + known.variance + look.of_a_bus / np.maximum(n, 1))
    # where there are no buses at all: as good as nothing is known, in finite numbers
    away = (cells - level) / np.maximum(total, _NEXT_TO_NOTHING)
    alone = alone + look.buses.variance * away**2
    own_variance = alone.sum(axis=axis)
    of_place = {1: np.eye(len(n)), 0: share.T}.get(axis if axis in (0, 1) else -1)
    of_place = share.sum(axis=1)[None] if of_place is None else of_place
    columns = np.atleast_2d((share[:, :, None] * look.columns).sum(axis=axis))
    return np.atleast_1d(level.squeeze()), effects.variance(columns, of_place) + own_variance


@dataclass(frozen=True, slots=True, eq=False)
class _EffectPriors:
    """Variances and precisions of effects before they are seen.

    Args:
        speeds: variance of the effect of each place.
        counts: of the error of its bus-days, which looks like one.
        others: precisions of the common mean, the slopes and the hours.
    """

    speeds: Floats
    counts: Floats
    others: Floats


@dataclass(frozen=True, slots=True, eq=False)
class _Effects:
    """Effects of places and of all else, by the mixed-model equations (Henderson 1975).

    The block of places is diagonal, so only the others have to be solved for, by their Schur
    complement: 27 equations for a day of hours, whatever the number of places.

    Args:
        values: predicted departures of cells, steps, shape (places, hours).
        spread: variances of them.
        weights: of the cells' own sums.
        pulled: sums by weight.
        covariance: of the others.
        scaled: how places follow the others, shape (places, others).
        precision: of places, the others given.
        share: of a place's effect that is no error of its bus-days.
        rest: variance of what that takes out.
        explained: of the squares.
        volume: logarithm of the determinant that the effects add to the likelihood.
    """

    values: Floats
    spread: Floats
    weights: Floats
    pulled: Floats
    covariance: Floats
    scaled: Floats
    precision: Floats
    share: Floats
    rest: Floats
    explained: float
    volume: float

    @classmethod
    def of(cls, columns: Floats, weights: Floats, pulled: Floats, prior: _EffectPriors) -> _Effects:
        """Solve the equations."""
        flat = columns.reshape(-1, columns.shape[2])
        inner = flat.T @ (weights.reshape(-1, 1) * flat) + np.diag(prior.others)
        both = prior.speeds + prior.counts
        precision = weights.sum(axis=1) + 1 / both
        coupled = (weights[:, None, :] @ columns)[:, 0]
        scaled = coupled / precision[:, None]
        schur = inner - coupled.T @ scaled
        covariance = np.linalg.inv(schur)
        of_others, of_places = flat.T @ pulled.ravel(), pulled.sum(axis=1)
        others = covariance @ (of_others - scaled.T @ of_places)
        places = of_places / precision - scaled @ others
        share = prior.speeds / both
        rest = prior.speeds * (1 - share)
        reach = columns - (share[:, None] * scaled)[:, None, :]
        spread = ((reach @ covariance) * reach).sum(axis=2)
        return cls(
            values=columns @ others + (share * places)[:, None],
            spread=spread + (share**2 / precision + rest)[:, None],
            weights=weights,
            pulled=pulled,
            covariance=covariance,
            scaled=scaled,
            precision=precision,
            share=share,
            rest=rest,
            explained=float(of_others @ others + of_places @ places),
            volume=float(
                np.log(precision * both).sum()
                + np.linalg.slogdet(schur)[1]
                - np.log(prior.others).sum()
            ),
        )

    def without_own(self) -> Moments:
        """Return what the other cells say of each."""
        known = np.minimum(self.spread * self.weights, _MOST_KNOWN)
        values = (self.values - self.spread * self.pulled) / (1 - known)
        is_cut = self.spread * self.weights > _MOST_KNOWN
        return np.where(is_cut, self.values, values), self.spread / (1 - known)

    def variance(self, columns: Floats, of_place: Floats) -> Floats:
        """Return the variance of sums of effects.

        Args:
            columns: how much of each of the others, shape (sums, others).
            of_place: how much of each place, shape (sums, places).
        """
        reach = columns - (of_place * self.share) @ self.scaled
        column_variance: Floats = ((reach @ self.covariance) * reach).sum(axis=1)
        return column_variance + of_place**2 @ (self.share**2 / self.precision + self.rest)


def _cells(look: SumLook, predicted: Floats, spread: Floats) -> tuple[Floats, Floats, Floats]:
    """Return means and variances of cells, each with its own sum, and whether it is empty."""
    chances, noise, half = look.buses.chances, look.deviation**2, look.span / 2
    n = np.maximum(look.buses.grid[1:], 1)
    moments = np.zeros((3, *predicted.shape))
    for of_bus, weight in _OF_BUSES:
        v = spread[:, :, None] + (of_bus * look.span) ** 2 / look.weeks / n
        total = noise + n**2 * v
        apart = look.sums[:, :, None] - n * predicted[:, :, None]
        seen = np.exp(-(apart**2) / total / 2) * np.sqrt(noise / total)
        chance = weight * chances[:, :, 1:] * seen
        mean = predicted[:, :, None] + n * v * apart / total
        moments[0] += chance.sum(axis=2)
        moments[1] += (chance * mean).sum(axis=2)
        moments[2] += (chance * (mean**2 + v * noise / total)).sum(axis=2)
    none = chances[:, :, 0] * np.exp(-(look.sums**2) / noise / 2)
    is_known = moments[0] > _TINY
    occupied = np.where(is_known, moments[0], 1)
    means = np.where(is_known, moments[1] / occupied, predicted)
    squares = np.where(is_known, moments[2] / occupied, means**2 + spread + look.of_a_bus)
    empty = np.where(is_known, none / (none + occupied), look.buses.empty)
    return np.clip(means, -half, half), np.maximum(squares - means**2, 0), empty
