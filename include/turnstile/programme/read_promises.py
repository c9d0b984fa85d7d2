"""Read the half of a programme file that promises: bounds, tables, mechanism, caps."""

from __future__ import annotations

import math
from fractions import Fraction

from turnstile.errors import InputError
from turnstile.privacy.accounts import MICRO, NANO
from turnstile.privacy.mechanisms.registry import KNOWN_BAD, Calibration, MechanismKind
from turnstile.privacy.units import NeighboringRelation, ProtectionUnit, Subject, units_of
from turnstile.programme.fields import FLOWS, OF_OFF, OF_ON, TAPS, categories, dimensions
from turnstile.programme.mechanism_spec import CapSpec, MechanismSpec
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Measure, OccupancyClass, Query, TableSpec, UnitBound
from turnstile.programme.yaml_section import Section
from turnstile.service_calendar import ServiceWeek

_TRIP_TABLES = (  # on and off are never linked
    *((axis,) for tap in TAPS for axis in tap),
    *((category.name,) for category in categories(RowShape.TRIPS)),
    *TAPS,
)


def read_units(section: Section, shape: RowShape) -> tuple[UnitBound, ...]:
    """Read the contribution bounds."""
    subject = Subject.CARD if shape is RowShape.TRIPS else Subject.BUS
    allowed = {str(unit): unit for unit in units_of(subject) if unit.bound_key is not None}
    bounds = []
    for key in section.free_keys():
        if key not in allowed:
            section.fail(key, f"cannot be bounded here; bound one of {', '.join(allowed)}")
        bounds.append(_bound(section.section(key), allowed[key]))
    if not bounds:
        section.fail("", "is empty; bound at least one unit")
    if sum(not bound.unit.is_record for bound in bounds) > 1:
        section.fail(
            "", "bounds two units of a day or more; the coarser one alone decides: keep it"
        )
    return tuple(bounds)


def _bound(entry: Section, unit: ProtectionUnit) -> UnitBound:
    """Read the bound of one unit."""
    bound = UnitBound(
        unit=unit,
        contributions_max=entry.integer(str(unit.bound_key), least=1),
        once_per_cell=entry.flag("once_per_cell", default=False),
        once_per_finest_cell=entry.flag("once_per_finest_cell", default=False),
        coarse_cell_max=entry.integer("coarse_cell_at_most", least=1)
        if entry.has("coarse_cell_at_most")
        else None,
    )
    is_of_trips = unit.subject is Subject.CARD and not unit.is_record
    if bound.once_per_finest_cell and (bound.once_per_cell or not is_of_trips):
        entry.fail("once_per_finest_cell", "is for cards, and instead of once_per_cell")
    if bound.coarse_cell_max is not None and not bound.once_per_finest_cell:
        entry.fail("coarse_cell_at_most", "goes with once_per_finest_cell: true; add it")
    if unit.is_record and bound.contributions_max != 1:
        entry.fail("contributes", "must be 1: a trip is one row")
    entry.finish()
    return bound


def read_tables(section: Section, shape: RowShape) -> tuple[TableSpec, ...]:
    """Read the published tables."""
    known = dimensions(shape)
    tables = tuple(_table(section.section(key), key, known, shape) for key in section.free_keys())
    if not tables:
        section.fail("", "is empty; name at least one table")
    if all(table.trips_max is not None for table in tables):
        section.fail(
            "", "has no table that counts the trips under units; add one without trips_at_most"
        )
    return tables


def _table(section: Section, name: str, known: tuple[str, ...], shape: RowShape) -> TableSpec:
    """Read one table."""
    trips_max = section.integer("trips_at_most", least=1) if section.has("trips_at_most") else None
    per_cell_max = (
        section.integer("per_cell_at_most", least=1) if section.has("per_cell_at_most") else None
    )
    is_total = trips_max is not None and section.is_empty_list("by")
    by = () if is_total else section.texts("by")
    for dimension in by:
        if dimension not in known:
            section.fail("by", f"{dimension!r} is unknown; use some of {', '.join(known)}")
    usual = Measure.COUNT if shape is RowShape.TRIPS else Measure.MEAN_SPEED
    measure = section.choice("measure", Measure, usual)
    if (measure is Measure.COUNT) != (shape is RowShape.TRIPS):
        section.fail(
            "measure",
            "count is for trips; the other measures are for telemetry",
        )
    if (trips_max or per_cell_max) and measure is not Measure.COUNT:
        section.fail("trips_at_most", "is for tables of trips; remove it")
    if per_cell_max is not None and trips_max is None:
        section.fail("per_cell_at_most", "goes with trips_at_most of the same table; add it")
    if measure is Measure.COUNT and by not in _TRIP_TABLES and not is_total:
        _check_crossed(section, by, trips_max)
    if measure is not Measure.COUNT:
        _check_vehicles(section, by, known)
    clamp = section.integer("clamp_kmh", least=1) if measure is Measure.MEAN_SPEED else None
    late = section.integer("clamp_minutes", least=1) if measure is Measure.MEAN_DELAY else None
    limits: tuple[int, ...] = ()
    if measure is Measure.BUSES_OVER:
        limits = _limits(section)
    classes = _classes(section) if measure is Measure.OCCUPANCY else ()
    year_from = _year_from(section) if section.has("year_to_date_from") else None
    if year_from is not None and trips_max is None:
        section.fail("year_to_date_from", "goes with trips_at_most of the same table; add it")
    section.finish()
    return TableSpec(
        name,
        by,
        measure,
        clamp,
        limits,
        trips_max,
        per_cell_max,
        year_from,
        clamp_minutes=late,
        classes=classes,
    )


def _check_vehicles(section: Section, by: tuple[str, ...], known: tuple[str, ...]) -> None:
    """Check the dimensions of a table of vehicles: a slot, and what else they are told apart by."""
    time, *others = known
    if by[:1] != (time,) or len(by) == 1 or by != tuple(name for name in known if name in by):
        section.fail("by", f"must be {time} and one or more of {', '.join(others)}, in this order")


def _year_from(section: Section) -> ServiceWeek:
    """Read from which week years are counted."""
    text = section.text("year_to_date_from")
    try:
        return ServiceWeek.parse(text)
    except InputError:
        section.fail("year_to_date_from", f"{text!r} is no ISO week; write for example 2016-W27")


def _check_crossed(section: Section, by: tuple[str, ...], trips_max: int | None) -> None:
    """Check a table that is no marginal of a tap: of one tap, or of its origin and destination."""
    ends = (set(by) & set(OF_ON), set(by) & set(OF_OFF))
    if all(ends) and set(by) - {"day_period"} not in [set(flow) for flow in FLOWS]:
        section.fail(
            "by",
            "on and off are never linked but as origin and destination: both regions, or both "
            "zones, and day_period; any other table is of one tap",
        )
    if section.has("year_to_date_from"):
        section.fail("year_to_date_from", "is for slots, locations and totals; remove it")
    if trips_max is None:
        section.fail(
            "trips_at_most",
            "is missing: only a slot, a location, or slot and location of one tap count the trips "
            "under units; a table of other dimensions needs a bound of its own",
        )


def _limits(section: Section) -> tuple[int, ...]:
    """Read speed limits, integer km/h, in rising order."""
    texts = section.texts("limits_kmh")
    if not all(text.isdecimal() and int(text) > 0 for text in texts):
        section.fail("limits_kmh", "must be positive integers, km/h; write for example [40, 60]")
    return tuple(sorted(int(text) for text in texts))


def _classes(section: Section) -> tuple[int, ...]:
    """Read classes of occupancy, in rising order; EMPTY is no class, as all are that or fuller."""
    words = section.texts("at_least")
    known = [one for one in OccupancyClass if one.number]
    if not set(words) <= set(known):
        section.fail("at_least", f"must be some of {', '.join(known)}")
    return tuple(sorted(OccupancyClass(word).number for word in words))


def read_mechanism(
    section: Section,
    tables: tuple[TableSpec, ...],
    units: tuple[UnitBound, ...],
    caps: tuple[CapSpec, ...],
) -> MechanismSpec:
    """Read the mechanism and how its amount is split."""
    name = section.text("kind")
    if name in KNOWN_BAD:  # PRIVACY 5.7
        section.fail("kind", f"{name!r} may not publish: {KNOWN_BAD[name]}; write another")
    kind = section.choice("kind", MechanismKind)
    unit = section.choice("unit", ProtectionUnit)
    if unit not in {bound.unit for bound in units}:
        section.fail("unit", f"{unit} has no bound under units; add one, or choose a bounded unit")
    if any(table.year_from for table in tables) and kind is not MechanismKind.DENSE_GAUSSIAN:
        section.fail("kind", "must be dense_gaussian where a table has year_to_date_from")
    if kind.is_thresholded:
        return _thresholded(section, kind, tables, unit)
    amount = _amount(section, kind.amount, caps)
    split = _split(section.section("split"), tables)
    joint = section.flag("joint_marginals", default=False)
    if joint and (kind.amount != "rho" or not any(one.once_per_finest_cell for one in units)):
        section.fail("joint_marginals", "is for dense_gaussian and once_per_finest_cell")
    section.finish()
    return MechanismSpec(kind, unit, amount, split, joint_marginals=joint)


def _amount(section: Section, key: str, caps: tuple[CapSpec, ...]) -> Fraction:
    """Read the amount of a release: as it is, or as a share of the cap over a window of weeks.

    A share is rounded down to what the ledger counts in, so that the window's weeks fit under the
    cap whatever each is rounded up to.
    """
    if not section.has("share_of_cap"):
        return section.amount(key)
    share = section.amount("share_of_cap")
    windows = [cap for cap in caps if cap.window_weeks is not None]
    amounts = [cap.rho if key == "rho" else cap.epsilon for cap in windows]
    if len(windows) != 1 or amounts[0] is None:
        section.fail("share_of_cap", f"needs one cap over window_weeks, stated in {key}; add it")
    if share * (windows[0].window_weeks or 1) > 1:
        weeks = windows[0].window_weeks
        section.fail(
            "share_of_cap", f'{share} of {weeks} weeks is above 1; write at most "1/{weeks}"'
        )
    parts = NANO if key == "rho" else MICRO
    return Fraction(math.floor(share * amounts[0] * parts), parts)


def _thresholded(
    section: Section, kind: MechanismKind, tables: tuple[TableSpec, ...], unit: ProtectionUnit
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
    windowed = unit.is_lifetime
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
    """Return whether the loss of a unit is finite: a bound a day bounds every coarser unit too."""
    return unit.is_record or any(not bound.unit.is_record for bound in units)


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
