"""Which sums of products of parities are too large, or too small, for independent noise.

Whatever the raw count c is, the mean of (-1)^(c + Z) is at most u = |E (-1)^Z| from 0: 0.21 for
Laplace noise of scale 1, nothing that shows for Gaussian noise. Of such noise the k products at one
distance are fair and independent, within one vector too: Bin(k, 1/2) of them agree. Products of two
vectors of narrower noise agree with a chance of at most (1 + u v)/2, and are Bin(k, (1 + u v)/2)
where all raw counts are alike, as in empty cells. Within one vector each number is in two products,
whose sum is known by a bound alone (it passes k u^2 + sqrt(4 k L) with at most e^-L; Janson 2004):
such comparisons get a hundredth of the chance, so that what is stated is the chance itself but for
that.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

_FAIR = 1e-6  # a mean so small makes no limit one hundredth more likely
_OF_BOUNDS = 0.01
_KNOTS = 512  # between them limits are interpolated, and chances averaged
_BISECTIONS = 50
Ints = NDArray[np.int64]


class Comparison(NamedTuple):
    """What the limits of a comparison depend on.

    Args:
        sizes: of both vectors.
        pairs: of such vectors, whose sums of parities are added at each distance.
        is_same: whether each is compared with itself.
        mean: of a product of two parities, at most.
    """

    sizes: tuple[int, int]
    pairs: int
    is_same: bool
    mean: float

    @property
    def is_fair(self) -> bool:
        """Whether a product is as often -1 as 1."""
        return self.mean < _FAIR

    @property
    def is_bounded_alone(self) -> bool:
        """Whether no distribution of the sums is known."""
        return self.is_same and not self.is_fair

    @property
    def distances(self) -> Ints:
        """All distances at which cells are compared."""
        one, other = self.sizes
        return np.arange(1 if self.is_same else 1 - other, one)

    @property
    def terms(self) -> Ints:
        """How many products there are at each distance."""
        one, other = self.sizes
        ends = np.minimum(one - self.distances, other + self.distances)
        return np.asarray(self.pairs * np.minimum(ends, min(one, other)))


@lru_cache(maxsize=16)
def limits_of(comparison: Comparison, each: float) -> tuple[NDArray[np.float64], float]:
    """Return which sum of parities is too large, or too small, at each distance, and the chance.

    Args:
        comparison: of two vectors, or of several such pairs.
        each: chance that one distance may take, on both sides together.
    """
    terms = comparison.terms
    if terms.size == 0:
        return np.zeros(0), 0.0
    if comparison.is_bounded_alone:
        chance = each * _OF_BOUNDS
        enough = math.log(2 / chance)
        return terms * comparison.mean + np.sqrt(4 * terms * enough), terms.size * chance
    even = 0.5 if comparison.is_fair else (1 + comparison.mean) / 2
    knots = np.unique(np.geomspace(terms.min(), terms.max(), _KNOTS).astype(np.int64))
    reach = (_too_many(knots, even, each / 2) - knots * even) / np.sqrt(knots)
    agreeing = np.ceil(np.interp(terms, knots, reach) * np.sqrt(terms) + terms * even)
    shown = np.unique(np.linspace(0, terms.size - 1, _KNOTS).astype(np.int64))
    own = [
        np.where(many <= n, betainc(many, np.maximum(n - many, 0) + 1, chance), 0.0)
        for n, many in [(terms[shown], agreeing[shown])]
        for chance in (even, 1 - even)
    ]
    return 2 * agreeing - terms, terms.size * float(np.mean(own[0] + own[1]))


def _too_many(terms: Ints, even: float, chance: float) -> NDArray[np.float64]:
    """Return how many agreeing products are as unlikely, between the integers too.

    terms + 1 where all of them together are more likely.

    Args:
        terms: how many products there are, any shape.
        even: chance that one agrees.
        chance: of at least as many.
    """
    low, high = terms * even, terms + 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        is_rare = betainc(middle, terms - middle + 1, even) <= chance
        low, high = np.where(is_rare, low, middle), np.where(is_rare, middle, high)
    return np.asarray(high)
