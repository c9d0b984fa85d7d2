"""How large the noise is, from differences of counts of the same raw numbers.

Pairs of counts (2017 assessment, section 2 and appendix D), and totals with all their parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from turnstile.privacy.noise import NoiseDistribution, Term, integer_pmf
from turnstile_lab.scale_of_noise import ScaleEstimate

_SPREADS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)  # shares of pairs that are no pairs
_STEPS = 60
_ROUNDS = 3
_FLOOR = 1e-300


def from_pairs(differences: NDArray[np.int64], *, confidence: float = 0.95) -> ScaleEstimate:
    """Return the scale of the noise from differences of two counts of the same raw number.

    Args:
        differences: shape (pairs,), integers.
        confidence: strictly between 0 and 1.
    """
    return from_residuals(differences, np.full(differences.size, 2), confidence=confidence)


def from_residuals(
    residuals: NDArray[np.int64], terms: NDArray[np.int64], *, confidence: float = 0.95
) -> ScaleEstimate:
    """Return the scale of rounded Laplace noise from totals minus all their parts.

    Maximum likelihood under the exact distribution of the difference, with a small share of sums
    that are no sums; the interval is that of the profile likelihood (Wilks 1938).

    Args:
        residuals: shape (sums,), total minus the sum of parts.
        terms: shape (sums,), noises in each residual: the total's and one a part, >= 2.
        confidence: strictly between 0 and 1.
    """
    if residuals.size == 0:
        raise ValueError("no differences to recover a scale from")
    by_terms = [(int(n), residuals[terms == n]) for n in np.unique(terms)]
    wide = [1 / (2 * max(1, int(np.abs(group).max())) + 1) for _, group in by_terms]

    def likelihood(scale: float) -> float:
        """Largest log likelihood over the share of outliers, which are anything alike."""
        inlying = [masses_of_sums(group, scale, n) for n, group in by_terms]
        return max(
            sum(
                float(np.log((1 - share) * masses + share * flat).sum())
                for masses, flat in zip(inlying, wide, strict=True)
            )
            for share in _SPREADS
        )

    rough = float(np.median(np.abs(residuals) / np.sqrt(terms))) + 0.2
    return _profiled(likelihood, (rough / 30, rough * 30), confidence, residuals.size)


def masses_of_sums(values: NDArray[np.int64], scale: float, terms: int) -> NDArray[np.float64]:
    """Return the probability of each value as a sum of so many rounded Laplace noises; above 0."""
    sums, masses = integer_pmf([Term(NoiseDistribution.ROUNDED_LAPLACE, scale, terms)])
    reach = sums.size // 2
    indices = np.clip(values, -reach, reach) + reach
    return np.maximum(np.where(np.abs(values) <= reach, masses[indices], 0.0), _FLOOR)


def _profiled(
    likelihood: Callable[[float], float],
    bounds: tuple[float, float],
    confidence: float,
    samples: int,
) -> ScaleEstimate:
    """Maximise over a grid of logarithms that narrows, then walk out to the interval's ends."""
    from scipy.stats import chi2

    low, high = math.log(bounds[0]), math.log(bounds[1])
    for _ in range(_ROUNDS):
        grid = np.linspace(low, high, _STEPS // _ROUNDS + 1)
        heights = [likelihood(math.exp(point)) for point in grid]
        best = int(np.argmax(heights))
        low, high = grid[max(0, best - 1)], grid[min(grid.size - 1, best + 1)]
    top, index = heights[best], float(grid[best])
    enough = top - float(chi2.ppf(confidence, 1)) / 2
    ends = [_end(likelihood, index, math.log(bound), enough) for bound in bounds]
    return ScaleEstimate(math.exp(index), ends[0], ends[1], confidence, samples)


def _end(
    likelihood: Callable[[float], float], inside: float, outside: float, level: float
) -> float:
    """Bisect for where the log likelihood falls to a level; the outer bound if it never does."""
    if likelihood(math.exp(outside)) >= level:
        return math.exp(outside)
    for _ in range(30):
        middle = (inside + outside) / 2
        if likelihood(math.exp(middle)) >= level:
            inside = middle
        else:
            outside = middle
    return math.exp(outside)
