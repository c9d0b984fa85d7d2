"""What a gate finds at the size of a release: how often, worked out, or not said at all.

Given the size of a fault, what the gate looks at has a distribution that is known: a binomial, a
sum of squares (`sums_of_squares`), a random walk. So the chance of passing the limit is a number,
the same each week, and no draws are paid for (`benchmarks/assessment.py powers` simulates it).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
from scipy.special import j0, j1

from turnstile.assessment.gates.result import POWER

NOTHING = "nothing: no fault of a size that was tried is found often enough"
_SURE = 0.9999  # what is found more often is said to be found so often
_STEPS_LEAST = 20  # of a walk whose integral has nothing beyond where it is cut
_LAST = 12.0  # times 1 / sqrt(steps): J_0(t)^steps is below 1e-8 beyond
_POINTS = 2**14


def first_found(
    sizes: Iterable[float], chance: Callable[[float], float], words: Callable[[float], str]
) -> str:
    """Return the first fault that is found with 99 %, and how often it is.

    Args:
        sizes: of the fault, smallest first.
        chance: size -> with which it is found.
        words: name a fault of a size.
    """
    for size in sizes:
        share = chance(size)
        if share >= POWER:
            return f"{words(size)} ({min(share, _SURE):.2%} of the time)"
    return NOTHING


def steps_from(size: float, *, most: float = math.inf) -> list[float]:
    """Return sizes of a fault from one on, each a tenth larger, up to twice and a half as large."""
    return [size * 1.1**n for n in range(-1, 10) if size * 1.1**n <= most]


def walk_reaches(length: float, start: int, steps: int) -> float:
    """Return the chance that a walk ends so far from 0, each step of length 1 in any direction.

    By Kluyver (1906): 1 - length * integral of J_1(length t) J_0(start t) J_0(t)^steps over t > 0.
    Of few steps it is what is sure.

    Args:
        length: from 0 at the end.
        start: from 0 before the first step.
        steps: of the walk.
    """
    if steps < _STEPS_LEAST:
        return float(start - steps >= length)
    last = _LAST / math.sqrt(steps)
    t = (np.arange(_POINTS) + 0.5) * (last / _POINTS)
    density = j1(length * t) * j0(start * t) * j0(t) ** steps
    return float(1 - length * density.sum() * last / _POINTS)
