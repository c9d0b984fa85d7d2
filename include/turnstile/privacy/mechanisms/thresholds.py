"""Scale and threshold of a stability-based histogram, by two calibrations.

The *source's* is that of the Opal release (Asghar, Tyler & Kaafar 2017, Algorithm 1):
Lap(2/epsilon) and the threshold 1 + 2 ln(2/delta)/epsilon. It is stated for continuous noise that
is rounded afterwards; here the noise is discrete Laplace of the same scale, thresholded at the
first integer that reaches the stated threshold, and it is accounted as that. *Ours* is the smallest
scale and integer threshold that meet (epsilon, delta) under add/remove, with delta computed, not
bounded by a formula for other noise. Proof: stability_histogram.proof.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import localcontext
from fractions import Fraction

from turnstile.privacy.events import SMALLEST_THRESHOLD, Sensitivity
from turnstile.privacy.mechanisms.calibration import laplace_scale
from turnstile.privacy.tails import decimal_of, exact_context, laplace_tail, stability_delta


@dataclass(frozen=True, slots=True)
class StabilityParameters:
    """What a thresholded draw event is made from.

    Args:
        scale: b of the discrete Laplace, in counts.
        threshold: T; an occupied cell is released when its noisy value is at least T.
        delta: P(Z >= T - 1), the chance that a lone record shows.
    """

    scale: Fraction
    threshold: int
    delta: Fraction


def source_threshold(epsilon: Fraction, delta: Fraction) -> float:
    """Return the source's own threshold for display, 1 + 2 ln(2/delta)/epsilon.

    Examples:
        >>> round(source_threshold(Fraction(1), Fraction(1, 8_000_000)), 2)
        34.18
        >>> round(source_threshold(Fraction(2), Fraction(1, 8_000_000)), 2)
        17.59
    """
    return float(_source_threshold(epsilon, delta))


def source_parameters(epsilon: Fraction, delta: Fraction) -> StabilityParameters:
    """Return the source's calibration: scale 2/epsilon, at the stated threshold.

    epsilon and delta are the source's own, for replacing a trip. What the draw costs follows from
    the scale and the integer threshold: one trip costs epsilon/2 under add/remove.

    Examples:
        >>> source_parameters(Fraction(1), Fraction(1, 8_000_000)).threshold
        35
    """
    scale = laplace_scale(epsilon / 2, 1)
    threshold = math.ceil(_source_threshold(epsilon, delta))
    return _parameters(scale, threshold)


def tight_parameters(
    epsilon: Fraction, delta: Fraction, sensitivity: Sensitivity
) -> StabilityParameters:
    """Return the smallest scale and threshold that cost a unit at most (epsilon, delta).

    Args:
        epsilon: add/remove loss of the unit, > 0.
        delta: uncovered probability of the unit, strictly between 0 and 1.
        sensitivity: of the unit.

    Examples:
        >>> one = Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)
        >>> tight_parameters(Fraction(1, 2), Fraction(1, 8_000_000), one).threshold
        32
    """
    scale = laplace_scale(epsilon, sensitivity.l1)
    low, high = sensitivity.linf, sensitivity.linf + 1
    while _delta(scale, high, sensitivity) > delta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if _delta(scale, middle, sensitivity) > delta:
            low = middle
        else:
            high = middle
    return _parameters(scale, high)


def _source_threshold(epsilon: Fraction, delta: Fraction) -> Fraction:
    """1 + 2 ln(2/delta)/epsilon to 60 digits."""
    with localcontext(exact_context()):
        return 1 + 2 * Fraction(decimal_of(2 / delta).ln()) / epsilon


def _delta(scale: Fraction, threshold: int, sensitivity: Sensitivity) -> Fraction:
    """What the threshold leaves uncovered for the unit."""
    return stability_delta(scale, threshold, l1=sensitivity.l1, linf=sensitivity.linf)


def _parameters(scale: Fraction, threshold: int) -> StabilityParameters:
    """State the delta of one record beside scale and threshold."""
    threshold = max(threshold, SMALLEST_THRESHOLD)
    return StabilityParameters(scale, threshold, laplace_tail(scale, threshold - 1))
