"""Flows of a week as they were drawn: regions and zones of each mode, reconciled.

The days of a week are added up. Zones lie in regions, and both tables count the same trips, so a
pair of regions is measured twice: by itself, and as the sum of its pairs of zones. Least squares
over the two has a closed form, block by block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from turnstile.estimates.week_to_estimate import WeekToEstimate
from turnstile.programme.domain.public_domain import layout, region_of
from turnstile.programme.spec import TableSpec

PERIOD = "day_period"
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Numbers = TypeVar("Numbers", NDArray[np.float64], NDArray[np.bool_])


@dataclass(frozen=True, slots=True, eq=False)
class Flows:
    """Numbers of pairs of places; a pair of zones lies in one pair of regions.

    Args:
        values: shape (periods, pairs), origins first.
        variance: of each, of the same shape.
        shape: origins and destinations.
    """

    values: Floats
    variance: Floats
    shape: tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class ModeFlows:
    """Reconciled flows of one mode.

    Args:
        mode: its name.
        regions: between regions; sums of zones where no table of regions was drawn.
        zones: between zones; None where no table of zones was drawn.
        region_of_zones: number of the pair of regions of each pair of zones, shape (pairs,).
    """

    mode: str
    regions: Flows
    zones: Flows | None
    region_of_zones: Ints


def grain_of(spec: TableSpec) -> str:
    """Return `region` or `zone`, whichever a table of flows is between."""
    return "zone" if "origin_zone" in spec.by else "region"


def flows_by_mode(week: WeekToEstimate, specs: Mapping[str, TableSpec]) -> tuple[ModeFlows, ...]:
    """Return the flows of every mode.

    Args:
        week: with at least one service day that is no gap.
        specs: tables of flows by grain, of the same periods.
    """
    return tuple(_of_mode(week, specs, mode) for mode in week.domain.modes)


def mean_of(weeks: Sequence[Flows]) -> Flows:
    """Return the mean of the same pairs in several weeks, each weighted by its precision."""
    precisions = np.stack([1 / week.variance for week in weeks])
    variance = 1 / precisions.sum(axis=0)
    values = variance * (precisions * np.stack([week.values for week in weeks])).sum(axis=0)
    return Flows(values, variance, weeks[0].shape)


def reconciled(zones: Flows, regions: Flows | None, shape: tuple[int, int], of: Ints) -> ModeFlows:
    """Return zones and regions by least squares, each region the sum of its zones; of no mode.

    Args:
        zones: as drawn.
        regions: as drawn; None if they were not.
        shape: regions of origins and of destinations.
        of: number of the pair of regions of each pair of zones.
    """
    count = np.bincount(of, minlength=shape[0] * shape[1]).astype(np.float64)
    sums = np.stack([np.bincount(of, row, count.size) for row in zones.values]).astype(np.float64)
    of_zone = float(zones.variance[0, 0])
    totals, variance = sums, count * of_zone
    if regions is not None:
        of_region = float(regions.variance[0, 0])
        variance = 1 / (1 / of_region + 1 / variance)
        totals = variance * (regions.values / of_region + sums / (count * of_zone))
    moved = zones.values + ((totals - sums) / count)[:, of]
    left = (of_zone * (1 - 1 / count) + variance / count**2)[of]
    return ModeFlows(
        "",
        Flows(totals, np.broadcast_to(variance, totals.shape), shape),
        Flows(moved, np.broadcast_to(left, moved.shape), zones.shape),
        of,
    )


def laid_out(values: Numbers, shape: tuple[int, int], spec: TableSpec) -> Numbers:
    """Return numbers of shape (periods, pairs) flat, in the order of a table's dimensions."""
    axes = [axis for axis in _axes(spec) if axis in spec.by]
    grid = values.reshape([len(values)] * (PERIOD in spec.by) + list(shape))
    return grid.transpose([axes.index(axis) for axis in spec.by]).ravel()


def _axes(spec: TableSpec) -> list[str]:
    """Return period, origin and destination of a table, in this order."""
    grain = grain_of(spec)
    return [PERIOD, f"origin_{grain}", f"destination_{grain}"]


def _of_mode(week: WeekToEstimate, specs: Mapping[str, TableSpec], mode: str) -> ModeFlows:
    drawn = {grain: _drawn(week, spec, mode) for grain, spec in specs.items()}
    if "zone" not in specs:
        return ModeFlows(mode, drawn["region"], None, np.arange(0))
    ends = [
        _region_numbers(week.domain.dimension(mode, axis).labels)
        for axis in _axes(specs["zone"])[1:]
    ]
    (origins, n_origins), (destinations, n_destinations) = ends
    of = (origins[:, None] * n_destinations + destinations[None, :]).ravel()
    flows = reconciled(drawn["zone"], drawn.get("region"), (n_origins, n_destinations), of)
    return ModeFlows(mode, flows.regions, flows.zones, of)


def _region_numbers(zones: tuple[str, ...]) -> tuple[Ints, int]:
    """Return the number of each zone's region, counted in the order of the labels, and how many."""
    regions = list(dict.fromkeys(region_of(zone) for zone in zones))
    return np.array([regions.index(region_of(zone)) for zone in zones]), len(regions)


def _drawn(week: WeekToEstimate, spec: TableSpec, mode: str) -> Flows:
    """Return one table of one mode, its days with input added up."""
    segment = next(candidate for candidate in layout(week.domain, spec) if candidate.mode == mode)
    vectors = week.numbers.vectors[spec.name, "count"]
    days = [vector for day, vector in vectors.items() if day not in week.numbers.gaps]
    total = np.sum(days, axis=0)[segment.offset : segment.offset + segment.cells]
    grid = total.reshape(segment.shape).astype(np.float64)
    axes = [axis for axis in _axes(spec) if axis in spec.by]
    grid = grid.transpose([spec.by.index(axis) for axis in axes])
    shape = grid.shape[-2:]
    values = grid.reshape(-1, shape[0] * shape[1])
    variance = len(days) * week.numbers.deviations[spec.name, "count"] ** 2
    return Flows(values, np.full(values.shape, variance), shape)
