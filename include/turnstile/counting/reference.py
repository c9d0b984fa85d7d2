"""Counting in plain Python, step by step as a chain says: the measure of the engines.

For small worlds (`pipeline.trials.small_worlds`) and for tests, which hold the engines' tables
against it. Records come in the keyed order of their unit (PRIVACY 4.2), as labels: what a label is
of a slot, a place or a position, the engines alone know.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from datetime import date
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple

from turnstile.privacy.mechanisms.bounded_mean import STEPS_PER_KMH, center_steps
from turnstile.privacy.stability import Bound, Chain
from turnstile.privacy.units import Block

MILLI = 1000
_COLUMNS = ("card_id", "mode", "service_date")  # the first fields of a tap, as canonical rows say
Label = int | str | None  # None: in no cell


class Row(NamedTuple):
    """A record that a chain counts.

    Args:
        unit: card or bus; None if it names none.
        mode: of the trip or bus.
        day: service day.
        labels: one for each axis of the count.
        total: sum of what a mean is taken of, from the begin of its range, in thousandths.
        number: of the readings that it is the sum of.
    """

    unit: str | None
    mode: str
    day: date
    labels: tuple[Label, ...]
    total: int = 0
    number: int = 1


class Tap(NamedTuple):
    """A tap of one card, in the order of its day; the labels are those of its own end."""

    unit: str
    mode: str
    day: date
    is_on: bool
    labels: tuple[Label, ...]


Cell = tuple[str, date | None, tuple[Label, ...]]
Cells = Counter[Cell]


class Judged(NamedTuple):
    """A row with all that its own content decides.

    Args:
        row: itself.
        is_inside: whether it lies in some cell, and has a unit where one is needed.
        limited: for each limit on cells, the cell of its unit; and how many may lie there.
        scope: unit and piece of time over which the bound holds; None without a bound.
    """

    row: Row
    is_inside: bool
    limited: tuple[tuple[Hashable, int], ...]
    scope: Hashable


class ReferenceCount:
    """The steps of one chain over rows whose labels are those of some axes."""

    def __init__(self, chain: Chain, axes: Sequence[str]) -> None:
        self._chain, self._place = chain, {axis: n for n, axis in enumerate(axes)}
        judged = chain.filter.judged if chain.filter.drops else ()
        self._groups = [self._places(group) for group in judged]
        limits = () if chain.once is None else chain.once.limits
        self._limits = [(self._places(limit.by), limit.at_most) for limit in limits]
        self._tables = [self._places(by) for by in chain.project.tables]

    def _places(self, by: Iterable[str]) -> tuple[int, ...]:
        return tuple(self._place[axis] for axis in by)

    def judged(self, row: Row) -> Judged:
        """Return what the row alone decides: filter, cells that are limited, scope of the bound."""
        labels, bound = row.labels, self._chain.bound
        is_inside = not self._groups or any(
            all(labels[place] is not None for place in group) for group in self._groups
        )
        limited = tuple(
            ((number, row[:3], tuple(labels[place] for place in places)), at_most)
            for number, (places, at_most) in enumerate(self._limits)
        )
        has_unit = row.unit is not None or not self._chain.identify.is_required
        scope = None if bound is None else (row.unit, _scope(bound, row.day))
        return Judged(row, is_inside and has_unit, limited, scope)

    def selected(self, rows: Iterable[Judged]) -> list[Row]:
        """Return the rows that count, in the same order.

        Args:
            rows: of any units; those of one unit in its keyed order.
        """
        inside = [judged for judged in rows if judged.is_inside]
        once = self._one_of_each_cell if self._chain.count.adds_up else lowest_of_each_cell
        left = once(inside) if self._limits else inside
        bound = self._chain.bound
        return [
            judged.row for judged in (left if bound is None else lowest(left, bound.records_max))
        ]

    def _one_of_each_cell(self, rows: list[Judged]) -> list[Judged]:
        """Return one row for each bus, day and cell: the sum of what its own rows state."""
        of_cell: dict[Hashable, list[Judged]] = {}
        for judged in rows:
            of_cell.setdefault(judged.limited, []).append(judged)
        return [
            group[0]._replace(
                row=group[0].row._replace(
                    total=sum(member.row.total for member in group), number=len(group)
                )
            )
            for group in of_cell.values()
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
                    cells[row.mode, day, labels] += self._amount(row)
        return counts

    def _amount(self, row: Row) -> int:
        """Return what a row adds to its cell: 1, or its clamped mean from the middle, in steps.

        Of a statistic of those above a limit every row is one that is above it.
        """
        mean_range = self._chain.count.mean_range
        if mean_range is None:
            return 1
        clamped = min(max(row.total, 0), MILLI * mean_range * row.number)
        step = MILLI // STEPS_PER_KMH * row.number
        return (2 * clamped + step) // (2 * step) - center_steps(mean_range)


def lowest_of_each_cell(rows: Iterable[Judged]) -> list[Judged]:
    """Return the rows that are among the lowest of all in each of their limited cells."""
    before: dict[Hashable, int] = {}
    low = []
    for judged in rows:
        counts = True
        for cell, at_most in judged.limited:
            number = before.get(cell, 0)
            before[cell] = number + 1
            counts = counts and number < at_most
        if counts:
            low.append(judged)
    return low


def lowest(rows: Iterable[Judged], at_most: int) -> list[Judged]:
    """Return the first rows of each unit and scope, as many as a bound lets count."""
    before: dict[Hashable, int] = {}
    kept = []
    for judged in rows:
        number = before.get(judged.scope, 0)
        before[judged.scope] = number + 1
        if number < at_most:
            kept.append(judged)
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
    of_card: dict[object, list[Tap]] = {}
    within = itemgetter(*map(_COLUMNS.index, chain.join.within))
    for tap in taps:
        of_card.setdefault(within(tap), []).append(tap)
    rows = []
    for own_taps in of_card.values():
        for tap, following in zip(own_taps, (*own_taps[1:], None), strict=True):
            if tap.is_on:
                is_ended = following is not None and not following.is_on
                end = following.labels if following and is_ended else (None,) * ends
                rows.append(Row(tap.unit, tap.mode, tap.day, (*tap.labels, *end)))
    return rows
