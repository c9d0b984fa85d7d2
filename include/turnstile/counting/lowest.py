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
_BLOCK = 1 << 15  # numbers that are looked at together: they fit into a core's cache
Integers = NDArray[np.int64]
CellLimit = tuple[Sequence[NDArray[Any]], int]


def lowest(
    units: NDArray[Any], order: NDArray[np.uint64], limits: Sequence[CellLimit], at_most: int
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
    sorted_units = units[ordered]
    counts = np.ones(len(ordered), dtype=np.bool_)
    for columns, most in limits:
        counts &= _rank(_cell_of_unit(sorted_units, [column[ordered] for column in columns])) < most
    left = ordered[counts]
    return np.asarray(left[_place_in_run(units[left]) < at_most], dtype=np.int64)


def crowded(
    records: NDArray[np.uint64], unit: int, limits: Sequence[tuple[int, int]], at_most: int
) -> NDArray[np.bool_]:
    """Return which records begin more of their unit, or of its cell, than there may be, shape (n,).

    Args:
        records: numbers in order, shape (n,), uint64: the records of a unit stand side by side.
        unit: bits that the records of a unit share.
        limits: pairs of the bits that records of a unit share in a cell, and how many may, >= 1.
        at_most: records of one unit, >= 1.

    Examples:
        >>> records = np.array([0x38, 0x31, 0x51, 0x51], dtype=np.uint64)
        >>> crowded(records, 0xF0, [(0xFF, 1)], 2)
        array([False, False,  True, False])
    """
    is_crowded = np.zeros(len(records), dtype=np.bool_)
    for begin in range(0, len(records), _BLOCK):
        block = records[begin : begin + _BLOCK + at_most]
        flags = is_crowded[begin : begin + _BLOCK]
        others = [(bits, most, np.zeros(len(flags), dtype=np.int64)) for bits, most in limits]
        for further in range(1, at_most + 1):
            differ = block[:-further][: len(flags)] ^ block[further:][: len(flags)]
            if further == at_most:
                flags[: len(differ)] |= differ & np.uint64(unit) == 0
            for bits, _, count in others:
                count[: len(differ)] += differ & np.uint64(bits) == 0
        for _, most, count in others:
            flags |= count >= most
    return is_crowded


def _sorted(keys: NDArray[Any], places: Integers) -> Integers:
    """Return the order of some keys; among the same ones that of their places, 0 to n - 1."""
    codes, span = _dense(keys)
    if span * len(keys) >= _LARGEST_KEY:
        codes = np.unique(codes, return_inverse=True)[1]
    return np.argsort(codes * len(keys) + places)  # all differ, so the fastest sort is stable too


def _rank(keys: NDArray[Any]) -> Integers:
    """Return how many records with the same key come before each, shape (n,)."""
    by_key = _sorted(keys, np.arange(len(keys)))
    ranks = np.empty(len(keys), dtype=np.int64)
    ranks[by_key] = _place_in_run(keys[by_key])
    return ranks


def _place_in_run(keys: NDArray[Any]) -> Integers:
    """Return how many of the same keys, which stand side by side, come before each, shape (n,)."""
    places = np.arange(len(keys))
    begins = np.ones(len(keys), dtype=np.bool_)
    begins[1:] = keys[1:] != keys[:-1]
    return np.asarray(places - np.maximum.accumulate(np.where(begins, places, 0)))


def _cell_of_unit(units: NDArray[Any], columns: Sequence[NDArray[Any]]) -> Integers:
    """Return one number for each unit and cell, the same for the same ones only, shape (n,)."""
    keys, size = _dense(units)
    for column in columns:
        codes, span = _dense(column)
        if size * span >= _LARGEST_KEY:
            keys, size = _dense(np.unique(keys, return_inverse=True)[1])
        keys, size = keys * span + codes, size * span
    return keys


def _dense(column: NDArray[Any]) -> tuple[Integers, int]:
    """Return whole numbers from 0 on, and how many there can be."""
    if not len(column):
        return column.astype(np.int64), 1
    least = int(column.min())
    return column.astype(np.int64) - least, int(column.max()) - least + 1
