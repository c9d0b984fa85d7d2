"""Differencing: a hidden cell estimated as a published total minus its published parts (B4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from turnstile.privacy.noise import Term, half_width, variance_of


@dataclass(frozen=True, slots=True)
class HiddenCell:
    """What differencing says about a hidden count.

    Args:
        estimate: total minus parts, in counts.
        low: smallest count that is compatible, never below `least`.
        high: largest count that is compatible, never above `most`.
        confidence: of the interval, before the limits are applied.
    """

    estimate: float
    low: float
    high: float
    confidence: float


def hidden_cell(
    total: float,
    parts: Sequence[float],
    noise: Sequence[Term],
    *,
    confidence: float,
    limits: tuple[float, float] = (float("-inf"), float("inf")),
) -> HiddenCell:
    """Return the estimate and the exact interval of a hidden count.

    total - sum(parts) = hidden count + the signed sum of all their noises, which are symmetric, so
    the interval is the estimate plus or minus `half_width(noise, confidence)`.

    Args:
        total: published.
        parts: published.
        noise: one term for the total and one for each part; rounding is part of a distribution.
        confidence: strictly between 0 and 1.
        limits: what is known of the count beforehand, for example (0, the threshold).

    Examples:
        >>> from turnstile.privacy.noise import NoiseDistribution
        >>> noise = [Term(NoiseDistribution.LAPLACE, 1.4, 3)]
        >>> found = hidden_cell(150, [91, 41], noise, confidence=0.95)
        >>> found.estimate, round(found.low, 3), round(found.high, 3)
        (18, 11.044, 24.956)
    """
    estimate = total - sum(parts)
    reach = half_width(noise, confidence)
    low, high = max(limits[0], estimate - reach), min(limits[1], estimate + reach)
    return HiddenCell(estimate, low, high, confidence)


def derived_deviation(noise: Sequence[Term]) -> float:
    """Return the standard deviation of a difference, in counts."""
    return float(sum(term.times * variance_of(term) for term in noise) ** 0.5)
