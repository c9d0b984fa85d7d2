"""Estimates of flows: which pairs are more than noise, and how many trips each has in a week.

From drawn numbers alone, so it costs nothing.

Most pairs of zones have no trips, so a list of those that rise above noise would be full of noise.
`is_flow` holds for pairs that a step-up rule at one in two hundred lists (Benjamini & Hochberg
1995): first among pairs of regions, then among the pairs of zones within those that are listed.

They are listed by the mean of this week and the three before it: what the noise of one week hides
four show. Of a week with days without input they are listed by its own total.

`estimate` moves each reconciled number towards what is expected of it, the more so the less such
numbers differ from it beyond their noise (empirical Bayes, in classes of expected size; Efron &
Morris 1973); one that stands far out is left as it is. What is expected comes from earlier weeks:
their mean, moved in the same way towards what origins and destinations alone would make of it, and
scaled to this week's total; without earlier weeks from origins and destinations of this one. Zones
are expected to share what their regions are estimated to have. Intervals come from the same two
variances, that of the noise and that about what is expected, with one standard deviation of what is
not known of the latter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from turnstile.estimates.flows.flow_numbers import (
    PERIOD,
    Flows,
    ModeFlows,
    Numbers,
    flows_by_mode,
    grain_of,
    laid_out,
    mean_of,
)
from turnstile.estimates.intervals import BEYOND_0, LEVELS, interval
from turnstile.estimates.labelled import labelled
from turnstile.estimates.week_to_estimate import WeekToEstimate
from turnstile.programme.spec import TableSpec

FALSE_SHARE = 1 / 200
_CLASSES = 24  # of expected size, each with its own spread about what is expected
_FAR_OUT = 4.0  # standard deviations
_MONTH = 4  # weeks: this one and those before it
_DECIMALS, _RECONCILED_DECIMALS, _ERROR_DECIMALS = 1, 3, 4
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def flow_tables(week: WeekToEstimate) -> dict[str, pa.Table]:
    """Return the week's table of each table of flows that was drawn; none without input."""
    if set(week.numbers.days) <= set(week.numbers.gaps):
        return {}
    tables: dict[str, pa.Table] = {}
    for has_periods in (False, True):
        specs = [spec for spec in week.promise.flows if (PERIOD in spec.by) is has_periods]
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
    ordered = np.sort(chances[candidates])
    allowed = np.flatnonzero(
        ordered <= share * np.arange(1, ordered.size + 1) / max(1, ordered.size)
    )
    limit = ordered[allowed[-1]] if allowed.size else -1.0
    is_listed: Bools = candidates & (chances <= limit)
    return is_listed


def moved(flows: Flows, expected: Floats) -> Flows:
    """Return flows moved towards what is expected of them, never negative, with their errors.

    In classes of expected size, the spread of the numbers beyond their noise says how far flows
    differ from what is expected; each is moved by the share of the noise in both together.

    Args:
        flows: reconciled.
        expected: of the same shape.
    """
    differences = flows.values - expected
    spread, unknown = np.zeros(expected.size), np.zeros(expected.size)
    order = np.argsort(expected, axis=None, kind="stable")
    for members in np.array_split(order, min(_CLASSES, expected.size)):
        beyond = differences.ravel()[members] ** 2 - flows.variance.ravel()[members]
        least = float(expected.ravel()[members].mean())  # counts vary about their rate
        spread[members] = max(least, float(beyond.mean()), 0.0)
        unknown[members] = float(beyond.std()) / np.sqrt(members.size)
    of_class = spread.reshape(expected.shape)
    weight = of_class / (of_class + flows.variance)
    is_far = np.abs(differences) > _FAR_OUT * np.sqrt(of_class + flows.variance)
    weight[is_far] = 1.0
    values = np.maximum(0.0, expected + weight * differences)
    wide = of_class + unknown.reshape(expected.shape)
    variance = np.where(is_far, 1.0, wide / (wide + flows.variance)) * flows.variance
    return Flows(values, variance, flows.shape)


def expected_of(flows: Flows, earlier: Sequence[Flows]) -> Floats:
    """Return what earlier weeks expect of flows; origins and destinations alone without any."""
    if not earlier:
        return _of_ends(flows)
    before = mean_of(earlier)
    usual = moved(before, _of_ends(before)).values
    totals = np.maximum(flows.values.sum(axis=1, keepdims=True), 0.0)
    expected: Floats = usual * totals / np.maximum(usual.sum(axis=1, keepdims=True), 1.0)
    return expected


def estimated(flows: ModeFlows, earlier: Sequence[ModeFlows]) -> tuple[Flows, Flows | None]:
    """Return the estimates of one mode's regions, and of its zones if they were drawn.

    Args:
        flows: this week's.
        earlier: the same mode in earlier weeks.
    """
    of_regions = moved(
        flows.regions,
        expected_of(flows.regions, [earlier_flows.regions for earlier_flows in earlier]),
    )
    if flows.zones is None:
        return of_regions, None
    before = [earlier_flows.zones for earlier_flows in earlier if earlier_flows.zones is not None]
    shares = expected_of(flows.zones, before)
    pairs = flows.regions.values.shape[1]
    of = flows.region_of_zones
    sums = np.stack([np.bincount(of, row, pairs) for row in shares])
    even = 1 / np.bincount(of, minlength=pairs)[of]
    within = np.where(sums[:, of] > 0, shares / np.where(sums > 0, sums, 1.0)[:, of], even)
    return of_regions, moved(flows.zones, of_regions.values[:, of] * within)


def _of_ends(flows: Flows) -> Floats:
    """Return what origins and destinations alone make of flows: shares of the total."""
    grid = flows.values.reshape(-1, *flows.shape)
    origins, destinations = (np.maximum(grid.sum(axis=axis), 0.0) for axis in (2, 1))
    total = np.maximum(origins.sum(axis=1), 1.0)[:, None, None]
    expected: Floats = (origins[:, :, None] * destinations[:, None, :] / total).reshape(
        flows.values.shape
    )
    return expected


@dataclass(frozen=True, slots=True, eq=False)
class _Judged:
    """Pairs of one mode: as reconciled, as estimated, and the mean of a month."""

    flows: Flows
    estimate: Flows
    month: Flows


def _tables(week: WeekToEstimate, specs: dict[str, TableSpec]) -> dict[str, pa.Table]:
    """Return the tables of flows of the same periods."""
    modes = flows_by_mode(week, specs)
    now, weeks = week.numbers, [numbers for numbers in week.earlier if not numbers.gaps]
    # A total of fewer days is none of a week, and a later series has weeks after this one, too.
    in_month = [not now.gaps and numbers.days < now.days for numbers in weeks]
    before = [flows_by_mode(replace(week, numbers=numbers), specs) for numbers in weeks]
    regions, zones = [], []
    for flows, *earlier in zip(modes, *before, strict=True):
        of_regions, of_zones = estimated(flows, earlier)
        month = [flows, *compress(earlier, in_month)][:_MONTH]
        of_month = mean_of([drawn.regions for drawn in month])
        regions.append(_Judged(flows.regions, of_regions, of_month))
        if flows.zones is not None and of_zones is not None:
            of_month = mean_of([drawn.zones for drawn in month if drawn.zones is not None])
            zones.append(_Judged(flows.zones, of_zones, of_month))
    listed_regions = _listed(regions, None)
    tables = {}
    if spec := specs.get("region"):
        tables[spec.name] = _table(week, spec, regions, listed_regions)
    if spec := specs.get("zone"):
        within = [
            kept[:, mode_flows.region_of_zones]
            for kept, mode_flows in zip(listed_regions, modes, strict=True)
        ]
        tables[spec.name] = _table(week, spec, zones, _listed(zones, within))
    return tables


def _listed(parts: Sequence[_Judged], candidates: Sequence[Bools] | None) -> list[Bools]:
    """Return which pairs of all modes together are listed."""
    deviates = [part.month.values / np.sqrt(part.month.variance) for part in parts]
    every = candidates or [np.ones(mode_deviates.shape, np.bool_) for mode_deviates in deviates]
    flat = listed(
        np.concatenate([mode_deviates.ravel() for mode_deviates in deviates]),
        np.concatenate([mask.ravel() for mask in every]),
    )
    ends = np.cumsum([mode_deviates.size for mode_deviates in deviates])[:-1]
    return [
        mask.reshape(mode_deviates.shape)
        for mask, mode_deviates in zip(np.split(flat, ends), deviates, strict=True)
    ]


def _table(
    week: WeekToEstimate, spec: TableSpec, parts: Sequence[_Judged], is_flow: Sequence[Bools]
) -> pa.Table:
    """Label the numbers of one table."""

    def laid(values: Sequence[Numbers]) -> list[Numbers]:
        pairs = zip(values, parts, strict=True)
        return [
            np.concatenate([laid_out(numbers, part.flows.shape, spec) for numbers, part in pairs])
        ]

    estimates = [part.estimate.values.round(_DECIMALS) for part in parts]
    columns: dict[str, list[Floats] | list[Bools]] = {"estimate": laid(estimates)}
    for level in LEVELS:
        ends = [
            interval(estimate, np.sqrt(part.estimate.variance), level=level, beyond=BEYOND_0)
            for estimate, part in zip(estimates, parts, strict=True)
        ]
        columns[f"low_{level}"] = laid([low for low, _ in ends])
        columns[f"high_{level}"] = laid([high for _, high in ends])
    columns["is_flow"] = laid(is_flow)
    columns["reconciled"] = laid([part.flows.values.round(_RECONCILED_DECIMALS) for part in parts])
    columns["standard_deviation"] = laid([_deviation(part.flows) for part in parts])
    columns["month_mean"] = laid([part.month.values.round(_RECONCILED_DECIMALS) for part in parts])
    columns["month_deviation"] = laid([_deviation(part.month) for part in parts])
    return labelled(week.domain, spec, [None], columns)


def _deviation(flows: Flows) -> Floats:
    """Return standard deviations as they are published."""
    return np.sqrt(flows.variance).round(_ERROR_DECIMALS)
