"""How far one unit can move each drawn vector: from the programme's bounds alone.

PRIVACY 1 and 5. A bound says how many records (or H3-cell-and-slot pairs) of a unit and day are
counted; everything coarser follows by adding days, and a trip by displacement: where a card-day
keeps its first k trips, one more trip can push another out, so two cells change; where no two trips
share a cell, it can take the places of several (PRIVACY 4.3, 4.5).
"""

from __future__ import annotations

from dataclasses import dataclass

from turnstile.privacy.events import Sensitivity
from turnstile.privacy.sensitivities import cells_at_most, difference_of_counts, records_at_most
from turnstile.privacy.units import CARD_UNITS, VEHICLE_UNITS, ProtectionUnit
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Programme, TableSpec, UnitBound
from turnstile.service_calendar import DAYS_PER_WEEK

_DAYS_OF = {
    ProtectionUnit.CARD_DAY: 1,
    ProtectionUnit.BUS_DAY: 1,
    ProtectionUnit.CARD_WEEK: DAYS_PER_WEEK,
    ProtectionUnit.BUS_WEEK: DAYS_PER_WEEK,
}
_HALF_RANGE_PER_KMH = 5  # speeds in steps of 0.1 km/h, centered: 10 V / 2 (privacy.md section 5)


def sensitivities(
    programme: Programme, table: TableSpec, statistic: str, *, days: int
) -> tuple[tuple[ProtectionUnit, Sensitivity | None], ...]:
    """Return the add/remove sensitivity of one draw for every unit; None where it is unbounded.

    Args:
        programme: whose bounds hold.
        table: that is drawn.
        statistic: which of its vectors.
        days: service days whose rows are added up in this one draw, >= 1.
    """
    step = _largest_step(table, statistic)
    if programme.source.feed.shape is RowShape.TELEMETRY:
        bound = programme.bound_of(ProtectionUnit.BUS_DAY)
        spread = _Spread(step, days, is_once=True)
        return tuple((unit, _of_unit(unit, bound, spread)) for unit in VEHICLE_UNITS)
    bound = programme.bound_of(ProtectionUnit.CARD_DAY)
    spread = _Spread(step, days, is_once=programme.is_kept_apart(table))
    coarse = tuple((unit, _of_unit(unit, bound, spread)) for unit in CARD_UNITS[1:])
    return ((ProtectionUnit.TRIP, _of_trip(bound, programme, table)), *coarse)


@dataclass(frozen=True, slots=True)
class _Spread:
    """How the records of a unit fall into the cells of a draw.

    Args:
        step: largest change of a cell by one record.
        days: service days that are added up in the draw.
        is_once: whether a unit counts at most once in a cell and day.
    """

    step: int
    days: int
    is_once: bool


def _largest_step(table: TableSpec, statistic: str) -> int:
    """Return how far one record moves one cell: half the speed range for sums, else 1."""
    if statistic == "sum" and table.clamp_kmh is not None:
        return _HALF_RANGE_PER_KMH * table.clamp_kmh
    return 1


def _of_unit(unit: ProtectionUnit, bound: UnitBound | None, spread: _Spread) -> Sensitivity | None:
    """Return the sensitivity of a unit of one day or more."""
    if bound is None:
        return None
    days_touched = min(spread.days, _DAYS_OF.get(unit, spread.days))
    records = bound.contributions_max * days_touched
    linf = spread.step * (days_touched if spread.is_once else records)
    l1 = spread.step * records
    # The sum of squares is at most the largest change times the sum of changes (Hoelder).
    return Sensitivity(l0=records, l1=l1, l2_squared=l1 * linf, linf=linf)


def _of_trip(bound: UnitBound | None, programme: Programme, table: TableSpec) -> Sensitivity:
    """Return the sensitivity of one trip, displacement included."""
    if bound is None:
        return records_at_most(1)
    groups = programme.kept_apart
    # A trip takes the place of one at most in each group, of none in one that it falls into or
    # stands behind in; without groups it pushes one out at most (PRIVACY 4.3, 4.5).
    others = len(groups) - (tuple(sorted(table.by)) in groups)
    displaced = max(1, min(bound.contributions_max, others))
    once = programme.is_kept_apart(table)
    return difference_of_counts(cells_at_most(displaced) if once else records_at_most(displaced))
