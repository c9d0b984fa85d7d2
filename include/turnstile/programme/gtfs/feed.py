"""Reads a public GTFS feed with gtfs-kit, and says what it lacks; for all who use one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, TypeVar

from turnstile.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

# GTFS route_type and its extension by Google in hundreds.
_MODE_OF_TYPE = {0: "light_rail", 1: "subway", 2: "train", 3: "bus", 4: "ferry", 5: "light_rail"}
_MODE_OF_TYPE |= {11: "bus", 12: "train"}
_MODE_OF_HUNDRED = {1: "train", 2: "bus", 4: "subway", 7: "bus", 9: "light_rail", 10: "ferry"}
_MODE_OF_HUNDRED |= {12: "ferry"}
_CLOCK = r"^\s*(\d{1,3}):(\d{1,2}):(\d{1,2})\s*$"  # hours go on after midnight
_Found = TypeVar("_Found")
Feed: TypeAlias = Any
"""A feed as gtfs-kit reads it, which has no types."""


def read_feed(path: Path) -> Feed:
    """Read a feed, a zip file or a folder; a table that is not there, or has no rows, is None.

    Raises:
        InputError: it is no GTFS feed, or has no stops.
    """
    import gtfs_kit

    feed = understood(path, lambda: gtfs_kit.read_feed(path, dist_units="km"))
    if feed.stops is None:  # the library passes over what it cannot find or unpack
        refuse_feed(path, "holds no stops.txt that can be read; check the feed")
    return feed


def understood(path: Path, read: Callable[[], _Found]) -> _Found:
    """Return what the library makes of a feed.

    Raises:
        InputError: it makes nothing of it.
    """
    try:
        return read()
    except Exception as error:  # noqa: BLE001 - whatever the library meets in a foreign file
        refuse_feed(path, f"does not read as GTFS ({type(error).__name__}); check the feed")


def services_on_day(path: Path, feed: Feed, day: date) -> list[str]:
    """Return the services of a feed that run on a day.

    Raises:
        InputError: its calendar does not read.
    """
    runs = understood(path, lambda: feed.get_trips(f"{day:%Y%m%d}"))
    return [str(service) for service in runs["service_id"].unique()]


def lacking(feed: Feed, needed: Mapping[str, tuple[str, ...]]) -> str:
    """Return what a feed lacks, as the end of a sentence; empty if nothing.

    Args:
        feed: as `read_feed` returns it.
        needed: columns by table.
    """
    for table, columns in needed.items():
        rows = getattr(feed, table)
        missing = [column for column in columns if rows is not None and column not in rows]
        if rows is None or missing:
            what = f"column {missing[0]} in {table}.txt" if missing else f"rows of {table}.txt"
            return f"has no {what}; give a complete feed"
    return ""


def refuse_feed(path: Path, rule: str) -> NoReturn:
    """Raise the sentence.

    Raises:
        InputError: always.
    """
    raise InputError(where=path.name, field="feed", rule=rule)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, or of the files of a folder in the order of their names."""
    digest = hashlib.sha256()
    for file in sorted(path.glob("*.txt")) if path.is_dir() else [path]:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def mode_of_route_type(route_type: object) -> str | None:
    """Return the mode of a route type; None for gondolas, funiculars, taxis and what is none."""
    try:
        number = int(route_type)  # type: ignore[call-overload] # a cell of the library's table
    except (TypeError, ValueError):
        return None
    if number in _MODE_OF_TYPE:
        return _MODE_OF_TYPE[number]
    return _MODE_OF_HUNDRED.get(number // 100)


def seconds_of(times: pd.Series) -> pd.Series:
    """Return seconds after midnight of `25:10:00`, as floats; NaN for what is no time."""
    import pandas as pd

    clock = times.astype("string").str.extract(_CLOCK).astype("Float64")
    seconds = clock[0] * 3600 + clock[1] * 60 + clock[2]
    return pd.to_numeric(seconds).astype("float64")
