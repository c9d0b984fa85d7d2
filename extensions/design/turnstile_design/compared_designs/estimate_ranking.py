"""Designs at one loss, ranked by the error of their estimates for what the programme is meant for.

What is varied: the split of the loss over cells, slots, locations and totals, the bounds k and m,
and the grain (slots of a quarter, half or whole hour; stops, the programme's locations, regions,
one location a mode). Nothing but public numbers goes in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import exp, fsum, log
from pathlib import Path

from turnstile.programme.bounding_rule import bound_in_force
from turnstile.programme.domain.public_domain import Place, PublicDomain
from turnstile.programme.fields import TAPS
from turnstile.programme.spec import Programme, Query, TableSpec, UnitBound
from turnstile_design.compared_designs.designs import deviations_of_design
from turnstile_design.compared_designs.generated_bias import left_out
from turnstile_design.compared_designs.predicted_errors import (
    CELLS,
    Answers,
    Design,
    answers_of,
    error_of_totals,
    errors_by_query,
    relative_error,
)
from turnstile_design.compared_designs.public_city import PublicCity

_QUARTER = Fraction(1, 4)
_BOUNDS = (10, 15, 30, 40)
_DAILY_BOUNDS = (2, 4, 10, 20)
_SLOTS_MINUTES = (30, 60)
_EXACT = 1e-6
_POSTCODE_REGION = 3  # digits of a postcode that a region shares
Label = Callable[[Place], str]


@dataclass(frozen=True, slots=True)
class Ranked:
    """One design and the errors of its estimates.

    Args:
        varied: what differs from the programme.
        design: how.
        by_query: error of each query that the programme is meant for.
        cells: of the programme's own slots and locations.
        totals: of a day's total.
        left_out: share of generated trips that the bound leaves out.
        against: error against the programme as written: geometric mean over its queries.
    """

    varied: str
    design: str
    by_query: Mapping[Query, float]
    cells: float
    totals: float
    left_out: float
    against: float = 1.0


@dataclass(frozen=True, slots=True)
class _Variant:
    """A programme, and the grain at which it is published."""

    varied: str
    design: str
    programme: Programme
    label: Label = lambda place: place.area
    slots: int = 1


def ranked(
    programme: Programme, domain: PublicDomain, include: Path, city: PublicCity
) -> tuple[Ranked, ...]:
    """Return the programme and other designs at its loss, the least error first."""
    designs = [_errors(variant, domain, include, city) for variant in _variants(programme, city)]
    written = designs[0]
    judged = [replace(design, against=_against(design, written)) for design in designs]
    return tuple(sorted(judged, key=lambda design: design.against))


def design_of(
    programme: Programme, domain: PublicDomain, include: Path, *, label: Label, slots: int
) -> Design:
    """Return what the estimates of a programme depend on, at a grain of locations and slots."""
    deviations = deviations_of_design(programme, domain)
    table_deviations = {
        table.by: deviations[table.name, "count"]
        for table in programme.tables
        if set(table.by) <= set(CELLS) and (table.by or table.trips_max is not None)
    }
    totals = [table for table in programme.tables if not table.by]
    return Design(
        table_deviations,
        label,
        slots,
        left_out(programme, programme.shared_tables[0], include) or 0.0,
        left_out(programme, totals[0], include) or 0.0 if totals else 0.0,
    )


def has_cells(programme: Programme) -> bool:
    """Whether the cells of tap-ons are drawn, without a threshold: what estimates are made of."""
    drawn = {table.by for table in programme.shared_tables}
    return CELLS in drawn and not programme.mechanism.kind.is_thresholded


def _errors(variant: _Variant, domain: PublicDomain, include: Path, city: PublicCity) -> Ranked:
    design = design_of(variant.programme, domain, include, label=variant.label, slots=variant.slots)
    read, truth = answers_of(design, city)
    errors = errors_by_query(read, truth)
    asked = variant.programme.meant_for or tuple(errors)
    return Ranked(
        variant.varied,
        variant.design,
        {query: errors[query] for query in asked},
        _of_cells(read, truth),
        error_of_totals(design, read, truth),
        design.left_out,
    )


def _of_cells(read: Answers, truth: Answers) -> float:
    """Return the error of the programme's own slots and locations."""
    return relative_error(read.by_location(), truth.by_location())


def _against(design: Ranked, written: Ranked) -> float:
    """Return the geometric mean of the errors' ratios."""
    pairs = [(design.by_query[query], error) for query, error in written.by_query.items()]
    ratios = [log(max(design_error, _EXACT) / max(error, _EXACT)) for design_error, error in pairs]
    return exp(fsum(ratios) / len(ratios))


def _variants(programme: Programme, city: PublicCity) -> Iterator[_Variant]:
    """Yield the programme as written and what differs from it."""
    yield _Variant("as written", programme.name, programme)
    for design, other in _splits(programme):
        yield _Variant("split", design, other)
    for design, bound in _bounds(programme):
        yield _Variant("bound", design, replace(programme, units=(bound,)))
    minutes = programme.time.slot_minutes
    for length in _SLOTS_MINUTES:
        if length > minutes and length % minutes == 0 and _whole_slots(city, length // minutes):
            time = replace(programme.time, slot_minutes=length)
            yield _Variant(
                "slots", f"{length} minutes", replace(programme, time=time), slots=length // minutes
            )
    areas = {place.area for place in city.stops}
    for design, label in grains().items():
        labels = {label(place) for place in city.stops}
        if design != OWN and len(labels) != len(areas):
            yield _Variant("locations", f"{design} ({len(labels)})", programme, label)


OWN = "as published"


def grains() -> dict[str, Label]:
    """Return names of places by grain, from the finest."""
    return {
        "stop": lambda place: place.location,
        OWN: lambda place: place.area,
        "region": _region,
        "one a mode": lambda place: place.mode,
    }


def _region(place: Place) -> str:
    """Return the first digits of a postcode; another name is a region of its own first letter."""
    return place.area[:_POSTCODE_REGION] if place.area.isdigit() else place.area[:1]


def _whole_slots(city: PublicCity, slots: int) -> bool:
    """Whether the city's slots make whole longer ones."""
    of_day: int = city.weeks[0].shape[2]
    return of_day % slots == 0


def _splits(programme: Programme) -> Iterator[tuple[str, Programme]]:
    """Yield programmes whose loss is split otherwise."""
    shares = dict(programme.mechanism.split)
    totals = [table.name for table in programme.tables if not table.by]
    of_totals = sum((shares[name] for name in totals), Fraction(0))
    parts = {
        "cells alone": (Fraction(0), Fraction(0)),
        "a quarter on slots": (_QUARTER, Fraction(0)),
        "a quarter on locations": (Fraction(0), _QUARTER),
        "a quarter each on slots and locations": (_QUARTER, _QUARTER),
    }
    for design, (slots, places) in parts.items():
        yield (
            design,
            _split(programme, slots, places, of_totals if slots or places else Fraction(0)),
        )
        two = bound_in_force(programme)
        if (slots or places) and two is not None and two.once_per_finest_cell:
            bound = replace(two, coarse_cell_max=2)
            other = _split(programme, slots, places, of_totals)
            yield f"{design}, two trips of a card in one", replace(other, units=(bound,))
    if totals:
        yield "a tenth on totals", _split(programme, Fraction(0), Fraction(0), Fraction(1, 10))


def _split(programme: Programme, slots: Fraction, places: Fraction, totals: Fraction) -> Programme:
    """Return the programme with so much on slots, locations and totals, tap-ons and -offs alike."""
    rest = 1 - slots - places - totals
    named = {table.by: table for table in programme.tables}
    tables, split = [], []
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
    """Yield other bounds k."""
    bound = bound_in_force(programme)
    if bound is None:
        return
    is_longer = (bound.unit.days_max or 0) > 1
    for trips in _BOUNDS if is_longer else _DAILY_BOUNDS:
        if trips != bound.contributions_max:
            yield f"{bound.unit} of {trips}", replace(bound, contributions_max=trips)
