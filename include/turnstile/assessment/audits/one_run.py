"""A lower bound on epsilon from one run with many canaries (Steinke, Nasr & Jagielski 2023).

Each canary is in or out by a fair coin; the auditor guesses from the output. Under epsilon-DP the
number of right guesses is stochastically below a binomial, so many right guesses refute the claim.
Not refuting it proves nothing: `WHAT_IT_MEANS`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from turnstile.privacy.tail_probabilities import chance_at_least

WHAT_IT_MEANS = (
    "A lower bound above the claim refutes the claim, at the stated confidence. A lower bound "
    "below it does not prove the claim: other canaries, other outputs or more of them might "
    "refute it. The proof is the mechanism's, in its .proof.md; the audit only looks for its "
    "breach."
)
SHARES = (1.0, 0.5, 0.2)  # of the canaries that are guessed, fixed before the run


@dataclass(frozen=True, slots=True)
class LowerBound:
    """What an audit found.

    Args:
        epsilon: lower bound.
        confidence: with which it holds.
        guesses: canaries that were guessed.
        right: guesses that were right.
    """

    epsilon: float
    confidence: float
    guesses: int
    right: int


def audit(
    scores: NDArray[np.float64], is_in: NDArray[np.bool_], *, confidence: float
) -> LowerBound:
    """Return the lower bound of epsilon that canary scores give.

    The highest scores are guessed to be in and the lowest to be out, for all, half and a fifth of
    the canaries: three tests, each at a third of the error.

    Args:
        scores: shape (canaries,), float64: higher where the output looks as if the canary was in;
            ties must be in an order that does not depend on `is_in`.
        is_in: shape (canaries,): the coins.
        confidence: strictly between 0 and 1.
    """
    order = np.argsort(scores, kind="stable")
    bounds = []
    error = (1 - confidence) / len(SHARES)
    for share in SHARES:
        each = int(share * scores.size) // 2
        right = int(is_in[order[-each:]].sum()) + int((~is_in[order[:each]]).sum())
        bounds.append(
            LowerBound(lower_bound(2 * each, right, error=error), confidence, 2 * each, right)
        )
    return max(bounds, key=lambda bound: bound.epsilon)


def lower_bound(guesses: int, right: int, *, error: float) -> float:
    """Return the largest epsilon that so many right guesses refute.

    Under epsilon-DP they are at most Bin(guesses, e^epsilon / (1 + e^epsilon)) (Theorem 5.2).

    Args:
        guesses: that were made.
        right: of them.
        error: chance that the bound is above the truth.

    Examples:
        >>> round(lower_bound(20_000, 14_621, error=0.05), 2)
        0.97
    """
    chance = chance_at_least(right, guesses, alpha=error)
    return max(0.0, math.log(chance / (1 - chance))) if chance > 0 else 0.0
