"""Where a bare table was cut, and what a released cell then proves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from turnstile.assessment.attacks.cut import CutEstimate, recover_cut
from turnstile.assessment.attacks.presence import proof_continuous
from turnstile.assessment.external.cell_kinds import EVERY, by_kind, spanned, whole
from turnstile.assessment.external.table import BareTable
from turnstile.assessment.findings import Finding

_GROUPS = (1, 5, 12)
SCALES_SHOWN = (1.0, 1.4, 2.0)
_PARTED_BY = ("mode", "tap", "date")


def cuts(table: BareTable) -> list[Finding]:
    """Return the cut of each kind of table; of its parts, where they were cut differently."""
    counts = whole(table)
    found = []
    for name, places in by_kind(table).items():
        found += [_cut(label, table, counts, own) for label, own in _parted(table, name, places)]
    return found


def presence(found_cuts: Sequence[Finding], scales: Sequence[float]) -> list[Finding]:
    """Return the probability that a released cell proves presence, if zeros were left alone.

    Args:
        found_cuts: of `cuts`.
        scales: of the noise, recovered; some are assumed if it is empty.
    """
    return [
        _proof(finding.figures, scales)
        for finding in found_cuts
        if finding.figures["cut"] is not None and not finding.figures["table"].startswith(EVERY)
    ]


def _parted(table: BareTable, name: str, places: list[int]) -> list[tuple[str, list[int]]]:
    """Return a kind of table as a whole, or in the parts that were cut at different places."""
    counts = whole(table)
    for dimension in _PARTED_BY:
        parts: defaultdict[str, list[int]] = defaultdict(list)
        for place in places:
            parts[str(getattr(table.cells[place], dimension))].append(place)
        located = [cut for own in parts.values() if (cut := _located(counts[own])) is not None]
        apart = any(one.high < other.low for one in located for other in located)
        if apart and name.startswith(EVERY):
            return []  # each mode stands for itself
        if apart:
            return [(f"{name}, {dimension} {label}", own) for label, own in sorted(parts.items())]
    return [(name, places)]


def _located(counts: NDArray[np.int64]) -> CutEstimate | None:
    """Return a cut with a lower end, or None."""
    cut = recover_cut(counts)
    return cut if cut is not None and cut.is_located else None


def _cut(name: str, table: BareTable, counts: NDArray[np.int64], places: list[int]) -> Finding:
    """Return the cut of one table."""
    cut = recover_cut(counts[places])
    least = int(counts[places].min())
    if cut is None:
        statement = f"{name}: counts down to {least} are published: nothing was cut off"
        return Finding("cut", False, statement, {"table": name, "cut": None, "identified": False})
    cells = {table.cells[place] for place in places}
    if len(cells) == spanned(cells) and least > 0:
        statement = (
            f"{name}: no row is missing, so no cut shows; if there is one, it lies below "
            f"{least + 0.5:g}"
        )
        return Finding("cut", False, statement, _below(name, cut))
    statement = f"{name}: {cut.statement}"
    if not cut.is_located:
        return Finding("cut", False, statement, _below(name, cut))
    figures = {
        "table": name,
        "identified": True,
        "cut": round(cut.cut, 3),
        "low": round(cut.low, 3),
        "high": round(cut.high, 3),
        "confidence": cut.confidence,
        "smallest_published": cut.smallest,
        "samples": cut.samples,
        "cut_after_rounding_possible": cut.allows_whole,
    }
    return Finding("cut", True, statement, figures)


def _below(name: str, cut: CutEstimate) -> dict[str, Any]:
    """Return an upper bound of a cut for JSON."""
    return {
        "table": name,
        "identified": False,
        "cut": None,
        "low": 0.0,
        "high": cut.smallest + 0.5,
        "smallest_published": cut.smallest,
        "samples": cut.samples,
    }


def _proof(figures: dict[str, Any], scales: Sequence[float]) -> Finding:
    """Return what a released cell of one table proves."""
    cut = figures["cut"]
    if figures["cut_after_rounding_possible"]:
        cut = figures["smallest_published"] - 0.5
    chances = {
        f"{scale:g}": {str(n): proof_continuous(n, cut=cut, scale=scale) for n in _GROUPS}
        for scale in scales or SCALES_SHOWN
    }
    scale, first = next(iter(chances.items()))
    words = ", ".join(f"{chance:.2g} for {group}" for group, chance in first.items())
    assumed = "" if scales else " (assumed; this table does not tell it)"
    return Finding(
        "presence",
        True,
        f"{figures['table']}: if empty cells are left alone, a released cell proves that somebody "
        f"was there; at noise scale {scale}{assumed} the chance is {words} people in an otherwise "
        f"empty cell (1/2 exp(-(t - g)/p) with t = {cut:g})",
        {
            "table": figures["table"],
            "cut_before_rounding": cut,
            "scale_is_assumed": not scales,
            "probability_by_scale_and_group": chances,
        },
    )
