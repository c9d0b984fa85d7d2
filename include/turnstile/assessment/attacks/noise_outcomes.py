"""Published numbers in pieces of the number line, and what noise of a family makes of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from turnstile.privacy.noise import noise_pmf, noise_variance
from turnstile.privacy.noise_families import NoiseFamily

MEANS_PER_SCALE = 6
"""Raw numbers that a mixture is made of, in one scale of the noise."""
UNCUT = (-math.inf, math.inf)
"""A cut of noise: the deviations from which to which it reaches. This one is none."""
Cut = tuple[float, float]
_REACH, _ABOVE = 8.0, 12.0  # scales below and above zero, of what is distinguished
_PIECES_PER_SCALE = 6

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Outcomes:
    """Pieces of the number line that are distinguished, and their probabilities.

    Args:
        family: of the noise.
        scale: of the noise, in counts.
        is_signed: whether raw numbers may be below zero.
    """

    family: NoiseFamily
    scale: float
    is_signed: bool

    @cached_property
    def edges(self) -> NDArray[np.int64]:
        """Where pieces begin; what lies below the first is a piece too."""
        width = max(1, round(self.scale / _PIECES_PER_SCALE))
        first = -math.ceil((_ABOVE if self.is_signed else _REACH) * self.scale)
        # Zero has a piece of its own: cells without noise stand there.
        grid = np.arange(first, math.ceil(_ABOVE * self.scale) + width, width)
        return np.union1d(grid, [0, 1])

    @property
    def number(self) -> int:
        """Pieces; the first and the last are open."""
        return int(self.edges.size) + 1

    def of(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the piece of each number."""
        return np.searchsorted(self.edges, values, side="right")

    def step(self, per_scale: int) -> int:
        """Return how far raw numbers are apart of which there are so many in a scale."""
        return max(1, round(self.scale / per_scale))

    def distributions(self, per_scale: int, times: float = 1.0, cut: Cut = UNCUT) -> Floats:
        """Return P(piece | raw number), shape (pieces, raw numbers).

        Args:
            per_scale: raw numbers in one scale of the noise, from 0 (or as far below) on.
            times: the noise is so many times as large.
            cut: deviations from which to which it reaches; what lies beyond is put there.
        """
        return _distributions(self, per_scale, times, cut)


@lru_cache(maxsize=64)  # the same for every table of one noise
def _distributions(outcomes: Outcomes, per_scale: int, times: float, cut: Cut) -> Floats:
    """Return P(piece | raw number)."""
    edges, step = outcomes.edges, outcomes.step(per_scale)
    last = int(edges[-1] + _REACH * outcomes.scale)
    means = np.arange(-last if outcomes.is_signed else 0, last + step, step)
    scale = Fraction(outcomes.scale * times).limit_denominator(10**6)
    reach = int(means[-1] - min(0, means[0]) + edges[-1] - edges[0]) + 2
    values, chances = noise_pmf(outcomes.family, scale, reach=reach)
    ends = np.rint(np.multiply(cut, noise_variance(outcomes.family, scale) ** 0.5))
    kept = values.clip(*ends).astype(np.int64)
    chances = np.asarray(np.bincount(kept + reach, chances, values.size))
    below = np.concatenate(([0.0], np.cumsum(chances)))  # P(noise < -reach + index)
    indices = np.clip(edges[:, None] - means + reach, 0, below.size - 1)
    inner = below[indices] / below[-1]
    return np.diff(np.pad(inner, ((1, 1), (0, 0)), constant_values=((0, 1), (0, 0))), axis=0)
