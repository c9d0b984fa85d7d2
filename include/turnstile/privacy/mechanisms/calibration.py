"""Scales from losses, rounded up to a float64, so that no draw costs more than was claimed.

A scale is a multiple of 2^-20 (of a larger power of two above 2^32), hence exactly a float64. The
way back is `accounts.loss_of`, exact in both directions.
"""

from __future__ import annotations

import math
from fractions import Fraction

_GRID_BITS = 20
_MANTISSA_BITS = 53


def laplace_scale(loss: Fraction, sensitivity_l1: int) -> Fraction:
    """Return the smallest grid scale b at which discrete Laplace noise costs at most `loss`.

    Args:
        loss: epsilon, > 0.
        sensitivity_l1: counts, >= 1.

    Examples:
        >>> laplace_scale(Fraction(1, 2), 1)
        Fraction(2, 1)
    """
    _check(loss, sensitivity_l1)
    exact = sensitivity_l1 / loss
    return _on_grid(math.ceil(exact * 2**_GRID_BITS))


def gaussian_scale(rho: Fraction, l2_squared: int) -> Fraction:
    """Return the smallest grid scale sigma at which discrete Gaussian noise costs at most `rho`.

    Args:
        rho: zCDP, > 0.
        l2_squared: squared counts, >= 1.

    Examples:
        >>> gaussian_scale(Fraction(1, 50), 1)
        Fraction(5, 1)
    """
    _check(rho, l2_squared)
    squared = l2_squared / (2 * rho) * 4**_GRID_BITS
    return _on_grid(_ceil_sqrt(squared))


def _check(loss: Fraction, sensitivity: int) -> None:
    """Refuse what has no scale.

    Raises:
        ValueError: a loss or a sensitivity is not positive.
    """
    if loss <= 0 or sensitivity < 1:
        raise ValueError(f"loss {loss} and sensitivity {sensitivity} must be positive")


def _ceil_sqrt(value: Fraction) -> int:
    """Smallest integer whose square is not below the value."""
    return 1 + math.isqrt(math.ceil(value) - 1)


def _on_grid(steps: int) -> Fraction:
    """Turn grid steps into a scale, dropping (upwards) bits that a float64 does not hold."""
    dropped = max(0, steps.bit_length() - _MANTISSA_BITS)
    kept = -(-steps // 2**dropped)
    return Fraction(kept * 2**dropped, 2**_GRID_BITS)
