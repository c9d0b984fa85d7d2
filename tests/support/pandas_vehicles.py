"""Vehicles counted by pandas, h3 and hmac alone: a second way to the same exact tables."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from datetime import date
from fractions import Fraction
from math import floor

import h3
import numpy as np
import pandas as pd
from bounding_messages import message

from turnstile.measures.registry import Measure
from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.spec import Programme, TableSpec

Label = tuple[str, str, date | None]
Adds = Callable[[pd.DataFrame], pd.Series]
_HALF = Fraction(1, 2)
_MEANS = {  # column of what a mean is of, its unit in thousandths, whether it is centered at 0
    Measure.MEAN_SPEED: ("milli_kmh", 1000, False),
    Measure.MEAN_DELAY: ("delay_s", 60, True),
}


def vehicle_tables(
    programme: Programme, domain: PublicDomain, readings: pd.DataFrame, secret: bytes
) -> dict[Label, np.ndarray]:
    """Return the exact vectors by label.

    Args:
        programme: of days of vehicles.
        domain: its public cells.
        readings: columns vehicle, day (date), minute, and what its tables are of: latitude and
            longitude, milli_kmh, delay_s (may be empty), and the label of each category.
        secret: that orders the cells of a vehicle's day.
    """
    (bound,) = programme.units
    by, mode = programme.tables[0].by, domain.modes[0]
    labels = {name: list(domain.dimension(mode, name).labels) for name in by}
    readings = readings.assign(slot=_slots(programme, readings["minute"]))
    if "cell" in by:
        at = list(zip(readings["latitude"], readings["longitude"], strict=True))
        cell_of = {
            position: h3.latlng_to_cell(*position, programme.domain.h3_resolution)
            for position in set(at)
        }
        readings = readings.assign(cell=[cell_of[position] for position in at])
    for name in by:
        index = {label: number for number, label in enumerate(labels[name])}
        readings = readings.assign(**{name: readings[name].map(index)})
    readings = readings.dropna(subset=list(by)).astype(dict.fromkeys(by, "int64"))
    columns = {name: [*readings.get(name, [])] or 0 for name in ("milli_kmh", "delay_s")}
    readings = readings.assign(**columns)
    groups = readings.groupby(["vehicle", "day", *by])
    cells = groups.agg(
        sum_milli_kmh=("milli_kmh", "sum"), n_milli_kmh=("milli_kmh", "count"),
        most=("milli_kmh", "max"),
        sum_delay_s=("delay_s", "sum"), n_delay_s=("delay_s", "count"),
    ).reset_index()  # fmt: skip
    of_cell = [name for name in ("slot", "cell") if name in by]
    of_cell += [name for name in by if name not in of_cell]
    records = cells[["day", "vehicle", *of_cell]].itertuples(index=False, name=None)
    cells["key"] = [
        hmac.digest(secret, message(str(day), cell, vehicle), "sha256")
        for day, vehicle, *cell in records
    ]
    cells = cells.sort_values("key").groupby(["vehicle", "day"]).head(bound.contributions_max)
    shape = [len(labels[name]) for name in by]
    at = np.ravel_multi_index(tuple(cells[name].to_numpy() for name in by), shape)
    return {
        (table.name, statistic, None): np.bincount(
            at, weights=_adds(table, statistic, cells), minlength=int(np.prod(shape))
        ).astype(np.int64)
        for table in programme.tables
        for statistic in table.statistics
    }


def _slots(programme: Programme, minutes: pd.Series) -> list[str | None]:
    first, length = programme.domain.first_minute, programme.time.slot_minutes
    begins = [first + (int(minute) - first) // length * length for minute in minutes]
    return [f"{begin // 60:02d}:{begin % 60:02d}" for begin in begins]


def _adds(table: TableSpec, statistic: str, groups: pd.DataFrame) -> np.ndarray:
    """What each vehicle's day adds to its cell."""
    if table.measure in (Measure.BUSES, Measure.HEADWAY):
        return np.ones(len(groups))
    if table.measure is Measure.BUSES_OVER:
        return (groups["most"] > 1000 * int(statistic.removeprefix("over_"))).to_numpy(float)
    column, unit, is_centered = _MEANS[table.measure]
    has_one = groups[f"n_{column}"] > 0
    if statistic == "buses":
        return has_one.to_numpy(float)
    (most,) = table.options
    least = -most if is_centered else 0
    middle = (most + least) * 5
    return np.array(
        [
            floor(10 * min(max(Fraction(int(total), unit * number), least), most) + _HALF) - middle
            if number
            else 0
            for total, number in zip(groups[f"sum_{column}"], groups[f"n_{column}"], strict=True)
        ],
        dtype=float,
    )
