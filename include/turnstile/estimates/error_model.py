"""How large the error of an estimate is, known without the truth, by size, day and place. Pure.

Squared errors of estimates that were fitted to one look at the noise are judged on the other look
(`fission`), without bias. With s^2 the noise's variance and r the rate, they are explained by

    v = kappa (a f1 + b f2),  f1 = r s^2 / (r + s^2),  f2 = r^2 s^2 / (r^2 + s^2):

what a count varies about its rate, and what is not known of a rate. a and b come from all size
classes by weighted least squares (Lawson & Hanson 1974); kappa is a factor for each size class,
size class and day, and place, each drawn towards 1 as far as its own noise asks for, and a third
of its uncertainty on the safe side. A size class of few numbers shares its kappa with the next one
below, and so on until theirs is known: the largest numbers are few. Marginals are few and nearly as
exact as they were reconciled, so theirs are never below 1 and neither is a.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from turnstile.estimates.fission import FITTED_TIMES, JUDGED_TIMES

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_PRIOR_SD = 0.5  # of kappa about 1
_CAUTION = 1 / 3
_UNSEEN = 1e9
UNCERTAIN = 0.4  # standard deviation of a kappa above which the error of its numbers is not known


@dataclass(frozen=True, slots=True)
class Floors:
    """Least values of a and of every kappa."""

    count_share: float
    kappa: float


OF_CELLS, OF_MARGINALS = Floors(0.8, 0.5), Floors(1.0, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """Estimates with what their error depends on; each shape (numbers,).

    Args:
        estimates: >= 0.
        rates: > 0; what the errors grow with (`published_tables.rates_of`).
        noise_variance: of the unbiased number beside each.
        classes: size class.
        days: index of the service day.
        places: index of the place, of its mode and its taps.
    """

    estimates: Floats
    rates: Floats
    noise_variance: Floats
    classes: Ints
    days: Ints
    places: Ints


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
        of_class: kappa of each size class.
        of_day: kappa of each day and size class, shape (days, classes).
        of_place: kappa of each place.
        class_uncertainty: standard deviation with which the data alone know each class's kappa, or
            that of the classes that share it.
    """

    count_share: float
    rate_share: float
    of_class: Floats
    of_day: Floats
    of_place: Floats
    class_uncertainty: Floats

    def variances(self, numbers: Numbers) -> Floats:
        """Return the variance of each estimate's error, shape (numbers,)."""
        of_count, of_rate = _parts(numbers, numbers.noise_variance)
        found: Floats = (
            (self.count_share * of_count + self.rate_share * of_rate)
            * self.of_class[numbers.classes]
            * self.of_day[numbers.days, numbers.classes]
            * self.of_place[numbers.places]
        )
        return found


def calibrated(
    looks: Iterable[Judged], floors: Floors, *, classes: int, days: int, places: int
) -> ErrorModel:
    """Return the error model of one table.

    Args:
        looks: fissions of the table, each read once.
        floors: of cells or of marginals.
        classes: number of size classes.
        days: number of service days.
        places: number of places over all modes and taps.
    """
    by_look = [_summed(look, (places, days, classes)) for look in looks]
    sums = np.mean(by_look, axis=0)
    errors, of_count, of_rate, judging, _ = sums
    by_class = sums.sum(axis=(1, 2))
    a, b = _shares(by_class, floors.count_share)
    floor = floors.kappa
    spread = judging * 2 / len(by_look)  # variance of a sum of judged squares
    expected = a * of_count + b * of_rate
    shared = _shared(np.stack([part.sum((0, 1)) for part in (errors, expected, spread)]))
    of_class, uncertainty = _kappa(shared[0], shared[1], shared[2], floor)
    expected = expected * of_class
    of_day, _ = _kappa(errors.sum(0), expected.sum(0), spread.sum(0), floor)
    expected = expected * of_day
    of_place, _ = _kappa(errors.sum((1, 2)), expected.sum((1, 2)), spread.sum((1, 2)), floor)
    return ErrorModel(a, b, of_class, of_day, of_place, uncertainty)


def _parts(numbers: Numbers, noise_variance: Floats) -> tuple[Floats, Floats]:
    """Return f1 and f2."""
    rate, square = numbers.rates, numbers.rates**2
    of_count = rate * noise_variance / (rate + noise_variance)
    return of_count, square * noise_variance / (square + noise_variance)


def _summed(look: Judged, shape: tuple[int, int, int]) -> Floats:
    """Return sums by place, day and class: squared errors, f1, f2, judging variances^2, numbers."""
    numbers = look.numbers
    judging = numbers.noise_variance * JUDGED_TIMES
    squares = (numbers.estimates - look.judge) ** 2 - judging
    of_count, of_rate = _parts(numbers, numbers.noise_variance * FITTED_TIMES)
    index = np.ravel_multi_index((numbers.places, numbers.days, numbers.classes), shape)
    parts = (squares, of_count, of_rate, judging**2, np.ones(squares.shape))
    size = int(np.prod(shape))
    return np.stack([np.bincount(index, part, size).reshape(shape) for part in parts])


def _shares(by_class: Floats, least: float) -> tuple[float, float]:
    """Return a and b from sums by class."""
    errors, of_count, of_rate, _, cells = by_class[:, by_class[-1] > 0]
    from scipy.optimize import nnls  # half a second of imports, for the step that fits

    weights = 1 / np.sqrt(cells)
    design = np.stack([of_count, of_rate], axis=1) * weights[:, None]
    rest = (errors - least * of_count) * weights
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
        if expected > 0 and spread <= (UNCERTAIN * expected) ** 2:
            found[:, last:first] = together[:, None]
            first = last
    return found


def _kappa(errors: Floats, expected: Floats, spread: Floats, least: float) -> tuple[Floats, Floats]:
    """Return factors drawn towards 1, and the standard deviation of each as it was observed."""
    is_seen = expected > 0
    ratio = np.divide(errors, expected, out=np.ones(errors.shape), where=is_seen)
    variance = np.divide(
        spread, expected**2, out=np.full(errors.shape, _UNSEEN), where=is_seen & (spread > 0)
    )
    share = _PRIOR_SD**2 / (_PRIOR_SD**2 + variance)
    left = _PRIOR_SD * np.sqrt(variance / (variance + _PRIOR_SD**2))
    kappa: Floats = np.maximum(1 + share * (ratio - 1) + _CAUTION * left, least)
    return kappa, np.sqrt(variance)
