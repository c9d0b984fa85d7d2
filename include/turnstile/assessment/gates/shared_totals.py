"""Two coarse tables of the same counts have one total: their noise alone decides the difference.

Tap-ons by time and tap-ons by place add up to the same number of tap-ons. The difference of the two
published totals is a sum of many noises, near normal; without noise it is 0. `declared_scale` holds
coarse tables against their parts, whose noises are many times their own: this gate sees what is
missing there.
"""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
from scipy.special import gammainc, gammaincinv

from turnstile.assessment.gates.numbers import Numbers, Totals
from turnstile.assessment.gates.result import ALPHA, POWER, GateResult, not_applicable

_NAME = "shared_totals"


def shared_totals(numbers: Numbers, alpha: float = ALPHA) -> GateResult:
    """The differences of shared totals are not too small, on each day and over all days."""
    by_day: defaultdict[str, list[Totals]] = defaultdict(list)
    for one in numbers.shared:
        by_day[one.name.rpartition(" on ")[2]].append(one)
    if not by_day:
        return not_applicable(_NAME, "no two dense tables are sums of one finer table")
    groups = {**by_day, "all days": list(numbers.shared)}
    each = alpha / len(groups)
    wrong = [where for where, own in groups.items() if _chance_of_less(own) < each]
    size = sum(one.residuals.size for one in numbers.shared)
    found = math.sqrt(gammaincinv(size / 2, each) / gammaincinv(size / 2, POWER))
    return GateResult(
        _NAME,
        not wrong,
        f"totals agree better than their noise allows: {', '.join(wrong[:3])}"
        if wrong
        else f"{size} differences of shared totals are as large as their noise makes them",
        alpha,
        f"coarse tables with {found:.0%} of their noise or less, from {size} totals",
    )


def _chance_of_less(own: list[Totals]) -> float:
    """Return a bound on the chance of differences so small.

    A normal deviate's, times what the sum's density at 0 is higher by (Edgeworth), for each.
    """
    squares = np.concatenate([one.residuals for one in own]) ** 2
    higher = sum(
        one.residuals.size * math.log1p(max(0.0, one.variance_of_square - 2) / 8) for one in own
    )
    return float(gammainc(squares.size / 2, squares.sum() / 2)) * math.exp(higher)
