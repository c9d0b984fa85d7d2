"""Feed `gtfs_trip_updates`: GTFS-realtime TripUpdates, one stop of an update a record.

An update says of each stop of a trip when the vehicle was there or will be. It is observed if its
arrival (its departure, where there is none) is not later than the update itself, or than its
message where an update states no time; what is still to come, skipped or without data is set aside.
A trip without a vehicle is named by itself, in the form that ids of vehicles have, behind a word
that none of them begins with. Polls say the
same call again: it counts once, and a call that is corrected is another observation of its vehicle,
whose mean it enters.
"""

from __future__ import annotations

from collections.abc import Mapping

from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Programme
from turnstile.service_calendar import ServicePeriod
from turnstile.sources.feeds import stop_calls
from turnstile.sources.feeds.layout import FeedLayout, if_there, require_columns
from turnstile.sources.feeds.made_records import (
    MadeReading,
    Record,
    clock_of,
    fields_of_reading,
    named,
)

_UPDATE = "trip_update"
_CALL = f"{_UPDATE}.stop_time_update"
_NAMES = (
    ("vehicle_id", f"{_UPDATE}.vehicle.id"),
    ("trip", f"{_UPDATE}.trip.trip_id"),
    ("observed_at", f"{_CALL}.arrival.time"),
    ("departed_at", f"{_CALL}.departure.time"),
    ("delay", f"{_CALL}.arrival.delay"),
    ("departure_delay", f"{_CALL}.departure.delay"),
    ("stop", f"{_CALL}.stop_id"),
    ("relation", f"{_CALL}.schedule_relationship"),
    ("said_at", f"{_UPDATE}.timestamp"),
    ("polled_at", "header.timestamp"),
    ("route", f"{_UPDATE}.trip.route_id"),
    ("direction", f"{_UPDATE}.trip.direction_id"),
)
_LATEST = 9_999_999_999  # seconds: of the year 2286
_TRIP = " trip "  # no id of a vehicle begins with a blank
_SCHEDULED, _OTHERS = ("0", "SCHEDULED"), ("1", "2", "3", "SKIPPED", "NO_DATA", "UNSCHEDULED")


def fields_of(columns: frozenset[str], names: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the SQL of each field; NULL for columns that a file lacks.

    Raises:
        ColumnMissing: no trip, no stop, or no arrival.
    """
    require_columns(columns, names, ("trip", "observed_at", "stop"))
    sql = dict(if_there(columns, names, tuple(names)))
    named_by = f"coalesce({sql['vehicle_id']}, {sql['trip']})"  # before ids are brought to a form
    return tuple((sql | {"vehicle": sql["vehicle_id"], "vehicle_id": named_by}).items())


def typed_sql(programme: Programme, week: ServicePeriod) -> str:
    """Return the SELECT from `raw` to calls."""
    at, said, polled = (
        f"TRY_CAST({field} AS BIGINT)"
        for field in ("coalesce(observed_at, departed_at)", "said_at", "polled_at")
    )
    written = f"strftime(make_timestamp({at} * 1000000), '%Y-%m-%dT%H:%M:%SZ')"
    return stop_calls.typed_sql(
        programme,
        week,
        f"""(
            SELECT * REPLACE (
                CASE WHEN {at} BETWEEN -{_LATEST} AND {_LATEST} THEN {written} END AS observed_at,
                CASE WHEN observed_at IS NULL THEN departure_delay ELSE delay END AS delay),
                {at} <= coalesce({said}, {polled})
                    AND coalesce(relation IN {_SCHEDULED}, true) AS is_observed,
                coalesce(relation IN {(*_SCHEDULED, *_OTHERS)}, true) AS is_known
            FROM raw
        )""",
        f"CASE WHEN vehicle IS NULL THEN '{_TRIP}' || vehicle_id ELSE vehicle_id END",
    )


def made(reading: MadeReading, programme: Programme, names: Mapping[str, str]) -> list[Record]:
    """Return a made-up call: by its arrival or by its departure."""
    fields = fields_of_reading(reading, programme, names)
    local = clock_of(reading.day, reading.second).replace(tzinfo=programme.time.zone)
    at = round(local.timestamp())
    of_end: tuple[Record, Record] = (
        {"observed_at": at, "delay": reading.delay_s},
        {"departed_at": at, "departure_delay": reading.delay_s},
    )
    kept = {field: value for field, value in fields.items() if field in {"vehicle_id", "route"}}
    kept |= {field: value for field, value in fields.items() if field in {"stop", "direction"}}
    kept = {"stop": "a stop", "trip": f"trip of {reading.vehicle}"} | kept
    return [named(kept | of_end[reading.shape % 2] | {"said_at": at + 30}, names)]


LAYOUT = FeedLayout(
    shape=RowShape.TELEMETRY,
    names=_NAMES,
    fields_of=fields_of,
    typed_sql=typed_sql,
    made=made,
    composed={
        "vehicle_id": ("vehicle_id", "trip"),
        "delay_s": ("delay",),
        "stop": ("stop",),
        "route": ("route",),
        "direction": ("direction",),
    },
)
