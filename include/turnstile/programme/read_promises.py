"""Read the half of a programme file that promises: bounds, tables, mechanism, caps."""

from __future__ import annotations

from fractions import Fraction

from turnstile.privacy.units import CARD_UNITS, VEHICLE_UNITS, NeighboringRelation, ProtectionUnit
from turnstile.programme.fields import TAPS, dimensions
from turnstile.programme.mechanism_spec import Calibration, CapSpec, MechanismKind, MechanismSpec
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Measure, Query, TableSpec, UnitBound
from turnstile.programme.yaml_section import Section

_TRIP_TABLES = (  # on and off are never linked
    *((dimension,) for dimension in dimensions(RowShape.TRIPS)),
    *TAPS,
)
_BOUND_KEY = {
    ProtectionUnit.TRIP: "contributes",
    ProtectionUnit.CARD_DAY: "trips_at_most",
    ProtectionUnit.BUS_DAY: "cells_at_most",
}


def read_units(section: Section, shape: RowShape) -> tuple[UnitBound, ...]:
    """Read the contribution bounds."""
    allowed = CARD_UNITS if shape is RowShape.TRIPS else VEHICLE_UNITS
    bounds = []
    for key in section.free_keys():
        if key not in set(allowed) & set(_BOUND_KEY):
            names = ", ".join(unit for unit in allowed if unit in _BOUND_KEY)
            section.fail(key, f"cannot be bounded here; bound one of {names}")
        unit = ProtectionUnit(key)
        entry = section.section(key)
        bound = UnitBound(
            unit=unit,
            contributions_max=entry.integer(_BOUND_KEY[unit], least=1),
            once_per_cell=entry.flag("once_per_cell", default=False),
            once_per_finest_cell=entry.flag("once_per_finest_cell", default=False),
        )
        if bound.once_per_finest_cell and (
            bound.once_per_cell or unit is not ProtectionUnit.CARD_DAY
        ):
            entry.fail("once_per_finest_cell", "is for card_day, and instead of once_per_cell")
        if unit is ProtectionUnit.TRIP and bound.contributions_max != 1:
            entry.fail("contributes", "must be 1: a trip is one row")
        entry.finish()
        bounds.append(bound)
    if not bounds:
        section.fail("", "is empty; bound at least one unit")
    return tuple(bounds)


def read_tables(section: Section, shape: RowShape) -> tuple[TableSpec, ...]:
    """Read the published tables."""
    known = dimensions(shape)
    tables = tuple(_table(section.section(key), key, known, shape) for key in section.free_keys())
    if not tables:
        section.fail("", "is empty; name at least one table")
    return tables


def _table(section: Section, name: str, known: tuple[str, ...], shape: RowShape) -> TableSpec:
    """Read one table."""
    by = section.texts("by")
    for dimension in by:
        if dimension not in known:
            section.fail("by", f"{dimension!r} is unknown; use some of {', '.join(known)}")
    usual = Measure.COUNT if shape is RowShape.TRIPS else Measure.MEAN_SPEED
    measure = section.choice("measure", Measure, usual)
    if (measure is Measure.COUNT) != (shape is RowShape.TRIPS):
        section.fail(
            "measure", "count is for trips; mean_speed, buses and buses_over are for telemetry"
        )
    if measure is Measure.COUNT and by not in _TRIP_TABLES:
        section.fail(
            "by",
            "must be a slot, a location, or slot and location, of one side: on and "
            "off are never linked",
        )
    if measure is not Measure.COUNT and by != known:
        section.fail("by", f"must be [{', '.join(known)}] for telemetry")
    clamp = section.integer("clamp_kmh", least=1) if measure is Measure.MEAN_SPEED else None
    limits: tuple[int, ...] = ()
    if measure is Measure.BUSES_OVER:
        limits = _limits(section)
    section.finish()
    return TableSpec(name=name, by=by, measure=measure, clamp_kmh=clamp, limits_kmh=limits)


def _limits(section: Section) -> tuple[int, ...]:
    """Read speed limits, whole km/h, in rising order."""
    texts = section.texts("limits_kmh")
    if not all(text.isdecimal() and int(text) > 0 for text in texts):
        section.fail("limits_kmh", "must be whole positive km/h; write for example [40, 60]")
    return tuple(sorted(int(text) for text in texts))


def read_mechanism(
    section: Section, tables: tuple[TableSpec, ...], units: tuple[UnitBound, ...]
) -> MechanismSpec:
    """Read the mechanism and how its amount is split."""
    kind = section.choice("kind", MechanismKind)
    unit = section.choice("unit", ProtectionUnit)
    if unit not in {bound.unit for bound in units}:
        section.fail("unit", f"{unit} has no bound under units; add one, or choose a bounded unit")
    if kind is MechanismKind.STABILITY_HISTOGRAM:
        return _thresholded(section, tables, unit)
    amount = section.amount("rho" if kind is MechanismKind.DENSE_GAUSSIAN else "epsilon")
    split = _split(section.section("split"), tables)
    section.finish()
    return MechanismSpec(kind=kind, unit=unit, amount=amount, split=split)


def _thresholded(
    section: Section, tables: tuple[TableSpec, ...], unit: ProtectionUnit
) -> MechanismSpec:
    """Read a stability histogram: tight, or by the source's own budgets (replace-one epsilons).

    Adding or removing a trip costs half of a budget (PRIVACY 5.4), so the amount is half their sum.
    """
    calibration = section.choice("calibration", Calibration, Calibration.TIGHT)
    delta = section.amount("delta")
    if delta >= 1:
        section.fail("delta", f"{delta} is no probability to speak of; write for example 1e-7")
    if calibration is Calibration.SOURCE:
        if unit is not ProtectionUnit.TRIP:
            section.fail("unit", "must be trip: the source's calibration protects no other unit")
        budgets = section.section("budgets")
        found = [(label, budgets.amount(label)) for label in _labels(tables)]
        budgets.finish()
        total = sum((budget for _, budget in found), Fraction(0))
        amount, split = total / 2, tuple((label, budget / total) for label, budget in found)
    else:
        amount, split = section.amount("epsilon"), _split(section.section("split"), tables)
    section.finish()
    kind = MechanismKind.STABILITY_HISTOGRAM
    return MechanismSpec(kind, unit, amount, split, delta, calibration)


def _labels(tables: tuple[TableSpec, ...]) -> list[str]:
    """Name every vector that gets a share: `table` for a count, `table/statistic` otherwise."""
    return [
        table.name if table.measure is Measure.COUNT else f"{table.name}/{statistic}"
        for table in tables
        for statistic in table.statistics
    ]


def _split(section: Section, tables: tuple[TableSpec, ...]) -> tuple[tuple[str, Fraction], ...]:
    """Read the share of every draw."""
    shares = tuple((label, section.amount(label)) for label in _labels(tables))
    section.finish()
    total = sum(share for _, share in shares)
    if total != 1:
        section.fail("", f"shares add up to {total}; they must add up to 1")
    return shares


def read_cap(section: Section, units: tuple[UnitBound, ...]) -> CapSpec:
    """Read one cap."""
    unit = section.choice("unit", ProtectionUnit)
    if not _is_bounded(unit, units):
        section.fail("unit", f"{unit} is not bounded by any unit under units, so no cap can hold")
    in_epsilon, in_rho = section.has("epsilon"), section.has("rho")
    if in_epsilon == in_rho:
        section.fail("epsilon", "state the cap in epsilon or in rho; write exactly one of the two")
    windowed = unit in (ProtectionUnit.CARD, ProtectionUnit.BUS)
    cap = CapSpec(
        unit=unit,
        relation=section.choice("relation", NeighboringRelation, NeighboringRelation.ADD_REMOVE),
        epsilon=section.amount("epsilon") if in_epsilon else None,
        rho=section.amount("rho") if in_rho else None,
        delta=section.amount("delta") if section.has("delta") else None,
        window_weeks=section.integer("window_weeks", 52, least=1) if windowed else None,
        line=section.line,
    )
    section.finish()
    return cap


def _is_bounded(unit: ProtectionUnit, units: tuple[UnitBound, ...]) -> bool:
    """Tell whether the loss of a unit is finite: a bound a day bounds every coarser unit too."""
    by_day = any(bound.unit is not ProtectionUnit.TRIP for bound in units)
    return by_day or unit is ProtectionUnit.TRIP


def read_queries(section: Section, shape: RowShape) -> tuple[Query, ...]:
    """Read what a release of trips is meant to answer; optional."""
    if not section.has("meant_for"):
        return ()
    names = section.texts("meant_for")
    if shape is not RowShape.TRIPS:
        section.fail("meant_for", "is for trips; remove it")
    if unknown := set(names) - set(Query):
        section.fail("meant_for", f"{min(unknown)!r} is unknown; use some of {', '.join(Query)}")
    return tuple(Query(name) for name in names)
