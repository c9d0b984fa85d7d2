"""Designs: programmes that are looked at and not released, so that their caps do not matter yet.

What is varied at the loss of the programme's own unit: the split over cells, slots, places and
totals, the bounds, the mechanism, the unit itself, and the grain of slots and places. Nothing but
public numbers goes in. `noise_errors` and `estimate_ranking` say how near each would be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from turnstile.privacy.events import DrawEvent
from turnstile.privacy.guarantees import SHOWN_AT_DELTA, Zcdp, epsilon_tight, rho_for
from turnstile.privacy.mechanisms.registry import Calibration, MechanismKind
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.bounding_rule import bound_in_force
from turnstile.programme.domain.public_domain import Place, PublicDomain
from turnstile.programme.fields import TAPS
from turnstile.programme.mechanism_spec import MechanismSpec
from turnstile.programme.spec import Programme, TableSpec, UnitBound
from turnstile.release.numbers import Statistic, deviations_of
from turnstile.release.plan import make_plan
from turnstile.service_calendar import ServiceWeek

ANY_WEEK = ServiceWeek(2016, 30)  # errors are the same in every week
OWN = "as published"
_SLOTS_MINUTES = (15, 30, 60)
_DAILY_BOUNDS, _LONGER_BOUNDS = (2, 4, 10, 20), (10, 15, 30, 40)
_NONE, _TENTH, _EIGHTH, _QUARTER = (Fraction(part) for part in ("0", "1/10", "1/8", "1/4"))
_PARTS = {
    "cells alone": (_NONE, _NONE),
    "a quarter on slots": (_QUARTER, _NONE),
    "a quarter on places": (_NONE, _QUARTER),
    "an eighth each on slots and places": (_EIGHTH, _EIGHTH),
    "a quarter each on slots and places": (_QUARTER, _QUARTER),
}
_POSTCODE_REGION = 3  # digits of a postcode that a region shares
Label = Callable[[Place], str]


@dataclass(frozen=True, slots=True)
class Alternative:
    """A programme at the loss of another, and the names that its places are published under.

    Args:
        varied: what differs from the programme as written.
        design: how.
        programme: that differs.
        label: names the place that a stop is published as.
    """

    varied: str
    design: str
    programme: Programme
    label: Label = lambda place: place.area


def alternatives(programme: Programme, stops: Sequence[Place]) -> Iterator[Alternative]:
    """Yield the programme as written, and what differs from it at the same loss.

    Args:
        programme: of trips with a table of slots and places of both taps.
        stops: the finest places of the mode whose errors are shown.
    """
    yield Alternative("as written", programme.name, programme)
    for design, other in _splits(programme):
        yield Alternative("split", design, other)
    if programme.mechanism.kind.amount == "rho" and _has_marginals(programme):
        mechanism = replace(programme.mechanism, joint_marginals=True)
        yield Alternative(
            "bound", "slots and places jointly", replace(programme, mechanism=mechanism)
        )
    for design, bound in _bounds(programme):
        is_same = bound.unit is programme.mechanism.unit
        yield Alternative("bound" if is_same else "unit", design, _of_unit(programme, bound))
    for kind in _kinds(programme):
        mechanism = at_same_loss(programme.mechanism, kind)
        yield Alternative("mechanism", str(kind), replace(programme, mechanism=mechanism))
    if not programme.mechanism.unit.is_record:
        yield Alternative(
            "unit", "one trip", _of_unit(programme, UnitBound(ProtectionUnit.TRIP, 1))
        )
    for minutes in _SLOTS_MINUTES:
        if minutes != programme.time.slot_minutes:
            time = replace(programme.time, slot_minutes=minutes)
            yield Alternative("slots", f"{minutes} minutes", replace(programme, time=time))
    areas = len({place.area for place in stops})
    for grain, label in grains().items():
        places = len({label(place) for place in stops})
        if grain != OWN and places != areas:
            yield Alternative("places", f"{grain} ({places})", programme, label)


def grains() -> dict[str, Label]:
    """Return names of places by grain, from the finest."""
    return {
        "stop": lambda place: place.location,
        OWN: lambda place: place.area,
        "region": _region,
        "one a mode": lambda place: place.mode,
    }


def largest_mode(domain: PublicDomain) -> str:
    """Return the mode with the most places, whose errors are shown."""
    return max(
        domain.modes, key=lambda mode: len({p.area for p in domain.places if p.mode == mode})
    )


def tables_of_estimates(programme: Programme) -> dict[tuple[str, ...], TableSpec]:
    """Return the tables that count the same records, and that of totals, by their dimensions.

    Any other table with a bound of its own is no marginal of them.
    """
    tables = programme.tables
    return {table.by: table for table in tables if table.trips_max is None or table.is_total}


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
        epsilon = epsilon_tight(Zcdp(mechanism.amount), SHOWN_AT_DELTA) or epsilon
    amount = rho_for(epsilon, SHOWN_AT_DELTA) if kind.amount == "rho" else epsilon
    is_thresholded = kind.is_thresholded
    delta = SHOWN_AT_DELTA / max(1, len(mechanism.split)) if is_thresholded else Fraction(0)
    return replace(mechanism, kind=kind, amount=amount, delta=delta, calibration=Calibration.TIGHT)


def events_of_design(programme: Programme, domain: PublicDomain) -> tuple[DrawEvent, ...]:
    """Return the draws of a week."""
    return make_plan(replace(programme, caps=()), domain, ANY_WEEK).events


def deviations_of_design(programme: Programme, domain: PublicDomain) -> dict[Statistic, float]:
    """Return the standard deviation of the noise of each statistic."""
    return deviations_of(events_of_design(programme, domain))


def _splits(programme: Programme) -> Iterator[tuple[str, Programme]]:
    """Yield programmes whose loss is split otherwise."""
    shares = dict(programme.mechanism.split)
    totals = [table.name for table in programme.tables if table.is_total]
    of_totals = sum((shares[name] for name in totals), _NONE)
    bound = bound_in_force(programme)
    for design, (slots, places) in _PARTS.items():
        has_coarse = slots or places
        other = _split(programme, slots, places, of_totals if has_coarse else _NONE)
        yield design, other
        if has_coarse and bound is not None and bound.once_per_finest_cell:
            twice = replace(bound, coarse_cell_max=2)
            yield f"{design}, two trips of a card in one", replace(other, units=(twice,))
    if totals:
        yield "a tenth on totals", _split(programme, _NONE, _NONE, _TENTH)


def _split(programme: Programme, slots: Fraction, places: Fraction, totals: Fraction) -> Programme:
    """Return the programme with so much on slots, places and totals, tap-ons and -offs alike."""
    named = tables_of_estimates(programme)
    tables = [table for table in programme.tables if table not in named.values()]
    split = [pair for pair in programme.mechanism.split if pair[0] in {t.name for t in tables}]
    rest = 1 - slots - places - totals - sum(share for _, share in split)
    for axes in TAPS:
        for by, share in ((axes, rest / 2), (axes[:1], slots / 2), (axes[1:], places / 2)):
            if share and (by in named or axes in named):
                table = named.get(by) or TableSpec("_".join(by), by)
                tables.append(table)
                split.append((table.name, share))
    if totals:
        tables.append(named[()])
        split.append((named[()].name, totals))
    mechanism = replace(programme.mechanism, split=tuple(split))
    return replace(programme, tables=tuple(tables), mechanism=mechanism)


def _bounds(programme: Programme) -> Iterator[tuple[str, UnitBound]]:
    """Yield other bounds, of card-days where the programme protects trips alone."""
    bound = bound_in_force(programme) or UnitBound(
        ProtectionUnit.CARD_DAY, 0, once_per_finest_cell=programme.mechanism.kind.amount == "rho"
    )
    others = _LONGER_BOUNDS if (bound.unit.days_max or 0) > 1 else _DAILY_BOUNDS
    name = str(bound.unit).replace("_", "-")
    for trips in others:
        if trips != bound.contributions_max:
            yield f"{name} of {trips}", replace(bound, contributions_max=trips)
    if bound.once_per_finest_cell and any(len(table.by) == 1 for table in programme.shared_tables):
        trips = bound.contributions_max or others[1]
        twice = replace(bound, contributions_max=trips, coarse_cell_max=2)
        yield f"{name} of {trips}, two in a slot or place", twice
        once = replace(twice, once_per_cell=True, once_per_finest_cell=False, coarse_cell_max=None)
        yield f"{name} of {trips}, once in every table", once


def _of_unit(programme: Programme, bound: UnitBound) -> Programme:
    """Return the programme under another bound, its amount that of the bound's unit."""
    mechanism = programme.mechanism
    if bound.unit is not mechanism.unit:
        # the source's own calibration is for one trip: under it, k trips would cost k times more
        mechanism = replace(mechanism, unit=bound.unit, calibration=Calibration.TIGHT)
    return replace(programme, units=(bound,), mechanism=mechanism)


def _kinds(programme: Programme) -> Iterator[MechanismKind]:
    """Yield the other mechanisms that the programme could have."""
    bound = bound_in_force(programme)
    is_longer = bound is not None and (bound.unit.days_max or 0) > 1
    is_of_year = any(table.year_from is not None for table in programme.tables)
    for kind in MechanismKind:
        # a threshold is no part of a vector over several days; sums of the year are Gaussian
        cannot = (is_longer and kind.is_thresholded) or (
            is_of_year and not kind.noise.record.adds_up
        )
        if kind is not programme.mechanism.kind and not cannot:
            yield kind


def _has_marginals(programme: Programme) -> bool:
    """Whether both marginals of a tap are drawn, and no two trips share a finest cell."""
    drawn = {table.by for table in programme.shared_tables}
    is_once = any(bound.once_per_finest_cell for bound in programme.units)
    return is_once and all({axes[:1], axes[1:]} <= drawn for axes in TAPS)


def _region(place: Place) -> str:
    """Return the first digits of a postcode; another name is a region of its own first letter."""
    return place.area[:_POSTCODE_REGION] if place.area.isdigit() else place.area[:1]
