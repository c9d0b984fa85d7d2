"""Published cells beside a public timetable: which of them are one vehicle, or one stop (B5).

Timetable and cells are public, so the list is too. No count plays a part in it.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from turnstile.assessment.attacks.timetable import ExposedCell, StopEvent, exposed_cells
from turnstile.assessment.attacks.timetable_feed import Timetable

if TYPE_CHECKING:
    import pandas as pd

NOT_GIVEN = (
    "No timetable was given, so the cells that are one vehicle or one stop are not listed: "
    "turnstile assess PATH --gtfs FEED.zip lists them, and so does every release of a programme "
    "that names a feed (domain.timetable)."
)
MEANING = (
    "Whoever is counted in such a cell rode that vehicle, or stood at that stop. The noise on its "
    "number is the same as on any other, so the chance of the best guess whether one known person "
    "was there does not rise; but what is found out about a cell is then found out about that "
    "vehicle's passengers: a group of riders that shows in the number shows on that run."
)
LISTED_MOST = 500
_ALL_DAY = "all day"
_EVERYWHERE = "everywhere"
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(:\d{2})?")
_MINUTES_PER_DAY = 1440
_OF_CALL = ("mode", "slot", "area", "stop_id", "trip_id")  # as StopEvent has them
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@dataclass(frozen=True, slots=True)
class CellLabels:
    """Labels of published cells.

    Args:
        slots: starts of the slots; empty where time is not reported.
        areas: areas by mode; the mode None stands for all, no area for a table that names none.
        area_of: (mode, stop id or name) to area, where a public lookup says so.
    """

    slots: frozenset[str]
    areas: Mapping[str | None, frozenset[str]]
    area_of: Mapping[tuple[str, str], str]


@dataclass(frozen=True, slots=True)
class Exposure:
    """A cell and the days of the week on which the timetable shows what it is."""

    cell: ExposedCell
    days: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TimetableView:
    """What a timetable shows of the published cells.

    Args:
        feed: name of the feed's file.
        sha256: of its bytes.
        days: service days that were read.
        served: cells with any call, a day at a time.
        unmatched_stops: stops that no published area stands for.
        exposures: cells that are one vehicle or one stop, all of them; those that are both first.
        one_vehicle: cells that are one vehicle, a day at a time.
        one_stop: cells that are one stop, a day at a time.
    """

    feed: str
    sha256: str
    days: tuple[str, ...]
    served: int
    unmatched_stops: int
    exposures: tuple[Exposure, ...]
    one_vehicle: int
    one_stop: int

    @property
    def statement(self) -> str:
        """What was found, in words."""
        if not self.served:
            return (
                f"{self.feed}: no stop of the timetable is a location of this table; give the "
                "lookup of stops and areas with --locations"
            )
        return (
            f"of {self.served:,} published cells with service ({self.feed}, "
            f"{len(self.days) or 1} days), {self.one_vehicle:,} are one vehicle and "
            f"{self.one_stop:,} one stop by the timetable; {self.unmatched_stops:,} stops are no "
            "location of this table"
        )


def view(timetable: Timetable, labels: CellLabels) -> TimetableView:
    """Return which published cells a timetable shows to be one vehicle or one stop."""
    import pandas as pd

    calls = timetable.calls
    calls = calls[_is_published_mode(calls, labels)]
    areas = _areas(timetable, labels)
    slots = _slots(labels.slots)
    mapped = calls.assign(
        area=pd.Series(
            [areas.get(pair) for pair in zip(calls["mode"], calls["stop_id"], strict=True)],
            index=calls.index,
            dtype=object,
        ),
        slot=calls["minute"].map(slots),
    )
    stops = set(calls["stop_id"]) - {stop for (_, stop), area in areas.items() if area}
    mapped = mapped.dropna(subset=["area", "slot"])
    cell = ["service_date", "mode", "slot", "area"]
    grouped = mapped.groupby(cell, dropna=False)
    vehicles = grouped["trip_id"].transform("nunique")
    locations = grouped["stop_id"].transform("nunique")
    exposures, one_vehicle, one_stop = _exposed(mapped[(vehicles == 1) | (locations == 1)])
    return TimetableView(
        feed=timetable.name,
        sha256=timetable.sha256,
        days=tuple(day.isoformat() for day in timetable.days),
        served=int(grouped.ngroups),
        unmatched_stops=len(stops),
        exposures=exposures,
        one_vehicle=one_vehicle,
        one_stop=one_stop,
    )


def as_json(timetable_view: TimetableView, *, most: int = LISTED_MOST) -> dict[str, Any]:
    """Return a view for JSON, with at most so many of its cells."""
    return {
        "feed": timetable_view.feed,
        "feed_sha256": timetable_view.sha256,
        "days": list(timetable_view.days),
        "cells_with_service": timetable_view.served,
        "cells_of_one_vehicle": timetable_view.one_vehicle,
        "cells_of_one_stop": timetable_view.one_stop,
        "stops_without_a_cell": timetable_view.unmatched_stops,
        "meaning": MEANING,
        "cells": [
            {
                "mode": exposure.cell.mode,
                "slot": exposure.cell.slot,
                "area": exposure.cell.area,
                "days": list(exposure.days),
                "one_vehicle": exposure.cell.is_one_vehicle,
                "one_stop": exposure.cell.is_one_stop,
                "trip_ids": list(exposure.cell.trip_ids[:3]),
                "stop_ids": list(exposure.cell.stop_ids[:3]),
            }
            for exposure in timetable_view.exposures[:most]
        ],
        "cells_not_listed": max(0, len(timetable_view.exposures) - most),
    }


def _is_published_mode(calls: pd.DataFrame, labels: CellLabels) -> pd.Series:
    """Tell which calls are of a mode that the tables have."""
    known = {_plain(mode) for mode in labels.areas if mode is not None}
    if not known:
        return calls["mode"].notna()
    return calls["mode"].map(_plain).isin(known)


def _areas(timetable: Timetable, labels: CellLabels) -> dict[tuple[str, str], str | None]:
    """Return the published area of each stop in each mode; None where there is none."""
    by_mode = {_plain(mode or ""): areas for mode, areas in labels.areas.items()}
    lookup = {(_plain(mode), location): area for (mode, location), area in labels.area_of.items()}
    modes = timetable.calls["mode"].unique()
    area_of_stop: dict[tuple[str, str], str | None] = {}
    for mode in modes:
        areas = by_mode.get(_plain(mode), by_mode.get("", frozenset()))
        resolutions = _resolutions(areas)
        for row in timetable.stops.itertuples():
            names = (str(row.stop_id), str(row.stop_name), str(row.station))
            known = [lookup[_plain(mode), name] for name in names if (_plain(mode), name) in lookup]
            area_names = [name for name in names if name in areas]
            around = _h3(row, resolutions) if resolutions else []
            candidates = [*known, *area_names, *(cell for cell in around if cell in areas)]
            nothing = _EVERYWHERE if not areas else None
            area_of_stop[str(mode), str(row.stop_id)] = candidates[0] if candidates else nothing
    return area_of_stop


def _resolutions(areas: Iterable[str]) -> list[int]:
    """Return the H3 resolutions of area labels; none where they are no cells."""
    import h3

    return sorted({h3.get_resolution(area) for area in areas if h3.is_valid_cell(area)})


def _h3(row: Any, resolutions: Iterable[int]) -> list[str]:  # noqa: ANN401 - a row of pandas
    """Return the H3 cells of a stop."""
    import h3

    if not (math.isfinite(row.latitude) and math.isfinite(row.longitude)):
        return []
    return [h3.latlng_to_cell(row.latitude, row.longitude, level) for level in resolutions]


def _slots(labels: Iterable[str]) -> dict[int, str]:
    """Return the slot of each minute that lies in one; every minute's if time is not reported."""
    starts = {}
    for label in labels:
        if match := _CLOCK.fullmatch(label):
            starts[60 * int(match[1]) + int(match[2])] = label
    if not starts:
        return dict.fromkeys(range(_MINUTES_PER_DAY), _ALL_DAY)
    ordered = sorted(starts)
    gaps = [late - early for early, late in pairwise(ordered)]
    length = min(gaps, default=60)
    minutes = ((minute, start) for start in ordered for minute in range(start, start + length))
    return {minute % _MINUTES_PER_DAY: starts[start] for minute, start in minutes}


def _exposed(calls: pd.DataFrame) -> tuple[tuple[Exposure, ...], int, int]:
    """Return cells over the days on which they are alike, and how many there are a day at a time.

    Runs have other names on other days; of alike cells the first day's is shown.
    """
    shown: dict[tuple[object, ...], ExposedCell] = {}
    days: defaultdict[tuple[object, ...], list[str]] = defaultdict(list)
    one_vehicle = one_stop = 0
    for day, day_calls in calls.groupby("service_date", dropna=False):
        name = _DAYS[day.weekday()] if isinstance(day, date) else "every day"
        texts = [day_calls[name].astype(str).tolist() for name in _OF_CALL]
        events = (StopEvent(*call) for call in zip(*texts, strict=True))
        for cell in exposed_cells(events):
            # those that are both come first, then single vehicles
            rank = 2 - cell.is_one_vehicle * (1 + cell.is_one_stop)
            cell_key = (rank, cell.mode, cell.slot, cell.area)
            shown.setdefault(cell_key, cell)
            days[cell_key].append(name)
            one_vehicle += cell.is_one_vehicle
            one_stop += cell.is_one_stop
    exposures = [Exposure(shown[key], tuple(dict.fromkeys(days[key]))) for key in sorted(days)]
    return tuple(exposures), one_vehicle, one_stop


def _plain(mode: str) -> str:
    """Return a mode without what people write differently in it: `Light Rail`, `lightrail`."""
    return re.sub(r"[^a-z]", "", mode.lower())
