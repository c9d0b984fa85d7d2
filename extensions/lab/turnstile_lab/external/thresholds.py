"""Where an external table has its threshold, and what a released cell then proves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from turnstile.assessment.attacks.presence import proof_continuous
from turnstile_lab.disclosures import Disclosure
from turnstile_lab.external.cell_kinds import EVERY, by_kind, rounded, spanned
from turnstile_lab.external.table import ExternalTable
from turnstile_lab.threshold import ThresholdEstimate, recover_threshold

_GROUPS = (1, 5, 12)
SCALES_SHOWN = (1.0, 1.4, 2.0)
_PARTED_BY = ("mode", "tap", "date")


def thresholds(table: ExternalTable) -> list[Disclosure]:
    """Return the threshold of each kind of table, or of its parts where they differ."""
    counts = rounded(table)
    found = []
    for name, indices in by_kind(table).items():
        found += [
            _threshold(label, table, counts, own) for label, own in _parted(table, name, indices)
        ]
    return found


def presence(found_thresholds: Sequence[Disclosure], scales: Sequence[float]) -> list[Disclosure]:
    """Return the probability that a released cell proves presence, if zeros were left alone.

    Args:
        found_thresholds: of `thresholds`.
        scales: of the noise, recovered; some are assumed if it is empty.
    """
    return [
        _proof(finding.figures, scales)
        for finding in found_thresholds
        if finding.figures["cut"] is not None and not finding.figures["table"].startswith(EVERY)
    ]


def _parted(table: ExternalTable, name: str, indices: list[int]) -> list[tuple[str, list[int]]]:
    """Return a kind of table as a whole, or in the parts that have different thresholds."""
    counts = rounded(table)
    for dimension in _PARTED_BY:
        parts: defaultdict[str, list[int]] = defaultdict(list)
        for index in indices:
            parts[str(getattr(table.cells[index], dimension))].append(index)
        located = [
            threshold for own in parts.values() if (threshold := _located(counts[own])) is not None
        ]
        apart = any(one.high < other.low for one in located for other in located)
        if apart and name.startswith(EVERY):
            return []  # each mode stands for itself
        if apart:
            return [(f"{name}, {dimension} {label}", own) for label, own in sorted(parts.items())]
    return [(name, indices)]


def _located(counts: NDArray[np.int64]) -> ThresholdEstimate | None:
    """Return a threshold with a lower end, or None."""
    threshold = recover_threshold(counts)
    return threshold if threshold is not None and threshold.is_located else None


def _threshold(
    name: str, table: ExternalTable, counts: NDArray[np.int64], indices: list[int]
) -> Disclosure:
    """Return the threshold of one table."""
    threshold = recover_threshold(counts[indices])
    least = int(counts[indices].min())
    if threshold is None:
        statement = f"{name}: counts down to {least} are published: nothing was suppressed"
        return Disclosure(
            "threshold", False, statement, {"table": name, "cut": None, "identified": False}
        )
    cells = {table.cells[index] for index in indices}
    if len(cells) == spanned(cells) and least > 0:
        statement = (
            f"{name}: no row is missing, so no threshold shows; if there is one, it lies below "
            f"{least + 0.5:g}"
        )
        return Disclosure("threshold", False, statement, _below(name, threshold))
    statement = f"{name}: {threshold.statement}"
    if not threshold.is_located:
        return Disclosure("threshold", False, statement, _below(name, threshold))
    figures = {
        "table": name,
        "identified": True,
        "cut": round(threshold.threshold, 3),
        "low": round(threshold.low, 3),
        "high": round(threshold.high, 3),
        "confidence": threshold.confidence,
        "smallest_published": threshold.smallest,
        "samples": threshold.samples,
        "cut_after_rounding_possible": threshold.allows_integer,
    }
    return Disclosure("threshold", True, statement, figures)


def _below(name: str, threshold: ThresholdEstimate) -> dict[str, Any]:
    """Return an upper bound of a threshold for JSON."""
    return {
        "table": name,
        "identified": False,
        "cut": None,
        "low": 0.0,
        "high": threshold.smallest + 0.5,
        "smallest_published": threshold.smallest,
        "samples": threshold.samples,
    }


def _proof(figures: dict[str, Any], scales: Sequence[float]) -> Disclosure:
    """Return what a released cell of one table proves."""
    threshold = figures["cut"]
    if figures["cut_after_rounding_possible"]:
        threshold = figures["smallest_published"] - 0.5
    chances = {
        f"{scale:g}": {
            str(n): proof_continuous(n, threshold=threshold, scale=scale) for n in _GROUPS
        }
        for scale in scales or SCALES_SHOWN
    }
    scale, first = next(iter(chances.items()))
    words = ", ".join(f"{chance:.2g} for {group}" for group, chance in first.items())
    assumed = "" if scales else " (assumed; this table does not have it)"
    return Disclosure(
        "presence",
        True,
        f"{figures['table']}: if empty cells are left alone, a released cell proves that somebody "
        f"was there; at noise scale {scale}{assumed} the chance is {words} people in an otherwise "
        f"empty cell (1/2 exp(-(t - g)/p) with t = {threshold:g})",
        {
            "table": figures["table"],
            "cut_before_rounding": threshold,
            "scale_is_assumed": not scales,
            "probability_by_scale_and_group": chances,
        },
    )
