"""Estimates of a week of bus telemetry: buses, buses beyond limits, and mean speeds or delays.

Every count has an estimate and an interval (`bus_counts`). Means (`bus_means`) are shown of cells
in which a bus passed beyond doubt, and of none where they say no more of how cells differ than
their error hides; the city, its places and its hours stand in tables of their own either way.
Earlier weeks come in by their own noise: first they are estimated together, then this week's
departure from them. Like everything here a pure function of published numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from turnstile.arrow_columns import column
from turnstile.estimates.fitting.fission import public_normals
from turnstile.estimates.fitting.sum_errors import JudgedBlocks, correlations, stretches_of
from turnstile.estimates.intervals import LEVELS, interval
from turnstile.estimates.labelled import labelled
from turnstile.estimates.table_names import BESIDE_MEANS, means_of
from turnstile.estimates.trips.trip_estimates import Estimates
from turnstile.estimates.vehicles import bus_means
from turnstile.estimates.vehicles.bus_counts import BusDays, bus_days
from turnstile.estimates.vehicles.bus_means import BusMeans, Means, SumLook
from turnstile.estimates.week_to_estimate import WeekToEstimate
from turnstile.measures.buses import BusesOver, Mean
from turnstile.privacy.mechanisms.bounded_mean import STEPS_PER_KMH
from turnstile.programme.domain.public_domain import layout
from turnstile.programme.spec import TableSpec
from turnstile.release.numbers import Numbers, Statistic

Floats = NDArray[np.float64]
_MEAN_PARTS, _BUS_PARTS = 10, 100  # tenths of a km/h or minute, hundredths of a bus a day
_SHAKEN, _SHAKE = 4, 0.1  # how often counts are shaken, by how much of their noise


@dataclass(frozen=True, slots=True, eq=False)
class _Drawn:
    """One statistic's numbers, places by hours, and the standard deviation of their noise."""

    values: Floats
    deviation: float


@dataclass(frozen=True, slots=True, eq=False)
class _Counted:
    """Bus-days of this week, and of the earlier ones on average where there are any.

    Args:
        draws: tables and statistics that count them.
        drawn: numbers of this week.
        buses: what they say.
        usual_drawn: numbers of the earlier weeks, as if each had as many days as this one.
        usual: what they say.
    """

    draws: Sequence[tuple[TableSpec, str]]
    drawn: _Drawn
    buses: BusDays
    usual_drawn: _Drawn | None
    usual: BusDays | None


def telemetry_estimates(week: WeekToEstimate) -> Estimates:
    """Return the estimates of a week of telemetry."""
    estimates = Estimates({}, {}, {})
    known: dict[frozenset[str], tuple[_Counted, Sequence[dict[str, Any]]]] = {}
    for table in week.promise.tables:
        kind = table.measure.kind
        if isinstance(kind, BusesOver):
            estimates = _with(estimates, _over_limits(week, table, kind))
            continue
        draws = _same_buses(week, table)
        name = frozenset(spec.name for spec, _ in draws)
        if name not in known:
            counted = _counted(week, draws)
            known[name] = counted, _correlations(week, counted)
        if isinstance(kind, Mean):
            estimates = _with(estimates, _mean_tables(week, table, kind, known[name][0]))
        table_name = table.name + BESIDE_MEANS if isinstance(kind, Mean) else table.name
        estimates = _with(
            estimates, _bus_table(week, replace(table, name=table_name), *known[name])
        )
    return estimates


def _with(estimates: Estimates, more: Estimates) -> Estimates:
    """Return the tables of both."""
    return Estimates(
        {**estimates.tables, **more.tables},
        {**estimates.errors, **more.errors},
        {**estimates.correlations, **more.correlations},
    )


def _same_buses(week: WeekToEstimate, table: TableSpec) -> list[tuple[TableSpec, str]]:
    """Return the draws of the same buses in the same cells: every one that counts all of them."""
    if not table.measure.kind.has_every_bus:
        return [(table, "buses")]
    specs = (spec for spec in week.promise.tables if spec.by == table.by)
    return [(spec, "buses") for spec in specs if spec.measure.kind.has_every_bus]


def _days(numbers: Numbers) -> int:
    """Return the service days with input."""
    return max(1, len(numbers.days) - len(numbers.gaps))


def _drawn(
    week: WeekToEstimate, numbers: Numbers, draws: Sequence[tuple[TableSpec, str]]
) -> _Drawn:
    """Return the mean of draws of the same numbers, by precision, as if of this week's days."""
    labels: list[Statistic] = [(table.name, statistic) for table, statistic in draws]
    precisions = np.array([numbers.deviations[label] ** -2.0 for label in labels])
    vectors = np.stack([numbers.vectors[label][None] for label in labels])
    scale = _days(week.numbers) / _days(numbers)
    (segment,) = layout(week.domain, draws[0][0])
    values = scale * (precisions / precisions.sum()) @ vectors
    grid = values.reshape(segment.shape[0], -1).T.astype(np.float64)
    return _Drawn(grid, scale * float(precisions.sum() ** -0.5))


def _mean_of(weeks: Sequence[_Drawn], counts: Sequence[_Drawn]) -> _Drawn:
    """Return the mean of weeks, each by the precision of its counts."""
    precisions = np.array([count.deviation**-2.0 for count in counts])
    shares = precisions / precisions.sum()
    values = np.tensordot(shares, np.stack([week.values for week in weeks]), axes=1)
    return _Drawn(values, float(np.linalg.norm(shares * [week.deviation for week in weeks])))


def _counted(week: WeekToEstimate, draws: Sequence[tuple[TableSpec, str]]) -> _Counted:
    """Estimate bus-days."""
    now = _drawn(week, week.numbers, draws)
    if not week.earlier:
        return _Counted(draws, now, bus_days(now.values, now.deviation), None, None)
    before = [_drawn(week, numbers, draws) for numbers in week.earlier]
    usual_drawn = _mean_of(before, before)
    usual = bus_days(usual_drawn.values, usual_drawn.deviation)
    buses = bus_days(now.values, now.deviation, usual)
    return _Counted(draws, now, buses, usual_drawn, usual)


def _mean_tables(
    week: WeekToEstimate, table: TableSpec, kind: Mean, counted: _Counted
) -> Estimates:
    """Return means of cells, and those of the city, its places and hours."""
    week_means = _means(week, table, counted)
    is_shown = week_means.cells.is_shown & (week_means.ratio <= bus_means.MOST_RATIO)
    parts = [(table, replace(week_means.cells, is_shown=is_shown))] + [
        (replace(table, name=table.name + suffix, by=by), week_means.sums[suffix.removeprefix("_")])
        for suffix, by in means_of(table.by).items()
    ]
    tables, errors = {}, {}
    for spec, means in parts:
        tables[spec.name], error = _mean_rows(week, spec, kind, means)
        errors[spec.name] = [error]
    errors[table.name][0] |= {
        "occupied": int(week_means.cells.is_shown.sum()),
        "error_over_spread": None if np.isinf(week_means.ratio) else round(week_means.ratio, 3),
    }
    return Estimates(tables, errors, {})


def _mean_rows(
    week: WeekToEstimate, table: TableSpec, kind: Mean, means: Means
) -> tuple[pa.Table, dict[str, Any]]:
    """Return means with their labels, absent where they are not shown; and their error."""
    clamp, least = float(table.mean_range or 0), kind.least(table.options)
    values = np.clip(clamp / 2 + means.values / STEPS_PER_KMH, 0, clamp)
    variances = means.variances / STEPS_PER_KMH**2
    columns = _columns(values, variances, _MEAN_PARTS, highest=clamp)
    shown = {
        name: np.where(
            means.is_shown, np.rint((numbers + least) * _MEAN_PARTS) / _MEAN_PARTS, np.nan
        )
        for name, numbers in columns.items()
    }
    shown_variances = variances[means.is_shown]
    error = {
        "numbers": shown_variances.size,
        "rmse_estimated": round(float(np.sqrt(shown_variances.mean())), 2)
        if shown_variances.size
        else None,
        "unit": kind.unit,
        "intervals_shown": True,
    }
    return _labelled(week, table, shown), error


def _means(week: WeekToEstimate, table: TableSpec, counted: _Counted) -> BusMeans:
    """Return the means of a week, from earlier weeks first where there are any."""
    kind, draw = table.measure.kind, [(table, "sum")]
    is_delay = isinstance(kind, Mean) and kind.is_delay
    span = float(STEPS_PER_KMH * (table.mean_range or 0))
    now = _drawn(week, week.numbers, draw)

    def look(sums: _Drawn, counts: _Drawn, buses: BusDays, weeks: int) -> SumLook:
        noise = counts.deviation * len(sums.values) ** 0.5
        in_sds = counts.values.sum(axis=0) / noise
        return SumLook(sums.values, sums.deviation, buses, in_sds, span, is_delay, weeks)

    this_week = look(now, counted.drawn, counted.buses, 1)
    if counted.usual is None or counted.usual_drawn is None:
        return bus_means.bus_means(this_week)
    before = [_drawn(week, numbers, draw) for numbers in week.earlier]
    counts = [_drawn(week, numbers, counted.draws) for numbers in week.earlier]
    sums = _mean_of(before, counts)
    usual = bus_means.bus_means(look(sums, counted.usual_drawn, counted.usual, len(before)))
    return bus_means.bus_means(this_week, usual)


def _over_limits(week: WeekToEstimate, table: TableSpec, kind: BusesOver) -> Estimates:
    """Return buses a day beyond each limit, one stretch of rows for each."""
    parts, errors = [], []
    for limit, statistic in zip(table.options, table.statistics, strict=True):
        buses = _counted(week, [(table, statistic)]).buses
        rows = _labelled(week, table, _bus_columns(buses, _days(week.numbers)))
        limits = column(np.full(len(rows), limit, dtype=np.int64))
        parts.append(rows.add_column(len(table.by), kind.label, limits))
        errors.append(_bus_errors(week, buses) | {kind.label: limit})
    return Estimates({table.name: pa.concat_tables(parts)}, {table.name: errors}, {})


def _bus_table(
    week: WeekToEstimate, table: TableSpec, counted: _Counted, shares: Sequence[dict[str, Any]]
) -> Estimates:
    rows = _labelled(week, table, _bus_columns(counted.buses, _days(week.numbers)))
    errors = [_bus_errors(week, counted.buses)]
    return Estimates({table.name: rows}, {table.name: errors}, {table.name: shares})


def _correlations(week: WeekToEstimate, counted: _Counted) -> Sequence[dict[str, Any]]:
    """Return how far errors of counts go together, as numbers shaken a little tell."""
    table, _ = counted.draws[0]
    (segment,) = layout(week.domain, table)
    slots = week.domain.dimension(segment.mode, table.by[0]).labels
    values, deviation = counted.drawn.values[:, None, :], counted.drawn.deviation
    buses = counted.buses.mean[:, None, :]

    def shaken(number: int) -> tuple[Floats, Floats]:
        noise = deviation * public_normals(f"{week.seed}/{table.name}/{number}", values.shape)
        moved = bus_days((values + _SHAKE * noise)[:, 0], deviation, counted.usual)
        return noise / _SHAKE, moved.mean[:, None, :] - buses

    blocks = JudgedBlocks(
        apart=buses - values,
        shaken=[shaken(number) for number in range(_SHAKEN)],
        variances=counted.buses.variance[:, None, :],
        kinds=np.ones((1, 1)),  # of the week as one
        stretches=stretches_of(slots),
        slot_sizes=np.ones(len(slots), dtype=np.int64),
        noise=lambda places, count: places * count * deviation**2,
    )
    return correlations([blocks])


def _bus_columns(buses: BusDays, days: int) -> dict[str, Floats]:
    """Return buses a day with their intervals."""
    return _columns(buses.mean / days, buses.variance / days**2, _BUS_PARTS)


def _bus_errors(week: WeekToEstimate, buses: BusDays) -> dict[str, Any]:
    error = float(np.sqrt(buses.variance.mean())) / _days(week.numbers)
    return {
        "numbers": buses.mean.size,
        "rmse_estimated": round(error, 3),
        "unit": "buses a day",
        "intervals_shown": True,
    }


def _columns(
    estimates: Floats, variances: Floats, parts: int, *, highest: float = np.inf
) -> dict[str, Floats]:
    """Return rounded estimates and interval ends, within 0 and the highest value."""
    columns = {"estimate": np.rint(estimates * parts) / parts}
    for level in LEVELS:
        low, high = interval(columns["estimate"], np.sqrt(variances), level=level, parts=parts)
        columns[f"low_{level}"], columns[f"high_{level}"] = low, np.minimum(high, highest)
    return columns


def _labelled(week: WeekToEstimate, table: TableSpec, columns: dict[str, Floats]) -> pa.Table:
    """Return columns of places by hours, or of one of them, with their labels."""
    flat = {name: [values.T.ravel()] for name, values in columns.items()}
    return labelled(week.domain, table, [None], flat)
