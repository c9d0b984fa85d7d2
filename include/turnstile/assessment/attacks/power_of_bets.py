"""What a bet against all mixtures of the declared noise finds, at the size of one table.

The raw numbers of the table are unknown; they are taken to be as its likeliest mixture has them. A
fault then gives the numbers another distribution q, and a bet of half of them on q gains, for each
number, the distance of q to the nearest mixture p, with the scatter of ln q/p.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from turnstile.assessment.attacks.mixtures import likeliest_mixture
from turnstile.assessment.attacks.noise_outcomes import MEANS_PER_SCALE, Outcomes
from turnstile.privacy.events import DrawEvent

_TIMES = (0.95, 0.9, 0.8, 0.7, 0.5, 0.25)
_SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
_LEARNING = 5.0  # nats that a fitted mixture of noise loses, about
_GAP = 1e-3

Floats = NDArray[np.float64]


class Power:
    """Faults of a table, from the smallest, until one is found with the power that is asked for.

    Args:
        values: published numbers, any shape.
        event: that declares their noise.
        enough: logarithm of the evidence that refutes it.
        power: chance to find the fault.
    """

    def __init__(
        self, values: NDArray[np.int64], event: DrawEvent, *, enough: float, power: float
    ) -> None:
        self._outcomes = Outcomes(event.noise, float(event.scale), event.statistic == "sum")
        self._means = self._outcomes.means(MEANS_PER_SCALE)
        self._declared = self._outcomes.distributions(self._means) + 1e-300
        self._half, self._enough = values.size / 2, enough
        self._deviates = NormalDist().inv_cdf(power)
        counts = np.bincount(self._outcomes.of(values.ravel()), minlength=self._outcomes.number)
        seen = counts > 0
        self._pieces = int(seen.sum())
        weights = counts[seen].astype(np.float64)
        self._shares = likeliest_mixture(self._declared[seen], weights, gap=1.0).shares

    def scale_found(self) -> float | None:
        """Return so many times the declared scale that a smaller one is found; None if never."""
        spoiled = [self._outcomes.distributions(self._means, times) for times in _TIMES]
        return self._first(_TIMES, [own @ self._shares for own in spoiled], _LEARNING)

    def share_found(self) -> float | None:
        """Return the share of cells without noise that is found; None if never."""
        bare = np.bincount(
            self._outcomes.of(self._means), self._shares, minlength=self._outcomes.number
        )
        noised = self._declared @ self._shares
        mixed = [(1 - share) * noised + share * bare for share in _SHARES]
        # The shares of the pieces are learned one by one: half a nat is lost for each.
        return self._first(_SHARES, mixed, self._pieces / 2)

    def _first(
        self, sizes: Sequence[float], spoiled: Sequence[Floats], lost: float
    ) -> float | None:
        """Return the first size whose distribution differs from all mixtures; larger ones are."""
        first = bisect_left(spoiled, True, key=lambda masses: self._is_found(masses, lost))
        return sizes[first] if first < len(sizes) else None

    def _is_found(self, masses: Floats, lost: float) -> bool:
        """Tell whether numbers of such a distribution refute the declared noise."""
        q = masses / masses.sum() + 1e-300
        p = self._declared @ likeliest_mixture(self._declared, q, gap=_GAP).shares
        ratios = np.log(q / p)
        gain = float(q @ ratios)
        scatter = math.sqrt(max(0.0, float(q @ ratios**2) - gain**2))
        least = self._half * gain - self._deviates * scatter * math.sqrt(self._half)
        return least - lost > self._enough
