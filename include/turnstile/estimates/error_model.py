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
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from turnstile.estimates.fission import FITTED_TIMES, JUDGED_TIMES

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_PRIOR_SD = 0.5  # of kappa about 1
_CAUTION = 0.4
_UNSEEN = 1e9
_UNCERTAIN = 0.4  # standard deviation of a kappa above which classes share theirs
_UNSEEN_SDS = 1.0  # of what is not known of the level of a mode's hour


@dataclass(frozen=True, slots=True)
class Floors:
    """Least values of a and of every kappa."""

    count_share: float
    kappa: float


OF_CELLS, OF_MARGINALS = Floors(0.8, 0.5), Floors(0.7, 0.7)


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """Estimates with what their error depends on; each shape (numbers,).

    Args:
        estimates: >= 0.
        rates: > 0; what the errors grow with (`published_tables.rates_of`).
        parts: variances of the errors of the cells in each; of a cell, its rate.
        noise_variance: of the unbiased number beside each.
        classes: size class.
        days: index of the service day.
        groups: index of the mode's taps.
        levels: index of what lies too low or too high together: hour of the day, or size class.
    """

    estimates: Floats
    rates: Floats
    parts: Floats
    noise_variance: Floats
    classes: Ints
    days: Ints
    groups: Ints
    levels: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Estimates that were fitted to one look, and the unbiased numbers of the other look."""

    numbers: Numbers
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

    def variances(self, numbers: Numbers) -> Floats:
        """Return the variance of each estimate's error, shape (numbers,)."""
        of_count, of_rate, unseen = _parts(numbers, numbers.noise_variance, self.unseen)
        found: Floats = (
            (self.count_share * of_count + self.rate_share * of_rate + unseen)
            * self.of_class[numbers.classes]
            * self.of_group[numbers.groups, numbers.classes]
            * self.of_day[numbers.days, numbers.classes]
        )
        return found


def calibrated(looks: Sequence[Judged], floors: Floors, classes: int) -> ErrorModel:
    """Return the error model of one table.

    Args:
        looks: fissions of the table.
        floors: of cells or of marginals.
        classes: number of size classes.
    """
    first = looks[0].numbers
    groups, days = int(first.groups.max()) + 1, int(first.days.max()) + 1
    levels = 1 + max(int(look.numbers.levels.max()) for look in looks)
    unseen = _unseen(looks, (groups, max(levels, classes)))
    sums = np.mean([_summed(look, (groups, days, classes), unseen) for look in looks], axis=0)
    errors, of_count, of_rate, level, judging, _ = sums
    a, b = _shares(sums.sum(axis=(1, 2)), floors.count_share)
    floor = floors.kappa
    spread = judging * 2 / len(looks)  # variance of a sum of judged squares
    expected = a * of_count + b * of_rate + level
    shared = _shared(np.stack([part.sum((0, 1)) for part in (errors, expected, spread)]))
    of_class = _kappa(shared[0], shared[1], shared[2], floor)
    expected = expected * of_class
    of_group = _kappa(errors.sum(1), expected.sum(1), spread.sum(1), floor)
    expected = expected * of_group[:, None]
    of_day = _kappa(errors.sum(0), expected.sum(0), spread.sum(0), floor)
    return ErrorModel(a, b, unseen, of_class, of_group, of_day)


def _unseen(looks: Sequence[Judged], shape: tuple[int, int]) -> Floats:
    """Return by how much the numbers of each mode's level may lie off together."""
    index = np.ravel_multi_index((looks[0].numbers.groups, looks[0].numbers.levels), shape)
    size = shape[0] * shape[1]
    apart = np.mean([look.judge - look.numbers.estimates for look in looks], axis=0)
    variance = looks[0].numbers.noise_variance * (1 + (JUDGED_TIMES - 1) / len(looks))
    numbers = np.maximum(np.bincount(index, minlength=size), 1)
    level = np.abs(np.bincount(index, apart, size)) / numbers
    uncertainty = np.sqrt(np.bincount(index, variance, size)) / numbers
    return (level + _UNSEEN_SDS * uncertainty).reshape(shape)


def _parts(
    numbers: Numbers, noise_variance: Floats, unseen: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return f1, f2 and u^2."""
    level = unseen[numbers.groups, numbers.levels]
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
    own = _parts(numbers, numbers.noise_variance * FITTED_TIMES, unseen)
    index = np.ravel_multi_index((numbers.groups, numbers.days, numbers.classes), shape)
    parts = (squares, *own, judging**2, np.ones(squares.shape))
    size = int(np.prod(shape))
    return np.stack([np.bincount(index, part, size).reshape(shape) for part in parts])


def _shares(by_class: Floats, least: float) -> tuple[float, float]:
    """Return a and b from sums by class."""
    errors, of_count, of_rate, level, _, cells = by_class[:, by_class[-1] > 0]
    from scipy.optimize import nnls  # half a second of imports, for the step that fits

    weights = 1 / np.sqrt(cells)
    design = np.stack([of_count, of_rate], axis=1) * weights[:, None]
    rest = (errors - level - least * of_count) * weights
    found, _ = nnls(design, rest)
    return float(found[0]) + least, float(found[1])


def _shared(of_class: Floats) -> Floats:
    """Return for each class the sums of the classes that share its kappa.

    From the largest numbers down, classes are taken together until their kappa is known. What is
    left at the lower end stays apart.

    Args:
        of_class: squared errors, expected ones and spread, shape (3, classes).
    """
    found, first = of_class.copy(), of_class.shape[1]
    for last in range(first - 1, -1, -1):
        _, expected, spread = together = of_class[:, last:first].sum(axis=1)
        if expected > 0 and spread <= (_UNCERTAIN * expected) ** 2:
            found[:, last:first] = together[:, None]
            first = last
    return found


def _kappa(errors: Floats, expected: Floats, spread: Floats, least: float) -> Floats:
    """Return factors drawn towards 1, each as far as its own noise asks for."""
    is_seen = expected > 0
    ratio = np.divide(errors, expected, out=np.ones(errors.shape), where=is_seen)
    variance = np.divide(
        spread, expected**2, out=np.full(errors.shape, _UNSEEN), where=is_seen & (spread > 0)
    )
    share = _PRIOR_SD**2 / (_PRIOR_SD**2 + variance)
    left = _PRIOR_SD * np.sqrt(variance / (variance + _PRIOR_SD**2))
    found: Floats = np.maximum(1 + share * (ratio - 1) + _CAUTION * left, least)
    return found
