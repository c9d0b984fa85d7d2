"""Real weeks in a row, from the published daily patronage files: train tap-ons by day and hour."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
MODE, REGION = "Train", "All - NSW"
MASKED = 25.0  # stands for <50
HOURS, DAYS = 24, 7


def seasons(folder: Path) -> Iterator[tuple[str, list[Floats]]]:
    """Yield runs of weeks: name, and each week's hours over their mean, shape (days, hours).

    A week that lacks a day is left out.
    """
    days = {day: hours for path in sorted(folder.glob("*.txt")) for day, hours in _day(path)}
    run: list[Floats] = []
    monday = min(days)
    monday -= timedelta(days=monday.weekday())
    while monday <= max(days):
        dates = [monday + timedelta(days=n) for n in range(DAYS)]
        if all(day in days for day in dates):
            run.append(np.stack([days[day] for day in dates]))
        elif len(run) > 1:
            yield _season(monday, run)
            run = []
        else:
            run = []
        monday += timedelta(days=DAYS)
    if len(run) > 1:
        yield _season(monday, run)


def _season(end: datetime, run: list[Floats]) -> tuple[str, list[Floats]]:
    """Name a run by its first day, and divide it by its mean."""
    mean = np.mean(run, axis=0)
    first = end - timedelta(days=DAYS * len(run))
    return f"{len(run)} from {first:%Y-%m-%d}", [week / mean for week in run]


def _day(path: Path) -> Iterator[tuple[datetime, Floats]]:
    """Yield the day of a file, if it holds one, with its tap-ons by hour."""
    tap_ons = np.full(HOURS, MASKED)
    is_seen = False
    with path.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream, delimiter="|"):
            if row["mode_name"] == MODE and row["ti_region"] == REGION:
                is_seen = True
                taps = row["Tap_Ons"]
                tap_ons[int(row["tap_hour"]) % HOURS] = MASKED if taps[0] == "<" else float(taps)
    if is_seen:
        yield datetime.strptime(path.stem[-8:], "%Y%m%d"), tap_ons  # noqa: DTZ007 - a date
