"""The threshold of a table whose small counts were dropped, from the table alone.

Where continuous noise is thresholded at t and rounded afterwards, the smallest published number
holds only the part of its unit cell that lies above t: 18 stands for [17.588, 18.5). How empty it
is, against the numbers above it, shows t. An integer threshold, or a threshold after rounding,
leaves the smallest cell full: t is then its lower end. Whether there is a threshold at all, and not
merely no cell that is any smaller, is up to `natural_edge`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from turnstile_lab.natural_edge import lowest_start

CONFIDENCE = 0.999
_WINDOW = 3.0  # numbers up to so many times the smallest are used
_WINDOW_LEAST = 25
_NUMBERS_LEAST = 30  # with fewer near the smallest, only an upper bound is stated
_PLACES_FAR, _PLACES_NEAR = 80, 41
_NOWHERE = 0.5  # a lower end that excludes nothing
_LOWEST = 2  # a table that may begin here may begin anywhere
_MARK_GAP = 2  # between a mark and the smallest number
_GRID = 0.002
_DEGREE = 2
_CONVERGED = 1e-8
_SMALLEST_SCALE = 1.0  # the interval allows for noise of this scale and more
_BLURS = (1.0, 1.5, 2.5, 4.0)  # deviations of what may have moved numbers after the cut
_BLURRED_AT = np.arange(-1.0, 6.1, 0.5)  # of a blurred cut, in deviations above the smallest number


@dataclass(frozen=True, slots=True)
class ThresholdEstimate:
    """A recovered threshold.

    Args:
        threshold: most likely threshold before rounding, in counts.
        low: lower end of the interval.
        high: upper end.
        confidence: of the interval, at least.
        smallest: smallest published number.
        samples: published numbers that it rests on.
        sharpness: logarithm of how much likelier a sharp end is than one that was blurred after it.
    """

    threshold: float
    low: float
    high: float
    confidence: float
    smallest: int
    samples: int
    sharpness: float = 0.0

    @property
    def allows_integer(self) -> bool:
        """Whether a threshold after rounding, at `smallest`, is within the interval."""
        return self.low <= self.smallest - 0.5 <= self.high

    @property
    def is_located(self) -> bool:
        """Whether there is a lower end too."""
        return self.low > _NOWHERE

    @property
    def is_sharp(self) -> bool:
        """Whether the end is too sharp for numbers that were moved after the cut."""
        return self.sharpness >= math.log(1 / (1 - self.confidence))


def recover_threshold(counts: NDArray[np.int64]) -> ThresholdEstimate | None:
    """Return the threshold of a table of published counts; None where nothing shows one.

    First the numbers are asked how low they may begin (`natural_edge`): a table whose smallest
    cells are large and few has no threshold that shows, and gets an upper bound alone. Then a
    smooth curve (a log-quadratic Poisson regression on the logarithm of the count) is fitted to
    their histogram, with the first cell partly filled: a profile likelihood over the threshold. The
    interval holds every threshold whose log likelihood is within ln(1/0.001) of the best, wide
    enough for both its regular and its exponential side, and is stretched by what noise of scale 1
    or more can shift inside a unit cell, and by any over-dispersion.

    Args:
        counts: published counts, any shape; numbers below 1 show that nothing was suppressed,
            unless all of them are the same mark (0 or -1 for a suppressed cell).
    """
    counts = counts[~is_mark(counts)]
    if counts.size == 0 or counts.min() <= 1:
        return None
    smallest = int(counts.min())
    last = max(smallest + _WINDOW_LEAST, math.ceil(_WINDOW * smallest))
    inside = int((counts <= last).sum())
    lost = math.log(1 / (1 - CONFIDENCE))
    lower = 1 if inside < _NUMBERS_LEAST else lowest_start(counts, last=last, loss_most=lost)
    if lower <= _LOWEST:
        half = smallest - 0.5
        return ThresholdEstimate(half, _NOWHERE, smallest + 0.5, CONFIDENCE, smallest, inside)
    first = lower - 1  # of whose cell the upper part may be seen, and be empty by chance
    numbers = np.arange(first, last + 1)
    histogram = np.bincount(counts[counts <= last], minlength=last + 1)[first:].astype(np.float64)
    thresholds = np.arange(first - 0.5, smallest + 0.5, _GRID) + _GRID / 2
    heights = _profile(numbers, histogram, thresholds)
    spread = _overdispersion(numbers[numbers > smallest], histogram[numbers > smallest])
    likely = thresholds[heights >= heights.max() - spread * lost]
    best = float(thresholds[int(np.argmax(heights))])
    return ThresholdEstimate(
        threshold=best,
        low=min(_shifted(float(likely[0]), -1), lower - 0.5 if lower < smallest else math.inf),
        high=min(smallest + 0.5, _shifted(float(likely[-1]), 1)),
        confidence=CONFIDENCE,
        smallest=smallest,
        samples=int(histogram.sum()),
        sharpness=(float(heights.max()) - _blurred(smallest, last, counts)) / spread,
    )


def is_mark(counts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tell which counts are no counts but the mark of a suppressed cell: all 0, or all -1.

    Examples:
        >>> is_mark(np.array([0, 19, 0, 25])).tolist()
        [True, False, True, False]
        >>> is_mark(np.array([0, 1, -2, 25])).any()
        np.False_
    """
    positive = counts[counts > 0]
    marks = np.unique(counts[counts <= 0])
    if marks.size == 1 and positive.size and positive.min() > _MARK_GAP:
        return np.asarray(counts <= 0)
    return np.zeros(counts.shape, dtype=np.bool_)


def _profile(
    numbers: NDArray[np.int64], histogram: NDArray[np.float64], thresholds: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the largest Poisson log likelihood for each threshold.

    The filled share of a cell is an offset of the regression. The curve is fitted at a few places
    of the smallest number's own cell and of the range below it, and the heights are interpolated:
    they are smooth inside a cell.
    """
    smallest = math.floor(float(thresholds[-1]) + 0.5)
    near = np.linspace(smallest - 0.499, smallest + 0.499, _PLACES_NEAR)
    cells = max(1, round(smallest - 0.5 - float(thresholds[0])))
    each = max(2, _PLACES_FAR // cells)
    far = np.linspace(float(thresholds[0]), smallest - 0.501, min(cells * each, 2 * _PLACES_FAR))
    places = np.concatenate((far, near))
    shares = np.clip(numbers + 0.5 - places[:, None], 0, 1)
    known = _heights(numbers, histogram, shares)
    return np.asarray(np.interp(thresholds, places, known))


def _blurred(smallest: int, last: int, counts: NDArray[np.int64]) -> float:
    """Return the largest log likelihood of a cut after which numbers were moved by some noise.

    Numbers below the smallest count too: none of them was seen.
    """
    from scipy.special import ndtr

    heights = []
    for deviation in _BLURS:
        numbers = np.arange(max(1, smallest - math.ceil(6 * deviation)), last + 1)
        histogram = np.bincount(counts[counts <= last], minlength=last + 1)[numbers[0] :]
        places = smallest + _BLURRED_AT * deviation
        shares = np.maximum(ndtr((numbers - places[:, None]) / deviation), 1e-12)
        heights.append(float(_heights(numbers, histogram.astype(np.float64), shares).max()))
    return max(heights)


def _heights(
    numbers: NDArray[np.int64], histogram: NDArray[np.float64], shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the log likelihood of the best curve for each row of filled shares."""
    fitted = _curves(numbers, histogram, shares)
    return np.asarray(np.sum(histogram * np.log(fitted) - fitted, axis=1))


def _curves(
    numbers: NDArray[np.int64], histogram: NDArray[np.float64], shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the expected counts of Poisson regressions on the logarithm, by Newton's method.

    Args:
        numbers: shape (numbers,).
        histogram: shape (numbers,), how often each was seen; 0 where a share is 0.
        shares: shape (curves, numbers), of a number's cell that is filled.
    """
    place = np.log(numbers / numbers.mean())
    degree = _DEGREE if np.count_nonzero(histogram) > 2 * _DEGREE + 1 else 0
    design = np.vander(place, degree + 1)
    pairs = (design[:, :, None] * design[:, None, :]).reshape(numbers.size, -1)
    ridge = 1e-8 * np.eye(degree + 1)

    def solved(weights: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
        curvatures = (weights @ pairs).reshape(-1, degree + 1, degree + 1) + ridge
        return np.linalg.solve(curvatures, (values @ design)[:, :, None])[:, :, 0]

    def curves(beta: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(shares * np.exp(np.clip(beta @ design.T, -30, 30)))

    start = np.log(np.maximum(histogram, 0.5) / np.maximum(shares, 0.05))
    weights = np.maximum(histogram, 0.5) * (shares > 0)
    beta = solved(weights, weights * start)
    for _ in range(25):
        fitted = curves(beta)
        step = solved(fitted, histogram - fitted)
        beta = beta + step
        if float(np.abs(step).max()) < _CONVERGED:
            break
    return np.maximum(curves(beta), 1e-300)


def _overdispersion(numbers: NDArray[np.int64], histogram: NDArray[np.float64]) -> float:
    """Return how much more the histogram scatters around its curve than a Poisson one; >= 1."""
    if numbers.size <= _DEGREE + 1 or histogram.sum() == 0:
        return 1.0
    fitted = _curves(numbers, histogram, np.ones((1, numbers.size)))[0]
    return max(
        1.0, float(np.sum((histogram - fitted) ** 2 / fitted)) / (numbers.size - _DEGREE - 1)
    )


def _shifted(threshold: float, sign: int) -> float:
    """Return an end of the interval, moved out by what noise of scale 1 does inside a unit cell.

    Counts are integers, so the density of a noisy value inside a cell is that of the periodic
    Laplace distribution, cosh((1/2 - |x|)/b)/(2b sinh(1/(2b))), not flat; at b = 1 it lies within 9
    % of flat.
    """
    inside = threshold - math.floor(threshold + 0.5)  # in [-1/2, 1/2)
    half = 0.5 / _SMALLEST_SCALE
    bulk = math.sinh(half)
    mass = 0.5 + math.copysign(
        (bulk - math.sinh((0.5 - abs(inside)) / _SMALLEST_SCALE)) / bulk / 2, inside
    )
    return threshold + sign * abs(mass - 0.5 - inside)
