"""How far one unit can move each drawn vector: from the programme's bounds alone.

PRIVACY 1 and 5. A bound says how many records (or H3-cell-and-slot pairs) of a unit and day are
counted; everything coarser follows by adding days, and a trip by displacement: where a card-day
keeps its first k trips, one more trip can push another out, so two cells change; where no two trips
share a cell, it can take the places of several (PRIVACY 4.3, 4.5).
"""

from __future__ import annotations

from turnstile.privacy.events import Sensitivity
from turnstile.privacy.mechanisms.bounded_mean import sum_sensitivity
from turnstile.privacy.mechanisms.distinct_over_limit import over_sensitivity
from turnstile.privacy.sensitivities import (
    cells_at_most,
    difference_of_counts,
    packed,
    records_at_most,
)
from turnstile.privacy.units import CARD_UNITS, VEHICLE_UNITS, ProtectionUnit
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Measure, Programme, TableSpec, UnitBound
from turnstile.service_calendar import DAYS_PER_WEEK

_DAYS_OF = {
    ProtectionUnit.CARD_DAY: 1,
    ProtectionUnit.BUS_DAY: 1,
    ProtectionUnit.CARD_WEEK: DAYS_PER_WEEK,
    ProtectionUnit.BUS_WEEK: DAYS_PER_WEEK,
}


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
    if programme.source.feed.shape is RowShape.TELEMETRY:
        bound = programme.bound_of(ProtectionUnit.BUS_DAY)
        counts = {unit: _of_unit(unit, bound, days, is_once=True) for unit in VEHICLE_UNITS}
    else:
        bound, is_once = programme.bound_of(ProtectionUnit.CARD_DAY), programme.is_kept_apart(table)
        counts = {unit: _of_unit(unit, bound, days, is_once=is_once) for unit in CARD_UNITS[1:]}
        counts = {ProtectionUnit.TRIP: _of_trip(bound, programme, table), **counts}
    return tuple(
        (unit, None if moved is None else _of_statistic(table, statistic, moved))
        for unit, moved in counts.items()
    )


def _of_statistic(table: TableSpec, statistic: str, counts: Sensitivity) -> Sensitivity:
    """Return how far a unit moves a statistic, from how far it moves the counts of its records."""
    if statistic == "sum" and table.clamp_kmh is not None:
        return sum_sensitivity(counts, table.clamp_kmh)
    if table.measure is Measure.BUSES_OVER:
        return over_sensitivity(counts)
    return counts


def _of_unit(
    unit: ProtectionUnit, bound: UnitBound | None, days: int, *, is_once: bool
) -> Sensitivity | None:
    """Return the sensitivity of a unit of one day or more; once a day in a cell, or any often."""
    if bound is None:
        return None
    days_touched = min(days, _DAYS_OF.get(unit, days))
    records = bound.contributions_max * days_touched
    return packed(records, days_touched if is_once else records)


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
