"""The grain advisor for trips: estimates of a public city at every grain of places and times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import dropwhile
from math import pi, sqrt
from pathlib import Path
from typing import NamedTuple

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


class _Numbers(NamedTuple):
    """Estimates with and without earlier weeks, the truth, and that of the year before.

    Each shape (places, days, slots).
    """

    estimates: Floats
    estimates_first: Floats
    truth: Floats
    last_year: Floats


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
        first = replace(city, weeks=city.weeks[:1])
        seen = [drawn_and_estimated(design, weeks, location_of_stop) for weeks in (city, first)]
        exact = [added(week, location_of_stop) for week in (city.weeks[0], city.last_year)]
        numbers, is_own = _Numbers(*seen, *exact), grain == OWN
        places = f"{grain} ({len(names)})"
        yield from _by_time(places, numbers, written, is_own=is_own, is_published=is_own)
        if grain == OWN and (regions := regions_of(programme.shared_tables, domain)):
            labels = sorted({regions[name] for name in names})
            region = np.array([labels.index(regions[name]) for name in names])
            summed = _Numbers(*(added(counts, region) for counts in numbers))
            places = f"{len(labels)} regions"
            yield from _by_time(places, summed, written, is_own=False, is_published=True)
    if any(table.is_total for table in programme.tables):
        yield _totals(programme, domain, include, city)


def _by_time(
    places: str, numbers: _Numbers, written: int, *, is_own: bool, is_published: bool
) -> Iterator[GrainErrors]:
    """Yield the errors of some places by slot, hour and day.

    Args:
        places: in words.
        numbers: of the places.
        written: minutes of a slot.
        is_own: whether the programme as written draws these places.
        is_published: whether it publishes them.
    """
    for minutes in (written, *(length for length in _MINUTES if length > written)):
        of = _Numbers(*(rolled(counts, minutes // written) for counts in numbers))
        yield GrainErrors(
            _CELLS,
            f"{places} x {minutes} minutes",
            *errors_of_counts(of.estimates, of.truth, of.last_year),
            "%",
            is_written=is_own and minutes == written,
            usable=predicted_usable(of.estimates, of.truth),
            usable_first=predicted_usable(of.estimates_first, of.truth),
            is_published=is_published,
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
