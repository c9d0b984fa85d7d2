"""Errors of other designs by their noise alone, after reconciliation: before any data is touched.

What a bound or a threshold drops is not in them: on generated trips it stands beside them
(`generated_bias`), and `turnstile report` measures it privately.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import nan
from pathlib import Path

from turnstile.estimates.roll_ups import MINUTES_PER_HOUR
from turnstile.estimates.trips.trip_marginals import marginal_errors
from turnstile.privacy.noise import noise_variance
from turnstile.programme.domain.public_domain import (
    Dimension,
    ModeCells,
    Place,
    PublicDomain,
    public_domain,
)
from turnstile.programme.fields import TAPS
from turnstile.programme.spec import Programme
from turnstile_design.compared_designs.designs import (
    Alternative,
    alternatives,
    events_of_design,
    tables_of_estimates,
)
from turnstile_design.compared_designs.generated_bias import left_out

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
        programme: of trips with a table of slots and places of both taps.
        load_domain: returns the public cells of a programme.
        include: folder of `domains/`.
        mode: whose errors are shown.
    """
    stops = [place for place in load_domain(programme).places if place.mode == mode]
    others = alternatives(programme, stops)
    return tuple(errors_of(other, load_domain, include, mode=mode) for other in others)


def errors_of(
    design: Alternative, load_domain: LoadDomain, include: Path, *, mode: str
) -> DesignErrors:
    """Return the errors of one design; what no formula gives is not a number."""
    programme, named = design.programme, (design.varied, design.design)
    domain = regrained(load_domain(programme), design.label)
    bias = left_out(programme, programme.shared_tables[0], include)
    events = events_of_design(programme, domain)
    event_of = {event.table: event for event in events}
    if programme.mechanism.kind.is_thresholded:
        by = {by: event_of[table.name] for by, table in tables_of_estimates(programme).items()}
        axes = TAPS[0]
        cell, time, location = (
            noise_variance(by[b].noise, by[b].scale) ** 0.5 if b in by else nan
            for b in (axes, axes[:1], axes[1:])
        )
        # sums lack what was left out: no noise formula gives their error
        return DesignErrors(*named, cell, time, location, nan, nan, by[axes].threshold, bias)
    errors = marginal_errors(programme, domain, events)[mode, TAPS[0]]
    slots, locations = errors.shape
    hour = max(1, MINUTES_PER_HOUR // programme.time.slot_minutes)
    blocks = ((1, 1), (1, locations), (slots, 1), (hour, 1), (slots, locations))
    cell, time, location, location_hour, day = (
        errors.deviation_of_block(*block) for block in blocks
    )
    return DesignErrors(*named, cell, time, location, location_hour, day, None, bias)


def regrained(domain: PublicDomain, label: Callable[[Place], str]) -> PublicDomain:
    """Return a domain whose places are published under other names: another location grain.

    Args:
        domain: public cells of trips.
        label: gives the area of a place.
    """
    places = tuple(replace(place, area=label(place)) for place in domain.places)

    def axis(mode: str, old: Dimension) -> Dimension:
        if not old.name.endswith("_location"):
            return old
        names = sorted({place.area for place in places if place.mode == mode})
        unknown = old.labels[old.unknown :] if old.unknown is not None else ()
        return replace(old, labels=(*names, *unknown))

    cells = tuple(
        ModeCells(
            mode_cells.mode, tuple(axis(mode_cells.mode, old) for old in mode_cells.dimensions)
        )
        for mode_cells in domain.cells_by_mode
    )
    return public_domain(domain.version, cells, places, domain.listed)
