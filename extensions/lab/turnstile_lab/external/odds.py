"""Odds between explanations of published numbers, and what may be said by them.

An explanation has a weight: its prior probability times the probability of the numbers, averaged
over what it leaves open (Jeffreys 1939). What is said holds with odds of at least `SURE` to 1
against all explanations that are compared; below, it is said that it cannot be told, with the odds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from turnstile_lab.disclosures import Disclosure

SURE = 1000.0
"""Odds to 1 above which something is said."""
CONFIDENCE = 1 - 1 / SURE
_SHOWN_MOST = 1e6

Floats = NDArray[np.float64]


def log_mean(logs: ArrayLike) -> float:
    """Return the logarithm of the mean of numbers of any shape, given by their logarithms."""
    top = float(np.max(logs))
    if not math.isfinite(top):
        return top
    return top + math.log(float(np.exp(np.subtract(logs, top)).mean()))


def log_sum(logs: Floats) -> float:
    """Return the logarithm of the sum of numbers given by theirs; minus infinity of none."""
    return log_mean(logs) + math.log(logs.size) if logs.size else -math.inf


def log_odds(weight: float, others: Iterable[float]) -> float:
    """Return the logarithm of a weight over the sum of others, all given by their logarithms."""
    return weight - log_sum(np.array([*others]))


def is_sure(log_odds_of_it: float) -> bool:
    """Return whether something may be said."""
    return log_odds_of_it >= math.log(SURE)


def spoken(log_odds_of_it: float) -> str:
    """Return odds in words.

    Examples:
        >>> spoken(math.log(1500)), spoken(-math.log(20)), spoken(50.0)
        ('odds of 1,500 to 1', 'odds of 1 to 20', 'odds above 1,000,000 to 1')
    """
    if abs(log_odds_of_it) >= math.log(_SHOWN_MOST):
        return "odds above 1,000,000 to 1" if log_odds_of_it > 0 else "odds below 1 to 1,000,000"
    size = math.exp(abs(log_odds_of_it))
    return f"odds of {size:,.0f} to 1" if log_odds_of_it > 0 else f"odds of 1 to {size:,.0f}"


def told(
    name: str, words: str, weight: float, figures: dict[str, Any], *, is_flaw: bool = False
) -> Disclosure:
    """Return a statement with its odds; where these do not suffice, that it cannot be told.

    Args:
        name: of the finding.
        words: what is said if the odds suffice.
        weight: logarithm of the odds.
        figures: numbers behind it.
        is_flaw: as in a `Disclosure`, where it is said.
    """
    sure = is_sure(weight)
    odds = {"odds": round(math.exp(min(weight, math.log(_SHOWN_MOST))), 6)}
    statement = f"{words} ({spoken(weight)})"
    if not sure:
        statement = f"cannot tell whether this holds: {statement}"
    return Disclosure(name, is_flaw and sure, statement, {"is_told": sure, **odds, **figures})
