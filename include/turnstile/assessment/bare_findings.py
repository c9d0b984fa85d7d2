"""What a bare table of counts gives away: the findings of `turnstile assess` on a CSV file."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from turnstile.assessment.attacks.cut import is_mark
from turnstile.assessment.attacks.noise_sums import NoiseLaw, Term, half_width, tail
from turnstile.assessment.attacks.rows import RowBalance
from turnstile.assessment.attacks.scale_of_noise import (
    ScaleEstimate,
    from_negatives,
    from_pairs,
    from_residuals,
)
from turnstile.assessment.bare_cuts import SCALES_SHOWN, cuts, presence
from turnstile.assessment.bare_table import DIMENSIONS, BareTable, Cell
from turnstile.assessment.findings import Finding
from turnstile.assessment.groups import Residuals, point_to_point, residuals
from turnstile.assessment.kinds import EVERY, by_kind, spanned, whole

_FLOAT_BITS = 53
_NEGATIVES_LEAST = 30
_GROUPS_LEAST = 10
_NEARLY_ALL = 0.95
_ALPHA = 0.05
_BELOW_ONE = 0.5  # a raw count of 1 plus noise, below one half, lies on the grid of 2^-53
ONE_TABLE = (
    "one table alone does not identify the scale of the noise: every published count is an unknown "
    "raw count plus noise, and any smooth raw histogram fits any scale; give on and off counts of "
    "a point-to-point service, or totals beside their parts"
)


def assess_bare(table: BareTable) -> tuple[Finding, ...]:
    """Return everything that the attacks find in a table, in a fixed order."""
    table = table.without(is_mark(whole(table)))
    scales = _scales(table)
    found_cuts = cuts(table)
    found = [*found_cuts, *scales]
    if not scales:
        found.append(Finding("scale", False, ONE_TABLE, {"identified": False}))
    found += presence(found_cuts, [finding.figures["scale"] for finding in scales])
    found += [
        finding
        for finding in (
            _rows(table),
            _derived(table),
            _differencing(table, scales),
            _repeated(table),
            _fractions(table),
            *_companions(table),
        )
        if finding is not None
    ]
    return tuple(found)


def _scales(table: BareTable) -> list[Finding]:
    """Return the scale from every source that the table offers."""
    counts = whole(table)
    is_dense = int((counts < 0).sum()) >= _NEGATIVES_LEAST
    law = NoiseLaw.DISCRETE_LAPLACE if is_dense else NoiseLaw.ROUNDED_LAPLACE
    found = [*_from_services(table, law), *_from_totals(table, law)]
    for name, own in by_kind(table).items():
        below = int((counts[own] < 0).sum())
        estimate = from_negatives(counts[own])
        if estimate is None or below < _NEGATIVES_LEAST or name.startswith(EVERY):
            continue
        source = f"{below} counts below zero of {name}, as discrete Laplace noise on every cell"
        found.append(_scale_finding("negatives", source, estimate))
    return found


def _from_services(table: BareTable, law: NoiseLaw) -> list[Finding]:
    """Return the scale from both ends of point-to-point services."""
    services = point_to_point(table)
    if not services:
        return []
    pairs = np.concatenate([service.differences for service in services])
    names = ", ".join(f"{s.start} to {s.end} ({s.lag} slots later)" for s in services[:4])
    source = f"{pairs.size} pairs of on and off counts of {len(services)} services ({names})"
    return [_scale_finding("pairs", source, from_pairs(pairs, law=law))]


def _from_totals(table: BareTable, law: NoiseLaw) -> list[Finding]:
    """Return the scale from totals with all their parts."""
    found = []
    for dimension in ("loc", "time"):
        groups = residuals(table, dimension)
        own = None if groups is None else _noise_alone(groups)
        if own is None:
            continue
        for ratio, words in ((1.0, "equal scales"), (2.0, "if the totals' scale is twice this")):
            estimate = from_residuals(*own, law=law, total_over_part=ratio)
            source = f"{own[0].size} totals with all their parts (over {dimension}), {words}"
            name = "totals" if ratio == 1 else "totals_of_twice_the_scale"
            found.append(_scale_finding(name, source, estimate))
    return found


def _noise_alone(groups: Residuals) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Return the residuals that hold noise alone; None if too few, or if no noise was added."""
    own = groups.is_complete
    values = np.rint(groups.values[own]).astype(np.int64)
    if values.size < _GROUPS_LEAST or not values.any():
        return None
    return values, groups.parts[own] + 1


def _scale_finding(source: str, words: str, estimate: ScaleEstimate) -> Finding:
    """Return a recovered scale as a finding; knowing it is no flaw, hiding it protects nobody."""
    return Finding(
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


def _rows(table: BareTable) -> Finding:
    """Compare published rows with the domain that the table's own labels span."""
    cells = set(table.cells)
    balance = RowBalance(spanned(cells), len(cells))
    return Finding(
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


def _derived(table: BareTable) -> Finding | None:
    """Say that totals are sums of published parts, which loses what was cut from the parts."""
    for dimension in ("loc", "time"):
        groups = residuals(table, dimension)
        if groups is None or groups.values.size < _GROUPS_LEAST:
            continue
        if float(np.mean(groups.values == 0)) > _NEARLY_ALL and not groups.is_complete.all():
            return Finding(
                "derived_from_thresholded",
                True,
                f"totals over {dimension} are the sums of the published parts, and parts were cut "
                "off: every total lacks what was suppressed (a bias that grows with the number of "
                "small cells)",
                {
                    "dimension": dimension,
                    "groups": int(groups.values.size),
                    "incomplete_groups": int((~groups.is_complete).sum()),
                },
            )
    return None


def _differencing(table: BareTable, scales: list[Finding]) -> Finding | None:
    """Estimate what is hidden in totals whose parts are not all published."""
    scale = max(
        (f.figures["scale"] for f in scales if f.figures["source"] in ("pairs", "totals")),
        default=None,
    )
    for dimension in ("loc", "time"):
        groups = residuals(table, dimension)
        if groups is None:
            continue
        own = ~groups.is_complete & (np.rint(groups.values) != 0)
        if own.sum() < 1:
            continue
        terms = int(np.median(groups.parts[own])) + 1
        shown = scale if scale is not None else SCALES_SHOWN[1]
        noise = [Term(NoiseLaw.ROUNDED_LAPLACE, shown, terms)]
        widths = {f"{level:g}": half_width(noise, level) for level in (0.9, 0.95, 0.99)}
        beyond = np.array(
            [
                tail([Term(NoiseLaw.ROUNDED_LAPLACE, shown, int(n) + 1)], abs(v)) < _ALPHA
                for v, n in zip(groups.values[own], groups.parts[own], strict=True)
            ]
        )
        return Finding(
            "differencing",
            True,
            f"{int(own.sum())} totals over {dimension} have hidden parts; total minus parts tells "
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
                "largest_hidden": float(groups.values[own].max()),
            },
        )
    return None


def _repeated(table: BareTable) -> Finding | None:
    """Find cells that were published more than once with different counts."""
    seen: defaultdict[Cell, list[float]] = defaultdict(list)
    for cell, count in zip(table.cells, table.counts.tolist(), strict=True):
        seen[cell].append(count)
    several = [counts for counts in seen.values() if len(set(counts)) > 1]
    if not several:
        return None
    draws = max(len(counts) for counts in several)
    spread = float(np.sqrt(np.mean([np.var(counts, ddof=1) for counts in several])))
    return Finding(
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


def _fractions(table: BareTable) -> Finding | None:
    """Find counts that are no whole numbers, and those whose last bits rule out a raw count."""
    if table.is_whole:
        return None
    scaled = np.ldexp(table.counts, _FLOAT_BITS)
    off_grid = (np.abs(table.counts) < _BELOW_ONE) & (scaled != np.rint(scaled))
    broken = int((table.counts != np.rint(table.counts)).sum())
    return Finding(
        "floating_point",
        True,
        f"{broken} counts are not whole: floating-point noise; {int(off_grid.sum())} of them lie "
        "off the grid of 2^-53, which only a raw count of 0 can give (Mironov 2012)",
        {
            "not_whole": broken,
            "surely_zero": int(off_grid.sum()),
        },
    )


def _companions(table: BareTable) -> list[Finding]:
    """Find columns that hold the same numbers without, or with other, noise."""
    found = []
    for name, values in table.companions:
        both = ~np.isnan(values)
        if name in DIMENSIONS or both.sum() < _GROUPS_LEAST:
            continue
        noise = (table.counts - values)[both]
        level = float(np.std(table.counts[both]))
        if not noise.any() or level == 0 or float(np.std(noise)) > 0.3 * level:
            continue
        deviation = float(np.sqrt(np.mean(noise**2)))
        found.append(
            Finding(
                "true_values",
                True,
                f"column {name} holds nearly the same numbers as count (they differ by "
                f"{deviation:.2f}): a true value beside a noisy one undoes the noise entirely",
                {"column": name, "noise_standard_deviation": round(deviation, 4)},
            )
        )
    return found
