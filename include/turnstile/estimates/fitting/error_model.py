"""How large the error of an estimate is, known without the truth, by size and mode. Pure.

With Y the unbiased number beside an estimate f(Y), s^2 the variance of its noise, and c by how much
f goes with that noise (s^2 times its slope), the mean squared error of f is that of

    (f - Y)^2 - s^2 + 2 c

without bias (Stein 1981), and c itself where f is the best that can be made of Y (Tweedie's
formula: Efron 2011). c is seen nearly without noise where Y is shaken a little (Ramani, Blu & Unser
2008), while (f - Y)^2 has the noise of the noise: of small numbers under much noise it tells
nothing. So c says how errors grow with the size of a number, and the unbiased errors by how much
they are larger, a factor kappa for each mode's taps and each usual size. Errors are

    v = kappa a f1 + u + u^2,  f1 = r s^2 / (r + s^2),

r the rate, f1 what a count varies about it, and a the ratio of c to it in a size class, drawn
towards that of all where the class has few numbers. Between the middles of two classes a is between
theirs: with one for the whole of a class the least numbers of each would have too wide intervals
and the largest too narrow ones. The smallest, published as 0, are a class of their own. Nothing
lies below 0, so most of them do not go with the noise, and c tells too little of what they hide:
their a is at least that of numbers above 0 of their rate. kappa is asked beside what c tells of
them, so that it stays that of the others. kappa is a normal process over modes, days and sizes,
about the kappa of that day of the numbers that are added up, and its posterior mean is taken. A day
that is unlike the others (a Saturday, a holiday) is estimated worse than they are: what its numbers
go with the noise does not tell of that. Sizes are those of the place at that time of day over the
week: in classes of the estimates themselves the noise would be larger than it is, because it puts
numbers into them. u is by how much all numbers of a mode and hour of the day, or all places of a
mode of like size, may lie too low or too high together, and how well that is known. In a small mode
under much noise it is nearly all that can be said, and intervals are wide.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
USUAL = 1.15  # kappa of cells, and of what adds up no table
_KAPPA_SD, _DAY_SD = 0.3, 0.5  # of kappa: of all, of a day's
_GROUP_SD, _SIZE_SD = 0.15, 0.25  # of a mode's, of a size's
_REACH = 2.0  # sizes over which those of sizes are alike
_SIZES_SDS = (0.3, 1.0, 3.0, 10.0, 30.0)  # in standard deviations of the noise
_MODEL_ERROR = 1.03  # no description is more exact
_KAPPA_LEAST, _SHARE_LEAST = 0.7, 0.2  # on the safe side, and often reached
_NONE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class ErrorTerms:
    """Estimates with the terms that their error depends on; each shape (numbers,).

    Args:
        estimates: >= 0.
        rates: > 0; what the errors grow with (`published_tables.rates_of`).
        noise_variance: of the unbiased number beside each.
        classes: size class.
        usual: mean of the rates of the place at that time of day over the days of the week.
        groups: index of the mode's taps.
        days: index of the day.
        levels: index of what lies too low or too high together: hour of the day, or class of the
            usual size.
        weights: by how many times that; of regions their places over those of the mean region.
    """

    estimates: Floats
    rates: Floats
    noise_variance: Floats
    classes: Ints
    usual: Floats
    groups: Ints
    days: Ints
    levels: Ints
    weights: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Estimates beside the unbiased numbers, and how they go with the noise of these.

    Args:
        numbers: estimates.
        unbiased: the numbers beside them.
        slopes: c of each, with noise.
    """

    numbers: ErrorTerms
    unbiased: Floats
    slopes: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """a by size.

    Args:
        least: of the first class, as c tells it.
        middles: of the other classes that have numbers, increasing logarithms of rates.
        logs: of their a.
    """

    least: float
    middles: Floats
    logs: Floats

    def of(self, numbers: ErrorTerms) -> Floats:
        """Return a of each number: between those of the classes whose middles are next to it."""
        between = np.exp(np.interp(_log_rates(numbers), self.middles, self.logs))
        return np.where(numbers.classes == 0, np.maximum(self.least, between), between)


@dataclass(frozen=True, slots=True, eq=False)
class ErrorModel:
    """Calibrated variances.

    Args:
        kappa: of each day, for the tables that add these numbers up.
        of_group: kappa of each mode's taps, day and usual size, shape (groups, days, sizes).
        shares: a by size.
        unseen: u of each mode's taps and level, shape (groups, levels).
    """

    kappa: Floats
    of_group: Floats
    shares: Shares
    unseen: Floats

    def variances(self, numbers: ErrorTerms) -> Floats:
        """Return the variance of each estimate's error, shape (numbers,)."""
        of_count, level = _parts(numbers, self.unseen)
        kappas = self.of_group[numbers.groups, numbers.days, _sizes(numbers)]
        variances: Floats = kappas * self.shares.of(numbers) * of_count + level
        return variances


def calibrated(
    judged: Judged, classes: int, kappa: Floats, *, unseen_sds: float = 2.0
) -> ErrorModel:
    """Return the error model of one table.

    Args:
        judged: its numbers.
        classes: number of size classes.
        kappa: of the table whose numbers it adds up, of each day or of all.
        unseen_sds: of what is not known of how far levels lie off that is put on the safe side.
    """
    numbers = judged.numbers
    groups, levels = int(numbers.groups.max()) + 1, int(numbers.levels.max()) + 1
    unseen = _unseen(judged, (groups, max(levels, classes)), unseen_sds)
    of_count, level = _parts(numbers, unseen)
    shares = _shares(judged, of_count, classes)
    expected = np.where(numbers.classes == 0, shares.least, shares.of(numbers)) * of_count
    variance = numbers.noise_variance
    errors = (numbers.estimates - judged.unbiased) ** 2 - variance + 2 * judged.slopes - level
    shape = groups, int(numbers.days.max()) + 1, len(_SIZES_SDS) + 1
    strata = np.ravel_multi_index((numbers.groups, numbers.days, _sizes(numbers)), shape)
    seen = (errors, expected, 2 * variance**2)
    sums: Floats = np.stack([np.bincount(strata, part, int(np.prod(shape))) for part in seen])
    kappas = _kappas(sums, shape, kappa)
    weights = sums[1].reshape(shape)
    of_days: Floats = (kappas * weights).sum(axis=(0, 2)) / weights.sum(axis=(0, 2))
    return ErrorModel(of_days, _MODEL_ERROR * kappas, shares, unseen)


def _kappas(sums: Floats, shape: tuple[int, int, int], usual_kappa: Floats) -> Floats:
    """Return kappa of each mode's taps, day and size.

    Args:
        sums: squared errors, expected ones, and the variance of the former, shape (3, strata).
        shape: groups, days and sizes.
        usual_kappa: kappa that is expected, of each day or of all.
    """
    group, day, size = (index.ravel() for index in np.indices(shape))
    is_mode, is_day = group[:, None] == group, day[:, None] == day
    closeness = np.exp(-np.abs(size[:, None] - size) / _REACH)
    of_mode = is_mode * (_GROUP_SD**2 + _SIZE_SD**2 * closeness)
    usual = np.broadcast_to(usual_kappa, shape[1])[day]
    prior = np.outer(usual, usual) * (_KAPPA_SD**2 + is_day * _DAY_SD**2 + of_mode)
    is_seen = sums[1] > 0
    errors, expected, spread = sums[:, is_seen]
    known: Floats = prior[:, is_seen]
    apart = errors / expected - usual[is_seen]
    noise = np.diag(spread / expected**2)
    kappas: Floats = usual + known @ np.linalg.solve(known[is_seen] + noise, apart)
    at_least: Floats = np.maximum(kappas, _KAPPA_LEAST)
    return at_least.reshape(shape)


def _sizes(numbers: ErrorTerms) -> Ints:
    """Return the class of the usual size of each number, in standard deviations of the noise."""
    return np.searchsorted(np.array(_SIZES_SDS), numbers.usual / np.sqrt(numbers.noise_variance))


def _parts(numbers: ErrorTerms, unseen: Floats) -> tuple[Floats, Floats]:
    """Return f1 and u + u^2."""
    level = unseen[numbers.groups, numbers.levels] * numbers.weights
    rates, noise = numbers.rates, numbers.noise_variance
    return rates * noise / (rates + noise), level + level**2


def _log_rates(numbers: ErrorTerms) -> Floats:
    """Return logarithms of the rates, in standard deviations of the noise."""
    log_rates: Floats = np.log(numbers.rates / np.sqrt(numbers.noise_variance))
    return log_rates


def _shares(judged: Judged, of_count: Floats, classes: int) -> Shares:
    """Return a of each size class, drawn towards that of all as far as its own noise asks for."""
    parts = (judged.slopes, of_count, judged.slopes**2)
    slopes, counts, spread = (np.bincount(judged.numbers.classes, part, classes) for part in parts)
    of_all = max(float(slopes.sum() / counts.sum()), _SHARE_LEAST)
    of_class = np.divide(slopes, counts, out=np.full(classes, of_all), where=counts > 0)
    variance = spread / np.maximum(counts, _NONE) ** 2
    likely = np.maximum(of_class, of_all) ** 2
    of_class = np.maximum(of_all + (of_class - of_all) * likely / (likely + variance), _SHARE_LEAST)
    log_rates = np.bincount(judged.numbers.classes, of_count * _log_rates(judged.numbers), classes)
    middles = log_rates / np.maximum(counts, _NONE)
    has_numbers = 1 + np.flatnonzero(counts[1:])
    order = has_numbers[np.argsort(middles[has_numbers])] if has_numbers.size else [0]
    return Shares(float(of_class[0]), middles[order], np.log(of_class[order]))


def _unseen(judged: Judged, shape: tuple[int, int], sds: float) -> Floats:
    """Return by how much the numbers of each mode's level may lie off together.

    Levels have a variance, by the moments of all of them, on the safe side; of each one what its
    own numbers say is taken as far as that goes (empirical Bayes), and what is not known of it.
    """
    numbers = judged.numbers
    index = np.ravel_multi_index((numbers.groups, numbers.levels), shape)
    size = shape[0] * shape[1]
    precision = numbers.weights / numbers.noise_variance
    known = np.bincount(index, precision * numbers.weights, size)
    apart = np.bincount(index, precision * (judged.unbiased - numbers.estimates), size)
    level = (apart / np.maximum(known, _NONE)).reshape(shape)
    known = known.reshape(shape)
    times = np.maximum((known**2).sum(axis=1, keepdims=True), _NONE**2)
    spread = ((level * known) ** 2 - known).sum(axis=1, keepdims=True) / times
    spread = np.maximum(spread, 0) + np.sqrt(2 / times)
    share = spread * known / (spread * known + 1)
    unseen: Floats = np.abs(share * level) + sds * np.sqrt(spread * (1 - share))
    return unseen
