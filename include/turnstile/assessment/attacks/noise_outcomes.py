"""Published numbers in pieces of the number line, and what noise of a family makes of them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from turnstile.privacy.noise import noise_pmf
from turnstile.privacy.noise_families import NoiseFamily

MEANS_PER_SCALE = 6
"""Raw numbers that a mixture is made of, in one scale of the noise."""
_REACH, _ABOVE = (
    8.0,
    12.0,
)  # of the outcomes that are distinguished, in scales, below and above zero
_PIECES_PER_SCALE = 6

Floats = NDArray[np.float64]


class Outcomes:
    """Pieces of the number line that are distinguished, and their probabilities."""

    def __init__(self, family: NoiseFamily, scale: float, is_signed: bool) -> None:  # noqa: FBT001
        self.family, self.scale, self.is_signed = family, scale, is_signed
        width = max(1, round(scale / _PIECES_PER_SCALE))
        first = -math.ceil((_ABOVE if is_signed else _REACH) * scale)
        # Zero has a piece of its own: cells without noise stand there.
        grid = np.arange(first, math.ceil(_ABOVE * scale) + width, width)
        self.edges = np.union1d(grid, [0, 1])

    @property
    def number(self) -> int:
        """Pieces; the first and the last are open."""
        return int(self.edges.size) + 1

    def of(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the piece of each number."""
        return np.searchsorted(self.edges, values, side="right")

    def means(self, per_scale: int) -> NDArray[np.int64]:
        """Return raw numbers, near enough to each other that no distribution lies between two."""
        step = max(1, round(self.scale / per_scale))
        last = int(self.edges[-1] + _REACH * self.scale)
        return np.arange(-last if self.is_signed else 0, last + step, step)

    def distributions(self, means: NDArray[np.int64], times: float = 1.0) -> Floats:
        """Return P(piece | raw number), shape (pieces, raw numbers)."""
        scale = Fraction(self.scale * times).limit_denominator(10**6)
        reach = int(means[-1] - min(0, means[0]) + self.edges[-1] - self.edges[0]) + 2
        _, distribution = noise_pmf(self.family, scale, reach=reach)
        below = np.concatenate(([0.0], np.cumsum(distribution)))  # P(noise < -reach + index)
        indices = np.clip(self.edges[:, None] - means + reach, 0, below.size - 1)
        cumulated = below[indices] / below[-1]
        ends = np.ones((1, means.size))
        return np.diff(np.concatenate((0 * ends, cumulated, ends)), axis=0)
