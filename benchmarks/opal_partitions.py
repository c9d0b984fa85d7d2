"""Trips of one side (tap-on) of one mode and day, on which the Opal programmes are compared.

The reference partition has two peaks and 40 lognormal places. Its six parameters are fitted, in
expectation, to figures of the source's design that were found before this one was built (RMSE of
cells, time and location, error of sums, mass lost; at 3,000 trips 1.88, 12.4, 12.8, 68.7, 92 %; at
20,000 4.48, 6.91, 5.67, 229, 46 %), each met within 4 %. With them stood the aim: at 20,000 trips,
cells at least 3 times, time and location at least 2 times better, less than 0.1 % of the mass lost.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from turnstile.service_calendar import ServiceWeek
from turnstile_samples import opal

INCLUDE = Path(__file__).parents[1] / "include"
WEEK = ServiceWeek(2016, 30)
SLOTS, PLACES = 96, 40
NIGHT_ENDS, NIGHT_BEGINS = 5, 22  # hours
SIZES = (3_000, 20_000, 100_000)
AIMS = {"cell": 3, "time": 2, "location": 2}  # times smaller, at 20,000 trips
MINUTES_PER_SLOT = 15
GENERATED_ROWS = 1_500_000  # of a week, so that a day of trains has more than 100,000 trips
TRAIN, MONDAY = 3, 0
REFERENCE_DAYS = 60  # one day's places may happen to lie beside the cut, or all far from it
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Days = tuple[Ints, ...]  # of one shape


@dataclass(frozen=True)
class Tables:
    """Cells, row sums (time) and column sums (location) as published."""

    cells: Floats
    time: Floats
    location: Floats

    @property
    def shape(self) -> tuple[int, int]:
        """Slots and places."""
        return self.time.size, self.location.size


def reference(number: int) -> Days:
    """Days of so many trips over two peaks, a thin night service and lognormal places."""
    hours = np.arange(SLOTS) / 4
    by_day = np.where((hours > NIGHT_ENDS) & (hours < NIGHT_BEGINS), 0.13, 0.015)
    morning = np.exp(-(((hours - 8.25) / 0.8) ** 2) / 2)
    evening = 0.85 * np.exp(-(((hours - 17.5) / 1.1) ** 2) / 2)
    ranks = (np.arange(PLACES) + 0.5) / PLACES
    places = np.exp(1.16 * np.array([NormalDist().inv_cdf(rank) for rank in ranks]))
    return thinned(np.outer(morning + evening + by_day, places), number, REFERENCE_DAYS)


def thinned(cells: NDArray[np.generic], number: int, days: int = 1) -> Days:
    """Days of so many trips in the proportions of a table; the same every time."""
    chances = cells.astype(float).ravel()
    dice = np.random.default_rng(20160725)  # noqa: TID251 - made-up data, not noise
    drawn = dice.multinomial(number, chances / chances.sum(), size=days)
    return tuple(day.reshape(cells.shape).astype(np.int64) for day in drawn)


@cache
def generated() -> tuple[Ints, Ints, int]:
    """Slots and places of the generated tap-ons of a Monday's trains, and the number of places."""
    places = opal.read_places(INCLUDE / "domains/opal_locations.csv")
    rows = opal.opal_rows(WEEK, GENERATED_ROWS, 1, places=places, corruptions=frozenset())
    chosen = (rows["mode"] == TRAIN) & (rows["day"] == MONDAY)
    first, end = places.first[TRAIN], places.first[TRAIN + 1]
    slots = rows["on_minute"][chosen] // MINUTES_PER_SLOT
    return slots, rows["on_place"][chosen] - first, end - first


def generated_trips(number: int) -> Ints:
    """Counts of so many generated trips; the same every time."""
    slots, places, width = generated()
    picked = np.random.default_rng(20160725).permutation(slots.size)[:number]  # noqa: TID251 - made-up data
    cells = np.zeros((SLOTS, width), dtype=np.int64)
    np.add.at(cells, (slots[picked], places[picked]), 1)
    return cells


def released(folder: Path) -> dict[str, Ints]:
    """Counts of each day of the published train table, taken as if they were raw."""
    (path,) = folder.glob("time-loc_train_on*.csv")
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if ":" in row["time"]]
    stations = {name: n for n, name in enumerate(sorted({row["loc"] for row in rows}))}
    days: dict[str, Ints] = {}
    for row in rows:
        hour, minute = map(int, row["time"].split(":"))
        slot = (60 * hour + minute) // MINUTES_PER_SLOT
        cells = days.setdefault(row["date"], np.zeros((SLOTS, len(stations)), dtype=np.int64))
        cells[slot, stations[row["loc"]]] += int(row["count"])
    return dict(sorted(days.items()))


def exact_tables(cells: Ints) -> Tables:
    """Cells and their marginals."""
    values = cells.astype(float)
    return Tables(values, values.sum(axis=1), values.sum(axis=0))
