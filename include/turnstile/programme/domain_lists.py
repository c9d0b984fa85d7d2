"""Public lists of routes, directions and vehicle trips, from a GTFS feed, for `domain.lists`.

Rows may name a route by its own id, or by the trip of the timetable that they were made on, as
TIDES does (`trip_id_scheduled`); a list says for each id what it is published as.
"""

from __future__ import annotations

import csv
import io
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from turnstile.errors import InputError
from turnstile.programme.domain_build_sources import read_feed

if TYPE_CHECKING:
    import pandas as pd

_HEADER = ("value", "label")
_SHORT, _LONG = "route_short_name", "route_long_name"


class ListOf(StrEnum):
    """Categories that a timetable knows."""

    ROUTE = "route"
    DIRECTION = "direction"
    VEHICLE_TRIP = "vehicle_trip"


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
    feed = read_feed(path)
    trips, routes = feed.trips, feed.routes
    columns = set() if trips is None else set(trips.columns)
    needed = {"trip_id"} | ({"direction_id"} if of is ListOf.DIRECTION else {"route_id"})
    if trips is None or routes is None or not needed <= columns:
        rule = f"trips and routes do not say {', '.join(sorted(needed))}; take a complete feed"
        raise InputError(where=path.name, field="trips", rule=rule)
    label = _labels(trips, routes, of)
    own = {ListOf.ROUTE: "route_id", ListOf.DIRECTION: "direction_id"}.get(of, "trip_id")
    value = trips["trip_id" if by is NamedBy.TRIP else own]
    known = value.notna() & label.notna()
    pairs = set(zip(value[known].astype(str), label[known].astype(str), strict=True))
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(_HEADER)
    writer.writerows(sorted(pairs))
    return sink.getvalue()


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
