"""Gates on the numbers themselves: all cells there, all noised, drawn once, integers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from turnstile.assessment.gates.result import ALPHA, GateResult
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.noise import noise_pmf
from turnstile.release.drawn import Drawn


def support(drawn: Drawn) -> GateResult:
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


def noised_zeros(drawn: Drawn) -> GateResult:
    """No dense table holds more zeros than noise can leave: empty cells were not left alone.

    Whatever the raw count, P(noisy = 0) is at most the noise's largest probability p, so the number
    of zeros is stochastically below Bin(cells, p). A thresholded table holds 0 or its threshold and
    more, which is its rule and shows.
    """
    from scipy.stats import binom

    below = []
    chances: dict[str, float] = {}
    for event, noisy in zip(drawn.events, drawn.artefact.tables, strict=False):
        if event.threshold is not None:
            below += _below_threshold(event.threshold, noisy.values)
            continue
        _, distribution = noise_pmf(event.noise, event.scale, reach=1)
        zeros = int((noisy.values == 0).sum())
        chance = float(binom.sf(zeros - 1, noisy.values.size, float(distribution[1])))
        chances[event.label] = min(chance, chances.get(event.label, 1.0))
    bad = sorted(label for label, chance in chances.items() if chance * len(drawn.events) < ALPHA)
    passed = not bad and not below
    statement = (
        "no table has more zeros than its noise allows"
        if passed
        else f"zeros without noise in {', '.join(bad) or 'thresholded tables'}: presence would show"
    )
    return GateResult("noised_zeros", passed, statement)


def one_byte_string(drawn: Drawn, sealed_digests: Sequence[str] | None) -> GateResult:
    """The key has one sealed byte string: in the ledger, and under embargo.

    A second one, of whatever origin, would be a second draw of the same numbers.

    Args:
        drawn: the sealed release.
        sealed_digests: SHA-256 of every sealed file of the key; None where nobody looked.
    """
    own = drawn.attempt.artefact_digest
    if not drawn.attempt.is_sealed or not own:
        return GateResult("one_sealed", False, "the ledger holds no sealed bytes for this key")
    others = set(sealed_digests or ()) - {own}
    if others:
        statement = (
            f"{len(others) + 1} distinct sealed byte strings lie under embargo for this key, the "
            f"ledger knows {own[:16]} alone; find out where the others come from, then remove them"
        )
        return GateResult("one_sealed", False, statement)
    return GateResult("one_sealed", True, f"one sealed byte string, {own[:16]}")


def fresh(drawn: Drawn) -> GateResult:
    """No vector of noise serves twice in the sealed bytes.

    Two equal vectors are one draw used twice, or a copy. Whatever the raw counts are, independent
    noise hits a given number with a chance of at most p, its largest probability, so n given
    numbers with at most p^n. Vectors are compared where that is below 1e-9 for all pairs together.
    """
    names = [(t.table, t.statistic, t.service_date) for t in drawn.artefact.tables]
    enough = math.log(max(1, math.comb(len(names), 2)) / ALPHA)
    contents = sorted(
        noisy.values.tobytes()
        for event, noisy in zip(drawn.events, drawn.artefact.tables, strict=False)
        if _surprise(event, noisy.values) >= enough
    )
    repeated = len(set(names)) < len(names) or any(
        one == next_ for one, next_ in pairwise(contents)
    )
    return GateResult(
        "drawn_once",
        not repeated,
        "the same draw stands twice in the sealed bytes" if repeated else "no draw stands twice",
    )


def _surprise(event: DrawEvent, values: NDArray[np.int64]) -> float:
    """Return -ln of a bound on the chance that independent noise gives just these numbers."""
    _, distribution = noise_pmf(event.noise, event.scale, reach=1)
    return -_with_noise(event, values) * math.log(distribution[1])


def _with_noise(event: DrawEvent, values: NDArray[np.int64]) -> int:
    """Count the numbers that noise decided; cells that a threshold left out are alike without."""
    return values.size if event.threshold is None else int(np.count_nonzero(values))


def integers(drawn: Drawn) -> GateResult:
    """Every number is a 64-bit integer, without a coarser grid, a sign of zero or a fraction.

    Whatever the raw counts are, a number is even with a chance of at most p = P(0) / (P(0) + P(1))
    of its noise (of other grids it is less likely to be), and n are with at most p^n. Vectors are
    judged where that is below 1e-9 for all of them together.
    """
    tables = drawn.artefact.tables
    enough = math.log(max(1, len(tables)) / ALPHA)
    wrong = [
        f"{t.table}/{t.statistic} {problem}"
        for event, t in zip(drawn.events, tables, strict=False)
        if (problem := _off_grid(event, t.values, enough)) is not None
    ]
    return GateResult(
        "integers",
        not wrong,
        f"{wrong[0]}" if wrong else "every number is a integer of 64 bits, on no coarser grid",
    )


def _off_grid(event: DrawEvent, values: NDArray[np.int64], enough: float) -> str | None:
    """Name what is wrong with a vector of numbers, or None."""
    if values.dtype.kind == "f":
        floats = np.asarray(values, dtype=np.float64)
        if bool(np.any((floats == 0) & np.signbit(floats))):
            return "holds a negative zero"
        return "holds floating-point numbers"
    if values.dtype != np.dtype(np.int64):
        return f"holds numbers of type {values.dtype}"
    _, distribution = noise_pmf(event.noise, event.scale, reach=1)
    surprise = _with_noise(event, values) * math.log1p(distribution[2] / distribution[1])
    if surprise >= enough and int(np.gcd.reduce(values)) != 1:
        return "holds only multiples of a number above 1"
    return None


def _below_threshold(threshold: int, values: NDArray[np.int64]) -> list[int]:
    """Return what a thresholded table must not hold: numbers below its threshold but 0."""
    return [1] if bool(np.any((values != 0) & (values < threshold))) else []
