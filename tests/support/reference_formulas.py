"""Formulas of the literature and of the sources that tests hold the product against."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from turnstile.privacy.accounts import NO_LOSS, Loss, loss_of
from turnstile.privacy.guarantees import epsilon_of, rho_for
from turnstile.privacy.noise import Term, half_width
from turnstile_design.compared_designs.accounting import Draw, largest_fit
from turnstile_lab.proof_of_presence import proof_continuous


def average_half_width(term: Term, draws: int, confidence: float = 0.95) -> float:
    """Return the half-width of an average of so many draws, for any distribution."""
    return half_width([Term(term.distribution, term.scale, term.times * draws)], confidence) / draws


def theorem_5_as_stated(scale: float, alpha: float) -> float:
    """Return the half-width of Theorem 5 with the natural logarithm; it covers 53.4 %, not 95 %.

    Examples:
        >>> round(theorem_5_as_stated(1.4, 0.05), 3)
        2.253
    """
    return scale * math.log(1 / (4 * alpha))


def proof_rounded(group: int, *, least: int, scale: float) -> float:
    """Return P(round(group + Lap(scale)) >= least): rounded first, threshold afterwards.

    Examples:
        >>> f"{proof_rounded(1, least=18, scale=1.4):.3g}"
        '3.81e-06'
        >>> f"{proof_rounded(1, least=19, scale=1.4):.3g}"
        '1.86e-06'
    """
    return proof_continuous(group, threshold=least - 0.5, scale=scale)


def difference_density(distance: float, scale: float) -> float:
    """Return the density of a difference of two Laplace(b): (b + |u|) e^(-|u|/b)/(4 b^2).

    Appendix D of the 2017 assessment, which is right.

    Examples:
        >>> difference_density(0.0, 1.0)
        0.25
    """
    size = abs(distance)
    return (scale + size) * math.exp(-size / scale) / (4 * scale**2)


def repeats(draws: NDArray[np.int64]) -> float:
    """Return the share of draws that equal the one before them.

    Reuse in pairs escapes the chi-squared test; it raises this share to about one half.
    """
    return float(np.mean(draws[1:] == draws[:-1]))


def largest_fit_at(weekly: Loss, epsilon: Fraction, delta: Fraction, weeks: int) -> Fraction:
    """Return the largest f as `largest_fit` does, for a cap on the shown figure at a delta.

    The figure shown is the smaller of two conversions, so the better of two fits counts.

    Examples:
        >>> float(largest_fit_at(Loss(None, Fraction(1, 2)), Fraction(8), Fraction(1, 10**6), 52))
        0.201184
    """
    used = weeks * weekly.delta
    if used >= delta:
        return Fraction(0)
    rho = rho_for(epsilon, delta - used)
    fits = [largest_fit(weekly, Loss(None, rho, delta), weeks)]
    if weekly.epsilon is not None:
        fits.append(largest_fit(weekly, Loss(epsilon, None, delta), weeks))
    return max(fits)


def epsilon_by_sums(draws: Sequence[Draw], delta: Fraction) -> Fraction | None:
    """Return the figure of the gate's two sums for the same draws: what the ledger would show."""
    total = NO_LOSS
    for draw in draws:
        total += loss_of(draw.event, draw.sensitivity).times(draw.times)
    return epsilon_of(total, delta)
