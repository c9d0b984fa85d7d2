"""What a gate finds at the size of a release: simulated, with its error, or not said at all.

A fault of one size after the other is put into the statistic that the gate looks at, a thousand
times each, until it is found as often as is asked for.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from turnstile.assessment.gates.result import POWER

TRIALS = 1_000
AT_ONCE = 1_000_000  # numbers that a simulation draws
_LEAST = 100
_DEVIATES = 2.58  # of an interval at 99 %
NOTHING = "nothing: no fault of a size that was simulated is found often enough"
Floats = NDArray[np.float64]


def measured(
    sizes: Iterable[float],
    detected: Callable[[float, int], NDArray[np.bool_]],
    words: Callable[[float], str],
    *,
    numbers: int = 1,
) -> str:
    """Return the first fault that simulation finds with 99 %, how often, and the error of that.

    Args:
        sizes: of the fault, smallest first.
        detected: size, trials -> in which of them it is found.
        words: name a fault of a size.
        numbers: that a trial draws.
    """
    trials = min(TRIALS, max(_LEAST, AT_ONCE // max(1, numbers)))
    for size in sizes:
        if float(np.mean(detected(size, trials))) >= POWER:
            share = float(np.mean(detected(size, trials)))  # that which chose the size is too good
            error = _DEVIATES * math.sqrt(max(share * (1 - share), 1 / trials) / trials)
            return f"{words(size)} ({share:.1%} +- {error:.1%} of {trials:,} simulated)"
    return NOTHING


def steps_from(size: float, *, most: float = math.inf) -> list[float]:
    """Return sizes of a fault from one on, each a tenth larger, up to twice and a half as large."""
    return [size * 1.1**n for n in range(-1, 10) if size * 1.1**n <= most]


def uniforms(*shape: int) -> Floats:
    """Return fair numbers strictly between 0 and 1, from the operating system."""
    raw = np.frombuffer(secrets.token_bytes(4 * math.prod(shape)), dtype="<u4")
    return ((raw + 0.5) / 2**32).reshape(shape)
