"""Dense Laplace counts at and below zero are geometric, whatever the raw counts are.

c + Z = -k has a probability proportional to r^k for every k >= 0 and every c >= 0, r = e^(-1/b). So
of n numbers at or below -k, those that are -k are Bin(n, 1 - r), for each k given the numbers so
far: the test is exact. Rounded floating-point Laplace noise has too few zeros there, normal noise
too thin a tail. Centered sums of speeds are left out: they are below zero in earnest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from turnstile.assessment.gates.numbers import Judged
from turnstile.assessment.gates.result import (
    ALPHA,
    ANY_COUNTS,
    GateResult,
    not_applicable,
)
from turnstile.assessment.gates.stated_power import first_found, steps_from
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.tail_probabilities import binomial_at_least, binomial_limit

_NAME = "geometric_below_zero"
_EXPECTED_LEAST = 25.0  # numbers at the last size that is looked at


def geometric_below_zero(numbers: Judged, alpha: float = ALPHA) -> GateResult:
    """Numbers at and below zero thin out as those of the declared noise, table by table and day."""
    judged = {
        label: sizes
        for label, (event, values) in numbers.by_day_and_pooled(numbers.dense).items()
        if (sizes := list(_sizes(event, values)))
    }
    if not judged:
        return not_applicable(
            _NAME, "no dense Laplace counts with numbers at and below zero, which say their kind"
        )
    wrong, chance = [], 0.0
    for label, sizes in judged.items():
        each = alpha / len(judged) / len(sizes)
        limits = [_limits(least, stop, each) for _, least, stop in sizes]
        chance += sum(alarm_chance for _, _, alarm_chance in limits)
        if any(
            not few < equal < many
            for (equal, _, _), (few, many, _) in zip(sizes, limits, strict=True)
        ):
            wrong.append(label)
    label, sizes = max(judged.items(), key=lambda entry: entry[1][0][1])
    _, least, stop = sizes[0]
    few, _, _ = _limits(least, stop, alpha / len(judged) / len(sizes))
    start = (least * stop - few + 2 * math.sqrt(least * stop)) / (least * stop)
    detects = first_found(
        steps_from(start, most=1.0),
        lambda share: 1 - binomial_at_least(few + 1, least, stop * (1 - share)),
        lambda share: (
            f"{share:.0%} fewer zeros than the noise makes among the {least:,} numbers at "
            f"and below zero of {label}"
        ),
    )
    return GateResult(
        _NAME,
        not wrong,
        f"numbers at and below zero are not geometric in {', '.join(wrong[:3])}"
        if wrong
        else f"{len(judged)} dense tables and days of them are geometric at and below zero",
        chance,
        detects,
        reached_by=ANY_COUNTS,
    )


def _sizes(event: DrawEvent, values: NDArray[np.int64]) -> Iterator[tuple[int, int, float]]:
    """Yield how many numbers are -k, how many are at most -k, and 1 - r, for k = 0, 1, ..."""
    if not event.noise.record.has_geometric_tail or event.statistic == "sum":
        return
    below = -values[values <= 0]
    ratio = math.exp(-1 / float(event.scale))
    expected, size = float(below.size), 0
    while expected * (1 - ratio) >= _EXPECTED_LEAST:
        least = int((below >= size).sum())
        if least == 0:
            return
        yield int((below == size).sum()), least, 1 - ratio
        expected, size = expected * ratio, size + 1


@lru_cache(maxsize=4096)
def _limits(trials: int, chance: float, alpha: float) -> tuple[int, int, float]:
    """Return what is too few, what is too many, and the chance of either, at most alpha."""
    many = binomial_limit(alpha / 2, trials, chance)
    others = binomial_limit(alpha / 2, trials, 1 - chance)
    reached = binomial_at_least(many, trials, chance)
    return trials - others, many, reached + binomial_at_least(others, trials, 1 - chance)
