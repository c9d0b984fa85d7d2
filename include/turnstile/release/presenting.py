"""From noisy vectors to tables that people read: consistent, with their errors. Post-processing.

Trips: the tables of one service day and mode are reconciled by least squares, on and off with equal
totals (PRIVACY 7). Telemetry: sums and counts become means. Nothing here sees an exact number, so
nothing here costs anything.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from turnstile.ledger.records import Attempt
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.noise import noise_variance
from turnstile.privacy.presentation import Presentation, presentation_of
from turnstile.privacy.reconciliation import (
    Measured,
    Partition,
    Reconciled,
    reconcile,
    reconcile_pair,
)
from turnstile.programme.domain import PublicDomain, layout
from turnstile.programme.spec import Measure, Outside, Programme, RowShape, TableSpec
from turnstile.publishing.labelled import labelled
from turnstile.release.plan import ReleasePlan
from turnstile.release.sealed import Artefact

_SIDES = (("tap_on_slot", "tap_on_location"), ("tap_off_slot", "tap_off_location"))
_STEPS_PER_KMH = 10
Vector = NDArray[np.int64] | NDArray[np.float64]
_WITHHELD_BELOW_SDS = 3


@dataclass(frozen=True, slots=True)
class Drawn:
    """A sealed release: what was promised, what the ledger says of it, and the noisy numbers."""

    programme: Programme
    domain: PublicDomain
    plan: ReleasePlan
    attempt: Attempt
    artefact: Artefact

    @property
    def events(self) -> tuple[DrawEvent, ...]:
        """Every draw, in order."""
        return self.plan.events

    def vectors(self, table: TableSpec, statistic: str) -> dict[date | None, NDArray[np.int64]]:
        """Return the noisy vectors of one statistic by service day."""
        return {
            noisy.service_date: noisy.values
            for noisy in self.artefact.tables
            if (noisy.table, noisy.statistic) == (table.name, statistic)
        }

    def variance(self, table: TableSpec, statistic: str) -> float:
        """Return the variance of the noise of one statistic; it is the same on every day."""
        label = f"{table.name}/{statistic}"
        event = next(event for event in self.events if event.label == label)
        return noise_variance(event.noise, event.scale)


def measurements(drawn: Drawn) -> dict[str, pa.Table]:
    """Return the noisy integers as they were drawn, labelled."""
    found = {}
    for table in drawn.programme.tables:
        by_statistic = {name: drawn.vectors(table, name) for name in table.statistics}
        days = list(next(iter(by_statistic.values())))
        columns = {name: [vectors[day] for day in days] for name, vectors in by_statistic.items()}
        found[table.name] = labelled(drawn.domain, table, days, columns)
    return found


def presented(drawn: Drawn) -> dict[str, pa.Table]:
    """Return the tables that people read, with the standard deviation of every number."""
    if drawn.programme.source.feed.shape is RowShape.TRIPS:
        return _trips(drawn)
    return {
        table.name: _mean_speed(drawn, table)
        if table.measure is Measure.MEAN_SPEED
        else _buses_over(drawn, table)
        for table in drawn.programme.tables
    }


def _trips(drawn: Drawn) -> dict[str, pa.Table]:
    """Reconcile every partition and put the parts together again."""
    tables = drawn.programme.tables
    vectors = {table.name: drawn.vectors(table, "count") for table in tables}
    days = list(next(iter(vectors.values())))
    names = ("count", "estimate", "standard_deviation")
    columns: dict[str, dict[str, list[Vector]]] = {
        table.name: {name: [] for name in names} for table in tables
    }
    for day in days:
        parts: dict[str, list[tuple[Vector, ...]]] = {t.name: [] for t in tables}
        for mode in drawn.domain.modes:
            measured = _measured(drawn, {t.name: vectors[t.name][day] for t in tables}, mode)
            for side, estimate in _reconciled(drawn, measured, mode):
                shown = presentation_of(estimate)
                for table in tables:
                    if set(table.by) <= set(side):
                        parts[table.name].append(_flat(table, side, estimate, shown))
        for name, chunks in parts.items():
            for column, vectors_of_modes in zip(names, zip(*chunks, strict=True), strict=True):
                columns[name][column].append(np.concatenate(vectors_of_modes))
    return {
        table.name: labelled(drawn.domain, table, days, columns[table.name]) for table in tables
    }


def _measured(
    drawn: Drawn, vectors: Mapping[str, NDArray[np.int64]], mode: str
) -> dict[tuple[str, ...], Measured]:
    """Return one mode's tables of one day, by their dimensions."""
    found = {}
    for table in drawn.programme.tables:
        segment = next(s for s in layout(drawn.domain, table) if s.mode == mode)
        values = vectors[table.name][segment.offset : segment.offset + segment.cells]
        found[table.by] = Measured(values.reshape(segment.shape), drawn.variance(table, "count"))
    return found


def _reconciled(
    drawn: Drawn, measured: Mapping[tuple[str, ...], Measured], mode: str
) -> list[tuple[tuple[str, str], Reconciled]]:
    """Reconcile the sides of one partition; with equal totals where every trip counts in both."""
    partitions = {}
    for slot, location in _SIDES:
        tables = {by: table for by, table in measured.items() if set(by) <= {slot, location}}
        if tables:
            shape = (
                len(drawn.domain.dimension(mode, slot).labels),
                len(drawn.domain.dimension(mode, location).labels),
            )
            partitions[slot, location] = Partition(
                shape,
                cells=tables.get((slot, location)),
                rows=tables.get((slot,)),
                columns=tables.get((location,)),
            )
    if len(partitions) == len(_SIDES) and drawn.programme.domain.outside is Outside.UNKNOWN:
        pair = reconcile_pair(*partitions.values())
        return list(zip(partitions, pair, strict=True))
    return [(side, reconcile(partition)) for side, partition in partitions.items()]


def _flat(
    table: TableSpec, side: tuple[str, str], estimate: Reconciled, shown: Presentation
) -> tuple[Vector, ...]:
    """Return presented counts, estimates and standard deviations of one table, flat."""
    values: NDArray[np.float64] | None
    if table.by == side:
        counts, values, variance = shown.cells, estimate.cells, estimate.cell_variance
    elif table.by == side[:1]:
        counts, values, variance = shown.rows, estimate.rows, estimate.row_variance
    else:
        counts, values, variance = shown.columns, estimate.columns, estimate.column_variance
    if counts is None or values is None:
        raise ValueError(f"table {table.name} was not measured")
    deviations = np.full(values.size, round(math.sqrt(variance), 4))
    return counts.ravel(), values.ravel().round(3), deviations


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
