"""What an external table of counts gives away: the findings of `turnstile assess` on a CSV file."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from turnstile.privacy.noise_sums import half_width, tail
from turnstile.privacy.noise_terms import NoiseDistribution, Term
from turnstile_lab.disclosures import Disclosure
from turnstile_lab.external.cell_kinds import rounded, spanned
from turnstile_lab.external.paired_counts import GROUPS_LEAST, residuals
from turnstile_lab.external.scales import scales
from turnstile_lab.external.table import DIMENSIONS, Cell, ExternalTable
from turnstile_lab.external.thresholds import SCALES_SHOWN, presence, thresholds
from turnstile_lab.external.treatments import (
    base_of,
    limit_of,
    rounding,
    suppression,
    zeros,
)
from turnstile_lab.rows import RowBalance
from turnstile_lab.threshold import is_mark

_FLOAT_BITS = 53
_NEARLY_ALL = 0.95
_ALPHA = 0.05
_BELOW_ONE = 0.5  # a raw count of 1 plus noise, below one half, lies on the grid of 2^-53
ONE_TABLE = (
    "one table alone does not identify the scale of the noise: every published count is an unknown "
    "raw count plus noise, and any smooth raw histogram fits any scale; give on and off counts of "
    "a point-to-point service, or totals beside their parts"
)


def assess_external(table: ExternalTable) -> tuple[Disclosure, ...]:
    """Return everything that the attacks find in a table, in a fixed order."""
    marked = is_mark(rounded(table))
    in_marks = _marked(rounded(table)[marked])
    table = table.without(marked)
    base = base_of(rounded(table))
    found_rounding, found_zeros = rounding(base), zeros(table) if base == 1 else None
    treated = [
        *suppression(table),
        *(one for one in (in_marks, found_rounding, found_zeros) if one is not None),
    ]
    found_scales = scales(table) if base == 1 else []
    found_thresholds = [*_of_marks(table), *(thresholds(table) if base == 1 else [])]
    found = [*treated, *found_thresholds, *found_scales]
    if not found_scales:
        found.append(Disclosure("scale", False, ONE_TABLE, {"identified": False}))
    named = [one.figures["scale"] for one in found_scales if one.figures["identified"]]
    found += presence(found_thresholds, sorted(named, reverse=True))  # the most dangerous first
    found += [
        finding
        for finding in (
            _rows(table),
            _derived(table),
            _differencing(table, found_scales) if base == 1 else None,
            _repeated(table) if table.is_labelled else None,
            _fractions(table),
            *_companions(table),
        )
        if finding is not None
    ]
    return tuple(found)


def _marked(values: NDArray[np.int64]) -> Disclosure | None:
    """Return that a number, 0 or below, stands for a suppressed cell; None where none does."""
    if values.size == 0:
        return None
    mark = int(values[0])
    return Disclosure(
        "suppression",
        True,
        f"{values.size:,} cells hold {mark}, far below the smallest other number: a mark of "
        "suppression, so that a cell holds it says that its count was small",
        {"mark": str(mark), "cells": int(values.size), "below": None},
    )


def _of_marks(table: ExternalTable) -> list[Disclosure]:
    """Return the thresholds that marks state, such as `<50`."""
    limits = [(mark, limit_of(mark)) for mark, _ in table.marks]
    return [
        Disclosure(
            "threshold",
            True,
            f"the threshold is stated: counts below {limit:g} hold the mark {mark!r}",
            {
                "table": f"cells marked {mark}",
                "identified": True,
                "cut": limit,
                "low": limit,
                "high": limit,
                "confidence": 1.0,
                "smallest_published": limit,
                "samples": 0,
                "cut_after_rounding_possible": True,
            },
        )
        for mark, limit in limits
        if limit is not None
    ]


def _rows(table: ExternalTable) -> Disclosure:
    """Compare published rows with the domain that the table's own labels span."""
    cells = set(table.cells)
    balance = RowBalance(spanned(cells), len(cells))
    return Disclosure(
        "rows",
        balance.missing > 0,
        f"{balance.statement} (domain as spanned by the table's own labels, "
        f"{table.stray_lines} lines that are no rows)",
        {
            "expected_at_least": balance.expected,
            "published": balance.published,
            "missing": balance.missing,
            "stray_lines": table.stray_lines,
        },
    )


def _derived(table: ExternalTable) -> Disclosure | None:
    """Say that totals are sums of published parts, which loses what was suppressed in the parts."""
    for dimension in ("loc", "time"):
        sums = residuals(table, dimension)
        if sums is None or sums.values.size < GROUPS_LEAST:
            continue
        if float(np.mean(sums.values == 0)) > _NEARLY_ALL and not sums.is_complete.all():
            return Disclosure(
                "derived_from_thresholded",
                True,
                f"totals over {dimension} are the sums of the published parts, and parts were "
                "suppressed: every total lacks them (a bias that grows with the number of "
                "small cells)",
                {
                    "dimension": dimension,
                    "groups": int(sums.values.size),
                    "incomplete_groups": int((~sums.is_complete).sum()),
                },
            )
    return None


def _differencing(table: ExternalTable, found_scales: list[Disclosure]) -> Disclosure | None:
    """Estimate what is hidden in totals whose parts are not all published."""
    scale = max(
        (
            f.figures["scale"]
            for f in found_scales
            if f.figures["identified"] and f.figures["source"] in ("pairs", "totals")
        ),
        default=None,
    )
    for dimension in ("loc", "time"):
        sums = residuals(table, dimension)
        if sums is None:
            continue
        own = ~sums.is_complete & (np.rint(sums.values) != 0)
        if own.sum() < 1:
            continue
        terms = int(np.median(sums.parts[own])) + 1
        shown = scale if scale is not None else SCALES_SHOWN[1]
        noise = [Term(NoiseDistribution.ROUNDED_LAPLACE, shown, terms)]
        widths = {f"{level:g}": half_width(noise, level) for level in (0.9, 0.95, 0.99)}
        beyond = np.array(
            [
                tail([Term(NoiseDistribution.ROUNDED_LAPLACE, shown, int(n) + 1)], abs(v)) < _ALPHA
                for v, n in zip(sums.values[own], sums.parts[own], strict=True)
            ]
        )
        return Disclosure(
            "differencing",
            True,
            f"{int(own.sum())} totals over {dimension} have hidden parts; total minus parts gives "
            f"what is hidden within +-{widths['0.95']:g} (95 %, {terms} noises of scale "
            f"{shown:g}); {int(beyond.sum())} differ from zero by more than that",
            {
                "dimension": dimension,
                "groups": int(own.sum()),
                "beyond_noise": int(beyond.sum()),
                "terms_median": terms,
                "scale": shown,
                "scale_is_assumed": scale is None,
                "half_widths": widths,
                "largest_hidden": float(sums.values[own].max()),
            },
        )
    return None


def _repeated(table: ExternalTable) -> Disclosure | None:
    """Find cells that were published more than once with different counts."""
    seen: defaultdict[Cell, list[float]] = defaultdict(list)
    for cell, count in zip(table.cells, table.counts.tolist(), strict=True):
        seen[cell].append(count)
    several = [counts for counts in seen.values() if len(set(counts)) > 1]
    if not several:
        return None
    draws = max(len(counts) for counts in several)
    spread = float(np.sqrt(np.mean([np.var(counts, ddof=1) for counts in several])))
    return Disclosure(
        "fresh_noise",
        True,
        f"{len(several)} cells were published up to {draws} times with different counts: each "
        f"rerun drew fresh noise (standard deviation {spread:.2f}), and the average of {draws} is "
        f"only {spread / np.sqrt(draws):.2f} off",
        {
            "cells": len(several),
            "draws_max": draws,
            "noise_standard_deviation": round(spread, 4),
            "standard_deviation_of_average": round(spread / float(np.sqrt(draws)), 4),
        },
    )


def _fractions(table: ExternalTable) -> Disclosure | None:
    """Find counts that are no integers, and those whose last bits rule out a raw count."""
    if table.is_integer:
        return None
    scaled = np.ldexp(table.counts, _FLOAT_BITS)
    off_grid = (np.abs(table.counts) < _BELOW_ONE) & (scaled != np.rint(scaled))
    broken = int((table.counts != np.rint(table.counts)).sum())
    return Disclosure(
        "floating_point",
        True,
        f"{broken} counts are no integers: floating-point noise; {int(off_grid.sum())} of them lie "
        "off the grid of 2^-53, which only a raw count of 0 can give (Mironov 2012)",
        {
            "not_whole": broken,
            "surely_zero": int(off_grid.sum()),
        },
    )


def _companions(table: ExternalTable) -> list[Disclosure]:
    """Find columns that hold the same numbers without, or with other, noise."""
    found = []
    for name, values in table.companions:
        both = ~np.isnan(values)
        if name in DIMENSIONS or both.sum() < GROUPS_LEAST:
            continue
        noise = (table.counts - values)[both]
        level = float(np.std(table.counts[both]))
        if not noise.any() or level == 0 or float(np.std(noise)) > 0.3 * level:
            continue
        deviation = float(np.sqrt(np.mean(noise**2)))
        found.append(
            Disclosure(
                "true_values",
                True,
                f"column {name} holds nearly the same numbers as count (they differ by "
                f"{deviation:.2f}): a true value beside a noisy one undoes the noise entirely",
                {"column": name, "noise_standard_deviation": round(deviation, 4)},
            )
        )
    return found
