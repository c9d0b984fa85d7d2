"""Timetable extremes: cells that a public timetable shows to be one vehicle or one stop (B5).

Works from counts that anybody can make of a GTFS feed: one row for each stop event.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StopEvent:
    """One scheduled call of a vehicle.

    Args:
        mode: as published.
        slot: label of the slot of its departure, as published.
        area: label of the area of the stop, as published.
        stop_id: GTFS stop.
        trip_id: GTFS trip: one run of one vehicle.
    """

    mode: str
    slot: str
    area: str
    stop_id: str
    trip_id: str


@dataclass(frozen=True, slots=True)
class ExposedCell:
    """A published cell that stands for one vehicle, one stop, or both.

    Args:
        mode: of the cell.
        slot: of the cell.
        area: of the cell.
        trip_ids: vehicles' runs that call there then.
        stop_ids: stops that are served there then.
    """

    mode: str
    slot: str
    area: str
    trip_ids: tuple[str, ...]
    stop_ids: tuple[str, ...]

    @property
    def is_one_vehicle(self) -> bool:
        """Everybody who is counted there was on the same vehicle."""
        return len(self.trip_ids) == 1

    @property
    def is_one_stop(self) -> bool:
        """Everybody who is counted there was at the same stop."""
        return len(self.stop_ids) == 1

    @property
    def statement(self) -> str:
        """What follows, in words."""
        what = [name for name, yes in self._claims if yes]
        return f"{self.mode}, {self.area}, {self.slot}: {' and '.join(what)} by the timetable"

    @property
    def _claims(self) -> tuple[tuple[str, bool], tuple[str, bool]]:
        return ("one vehicle", self.is_one_vehicle), ("one stop", self.is_one_stop)


def exposed_cells(events: Iterable[StopEvent]) -> tuple[ExposedCell, ...]:
    """Return the cells of a timetable that are one vehicle or one stop, sorted.

    A cell without any event is not listed: whoever taps there is off the timetable.

    Examples:
        >>> night = StopEvent("bus", "04:30", "2770", "mt-druitt", "n70-1")
        >>> exposed_cells([night])[0].statement
        'bus, 2770, 04:30: one vehicle and one stop by the timetable'
    """
    trips: defaultdict[tuple[str, str, str], set[str]] = defaultdict(set)
    stops: defaultdict[tuple[str, str, str], set[str]] = defaultdict(set)
    for event in events:
        cell = (event.mode, event.slot, event.area)
        trips[cell].add(event.trip_id)
        stops[cell].add(event.stop_id)
    cells = [
        ExposedCell(*cell, tuple(sorted(trips[cell])), tuple(sorted(stops[cell])))
        for cell in sorted(trips)
    ]
    return tuple(cell for cell in cells if cell.is_one_vehicle or cell.is_one_stop)
