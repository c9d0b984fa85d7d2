"""`tides/stop_visits.csv`: boardings and alightings of each visit of a vehicle trip to a stop.

In the shape of TIDES 1.0, made from `data/` alone. Visits are those of a public list
(`turnstile domain lists --of stop_visit`), one row for each, whether anybody boarded or not; the
trip is the scheduled one. What vehicles did themselves is never filled. Errors stand in a file
beside.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from turnstile.estimates.labelled import csv_bytes
from turnstile.programme.spec import Programme
from turnstile.publishing.contents import Contents

STOP_VISITS = "tides/stop_visits.csv"
VISIT_ERRORS = "tides/stop_visits_errors.csv"
_KEY = ("service_date", "trip_id_performed", "trip_stop_sequence")
_SIDES = {"boarding_1": "boarding_visit", "alighting_1": "alighting_visit"}
VISIT_COLUMNS = {
    STOP_VISITS: (
        *(*_KEY, "scheduled_stop_sequence", "pattern_id", "vehicle_id", "dwell", "stop_id"),
        *("timepoint", "schedule_arrival_time", "schedule_departure_time"),
        *("actual_arrival_time", "actual_departure_time", "distance", "boarding_1"),
        *("alighting_1", "boarding_2", "alighting_2", "departure_load", "door_open"),
        *("door_close", "door_status", "ramp_deployed_time", "ramp_failure"),
        *("kneel_deployed_time", "lift_deployed_time", "bike_rack_deployed", "bike_load"),
        *("revenue", "number_of_transactions", "schedule_relationship"),
    ),
    VISIT_ERRORS: (
        *(*_KEY, "stop_id"),
        *(f"{side}_{error}" for side in _SIDES for error in ("reconciled", "standard_deviation")),
    ),
}
_DECIMALS = 3


def has_visits(programme: Programme) -> bool:
    """Whether a programme has a table of stop visits."""
    return any(table.by == (axis,) for table in programme.tables for axis in _SIDES.values())


def visits(contents: Contents, path: str) -> bytes:
    """Return one of the two files."""
    table = visit_rows(contents)
    known = set(table.column_names)
    empty = pa.nulls(len(table), pa.string())
    columns = VISIT_COLUMNS[path]
    return csv_bytes(pa.table({name: table[name] if name in known else empty for name in columns}))


def visit_rows(contents: Contents) -> pa.Table:
    """Return one row for each day and visit, with all numbers and errors."""
    sides = [_side(contents, name, axis) for name, axis in _SIDES.items()]
    tables = [side for side in sides if side is not None]
    table = tables[0]
    for other in tables[1:]:
        table = table.join(other, ["service_date", "visit"], join_type="full outer")
    parts = [str(visit).split("/") for visit in table["visit"].to_pylist()]
    return (
        table.append_column("trip_id_performed", pa.array([part[0] for part in parts]))
        .append_column("trip_stop_sequence", pa.array([int(part[1]) for part in parts]))
        .append_column("stop_id", pa.array([part[2] for part in parts]))
        .sort_by([(name, "ascending") for name in _KEY])
    )


def _side(contents: Contents, name: str, axis: str) -> pa.Table | None:
    """Return the numbers of one end by day and visit over all modes; None where none are drawn."""
    specs = [spec for spec in contents.drawn.programme.shared_tables if spec.by == (axis,)]
    if not specs:
        return None
    table = contents.published.of_draw(specs[0].name)
    plain = pa.table(
        {
            "service_date": table["service_date"],
            "visit": table["visit"].cast(pa.string()),
            "value": table["value"],
            "reconciled": table["unbiased"],
            "variance": pc.power(table["unbiased_sd"], 2),
        }
    )
    whole = pc.ScalarAggregateOptions(skip_nulls=False)
    summed = plain.group_by(["service_date", "visit"]).aggregate(
        [(number, "sum", whole) for number in ("value", "reconciled", "variance")]
    )
    return pa.table(
        {
            "service_date": summed["service_date"],
            "visit": summed["visit"],
            name: pc.cast(pc.round(summed["value_sum"]), pa.int64()),
            f"{name}_reconciled": pc.round(summed["reconciled_sum"], _DECIMALS),
            f"{name}_standard_deviation": pc.round(pc.sqrt(summed["variance_sum"]), _DECIMALS),
        }
    )
