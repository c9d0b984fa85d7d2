"""With what probability a published number proves that somebody was there.

Proof needs a mechanism that leaves zeros alone: a released cell then held at least one record.
"""

from __future__ import annotations

import math


def proof_continuous(group: int, *, threshold: float, scale: float) -> float:
    """Return P(group + Lap(scale) > threshold): released only if somebody was there.

    1/2 exp(-(t - g)/p) for g <= t (Theorem 1 of the 2017 assessment, corrected: its exp(.)/(2p) is
    a density).

    Args:
        group: people in a cell that is empty without them, >= 1.
        threshold: t, before any rounding, in counts.
        scale: p, in counts.

    Examples:
        >>> [f"{proof_continuous(group, threshold=18, scale=1.4):.3g}" for group in (1, 5, 12)]
        ['2.66e-06', '4.64e-05', '0.00688']
    """
    distance = threshold - group
    if distance < 0:
        return 1 - math.exp(distance / scale) / 2
    return math.exp(-distance / scale) / 2


def proof_integer(group: int, *, threshold: int, scale: float) -> float:
    """Return P(group + Z >= threshold) for discrete Laplace Z of scale b: r^(T-g)/(1 + r).

    Examples:
        >>> f"{proof_integer(1, threshold=35, scale=2.0):.3g}"
        '2.58e-08'
    """
    ratio = math.exp(-1 / scale)
    distance = threshold - group
    if distance <= 0:
        return 1 - ratio ** (1 - distance) / (1 + ratio)
    return ratio**distance / (1 + ratio)
