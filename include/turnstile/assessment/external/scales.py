"""The scale of the noise of an external table, from every source that the table itself offers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from turnstile.assessment.attacks.scale_of_noise import (
    ScaleEstimate,
    from_negatives,
    from_pairs,
    from_residuals,
)
from turnstile.assessment.disclosures import Disclosure
from turnstile.assessment.external.cell_kinds import EVERY, by_kind, rounded
from turnstile.assessment.external.paired_counts import (
    GROUPS_LEAST,
    Residuals,
    point_to_point,
    residuals,
)
from turnstile.assessment.external.table import ExternalTable
from turnstile.privacy.noise_terms import NoiseDistribution

_NEGATIVES_LEAST = 30


def scales(table: ExternalTable) -> list[Disclosure]:
    """Return the scale from every source that the table offers."""
    counts = rounded(table)
    is_dense = int((counts < 0).sum()) >= _NEGATIVES_LEAST
    distribution = (
        NoiseDistribution.DISCRETE_LAPLACE if is_dense else NoiseDistribution.ROUNDED_LAPLACE
    )
    found = [*_from_services(table, distribution), *_from_totals(table, distribution)]
    for name, own in by_kind(table).items():
        below = int((counts[own] < 0).sum())
        estimate = from_negatives(counts[own])
        if estimate is None or below < _NEGATIVES_LEAST or name.startswith(EVERY):
            continue
        source = f"{below} counts below zero of {name}, as discrete Laplace noise on every cell"
        found.append(_scale_disclosure("negatives", source, estimate))
    return found


def _from_services(table: ExternalTable, distribution: NoiseDistribution) -> list[Disclosure]:
    """Return the scale from both ends of point-to-point services."""
    services = point_to_point(table)
    if not services:
        return []
    pairs = np.concatenate([service.differences for service in services])
    names = ", ".join(f"{s.start} to {s.end} ({s.lag} slots later)" for s in services[:4])
    source = f"{pairs.size} pairs of on and off counts of {len(services)} services ({names})"
    return [_scale_disclosure("pairs", source, from_pairs(pairs, distribution=distribution))]


def _from_totals(table: ExternalTable, distribution: NoiseDistribution) -> list[Disclosure]:
    """Return the scale from totals with all their parts."""
    found = []
    for dimension in ("loc", "time"):
        groups = residuals(table, dimension)
        own = None if groups is None else _noise_alone(groups)
        if own is None:
            continue
        for ratio, words in ((1.0, "equal scales"), (2.0, "if the totals' scale is twice this")):
            estimate = from_residuals(*own, distribution=distribution, total_over_part=ratio)
            source = f"{own[0].size} totals with all their parts (over {dimension}), {words}"
            name = "totals" if ratio == 1 else "totals_of_twice_the_scale"
            found.append(_scale_disclosure(name, source, estimate))
    return found


def _noise_alone(groups: Residuals) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Return the residuals that hold noise alone; None if too few, or if no noise was added."""
    own = groups.is_complete
    values = np.rint(groups.values[own]).astype(np.int64)
    if values.size < GROUPS_LEAST or not values.any():
        return None
    return values, groups.parts[own] + 1


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
