"""Public lists of routes, directions, vehicle trips, stops and stop visits, from a GTFS feed.

Rows may name a route by its own id, or by the trip of the timetable that they were made on, as
TIDES does (`trip_id_scheduled`); a list (`domain.lists`) says for each id what it is published as.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from turnstile.errors import InputError
from turnstile.programme.domain.csv_text import csv_text
from turnstile.programme.gtfs.feed import lacking, read_feed, refuse_feed

if TYPE_CHECKING:
    import pandas as pd

_HEADER = ("value", "label")
_SHORT, _LONG = "route_short_name", "route_long_name"


class ListOf(StrEnum):
    """Categories that a timetable knows."""

    ROUTE = "route"
    DIRECTION = "direction"
    VEHICLE_TRIP = "vehicle_trip"
    STOP = "stop"
    STOP_VISIT = "stop_visit"


class NamedBy(StrEnum):
    """What rows name: a trip of the timetable, or the category itself."""

    TRIP = "trip_id"
    ITSELF = "itself"


def list_csv(path: Path, of: ListOf, by: NamedBy) -> str:
    """Return the text of a public list.

    Args:
        path: GTFS feed, zip or folder.
        of: which category.
        by: what the rows name.

    Raises:
        InputError: the feed lacks what the list is made from.
    """
    if of is ListOf.STOP:
        return csv_text(_HEADER, sorted({(stop, stop) for stop in _stop_times(path)["stop_id"]}))
    pairs = _visits(path) if of is ListOf.STOP_VISIT else _of_trips(path, of, by)
    return csv_text(_HEADER, sorted(pairs))


def _of_trips(path: Path, of: ListOf, by: NamedBy) -> set[tuple[str, str]]:
    """Return value and label of what a feed says of its trips.

    Raises:
        InputError: the feed lacks what the list is made from.
    """
    feed = read_feed(path)
    named = "direction_id" if of is ListOf.DIRECTION else "route_id"
    if fault := lacking(feed, {"trips": ("trip_id", named), "routes": ("route_id",)}):
        refuse_feed(path, fault)
    trips = feed.trips
    label = _labels(trips, feed.routes, of)
    id_column = {ListOf.ROUTE: "route_id", ListOf.DIRECTION: "direction_id"}.get(of, "trip_id")
    value = trips["trip_id" if by is NamedBy.TRIP else id_column]
    known = value.notna() & label.notna()
    return set(zip(value[known].astype(str), label[known].astype(str), strict=True))


def _stop_times(path: Path) -> pd.DataFrame:
    """Return trip_id, stop_sequence and stop_id of every visit of the timetable, as texts.

    Raises:
        InputError: the feed lacks them.
    """
    feed, needed = read_feed(path), ("trip_id", "stop_sequence", "stop_id")
    if fault := lacking(feed, {"stop_times": needed}):
        refuse_feed(path, fault)
    stop_times: pd.DataFrame = feed.stop_times[list(needed)].dropna().astype(str)
    return stop_times


def _visits(path: Path) -> set[tuple[str, str]]:
    """Return TRIP/STOP_SEQUENCE of every visit of the timetable, and TRIP/PLACE IN ORDER/STOP.

    Raises:
        InputError: the feed lacks them, or has an id that could not be told apart.
    """
    stop_times = _stop_times(path)
    if stop_times[["trip_id", "stop_id"]].apply(lambda ids: ids.str.contains("/")).to_numpy().any():
        rule = "holds a trip_id or a stop_id with /, which stands between them here; rename it"
        raise InputError(where=path.name, field="stop_times", rule=rule)
    order = stop_times["stop_sequence"].astype(int)
    place = order.groupby(stop_times["trip_id"]).rank(method="first").astype(int).astype(str)
    values = stop_times["trip_id"] + "/" + stop_times["stop_sequence"]
    return set(
        zip(values, stop_times["trip_id"] + "/" + place + "/" + stop_times["stop_id"], strict=True)
    )


def _labels(trips: pd.DataFrame, routes: pd.DataFrame, of: ListOf) -> pd.Series[str]:
    """Return what each trip of the timetable is published as."""
    if of is ListOf.VEHICLE_TRIP:
        return trips["trip_id"]
    if of is ListOf.DIRECTION:
        return trips["direction_id"].dropna().astype(int).astype(str).reindex(trips.index)
    named = routes["route_id"].astype(str)
    for column in (_LONG, _SHORT):
        if column in routes:
            named = routes[column].where(routes[column].notna(), named)
    return trips["route_id"].map(dict(zip(routes["route_id"], named, strict=True)))
