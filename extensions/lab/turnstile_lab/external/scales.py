"""The scale of the noise of an external table, from every source that the table itself offers."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from turnstile.assessment.attacks.scale_of_noise import (
    ScaleEstimate,
    from_negatives,
)
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.privacy.noise_sums import integer_pmf
from turnstile.privacy.noise_terms import Distribution, NoiseDistribution, Term
from turnstile_lab.disclosures import Disclosure
from turnstile_lab.external.cell_kinds import EVERY, by_kind, rounded
from turnstile_lab.external.noise_families import Tail, is_named, normal_scale, tail_of
from turnstile_lab.external.paired_counts import (
    GROUPS_LEAST,
    Residuals,
    point_to_point,
    residuals,
)
from turnstile_lab.external.table import ExternalTable
from turnstile_lab.scale_of_pairs import from_pairs, from_residuals

_NEGATIVES_LEAST = 30
_CONFIDENCE = 0.99
_RANKED_LEAST = 60
_MISFIT = 1e-6
_DENSE = {
    Tail.GEOMETRIC: NoiseFamily.DISCRETE_LAPLACE,
    Tail.NORMAL: NoiseFamily.DISCRETE_GAUSSIAN,
}


def scales(table: ExternalTable) -> list[Disclosure]:
    """Return the scale from every source that the table offers."""
    counts = rounded(table)
    is_dense = int((counts < 0).sum()) >= _NEGATIVES_LEAST
    tail = tail_of(counts) if is_dense else Tail.OTHER
    distribution = _DENSE.get(tail, NoiseDistribution.ROUNDED_LAPLACE)
    found = [*_from_services(table, distribution), *_from_totals(table, distribution)]
    for name, own in by_kind(table).items():
        if int((counts[own] < 0).sum()) >= _NEGATIVES_LEAST and not name.startswith(EVERY):
            found.append(_from_below_zero(name, counts[own]))
    return found


def _from_below_zero(name: str, counts: NDArray[np.int64]) -> Disclosure:
    """Return the scale of dense noise from the numbers below zero, if their family is known."""
    tail, below = tail_of(counts), int((counts < 0).sum())
    estimate = from_negatives(counts, _CONFIDENCE)
    if tail is Tail.GEOMETRIC and estimate is not None:
        source = f"{below} counts below zero of {name}, as discrete Laplace noise on every cell"
        return _scale_disclosure("negatives", source, estimate)
    words = f"{below} counts below zero of {name} fall off {tail}"
    found = normal_scale(counts) if tail is Tail.NORMAL else None
    if found is not None and is_named(found):
        middle = math.sqrt(found.low * found.high)
        own = ScaleEstimate(middle, found.low, found.high, found.confidence, found.samples)
        return _scale_disclosure("any_counts", f"{words} on every cell", own)
    within = "" if found is None else f", between {found.low:.3g} and {found.high:.3g} (95 %)"
    figures = {"identified": False, "source": "negatives", "tail": tail.name.lower()}
    return Disclosure("scale", False, f"{words}: cannot recover the scale exactly{within}", figures)


def _from_services(table: ExternalTable, distribution: Distribution) -> list[Disclosure]:
    """Return the scale from both ends of point-to-point services."""
    services = point_to_point(table)
    if not services:
        return []
    pairs = np.concatenate([service.differences for service in services])
    names = ", ".join(f"{s.start} to {s.end} ({s.lag} slots later)" for s in services[:4])
    source = f"{pairs.size} pairs of on and off counts of {len(services)} services ({names})"
    return [_scale_disclosure("pairs", source, from_pairs(pairs, distribution=distribution))]


def _from_totals(table: ExternalTable, distribution: Distribution) -> list[Disclosure]:
    """Return the scale from totals with all their parts."""
    found = []
    for dimension in ("loc", "time"):
        sums = residuals(table, dimension)
        own = None if sums is None else _noise_alone(sums)
        if own is None:
            continue
        for ratio, words in ((1.0, "equal scales"), (2.0, "if the totals' scale is twice this")):
            estimate = from_residuals(*own, distribution=distribution, total_over_part=ratio)
            source = f"{own[0].size} totals with all their parts (over {dimension}), {words}"
            name = "totals" if ratio == 1 else "totals_of_twice_the_scale"
            if _misfits(*own, estimate, distribution, ratio):
                figures = {"identified": False, "source": name}
                why = f"cannot recover the scale from {source}: they do not fit {distribution}"
                found.append(Disclosure("scale", False, why, figures))
            else:
                found.append(_scale_disclosure(name, source, estimate))
    return found


def _misfits(
    values: NDArray[np.int64],
    terms: NDArray[np.int64],
    estimate: ScaleEstimate,
    distribution: Distribution,
    ratio: float,
) -> bool:
    """Return whether differences do not look like the noise that fits them best.

    Each is held against its own distribution by its rank, at the middle of its step; ranks of noise
    that fits are even over ten bins.
    """
    from scipy.stats import chisquare

    ranks = np.zeros(values.size)
    for number in np.unique(terms):
        parts = Term(distribution, estimate.scale, int(number) - 1)
        sum_term = Term(distribution, estimate.scale * ratio)
        numbers, masses = integer_pmf([parts, sum_term])
        below = np.cumsum(masses) - masses / 2
        own = terms == number
        ranks[own] = np.interp(values[own], numbers, below)
    bins = np.bincount(np.minimum((10 * ranks).astype(np.int64), 9), minlength=10)
    if values.size < _RANKED_LEAST or estimate.scale < 1:  # too few, or steps too coarse for ranks
        return False
    return float(chisquare(bins).pvalue) < _MISFIT


def _noise_alone(sums: Residuals) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Return the residuals that hold noise alone; None if too few, or if no noise was added."""
    own = sums.is_complete
    values = np.rint(sums.values[own]).astype(np.int64)
    if values.size < GROUPS_LEAST or not values.any():
        return None
    return values, sums.parts[own] + 1


def _scale_disclosure(source: str, words: str, estimate: ScaleEstimate) -> Disclosure:
    """Return a recovered scale as a finding; knowing it is no flaw, hiding it protects nobody."""
    return Disclosure(
        "scale",
        False,
        f"noise scale {estimate.scale:.2f}, between {estimate.low:.2f} and {estimate.high:.2f} "
        f"({estimate.confidence:.0%}), from {words}",
        {
            "identified": True,
            "source": source,
            "scale": round(estimate.scale, 4),
            "low": round(estimate.low, 4),
            "high": round(estimate.high, 4),
            "confidence": estimate.confidence,
            "samples": estimate.samples,
        },
    )
