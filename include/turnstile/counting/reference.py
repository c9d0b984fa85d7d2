"""Counting in plain Python, step by step as a chain says: the measure of the engines.

For small worlds (`pipeline.small_worlds`) and for tests, which hold the engines' tables against it.
Records come in the keyed order of their unit (PRIVACY 4.2), as labels: what a label is of a slot, a
place or a position, the engines alone know.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from functools import lru_cache
from typing import NamedTuple

from turnstile.privacy.stability import Bound, Chain
from turnstile.privacy.units import Block

Label = int | str | None  # None: in no cell


class Row(NamedTuple):
    """A record that a chain counts.

    Args:
        unit: card or bus; None if it names none.
        mode: of the trip or bus.
        day: service day.
        labels: one for each axis of the count.
        value: what a mean is taken of, in steps from the middle of its range; 1 for a count.
    """

    unit: str | None
    mode: str
    day: date
    labels: tuple[Label, ...]
    value: int = 1


class Tap(NamedTuple):
    """A tap of one card, in the order of its day; the labels are those of its own end."""

    unit: str
    mode: str
    day: date
    is_on: bool
    labels: tuple[Label, ...]


Cells = Counter[tuple[str, date | None, tuple[Label, ...]]]


class ReferenceCount:
    """The steps of one chain over rows whose labels are those of some axes."""

    def __init__(self, chain: Chain, axes: Sequence[str]) -> None:
        self._chain, self._place = chain, {axis: n for n, axis in enumerate(axes)}
        judged = chain.filter.judged if chain.filter.drops else ()
        self._judged = [self._places(group) for group in judged]
        limits = () if chain.once is None else chain.once.limits
        self._limits = [(self._places(limit.by), limit.at_most) for limit in limits]
        self._tables = [self._places(by) for by in chain.project.tables]

    def _places(self, by: Iterable[str]) -> tuple[int, ...]:
        return tuple(self._place[axis] for axis in by)

    def selected(self, rows: Iterable[Row]) -> list[Row]:
        """Return the rows that count, in the same order.

        Args:
            rows: of any units; those of one unit in its keyed order.
        """
        inside = [row for row in rows if self.is_inside(row)]
        if self._chain.count.adds_up:
            inside = self._one_of_each_cell(inside)
        else:
            inside = self._lowest_of_each_cell(inside)
        return inside if self._chain.bound is None else lowest(self._chain.bound, inside)

    def is_inside(self, row: Row) -> bool:
        """Say whether a row lies in some cell, and has a unit where one is needed."""
        if self._chain.identify.is_required and row.unit is None:
            return False
        labels = row.labels
        return not self._judged or any(
            all(labels[place] is not None for place in group) for group in self._judged
        )

    def _lowest_of_each_cell(self, rows: list[Row]) -> list[Row]:
        """Return the rows that are among the lowest of all in the cells of every limit."""
        if not self._limits:
            return rows
        before: Counter[tuple[object, ...]] = Counter()
        lowest_rows = []
        for row in rows:
            counts = True
            for number, (places, at_most) in enumerate(self._limits):
                cell = (number, row[:3], tuple(row.labels[place] for place in places))
                counts &= before[cell] < at_most
                before[cell] += 1
            if counts:
                lowest_rows.append(row)
        return lowest_rows

    def _one_of_each_cell(self, rows: list[Row]) -> list[Row]:
        """Return one row for each bus, day and cell: the mean of what its own rows state."""
        values: dict[tuple[object, ...], list[Row]] = {}
        for row in rows:
            for places, _ in self._limits:
                cell = (row[:3], tuple(row.labels[place] for place in places))
                values.setdefault(cell, []).append(row)
        return [
            own[0]._replace(value=round_half_up(sum(row.value for row in own), len(own)))
            for own in values.values()
        ]

    def cells(self, rows: Iterable[Row]) -> list[Cells]:
        """Add up selected rows in the cells of each table of the vector."""
        adds_up = self._chain.count.adds_up
        counts: list[Cells] = [Counter() for _ in self._tables]
        one_end = self._chain.read.ends_apart
        for row in rows:
            day = None if adds_up else row.day
            for cells, places in zip(counts, self._tables, strict=True):
                labels = tuple(row.labels[place] for place in places)
                if not (one_end and None in labels):  # an end that the row does not have
                    cells[row.mode, day, labels] += row.value
        return counts


def lowest(bound: Bound, rows: Iterable[Row]) -> list[Row]:
    """Return the first rows of each unit and scope, as many as a bound lets count."""
    before: Counter[tuple[str | None, str]] = Counter()
    kept = []
    for row in rows:
        unit = row.unit, _scope(bound, row.day)
        before[unit] += 1
        if before[unit] <= bound.records_max:
            kept.append(row)
    return kept


@lru_cache(maxsize=1024)
def _scope(bound: Bound, day: date) -> str:
    """Name the piece of time over which a bound holds."""
    return bound.unit.scope(Block(day, ""))


def joined(chain: Chain, taps: Iterable[Tap], axes: Sequence[str]) -> list[Row]:
    """Return the trips of taps (PRIVACY 4.9), each with the labels of both its ends.

    Args:
        chain: whose join says within what.
        taps: in the order of time.
        axes: of the rows: those of a tap-on first, then those of a tap-off.

    Raises:
        ValueError: the chain joins no taps.
    """
    if chain.join is None or not chain.join.of_end:
        raise ValueError("a chain that joins no taps")
    ends = sum(axis in chain.join.of_end for axis in axes)
    of_card: dict[tuple[object, ...], list[Tap]] = {}
    for tap in taps:
        own = {"card_id": tap.unit, "mode": tap.mode, "service_date": tap.day}
        of_card.setdefault(tuple(own[name] for name in chain.join.within), []).append(tap)
    rows = []
    for own_taps in of_card.values():
        for tap, following in zip(own_taps, (*own_taps[1:], None), strict=True):
            if tap.is_on:
                is_ended = following is not None and not following.is_on
                end = following.labels if following and is_ended else (None,) * ends
                rows.append(Row(tap.unit, tap.mode, tap.day, (*tap.labels, *end)))
    return rows


def round_half_up(total: int, number: int) -> int:
    """Return the mean of whole numbers as one.

    Examples:
        >>> round_half_up(3, 2), round_half_up(-3, 2)
        (2, -1)
    """
    return (2 * total + number) // (2 * number)
