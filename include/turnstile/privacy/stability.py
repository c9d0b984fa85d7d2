"""How far one unit moves what is counted: a chain of small steps, each with its stability.

PRIVACY 1, 4 and 5. Counting is a chain: read, identify, join, filter, once in a cell, bound,
project, count. A *movement* says what one unit more changes among the records that a step hands on;
a step says which movement follows from which; the last one turns it into a sensitivity. The engines
of `counting` take their decisions from the same records, so that what is not in a chain does not
run, and what runs is in the sensitivity.
Proof: stability.proof.md, a lemma for each step (S1 to S8).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

from turnstile.privacy.events import Sensitivity
from turnstile.privacy.mechanisms.bounded_mean import sum_sensitivity
from turnstile.privacy.sensitivities import (
    difference_of_counts,
    difference_of_sums,
    marginals_of_distinct_cells,
    packed,
    records_at_most,
    repeated,
    side_by_side,
)
from turnstile.privacy.units import Block, ProtectionUnit, scope_of

By = tuple[str, ...]
Selection = tuple["OnceInACell | None", "Bound | None"]
"""Which records count: vectors that agree in it count the same ones."""
_TWO = 2
_PARTED_TRIPS = 2  # one that loses its end to a new tap-on, one that a new tap-off ends earlier


@dataclass(frozen=True, slots=True, order=True)
class CellLimit:
    """How many counted records of a unit may lie in one cell of a mode and service day.

    Args:
        by: dimensions of the cell, sorted.
        at_most: records, >= 1.
    """

    by: By
    at_most: int


@dataclass(frozen=True, slots=True)
class Movement:
    """What one unit more changes among the records that a step hands on.

    Args:
        unit: that is more.
        days: service days of the vector.
        added: records more, at most; None: any number.
        has_one_end: True if each of them is one end of a trip alone.
        other_ends: records of the same card, mode and day that are given another end, at most.
        of_end: dimensions that such an end decides.
        is_coupled: True if an end decides whether a record is there at all.
        displaced: records of the same bounded unit that may leave for one that is more.
        limits: on the records of one bounded unit in one cell.
        kept: records of one bounded unit that count, at most; None before a bound.
        instances: bounded units that the unit consists of, each of which adds `kept` records; None
            if the unit is a part of one, so that what it adds can displace others.
        days_in_instance: service days on which one bounded unit can have records.
    """

    unit: ProtectionUnit
    days: tuple[date, ...]
    added: int | None = None
    has_one_end: bool = False
    other_ends: int = 0
    of_end: By = ()
    is_coupled: bool = False
    displaced: int = 0
    limits: tuple[CellLimit, ...] = ()
    kept: int | None = None
    instances: int | None = 1
    days_in_instance: int = 1

    def in_a_cell(self, by: By, records: int) -> int:
        """Return how many of so many records of one bounded unit can share a cell, mode and day."""
        held = [limit.at_most for limit in self.limits if set(limit.by) <= set(by)]
        return min([*held, records])


@dataclass(frozen=True, slots=True)
class Read:
    """Read each record by itself (S1).

    Args:
        records_of_trip: that one trip leaves in the files: 1, or 2 where each end is one.
        ends_apart: True if nothing joins those two.
    """

    records_of_trip: int = 1
    ends_apart: bool = False

    def after(self, before: Movement) -> Movement:
        """A unit that is a record adds its records; a coarser one any number."""
        added = self.records_of_trip if before.unit.is_record else None
        return replace(before, added=added, has_one_end=self.ends_apart)


@dataclass(frozen=True, slots=True)
class Identify:
    """Say by the record alone which unit it is of (S2).

    Args:
        id_field: column of the id.
        is_required: True if a record without one counts nowhere.
    """

    id_field: str
    is_required: bool

    def after(self, before: Movement) -> Movement:
        """Nothing moves: no record names another's unit."""
        return before


@dataclass(frozen=True, slots=True)
class Join:
    """Make one record of several, among the records of one card (or vehicle) and day alone (S3).

    Args:
        within: columns in which joined records agree: the id and the service day among them.
        of_end: dimensions that the later record of a trip decides; none: no record ends another.
    """

    within: By
    of_end: By = ()

    def after(self, before: Movement) -> Movement:
        """A pair of taps is one record, and may come between the taps of two other trips."""
        if before.added is None or not self.of_end:
            return before
        return replace(before, added=1, other_ends=_PARTED_TRIPS, of_end=self.of_end)


@dataclass(frozen=True, slots=True)
class Filter:
    """Drop the record that lies in no cell, by its own labels alone (S4).

    Args:
        judged: groups of dimensions; a record stays that has a label in all of one group.
        drops: False if every such dimension has a label UNKNOWN.
    """

    judged: tuple[By, ...]
    drops: bool

    def after(self, before: Movement) -> Movement:
        """Where a group holds an end that a pair of taps decides, the whole record hangs on it."""
        judged = {axis for group in self.judged for axis in group}
        hangs_on_end = self.drops and not judged.isdisjoint(before.of_end)
        return replace(before, is_coupled=before.is_coupled or hangs_on_end)


@dataclass(frozen=True, slots=True)
class OnceInACell:
    """Keep of a unit, mode and day the lowest few of all records that share a cell (S5)."""

    limits: tuple[CellLimit, ...]

    def after(self, before: Movement) -> Movement:
        """One record more pushes at most one out of each limit."""
        return replace(
            before, limits=self.limits, displaced=len({limit.by for limit in self.limits})
        )


@dataclass(frozen=True, slots=True)
class Bound:
    """Keep the k lowest records of a unit, over all modes and days of its scope (S6).

    Args:
        unit: that is bounded.
        records_max: k, >= 1.
    """

    unit: ProtectionUnit
    records_max: int

    def after(self, before: Movement) -> Movement:
        """A unit of whole bounded units adds k each; a part of one moves its k by a difference."""
        return replace(
            before,
            kept=self.records_max,
            instances=_instances(before.unit, self.unit, before.days),
            days_in_instance=min(len(before.days), self.unit.days_max or len(before.days)),
        )


@dataclass(frozen=True, slots=True)
class Project:
    """Look at some dimensions of each record only (S7).

    Args:
        tables: dimensions of each table of the vector; several are marginals of one tap.
    """

    tables: tuple[By, ...]

    def after(self, before: Movement) -> Movement:
        """What leaves by a limit of the table's own dimensions lies in the newcomer's own cell."""
        limited = {limit.by for limit in before.limits}
        displaced = max(before.displaced - (tuple(sorted(by)) in limited) for by in self.tables)
        return replace(before, displaced=displaced)


@dataclass(frozen=True, slots=True)
class Count:
    """Add up what each record gives its cell (S8).

    Args:
        adds_up: True if the days of the vector share their cells; False: each has its own.
        mean_range: width of the public range of which a record adds its distance from the middle;
            None: it adds 1, or 0.
    """

    adds_up: bool = False
    mean_range: int | None = None

    def sensitivity(self, moved: Movement, tables: tuple[By, ...]) -> Sensitivity | None:
        """Return how far the vector moves; None if nothing bounds it."""
        if moved.kept is None:
            if moved.added is None:
                return None
            return side_by_side(*(_parted(moved, by) for by in tables))
        if self.adds_up:
            return self._of_added_days(moved, tables[0], moved.kept)
        if moved.instances is not None:
            return repeated(_of_kept(moved, tables, moved.kept), moved.instances)
        exchanged = moved.kept
        if moved.added == 1 and not moved.other_ends:
            exchanged = max(1, min(moved.kept, moved.displaced))
        return difference_of_counts(_of_kept(moved, tables, exchanged))

    def _of_added_days(self, moved: Movement, by: By, kept: int) -> Sensitivity:
        """Return how far a unit moves a vector to whose cells each of its days adds."""
        times = moved.instances or 1
        in_a_cell = moved.in_a_cell(by, kept) * moved.days_in_instance
        sensitivity = packed(kept * times, in_a_cell * times)
        if self.mean_range is not None:
            sensitivity = sum_sensitivity(sensitivity, self.mean_range)
        if moved.instances is not None:
            return sensitivity
        # A part of an instance: its records come, others go, and centered sums have either sign.
        return (
            difference_of_counts(sensitivity)
            if self.mean_range is None
            else difference_of_sums(sensitivity)
        )


@dataclass(frozen=True, slots=True)
class Chain:
    """The counting of one vector, step by step; a step that is None does not run.

    Args:
        join: of records to one; None where each record is counted as it came.
        once: limits on cells; None where as many as a bound lets count may share one.
        bound: on one unit; None where every record counts.
    """

    read: Read
    identify: Identify
    join: Join | None
    filter: Filter
    once: OnceInACell | None
    bound: Bound | None
    project: Project
    count: Count

    @property
    def selection(self) -> Selection:
        """Which of the records count."""
        return self.once, self.bound

    def movement(self, unit: ProtectionUnit, days: Sequence[date]) -> Movement:
        """Return what one unit more changes among the records that are counted."""
        moved = Movement(unit, tuple(days))
        steps = (self.read, self.identify, self.join, self.filter, self.once, self.bound)
        for step in (*steps, self.project):
            moved = moved if step is None else step.after(moved)
        return moved

    def sensitivity(self, unit: ProtectionUnit, days: Sequence[date]) -> Sensitivity | None:
        """Return how far one unit moves the vector of these days; None if nothing bounds it."""
        return self.count.sensitivity(self.movement(unit, days), self.project.tables)


def _parted(moved: Movement, by: By) -> Sensitivity:
    """Return how far a record moves a table that nothing bounds.

    A pair of taps, by the ends that the table, or the filter before it, sees (S3, S4, S7).
    """
    added = 1 if moved.has_one_end else moved.added or 0
    of_end = [axis in moved.of_end for axis in by]
    if not moved.other_ends or not (any(of_end) or moved.is_coupled):
        return records_at_most(added)
    sees_rows = any(of_end) and not all(of_end)
    return packed(added + moved.other_ends * (_TWO if sees_rows else 1), _TWO)


def _of_kept(moved: Movement, tables: tuple[By, ...], records: int) -> Sensitivity:
    """Return how far so many records of one bounded unit move a vector that they are added to."""
    held = [moved.in_a_cell(by, records) for by in tables]
    pair = {axis for by in tables for axis in by}
    are_marginals = len(tables) == _TWO == len(pair)
    if are_marginals and moved.in_a_cell(tuple(pair), moved.kept or records) == 1:
        return marginals_of_distinct_cells(records, *held)
    return side_by_side(*(packed(records, most) for most in held))


def _instances(unit: ProtectionUnit, bounded: ProtectionUnit, days: Sequence[date]) -> int | None:
    """Return how many instances of the bounded unit one unit can hold in these days.

    None if the unit is finer than the bounded one: it is a part of an instance.
    """
    if unit.days_max is not None and unit.days_max < (bounded.days_max or 0):
        return None
    if bounded.days_max == 1:
        return min(len(days), unit.days_max or len(days))
    return 1 if unit is bounded else len({scope_of(bounded, Block(day, "")) for day in days})
