"""Tighter figures than the additive gate, and the largest scale that fits so many weeks.

PRIVACY 3.4: a report, never the gate, because these composition theorems hold for parameters fixed
in advance. Three accountants: the optimal composition of pure losses (exact, here), privacy loss
distributions of the *discrete* noise (dp_accounting, imported late), and the ledger's two sums.

Integer Laplace noise is never accounted as continuous, which under-counts (42.90 instead of 49.15
for 52 draws of epsilon 1 at delta 1e-6); replace-one is reckoned with explicit, doubled
sensitivities, never with an accountant's own replace mode.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

from turnstile.privacy.accounts import MICRO, Loss, loss_of, rounded_up
from turnstile.privacy.events import DrawEvent, Sensitivity
from turnstile.privacy.tails import decimal_of, exact_context

_FLOAT_SLACK = 1e-9  # dp_accounting rounds its distributions up; its sums are floats


@dataclass(frozen=True, slots=True)
class Draw:
    """One event as one unit meets it, so many times.

    Args:
        event: the draw.
        sensitivity: of the unit (doubled explicitly for replace-one).
        times: releases with this event that one instance of the unit can be in.
    """

    event: DrawEvent
    sensitivity: Sensitivity
    times: int = 1


def optimal_pure(epsilon: Fraction, times: int, delta: Fraction) -> Fraction:
    """Return the least epsilon' such that `times` epsilon-DP draws are (epsilon', delta)-DP.

    The optimal homogeneous composition (Kairouz, Oh & Viswanath 2015, Theorem 3.3; Murtagh & Vadhan
    2016): with D = (1 + e^epsilon)^k, delta(e') D is the sum over l with (k - 2l) epsilon > e' of
    C(k, l) (e^((k-l) epsilon) - e^(e' + l epsilon)). Linear in e^(e') between the knots, so it is
    solved there; rounded up to 1e-6.

    Args:
        epsilon: of one draw, > 0.
        times: k >= 1.
        delta: strictly between 0 and 1.

    Examples:
        >>> float(optimal_pure(Fraction(1), 52, Fraction(1, 10**6)))
        49.15298
    """
    with localcontext(exact_context()):
        step, allowed = decimal_of(epsilon), decimal_of(delta)
        allowed *= (1 + step.exp()) ** times
        heavy = light = Decimal(0)
        best = Decimal(0)
        for hits in range(times // 2 + 1):
            heavy += math.comb(times, hits) * ((times - hits) * step).exp()
            light += math.comb(times, hits) * (hits * step).exp()
            if heavy <= allowed:
                continue
            solved = ((heavy - allowed) / light).ln()
            knot = (times - 2 * hits - 2) * step
            best = max(Decimal(0), min(solved, (times - 2 * hits) * step))
            if solved >= knot:
                break
        return Fraction(rounded_up(Fraction(best), MICRO), MICRO)


def epsilon_by_pld(draws: Sequence[Draw], delta: float) -> float:
    """Return the epsilon at delta of all draws together, by privacy loss distributions.

    A unit that moves each cell by at most 1 is reckoned cell by cell. Otherwise discrete Laplace of
    l1 sensitivity s is dominated by one cell moved by s: with f, g the trade-offs of shifts by s
    and t, moving two cells has the trade-off f (x) g >= g o (1 - f) (Dong, Roth & Su 2022, Lemma
    A.5), and g o (1 - f) is that of one shift by s + t, because threshold tests are most powerful
    for every shift of a log-concave distribution. Thresholds take their delta off the target.

    Args:
        draws: what one instance of the unit is in.
        delta: target.

    Returns:
        epsilon, infinite if the thresholds use delta up; an upper bound.

    Raises:
        ValueError: a Gaussian draw moves a cell by more than 1.
    """
    from dp_accounting.pld import (
        privacy_loss_distribution as pld,
    )

    composed: Any = None
    left = Fraction(delta)
    for draw in draws:
        left -= draw.times * loss_of(draw.event, draw.sensitivity).delta
        distribution = _distribution(pld, draw)
        composed = distribution if composed is None else composed.compose(distribution)
    if left <= 0 or composed is None:
        return math.inf if left <= 0 else 0.0
    return float(composed.get_epsilon_for_delta(float(left))) + _FLOAT_SLACK


def largest_fit(weekly: Loss, cap: Loss, weeks: int) -> Fraction:
    """Return the largest f such that all scales may be divided by f and so many weeks still fit.

    Dividing every scale by f multiplies epsilon by f and rho by f^2; a threshold's delta is taken
    as it stands. Rounded down to 1e-6; 0 if nothing fits.

    Args:
        weekly: what one week posts to the account.
        cap: what the account may hold; None is no cap; delta is always a cap.
        weeks: number of releases, >= 1.

    Examples:
        >>> largest_fit(Loss(Fraction(1), Fraction(1, 2)), Loss(Fraction(26), None), 52)
        Fraction(1, 2)
    """
    if weeks * weekly.delta > cap.delta:
        return Fraction(0)
    factors = []
    if cap.epsilon is not None:
        factors.append(_ratio(cap.epsilon, weekly.epsilon, weeks))
    if cap.rho is not None:
        factors.append(_root_below(_ratio(cap.rho, weekly.rho, weeks)))
    if not factors:
        raise ValueError("a cap of epsilon or of rho is needed to fit weeks under")
    return Fraction(math.floor(min(factors) * MICRO), MICRO)


def scale_for_weeks(scale: Fraction, factor: Fraction) -> Fraction:
    """Return a scale divided by a factor of `largest_fit`, rounded up to the 2^-20 grid.

    Raises:
        ValueError: nothing fits (factor 0).
    """
    if factor <= 0:
        raise ValueError("no scale fits these weeks under the cap")
    return Fraction(math.ceil(scale / factor * 2**20), 2**20)


def _distribution(pld: Any, draw: Draw) -> Any:  # noqa: ANN401 - dp_accounting carries no types
    """Privacy loss distribution of one draw, composed with itself."""
    event, sensitivity = draw.event, draw.sensitivity
    if event.noise.record.is_pure:
        cells, shift = (sensitivity.l1, 1) if sensitivity.linf == 1 else (1, sensitivity.l1)
        distribution = pld.from_discrete_laplace_mechanism(
            1 / float(event.scale), sensitivity=shift
        )
        return distribution.self_compose(draw.times * cells)
    if sensitivity.linf > 1:
        raise ValueError("a Gaussian draw is reckoned by PLD only where a cell moves by at most 1")
    distribution = pld.from_discrete_gaussian_mechanism(float(event.scale), sensitivity=1)
    return distribution.self_compose(draw.times * sensitivity.l2_squared)


def _ratio(cap: Fraction, weekly: Fraction | None, weeks: int) -> Fraction:
    """How many times over the weeks fit; 0 if a week is infinite."""
    if weekly is None:
        return Fraction(0)
    if weekly == 0:
        raise ValueError("a week that costs nothing has no largest scale")
    return cap / (weeks * weekly)


def _root_below(value: Fraction) -> Fraction:
    """Square root, rounded down to 1e-9."""
    return Fraction(math.isqrt(math.floor(value * 10**18)), 10**9)
