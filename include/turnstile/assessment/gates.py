"""Hard gates before a publication: any that fails stops it and leaves the bytes under embargo.

A gate reads the sealed artefact and its declared parameters, never raw data: a gate that looked at
raw data would be a selection on it (PRIVACY 8).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from turnstile.privacy.noise import noise_variance
from turnstile.programme.domain import layout
from turnstile.programme.spec import Measure, TableSpec
from turnstile.release.presenting import Drawn

_ALPHA = 1e-9  # chance that a correct release is stopped by one gate


@dataclass(frozen=True, slots=True)
class GateResult:
    """What one gate found.

    Args:
        gate: name.
        passed: False stops the publication.
        statement: what was checked and found, from published numbers alone.
    """

    gate: str
    passed: bool
    statement: str


def gate_results(drawn: Drawn) -> tuple[GateResult, ...]:
    """Return what every gate found."""
    return (_support(drawn), _integers(drawn), _declared_scale(drawn))


def _support(drawn: Drawn) -> GateResult:
    """Every cell of the public domain is present, for every planned draw, in the planned order."""
    tables = {table.name: table for table in drawn.programme.tables}
    planned = [(e.table, e.statistic, drawn.domain.cells(tables[e.table])) for e in drawn.events]
    found = [(t.table, t.statistic, t.values.size) for t in drawn.artefact.tables]
    return GateResult(
        "support",
        planned == found,
        "every cell of the public domain holds a number"
        if planned == found
        else "cells or draws are missing or too many",
    )


def _integers(drawn: Drawn) -> GateResult:
    """Every number is a 64-bit integer: no grid, no sign of zero, no fraction."""
    types = {table.values.dtype for table in drawn.artefact.tables}
    passed = types == {np.dtype(np.int64)}
    return GateResult("integers", passed, "every number is a whole number of 64 bits")


def _declared_scale(drawn: Drawn) -> GateResult:
    """The noise between two tables of the same raw numbers is as large as was declared.

    The row sums of a finer table and the coarser table describe the same counts, so their
    differences hold noise alone: their mean square over the declared variance is near 1.
    """
    ratios = [ratio for pair in _nested(drawn) for ratio in _standardized(drawn, *pair)]
    if not ratios:
        return GateResult("declared_scale", passed=True, statement="no two tables to compare")
    squares = np.concatenate(ratios) ** 2
    # Mean of n squared standardized sums of independent noise; heavier tails than the normal's
    # are covered by the estimated spread.
    spread = max(math.sqrt(2), float(squares.std())) / math.sqrt(squares.size)
    reach = NormalDist().inv_cdf(1 - _ALPHA / 2) * spread
    mean = float(squares.mean())
    return GateResult(
        "declared_scale",
        abs(mean - 1) <= reach,
        f"recovered over declared variance {mean:.3f}, accepted within {reach:.3f} of 1",
    )


def _nested(drawn: Drawn) -> list[tuple[TableSpec, TableSpec]]:
    """Return pairs of a table and one whose dimensions include its own."""
    counts = [table for table in drawn.programme.tables if table.measure is Measure.COUNT]
    return [(coarse, fine) for coarse in counts for fine in counts if set(coarse.by) < set(fine.by)]


def _standardized(
    drawn: Drawn, coarse: TableSpec, fine: TableSpec
) -> Sequence[NDArray[np.float64]]:
    """Return, a partition at a time, (row sums - coarser table) over the declared deviation."""
    found: list[NDArray[np.float64]] = []
    coarse_vectors = drawn.vectors(coarse, "count")
    axes = tuple(place for place, name in enumerate(fine.by) if name not in coarse.by)
    noise = {event.table: noise_variance(event.noise, event.scale) for event in drawn.events}
    for day, vector in drawn.vectors(fine, "count").items():
        segments = zip(layout(drawn.domain, fine), layout(drawn.domain, coarse), strict=True)
        for large, small in segments:
            cells = vector[large.offset : large.offset + large.cells].reshape(large.shape)
            sums = cells.sum(axis=axes).ravel()
            direct = coarse_vectors[day][small.offset : small.offset + small.cells]
            terms = large.cells // small.cells
            deviation = math.sqrt(terms * noise[fine.name] + noise[coarse.name])
            found.append((sums - direct) / deviation)
    return found
