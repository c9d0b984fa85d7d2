"""The size of the noise: what an outsider recovers from totals must be what was declared."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from turnstile.assessment.gates.numbers import Judged, Totals, kinds_of, relative_reach
from turnstile.assessment.gates.result import (
    ALPHA,
    POWER,
    GateResult,
    not_applicable,
)
from turnstile.assessment.gates.stated_power import first_found, steps_from
from turnstile.assessment.gates.sums_of_squares import chance_between, limits
from turnstile.privacy.noise import Term, tail


def nested_scale(numbers: Judged, alpha: float = ALPHA) -> GateResult:
    """The noise between two tables of the same raw numbers is as large as declared, and centered.

    The row sums of a finer table and the coarser table describe the same counts, so their
    differences hold noise alone, whatever the counts are: their mean square over the declared
    variance is near 1, over all days and on each, and over all days their sum is near 0.
    All tables together are pairs that have no table in common, so that their differences are
    independent. Thresholded tables are left out: their sums lack what was suppressed.
    """
    name = "declared_scale"
    if not numbers.totals:
        return not_applicable(name, "no totals with all their parts, which say the scale")
    pairs = by_pair(numbers.totals)
    groups: dict[str, Sequence[Totals]] = {nested.name: (nested,) for nested in numbers.totals}
    if len(groups) > 1:
        groups |= pairs | {"all tables": _apart(pairs)}
    each = alpha / (len(groups) + len(pairs))
    mean_squares = {where: mean_square(group, each) for where, group in groups.items()}
    wrong = [where for where, (mean, low, high) in mean_squares.items() if not low <= mean <= high]
    wrong += [f"{where} (not centered)" for where, days in pairs.items() if _chance(days) < each]
    mean, low, high = list(mean_squares.values())[-1]
    statement = (
        f"recovered over declared variance {mean:.3f}, accepted from {low:.3f} to {high:.3f}"
    )
    if wrong:
        statement += f"; not as declared in {', '.join(wrong[-3:])}"
    # The groups share differences, so that alpha, their parts added up, is a bound.
    return GateResult(name, not wrong, statement, alpha, _noise_found([*groups.values()][-1], each))


def by_pair(totals: Sequence[Totals]) -> dict[str, list[Totals]]:
    """Return the totals of each two tables, on all days."""
    totalseses: defaultdict[str, list[Totals]] = defaultdict(list)
    for total in totals:
        totalseses[total.name.partition(" on ")[0]].append(total)
    return dict(totalseses)


def _apart(pairs: Mapping[str, Sequence[Totals]]) -> list[Totals]:
    """Return the totals of pairs of tables that have none in common, those of many first."""
    taken, totalses = set[str](), list[Totals]()
    for pair in sorted(pairs, key=lambda pair: -pairs[pair][0].residuals.size):
        if not taken & set(pair.split(" and ")):
            taken.update(pair.split(" and "))
            totalses += pairs[pair]
    return totalses


def _noise_found(totals: Sequence[Totals], alpha: float) -> str:
    """State how far off the noise of all tables together is found."""
    kinds = kinds_of(totals)
    low, high = limits(kinds, alpha)
    size = sum(number for number, _ in kinds)

    def chance(off: float) -> float:
        """Return how often differences are found, be they so much too small or too large."""
        return chance_between(kinds, high / (1 + off) ** 2, low / (1 - off) ** 2)

    scatter = float(np.mean([total.variance_of_square for total in totals]))
    start = relative_reach(size, alpha=alpha, power=POWER, scatter=scatter)
    words = f"too small or too large in all tables together, from {size:,} differences"
    return first_found(steps_from(start, most=0.99), chance, lambda off: f"noise {off:.1%} {words}")


def _chance(days: Sequence[Totals]) -> float:
    """Return the chance of differences whose sum is as far from 0."""
    times = Counter[Term]()
    for number, terms in (kind for day in days for kind in day.kinds):
        for term in terms:
            times[replace(term, times=1)] += number * term.times
    distance = abs(sum(day.sum_of_differences for day in days))
    return tail([replace(term, times=number) for term, number in times.items()], distance - 1)


def mean_square(chosen: Sequence[Totals], alpha: float) -> tuple[float, float, float]:
    """Return the mean square of standardized differences, and between which limits it may be.

    Args:
        chosen: differences that are looked at together.
        alpha: chance that noise as declared leaves the limits.
    """
    low, high = limits(kinds_of(chosen), alpha)
    squares = np.concatenate([totals.residuals for totals in chosen]) ** 2
    return float(squares.mean()), low / squares.size, high / squares.size
