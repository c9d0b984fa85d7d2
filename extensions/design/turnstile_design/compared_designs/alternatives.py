"""Other designs at the same loss, and the error of each: planning before any data is touched.

The loss that is held fixed is that of the programme's own unit, as an epsilon at delta 1e-6 where
pure and concentrated noise are compared. Errors are those of noise alone, after reconciliation:
what a bound or a threshold drops is not in them: on generated trips it stands beside them
(`generated_bias`), and `turnstile report` measures it privately.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from turnstile.estimates.roll_ups import MINUTES_PER_HOUR
from turnstile.estimates.trips.trip_marginals import marginal_errors
from turnstile.privacy.guarantees import Zcdp, epsilon_tight, rho_for
from turnstile.privacy.mechanisms.registry import Calibration, MechanismKind
from turnstile.privacy.noise import noise_variance
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.bounding_rule import bound_in_force
from turnstile.programme.domain.public_domain import PublicDomain, regrained
from turnstile.programme.fields import TAPS
from turnstile.programme.mechanism_spec import MechanismSpec
from turnstile.programme.spec import Programme, UnitBound
from turnstile_design.compared_designs.designs import events_of_design
from turnstile_design.compared_designs.generated_bias import left_out

AT_DELTA = Fraction(1, 10**6)
_CELL_HEAVY = Fraction(3, 4)
_SLOTS_MINUTES = (15, 30, 60)
_BOUNDS = (2, 4, 6, 10, 20)
_WEEKLY_BOUNDS = (15, 30, 40)
LoadDomain = Callable[[Programme], PublicDomain]


@dataclass(frozen=True, slots=True)
class DesignErrors:
    """Standard deviations of the noise of one design of tap-ons of one mode.

    Args:
        varied: what differs from the programme.
        design: how.
        cell: of slot and location.
        time: of a slot.
        location: of a location and day.
        location_hour: of an hour at a location: comparable over slot lengths.
        day: of the mode's total.
        threshold: numbers below it are left out; None where nothing is.
        left_out: share of generated trips that the bound does not count; None if not known.
    """

    varied: str
    design: str
    cell: float
    time: float
    location: float
    location_hour: float
    day: float
    threshold: int | None = None
    left_out: float | None = None


def compared(
    programme: Programme, load_domain: LoadDomain, include: Path, *, mode: str
) -> tuple[DesignErrors, ...]:
    """Return the programme and its alternatives with their errors.

    Args:
        programme: of trips with a table of slots and locations of both taps.
        load_domain: returns the public cells of a programme.
        include: folder of `domains/`.
        mode: whose errors are shown.
    """
    errors = []
    for varied, design, other, domain in _designs(programme, load_domain):
        errors.append(_errors((varied, design), other, domain, include, mode))
    return tuple(errors)


def as_written(
    programme: Programme, domain: PublicDomain, include: Path, *, mode: str
) -> DesignErrors:
    """Return a programme's own errors."""
    return _errors(("as written", programme.name), programme, domain, include, mode)


def at_same_loss(mechanism: MechanismSpec, kind: MechanismKind) -> MechanismSpec:
    """Return the mechanism of another kind whose epsilon at delta 1e-6 is not larger.

    Examples:
        >>> trip = MechanismSpec(MechanismKind.DENSE_LAPLACE, ProtectionUnit.TRIP, Fraction(4), ())
        >>> float(at_same_loss(trip, MechanismKind.DENSE_GAUSSIAN).amount)
        0.311064954
    """
    if kind is mechanism.kind:
        return mechanism
    epsilon = mechanism.amount
    if mechanism.kind.amount == "rho":
        epsilon = epsilon_tight(Zcdp(mechanism.amount), AT_DELTA) or epsilon
    amount = rho_for(epsilon, AT_DELTA) if kind.amount == "rho" else epsilon
    is_thresholded = kind.is_thresholded
    delta = AT_DELTA / max(1, len(mechanism.split)) if is_thresholded else Fraction(0)
    return replace(mechanism, kind=kind, amount=amount, delta=delta, calibration=Calibration.TIGHT)


def _designs(
    programme: Programme, load_domain: LoadDomain
) -> Iterator[tuple[str, str, Programme, PublicDomain]]:
    """Yield what differs, how, the programme that does, and its cells."""
    domain, written_unit = load_domain(programme), programme.mechanism.unit
    yield "as written", programme.name, programme, domain
    for design, split in _splits(programme):
        mechanism = replace(programme.mechanism, split=split)
        yield "split", design, replace(programme, mechanism=mechanism), domain
    if programme.mechanism.kind.amount == "rho" and _has_marginals(programme):
        mechanism = replace(programme.mechanism, joint_marginals=True)
        yield "bound", "slots and places jointly", replace(programme, mechanism=mechanism), domain
    in_force = bound_in_force(programme)
    is_longer = in_force is not None and (in_force.unit.days_max or 0) > 1
    is_of_year = any(table.year_from is not None for table in programme.tables)
    for kind in MechanismKind:
        # a threshold is no part of a vector over several days; sums of the year are Gaussian
        cannot = (is_longer and kind.is_thresholded) or (
            is_of_year and not kind.noise.record.adds_up
        )
        if kind is not programme.mechanism.kind and not cannot:
            mechanism = at_same_loss(programme.mechanism, kind)
            yield "mechanism", str(kind), replace(programme, mechanism=mechanism), domain
    for design, units, unit in _units(programme):
        # the source's own calibration is for one trip: under it, k trips would cost k times more
        calibration = (
            Calibration.TIGHT if unit is not written_unit else programme.mechanism.calibration
        )
        mechanism = replace(programme.mechanism, unit=unit, calibration=calibration)
        yield "unit", design, replace(programme, units=units, mechanism=mechanism), domain
    for minutes in _SLOTS_MINUTES:
        if minutes != programme.time.slot_minutes:
            time = replace(programme.time, slot_minutes=minutes)
            other = replace(programme, time=time)
            yield "slots", f"{minutes} minutes", other, load_domain(other)
    yield "places", "every stop", programme, regrained(domain, lambda place: place.location)
    yield "places", "one a mode", programme, regrained(domain, lambda place: place.mode)


def _has_marginals(programme: Programme) -> bool:
    """Whether both marginals of a tap are drawn, and no two trips share a finest cell."""
    drawn = {table.by for table in programme.shared_tables}
    is_once = any(bound.once_per_finest_cell for bound in programme.units)
    return is_once and all({axes[:1], axes[1:]} <= drawn for axes in TAPS)


def _splits(programme: Programme) -> Iterator[tuple[str, tuple[tuple[str, Fraction], ...]]]:
    """Yield other shares of the amount."""
    names = [table.name for table in programme.tables]
    fine = {table.name for table in programme.tables if len(table.by) > 1}
    yield "equal", tuple((name, Fraction(1, len(names))) for name in names)
    if fine and len(fine) < len(names):
        each = {True: _CELL_HEAVY / len(fine), False: (1 - _CELL_HEAVY) / (len(names) - len(fine))}
        yield "three quarters on cells", tuple((name, each[name in fine]) for name in names)


def _units(programme: Programme) -> Iterator[tuple[str, tuple[UnitBound, ...], ProtectionUnit]]:
    """Yield other units and bounds."""
    in_force = bound_in_force(programme)
    base_bound = in_force or UnitBound(
        ProtectionUnit.CARD_DAY, 0, once_per_finest_cell=programme.mechanism.kind.amount == "rho"
    )
    unit, name = base_bound.unit, str(base_bound.unit).replace("_", "-")
    if not programme.mechanism.unit.is_record:
        yield "one trip", (UnitBound(ProtectionUnit.TRIP, 1),), ProtectionUnit.TRIP
    if base_bound.once_per_finest_cell:
        trips = base_bound.contributions_max or _BOUNDS[1]
        everywhere = replace(
            base_bound, once_per_cell=True, once_per_finest_cell=False, coarse_cell_max=None
        )
        bound = replace(everywhere, contributions_max=trips)
        yield f"{name} of {trips}, once in every table", (bound,), unit
        if any(len(table.by) == 1 for table in programme.shared_tables):
            bound = replace(base_bound, contributions_max=trips, coarse_cell_max=2)
            yield f"{name} of {trips}, two in a slot or place", (bound,), unit
    for trips in (*_BOUNDS, *_WEEKLY_BOUNDS) if (unit.days_max or 0) > 1 else _BOUNDS:
        if trips != base_bound.contributions_max:
            yield f"{name} of {trips}", (replace(base_bound, contributions_max=trips),), unit


def _errors(
    named: tuple[str, str], programme: Programme, domain: PublicDomain, include: Path, mode: str
) -> DesignErrors:
    bias = left_out(programme, programme.shared_tables[0], include)
    events = events_of_design(programme, domain)
    event_of = {event.table: event for event in events}
    if programme.mechanism.kind.is_thresholded:
        by = {table.by: event_of[table.name] for table in programme.tables}
        axes = TAPS[0]
        cell, time, location = (
            noise_variance(by[b].noise, by[b].scale) ** 0.5 for b in (axes, axes[:1], axes[1:])
        )
        nan = float("nan")  # sums lack what was left out: no noise formula gives their error
        return DesignErrors(*named, cell, time, location, nan, nan, by[axes].threshold, bias)
    errors = marginal_errors(programme, domain, events)[mode, TAPS[0]]
    slots, locations = errors.shape
    hour = max(1, MINUTES_PER_HOUR // programme.time.slot_minutes)
    blocks = ((1, 1), (1, locations), (slots, 1), (hour, 1), (slots, locations))
    cell, time, location, location_hour, day = (
        errors.deviation_of_block(*block) for block in blocks
    )
    return DesignErrors(*named, cell, time, location, location_hour, day, None, bias)
