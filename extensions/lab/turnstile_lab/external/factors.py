"""A factor that all numbers are rounded multiples of, whole or not: the weight of a survey.

Whoever counts one in three and publishes 3.37 times as many leaves no number below 3, and none
between: numbers are gone that nobody left out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from turnstile_lab.external.odds import Floats, log_sum

_LEAST = 1.5  # of a smaller one 1 stays 1, and no small number is gone
_PRIOR = 0.1  # that there is one; its logarithm is anything, small ones are likelier as bases are
_ROUNDED = ((0.5, 0.8), (0.0, 0.1), (1.0, 0.1))  # to the nearest, down, up: how likely each is
_LARGEST = 1e6  # number of a table that is looked at
_MULTIPLES = np.arange(1, 301)  # that show how many whole numbers a factor allows
_ALIKE = 0.01  # those that differ by less are one
_EITHER = 0.01  # so near to where rounding turns, a number may go either way, as halves do


class Factor(NamedTuple):
    """What numbers may be rounded multiples of.

    Args:
        low: between this, and
        high: this lies the likeliest.
        weight: logarithm of its prior times the probability of the numbers.
        others: likewise, of all other factors.
    """

    low: float
    high: float
    weight: float
    others: float


def factor_of(units: NDArray[np.float64]) -> Factor | None:
    """Return the likeliest factor of different whole numbers other than 0; None without any."""
    from scipy.special import gammaln

    top, bottom = units.max(initial=0), -units.min(initial=0)
    largest = max(top, bottom)
    if largest > _LARGEST:
        return None
    ends, weights = np.empty((2, 0)), np.empty(0)
    for below, prior in _ROUNDED:
        low, high = _fitting(np.unique(np.abs(units)), below)
        most = np.floor(high[:, None] * _MULTIPLES + below + _EITHER)
        least = np.ceil(low[:, None] * _MULTIPLES + below - 1 - _EITHER)
        whole = np.where(least <= largest, most - least + 1, 0).sum(axis=1)
        share = np.minimum(1, whole / np.minimum(largest, most[:, -1]))
        allowed = np.maximum(share * (top + bottom), units.size)
        choices = gammaln(allowed + 1) - gammaln(units.size + 1) - gammaln(allowed - units.size + 1)
        density = _PRIOR * prior * _LEAST * (high - low) / (low * high)
        ends = np.append(ends, np.stack((low, high)), axis=1)
        weights = np.append(weights, np.log(density) - choices)
    if weights.size == 0:
        return None
    best = ends[:, weights.argmax()].mean()
    is_alike = np.abs(ends.mean(axis=0) / best - 1) < _ALIKE
    low, high = ends[0, is_alike].min(), ends[1, is_alike].max()
    return Factor(float(low), float(high), log_sum(weights[is_alike]), log_sum(weights[~is_alike]))


def _fitting(sizes: NDArray[np.float64], below: float) -> tuple[Floats, Floats]:
    """Return all intervals of factors that all sizes are multiples of, rounded by up to 1.

    Args:
        sizes: shape (sizes,), >= 1, ascending.
        below: how far below its multiple a size may lie at most, from 0 to 1.
    """
    low, high = np.array([_LEAST]), sizes[:1] + 1 - below
    for start, end in zip(sizes - below - _EITHER, sizes + 1 - below + _EITHER, strict=True):
        first, last = np.maximum(np.ceil(start / high), 1), np.floor(end / low)
        number = np.maximum(0, last - first + 1).astype(np.int64)
        each = np.repeat(np.arange(number.size), number)
        multiple = first[each] + np.arange(each.size) - (np.cumsum(number) - number)[each]
        low = np.maximum(low[each], start / multiple)
        high = np.minimum(high[each], end / multiple)
        low, high = low[low < high], high[low < high]
    return low, high
