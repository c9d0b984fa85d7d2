"""Gates on the size of the noise: what an outsider recovers must be what was declared."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import nbdtrik

from turnstile.assessment.attacks.scale_of_noise import (
    from_negatives,
    negatives_false_alarm,
    negatives_p_value,
    steps_refuted,
)
from turnstile.assessment.gates.measured_power import measured, steps_from, uniforms
from turnstile.assessment.gates.numbers import Judged, Totals, kinds_of, relative_reach
from turnstile.assessment.gates.result import (
    ALPHA,
    ANY_COUNTS,
    POWER,
    GateResult,
    not_applicable,
)
from turnstile.assessment.gates.sums_of_squares import limits
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.noise_sums import integer_pmf, tail
from turnstile.privacy.noise_terms import Term


def below_zero(numbers: Judged, alpha: float = ALPHA) -> GateResult:
    """The numbers below zero of each dense Laplace table of counts have the declared scale.

    They are geometric with ratio e^(-1/b) whatever the raw counts are, so the test is exact
    (`from_negatives`). Each day is tested, and each kind of draw over its days. Centered sums of
    speeds are left out: they are below zero in earnest.
    """
    name = "scale_below_zero"
    tested = [one for one in numbers.dense if _is_tested(one.event)]
    pooled = numbers.pooled(tested)
    known = {label: from_negatives(values) for label, (_, values) in pooled.items()}
    if not any(known.values()):
        return not_applicable(
            name, "no dense Laplace counts with numbers below zero, which say the scale"
        )
    each = alpha / (len(tested) + len(pooled))
    wrong = [label for label, own in pooled.items() if _is_refuted(*own, each)]
    wrong += [one.where for one in tested if _is_refuted(one.event, one.values, each)]
    shown = [
        f"{label}: declared {float(pooled[label][0].scale):.4g}, recovered {estimate.scale:.4g}"
        for label, estimate in known.items()
        if estimate is not None
    ]
    fullest = max(known, key=lambda label: estimate.samples if (estimate := known[label]) else 0)
    chances = [_false_alarm(event, values, each) for event, values in pooled.values()]
    chances += [_false_alarm(one.event, one.values, each) for one in tested]
    return GateResult(
        name,
        not wrong,
        f"not as declared in {', '.join(wrong)}; {'; '.join(shown)}" if wrong else "; ".join(shown),
        sum(chances),
        _scale_found(*pooled[fullest], each),
        reached_by=ANY_COUNTS,
    )


def _is_refuted(event: DrawEvent, values: NDArray[np.int64], alpha: float) -> bool:
    """Return whether the numbers below zero refute the declared scale."""
    return negatives_p_value(values, float(event.scale)) < alpha


def _false_alarm(event: DrawEvent, values: NDArray[np.int64], alpha: float) -> float:
    """Return the chance that as many numbers below zero refute the right scale."""
    return negatives_false_alarm(int((values < 0).sum()), float(event.scale), alpha)


def _is_tested(event: DrawEvent) -> bool:
    """Whether numbers below zero can only be noise, of a distribution with a geometric tail."""
    return event.noise.record.has_geometric_tail and event.statistic != "sum"


def _scale_found(event: DrawEvent, values: NDArray[np.int64], alpha: float) -> str:
    """State how far off a scale is found, from the numbers below zero of one kind of draw."""
    scale, stops = float(event.scale), int((values < 0).sum())
    few, many = steps_refuted(stops, scale, alpha)

    def found(off: float, trials: int) -> NDArray[np.bool_]:
        """Simulate noise so much too small; as many numbers below zero."""
        steps = np.ceil(nbdtrik(uniforms(trials), stops, -math.expm1(-1 / (scale * (1 - off)))))
        return np.asarray((steps < few) | (steps >= many))

    start = relative_reach(stops, alpha=alpha, power=POWER, scatter=4.0)
    words = f"too small, from {stops:,} numbers below zero of {event.label}"
    return measured(steps_from(start, most=0.99), found, lambda off: f"a scale {off:.1%} {words}")


def nested_scale(numbers: Judged, alpha: float = ALPHA) -> GateResult:
    """The noise between two tables of the same raw numbers is as large as declared, and centered.

    The row sums of a finer table and the coarser table describe the same counts, so their
    differences hold noise alone, whatever the counts are: their mean square over the declared
    variance is near 1, over all days and on each, and over all days their sum is near 0.
    Thresholded tables are left out: their sums lack what was suppressed.
    """
    name = "declared_scale"
    if not numbers.totals:
        return not_applicable(name, "no totals with all their parts, which say the scale")
    groups: dict[str, Sequence[Totals]] = {one.name: (one,) for one in numbers.totals}
    if len(groups) > 1:
        groups["all tables"] = numbers.totals
    pairs: defaultdict[str, list[Totals]] = defaultdict(list)
    for one in numbers.totals:
        pairs[one.name.partition(" on ")[0]].append(one)
    each = alpha / (len(groups) + len(pairs))
    found = {where: mean_square(own, each) for where, own in groups.items()}
    wrong = [where for where, (mean, low, high) in found.items() if not low <= mean <= high]
    wrong += [f"{where} (not centered)" for where, own in pairs.items() if _chance(own) < each]
    mean, low, high = list(found.values())[-1]
    statement = (
        f"recovered over declared variance {mean:.3f}, accepted from {low:.3f} to {high:.3f}"
    )
    if wrong:
        statement += f"; not as declared in {', '.join(wrong[-3:])}"
    return GateResult(
        name,
        not wrong,
        statement,
        alpha,
        _noise_found(numbers.totals, each),
        reached_by=ANY_COUNTS,
    )


def _noise_found(totals: Sequence[Totals], alpha: float) -> str:
    """State how far off the noise of all tables together is found."""
    kinds = kinds_of(totals)
    low, high = limits(kinds, alpha)
    size = sum(number for number, _ in kinds)

    def found(off: float, trials: int) -> NDArray[np.bool_]:
        """Simulate differences of noise so much too small, and so much too large."""
        squares = np.zeros(trials)
        for number, terms in kinds:
            values, chances = integer_pmf(terms)
            own = values.astype(np.float64) ** 2
            drawn = np.searchsorted(np.cumsum(chances), uniforms(trials, number))
            squares += own[drawn.clip(0, own.size - 1)].sum(axis=1) / float(own @ chances)
        return np.asarray(((1 - off) ** 2 * squares < low) & ((1 + off) ** 2 * squares > high))

    scatter = float(np.mean([one.variance_of_square for one in totals]))
    start = relative_reach(size, alpha=alpha, power=POWER, scatter=scatter)
    words = f"too small or too large in all tables together, from {size:,} differences"
    return measured(
        steps_from(start, most=0.99), found, lambda off: f"noise {off:.1%} {words}", numbers=size
    )


def _chance(days: Sequence[Totals]) -> float:
    """Return the chance of differences whose sum is as far from 0."""
    times = Counter[Term]()
    for number, terms in (kind for one in days for kind in one.kinds):
        for term in terms:
            times[replace(term, times=1)] += number * term.times
    distance = abs(sum(one.sum_of_differences for one in days))
    return tail([replace(term, times=number) for term, number in times.items()], distance - 1)


def mean_square(chosen: Sequence[Totals], alpha: float) -> tuple[float, float, float]:
    """Return the mean square of standardized differences, and between which limits it may be.

    Args:
        chosen: differences that are looked at together.
        alpha: chance that noise as declared leaves the limits.
    """
    low, high = limits(kinds_of(chosen), alpha)
    squares = np.concatenate([one.residuals for one in chosen]) ** 2
    return float(squares.mean()), low / squares.size, high / squares.size
