"""The grain advisor for trips: estimates of a public city at every grain of places and times."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import dropwhile
from math import pi, sqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from turnstile.estimates.roll_ups import regions_of
from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.spec import Programme
from turnstile_design.compared_designs.designs import OWN, grains
from turnstile_design.compared_designs.estimate_ranking import design_of
from turnstile_design.compared_designs.grains import GrainErrors, errors_of_counts
from turnstile_design.compared_designs.predicted_errors import (
    added,
    drawn_and_estimated,
    predicted_usable,
    rolled,
)
from turnstile_design.compared_designs.public_city import PublicCity

Floats = NDArray[np.float64]
_MINUTES = (60, 24 * 60)
_CELLS, _TOTALS = "tap-ons by time and place", "totals by mode and day"


def trip_grains(
    programme: Programme,
    domain: PublicDomain,
    include: Path,
    city: PublicCity,
    *,
    finest: str = "stop",
) -> Iterator[GrainErrors]:
    """Yield the errors of every grain, from the finest, and those of totals.

    Args:
        programme: of trips, with dense cells.
        domain: its public cells.
        include: folder of `domains/`.
        city: whose truth is known.
        finest: grain of places to begin with.
    """
    written = programme.time.slot_minutes
    area_count = len({place.area for place in city.stops})
    asked = dropwhile(lambda pair: pair[0] != finest, grains().items())
    for grain, label in asked:
        names = sorted({label(place) for place in city.stops})
        if len(names) == area_count and grain != OWN:
            continue
        location_of_stop = np.array([names.index(label(place)) for place in city.stops])
        design = design_of(programme, domain, include, label=label, slots=1)
        estimates = drawn_and_estimated(design, city, location_of_stop)
        truth, old = (added(week, location_of_stop) for week in (city.weeks[0], city.last_year))
        numbers = (estimates, truth, old)
        yield from _by_time(f"{grain} ({len(names)})", numbers, written, is_own=grain == OWN)
        if grain == OWN and (regions := regions_of(programme.shared_tables, domain)):
            labels = sorted({regions[name] for name in names})
            region = np.array([labels.index(regions[name]) for name in names])
            summed = (added(estimates, region), added(truth, region), added(old, region))
            yield from _by_time(f"{len(labels)} regions", summed, written, is_own=False)
    if any(not table.by for table in programme.tables):
        yield _totals(programme, domain, include, city)


def _by_time(
    places: str, numbers: tuple[Floats, Floats, Floats], written: int, *, is_own: bool
) -> Iterator[GrainErrors]:
    """Yield the errors of some places by slot, hour and day.

    Args:
        places: in words.
        numbers: estimates, truth and last year's, each shape (places, days, slots).
        written: minutes of a slot.
        is_own: whether the programme as written publishes these places.
    """
    for minutes in (written, *(length for length in _MINUTES if length > written)):
        estimates, truth, old = (rolled(counts, minutes // written) for counts in numbers)
        yield GrainErrors(
            _CELLS,
            f"{places} x {minutes} minutes",
            *errors_of_counts(estimates, truth, old),
            "%",
            is_written=is_own and minutes == written,
            usable=predicted_usable(estimates, truth),
        )


def _totals(
    programme: Programme, domain: PublicDomain, include: Path, city: PublicCity
) -> GrainErrors:
    """Return the errors of a table of totals, which says its own noise; a bound leaves some out."""
    design = design_of(programme, domain, include, label=grains()[OWN], slots=1)
    days, old = (week.sum(axis=(0, 2))[None, :, None] for week in (city.weeks[0], city.last_year))
    error = design.left_out_of_totals + design.deviations[()] * sqrt(2 / pi) / days.mean()
    _, baselines = errors_of_counts(days, days, old)
    return GrainErrors(_TOTALS, "mode x day", 100 * float(error), baselines, "%", is_written=True)
