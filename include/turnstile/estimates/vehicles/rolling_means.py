"""Means over several published weeks: sums and counts add up, and so do their variances.

Post-processing of published packages, so it costs nothing. Drawing anew on weeks that were drawn
on before would be charged for every one of them (PRIVACY 1.3, 6.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isqrt

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from turnstile.arrow_columns import column, vector
from turnstile.errors import InputError
from turnstile.estimates.vehicles.mean_intervals import RatioNoise, means_of
from turnstile.privacy.events import DrawEvent
from turnstile.privacy.noise_families import NoiseFamily
from turnstile.programme.spec import TableSpec

_GRID = 2**20
_NO_LABELS = ("sum", "buses", "gap_days")


@dataclass(frozen=True, slots=True)
class WeekOfMeans:
    """What one published package says of one table of means.

    Args:
        labels: columns that name the cells.
        domain_digest: of the public cells.
        sums: noisy centered sums, shape (cells,).
        counts: noisy bus-days, shape (cells,).
        noise: declared.
        mean_range: V, km/h: sums are from the middle of it, as the release promised.
    """

    labels: pa.Table
    domain_digest: str
    sums: NDArray[np.int64]
    counts: NDArray[np.int64]
    noise: RatioNoise
    mean_range: int


def week_of_means(
    drawn: pa.Table, events: Sequence[DrawEvent], spec: TableSpec, domain_digest: str
) -> WeekOfMeans:
    """Return the drawn numbers of a table of means.

    Args:
        drawn: its rows as drawn, by its own names of labels.
        events: draws of its release.
        spec: the table as the release promised it.
        domain_digest: of the public cells.
    """
    by_statistic = {event.statistic: event for event in events if event.table == spec.name}
    of_sum, of_count = by_statistic["sum"], by_statistic["buses"]
    return WeekOfMeans(
        labels=drawn.drop_columns([name for name in _NO_LABELS if name in drawn.column_names]),
        domain_digest=domain_digest,
        sums=vector(drawn.column("sum")),
        counts=vector(drawn.column("buses")),
        noise=RatioNoise(of_sum.noise, of_sum.scale, of_count.scale, drawn.num_rows),
        mean_range=spec.mean_range or 0,
    )


def over_slots(week: WeekOfMeans) -> WeekOfMeans:
    """Return the numbers of each H3 cell, all slots of the day (and all routes) together."""
    labels = week.labels.column("cell").combine_chunks().cast(pa.string()).dictionary_encode()
    codes, cells = labels.indices.to_numpy(), len(labels.dictionary)
    slots = int(np.bincount(codes).max())
    sums, counts = (np.zeros(cells, dtype=np.int64) for _ in range(2))
    np.add.at(sums, codes, week.sums)
    np.add.at(counts, codes, week.counts)
    noise = _noise_of_sums([week.noise] * slots, cells)
    named = pa.table({"cell": labels.dictionary})
    return replace(week, labels=named, sums=sums, counts=counts, noise=noise)


def rolling_means(weeks: Sequence[WeekOfMeans]) -> pa.Table:
    """Return the mean speeds over all these weeks, with their errors.

    Args:
        weeks: at least one, drawn independently, of the same cells and range.

    Raises:
        InputError: no week, or weeks of different cells, ranges or noise families.
    """
    if len({(week.domain_digest, week.noise.family, week.mean_range) for week in weeks}) != 1:
        rule = "weeks of one programme with the same cells, noise and range of speeds can be "
        rule += "added; name such weeks"
        raise InputError(where="rolling mean", field="weeks", rule=rule)
    sums = np.sum([week.sums for week in weeks], axis=0)
    counts = np.sum([week.counts for week in weeks], axis=0)
    noise = _noise_of_sums([week.noise for week in weeks], counts.size)
    means = means_of(sums, counts, noise, clamp_kmh=weeks[0].mean_range)
    columns = {
        "mean_speed_kmh": means.mean,
        "standard_deviation_kmh": means.deviation,
        "low_95_kmh": means.low,
        "high_95_kmh": means.high,
    }
    table = weeks[0].labels
    for name, values in columns.items():
        shown = np.where(means.is_withheld, np.nan, values).round(2)
        table = table.append_column(name, column(shown))
    table = table.append_column("bus_days", column(np.maximum(counts, 0)))
    deviation = np.full(counts.size, round(noise.count_sd, 4))
    table = table.append_column("bus_days_standard_deviation", column(deviation))
    return table.append_column("is_withheld", column(means.is_withheld))


def _noise_of_sums(noises: Sequence[RatioNoise], cells: int) -> RatioNoise:
    """Return the noise of sums of several draws, which is near to normal."""
    of_sums, of_counts = _root([n.sum_sd for n in noises]), _root([n.count_sd for n in noises])
    return RatioNoise(NoiseFamily.DISCRETE_GAUSSIAN, of_sums, of_counts, cells)


def _root(deviations: Sequence[float]) -> Fraction:
    """Return the root of a sum of variances, on the grid of scales, rounded up."""
    squared = sum(Fraction(deviation) ** 2 for deviation in deviations) * _GRID**2
    return Fraction(isqrt(int(squared)) + 1, _GRID)
