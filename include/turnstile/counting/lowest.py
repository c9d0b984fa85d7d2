"""Which records of units above their bounds count: the lowest of an order, in arrays.

Three orders of a few hundred thousand numbers, which the engine would sort as texts in windows at
three times the cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LARGEST_KEY = 2**62
Integers = NDArray[np.int64]
CellLimit = tuple[Sequence[NDArray[Any]], int]


def lowest(
    units: NDArray[Any],
    order: NDArray[np.uint64],
    limits: Sequence[CellLimit],
    at_most: int,
) -> Integers:
    """Return which records count, shape (m,), int64: places in the given arrays.

    A record counts if, in its unit's order, it is among the first so many of all records that share
    a limited cell with it, for every limit, and among the first `at_most` of those that are left.

    Args:
        units: shape (n,), a number for each unit.
        order: the record's place in its unit's order, shape (n,), uint64.
        limits: pairs of a cell's columns, each of shape (n,), and how many may share it, >= 1.
        at_most: records of one unit, >= 1.

    Examples:
        >>> order = np.array([3, 1, 2], dtype=np.uint64)
        >>> lowest(np.array([7, 7, 7]), order, [([np.array([0, 0, 1])], 1)], 2)
        array([1, 2])
    """
    ranks = np.empty(len(units), dtype=np.int64)
    ranks[np.argsort(order)] = np.arange(len(units))
    ordered = _sorted(units, ranks)
    own = units[ordered]
    counts = np.ones(len(ordered), dtype=np.bool_)
    for columns, most in limits:
        counts &= _rank(_cell_of_unit(own, [column[ordered] for column in columns])) < most
    left = ordered[counts]
    return np.asarray(left[_rank(units[left]) < at_most], dtype=np.int64)


def over_bounds(
    units: NDArray[Any], limits: Sequence[CellLimit], at_most: int
) -> NDArray[np.bool_]:
    """Return which records are of a unit with too many of them, or too many in a cell, shape (n,).

    Args:
        units: shape (n,), a number from 0 on for each unit.
        limits: as of `lowest`.
        at_most: records of one unit, >= 1.
    """
    is_over = np.bincount(units) > at_most
    for columns, most in limits:
        keys = _cell_of_unit(units, columns)
        by_cell = np.argsort(keys)
        ordered = keys[by_cell]
        is_over[units[by_cell[most:][ordered[most:] == ordered[:-most]]]] = True
    return np.asarray(is_over[units])


def _sorted(keys: NDArray[Any], places: Integers) -> Integers:
    """Return the order of some keys; among the same ones that of their places, 0 to n - 1."""
    own, span = _dense(keys)
    if span * len(keys) >= _LARGEST_KEY:
        own = np.unique(own, return_inverse=True)[1]
    return np.argsort(own * len(keys) + places)  # all differ, so the fastest sort is stable too


def _rank(keys: NDArray[Any]) -> Integers:
    """Return how many records with the same key come before each, shape (n,)."""
    places = np.arange(len(keys))
    by_key = _sorted(keys, places)
    sorted_keys = keys[by_key]
    begins = np.ones(len(keys), dtype=np.bool_)
    begins[1:] = sorted_keys[1:] != sorted_keys[:-1]
    ranks = np.empty(len(keys), dtype=np.int64)
    ranks[by_key] = places - np.maximum.accumulate(np.where(begins, places, 0))
    return ranks


def _cell_of_unit(units: NDArray[Any], columns: Sequence[NDArray[Any]]) -> Integers:
    """Return one number for each unit and cell, the same for the same ones only, shape (n,)."""
    keys, size = _dense(units)
    for column in columns:
        own, span = _dense(column)
        if size * span >= _LARGEST_KEY:
            keys, size = _dense(np.unique(keys, return_inverse=True)[1])
        keys, size = keys * span + own, size * span
    return keys


def _dense(column: NDArray[Any]) -> tuple[Integers, int]:
    """Return whole numbers from 0 on, and how many there can be."""
    if not len(column):
        return column.astype(np.int64), 1
    least = int(column.min())
    return column.astype(np.int64) - least, int(column.max()) - least + 1
