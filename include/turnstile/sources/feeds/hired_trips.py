"""Feed `hired_trips`: one record a trip that no card made: bikes, scooters, taxis.

Columns are those of the bike-share systems of North America where a programme names no others. A
trip begins and ends at a station, or at a position, which becomes a grid cell of
`source.grid_decimals`. An account is a card; where there is none, each trip is a unit of its own
(`source.without_card`), told from others by all of its fields. An end without a time or a place is
UNKNOWN altogether. A record that is there twice, its own id included, counts once; one with a
column `status` counts if `source.status_names` says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from turnstile.duckdb_engine import text
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Programme
from turnstile.service_calendar import ServicePeriod
from turnstile.sources.feeds.layout import (
    ColumnMissing,
    FeedLayout,
    Joined,
    Joining,
    carried_sql,
    if_there,
    mode_sql,
    require_columns,
    set_aside,
    unit_sql,
    week_rules,
)
from turnstile.sources.feeds.made_ids import spelt
from turnstile.sources.feeds.made_records import MadeTrip, Record, clock_of, named, status_made
from turnstile.sources.feeds.tap_trips import take_once, void_rules
from turnstile.sources.feeds.taps import grid_cell_sql
from turnstile.sources.feeds.zoned import ServiceClock, stamped_sql
from turnstile.sources.ingest.canonical import UNKNOWN
from turnstile.sources.ingest.identity import another_form_rule

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_NAMES = (
    ("trip_id", "ride_id"),
    ("card_id", "account_id"),
    ("mode", "mode"),
    ("tapped_at", "started_at"),
    ("ended_at", "ended_at"),
    ("place", "start_station_id"),
    ("end_place", "end_station_id"),
    ("latitude", "start_lat"),
    ("longitude", "start_lng"),
    ("end_latitude", "end_lat"),
    ("end_longitude", "end_lng"),
    ("status", "status"),
)
_FIELDS = tuple(field for field, _ in _NAMES)
_OWN = (("tap_id", "VARCHAR"), ("tapped_at_utc", "TIMESTAMP"))
_READ_ON_THE_WAY = "utc, local, stamp_read, stamp_is_local, stamp_told, stamp_parts"


def fields_of(columns: frozenset[str], names: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the SQL of each field; NULL for columns that the file does not need to have.

    Raises:
        ColumnMissing: no begin, no end, or no place.
    """
    require_columns(columns, names, ("tapped_at", "ended_at"))
    if not {names["latitude"], names["longitude"]} <= columns and names["place"] not in columns:
        raise ColumnMissing(names["place"], names["latitude"], names["longitude"])
    return if_there(columns, names, _FIELDS)


def typed_sql(programme: Programme, week: ServicePeriod) -> str:
    """Return the SELECT from `raw` to canonical trips."""
    source, zone = programme.source, programme.time.zone
    legal = ", ".join(text(mode) for mode in source.modes)
    clock = ServiceClock(programme.time.day_starts)
    on, off = (
        (clock.day(local), clock.minute(f"(60 * hour({local}) + minute({local}))"))
        for local in ("on_local", "local")
    )
    grid = source.grid_decimals
    places = f"""
        coalesce(place, {grid_cell_sql("latitude", "longitude", grid)}) AS start_at,
        coalesce(end_place, {grid_cell_sql("end_latitude", "end_longitude", grid)}) AS end_at
    """
    begun = f"""(
        SELECT * EXCLUDE ({_READ_ON_THE_WAY}), local AS on_local, utc AS on_utc
        FROM {stamped_sql("raw", "tapped_at", zone, week, source)}
    )"""
    return f"""
        SELECT unit AS card_id, own_mode AS mode, {on[0]} AS service_date,
            {on[1]} AS tap_on_minute, start_at AS tap_on_location,
            CASE WHEN has_end THEN {off[0]} END AS tap_off_date,
            CASE WHEN has_end THEN {off[1]} END AS tap_off_minute,
            CASE WHEN has_end THEN end_at ELSE {text(UNKNOWN)} END AS tap_off_location,
            {carried_sql(programme)}
            trip_id AS tap_id, on_utc AS tapped_at_utc,
            CASE
                WHEN on_local IS NULL OR (ended_at IS NOT NULL AND local IS NULL)
                    THEN 'unparsable_timestamp'
                {week_rules(on[0], programme, week)}
                {void_rules(source.status_names)}
                WHEN unit IS NULL THEN 'card_id_missing'
                {another_form_rule(source)}
                WHEN own_mode IS NULL OR own_mode NOT IN ({legal}) THEN 'unknown_mode'
                WHEN start_at IS NULL THEN 'null_location'
                WHEN has_end AND utc < on_utc THEN 'tap_off_before_tap_on'
            END AS broken_rule,
            {set_aside(_FIELDS)} AS fields
        FROM (
            SELECT *, local IS NOT NULL AND end_at IS NOT NULL AS has_end
            FROM (
                SELECT *, {mode_sql(source)} AS own_mode, {places},
                    {unit_sql(programme, _FIELDS)} AS unit
                FROM {stamped_sql(begun, "ended_at", zone, week, source)}
            )
        )
    """


def trips_once(connection: DuckDBPyConnection) -> Joined:
    """Leave each trip of `staged` there once; return what came twice."""
    twice = take_once(connection, "broken_rule IS NULL", "trip")
    connection.execute("INSERT INTO staged BY NAME FROM trip; DROP TABLE trip")
    return twice


def made(trip: MadeTrip, programme: Programme, names: Mapping[str, str]) -> list[Record]:
    """Return the record of a made-up trip."""
    begun = trip.on_second or 0
    ended = "" if trip.off_second is None else f"{clock_of(trip.day, trip.off_second)}"
    fields: Record = {
        "trip_id": f"{trip.card} {trip.day} {begun}",
        "card_id": spelt(trip.card, programme.source.card_form, trip.spelling + begun),
        "mode": trip.mode,
        "tapped_at": f"{clock_of(trip.day, begun)}",
        "ended_at": ended,
        "place": trip.on_location,
        "end_place": trip.off_location,
    }
    record = named(fields | dict(trip.categories), names)
    return [record | status_made(programme.source, names)]


LAYOUT = FeedLayout(
    shape=RowShape.TRIPS,
    names=_NAMES,
    fields_of=fields_of,
    typed_sql=typed_sql,
    made=made,
    joining=Joining(columns=_OWN, join=trips_once),
)
