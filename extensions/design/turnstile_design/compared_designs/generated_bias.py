"""What a bound leaves out of generated trips: the bias that stands beside noise in a comparison.

A bound is chosen before any data is touched, so its bias is shown on made-up trips
(`turnstile_samples`), never on rows: `turnstile report` measures it privately on those of the
authority.
The choice of records is simulated in an order at random, as the keyed hash makes it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from turnstile.errors import InputError
from turnstile.programme.bounding_rule import BoundingRule, rule_of
from turnstile.programme.spec import Programme, TableSpec
from turnstile_design.compared_designs.designs import ANY_WEEK
from turnstile_samples.opal import opal_rows, read_places

ROWS, SEED = 20_000, 7
_AXES = {
    "tap_on_slot": "on_minute",
    "tap_on_location": "on_place",
    "tap_off_slot": "off_minute",
    "tap_off_location": "off_place",
}


def left_out(programme: Programme, table: TableSpec, include: Path) -> float | None:
    """Return the share of generated trips that a table does not count.

    Args:
        programme: bounds, slots and the public file of places.
        table: of the programme.
        include: folder of `domains/`.

    Returns:
        0 to 1; None where trips cannot be generated for these places, or cells are not of taps.
    """
    rule = rule_of(programme, table)
    if rule is None:
        return 0.0
    places = include / (programme.domain.locations or "")
    return _left_out(rule, programme.time.slot_minutes, places)


@cache
def _left_out(rule: BoundingRule, length: int, places: Path) -> float | None:
    """Return the share that a rule leaves out, in slots of this length."""
    try:
        rows = _generated(places)
    except InputError:
        return None
    if any(axis not in _AXES for limit in rule.limits for axis in limit.by):
        return None
    axes = {
        axis: rows[name] // length if axis.endswith("_slot") else rows[name]
        for axis, name in _AXES.items()
    }
    by_day = (rule.unit.days_max or 0) == 1
    units = np.stack([rows["card"], rows["day"] * by_day], axis=1)
    cells = [
        (limit.at_most, np.stack([rows["mode"], rows["day"], *(axes[a] for a in limit.by)], axis=1))
        for limit in rule.limits
    ]
    return 1 - _counted(units, cells, rule.records_max) / len(units)


def _counted(
    units: NDArray[np.int64], cells: list[tuple[int, NDArray[np.int64]]], records_max: int
) -> int:
    """Return how many records count: the lowest of each cell, and of those the lowest."""
    in_cells: list[Counter[tuple[int, ...]]] = [Counter() for _ in cells]
    kept: Counter[tuple[int, ...]] = Counter()
    for row in sorted(range(len(units)), key=_hash_of):
        unit = tuple(units[row].tolist())
        is_lowest = kept[unit] < records_max
        for (most, columns), seen in zip(cells, in_cells, strict=True):
            cell = (*unit, *columns[row].tolist())
            is_lowest &= seen[cell] < most
            seen[cell] += 1
        kept[unit] += is_lowest
    return kept.total()


def _hash_of(row: int) -> bytes:
    """Return what orders a made-up record, as the keyed hash orders a real one."""
    return hashlib.sha256(f"{SEED} {row}".encode()).digest()


@cache
def _generated(places: Path) -> dict[str, NDArray[np.int64]]:
    """Return a generated week of trips, without corruption."""
    known = read_places(places)
    return opal_rows(ANY_WEEK, ROWS, SEED, places=known, corruptions=frozenset())
