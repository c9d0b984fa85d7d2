"""Conversions of losses to (epsilon, delta), and the delta at which every figure is shown.

PRIVACY 2: add/remove of one unit is canonical; the replace figure is published beside it. A
conversion is an upper bound of epsilon, worked out to 60 digits and rounded up to 1e-6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import localcontext
from fractions import Fraction

from turnstile.privacy.accounts import MICRO, Loss, rounded_up
from turnstile.privacy.tails import decimal_of, exact_context

SHOWN_AT_DELTA = Fraction(1, 10**6)
_DECIMAL_SLACK = Fraction(1, 10**40)  # far above the error of a few roundings at 60 digits


@dataclass(frozen=True, slots=True)
class Zcdp:
    """delta-approximate rho-zero-concentrated privacy (Bun & Steinke 2016, Definition 8.1)."""

    rho: Fraction
    delta: Fraction = Fraction(0)


def epsilon_tight(guarantee: Zcdp, delta: Fraction) -> Fraction | None:
    """Return an epsilon of the (epsilon, delta) guarantee, by the tighter conversion, rounded up.

    The least over alpha > 1 of alpha rho + (ln(1/delta') - ln(alpha))/(alpha - 1) +
    ln(1 - 1/alpha) (Canonne, Kamath & Steinke 2020, Proposition 12). Every alpha gives a valid
    bound, so alpha is searched for in floats and only the bound is exact. None if nothing of delta
    is left.

    Examples:
        >>> float(epsilon_tight(Zcdp(Fraction(26)), Fraction(1, 10**6)))
        62.283077
    """
    left = _delta_left(guarantee, delta)
    if left is None:
        return None
    if guarantee.rho == 0:
        return Fraction(0)
    alpha = Fraction(_best_order(float(guarantee.rho), float(left)))
    with localcontext(exact_context()):
        order = decimal_of(alpha)
        epsilon = (
            order * decimal_of(guarantee.rho)
            + (-decimal_of(left).ln() - order.ln()) / (order - 1)
            + (1 - 1 / order).ln()
        )
        return max(Fraction(0), _shown(Fraction(epsilon)))


def epsilon_of(loss: Loss, delta: Fraction = SHOWN_AT_DELTA) -> Fraction | None:
    """Return the epsilon of a loss at a delta, rounded up: the smaller valid conversion, or None.

    Its epsilon and its rho describe the same draws, so either figure holds: the sum of epsilons
    (None once a Gaussian was drawn) and what the sum of rhos gives (None once a contribution was
    not bounded). Neither does where thresholds have used delta up.

    Examples:
        >>> float(epsilon_of(Loss(Fraction(52), Fraction(26))))
        52.0
    """
    figures = []
    if loss.epsilon is not None and loss.delta <= delta:
        figures.append(Fraction(rounded_up(loss.epsilon, MICRO), MICRO))
    if loss.rho is not None:
        tight = epsilon_tight(Zcdp(loss.rho, loss.delta), delta)
        figures += [] if tight is None else [tight]
    return min(figures, default=None)


def rho_for(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return a rho, in 1e-9 rounded down, whose tight conversion at delta is at most epsilon.

    Args:
        epsilon: target, > 0.
        delta: target, strictly between 0 and 1.

    Examples:
        >>> float(epsilon_tight(Zcdp(rho_for(Fraction(8), Fraction(1, 10**6))), Fraction(1, 10**6)))
        8.0
    """
    low, high = 0, rounded_up(epsilon, 10**9)
    while high - low > 1:
        middle = (low + high) // 2
        reached = epsilon_tight(Zcdp(Fraction(middle, 10**9)), delta)
        if reached is not None and reached <= epsilon:
            low = middle
        else:
            high = middle
    return Fraction(low, 10**9)


def _delta_left(guarantee: Zcdp, delta: Fraction) -> Fraction | None:
    """Delta that remains for the conversion; None if none does."""
    if not 0 < delta < 1:
        raise ValueError(f"delta {delta} must lie strictly between 0 and 1")
    left = delta - guarantee.delta
    return left if left > 0 else None


def _shown(epsilon: Fraction) -> Fraction:
    """Round an epsilon of 60 digits up to 1e-6."""
    return Fraction(rounded_up(epsilon + _DECIMAL_SLACK, MICRO), MICRO)


def _best_order(rho: float, delta: float) -> float:
    """Search the order alpha > 1 that makes the conversion smallest, over log(alpha - 1).

    The bound is unimodal in alpha; a golden-section search is near enough: any order is valid.
    """

    def bound(log_excess: float) -> float:
        alpha = 1 + math.exp(log_excess)
        spread = (-math.log(delta) - math.log(alpha)) / (alpha - 1)
        return alpha * rho + spread + math.log1p(-1 / alpha)

    ratio = (math.sqrt(5) - 1) / 2
    low, high = -12.0, 30.0
    for _ in range(80):
        width = ratio * (high - low)
        if bound(high - width) < bound(low + width):
            high = low + width
        else:
            low = high - width
    return 1 + math.exp((low + high) / 2)
