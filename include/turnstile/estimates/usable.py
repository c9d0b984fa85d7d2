"""How far a number can be used, by its interval: decided here, and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
WITHIN, FAIRLY = 0.2, 0.5  # of the value, on either side
MOSTLY = 0.9  # of what is counted: a table that can be used


class Grade(StrEnum):
    """How far a number can be used."""

    GOOD = "good"  # its 90 % interval lies within a fifth of it
    FAIR = "fair"  # within a half
    POOR = "poor"  # wider, or not known
    NOT_TOLD = "not told from 0"  # the interval holds 0
    WITHHELD = "withheld"  # there is no number: too little is known for a mean
    GAP = "gap"  # its service day has no input


GRADES = tuple(Grade)


@dataclass(frozen=True, slots=True)
class Usable:
    """Shares of the numbers of a table that are good, and of what all of them count."""

    numbers: float
    counted: float


def grades(
    values: Floats, low: Floats, high: Floats, is_gap: NDArray[np.bool_] | None = None
) -> NDArray[np.int8]:
    """Return the grade of each number, as its place in `GRADES`; the first that applies.

    Args:
        values: not a number where there is none.
        low: lower ends of 90 % intervals, same shape; not a number where none is known.
        high: upper ends.
        is_gap: which numbers are of a day without input; none by default.

    Examples:
        >>> values, low, high = np.array([[10.0, 9.5, 11], [3, 0, 7], [9, 6, np.nan]]).T
        >>> [GRADES[grade].value for grade in grades(values, low, high)]
        ['good', 'not told from 0', 'poor']
    """
    reach = np.maximum(high - values, values - low)
    told = {
        Grade.GAP: np.zeros(values.shape, np.bool_) if is_gap is None else is_gap,
        Grade.WITHHELD: np.isnan(values),
        Grade.NOT_TOLD: (low <= 0) & (high >= 0),
        Grade.GOOD: reach <= WITHIN * np.abs(values),
        Grade.FAIR: reach <= FAIRLY * np.abs(values),
    }
    places = [GRADES.index(grade) for grade in told]
    indices = np.select(list(told.values()), places, GRADES.index(Grade.POOR))
    return indices.astype(np.int8)


def usable(values: Floats, low: Floats, high: Floats) -> Usable:
    """Return how much of a table is good; numbers that are not there are left out.

    Args:
        values: >= 0; not a number on a gap.
        low: lower ends of 90 % intervals, same shape.
        high: upper ends.

    Examples:
        >>> usable(np.array([10.0, 90.0]), np.array([5.0, 80.0]), np.array([15.0, 100.0]))
        Usable(numbers=0.5, counted=0.9)
    """
    is_there = ~np.isnan(values)
    present = values[is_there]
    is_good = (grades(values, low, high) == GRADES.index(Grade.GOOD))[is_there]
    if not present.sum():
        return Usable(0.0, 0.0)
    return Usable(float(is_good.mean()), float(present[is_good].sum() / present.sum()))
