"""Gates on the size of the noise: what an outsider recovers must be what was declared."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from turnstile.assessment.attacks.scale_of_any_counts import log_evidence
from turnstile.assessment.attacks.scale_of_noise import from_negatives, negatives_p_value
from turnstile.assessment.gates.result import ALPHA, SQUARES_LEAST, GateResult
from turnstile.privacy.events import DrawEvent, NoiseFamily
from turnstile.privacy.noise import noise_fourth_cumulant, noise_variance
from turnstile.programme.domain import layout
from turnstile.programme.spec import Measure, TableSpec
from turnstile.release.drawn import Drawn

_NOT_IDENTIFIED = "does not apply: no dense Laplace counts, whose numbers below zero tell the scale"


def below_zero(drawn: Drawn) -> GateResult:
    """The numbers below zero of each dense Laplace table of counts have the declared scale.

    They are geometric with ratio e^(-1/b) whatever the raw counts are, so the test is exact
    (`from_negatives`). Centered sums of speeds are left out: they are below zero in earnest.
    """
    values = _by_label(drawn, _is_tested)
    tested = {event.label: event for event in drawn.events if event.label in values}
    wrong, shown = [], []
    for label, event in tested.items():
        chance = negatives_p_value(values[label], float(event.scale))
        estimate = from_negatives(values[label])
        if estimate is not None:
            words = f"{label}: declared {float(event.scale):.4g}, recovered {estimate.scale:.4g}"
            shown.append(words)
            if chance * len(tested) < ALPHA:
                wrong.append(words)
    statement = "; ".join(wrong or shown) or _NOT_IDENTIFIED
    return GateResult("scale_below_zero", not wrong, statement)


def any_counts(drawn: Drawn) -> GateResult:
    """No dense table contradicts its declared noise, whatever the raw counts are.

    Counts are only known to be 0 or more, sums to be anything. A correct release is stopped with a
    chance of at most 1e-9, whatever it holds (`scale_of_any_counts`).
    """
    values = _by_label(drawn, lambda event: event.threshold is None)
    tested = {event.label: event for event in drawn.events if event.label in values}
    enough = math.log(max(1, len(tested)) / ALPHA)
    wrong = [
        f"{label}: the noise is not {event.noise} of scale {float(event.scale):.4g}, whatever the "
        "raw counts are"
        for label, event in tested.items()
        if log_evidence(
            values[label], event.noise, float(event.scale), is_signed=event.statistic == "sum"
        )
        > enough
    ]
    passed = f"{len(tested)} dense tables: none contradicts its declared noise"
    return GateResult("scale_of_any_counts", not wrong, "; ".join(wrong) or passed)


def _by_label(drawn: Drawn, is_wanted: Callable[[DrawEvent], bool]) -> dict[str, NDArray[np.int64]]:
    """Return all numbers of each wanted kind of draw."""
    found: defaultdict[str, list[NDArray[np.int64]]] = defaultdict(list)
    for event, noisy in zip(drawn.events, drawn.artefact.tables, strict=False):
        if is_wanted(event):
            found[event.label].append(noisy.values)
    return {label: np.concatenate(vectors) for label, vectors in found.items()}


def _is_tested(event: DrawEvent) -> bool:
    """Whether numbers below zero can only be noise, of a distribution with a geometric tail."""
    is_dense_laplace = event.noise is NoiseFamily.DISCRETE_LAPLACE and event.threshold is None
    return is_dense_laplace and event.statistic != "sum"


def nested_scale(drawn: Drawn) -> GateResult:
    """The noise between two tables of the same raw numbers is as large as was declared.

    The row sums of a finer table and the coarser table describe the same counts, so their
    differences hold noise alone: their mean square over the declared variance is near 1.
    Thresholded tables are left out: their sums lack what was suppressed.
    """
    parts = [part for pair in nested_tables(drawn) for part in _standardized(drawn, *pair)]
    totals = sum(part.ratios.size for part in parts)
    if totals < SQUARES_LEAST:
        too_few = f"{totals} totals with all their parts: too few to tell the scale"
        return GateResult("declared_scale", passed=True, statement=too_few)
    squares = np.concatenate([part.ratios for part in parts]) ** 2
    # Squares lean to the right: a low mean comes with a low estimate of its own spread, a high one
    # with a high. So the spread is at least the declared noise's own, which makes both sides safe.
    declared = sum(part.ratios.size * part.variance_of_square for part in parts) / totals
    spread = max(math.sqrt(declared), float(squares.std())) / math.sqrt(totals)
    reach = NormalDist().inv_cdf(1 - ALPHA / 2) * spread
    mean = float(squares.mean())
    return GateResult(
        "declared_scale",
        abs(mean - 1) <= reach,
        f"recovered over declared variance {mean:.3f}, accepted within {reach:.3f} of 1",
    )


def nested_tables(drawn: Drawn) -> list[tuple[TableSpec, TableSpec]]:
    """Return pairs of a table and one whose dimensions include its own."""
    threshold = {event.table for event in drawn.events if event.threshold is not None}
    counts = [
        table
        for table in drawn.programme.tables
        if table.measure is Measure.COUNT and table.name not in threshold
    ]
    return [(coarse, fine) for coarse in counts for fine in counts if set(coarse.by) < set(fine.by)]


@dataclass(frozen=True, slots=True, eq=False)
class _Standardized:
    """Differences of two tables of the same raw numbers, of one partition.

    Args:
        ratios: shape (cells of the coarser table,), over the declared standard deviation.
        variance_of_square: of each, as declared; 2 for a normal deviate.
    """

    ratios: NDArray[np.float64]
    variance_of_square: float


def _standardized(drawn: Drawn, coarse: TableSpec, fine: TableSpec) -> Iterator[_Standardized]:
    """Yield, a partition at a time, (row sums - coarser table) over the declared deviation."""
    coarse_vectors = drawn.vectors(coarse, "count")
    axes = tuple(index for index, name in enumerate(fine.by) if name not in coarse.by)
    kinds = {event.table: (event.noise, event.scale) for event in drawn.events}
    variances, fourths = (
        [moment(*kinds[table.name]) for table in (fine, coarse)]
        for moment in (noise_variance, noise_fourth_cumulant)
    )
    for day, vector in drawn.vectors(fine, "count").items():
        segments = zip(layout(drawn.domain, fine), layout(drawn.domain, coarse), strict=True)
        for large, small in segments:
            cells = vector[large.offset : large.offset + large.cells].reshape(large.shape)
            sums = cells.sum(axis=axes).ravel()
            direct = coarse_vectors[day][small.offset : small.offset + small.cells]
            terms = large.cells // small.cells
            variance, fourth = (terms * own + total for own, total in (variances, fourths))
            ratios = (sums - direct) / math.sqrt(variance)
            yield _Standardized(ratios, 2 + fourth / variance**2)
