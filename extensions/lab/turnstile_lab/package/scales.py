"""Scales of noise recovered from a package, beside those that it declares."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from turnstile.assessment.attacks.evidence_of_any_counts import log_evidence
from turnstile.assessment.gates.noise_scale import by_pair, mean_square
from turnstile.assessment.gates.result import ALPHA
from turnstile.privacy.events import DrawEvent
from turnstile.publishing.package_reader import Package
from turnstile_lab.disclosures import Disclosure
from turnstile_lab.package.numbers import judged_package
from turnstile_lab.scale_intervals import interval
from turnstile_lab.scale_of_noise import (
    ScaleEstimate,
    from_negatives,
    negatives_p_value,
)

# A flaw is found where a correct package shows one with a chance of at most 1e-9, as at the gates;
# intervals are shown at 95 % and decide nothing.
ONE_THRESHOLDED_TABLE = (
    "a table whose small numbers were suppressed does not identify the scale of its noise"
)


def scales_of(package: Package) -> list[Disclosure]:
    """Recover scales: of dense Laplace counts exactly, of other dense tables as an interval."""
    disclosures = []
    for label, event in package.draw_by_label.items():
        values = package.values(event)
        tested = event.noise.record.has_geometric_tail and event.threshold is None
        if values is None:
            continue
        if not tested or event.statistic == "sum":
            disclosures.append(_of_any_counts(label, event, values))
            continue
        estimate = from_negatives(values.astype(np.int64))
        if estimate is not None:
            chance = negatives_p_value(values.astype(np.int64), float(event.scale))
            disclosures.append(_scale(label, event, estimate, chance))
    return disclosures


def _of_any_counts(label: str, event: DrawEvent, values: NDArray[np.int64]) -> Disclosure:
    """Return the scales that a table does not contradict, whatever its raw counts are."""
    declared = float(event.scale)
    if event.threshold is not None:
        statement = (
            f"{label}: {event.noise} of scale {declared:.4g} declared; {ONE_THRESHOLDED_TABLE}"
        )
        figures = {"table": label, "identified": False, "declared": declared}
        return Disclosure("scale", False, statement, figures)
    numbers, is_signed = values.astype(np.int64), event.statistic == "sum"
    bounds = interval(numbers, event.noise, declared, is_signed=is_signed)
    evidence = log_evidence(numbers, event.noise, declared, is_signed=is_signed)
    is_refuted = evidence > math.log(1 / ALPHA)
    low = f"at least {bounds.low:.4g}" if bounds.low else ""
    high = f"at most {bounds.high:.4g}" if math.isfinite(bounds.high) else ""
    words = " and ".join(end for end in (low, high) if end) or "anything"
    return Disclosure(
        "scale",
        is_refuted,
        f"{label}: noise scale {words} ({bounds.confidence:.0%}, whatever the raw numbers are, "
        f"from {bounds.samples} cells); declared {declared:.4g}",
        {
            "table": label,
            "identified": bool(bounds.low) and math.isfinite(bounds.high),
            "source": "any_counts",
            "declared": declared,
            "low": round(bounds.low, 4),
            "high": round(bounds.high, 4) if math.isfinite(bounds.high) else None,
            "confidence": bounds.confidence,
            "samples": bounds.samples,
        },
    )


def _scale(label: str, event: DrawEvent, estimate: ScaleEstimate, chance: float) -> Disclosure:
    """Return a recovered scale beside the declared one."""
    declared = float(event.scale)
    return Disclosure(
        "scale",
        chance < ALPHA,
        f"{label}: noise scale {estimate.scale:.3f} recovered from {estimate.samples} numbers "
        f"below zero, between {estimate.low:.3f} and {estimate.high:.3f} "
        f"({estimate.confidence:.0%}); declared {declared:g}",
        {
            "table": label,
            "identified": True,
            "source": "negatives",
            "declared": declared,
            "scale": round(estimate.scale, 5),
            "low": round(estimate.low, 5),
            "high": round(estimate.high, 5),
            "confidence": estimate.confidence,
            "samples": estimate.samples,
            "p_value": chance,
        },
    )


def nested_scales(package: Package) -> list[Disclosure]:
    """Recover the scale from totals with all their parts, as a multiple of what is declared."""
    disclosures = []
    for name, group in by_pair(judged_package(package).totals).items():
        size = sum(totals.residuals.size for totals in group)
        mean, low, high = mean_square(group, ALPHA)
        spread = (max(member.variance_of_square for member in group) / size) ** 0.5
        disclosures.append(
            Disclosure(
                "scale",
                not low <= mean <= high,
                f"{name}: noise {mean**0.5:.3f} times as large as declared ({size} totals with all "
                "their parts)",
                {
                    "table": name,
                    "identified": True,
                    "source": "totals",
                    "over_declared": round(mean**0.5, 4),
                    "low": round(max(0.0, mean - 2 * spread) ** 0.5, 4),
                    "high": round((mean + 2 * spread) ** 0.5, 4),
                    "samples": size,
                },
            )
        )
    return disclosures
