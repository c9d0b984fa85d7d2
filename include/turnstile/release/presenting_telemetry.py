"""Telemetry as people read it: means and rates from noisy sums and counts, with their errors."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa

from turnstile.programme.spec import Measure, TableSpec
from turnstile.publishing.labelled import labelled
from turnstile.release.drawn import Drawn

_STEPS_PER_KMH = 10
_WITHHELD_BELOW_SDS = 3


def telemetry_tables(drawn: Drawn) -> dict[str, pa.Table]:
    """Return the tables of speeds and of buses above limits."""
    return {
        table.name: _mean_speed(drawn, table)
        if table.measure is Measure.MEAN_SPEED
        else _buses_over(drawn, table)
        for table in drawn.programme.tables
    }


def _mean_speed(drawn: Drawn, table: TableSpec) -> pa.Table:
    """Return mean speeds; withheld where the noisy number of bus-days is within its noise.

    privacy.md section 5: mean = (5V + S / max(N, n0)) / 10, S the centered sum in 0.1 km/h.
    """
    ((_, sums),) = drawn.vectors(table, "sum").items()
    ((_, buses),) = drawn.vectors(table, "buses").items()
    sum_sd = math.sqrt(drawn.variance(table, "sum"))
    buses_sd = math.sqrt(drawn.variance(table, "buses"))
    clamp_kmh = float(table.clamp_kmh or 0)
    least = max(1, math.ceil(_WITHHELD_BELOW_SDS * buses_sd))
    bus_days = np.maximum(buses, least)
    offsets_kmh = sums / bus_days / _STEPS_PER_KMH
    means_kmh = np.clip(clamp_kmh / 2 + offsets_kmh, 0, clamp_kmh)
    spread = np.hypot(sum_sd / _STEPS_PER_KMH, (means_kmh - clamp_kmh / 2) * buses_sd) / bus_days
    is_withheld = buses < least
    columns = {
        "mean_speed_kmh": [np.where(is_withheld, np.nan, means_kmh.round(2))],
        "standard_deviation_kmh": [np.where(is_withheld, np.nan, spread.round(2))],
        "bus_days": [np.maximum(buses, 0)],
        "bus_days_standard_deviation": [np.full(buses.size, round(buses_sd, 4))],
        "is_withheld": [is_withheld],
    }
    return _nan_as_null(labelled(drawn.domain, table, [None], columns))


def _buses_over(drawn: Drawn, table: TableSpec) -> pa.Table:
    """Return buses a day above each limit, averaged over the service days with input."""
    days = max(1, len(drawn.events[0].blocks) - len(drawn.artefact.gaps))
    columns = {}
    for limit, statistic in zip(table.limits_kmh, table.statistics, strict=True):
        ((_, buses),) = drawn.vectors(table, statistic).items()
        deviation = math.sqrt(drawn.variance(table, statistic)) / days
        columns[f"buses_a_day_over_{limit}_kmh"] = [(np.maximum(buses, 0) / days).round(3)]
        columns[f"standard_deviation_over_{limit}"] = [np.full(buses.size, round(deviation, 4))]
    return labelled(drawn.domain, table, [None], columns)


def _nan_as_null(table: pa.Table) -> pa.Table:
    """Return a table whose withheld numbers are absent, not NaN."""
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_floating(column.type):
            columns[name] = pa.array(column.to_numpy(), from_pandas=True)
        else:
            columns[name] = column
    return pa.table(columns)
