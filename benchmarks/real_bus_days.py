"""Real days of bus telemetry as weeks to draw: Austin (CapMetro) and Surat, from `shared/data`.

A bus-day is one bus on one service day; what it adds to a cell and hour is its own mean, clamped,
as the product counts it (`bounded_mean`). Rows are read here by pandas and h3, so that the
benchmark's truth owes nothing to the product's counting.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import h3
import numpy as np
import pandas as pd
from estimate_weeks import Random
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
CLAMP_KMH = 65
MOST_KMH, LIMIT_KMH = 130, 40
HALF_STEPS = 5 * CLAMP_KMH
KMH_OF_2015, KMH_OF_2016 = 1.609344, 3.6  # positions say so: miles an hour, then metres a second
HOURS = 24
FOUR_DAYS = ("2016-11-24", "2016-11-25", "2016-11-26", "2016-11-27")
SUNDAYS = ("2015-06-07", "2015-09-06", "2016-01-17", "2016-02-07")
SAVED_DAY = "2015-03-08"
_STOPS = "stops_20160821_20170121.csv.gz"
_SURAT = ("suratTestLarge.zip", "suratTestLarge.csv")


@dataclass(frozen=True)
class Pairs:
    """Pairs of hour and cell of bus-days: one entry a pair; every array shape (pairs,).

    Args:
        cells: labels of the public cells.
        bus_day: number of the bus-day.
        index: of hour and cell, hours first.
        steps: what the pair adds to the sum, tenths of a km/h about the middle of the clamp.
        over: whether the bus was above 40 km/h there.
    """

    cells: tuple[str, ...]
    hours: tuple[str, ...]
    bus_day: Ints
    index: Ints
    steps: Ints
    over: Ints

    @property
    def size(self) -> int:
        """Cells of the table."""
        return len(self.cells) * len(self.hours)

    def of_buses(self, wanted: Ints) -> Pairs:
        """Return the pairs of these bus-days, in this order and as often as they are named."""
        order = np.argsort(self.bus_day, kind="stable")
        starts = np.searchsorted(self.bus_day[order], wanted)
        ends = np.searchsorted(self.bus_day[order], wanted, side="right")
        rows = np.concatenate([order[a:b] for a, b in zip(starts, ends, strict=True)])
        bus_day = np.repeat(np.arange(len(wanted)), ends - starts)
        return Pairs(self.cells, self.hours, bus_day, self.index[rows], self.steps[rows],
                     self.over[rows])  # fmt: skip

    def bounded(self, most: int, coins: Random) -> Pairs:
        """Return at most so many pairs of each bus-day, chosen by chance."""
        order = np.lexsort((coins.random(self.bus_day.size), self.bus_day))
        rank = np.arange(order.size) - np.searchsorted(self.bus_day[order], self.bus_day[order])
        kept = order[rank < most]
        return Pairs(self.cells, self.hours, self.bus_day[kept], self.index[kept],
                     self.steps[kept], self.over[kept])  # fmt: skip

    def added(self) -> tuple[Floats, Floats, Floats]:
        """Return centered sums, bus-days and bus-days above 40 km/h of every cell."""
        weights = (self.steps, np.ones(self.steps.size), self.over)
        sums, buses, over = (np.bincount(self.index, weight, self.size) for weight in weights)
        return sums, buses, over


def means_of(pairs: Pairs) -> Floats:
    """Return the mean speeds of a table, km/h; not a number where no bus passed."""
    sums, buses, _ = pairs.added()
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(buses > 0, (HALF_STEPS + sums / buses) / 10, np.nan)


def _rows(day: Path) -> pd.DataFrame:
    rows = pd.read_csv(day, dtype={"vehicle_id": str})
    rows = rows.dropna(subset=["vehicle_id", "timestamp", "speed", "latitude", "longitude"])
    rows["kmh"] = rows.speed * (KMH_OF_2015 if day.name < "2016" else KMH_OF_2016)
    rows["hour"] = rows.timestamp.str[11:13].astype(int)
    rows["bus"] = rows.timestamp.str[:10] + rows.vehicle_id
    return rows[rows.timestamp.str[:10] == day.name[:10]]


@lru_cache(maxsize=16)
def austin_rows(folder: Path, day: str) -> pd.DataFrame:
    """Return the rows of one service day: bus, hour, km/h, position."""
    return _rows(next(folder.glob(f"{day}.csv*")))


@lru_cache(maxsize=4)
def austin_cells(folder: Path, resolution: int) -> tuple[str, ...]:
    """Return every stop's cell and its neighbours."""
    stops = pd.read_csv(folder / _STOPS)
    stop_cells = {
        h3.latlng_to_cell(a, b, resolution)
        for a, b in zip(stops.stop_lat, stops.stop_lon, strict=True)
    }
    return tuple(sorted({near for cell in stop_cells for near in h3.grid_disk(cell, 1)}))


def austin(
    folder: Path, days: Sequence[str], resolution: int, hours: range = range(HOURS)
) -> Pairs:
    """Return the pairs of real days of Austin, in slots that begin at some hours."""
    rows = pd.concat([austin_rows(folder, day) for day in days])
    rows = rows[(rows.hour >= hours.start) & (rows.hour < hours.stop)]
    return pairs_of(rows, austin_cells(folder, resolution), hours, resolution)


def surat(folder: Path, resolution: int, coins: Random, days: int = 7) -> Pairs:
    """Return a week of the three hours of Surat: each day's buses are drawn anew from the real."""
    with zipfile.ZipFile(folder / _SURAT[0]) as archive, archive.open(_SURAT[1]) as file:
        rows = pd.read_csv(file, usecols=["license_plate", "speed", "observationDateTime",
                                          "location.coordinates"])  # fmt: skip
    rows = rows.drop_duplicates().dropna()
    at = rows["location.coordinates"].str.strip("[]").str.split(",", expand=True).astype(float)
    rows["longitude"], rows["latitude"] = at[0], at[1]
    rows["bus"], rows["kmh"] = rows.license_plate, rows.speed.astype(float)
    rows["hour"] = rows.observationDateTime.str[11:13].astype(int)
    seen = {
        h3.latlng_to_cell(a, b, resolution)
        for a, b in zip(rows.latitude, rows.longitude, strict=True)
    }
    cells = tuple(sorted({near for cell in seen for near in h3.grid_disk(cell, 1)}))
    pairs = pairs_of(rows, cells, sorted(set(rows.hour)), resolution)
    buses = pairs.bus_day.max() + 1
    return pairs.of_buses(np.concatenate([coins.integers(0, buses, buses) for _ in range(days)]))


def pairs_of(
    rows: pd.DataFrame, cells: Sequence[str], starts: Sequence[int], resolution: int
) -> Pairs:
    """Return what rows add, bus-day by bus-day."""
    rows = rows[(rows.kmh >= 0) & (rows.kmh <= MOST_KMH)]
    number = {cell: n for n, cell in enumerate(cells)}
    at = [
        h3.latlng_to_cell(a, b, resolution)
        for a, b in zip(rows.latitude, rows.longitude, strict=True)
    ]
    slot = np.searchsorted(np.array(starts), rows.hour, side="right") - 1
    seen = pd.DataFrame({"bus": rows.bus, "slot": slot, "kmh": rows.kmh,
                         "cell": [number.get(cell, -1) for cell in at]})  # fmt: skip
    seen = seen[seen.cell >= 0]
    pairs = seen.groupby(["bus", "slot", "cell"]).kmh.agg(["mean", "max"]).reset_index()
    steps = np.floor(10 * pairs["mean"].clip(0, CLAMP_KMH) + 0.5).astype(int) - HALF_STEPS
    return Pairs(
        tuple(cells),
        tuple(f"{hour:02}:00" for hour in starts),
        pairs.bus.astype("category").cat.codes.to_numpy(np.int64),
        (pairs.slot * len(cells) + pairs.cell).to_numpy(np.int64),
        steps.to_numpy(np.int64),
        (pairs["max"] > LIMIT_KMH).to_numpy(np.int64),
    )
