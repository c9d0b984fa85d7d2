"""Estimates of a week of bus telemetry: mean speeds, buses, and buses above limits.

Buses are counts of cells by place and hour, estimated as those of trips are (`cell_table`); mean
speeds are predicted from place, hour and cell (`speed_effects`). Buses above a limit are read both
ways, as counts and as shares of the buses that are predicted as speeds are, and a mean of the two
readings is published, nearer to the shares. Earlier weeks come in by their own noise. Like
everything here a pure function of published numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from turnstile.arrow_columns import column
from turnstile.estimates.cell_fits import Earlier, prior
from turnstile.estimates.cell_table import CellEstimates, estimated_cells
from turnstile.estimates.intervals import LEVELS, interval
from turnstile.estimates.labelled import labelled
from turnstile.estimates.speed_effects import Predicted, predicted
from turnstile.estimates.trip_estimates import Estimates
from turnstile.estimates.week_differences import SpeedLook
from turnstile.estimates.week_to_estimate import WeekToEstimate
from turnstile.measures.buses import Buses, BusesOver, Headway, Mean
from turnstile.privacy.mechanisms.bounded_mean import STEPS_PER_KMH, center_steps
from turnstile.programme.domain.public_domain import layout
from turnstile.programme.spec import TableSpec
from turnstile.release.numbers import Numbers

Floats = NDArray[np.float64]
_SPEED_PARTS, _BUS_PARTS = 10, 100  # tenths of a km/h, hundredths of a bus a day
_OF_SHARES = 0.65  # weight of the reading as shares, the closer one at epsilon 4 and 8
_LEAST_BUSES = 1.0
_UNCERTAIN = 0.5
_LARGE = 3.0


def telemetry_estimates(week: WeekToEstimate) -> Estimates:
    """Return the estimates of a week of telemetry."""
    tables: dict[str, pa.Table] = {}
    errors: dict[str, list[dict[str, Any]]] = {}
    correlations: dict[str, Sequence[dict[str, Any]]] = {}
    for table in week.promise.tables:
        kind = table.measure.kind
        if isinstance(kind, Mean):
            buses = _buses(week, table, "buses")
            tables[table.name], errors[table.name] = _means(week, table, kind, buses)
            name = f"{table.name}_buses"
            tables[name], errors[name] = _bus_table(week, table, buses), _bus_errors(week, buses)
            correlations[name] = buses.correlations
        elif isinstance(kind, Buses | Headway):
            buses = _buses(week, table, "buses")
            tables[table.name] = _bus_table(week, table, buses)
            errors[table.name] = _bus_errors(week, buses)
            correlations[table.name] = buses.correlations
        elif isinstance(kind, BusesOver):
            tables[table.name], errors[table.name] = _over_limits(week, table, kind)
    return Estimates(tables, errors, correlations)


def _grid(week: WeekToEstimate, table: TableSpec, values: Floats) -> Floats:
    """Return a flat vector of a table as places by hours; a route of a cell is a place too."""
    (segment,) = layout(week.domain, table)
    return values.reshape(segment.shape[0], -1).T.astype(np.float64)


def _drawn(week: WeekToEstimate, table: TableSpec, one: Numbers, statistic: str) -> Floats:
    """Return a week's drawn numbers of a statistic, places by hours."""
    return _grid(week, table, one.vectors[table.name, statistic][None].astype(np.float64))


def _days(numbers: Numbers) -> int:
    """Return the service days with input."""
    return max(1, len(numbers.days) - len(numbers.gaps))


def _buses(week: WeekToEstimate, table: TableSpec, statistic: str) -> CellEstimates:
    """Estimate bus-days of the week."""
    label = table.name, statistic
    earlier: Earlier | None = None
    if week.earlier:
        days = _days(week.numbers)
        scales = [days / _days(one) for one in week.earlier]  # as if all had as many days
        weeks = [
            scale * _drawn(week, table, one, statistic)
            for scale, one in zip(scales, week.earlier, strict=True)
        ]
        deviations = [
            [scale * one.deviations[label]] for scale, one in zip(scales, week.earlier, strict=True)
        ]
        earlier = prior(np.stack(weeks)[:, :, None, :], np.array(deviations))
    values = _drawn(week, table, week.numbers, statistic)
    seed = f"{week.seed}/{table.name}/{statistic}"
    (segment,) = layout(week.domain, table)
    slots = week.domain.dimension(segment.mode, table.by[0]).labels
    return estimated_cells(values, week.numbers.deviations[label], seed, earlier, slots)


def speeds_of(week: WeekToEstimate, table: TableSpec, buses: CellEstimates) -> Predicted:
    """Return the predicted mean speeds, steps about the middle of the clamp."""

    def look(weeks: Sequence[Numbers]) -> SpeedLook:
        return _look(week, table, weeks, buses.estimates)

    return _predicted(week, look)


def _predicted(week: WeekToEstimate, look: Callable[[Sequence[Numbers]], SpeedLook]) -> Predicted:
    """Predict from looks at some weeks together: at the earlier ones first, and at each alone."""
    if not week.earlier:
        return predicted(look((week.numbers,)))
    weeks = [look((one,)) for one in week.earlier]
    before = predicted(look(week.earlier), weeks=weeks)
    return predicted(look((week.numbers,)), before, weeks)


def _look(
    week: WeekToEstimate, table: TableSpec, weeks: Sequence[Numbers], buses: Floats
) -> SpeedLook:
    """Return the sums over some weeks; bus-days are estimated as this week's in each of them."""
    sums, counts = (table.name, "sum"), (table.name, "buses")
    return SpeedLook(
        sums=np.sum([_drawn(week, table, one, "sum") for one in weeks], axis=0),
        buses=np.sum([_drawn(week, table, one, "buses") for one in weeks], axis=0),
        estimated_buses=buses * sum(_days(one) for one in weeks) / _days(week.numbers),
        sum_deviation=float(np.sqrt(sum(one.deviations[sums] ** 2 for one in weeks))),
        bus_deviation=float(np.sqrt(sum(one.deviations[counts] ** 2 for one in weeks))),
    )


def _means(
    week: WeekToEstimate, table: TableSpec, kind: Mean, buses: CellEstimates
) -> tuple[pa.Table, list[dict[str, Any]]]:
    """Return mean speeds, or delays, absent where hardly a bus passes; and their errors."""
    found, clamp = speeds_of(week, table, buses), table.mean_range or 0
    least = kind.least(table.options)  # sums are measured from there
    means = np.clip((center_steps(clamp) + found.means) / STEPS_PER_KMH, 0, clamp)
    variances = found.variances / STEPS_PER_KMH**2
    is_shown = buses.estimates >= _LEAST_BUSES
    columns = _columns(means, variances, _SPEED_PARTS, highest=float(clamp))
    shown = {
        name: np.where(is_shown, np.rint((values + least) * _SPEED_PARTS) / _SPEED_PARTS, np.nan)
        for name, values in columns.items()
    }
    error = float(np.sqrt(variances[is_shown].mean())) if is_shown.any() else None
    line = {
        "numbers": int(is_shown.sum()),
        "rmse_estimated": None if error is None else round(error, 2),
        "unit": kind.unit,
        "intervals_shown": True,
    }
    return _labelled(week, table, shown), [line]


def _bus_table(week: WeekToEstimate, table: TableSpec, buses: CellEstimates) -> pa.Table:
    """Return buses a day."""
    return _labelled(week, table, _bus_columns(buses, _days(week.numbers)))


def _over_limits(
    week: WeekToEstimate, table: TableSpec, kind: BusesOver
) -> tuple[pa.Table, list[dict[str, Any]]]:
    """Return buses a day above each limit, one stretch of rows for each."""
    parts, errors = [], []
    buses = _buses_beside(week, table)
    for limit, statistic in zip(table.options, table.statistics, strict=True):
        found = _over_limit(week, table, statistic, buses)
        one = _bus_table(week, table, found)
        limits = column(np.full(len(one), limit, dtype=np.int64))
        parts.append(one.add_column(len(table.by), kind.label, limits))
        errors += [line | {kind.label: limit} for line in _bus_errors(week, found)]
    return pa.concat_tables(parts), errors


def _buses_beside(week: WeekToEstimate, table: TableSpec) -> CellEstimates | None:
    """Return the buses of a table with the same cells; None if no table has them."""
    beside = (
        one for one in week.promise.tables if one.by == table.by and one.measure.kind.has_every_bus
    )
    found = next(beside, None)
    return None if found is None else _buses(week, found, "buses")


def _over_limit(
    week: WeekToEstimate, table: TableSpec, statistic: str, buses: CellEstimates | None
) -> CellEstimates:
    """Return bus-days above one limit: the weighted mean of both readings.

    Its error is that of the shares, and half of what the readings differ by.
    """
    counts = _buses(week, table, statistic)
    if buses is None:
        return counts

    def look(weeks: Sequence[Numbers]) -> SpeedLook:
        return _share_look(week, table, statistic, weeks, buses)

    shares = _predicted(week, look)
    read = np.maximum(shares.means * buses.estimates, 0)
    return CellEstimates(
        _OF_SHARES * read + (1 - _OF_SHARES) * counts.estimates,
        shares.variances * buses.estimates**2 + (read - counts.estimates) ** 2 / 4,
        np.zeros(read.shape),
    )


def _share_look(
    week: WeekToEstimate,
    table: TableSpec,
    statistic: str,
    weeks: Sequence[Numbers],
    buses: CellEstimates,
) -> SpeedLook:
    """Return the sums over some weeks, to be read as shares of buses that are taken as known."""
    noise = [one.deviations[table.name, statistic] for one in weeks]
    known = buses.estimates * sum(_days(one) for one in weeks) / _days(week.numbers)
    return SpeedLook(
        sums=np.sum([_drawn(week, table, one, statistic) for one in weeks], axis=0),
        buses=known,
        estimated_buses=known,
        sum_deviation=float(np.linalg.norm(noise)),
        bus_deviation=0.0,
    )


def _bus_columns(found: CellEstimates, days: int) -> dict[str, Floats]:
    """Return buses a day with their intervals, withheld where the error itself is not known."""
    columns = _columns(found.estimates / days, found.variances / days**2, _BUS_PARTS)
    is_shown = (found.uncertainty <= _UNCERTAIN) | (found.estimates < _LARGE)
    return {
        name: values if name == "estimate" else np.where(is_shown, values, np.nan)
        for name, values in columns.items()
    }


def _bus_errors(week: WeekToEstimate, found: CellEstimates) -> list[dict[str, Any]]:
    """Return the estimated error of buses a day."""
    error = float(np.sqrt(found.variances.mean())) / _days(week.numbers)
    shown = _bus_columns(found, _days(week.numbers))["low_90"]
    return [
        {
            "numbers": found.estimates.size,
            "rmse_estimated": round(error, 3),
            "unit": "buses a day",
            "intervals_shown": bool(not np.isnan(shown).any()),
        }
    ]


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
    """Return columns of places by hours with their labels."""
    flat = {name: [values.T.ravel()] for name, values in columns.items()}
    return labelled(week.domain, table, [None], flat)
