"""Estimates of flows: which pairs are more than noise, and how many trips each has in a week.

From drawn numbers alone, so it costs nothing.

Most pairs of zones have no trips, so a list of those that rise above noise would be full of noise.
`is_flow` holds for pairs that a step-up rule at one in two hundred lists (Benjamini & Hochberg
1995): first among pairs of regions, then among the pairs of zones within those that are listed.

`estimate` moves each reconciled number towards what origins and destinations alone would make of
it, the more so the less such numbers differ from it beyond their noise; one that stands far out is
left as it is (limited translation, Efron & Morris 1971). Zones are expected to share what their
regions are estimated to have.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from turnstile.estimates.flow_numbers import (
    PERIOD,
    Flows,
    ModeFlows,
    Numbers,
    flows_by_mode,
    grain_of,
    laid_out,
)
from turnstile.estimates.labelled import labelled
from turnstile.estimates.week_to_estimate import WeekToEstimate
from turnstile.programme.spec import TableSpec

FALSE_SHARE = 1 / 200
_CLASSES = 12  # of expected size, each with its own spread about what is expected
_FAR_OUT = 4.0  # standard deviations
_DECIMALS, _RECONCILED_DECIMALS, _ERROR_DECIMALS = 1, 3, 4
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def flow_tables(week: WeekToEstimate) -> dict[str, pa.Table]:
    """Return the week's table of each table of flows that was drawn; none without input."""
    if set(week.numbers.days) <= set(week.numbers.gaps):
        return {}
    tables: dict[str, pa.Table] = {}
    for has_periods in (False, True):
        specs = [one for one in week.promise.flows if (PERIOD in one.by) is has_periods]
        if specs:
            tables |= _tables(week, {grain_of(spec): spec for spec in specs})
    return {spec.name: tables[spec.name] for spec in week.promise.flows}


def listed(deviates: Floats, candidates: Bools, share: float = FALSE_SHARE) -> Bools:
    """Return which candidates the step-up rule lists.

    Args:
        deviates: numbers over their standard deviations.
        candidates: of the same shape.
        share: of the listed ones that are noise alone, as expected at most.

    Examples:
        >>> listed(np.array([9.0, 3.0, 0.1, -2.0]), np.ones(4, np.bool_)).tolist()
        [True, True, False, False]
    """
    from scipy.stats import norm

    chances: Floats = norm.sf(deviates)
    own = np.sort(chances[candidates])
    allowed = np.flatnonzero(own <= share * np.arange(1, own.size + 1) / max(1, own.size))
    limit = own[allowed[-1]] if allowed.size else -1.0
    found: Bools = candidates & (chances <= limit)
    return found


def moved(flows: Flows, expected: Floats) -> Floats:
    """Return flows moved towards what is expected of them, never negative.

    In classes of expected size, the spread of the numbers beyond their noise says how far flows
    differ from what is expected; each is moved by the share of the noise in both together.

    Args:
        flows: reconciled.
        expected: of the same shape.
    """
    differences = flows.values - expected
    spread = np.zeros(expected.size)
    order = np.argsort(expected, axis=None, kind="stable")
    for members in np.array_split(order, min(_CLASSES, expected.size)):
        beyond = differences.ravel()[members] ** 2 - flows.variance.ravel()[members]
        spread[members] = max(0.0, float(beyond.mean()))
    total = spread.reshape(expected.shape) + flows.variance
    weight = spread.reshape(expected.shape) / total
    weight[np.abs(differences) > _FAR_OUT * np.sqrt(total)] = 1.0
    found: Floats = np.maximum(0.0, expected + weight * differences)
    return found


def estimated(own: ModeFlows) -> tuple[Floats, Floats | None]:
    """Return the estimates of one mode's regions, and of its zones if they were drawn."""
    of_regions = moved(own.regions, _of_ends(own.regions))
    if own.zones is None:
        return of_regions, None
    shares = _of_ends(own.zones)
    pairs = own.regions.values.shape[1]
    of = own.region_of_zones
    sums = np.stack([np.bincount(of, row, pairs) for row in shares])
    even = 1 / np.bincount(of, minlength=pairs)[of]
    within = np.where(sums[:, of] > 0, shares / np.where(sums > 0, sums, 1.0)[:, of], even)
    return of_regions, moved(own.zones, of_regions[:, of] * within)


def _of_ends(flows: Flows) -> Floats:
    """Return what origins and destinations alone make of flows: shares of the total."""
    grid = flows.values.reshape(-1, *flows.shape)
    origins, destinations = (np.maximum(grid.sum(axis=axis), 0.0) for axis in (2, 1))
    total = np.maximum(origins.sum(axis=1), 1.0)[:, None, None]
    found: Floats = (origins[:, :, None] * destinations[:, None, :] / total).reshape(
        flows.values.shape
    )
    return found


def _tables(week: WeekToEstimate, specs: dict[str, TableSpec]) -> dict[str, pa.Table]:
    """Return the tables of flows of the same periods."""
    modes = flows_by_mode(week, specs)
    of_regions = _listed([own.regions for own in modes], None)
    estimates = [estimated(own) for own in modes]
    found = {}
    if spec := specs.get("region"):
        parts = [own.regions for own in modes]
        found[spec.name] = _table(week, spec, parts, [e for e, _ in estimates], of_regions)
    if spec := specs.get("zone"):
        parts = [own.zones for own in modes if own.zones is not None]
        within = [kept[:, own.region_of_zones] for kept, own in zip(of_regions, modes, strict=True)]
        own_estimates = [e for _, e in estimates if e is not None]
        found[spec.name] = _table(week, spec, parts, own_estimates, _listed(parts, within))
    return found


def _listed(parts: Sequence[Flows], candidates: Sequence[Bools] | None) -> list[Bools]:
    """Return which pairs of all modes together are listed."""
    deviates = [one.values / np.sqrt(one.variance) for one in parts]
    every = candidates or [np.ones(one.values.shape, np.bool_) for one in parts]
    flat = listed(
        np.concatenate([one.ravel() for one in deviates]),
        np.concatenate([one.ravel() for one in every]),
    )
    ends = np.cumsum([one.values.size for one in parts])[:-1]
    return [
        own.reshape(one.values.shape) for own, one in zip(np.split(flat, ends), parts, strict=True)
    ]


def _laid_out(spec: TableSpec, parts: Sequence[Flows], values: Sequence[Numbers]) -> list[Numbers]:
    """Return the numbers of all modes as one column of a table."""
    laid = [laid_out(own, one.shape, spec) for own, one in zip(values, parts, strict=True)]
    return [np.concatenate(laid)]


def _table(
    week: WeekToEstimate,
    spec: TableSpec,
    parts: Sequence[Flows],
    estimates: Sequence[Floats],
    is_flow: Sequence[Bools],
) -> pa.Table:
    """Label the numbers of one table."""
    columns: dict[str, list[Floats] | list[Bools]] = {
        "estimate": _laid_out(spec, parts, [one.round(_DECIMALS) for one in estimates]),
        "is_flow": _laid_out(spec, parts, is_flow),
        "reconciled": _laid_out(
            spec, parts, [one.values.round(_RECONCILED_DECIMALS) for one in parts]
        ),
        "standard_deviation": _laid_out(
            spec, parts, [np.sqrt(one.variance).round(_ERROR_DECIMALS) for one in parts]
        ),
    }
    return labelled(week.domain, spec, [None], columns)
