"""How far one unit can move each drawn vector: from the programme's bounds alone.

PRIVACY 1, 4 and 5. A rule says how many records (or H3-cell-and-slot pairs) of one unit are
counted, and how many of them in one cell. A coarser unit is several instances of it; a finer one
can displace records, so it moves a table by a difference (PRIVACY 4.3, 4.5).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from turnstile.privacy.events import Sensitivity
from turnstile.privacy.mechanisms.bounded_mean import sum_sensitivity
from turnstile.privacy.mechanisms.distinct_over_limit import over_sensitivity
from turnstile.privacy.sensitivities import (
    difference_of_counts,
    difference_of_sums,
    marginals_of_distinct_cells,
    packed,
    records_at_most,
    repeated,
    side_by_side,
)
from turnstile.privacy.units import Block, ProtectionUnit, Subject, scope_of, units_of
from turnstile.programme.bounding_rule import BoundingRule, rule_of
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Measure, Outside, Programme, TableSpec

_TWO = 2  # a slot and a place
Bounds = tuple[tuple[ProtectionUnit, Sensitivity | None], ...]
# Of two taps (PRIVACY 4.9), tables of ends: two ends more, which may share a cell, and one less.
# Tables of the other end too, where a trip whose end has no label leaves every table.
_PARTED = Sensitivity(l0=3, l1=3, l2_squared=5, linf=2)
# Tables of ends by something else: a row more, and two rows with other ends, 2^2 + 1 and 2^2.
_PARTED_TWICE = Sensitivity(l0=5, l1=5, l2_squared=9, linf=2)
_OF_END = ("tap_off", "destination")


def sensitivities(
    programme: Programme, tables: Sequence[TableSpec], statistic: str, days: Sequence[date]
) -> Bounds:
    """Return the add/remove sensitivity of one vector for every unit; None where it is unbounded.

    Args:
        programme: whose bounds hold.
        tables: whose draws make up the vector; of one rule. Several are marginals of one tap.
        statistic: which of their vectors.
        days: service days of the vector: added up in each cell for telemetry, side by side for
            trips.
    """
    rule = rule_of(programme, tables[0])
    if programme.source.feed.shape is RowShape.TELEMETRY:
        return tuple(
            (unit, _added_up(unit, rule, tables[0], statistic, days))
            for unit in units_of(Subject.BUS)
        )
    return tuple(
        (unit, _of_trips(unit, rule, tables, days, programme)) for unit in units_of(Subject.CARD)
    )


def _added_up(
    unit: ProtectionUnit,
    rule: BoundingRule | None,
    table: TableSpec,
    statistic: str,
    days: Sequence[date],
) -> Sensitivity | None:
    """Return how far a unit of telemetry moves a vector that is added up over the days.

    A record is a bus on one day in one slot and cell, so an instance of the bounded unit adds at
    most one a day to a cell.
    """
    if rule is None:
        return None
    instances = _instances(unit, rule.unit, days)
    days_max = min(len(days), rule.unit.days_max or len(days))
    records, in_a_cell = (most * (instances or 1) for most in (rule.records_max, days_max))
    moved = _of_statistic(table, statistic, packed(records, in_a_cell))
    if instances is not None:
        return moved
    # A part of an instance: its records come, others go, and centered sums have either sign.
    return (difference_of_sums if statistic == "sum" else difference_of_counts)(moved)


def _of_statistic(table: TableSpec, statistic: str, counts: Sensitivity) -> Sensitivity:
    """Return how far a unit moves a statistic, from how far it moves the counts of its records."""
    if statistic == "sum" and table.mean_range is not None:
        return sum_sensitivity(counts, table.mean_range)
    if table.measure in {Measure.BUSES_OVER, Measure.OCCUPANCY}:
        return over_sensitivity(counts)
    return counts


def _of_trips(
    unit: ProtectionUnit,
    rule: BoundingRule | None,
    tables: Sequence[TableSpec],
    days: Sequence[date],
    programme: Programme,
) -> Sensitivity | None:
    """Return how far a unit moves counts of trips, each service day in cells of its own."""
    if unit.is_record and programme.source.feed.joins_taps:
        return _of_two_taps(rule, tables, programme)
    if rule is None:
        return records_at_most(1) if unit.is_record else None
    if unit.is_record:
        # A trip takes the place of one at most in each limit, of none in one that it falls into or
        # stands behind in; without limits it pushes one out at most (PRIVACY 4.3, 4.5).
        limited = {limit.by for limit in rule.limits}
        others = max(len(limited) - (tuple(sorted(table.by)) in limited) for table in tables)
        displaced = max(1, min(rule.records_max, others))
        return difference_of_counts(_of_records(rule, tables, displaced))
    one = _of_records(rule, tables, rule.records_max)
    instances = _instances(unit, rule.unit, days)
    return difference_of_counts(one) if instances is None else repeated(one, instances)


def _of_two_taps(
    rule: BoundingRule | None, tables: Sequence[TableSpec], programme: Programme
) -> Sensitivity:
    """Return how far a pair of taps moves a vector; its taps may come between those of others.

    It adds a row, and each of its taps may take a trip's end away or give it another (PRIVACY 4.9).
    Under a coarser bound all these rows may displace others, within that bound.
    """
    if rule is not None:
        return difference_of_counts(_of_records(rule, tables, rule.records_max))
    is_coupled = programme.domain.outside is Outside.DROP and any(
        any(_are_of_end(table)) for table in programme.tables
    )
    return side_by_side(*(_of_two_taps_in(table, is_coupled=is_coupled) for table in tables))


def _of_two_taps_in(table: TableSpec, *, is_coupled: bool) -> Sensitivity:
    """Return how far a pair of taps moves one table without a bound on cards.

    Args:
        table: what it counts.
        is_coupled: True if the end of a trip decides whether its tap-on is counted.
    """
    are_of_end = _are_of_end(table)
    if not any(are_of_end):
        return _PARTED if is_coupled else records_at_most(1)
    return _PARTED if all(are_of_end) else _PARTED_TWICE


def _are_of_end(table: TableSpec) -> list[bool]:
    """Say of each dimension whether it tells where or when a trip ended."""
    return [axis.startswith(_OF_END) for axis in table.by]


def _of_records(rule: BoundingRule, tables: Sequence[TableSpec], records: int) -> Sensitivity:
    """Return how far so many counted records of one unit move a vector of one table or several."""
    held = [min(records, rule.per_cell_max(table.by)) for table in tables]
    pair = {axis for table in tables for axis in table.by}
    are_marginals = len(tables) == _TWO == len(pair)
    if are_marginals and rule.per_cell_max(tuple(pair)) == 1:
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
