"""Upper bounds, as exact fractions, of the few transcendental amounts that a loss depends on.

`decimal` rounds `exp` and `ln` correctly at the stated precision, on every platform alike, so a
bound is its value at 60 digits plus one unit in the last place: no float on the path of a loss.
"""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction

DIGITS = 60


def exact_context() -> Context:
    """Return the decimal context of every bound: 60 digits, no exponent limit in practice."""
    return Context(prec=DIGITS, Emax=MAX_EMAX, Emin=MIN_EMIN)


def decimal_of(value: Fraction) -> Decimal:
    """Return a fraction to 60 digits; use inside `exact_context`."""
    return Decimal(value.numerator) / Decimal(value.denominator)


def exp_upper(exponent: Fraction) -> Fraction:
    """Return an upper bound of e^exponent, relative error below 1e-50 for |exponent| < 1e6.

    Examples:
        >>> float(exp_upper(Fraction(1)))
        2.718281828459045
    """
    with localcontext(exact_context()):
        return Fraction(decimal_of(exponent).exp()) * (1 + Fraction(1, 10**50))


def exp_lower(exponent: Fraction) -> Fraction:
    """Return a lower bound of e^exponent, relative error below 1e-50 for |exponent| < 1e6."""
    return 1 / exp_upper(-exponent)


def laplace_tail(scale: Fraction, at: int) -> Fraction:
    """Return an upper bound of P(Z >= at) for the discrete Laplace of this scale.

    P(Z = z) is (1 - r)/(1 + r) r^|z| with r = e^(-1/scale) (Ghosh, Roughgarden & Sundararajan
    2009), so that P(Z >= t) = r^t / (1 + r) for t >= 1. For t <= 0 the bound is 1.

    Args:
        scale: b, in counts.
        at: t, in counts.

    Examples:
        >>> round(float(laplace_tail(Fraction(2), 8)), 6)
        0.011401
    """
    if at <= 0:
        return Fraction(1)
    return exp_upper(-at / scale) / (1 + exp_lower(-1 / scale))


def stability_delta(scale: Fraction, threshold: int, *, l1: int, linf: int) -> Fraction:
    """Return the delta that a unit costs in one thresholded draw, an upper bound, at most 1.

    The uncovered outcome is that a cell which only this unit occupies is released: P(Z >= T - c)
    for c records in it. Per record that is largest at c = 1 or at c = linf, so l1 times the larger
    is a bound (PRIVACY 5.3, stability_histogram.proof.md); exact up to union for linf = 1.

    Args:
        scale: b of the discrete Laplace, in counts.
        threshold: T, in counts; a cell is kept when its noisy value is at least T.
        l1: records of one unit in this draw.
        linf: records of one unit in one cell.
    """
    if linf >= threshold:
        return Fraction(1)
    alone = laplace_tail(scale, threshold - 1)
    grouped = laplace_tail(scale, threshold - linf) / linf
    return min(Fraction(1), l1 * max(alone, grouped))
