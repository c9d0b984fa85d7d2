"""Gates on what was sealed: all cells there, one byte string, integers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from turnstile.assessment.gates.numbers import Judged
from turnstile.assessment.gates.result import ALPHA, GateResult
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.noise import noise_pmf
from turnstile.release.drawn import Drawn
from turnstile.release.numbers import Vector


def support(drawn: Drawn) -> GateResult:
    """Every cell of the public domain is present, for every planned draw, in the planned order."""
    tables = {table.name: table for table in drawn.programme.tables}
    planned = [(e.table, e.statistic, drawn.domain.cells(tables[e.table])) for e in drawn.events]
    sealed = [(t.table, t.statistic, t.values.size) for t in drawn.artefact.tables]
    return GateResult(
        "support",
        planned == sealed,
        "every cell of the public domain holds a number"
        if planned == sealed
        else "cells or draws are missing or too many",
        detects="any cell or draw that is missing or too many",
    )


def one_byte_string(drawn: Drawn, sealed_digests: Sequence[str] | None) -> GateResult:
    """The key has one sealed byte string: in the ledger, and under embargo.

    A second one, of whatever origin, would be a second draw of the same numbers.

    Args:
        drawn: the sealed release.
        sealed_digests: SHA-256 of every sealed file of the key; None where nobody looked.
    """
    digest = drawn.attempt.artefact_digest
    detects = "any second file of sealed bytes"
    if not digest:
        unsealed = "the ledger holds no sealed bytes for this key"
        return GateResult("one_sealed", False, unsealed, detects=detects)
    others = set(sealed_digests or ()) - {digest}
    if others:
        statement = (
            f"{len(others) + 1} distinct sealed byte strings lie under embargo for this key, the "
            f"ledger knows {digest[:16]} alone; find out where the others come from, then remove "
            "them"
        )
        return GateResult("one_sealed", False, statement, detects=detects)
    return GateResult("one_sealed", True, f"one sealed byte string, {digest[:16]}", detects=detects)


def integers(numbers: Judged) -> GateResult:
    """Every number is a 64-bit integer, without a coarser grid, a sign of zero or a fraction.

    Whatever the raw counts are, a number is even with a chance of at most p = P(0) / (P(0) + P(1))
    of its noise (of other grids it is less likely to be), and n are with at most p^n. Vectors are
    judged where that is below 1e-9 for all of them together.
    """
    enough = math.log(max(1, len(numbers.vectors)) / ALPHA)
    wrong = [
        f"{vector.event.label} {problem}"
        for vector in numbers.vectors
        if (problem := _off_grid(vector, enough)) is not None
    ]
    return GateResult(
        "integers",
        not wrong,
        wrong[0] if wrong else "every number is an integer of 64 bits, on no coarser grid",
        sum(
            math.exp(-exponent)
            for exponent in map(_against_a_grid, numbers.vectors)
            if exponent >= enough
        ),
        "any number that is no 64-bit integer; a draw on a coarser grid, from "
        f"{_grid_least(numbers, enough)} noised numbers on",
    )


def _grid_least(numbers: Judged, enough: float) -> int:
    """Return how many numbers show a grid, in the draw where it takes the most."""
    return max(
        (math.ceil(enough / _evenness(vector.event)) for vector in numbers.vectors), default=0
    )


def _evenness(event: DrawEvent) -> float:
    """Return -ln of the largest chance that a number is even."""
    _, probabilities = noise_pmf(event.noise, event.scale, reach=1)
    return math.log1p(probabilities[2] / probabilities[1])


def _off_grid(vector: Vector, enough: float) -> str | None:
    """Name what is wrong with a vector of numbers, or None."""
    values = vector.values
    if values.dtype.kind == "f":
        floats = np.asarray(values, dtype=np.float64)
        if bool(np.any((floats == 0) & np.signbit(floats))):
            return "holds a negative zero"
        return "holds floating-point numbers"
    if values.dtype != np.dtype(np.int64):
        return f"holds numbers of type {values.dtype}"
    if _against_a_grid(vector) >= enough and int(np.gcd.reduce(values)) != 1:
        return "holds only multiples of a number above 1"
    return None


def _against_a_grid(vector: Vector) -> float:
    """Return -ln of the largest chance that all numbers which noise decided are even.

    Cells that a threshold left out are alike without any noise.
    """
    decided = (
        vector.values.size if vector.event.threshold is None else np.count_nonzero(vector.values)
    )
    return int(decided) * _evenness(vector.event)
