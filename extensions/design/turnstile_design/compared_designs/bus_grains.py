"""The grain advisor for bus speeds: estimates of a made city at every grain of cells and hours.

The city is public: the programme's cells, a number of buses that a person states, buses thinner
with the distance from the middle, speeds that differ by place as a real city's did (6.7 km/h) and
hardly by hour (0.9). Another resolution is another release, with the bound and loss of the
programme; coarser times are read from the same release.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import h3
import numpy as np
from numpy.typing import NDArray

from turnstile.estimates.fitting.fission import public_normals
from turnstile.estimates.vehicles.bus_counts import BusDays, bus_days
from turnstile.estimates.vehicles.bus_means import BusMeans, SumLook, bus_means
from turnstile.privacy.mechanisms.bounded_mean import STEPS_PER_KMH
from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.spec import Programme, TableSpec
from turnstile_design.compared_designs.designs import deviations_of_design
from turnstile_design.compared_designs.grains import (
    CITY_MEAN,
    LAST_YEAR,
    NOTHING,
    GrainErrors,
    errors_of_counts,
)
from turnstile_design.compared_designs.predicted_errors import added

Floats = NDArray[np.float64]
MID_SIZE_BUSES = 150
_EARLIER_WEEKS = 7
_CELLS_AN_HOUR, _HOURS_OF_SERVICE = 5, 8  # of a bus, at resolution 7 (itms.yaml)
_USUAL_RESOLUTION, _FINER = 7, 7**0.5
_RESOLUTIONS = 2  # the programme's, and the next coarser one
_MIDDLE_KM = 6.0
_CITY_KMH, _OF_PLACE_KMH, _OF_HOUR_KMH, _OF_CELL_KMH = 22.0, 6.7, 0.9, 1.0
_DRIFT_KMH = 1.5  # of a place's mean, in a year
_SLOWEST_KMH = 3.0


@dataclass(frozen=True, slots=True, eq=False)
class _Buses:
    """A period of a city at one resolution, shape (cells, hours): bus-days, mean speeds.

    Args:
        bus_days: counted under the programme's bound.
        speeds: means, km/h.
        last_year: means of the year before, km/h.
    """

    bus_days: Floats
    speeds: Floats
    last_year: Floats

    def rolled(self) -> _Buses:
        """Return the same with all hours in one."""
        total = self.bus_days.sum(axis=1, keepdims=True)
        return _Buses(total, *(self.mean(speeds) for speeds in (self.speeds, self.last_year)))

    def mean(self, speeds: Floats) -> Floats:
        """Return means over the hours, by bus-days, shape (cells, 1)."""
        total = np.maximum(self.bus_days.sum(axis=1, keepdims=True), 1e-9)
        means: Floats = (self.bus_days * speeds).sum(axis=1, keepdims=True) / total
        return means


def bus_grains(
    programme: Programme, domain: PublicDomain, buses: int, *, only_written: bool = False
) -> Iterator[GrainErrors]:
    """Yield the errors of mean speeds and of buses at every grain, from the finest.

    Args:
        programme: of telemetry, with a table of mean speeds.
        domain: its public cells.
        buses: in service on a day.
        only_written: True to judge the programme's own grain alone.
    """
    table = programme.speeds[0]
    finest = programme.domain.h3_resolution or _USUAL_RESOLUTION
    rows: list[GrainErrors] = []
    for resolution in range(finest, finest - (1 if only_written else _RESOLUTIONS), -1):
        city = _made(programme, domain, resolution, buses)
        speeds, counts = _estimated(programme, domain, table, city)
        grain = f"resolution {resolution} ({len(speeds)} cells)"
        is_own = resolution == finest
        rows.append(_of_speeds(table, f"{grain} x slot", city, speeds, is_written=is_own))
        rows.append(_of_counts(f"{grain} x slot", city, counts, is_written=is_own))
        if not only_written:
            week, total = city.rolled(), counts.sum(axis=1, keepdims=True)
            mean = city.mean(speeds)
            rows.append(_of_speeds(table, f"{grain} x week", week, mean, is_written=False))
            rows.append(_of_counts(f"{grain} x week", week, total, is_written=False))
    yield from sorted(rows, key=lambda row: row.table)


def _parents(cells: tuple[str, ...], resolution: int) -> list[int]:
    """Return the number of the parent of each cell."""
    of = [h3.cell_to_parent(cell, min(resolution, h3.get_resolution(cell))) for cell in cells]
    names = sorted(set(of))
    return [names.index(name) for name in of]


def _made(programme: Programme, domain: PublicDomain, resolution: int, buses: int) -> _Buses:
    """Return the made city at a resolution."""
    (mode,) = domain.modes  # of vehicles, whatever they are
    labels, slots = (domain.dimension(mode, name).labels for name in ("cell", "slot"))
    cells, hours = len(labels), len(slots)
    at = np.array(_parents(labels, resolution))
    centers = np.array([h3.cell_to_latlng(cell) for cell in labels])
    middle = centers.mean(axis=0)
    away = centers - middle
    km = np.hypot(111 * away[:, 0], 111 * np.cos(np.radians(middle[0])) * away[:, 1])
    shares = np.exp(-km / _MIDDLE_KM)
    shares /= shares.sum()
    pairs = _pairs_of_bus(programme, resolution)
    fine = buses * pairs * shares[:, None] / hours * np.ones((1, hours))
    shape = (cells, hours)
    speeds = (
        _CITY_KMH
        + _OF_PLACE_KMH * public_normals("speeds/places", (cells, 1))
        + _OF_HOUR_KMH * public_normals("speeds/hours", (1, hours))
        + _OF_CELL_KMH * public_normals("speeds/cells", shape)
    )
    drift = _DRIFT_KMH * public_normals("speeds/last year", (cells, 1))
    total, *sums = (added(values, at) for values in (fine, fine * speeds, fine * (speeds + drift)))
    bus_days = np.maximum(total, 1e-9)
    return _Buses(np.rint(bus_days), *(np.maximum(s / bus_days, _SLOWEST_KMH) for s in sums))


def _pairs_of_bus(programme: Programme, resolution: int) -> float:
    """Return the cells and hours of days that one bus counts in, in a period of the programme."""
    days, bound = programme.schedule.period_days, programme.units[0]
    bound_days = min(days, bound.unit.days_max or days)  # days that the bound holds over
    visited = _CELLS_AN_HOUR * _HOURS_OF_SERVICE * _FINER ** (resolution - _USUAL_RESOLUTION)
    return days / bound_days * min(bound.contributions_max, visited * bound_days)


def predicted_ratio(programme: Programme, domain: PublicDomain, buses: int) -> float:
    """Return the predicted error of cells' means over their spread, of a first week as written.

    Args:
        programme: of telemetry, with a table of mean speeds.
        domain: its public cells.
        buses: in service on a day.
    """
    table = programme.speeds[0]
    resolution = programme.domain.h3_resolution or _USUAL_RESOLUTION
    city = _made(programme, domain, resolution, buses)
    drawn = _Drawn.of(programme, domain, city, slice(0, 1))
    return _means(table, drawn, bus_days(drawn.counts, drawn.of_buses)).ratio


@dataclass(frozen=True, slots=True, eq=False)
class _Drawn:
    """The mean of some weeks of a made city as they would be drawn: bus-days, centered sums."""

    counts: Floats
    sums: Floats
    of_buses: float
    of_sum: float
    weeks: int

    @classmethod
    def of(cls, programme: Programme, domain: PublicDomain, city: _Buses, chosen: slice) -> _Drawn:
        """Draw them."""
        table, noise = programme.speeds[0], deviations_of_design(programme, domain)
        of_sum, of_buses = (noise[table.name, statistic] for statistic in table.statistics)
        center = STEPS_PER_KMH * (table.mean_range or 0) / 2
        shape = (1 + _EARLIER_WEEKS, *city.speeds.shape)
        counts = city.bus_days + of_buses * public_normals("speeds/buses", shape)[chosen]
        sums = city.bus_days * (STEPS_PER_KMH * city.speeds - center)
        sums = sums + of_sum * public_normals("speeds/sums", shape)[chosen]
        root = len(counts) ** 0.5
        means = counts.mean(axis=0), sums.mean(axis=0)
        return cls(*means, of_buses / root, of_sum / root, len(counts))


def _means(
    table: TableSpec, drawn: _Drawn, estimate: BusDays, usual: BusMeans | None = None
) -> BusMeans:
    """Return what the drawn sums say of means."""
    noise = drawn.of_buses * len(drawn.counts) ** 0.5
    in_sds = drawn.counts.sum(axis=0) / noise
    span = float(STEPS_PER_KMH * (table.mean_range or 0))
    look = SumLook(drawn.sums, drawn.of_sum, estimate, in_sds, span, weeks=drawn.weeks)
    return bus_means(look, usual)


def _estimated(
    programme: Programme, domain: PublicDomain, table: TableSpec, city: _Buses
) -> tuple[Floats, Floats]:
    """Draw a week after seven others and estimate speeds, km/h, and bus-days."""
    now, before = (
        _Drawn.of(programme, domain, city, chosen) for chosen in (slice(0, 1), slice(1, None))
    )
    usual = bus_days(before.counts, before.of_buses)
    estimate = bus_days(now.counts, now.of_buses, usual)
    means = _means(table, now, estimate, _means(table, before, usual)).cells.values
    highest = float(table.mean_range or 0)
    return np.clip(highest / 2 + means / STEPS_PER_KMH, 0, highest), estimate.mean


def _of_speeds(
    table: TableSpec, grain: str, city: _Buses, estimates: Floats, *, is_written: bool
) -> GrainErrors:
    """Return the mean errors of speeds, by bus-days; without a table one knows the clamp alone."""
    weights = city.bus_days / city.bus_days.sum()
    mean = float((weights * city.speeds).sum())
    shape = city.speeds.shape
    tables = {
        NOTHING: np.full(shape, (table.mean_range or 0) / 2),
        CITY_MEAN: np.full(shape, mean),
        LAST_YEAR: city.last_year,
    }
    errors = {
        name: float((weights * np.abs(baseline - city.speeds)).sum())
        for name, baseline in tables.items()
    }
    error = float((weights * np.abs(estimates - city.speeds)).sum())
    return GrainErrors("mean speed", grain, error, errors, "km/h", is_written)


def _of_counts(grain: str, city: _Buses, estimates: Floats, *, is_written: bool) -> GrainErrors:
    """Return the weighted relative errors of bus-days; last year's were a tenth others."""
    truth = city.bus_days
    old = truth * np.exp(0.1 * public_normals("buses/last year", (len(truth), 1)))
    errors = errors_of_counts(estimates, truth, old)
    return GrainErrors("buses", grain, *errors, "%", is_written)
