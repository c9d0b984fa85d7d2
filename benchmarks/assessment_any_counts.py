"""What a test could tell that knows a fault, but not the raw counts: they may be anything.

Gates never see raw counts. Of cells at fault the published numbers have the distribution q, a
mixture of shifts of the fault's noise by the counts that there are. Without the fault any mixture
of shifts of the declared noise may be, and p is the one of them nearest to q: the product of q/p
over the cells is the best of all bets that no raw counts win without the fault (Grunwald, de Heide
& Koolen 2024), and knows even how often each count occurs. Totals minus parts are noise alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from assessment_faults import Cells, Fault
from assessment_noises import NONE, Floats, Gain, Law, declared
from assessment_releases import Case, Ints

from turnstile.assessment.attacks.mixtures import likeliest_mixture
from turnstile.assessment.attacks.noise_outcomes import Outcomes
from turnstile.assessment.gates.numbers import judged_release, layouts_of, nested_pairs
from turnstile.privacy.events import DrawEvent

_PER_SCALE = 12
_GAP = 1e-4


def whatever_the_counts(fault: Fault, case: Case, size: float) -> Gain | None:
    """Return what the better of two tests tells; None where cells depend on each other."""
    if fault.laws is None:
        return None
    spoiled = list(fault.laws(case, size))
    if fault.is_by_counts:
        spoiled += [
            Cells(cells.draw, ~cells.chosen, declared(case.drawn.events[cells.draw]))
            for cells in spoiled
        ]
    gains = [_of_totals(case, spoiled, is_by_counts=fault.is_by_counts), _of_cells(case, spoiled)]
    return max(gains, key=lambda gain: gain.mean)


def _of_cells(case: Case, spoiled: Sequence[Cells]) -> Gain:
    """Return what the numbers of each kind of draw tell, over its days."""
    pooled: defaultdict[str, list[Cells]] = defaultdict(list)
    for cells in spoiled:
        pooled[case.drawn.events[cells.draw].label].append(cells)
    gain = NONE
    for group in pooled.values():
        event = case.drawn.events[group[0].draw]
        counts = [case.exact[part.draw][part.chosen] for part in group]
        sizes = sum(vector.size for vector in counts)
        gain = gain.plus(_nearest(event, group, counts).times(sizes))
    return gain


def _nearest(event: DrawEvent, cells: Sequence[Cells], counts: Sequence[Ints]) -> Gain:
    """Return what one number tells against the nearest mixture of the declared noise."""
    outcomes = Outcomes(event.noise, float(event.scale), event.statistic == "sum")
    q, number = np.zeros(outcomes.number), sum(vector.size for vector in counts)
    for (_, _, law), raw_counts in zip(cells, counts, strict=True):
        values, times = np.unique(raw_counts, return_counts=True)
        for part in np.array_split(np.arange(values.size), values.size // 500 + 1):
            q += _pieces(outcomes, law, values[part]) @ times[part] / number
    shifts = outcomes.distributions(_PER_SCALE) + 1e-300
    p = shifts @ likeliest_mixture(shifts, q + 1e-15, gap=_GAP).shares
    logs = np.log((q + 1e-300) / p)
    mean = float(q @ logs)
    return Gain(max(0.0, mean), float(q @ logs**2) - mean**2)


def _pieces(outcomes: Outcomes, law: Law, counts: Ints) -> Floats:
    """Return P(piece | raw count) under a law, shape (pieces, counts)."""
    below = np.concatenate(([0.0], np.cumsum(law.chances)))
    places = np.clip(outcomes.edges[:, None] - counts - law.values[0], 0, below.size - 1)
    ends = np.zeros((1, counts.size))
    return np.diff(np.concatenate((ends, below[places], ends + below[-1])), axis=0)


def _of_totals(case: Case, spoiled: Sequence[Cells], *, is_by_counts: bool) -> Gain:
    """Return what totals minus their parts tell, as of normal noise."""
    first: list[Floats] = []
    for event, exact in zip(case.drawn.events, case.exact, strict=True):
        first.append(np.full(exact.size, declared(event).variance))
    second, means = [vector.copy() for vector in first], [np.zeros(vector.size) for vector in first]
    for n, chosen, law in spoiled:
        mean = float(law.values @ law.chances)
        second[n][chosen], means[n][chosen] = law.variance - mean**2, mean
    was, now = (_summed(case, variances, -1) for variances in (first, second))
    if was.size == 0:
        return NONE
    # Of integers no variance is below that of rounding.
    times, off = np.maximum(now / was, 1 / (12 * was**2)), _summed(case, means, 1) ** 2
    if is_by_counts:  # nobody knows which totals hold the cells
        times, off = np.full_like(times, times.mean()), np.full_like(off, off.mean())
    mean = float((times - 1 - np.log(times) + off).sum()) / 2
    return Gain(mean, float(((times - 1) ** 2 / 2 + times * off).sum()))


def _summed(case: Case, of_cells: Sequence[Floats], sign: int) -> Floats:
    """Return the sum over each total's parts and, times a sign, less itself, over its deviation."""
    coarse = {small for small, _ in nested_pairs(layouts_of(case.drawn))}
    pairs = zip(case.drawn.events, of_cells, strict=True)
    signed = [sign * cells if event.table in coarse else cells for event, cells in pairs]
    totals = judged_release(case.with_vectors(signed)).totals  # type: ignore[arg-type]
    return np.concatenate([np.zeros(0), *(total.residuals for total in totals)])
