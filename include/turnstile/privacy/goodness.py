"""How well integer draws fit the distribution that they claim: a pooled chi-squared test.

For tests and for a deployment's own check of its sampler; it reads noise drawn on zeros, never
data. At 100,000 draws and alpha 1e-9 a scale 5 % off is rejected and the right one accepted: a run
every minute would raise a false alarm once in two thousand years.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from turnstile.privacy.noise import noise_pmf, noise_variance
from turnstile.privacy.tail_probabilities import chi_squared_above

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from turnstile.privacy.noise_families import NoiseFamily

ALPHA = 1e-9
DRAWS = 100_000
_EXPECTED_PER_BIN = 25.0
_REACH_SDS = 12


def p_value(draws: NDArray[np.int64], noise: NoiseFamily, scale: Fraction) -> float:
    """Return the p-value of the pooled chi-squared test of the draws against its distribution.

    Single values are bins while 25 and more draws are expected there; both tails are pooled.

    Args:
        draws: noise alone, independent, shape (n,).
        noise: claimed family.
        scale: claimed b or sigma.
    """
    reach = math.ceil(_REACH_SDS * math.sqrt(noise_variance(noise, scale)))
    values, probabilities = noise_pmf(noise, scale, reach=reach)
    half = int(np.sum(draws.size * probabilities >= _EXPECTED_PER_BIN)) // 2
    inside = np.abs(values) <= half
    expected = draws.size * probabilities[inside]
    tail = (draws.size - expected.sum()) / 2
    observed = np.bincount(np.clip(draws, -half - 1, half + 1) + half + 1, minlength=2 * half + 3)
    expected = np.concatenate(([tail], expected, [tail]))
    statistic = float(np.sum((observed - expected) ** 2 / expected))
    return chi_squared_above(statistic, expected.size - 1)


def fits(draws: NDArray[np.int64], noise: NoiseFamily, scale: Fraction) -> bool:
    """Return whether the draws fit the distribution; wrong about the right one once in 1e9.

    Bins of few draws have a longer tail than the chi-squared distribution: at a nominal 1e-9 the
    right one would be rejected with up to 3.4e-9 (convolved bin by bin), at a tenth of it with
    below 1e-9.
    """
    return p_value(draws, noise, scale) >= ALPHA / 10
