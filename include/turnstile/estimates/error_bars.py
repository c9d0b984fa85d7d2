"""How far a published number may lie from the exact one: from the declared noise alone.

These are floats for people: no loss depends on them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from turnstile.privacy.events import DrawEvent, NoiseFamily
from turnstile.privacy.noise import noise_variance


@dataclass(frozen=True, slots=True)
class ErrorBar:
    """Error of one noisy cell, in counts (or grid steps).

    Args:
        standard_deviation: of the noise.
        half_width_90: the noise is at most this large with probability 0.90 or more.
        half_width_95: the same with probability 0.95 or more.
    """

    standard_deviation: float
    half_width_90: int
    half_width_95: int


def error_bar(event: DrawEvent) -> ErrorBar:
    """Return the error of one cell of a draw.

    Discrete Laplace: P(|Z| > t) = 2 q^(t+1) / (1 + q) with q = e^(-1/b). Discrete Gaussian: the
    half-width of the continuous one, rounded up (Canonne, Kamath & Steinke 2020, Proposition 25).
    """
    deviation = math.sqrt(noise_variance(event.noise, event.scale))
    scale = float(event.scale)
    if event.noise is NoiseFamily.DISCRETE_LAPLACE:
        ratio = math.exp(-1 / scale)
        return ErrorBar(deviation, _laplace_half(ratio, 0.10), _laplace_half(ratio, 0.05))
    return ErrorBar(deviation, _gaussian_half(scale, 0.10), _gaussian_half(scale, 0.05))


def _laplace_half(ratio: float, outside: float) -> int:
    """Return the least t with P(|Z| > t) at most `outside`."""
    return max(0, math.ceil(math.log(outside * (1 + ratio) / 2) / math.log(ratio) - 1))


def _gaussian_half(scale: float, outside: float) -> int:
    """Return a t with P(|Z| > t) at most `outside`, a count on the safe side."""
    return math.ceil(scale * NormalDist().inv_cdf(1 - outside / 2))
