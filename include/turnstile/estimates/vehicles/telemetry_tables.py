"""Telemetry as people read it: means and rates from noisy sums and counts, with their errors."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from turnstile.estimates.error_bars import error_bar
from turnstile.estimates.labelled import Column, labelled
from turnstile.estimates.vehicles.mean_intervals import Means, RatioNoise, means_of
from turnstile.measures.buses import Headway, Mean
from turnstile.programme.spec import TableSpec
from turnstile.release.drawn import Drawn


def telemetry_tables(drawn: Drawn) -> dict[str, pa.Table]:
    """Return the tables of means and headways; numbers of buses are unbiased as drawn."""
    present = {Mean: _means, Headway: _headway}
    return {
        table.name: make(drawn, table)
        for table in drawn.programme.tables
        for kind, make in present.items()
        if isinstance(table.measure.kind, kind)
    }


def service_days(drawn: Drawn) -> int:
    """Return the service days with input that a draw adds up."""
    days = {block.service_date for block in drawn.events[0].blocks}
    return max(1, len(days - set(drawn.artefact.gaps)))


def _means(drawn: Drawn, table: TableSpec) -> pa.Table:
    """Return means; withheld where the noisy number of bus-days is within its noise."""
    kind = table.measure.kind
    if not isinstance(kind, Mean):
        raise TypeError(f"{table.name} is no table of means")
    ((_, sums),) = drawn.vectors(table, "sum").items()
    ((_, buses),) = drawn.vectors(table, "buses").items()
    means = means_of(sums, buses, ratio_noise(drawn, table), clamp_kmh=table.mean_range or 0)
    least = kind.least(table.options)
    columns: dict[str, list[Column]] = {
        f"mean_{kind.noun}_{kind.suffix}": [(means.mean + least).round(2)],
        f"standard_deviation_{kind.suffix}": [means.deviation.round(2)],
        **rounded_outwards(means, kind.suffix, least),
    }
    return labelled(drawn.domain, table, [None], columns)


def _headway(drawn: Drawn, table: TableSpec) -> pa.Table:
    """Return mean times between buses: observed minutes over the buses that came in them.

    The interval is that of the number of buses, read as a time; without an upper end, and without
    a mean, where the number is within its noise.
    """
    ((_, buses),) = drawn.vectors(table, "buses").items()
    bar = error_bar(drawn.draw(table, "buses"))
    observed = float(drawn.programme.time.slot_minutes * service_days(drawn))
    is_withheld = buses <= bar.half_width_95
    shown = np.where(is_withheld, np.nan, buses)
    columns: dict[str, list[Column]] = {
        "headway_minutes": [(observed / shown).round(2)],
        **{
            name: [hundredths / 100]
            for level, width in ((90, bar.half_width_90), (95, bar.half_width_95))
            for name, hundredths in (
                (f"low_{level}_minutes", np.floor(100 * observed / np.maximum(buses + width, 1))),
                (f"high_{level}_minutes", np.ceil(100 * observed / (shown - width))),
            )
        },
    }
    return labelled(drawn.domain, table, [None], columns)


def rounded_outwards(means: Means, suffix: str, least: int = 0) -> dict[str, list[Column]]:
    """Return both ends of the intervals, rounded so that none loses its estimate or its width.

    Args:
        means: from the lower end of their range on.
        suffix: of the columns.
        least: lower end of the range.
    """
    return {
        f"low_95_{suffix}": [np.floor((means.low + least) * 100) / 100],
        f"high_95_{suffix}": [np.ceil((means.high + least) * 100) / 100],
    }


def ratio_noise(drawn: Drawn, table: TableSpec) -> RatioNoise:
    """Return the declared noise of a table of means."""
    of_sum, of_count = drawn.draw(table, "sum"), drawn.draw(table, "buses")
    cells = drawn.domain.cells(table)
    return RatioNoise(of_sum.noise, of_sum.scale, of_count.scale, cells)
