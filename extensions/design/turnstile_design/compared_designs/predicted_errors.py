"""Error of the estimates that a design would give, for what the programme is meant for.

The product's own estimates are made of a public city (`public_city`) with the design's noise, from
one week and seven earlier ones, and held against its counts, of which the bound leaves some out.
Tap-ons of one mode; answers are those at the programme's own locations, so a coarser design spreads
its numbers evenly over the stops. Error means weighted relative error, sum |error| / sum truth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from turnstile.estimates.fitting.cell_fits import Weeks
from turnstile.estimates.fitting.fission import public_normals
from turnstile.estimates.trips.tap_estimates import estimated
from turnstile.estimates.trips.tap_numbers import DrawnDays, TapNumbers, tap_numbers
from turnstile.estimates.usable import Usable, usable
from turnstile.privacy.noise import normal_half_width
from turnstile.programme.domain.public_domain import Place
from turnstile.programme.fields import TAPS
from turnstile.programme.spec import Programme, Query
from turnstile_design.compared_designs.public_city import PublicCity

Floats = NDArray[np.float64]
By = tuple[str, ...]
CELLS = TAPS[0]
LOOKS = 2  # of the four that the product takes: half the work, nearly the same weights
_ALIKE = 50  # numbers whose errors are taken together
_PEAKS = ((7, 9), (16, 18))  # hours, as the report's share of the peaks


def draws_cells(programme: Programme) -> bool:
    """Whether a table counts tap-ons by slot and location."""
    return CELLS in {table.by for table in programme.shared_tables}


@dataclass(frozen=True, slots=True)
class Design:
    """What of a design its estimates depend on.

    Args:
        deviations: of the noise of each drawn table of tap-ons, by dimensions; () for totals.
        label: names the place that a stop is published as.
        slots: slots of the programme as written that make one of the design.
        left_out: share of trips that the bound leaves out; of the totals: another.
        left_out_of_totals: the same of a table of totals.
    """

    deviations: Mapping[By, float]
    label: Callable[[Place], str]
    slots: int = 1
    left_out: float = 0.0
    left_out_of_totals: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """Numbers by stop, day and slot of the programme as written, and what is read from them.

    Args:
        counts: shape (stops, days, slots).
        location_of_stop: number of the programme's own location of each stop.
        hours: start of each slot.
    """

    counts: Floats
    location_of_stop: NDArray[np.int64]
    hours: Floats

    def by_location(self) -> Floats:
        """Return sums over the stops of each location, shape (locations, days, slots)."""
        return added(self.counts, self.location_of_stop)

    def by_hour(self) -> Floats:
        """Return locations by days by hours."""
        cells = self.by_location()
        length = self.hours[1] - self.hours[0] if len(self.hours) > 1 else 1.0
        return rolled(cells, max(1, round(1 / length)))

    def by_day(self) -> Floats:
        """Return locations by days."""
        cells = self.by_location()
        return rolled(cells, cells.shape[2])[:, :, 0]

    def peak_share(self) -> Floats:
        """Return the share of the trips of each day in the peaks."""
        is_peak = np.logical_or.reduce(
            [(self.hours >= first) & (self.hours < last) for first, last in _PEAKS]
        )
        slots = self.counts.sum(axis=0)
        share: Floats = slots[:, is_peak].sum(axis=1) / np.maximum(slots.sum(axis=1), 1)
        return share


def answers_of(design: Design, city: PublicCity) -> tuple[Answers, Answers]:
    """Return what the estimates answer, and the truth."""
    names = sorted({place.area for place in city.stops})
    area_of_stop = np.array([names.index(place.area) for place in city.stops])
    labels = sorted({design.label(place) for place in city.stops})
    location_of_stop = np.array([labels.index(design.label(place)) for place in city.stops])
    estimates = drawn_and_estimated(design, city, location_of_stop)
    stops = np.bincount(location_of_stop)
    spread = np.repeat(estimates / stops[:, None, None], design.slots, axis=2) / design.slots
    read = Answers(spread[location_of_stop], area_of_stop, city.hours)
    return read, Answers(city.weeks[0], area_of_stop, city.hours)


def errors_by_query(read: Answers, truth: Answers) -> dict[Query, float]:
    """Return the error of each query; of a change, that of two weeks' independent errors."""
    weekly = (read.by_day().sum(axis=1), truth.by_day().sum(axis=1))
    return {
        Query.TOP_STATIONS_BY_HOUR: relative_error(read.by_hour(), truth.by_hour()),
        Query.DAILY_TOTALS_BY_PLACE: relative_error(read.by_day(), truth.by_day()),
        Query.PEAK_SHARE: float(np.abs(read.peak_share() - truth.peak_share()).mean()),
        Query.WEEK_ON_WEEK_CHANGE: sqrt(2) * relative_error(*weekly),
    }


def error_of_totals(design: Design, read: Answers, truth: Answers) -> float:
    """Return the error of a day's total: of its own table where there is one."""
    days = truth.counts.sum(axis=(0, 2))
    if () not in design.deviations:
        return relative_error(read.counts.sum(axis=(0, 2)), days)
    mean_error = design.deviations[()] * sqrt(2 / np.pi)
    return float(design.left_out_of_totals + mean_error / days.mean())


def relative_error(values: Floats, truth: Floats) -> float:
    """Return the weighted relative error."""
    return float(np.abs(values - truth).sum() / max(truth.sum(), 1))


def predicted_usable(estimates: Floats, truth: Floats) -> Usable:
    """Return how much of a grain can be used: errors are those of numbers of like size.

    Args:
        estimates: estimates.
        truth: same shape.
    """
    order = np.argsort(truth, axis=None, kind="stable")
    values, errors = truth.ravel()[order], (estimates - truth).ravel()[order]
    groups = np.array_split(errors, max(1, errors.size // _ALIKE))
    half = np.concatenate([np.full(group.size, np.sqrt(np.mean(group**2))) for group in groups])
    half = normal_half_width(half, level=90)
    return usable(values, values - half, values + half)


def drawn_and_estimated(
    design: Design, city: PublicCity, location_of_stop: NDArray[np.int64]
) -> Floats:
    """Draw the city's first week with a design's noise, after the others if any, and estimate it.

    Args:
        design: noise, slots and what its bound leaves out.
        city: counts.
        location_of_stop: number of the published location of each stop.

    Returns:
        Shape (places, days, slots of the design).
    """
    weeks = [
        (1 - design.left_out) * rolled(added(week, location_of_stop), design.slots)
        for week in city.weeks
    ]
    tables, *earlier = (_drawn(design, week, f"{n}") for n, week in enumerate(weeks))
    places, _, slots = weeks[0].shape
    seen = [_looks(tables, n) for n in range(LOOKS)]
    numbers, *look_numbers = (
        _numbers(drawn, slots, places)
        for drawn in (tables, *(look for pair in seen for look in pair))
    )
    pairs = list(zip(look_numbers[::2], look_numbers[1::2], strict=True))
    if not earlier:
        return estimated(numbers, pairs, None).numbers.cells
    before = np.stack([drawn[CELLS].values for drawn in earlier]).transpose(0, 3, 1, 2)
    known = Weeks(before, np.full((len(earlier), before.shape[2]), design.deviations[CELLS]))
    return estimated(numbers, pairs, known).numbers.cells


def _drawn(design: Design, counts: Floats, week: str) -> dict[By, DrawnDays]:
    """Return a week's drawn tables; a rounded normal deviate stands in for the discrete one."""
    exact = {CELLS: counts.transpose(1, 2, 0), CELLS[:1]: counts.sum(axis=0)}
    exact[CELLS[1:]] = counts.sum(axis=2).T
    return {
        by: DrawnDays(np.rint(table + sd * public_normals(f"{week}/{by}", table.shape)), sd**2)
        for by, table in exact.items()
        if (sd := design.deviations.get(by))
    }


def _looks(
    tables: Mapping[By, DrawnDays], n: int
) -> tuple[dict[By, DrawnDays], dict[By, DrawnDays]]:
    """Split the noise of every table."""
    pairs = {by: table.looks(f"plan/{n}/{by}") for by, table in tables.items()}
    return {by: pair[0] for by, pair in pairs.items()}, {by: pair[1] for by, pair in pairs.items()}


def _numbers(tables: Mapping[By, DrawnDays], slots: int, places: int) -> TapNumbers:
    """Reconcile drawn tables."""
    return tap_numbers(tables, {CELLS: (slots, places)}, shares_total=False)[CELLS]


def added(counts: Floats, location_of_stop: NDArray[np.int64]) -> Floats:
    """Add up stops by their location, shape (locations, days, slots)."""
    sums = np.zeros((location_of_stop.max() + 1, *counts.shape[1:]))
    np.add.at(sums, location_of_stop, counts)
    return sums


def rolled(cells: Floats, slots: int) -> Floats:
    """Add up neighboring slots; a day that ends within one is added up as a whole.

    Args:
        cells: shape (places, days, slots).
        slots: that make one.
    """
    slots = slots if cells.shape[2] % slots == 0 else cells.shape[2]
    added_up: Floats = cells.reshape(*cells.shape[:2], -1, slots).sum(axis=3)
    return added_up
