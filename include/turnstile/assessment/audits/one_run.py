"""A lower bound on epsilon from one run with many canaries (Steinke, Nasr & Jagielski 2023).

Each canary is in or out by a fair coin; the auditor guesses from the output. Under
(epsilon, delta)-DP the number of right guesses is stochastically below a binomial, so many right
guesses refute the claim. Not refuting it proves nothing: `WHAT_IT_MEANS`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from turnstile.privacy.tail_probabilities import binomial_at_least

WHAT_IT_MEANS = (
    "A lower bound above the claim refutes the claim, at the stated confidence. A lower bound "
    "below it does not prove the claim: other canaries, other outputs or more of them might "
    "refute it. The proof is the mechanism's, in its .proof.md; the audit only looks for its "
    "breach."
)
_SHARES = (1.0, 0.5, 0.2)  # of the canaries that are guessed, fixed before the run
_PRECISION = 1e-4
_EPSILON_MOST = 60.0


@dataclass(frozen=True, slots=True)
class LowerBound:
    """What an audit found.

    Args:
        epsilon: lower bound, at the delta that was given.
        confidence: with which it holds.
        guesses: canaries that were guessed.
        right: guesses that were right.
    """

    epsilon: float
    confidence: float
    guesses: int
    right: int


def audit(
    scores: NDArray[np.float64],
    is_in: NDArray[np.bool_],
    *,
    confidence: float,
    delta: float = 0.0,
) -> LowerBound:
    """Return the lower bound of epsilon that canary scores give.

    The highest scores are guessed to be in and the lowest to be out, for all, half and a fifth of
    the canaries: three tests, each at a third of the error.

    Args:
        scores: shape (canaries,), float64: higher where the output looks as if the canary was in;
            ties must be in an order that does not depend on `is_in`.
        is_in: shape (canaries,): the coins.
        confidence: strictly between 0 and 1.
        delta: of the claim.
    """
    order = np.argsort(scores, kind="stable")
    bounds = []
    error = (1 - confidence) / len(_SHARES)
    for share in _SHARES:
        each = int(share * scores.size) // 2
        right = int(is_in[order[-each:]].sum()) + int((~is_in[order[:each]]).sum())
        epsilon = lower_bound(2 * each, right, canaries=scores.size, error=error, delta=delta)
        bounds.append(LowerBound(epsilon, confidence, 2 * each, right))
    return max(bounds, key=lambda bound: bound.epsilon)


def lower_bound(guesses: int, right: int, *, canaries: int, error: float, delta: float) -> float:
    """Return the largest epsilon that so many right guesses refute.

    Args:
        guesses: that were made.
        right: of them.
        canaries: all, guessed or not.
        error: chance that the bound is above the truth.
        delta: of the claim.

    Examples:
        >>> round(lower_bound(20_000, 14_621, canaries=20_000, error=0.05, delta=0.0), 2)
        0.97
    """
    low, high = 0.0, _EPSILON_MOST
    if p_value(0.0, guesses, right, canaries=canaries, delta=delta) > error:
        return 0.0
    while high - low > _PRECISION:
        middle = (low + high) / 2
        if p_value(middle, guesses, right, canaries=canaries, delta=delta) < error:
            low = middle
        else:
            high = middle
    return low


def p_value(epsilon: float, guesses: int, right: int, *, canaries: int, delta: float) -> float:
    """Return a bound on P(at least so many right guesses) under (epsilon, delta)-DP.

    P(Bin(r, q) >= v) with q = e^epsilon/(1 + e^epsilon), plus 2 m delta times the largest mean of
    the binomial's mass just below v (Theorem 5.2 and appendix D of the paper).
    """
    chance = 1 / (1 + math.exp(-epsilon))
    beyond = binomial_at_least(right, guesses, chance)
    if delta == 0:
        return beyond
    from scipy.stats import binom

    below = np.cumsum(binom.pmf(np.arange(right - 1, -1, -1), guesses, chance))
    steepest = float(np.max(below / np.arange(1, right + 1))) if right else 0.0
    return min(1.0, beyond + 2 * canaries * delta * steepest)
