"""Guarantees as exact values, their replace-one figures and conversions to (epsilon, delta).

PRIVACY 2: add/remove of one unit is canonical; the replace figure is published beside it. A
conversion is an upper bound of epsilon, worked out to 60 digits and rounded up to 1e-6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import localcontext
from fractions import Fraction

from turnstile.privacy.accounts import MICRO, rounded_up
from turnstile.privacy.tails import decimal_of, exact_context, exp_upper

_DECIMAL_SLACK = Fraction(1, 10**40)  # far above the error of a few roundings at 60 digits


@dataclass(frozen=True, slots=True)
class PureDp:
    """epsilon-differential privacy (Dwork, McSherry, Nissim & Smith 2006)."""

    epsilon: Fraction

    def replaced(self) -> PureDp:
        """Return the replace-one figure: group privacy of two steps, twice epsilon."""
        return PureDp(2 * self.epsilon)


@dataclass(frozen=True, slots=True)
class ApproxDp:
    """(epsilon, delta)-differential privacy (Dwork et al. 2006)."""

    epsilon: Fraction
    delta: Fraction

    def replaced(self) -> ApproxDp:
        """Return the replace-one figure for any mechanism: (2 epsilon, (1 + e^epsilon) delta).

        Group privacy of two (Dwork & Roth 2014, Theorem 2.2 with the sum of its proof).
        """
        if self.delta == 0:
            return ApproxDp(2 * self.epsilon, Fraction(0))
        grown = (1 + exp_upper(self.epsilon)) * self.delta
        return ApproxDp(2 * self.epsilon, min(Fraction(1), grown))


@dataclass(frozen=True, slots=True)
class Zcdp:
    """delta-approximate rho-zero-concentrated privacy (Bun & Steinke 2016, Definition 8.1)."""

    rho: Fraction
    delta: Fraction = Fraction(0)

    def replaced(self) -> Zcdp:
        """Return the replace-one figure: 4 rho by group privacy of two (Proposition 1.9).

        With delta > 0 this is a fact about this package's draws, not about every mechanism: each of
        the two data sets has its own uncovered event, of probability at most delta
        (stability_histogram.proof.md, line R).
        """
        return Zcdp(4 * self.rho, self.delta)


def epsilon_simple(guarantee: Zcdp, delta: Fraction) -> Fraction | None:
    """Return an epsilon of the (epsilon, delta) guarantee, by the simple conversion, rounded up.

    rho + 2 sqrt(rho ln(1/delta')) with delta' = delta - guarantee.delta (Bun & Steinke 2016,
    Proposition 1.3 and section 8). None if nothing of delta is left.

    Examples:
        >>> float(epsilon_simple(Zcdp(Fraction(26)), Fraction(1, 10**6)))
        63.905318
    """
    left = _delta_left(guarantee, delta)
    if left is None:
        return None
    with localcontext(exact_context()):
        rho = decimal_of(guarantee.rho)
        epsilon = rho + 2 * (rho * -decimal_of(left).ln()).sqrt()
        return _shown(Fraction(epsilon))


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


def epsilon_shown(
    approx: ApproxDp | PureDp | None, concentrated: Zcdp | None, delta: Fraction
) -> Fraction | None:
    """Return the figure that a balance shows at a delta: the smaller valid conversion, or None.

    Both arguments describe the same draws: the sum of their epsilons (None once a Gaussian was
    drawn) and the sum of their rhos (None once a contribution was not bounded).

    Examples:
        >>> float(epsilon_shown(PureDp(Fraction(52)), Zcdp(Fraction(26)), Fraction(1, 10**6)))
        52.0
    """
    figures = []
    if isinstance(approx, PureDp) or (approx is not None and approx.delta <= delta):
        figures.append(Fraction(rounded_up(approx.epsilon, MICRO), MICRO))
    if concentrated is not None:
        tight = epsilon_tight(concentrated, delta)
        simple = epsilon_simple(concentrated, delta)
        figures.extend(figure for figure in (tight, simple) if figure is not None)
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
