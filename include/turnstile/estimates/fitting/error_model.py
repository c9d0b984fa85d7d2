"""How large the error of an estimate is, known without the truth, by size, mode and day. Pure.

Squared errors of estimates that were fitted to one look at the noise are judged on the other look
(`fission`), without bias. With s^2 the noise's variance and r the rate, they are explained by

    v = kappa (a f1 + b f2 + u^2),  f1 = w s^2 / (w + s^2),  f2 = r^2 s^2 / (r^2 + s^2):

what a count varies about its rate (w = r) or, of sums, what their cells' errors come to, what is
not known of a rate, and u, by which all numbers of a mode and hour of the day, or all places of a
mode of like size, may lie too low or too high together: what is judged lies off them by so much,
and how well that is known. In a small mode under much noise u is nearly all that can be said, and
intervals are wide. a and b come from all
size classes by weighted least squares (Lawson & Hanson 1974); kappa is a factor for each size
class, for each mode's taps in it, and for each day in it, each drawn towards 1 as far as its own
noise asks for, and some of its uncertainty on the safe side. Numbers that are published as 0 are
a class of their own. A size class of few numbers shares its kappa with the next one below, and so
on until theirs is known: the largest numbers are few. So are all marginals: theirs have higher
floors.

A region adds up hundreds of cells, so its judge says little, and how the errors of its parts add up
says much: a = 1, b = 0, and one kappa for each mode's taps, drawn to 1 more firmly. u, by which a
mode lies off at some hour, is shared by regions as they share its places; how large it can be is
learned from all hours together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from turnstile.estimates.fitting.fission import FITTED_TIMES, JUDGED_TIMES

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_PRIOR_SD = 0.5  # of kappa about 1
_CAUTION = 0.4
_UNSEEN = 1e9
_UNCERTAIN = 0.4  # standard deviation of a kappa above which classes share theirs
_UNSEEN_SDS = 1.0  # of what is not known of the level of a mode's hour
_SUMS_PRIOR_SD, _SUMS_LEAST = 0.35, 0.8  # of kappa of sums of many parts
_SUMS_UNSEEN_SDS = 1.5  # of what is not known of how far levels lie off


@dataclass(frozen=True, slots=True)
class Floors:
    """Least values of a and of every kappa."""

    count_share: float
    kappa: float


OF_CELLS, OF_MARGINALS = Floors(0.8, 0.5), Floors(0.7, 0.7)


@dataclass(frozen=True, slots=True, eq=False)
class ErrorTerms:
    """Estimates with the terms that their error depends on; each shape (numbers,).

    Args:
        estimates: >= 0.
        rates: > 0; what the errors grow with (`published_tables.rates_of`).
        parts: variances of the errors of the cells in each; of a cell, its rate.
        noise_variance: of the unbiased number beside each.
        classes: size class.
        days: index of the service day.
        groups: index of the mode's taps.
        levels: index of what lies too low or too high together: hour of the day, or size class.
        weights: by how many times that; of regions their places over those of the mean region.
    """

    estimates: Floats
    rates: Floats
    parts: Floats
    noise_variance: Floats
    classes: Ints
    days: Ints
    groups: Ints
    levels: Ints
    weights: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Estimates that were fitted to one look, and the unbiased numbers of the other look."""

    numbers: ErrorTerms
    judge: Floats


@dataclass(frozen=True, slots=True, eq=False)
class ErrorModel:
    """Calibrated variances.

    Args:
        count_share: a.
        rate_share: b.
        unseen: u of each mode's taps and level, shape (groups, levels).
        of_class: kappa of each size class.
        of_group: kappa of each mode's taps and size class, shape (groups, classes).
        of_day: kappa of each day and size class, shape (days, classes).
    """

    count_share: float
    rate_share: float
    unseen: Floats
    of_class: Floats
    of_group: Floats
    of_day: Floats

    def variances(self, numbers: ErrorTerms) -> Floats:
        """Return the variance of each estimate's error, shape (numbers,)."""
        of_count, of_rate, unseen = _parts(numbers, numbers.noise_variance, self.unseen)
        variances: Floats = (
            (self.count_share * of_count + self.rate_share * of_rate + unseen)
            * self.of_class[numbers.classes]
            * self.of_group[numbers.groups, numbers.classes]
            * self.of_day[numbers.days, numbers.classes]
        )
        return variances


def calibrated(fissions: Sequence[Judged], floors: Floors, classes: int) -> ErrorModel:
    """Return the error model of one table.

    Args:
        fissions: fissions of the table.
        floors: of cells or of marginals.
        classes: number of size classes.
    """
    first = fissions[0].numbers
    groups, days = int(first.groups.max()) + 1, int(first.days.max()) + 1
    levels = 1 + max(int(look.numbers.levels.max()) for look in fissions)
    unseen = _unseen(fissions, (groups, max(levels, classes)))
    sums = np.mean([_summed(look, (groups, days, classes), unseen) for look in fissions], axis=0)
    errors, of_count, of_rate, level, judging, _ = sums
    a, b = _shares(sums.sum(axis=(1, 2)), floors.count_share)
    floor = floors.kappa
    spread = judging * 2 / len(fissions)  # variance of a sum of judged squares
    expected = a * of_count + b * of_rate + level
    shared = _shared(np.stack([part.sum((0, 1)) for part in (errors, expected, spread)]))
    of_class = _kappa(shared[0], shared[1], shared[2], floor)
    expected = expected * of_class
    of_group = _kappa(errors.sum(1), expected.sum(1), spread.sum(1), floor)
    expected = expected * of_group[:, None]
    of_day = _kappa(errors.sum(0), expected.sum(0), spread.sum(0), floor)
    return ErrorModel(a, b, unseen, of_class, of_group, of_day)


def calibrated_sums(fissions: Sequence[Judged], classes: int) -> ErrorModel:
    """Return the error model of sums of many parts, whose variances say most of theirs.

    Args:
        fissions: fissions of the table.
        classes: number of size classes, which have no factor of their own.
    """
    first = fissions[0].numbers
    groups, days = int(first.groups.max()) + 1, int(first.days.max()) + 1
    levels = 1 + max(int(look.numbers.levels.max()) for look in fissions)
    unseen = _unseen_alike(fissions, (groups, max(levels, classes)))
    sums = np.mean([_summed(look, (groups, days, classes), unseen) for look in fissions], axis=0)
    errors, of_count, _, level, judging, _ = sums.sum(axis=(2, 3))
    spread = judging * 2 / len(fissions)
    kappa = _kappa(errors, of_count + level, spread, _SUMS_LEAST, prior_sd=_SUMS_PRIOR_SD)
    of_group = np.repeat(kappa[:, None], classes, axis=1)
    return ErrorModel(1.0, 0.0, unseen, np.ones(classes), of_group, np.ones((days, classes)))


def _unseen(fissions: Sequence[Judged], shape: tuple[int, int]) -> Floats:
    """Return by how much the numbers of each mode's level may lie off together."""
    index, apart, variance = _apart(fissions, shape)
    size = shape[0] * shape[1]
    numbers = np.maximum(np.bincount(index, minlength=size), 1)
    level = np.abs(np.bincount(index, apart, size)) / numbers
    uncertainty = np.sqrt(np.bincount(index, variance, size)) / numbers
    return (level + _UNSEEN_SDS * uncertainty).reshape(shape)


def _unseen_alike(fissions: Sequence[Judged], shape: tuple[int, int]) -> Floats:
    """Return the same where levels of a mode are alike: each one's own counts as far as known.

    Levels have a variance, by the moments of all of them, on the safe side; of each one its
    mean square is given, with what its own numbers say (empirical Bayes).
    """
    index, apart, variance = _apart(fissions, shape)
    weights, size = fissions[0].numbers.weights, shape[0] * shape[1]
    known = np.bincount(index, weights**2 / variance, size)
    level = np.bincount(index, apart * weights / variance, size) / np.maximum(known, 1 / _UNSEEN)
    known, level = known.reshape(shape), level.reshape(shape)
    times = np.maximum((known**2).sum(axis=1, keepdims=True), 1 / _UNSEEN**2)
    spread = ((level * known) ** 2 - known).sum(axis=1, keepdims=True) / times
    spread = np.maximum(spread, 0) + _SUMS_UNSEEN_SDS * np.sqrt(2 / times)
    share = spread * known / (spread * known + 1)
    unseen: Floats = np.sqrt(spread * (1 - share) + (share * level) ** 2)
    return unseen


def _apart(fissions: Sequence[Judged], shape: tuple[int, int]) -> tuple[Ints, Floats, Floats]:
    """Return each number's level, how far it lies off its judge, and the judge's variance."""
    first = fissions[0].numbers
    index = np.ravel_multi_index((first.groups, first.levels), shape)
    apart = np.mean([look.judge - look.numbers.estimates for look in fissions], axis=0)
    return index, apart, first.noise_variance * (1 + (JUDGED_TIMES - 1) / len(fissions))


def _parts(
    numbers: ErrorTerms, noise_variance: Floats, unseen: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return f1, f2 and u^2."""
    level = unseen[numbers.groups, numbers.levels] * numbers.weights
    rate = np.maximum(numbers.rates, level)
    square, parts = rate**2, np.maximum(numbers.parts, level)
    of_count = parts * noise_variance / (parts + noise_variance)
    return of_count, square * noise_variance / (square + noise_variance), level**2


def _summed(look: Judged, shape: tuple[int, int, int], unseen: Floats) -> Floats:
    """Return sums by group, day and class.

    Squared errors, f1, f2, u^2, judging variances^2, numbers.
    """
    numbers = look.numbers
    judging = numbers.noise_variance * JUDGED_TIMES
    squares = (numbers.estimates - look.judge) ** 2 - judging
    variance_parts = _parts(numbers, numbers.noise_variance * FITTED_TIMES, unseen)
    index = np.ravel_multi_index((numbers.groups, numbers.days, numbers.classes), shape)
    parts = (squares, *variance_parts, judging**2, np.ones(squares.shape))
    size = int(np.prod(shape))
    return np.stack([np.bincount(index, part, size).reshape(shape) for part in parts])


def _shares(by_class: Floats, least: float) -> tuple[float, float]:
    """Return a and b from sums by class."""
    errors, of_count, of_rate, level, _, cells = by_class[:, by_class[-1] > 0]
    from scipy.optimize import nnls  # half a second of imports, for the step that fits

    weights = 1 / np.sqrt(cells)
    design = np.stack([of_count, of_rate], axis=1) * weights[:, None]
    rest = (errors - level - least * of_count) * weights
    solution, _ = nnls(design, rest)
    return float(solution[0]) + least, float(solution[1])


def _shared(of_class: Floats) -> Floats:
    """Return for each class the sums of the classes that share its kappa.

    From the largest numbers down, classes are taken together until their kappa is known. What is
    left at the lower end stays apart.

    Args:
        of_class: squared errors, expected ones and spread, shape (3, classes).
    """
    sums, first = of_class.copy(), of_class.shape[1]
    for last in range(first - 1, -1, -1):
        _, expected, spread = pooled = of_class[:, last:first].sum(axis=1)
        if expected > 0 and spread <= (_UNCERTAIN * expected) ** 2:
            sums[:, last:first] = pooled[:, None]
            first = last
    return sums


def _kappa(
    errors: Floats, expected: Floats, spread: Floats, least: float, *, prior_sd: float = _PRIOR_SD
) -> Floats:
    """Return factors drawn towards 1, each as far as its own noise asks for."""
    is_seen = expected > 0
    ratio = np.divide(errors, expected, out=np.ones(errors.shape), where=is_seen)
    variance = np.divide(
        spread, expected**2, out=np.full(errors.shape, _UNSEEN), where=is_seen & (spread > 0)
    )
    share = prior_sd**2 / (prior_sd**2 + variance)
    left = prior_sd * np.sqrt(variance / (variance + prior_sd**2))
    kappa: Floats = np.maximum(1 + share * (ratio - 1) + _CAUTION * left, least)
    return kappa
