"""How large the noise of a dense integer Laplace table is, from its numbers below zero."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincc, betaincinv


@dataclass(frozen=True, slots=True)
class ScaleEstimate:
    """A recovered scale.

    Args:
        scale: most likely b (or sigma), in counts.
        low: lower end of the interval.
        high: upper end.
        confidence: of the interval.
        samples: numbers that it rests on.
    """

    scale: float
    low: float
    high: float
    confidence: float
    samples: int

    def holds(self, scale: float) -> bool:
        """Return whether a scale lies in the interval."""
        return self.low <= scale <= self.high


def from_negatives(values: NDArray[np.int64], confidence: float = 0.95) -> ScaleEstimate | None:
    """Return the scale of a dense discrete Laplace table from its numbers below zero.

    For any exact count c >= 0, P(c + Z = -k) is proportional to r^k for k >= 1, r = e^(-1/b): the
    numbers below zero are geometric whatever the raw counts are, and b follows from their mean.
    None without a number below zero. The interval is exact (Clopper & Pearson 1934, negative
    binomial form).

    Args:
        values: noisy counts, any shape.
        confidence: strictly between 0 and 1.
    """
    excess = -values[values < 0] - 1
    if excess.size == 0:
        return None
    steps, stops = int(excess.sum()), excess.size
    alpha = (1 - confidence) / 2
    low = float(betaincinv(steps, stops, alpha)) if steps else 0.0
    high = float(betaincinv(steps + 1, stops, 1 - alpha))
    return ScaleEstimate(
        _scale_of_ratio(steps / (steps + stops)),
        _scale_of_ratio(low),
        _scale_of_ratio(high),
        confidence,
        stops,
    )


def negatives_p_value(values: NDArray[np.int64], scale: float) -> float:
    """Return the exact two-sided p-value of a declared scale against the numbers below zero.

    1 without any: a table of busy cells says nothing.
    """
    excess = -values[values < 0] - 1
    if excess.size == 0:
        return 1.0
    steps, stops = int(excess.sum()), excess.size
    stop_probability = -math.expm1(-1 / scale)
    fewer = _failures_at_most(steps, stops, stop_probability)
    more = _failures_at_least(steps, stops, stop_probability)
    return min(1.0, 2 * min(fewer, more))


def _failures_at_most(most: int, stops: int, chance: float) -> float:
    """Return P(at most so many failures before the last of the stops), each trial a stop or not."""
    return 0.0 if most < 0 else float(betainc(stops, most + 1, chance))


def _failures_at_least(least: int, stops: int, chance: float) -> float:
    """Return P(at least so many failures before the last of the stops)."""
    return 1.0 if least <= 0 else float(betaincc(stops, least, chance))


def _scale_of_ratio(ratio: float) -> float:
    """Return b with e^(-1/b) = ratio."""
    if ratio <= 0:
        return 0.0
    return math.inf if ratio >= 1 else -1 / math.log(ratio)
