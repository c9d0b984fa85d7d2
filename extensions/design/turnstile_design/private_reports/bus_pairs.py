"""What a planner looks at: every bus-day in every slot and observed H3 cell, exactly. Private.

Unlike the counting of a release, cells are those that are observed and nothing is bounded, so
nothing made from this may be published.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import NoReturn

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from turnstile.counting.cells import OUTSIDE, fine_cells
from turnstile.counting.engine import Connection, columns_of, day_files, engine
from turnstile.counting.telemetry import read_bus_cells
from turnstile.counting.vehicle_cells import VehicleCells, install_lookups
from turnstile.programme.spec import Programme

_LATITUDE_MAX, _LONGITUDE_MAX = 90.0, 180.0
_MILLI = 1000
_COLUMNS = ("bus", "slot", "cell", "readings", "speed_sum_milli", "speed_max_milli")
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class BusPairs:
    """One row for each bus, service day, slot and cell; a HAT is a pair of slot and cell.

    Args:
        day: number of the service day, shape (rows,).
        bus_day: number of the bus-day, shape (rows,), 0 to bus_days - 1.
        slot: number of the slot, shape (rows,).
        cell: H3 index, shape (rows,).
        mean_kmh: mean of the bus's own readings, shape (rows,).
        top_kmh: largest of them, shape (rows,).
        days: service days that were looked at.
        slots: slots of a day.
    """

    day: Ints
    bus_day: Ints
    slot: Ints
    cell: Ints
    mean_kmh: Floats
    top_kmh: Floats
    days: int
    slots: int

    def __repr__(self) -> str:
        """Say what it is, never a number."""
        return "<BusPairs, private>"

    def __reduce__(self) -> NoReturn:
        """Refuse pickle and copy.

        Raises:
            TypeError: always.
        """
        raise TypeError("exact pairs stay in the task that read them")

    def hats(self) -> tuple[Ints, Ints]:
        """Return slot and cell of every observed HAT and, for each row, the number of its HAT."""
        keys, numbers = np.unique(np.stack([self.slot, self.cell]), axis=1, return_inverse=True)
        return keys, numbers.reshape(-1)

    def hats_per_bus_day(self) -> Ints:
        """Return the number of HATs of every bus-day, shape (bus_days,)."""
        return np.bincount(self.bus_day)


def read_pairs(
    programme: Programme, days: Sequence[date], rows_folder: Path, *, resolution: int
) -> BusPairs:
    """Read the canonical rows of some days.

    Args:
        programme: slots.
        days: service days; a day without files is a day without buses.
        rows_folder: `rows/` of a snapshot.
        resolution: of H3.
    """
    day_columns = []
    cells = _every_cell(resolution)
    with _engine(rows_folder) as connection:
        install_lookups(connection, cells)
        for number, day in enumerate(days):
            if files := day_files(rows_folder, day):
                day_columns.append((number, _day(connection, programme, files, cells)))
    return _joined(programme, day_columns, len(days))


def records_by_hour(days: Sequence[date], rows_folder: Path) -> Ints:
    """Return the canonical rows in each hour of the day, shape (24,)."""
    total = np.zeros(24, dtype=np.int64)
    if files := [file for day in days for file in day_files(rows_folder, day)]:
        with _engine(rows_folder) as connection:
            columns = columns_of(
                connection,
                "SELECT minute_of_day // 60 AS hour, count(*) AS rows "
                "FROM read_parquet(?, hive_partitioning = false, union_by_name = true) "
                "WHERE minute_of_day IS NOT NULL GROUP BY hour",
                [files],
            )
        total[columns["hour"].astype(np.int64)] = columns["rows"]
    return total


@contextmanager
def _engine(rows_folder: Path) -> Iterator[Connection]:
    """Open an engine that spills beside the rows, in the private zone."""
    with (
        tempfile.TemporaryDirectory(dir=rows_folder.parent, prefix="planning-") as work,
        engine(Path(work)) as connection,
    ):
        yield connection


def _every_cell(resolution: int) -> VehicleCells:
    """Return cells that are told apart by their H3 index, wherever they lie."""

    def to_cells(latitudes: Floats, longitudes: Floats) -> Ints:
        cells = np.full(latitudes.shape, OUTSIDE, dtype=np.int64)
        there = (np.abs(latitudes) <= _LATITUDE_MAX) & (np.abs(longitudes) <= _LONGITUDE_MAX)
        cells[there] = fine_cells(latitudes[there], longitudes[there], resolution)
        return cells

    return VehicleCells(to_cells)


def _day(
    connection: Connection, programme: Programme, files: list[str], cells: VehicleCells
) -> dict[str, NDArray[np.int64]]:
    """Return the pairs of one service day."""
    read_bus_cells(connection, programme, files, cells)
    return columns_of(
        connection,
        "SELECT dense_rank() OVER (ORDER BY vehicle_id) AS bus, slot, cell, readings, "
        "speed_sum_milli, speed_max_milli FROM bus_cell",
    )


def _joined(
    programme: Programme, day_columns: list[tuple[int, dict[str, NDArray[np.int64]]]], days: int
) -> BusPairs:
    """Put the days together; a bus of another day is another bus-day."""
    nothing = pd.DataFrame(columns=["day", *_COLUMNS], dtype=np.int64)
    each_day = (pd.DataFrame(of, dtype=np.int64).assign(day=number) for number, of in day_columns)
    rows = pd.concat([nothing, *each_day])
    minutes = programme.domain.last_minute - programme.domain.first_minute
    readings = rows["readings"].clip(lower=1)
    return BusPairs(
        day=rows["day"].to_numpy(),
        bus_day=np.asarray(rows.groupby(["day", "bus"]).ngroup(), dtype=np.int64),
        slot=rows["slot"].to_numpy(),
        cell=rows["cell"].to_numpy(),
        mean_kmh=(rows["speed_sum_milli"] / readings / _MILLI).to_numpy(),
        top_kmh=(rows["speed_max_milli"] / _MILLI).to_numpy(),
        days=days,
        slots=minutes // programme.time.slot_minutes,
    )
