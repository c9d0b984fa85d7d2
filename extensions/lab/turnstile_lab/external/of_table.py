"""What an external table of counts gives away: the findings of `turnstile assess` on a CSV file.

Facts that can be read off are said as they are. What is inferred is a comparison of explanations
(`odds`): it is said with its odds, or that it cannot be told. Each statement names its claim, so
that made tables can hold it against what was done to them (`benchmarks/made_tables.py`).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from turnstile.privacy.noise import NoiseDistribution, Term, half_width, tail
from turnstile_lab.disclosures import Disclosure
from turnstile_lab.external.below_zero import below_zero
from turnstile_lab.external.cell_kinds import by_kind, spanned
from turnstile_lab.external.differences import noise_of_differences
from turnstile_lab.external.ends import mark_below, piles
from turnstile_lab.external.grids import Grid, described, grid_of
from turnstile_lab.external.marks import marks
from turnstile_lab.external.odds import told
from turnstile_lab.external.paired_counts import GROUPS_LEAST, Residuals, residuals
from turnstile_lab.external.small_cells import SCALES_SHOWN, Part, presence, small_cells
from turnstile_lab.external.table import DIMENSIONS, ExternalTable
from turnstile_lab.rows import RowBalance

_NEARLY_ALL = 0.95
_ALPHA = 0.05
ONE_TABLE = (
    "one table alone does not identify the scale of the noise, or whether there is any: every "
    "published count is an unknown raw count plus noise, and any smooth raw histogram fits any "
    "scale; give on and off counts of a point-to-point service, or totals beside their parts"
)
NEVER_TOLD = (
    "cannot tell from one table, whatever it holds: whether records or cells were swapped, small "
    "groups merged, rows withheld at random, or numbers moved by noise that leaves none below 0"
)


def assess_external(table: ExternalTable) -> tuple[Disclosure, ...]:
    """Return everything that the attacks find in a table, in a fixed order."""
    disclosures, mark = marks(table), mark_below(table.counts)
    marked = np.zeros(table.counts.size, dtype=np.bool_)
    if mark is not None:
        marked = table.counts == mark[0]
        words = f"{int(marked.sum()):,} cells hold {mark[0]:g}, which stands for no count"
        figures = {"claim": "mark_below", "mark": f"{mark[0]:g}", "cells": int(marked.sum())}
        disclosures.append(told("suppression", words, mark[1], figures, is_flaw=True))
    totals = residuals(counted := table.without(marked))
    kinds = {name: np.array(indices) for name, indices in by_kind(table).items()}
    numbers = {name: table.counts[indices[~marked[indices]]] for name, indices in kinds.items()}
    grids = {name: grid_of(counts) for name, counts in numbers.items()}
    is_fine = not any(grid.may_hide for grid in grids.values())
    different = {
        (grid.step, grid.decimals, grid.digits, f"{grid.factor[0]:.1g}" if grid.factor else "")
        for grid in grids.values()
    }
    if len(grids) > len(different) == 1:
        disclosures += described("every table", counted.counts, grid_of(counted.counts))
    else:
        for name, part in numbers.items():
            disclosures += described(name, part, grids[name])
    for name, part in kinds.items():
        disclosures += _of_one_table(name, table, part, marked, grids[name])
    disclosures += noise_of_differences(counted, totals) if is_fine else []
    scales = [disclosure for disclosure in disclosures if disclosure.name == "scale"]
    if not any(scale.figures["identified"] for scale in scales):
        figures = {"claim": None, "identified": False}
        disclosures.append(Disclosure("scale", False, ONE_TABLE, figures))
    named = [scale.figures["scale"] for scale in scales if scale.figures["identified"]]
    disclosures += presence(disclosures, sorted(named, reverse=True))  # the most dangerous first
    disclosures += [_rows(table), *_derived(totals)]
    disclosures += _differencing(totals, scales) if is_fine else ()
    untold = Disclosure("cannot_tell", False, NEVER_TOLD, {"claim": None})
    return (*disclosures, *_companions(table), untold)


def _of_one_table(
    name: str,
    table: ExternalTable,
    indices: NDArray[np.int64],
    marked: NDArray[np.bool_],
    grid: Grid,
) -> list[Disclosure]:
    """Return what the ends of one table, its numbers below zero and its missing cells say."""
    numbers = table.counts[indices[~marked[indices]]]
    if not np.array_equal(numbers, np.rint(numbers)):
        return []
    whole = numbers.astype(np.int64)
    unit = sum(grid.factor) / 2 if grid.factor else float(grid.step)
    disclosures = piles(name, np.rint(whole / unit).astype(np.int64), unit)
    below = below_zero(name, whole, is_coarse=grid.may_hide)
    if grid.may_hide or below:
        return disclosures + below
    cells = tuple(table.cells[index] for index in indices)
    values = np.where(marked[indices], 0, table.counts[indices]).astype(np.int64)
    return disclosures + small_cells(Part(name, cells, values))


def _rows(table: ExternalTable) -> Disclosure:
    """Compare published rows with the domain that the table's own labels span."""
    cells = set(table.cells)
    balance = RowBalance(spanned(cells), len(cells))
    return Disclosure(
        "rows",
        False,
        f"{balance.published} of the {balance.expected} cells that the labels span are published; "
        f"why {balance.missing} are not, the rows alone cannot tell ({table.stray_lines} lines are "
        "no rows)",
        {
            "claim": None,
            "expected_at_least": balance.expected,
            "published": balance.published,
            "missing": balance.missing,
            "stray_lines": table.stray_lines,
        },
    )


def _derived(totals: list[Residuals]) -> list[Disclosure]:
    """Say that totals are sums of published parts, which lose what is missing in the parts."""
    for sums in totals:
        equal = float(np.mean(sums.values == 0))
        is_told = sums.values.size >= GROUPS_LEAST and equal > _NEARLY_ALL
        if is_told and not sums.is_complete.all():
            words = (
                f"{equal:.0%} of the totals over {sums.dimension} are the sums of the published "
                "parts: whatever is not published in the parts, they lack too"
            )
            figures = {
                "claim": "derived",
                "dimension": sums.dimension,
                "groups": int(sums.values.size),
                "incomplete_groups": int((~sums.is_complete).sum()),
            }
            return [Disclosure("derived_from_thresholded", True, words, figures)]
    return []


def _differencing(totals: list[Residuals], scales: list[Disclosure]) -> list[Disclosure]:
    """Estimate what is hidden in totals whose parts are not all published."""
    known = [
        scale.figures["deviation_high"] / math.sqrt(2)
        for scale in scales
        if "deviation_high" in scale.figures
    ]
    shown = max(known, default=SCALES_SHOWN[1])
    for sums in totals:
        incomplete = ~sums.is_complete & (np.rint(sums.values) != 0)
        if not incomplete.any():
            continue
        hidden, parts = sums.values[incomplete], sums.parts[incomplete]
        terms = int(np.median(parts)) + 1
        noise = [Term(NoiseDistribution.ROUNDED_LAPLACE, shown, terms)]
        widths = {f"{level:g}": half_width(noise, level) for level in (0.9, 0.95, 0.99)}
        beyond = sum(
            tail([Term(NoiseDistribution.ROUNDED_LAPLACE, shown, n + 1)], abs(v)) < _ALPHA
            for v, n in zip(hidden.tolist(), parts.tolist(), strict=True)
        )
        words = (
            f"{hidden.size} totals over {sums.dimension} lack parts; total minus parts is "
            f"what they lack, exactly where there is no noise, and within +-{widths['0.95']:g} "
            f"(95 %) if it is {terms} Laplace noises of scale {shown:g}"
            f"{'' if known else ' (assumed)'}; {beyond} differ from zero by more "
            "than that"
        )
        figures = {
            "claim": None,
            "dimension": sums.dimension,
            "groups": hidden.size,
            "beyond_noise": beyond,
            "terms_median": terms,
            "scale": shown,
            "scale_is_assumed": not known,
            "half_widths": widths,
            "largest_hidden": float(hidden.max()),
        }
        return [Disclosure("differencing", True, words, figures)]
    return []


def _companions(table: ExternalTable) -> list[Disclosure]:
    """Find columns that hold the same numbers without, or with other, noise."""
    disclosures = []
    for name, values in table.companions:
        both = ~np.isnan(values)
        if name in DIMENSIONS or both.sum() < GROUPS_LEAST:
            continue
        noise = (table.counts - values)[both]
        level = float(np.std(table.counts[both]))
        if not noise.any() or level == 0 or float(np.std(noise)) > 0.3 * level:
            continue
        deviation = float(np.sqrt(np.mean(noise**2)))
        disclosures.append(
            Disclosure(
                "true_values",
                True,
                f"column {name} holds nearly the same numbers as count (they differ by "
                f"{deviation:.2f}); if either is the true value, it undoes the other's noise",
                {"claim": None, "column": name, "noise_standard_deviation": round(deviation, 4)},
            )
        )
    return disclosures
