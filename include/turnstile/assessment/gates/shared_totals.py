"""Two coarse tables of the same counts have one total: their noise alone decides the difference.

Tap-ons by time and tap-ons by place add up to the same number of tap-ons. The difference of the two
published totals is a sum of many noises, whose distribution is known whatever the raw counts are;
without noise it is 0. `declared_scale` holds coarse tables against their parts, whose noises are
many times their own: this gate sees what is missing there.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from scipy.special import gammaincinv

from turnstile.assessment.gates.numbers import Judged, Totals, kinds_of
from turnstile.assessment.gates.result import (
    ALPHA,
    ANY_COUNTS,
    POWER,
    GateResult,
    not_applicable,
)
from turnstile.assessment.gates.sums_of_squares import least

_NAME = "shared_totals"


def shared_totals(numbers: Judged, alpha: float = ALPHA) -> GateResult:
    """The differences of shared totals are not too small, on each day and over all days."""
    by_day: defaultdict[str, list[Totals]] = defaultdict(list)
    for one in numbers.shared:
        by_day[one.name.rpartition(" on ")[2]].append(one)
    if not by_day:
        return not_applicable(_NAME, "no two dense tables are sums of one finer table")
    groups = {**by_day, "all days": list(numbers.shared)} if len(by_day) > 1 else dict(by_day)
    limits = {where: least(kinds_of(own), alpha / len(groups)) for where, own in groups.items()}
    wrong = [where for where, own in groups.items() if _sum_of_squares(own) <= limits[where][0]]
    size = sum(one.residuals.size for one in numbers.shared)
    return GateResult(
        _NAME,
        not wrong,
        f"totals agree better than their noise allows: {', '.join(wrong[:3])}"
        if wrong
        else f"{size} differences of shared totals are as large as their noise makes them",
        sum(chance for _, chance in limits.values()),
        _detects(size, list(limits.values())[-1][0]),
        reached_by=ANY_COUNTS,
    )


def _sum_of_squares(own: Sequence[Totals]) -> float:
    """Return the sum of all squared differences over their variances."""
    return sum(float((one.residuals**2).sum()) for one in own)


def _detects(size: int, limit: float) -> str:
    """State how little noise is found in all differences together."""
    if limit < 0:
        return f"nothing: {size} totals are too few"
    share = math.sqrt(limit / (2 * gammaincinv(size / 2, POWER)))
    return f"coarse tables with {share:.0%} of their noise or less, from {size} totals"
