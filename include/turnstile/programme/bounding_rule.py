"""Which records of a unit count for a table: the bound that a programme sets, as one record.

PRIVACY 4. Tables of one rule count the same records, so that they are marginals of one table. A
table with a bound of its own counts others, and is no marginal of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from turnstile.privacy.stability import CellLimit
from turnstile.privacy.units import ProtectionUnit, Subject
from turnstile.programme.spec import Programme, TableSpec, UnitBound


@dataclass(frozen=True, slots=True)
class BoundingRule:
    """Which records of a unit count.

    Args:
        unit: that is bounded.
        records_max: records of one unit that count, over all modes.
        limits: on the records of one unit, mode and service day in one cell; none: `records_max`.
    """

    unit: ProtectionUnit
    records_max: int
    limits: tuple[CellLimit, ...] = ()

    @property
    def counted(self) -> str:
        """What its tables count, in words.

        Examples:
            >>> BoundingRule(ProtectionUnit.CARD_DAY, 6, (CellLimit(("tap_on_slot",), 2),)).counted
            'trips counted, at most 6 of a card_day, at most 2 of a mode and day in one tap_on_slot'
        """
        record = "trips" if self.unit.subject is Subject.CARD else "slots and cells of a day"
        limits = "".join(
            f", at most {limit.at_most} of a mode and day in one {' and '.join(limit.by)}"
            if limit.by
            else f", at most {limit.at_most} of a mode and day"
            for limit in self.limits
        )
        return f"{record} counted, at most {self.records_max} of a {self.unit}{limits}"


def bound_in_force(programme: Programme) -> UnitBound | None:
    """Return the bound on the unit of a day or more; None if only trips are counted one by one."""
    return next((bound for bound in programme.units if not bound.unit.is_record), None)


@lru_cache(maxsize=64)  # asked for each table of each day
def rule_of(programme: Programme, table: TableSpec) -> BoundingRule | None:
    """Return the rule of a table; None if every record counts."""
    bound = bound_in_force(programme)
    if bound is None:
        return None
    if table.trips_max is None:
        return BoundingRule(bound.unit, bound.contributions_max, _shared_limits(programme, bound))
    limits = tuple(
        CellLimit(tuple(sorted(limited_table.by)), limited_table.per_cell_max)
        for limited_table in _counted_with(programme, table)
        if limited_table.per_cell_max is not None
    )
    return BoundingRule(bound.unit, table.trips_max, limits)


def _counted_with(programme: Programme, table: TableSpec) -> tuple[TableSpec, ...]:
    """Return the tables whose limits hold for a table of a bound of its own.

    Flows between regions and between zones of one bound count the same trips, those that keep the
    limits of all of them, so that regions are sums of zones.
    """
    if not table.is_flow:
        return (table,)
    return tuple(
        flow_table
        for flow_table in programme.tables
        if flow_table.is_flow and flow_table.trips_max == table.trips_max
    )


def _shared_limits(programme: Programme, bound: UnitBound) -> tuple[CellLimit, ...]:
    """Return the limits of the tables that count the same records.

    Once in each cell: once in those of every table whose dimensions include no other table's,
    because who differs in the slot differs in slot and place too. Once in each finest cell: once in
    those of every table that no other refines, and so many as the programme says in those of all
    others, if it says so.
    """
    used = sorted({tuple(sorted(table.by)) for table in programme.shared_tables})
    if bound.once_per_cell:
        coarsest = [by for by in used if not any(set(other) < set(by) for other in used)]
        return tuple(CellLimit(by, 1) for by in coarsest)
    if not bound.once_per_finest_cell:
        return ()
    finest = [by for by in used if not any(set(by) < set(other) for other in used)]
    limits = [CellLimit(by, 1) for by in finest]
    if bound.coarse_cell_max is not None:
        limits += [CellLimit(by, bound.coarse_cell_max) for by in used if by not in finest]
    return tuple(limits)
