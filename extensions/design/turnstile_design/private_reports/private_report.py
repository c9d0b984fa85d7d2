"""The private planning report: the tables as CSV and SVG, in the private zone and nowhere else.

Every file is readable by its owner only, and says first that it is private. No other room imports
this one (import-linter), so no package can hold what is written here.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from turnstile.durable_files import OWNER_ONLY, replace_durably
from turnstile.errors import InputError
from turnstile.estimates.vehicles.mean_intervals import RatioNoise
from turnstile.measures.registry import OF_SPEEDS
from turnstile.privacy.noise import noise_variance
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Programme, UnitBound
from turnstile.release.plan import make_plan
from turnstile_design.private_reports.bus_pairs import read_pairs, records_by_hour
from turnstile_design.private_reports.charts import bars, lines
from turnstile_design.private_reports.exact_tables_of_buses import (
    NoiseOfK,
    NoiseOfMean,
    NoiseOfOver,
    cells_meeting,
    choice_of_k,
    hats_histogram,
    records_by_window,
    resolution_row,
)

if TYPE_CHECKING:
    from turnstile.programme.domain.public_domain import PublicDomain
    from turnstile.service_calendar import ServicePeriod

RESOLUTIONS = (6, 7, 8)  # and the programme's own
BOUNDS = (2, 5, 10, 15, 20, 30, 45, 60, 89)  # and the programme's own
NOTICE = (
    "# PRIVATE: exact numbers, read from raw rows; never publish. "
    "What is chosen by them is outside of the guarantee"
)
_ERRORS_BY_K = {  # picture: columns of what the programme measures
    "speed_error_by_k": ("mean_speed_bias_kmh", "mean_speed_noise_kmh", "mean_speed_error_kmh"),
    "speeding_error_by_k": (
        "speeding_bias_buses_a_day",
        "speeding_noise_buses_a_day",
        "speeding_error_buses_a_day",
    ),
}
_FOLDER_MODE = 0o700
_MINUTES_PER_HOUR = 60


def write_report(
    programme: Programme,
    domain: PublicDomain,
    period: ServicePeriod,
    *,
    rows_folder: Path,
    folder: Path,
) -> tuple[Path, ...]:
    """Write the planning tables and pictures of a period and return their files.

    Args:
        programme: of telemetry with positions; without a table of mean speeds, or of buses above
            limits, nothing is said of these.
        domain: its public cells; the report itself looks at observed ones.
        period: service days.
        rows_folder: `rows/` of the period's snapshot, in the private zone.
        folder: of the private zone; made if need be.

    Raises:
        InputError: the programme is not about positions of vehicles.
    """
    feed, resolution = programme.source.feed, programme.domain.h3_resolution
    if feed.shape is not RowShape.TELEMETRY or feed.names_stops or resolution is None:
        rule = "planning reports are about positions of vehicles; name a programme such as itms"
        raise InputError(where=programme.name, field="source.feed", rule=rule)
    days = period.days
    pairs = {
        r: read_pairs(programme, days, rows_folder, resolution=r)
        for r in sorted({*RESOLUTIONS, resolution})
    }
    first, last = (
        minute // _MINUTES_PER_HOUR
        for minute in (programme.domain.first_minute, programme.domain.last_minute)
    )
    declared = {bound.contributions_max for bound in programme.units if not bound.unit.is_record}
    noises = [_noise(programme, domain, period, bound) for bound in sorted({*BOUNDS, *declared})]
    tables = {
        "resolutions": pd.DataFrame([resolution_row(pairs[r], r) for r in pairs]),
        "hats_per_bus_day": hats_histogram(pairs[resolution]),
        "records_by_hour": records_by_window(records_by_hour(days, rows_folder), first, last),
        "cells_meeting_condition": pd.DataFrame({"cell": cells_meeting(pairs[resolution])}),
        "choice_of_k": choice_of_k(pairs[resolution], noises),
    }
    return _written(tables, folder)


def _written(tables: dict[str, pd.DataFrame], folder: Path) -> tuple[Path, ...]:
    """Write tables and pictures."""
    folder.mkdir(parents=True, exist_ok=True, mode=_FOLDER_MODE)
    folder.chmod(_FOLDER_MODE)
    files = [
        _private(folder / f"{name}.csv", f"{NOTICE}\n{table.round(4).to_csv(index=False)}")
        for name, table in tables.items()
    ]
    pictures = {
        "hats_per_bus_day": bars(tables["hats_per_bus_day"], "hats", "bus_days"),
        "records_by_hour": bars(tables["records_by_hour"], "hour", "records"),
        "mean_buses_by_resolution": bars(
            tables["resolutions"], "resolution", "mean_buses_per_hat_and_day"
        ),
    }
    by_k = tables["choice_of_k"]
    for name, columns in _ERRORS_BY_K.items():
        if {*columns} <= {*by_k.columns}:
            pictures[name] = lines(by_k, "k", columns)
    files += [_private(folder / f"{name}.svg", picture) for name, picture in pictures.items()]
    return tuple(files)


def _private(path: Path, content: str) -> Path:
    """Write a file that its owner alone can read, whole or not at all."""
    replace_durably(path, content.encode(), OWNER_ONLY)
    return path


def _noise(
    programme: Programme, domain: PublicDomain, period: ServicePeriod, bound: int
) -> NoiseOfK:
    """Return the noise of the programme's own amount under another bound, from its own plan."""
    units = (UnitBound(ProtectionUnit.BUS_DAY, bound),)
    planned = make_plan(replace(programme, units=units), domain, period)
    events = {event.label: event for event in planned.events}
    speeds, over = (
        next((table for table in programme.tables if table.measure is measure), None)
        for measure in OF_SPEEDS
    )
    of_mean, of_over = None, None
    if speeds is not None:
        of_sum, of_count = events[f"{speeds.name}/sum"], events[f"{speeds.name}/buses"]
        ratio = RatioNoise(of_sum.noise, of_sum.scale, of_count.scale, domain.cells(speeds))
        of_mean = NoiseOfMean(ratio, clamp_kmh=speeds.mean_range or 0)
    if over is not None:
        event = events[f"{over.name}/{over.statistics[0]}"]
        over_sd = float(noise_variance(event.noise, event.scale)) ** 0.5
        of_over = NoiseOfOver(over_sd, limit_kmh=over.options[0])
    return NoiseOfK(bound, of_mean, of_over)
