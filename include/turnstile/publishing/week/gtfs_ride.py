"""`gtfs_ride/`: the week's boardings and alightings in the shape of GTFS-ride (ODOT, 2018).

`ridership.txt` by stop and period, `board_alight.txt` by visit of a vehicle trip, from the rows of
the files in the shape of TIDES beside them; values in whole numbers, as model estimates (source 3).
The shape has no columns of errors: they stand in `tides/`. A day without input has no rows.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from turnstile.arrow_columns import texts
from turnstile.estimates.labelled import csv_bytes
from turnstile.programme.spec import Programme
from turnstile.publishing.contents import Contents
from turnstile.publishing.week.tides_shapes import activities, has_activities
from turnstile.publishing.week.tides_visits import has_visits, visit_rows

RIDERSHIP, BOARD_ALIGHT = "gtfs_ride/ridership.txt", "gtfs_ride/board_alight.txt"
FEED = "gtfs_ride/ride_feed_info.txt"
RIDE_COLUMNS: dict[str, tuple[str, ...]] = {
    RIDERSHIP: (
        *("total_boardings", "total_alightings", "ridership_start_date", "ridership_end_date"),
        *("ridership_start_time", "ridership_end_time", "stop_id"),
    ),
    BOARD_ALIGHT: (
        *("trip_id", "stop_id", "stop_sequence", "record_use", "boardings", "alightings"),
        *("service_date", "source"),
    ),
    FEED: ("ride_files", "ride_start_date", "ride_end_date", "ride_feed_version"),
}
_COUNTS, _MODELLED = 0, 3  # record_use, source
_FILES_THAT_HOLD = {(True, False): 2, (False, True): 0, (True, True): 4}  # ride_files


def ride_files(programme: Programme) -> dict[str, tuple[str, ...]]:
    """Return the files of a package in this shape, with their columns."""
    if not programme.publish.tides_shapes:
        return {}
    has = {RIDERSHIP: has_activities(programme), BOARD_ALIGHT: has_visits(programme), FEED: True}
    return {path: RIDE_COLUMNS[path] for path, is_there in has.items() if is_there}


def writer_of_ride(path: str) -> Callable[[Contents], bytes | None]:
    """Return a writer of one file; None where a package has no such file."""
    write = {RIDERSHIP: _ridership, BOARD_ALIGHT: _board_alight, FEED: _feed}[path]

    def written(contents: Contents) -> bytes | None:
        """Write the file."""
        if path not in ride_files(contents.drawn.programme):
            return None
        table = write(contents)
        empty = pa.nulls(len(table), pa.string())
        known = set(table.column_names)
        return csv_bytes(
            pa.table({n: table[n] if n in known else empty for n in RIDE_COLUMNS[path]})
        )

    return written


def _ridership(contents: Contents) -> pa.Table:
    """Return one row for each day, stop and period that has a number."""
    table = _with_numbers(activities(contents), ("total_entries", "total_exits"))
    columns = {
        "total_entries": "total_boardings",
        "total_exits": "total_alightings",
        "stop_id": "stop_id",
    }
    ridership = {new: table[old] for old, new in columns.items() if old in table.column_names}
    day = _date(table["service_date"])
    ridership |= {"ridership_start_date": day, "ridership_end_date": day}
    ridership |= {
        f"ridership_{name}_time": _clock(table["minute"], minutes)
        for name, minutes in (("start", 0), ("end", contents.drawn.programme.time.slot_minutes))
    }
    return pa.table(ridership)


def _board_alight(contents: Contents) -> pa.Table:
    """Return one row for each day and visit that has a number."""
    table = _with_numbers(visit_rows(contents), ("boarding_1", "alighting_1"))
    size = len(table)
    columns = {
        "trip_id": table["trip_id_performed"],
        "stop_id": table["stop_id"],
        "stop_sequence": table["trip_stop_sequence"],
        "record_use": pa.array([_COUNTS] * size),
        "service_date": _date(table["service_date"]),
        "source": pa.array([_MODELLED] * size),
    }
    names = {"boarding_1": "boardings", "alighting_1": "alightings"}
    return pa.table(
        columns | {new: table[old] for old, new in names.items() if old in table.schema.names}
    )


def _feed(contents: Contents) -> pa.Table:
    """Return the one row about the files."""
    programme, plan = contents.drawn.programme, contents.drawn.plan
    first, last = (f"{plan.week.days[at]:%Y%m%d}" for at in (0, -1))
    files = _FILES_THAT_HOLD[has_activities(programme), has_visits(programme)]
    row = {"ride_files": files, "ride_start_date": first, "ride_end_date": last}
    return pa.Table.from_pylist([row | {"ride_feed_version": f"{plan.week}.r{plan.revision}"}])


def _with_numbers(table: pa.Table, names: tuple[str, ...]) -> pa.Table:
    """Return the rows that have a number of one side or the other."""
    there = [pc.is_valid(table[name]) for name in names if name in table.column_names]
    return table.filter(there[0] if len(there) == 1 else pc.or_(*there))


def _date(days: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return days as GTFS writes them."""
    return pc.strftime(days, format="%Y%m%d")


def _clock(minutes: pa.ChunkedArray, more: int) -> pa.Array:
    """Return times of a service day as GTFS writes them, beyond 24:00:00 where it goes on."""
    times = (minute + more for minute in minutes.to_pylist())
    return texts([f"{minute // 60:02}:{minute % 60:02}:00" for minute in times])
