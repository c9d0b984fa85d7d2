"""Whether a table ends at its smallest number by a threshold, or because no cell is any smaller.

Places and times with few people do not exist everywhere: the smallest of 23 busy stops has hundreds
a day, threshold or no threshold. A natural end is blurred, for a count scatters around the mean of
its cell; a threshold is sharp. So the numbers are fitted by the likeliest mixture of such
distributions, whatever the means of the cells are (Kiefer & Wolfowitz 1956; Lindsay 1983), once as
seen from the smallest number on and once as if smaller numbers could have been seen. What the fit
loses shows how surely smaller ones are missing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from turnstile.assessment.attacks.mixtures import likeliest_mixture

LEAST_SCATTER = 0.25
"""Assumed: the variance of a count around its cell's mean is at least this share of the mean, a
quarter of Poisson's, and 2, which is that of the narrowest noise."""
_NARROWEST_NOISE = 2.0
_MEANS = 120
_PIECES = 160

Floats = NDArray[np.float64]


def lowest_start(counts: NDArray[np.int64], *, last: int, loss_most: float) -> int:
    """Return the lowest number that the table may begin at; 1 where nothing shows a threshold.

    Args:
        counts: published counts, >= 1.
        last: largest number that is used.
        loss_most: what the fit may lose, in units of the log likelihood.
    """
    smallest = int(counts.min())
    inside = counts[counts <= last]
    best = _fitted(inside, smallest, last)
    low, high = 0, smallest  # low is refused (or below all numbers), high is accepted
    while high - low > 1:
        middle = 1 if low == 0 and high == smallest else (low + high) // 2
        if best - _fitted(inside, middle, last) <= loss_most:
            high = middle
        else:
            low = middle
    return high


def _fitted(counts: NDArray[np.int64], start: int, last: int) -> float:
    """Return the largest log likelihood of counts that are seen from `start` to `last` alone.

    An upper bound, and near it: what is lost is not overstated.
    """
    lows, highs = _pieces(int(counts.min()), start, last)
    distributions = _distributions(lows, highs)
    weights = np.bincount(np.searchsorted(lows, counts, side="right") - 1, minlength=lows.size)
    seen = weights > 0
    fitted = likeliest_mixture(distributions[seen], weights[seen].astype(np.float64))
    return fitted.log_likelihood_at_most - _spread(weights[seen], (highs - lows)[seen])


def _pieces(smallest: int, start: int, last: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split the numbers into pieces, [low, high); those above `smallest` never change."""
    width = max(1, (last + 1 - smallest) // _PIECES)
    edges = np.append(np.arange(smallest, last + 1, width), last + 1)
    lows, highs = edges[:-1], edges[1:]
    if start < smallest:
        lows, highs = np.append(start, lows), np.append(smallest, highs)
    return lows, highs


def _spread(weights: NDArray[np.int64], widths: NDArray[np.int64]) -> float:
    """Return what turns the likelihood of pieces into that of numbers; it cancels in the loss."""
    return float(np.sum(weights * np.log(widths)))


def _distributions(lows: NDArray[np.int64], highs: NDArray[np.int64]) -> Floats:
    """Return P(piece | mean, seen), shape (pieces, means), normal with the least scatter."""
    from scipy.special import log_ndtr

    first, last = max(0.5, float(lows[0]) / 3), 1.5 * float(highs[-1])
    means = np.unique(np.concatenate((np.geomspace(first, last, _MEANS), lows * 1.0)))
    deviations = np.sqrt(LEAST_SCATTER * means + _NARROWEST_NOISE)
    below = log_ndtr((lows[:, None] - 0.5 - means) / deviations)
    above = log_ndtr((highs[:, None] - 0.5 - means) / deviations)
    # By the symmetric tail where both ends lie far above the mean, for the digits.
    mirrored = lows[:, None] > means
    upper = np.where(mirrored, log_ndtr(-(lows[:, None] - 0.5 - means) / deviations), above)
    lower = np.where(mirrored, log_ndtr(-(highs[:, None] - 0.5 - means) / deviations), below)
    logs = upper + np.log1p(-np.exp(np.minimum(lower - upper, -1e-15)))
    seen = logs.max(axis=0)
    shares = np.exp(logs - seen)
    return np.asarray(shares / shares.sum(axis=0))
