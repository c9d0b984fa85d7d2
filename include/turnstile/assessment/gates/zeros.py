"""No cell was left without noise: zeros are as frequent, and as dense, as noise can leave them."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from turnstile.assessment.gates.numbers import Judged
from turnstile.assessment.gates.result import ALPHA, EMPTY_CELLS, GateResult
from turnstile.assessment.gates.stated_power import first_found, steps_from
from turnstile.privacy.noise import noise_pmf
from turnstile.privacy.tail_probabilities import binomial_at_least, binomial_limit
from turnstile.release.numbers import Vector

_WINDOW_LEAST = 16


def noised_zeros(numbers: Judged, alpha: float = ALPHA) -> GateResult:
    """Empty cells were noised, as a whole and in every block of a draw.

    Whatever the raw count, P(noisy = 0) is at most the noise's largest probability p, so the
    zeros of w cells are stochastically below Bin(w, p), and are Bin(w, p) where all cells are
    empty. They are counted in every window of 16, 32, 64, ... cells, up to all of them. A
    thresholded table holds 0 or its threshold and more, which is its rule and shows.
    """
    bad = {
        thresholded.event.label
        for thresholded in numbers.vectors
        if thresholded.event.threshold is not None
        and _below(thresholded.event.threshold, thresholded.values)
    }
    dense = numbers.dense
    chance = 0.0
    for vector in dense:
        windows = _windows(vector.values.size, largest_probability(vector), alpha / len(dense))
        chance += sum(window.chance for window in windows)
        if any(_most_zeros(vector.values, window.width) >= window.limit for window in windows):
            bad.add(vector.where)
    statement = (
        f"zeros without noise in {', '.join(sorted(bad))}: presence would show"
        if bad
        else "no stretch of any table has more zeros than its noise allows"
    )
    detects = _detects(dense, alpha)
    return GateResult(
        "noised_zeros", not bad, statement, chance, detects, reached_by=EMPTY_CELLS if dense else ""
    )


class _Windows(NamedTuple):
    """All windows of one width: the zeros that are too many, and the chance of any such."""

    width: int
    limit: int
    chance: float


@lru_cache(maxsize=256)
def _windows(cells: int, most: float, alpha: float) -> tuple[_Windows, ...]:
    """Return the limits of the zeros in each window of a draw, which share a chance.

    Args:
        cells: of the draw.
        most: largest probability of a zero.
        alpha: of a false alarm.
    """
    widths = [cells]
    while _WINDOW_LEAST * 2 ** (len(widths) - 1) < cells:
        widths.append(_WINDOW_LEAST * 2 ** (len(widths) - 1))
    limits = []
    for width in widths:
        windows = cells // width
        limit = binomial_limit(alpha / len(widths) / windows, width, most)
        limits.append(_Windows(width, limit, windows * binomial_at_least(limit, width, most)))
    return tuple(limits)


def _most_zeros(values: NDArray[np.int64], width: int) -> int:
    """Return the most zeros in any window."""
    parts = values.size // width
    zeros = (values[: parts * width] == 0).reshape(parts, width)
    return int(zeros.sum(axis=1).max())


def largest_probability(vector: Vector) -> float:
    """Return the largest probability of any number in a cell, whatever its raw count."""
    _, probabilities = noise_pmf(vector.event.noise, vector.event.scale, reach=1)
    return float(probabilities[1])


def _detects(dense: tuple[Vector, ...], alpha: float) -> str:
    """State the share of the largest table, if it is empty, that is found without noise."""
    if not dense:
        return "a thresholded table with numbers below its threshold"
    largest = max(dense, key=lambda vector: vector.values.size)
    cells, most = largest.values.size, largest_probability(largest)
    alpha /= len(dense) * (math.log2(max(2, cells)) + 1)
    least = binomial_limit(alpha, cells, most)

    def chance(share: float) -> float:
        """Return how often an empty table with a share of its cells left alone is found."""
        bare = round(share * cells)
        return binomial_at_least(least - bare, cells - bare, most)

    start = max(1 / cells, (least - cells * most) / (cells * (1 - most)))
    return first_found(
        steps_from(start, most=1.0),
        chance,
        lambda share: f"{share:.1%} of an empty {largest.event.table} without noise",
    )


def _below(threshold: int, values: NDArray[np.int64]) -> bool:
    """Return whether a thresholded table holds numbers below its threshold but 0."""
    return bool(np.any((values != 0) & (values < threshold)))
