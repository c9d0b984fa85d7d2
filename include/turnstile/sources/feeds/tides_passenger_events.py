"""Feed `tides_passenger_events`: TIDES 1.0, one record for passengers who boarded or alighted.

Counters at doors and conductors' devices name nobody, so no boarding is joined to an alighting, and
what is protected is a ride: one boarding and one alighting (privacy/rides.proof.md). A row of a
boarding has no tap-off, a row of an alighting no tap-on. A record of `event_count` n is n rows, at
most `MOST_OF_RECORD`; a count of 0, or one that is no number, is nobody's and set aside, as is
every event that is no passenger's. A record that came twice counts once. Of records that differ
in nothing but their count the largest counts: one more passenger never adds more than one row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from turnstile.duckdb_engine import number_of
from turnstile.programme.fields import VISITS
from turnstile.programme.source_spec import RowShape, TapAction
from turnstile.programme.spec import Programme
from turnstile.service_calendar import ServicePeriod
from turnstile.sources.feeds.layout import FeedLayout, Joined, Joining
from turnstile.sources.feeds.made_records import MadeTrip, Record, named, taps_of
from turnstile.sources.feeds.tap_trips import Taps, action_sql, taps_sql
from turnstile.sources.feeds.tides_fare_transactions import tides_fields

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MOST_OF_RECORD = 1000  # no vehicle holds more; a larger count counts as this
_TOO_LONG = "regexp_full_match(passengers, '[0-9]+') OR TRY_CAST(passengers AS DOUBLE) > 9e18"
"""One more passenger makes no count none because its number is too long."""
_ALWAYS = ("tap_id", "service_date", "tapped_at", "action", "place")
_MAYBE = ("passengers", "mode", "scheduled_trip", "stop_sequence")
_FIELDS = (*_ALWAYS, *_MAYBE)
_NO_PASSENGERS = (
    "Vehicle arrived at stop,Vehicle departed stop,Door opened,Door closed,Kneel was engaged,"
    "Kneel was disengaged,Ramp was deployed,Ramp was raised,Ramp deployment failed,Lift was "
    "deployed,Lift was raised,Bike rack deployed,Individual bike boarded,Individual bike alighted"
)
_PASSENGERS = (("Passenger boarded", TapAction.ENTER), ("Passenger alighted", TapAction.EXIT))
_WORDS = (*_PASSENGERS, *((word, TapAction.NO_TAP) for word in _NO_PASSENGERS.split(",")))
# of a made-up tap: what its event is called, and which category says where it was
_OF_EVENT = {
    "Enter": ("Passenger boarded", "boarding_visit"),
    "Exit": ("Passenger alighted", "alighting_visit"),
}
_NO_EVENT = frozenset({"card_id", "riders", *VISITS})
_VISIT = "scheduled_trip || '/' || stop_sequence"


def fields_of(columns: frozenset[str], names: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the SQL of each field.

    Raises:
        ColumnMissing: a column is missing without which there is no event.
    """
    return tides_fields(columns, names, _ALWAYS, _MAYBE)


def typed_sql(programme: Programme, week: ServicePeriod) -> str:
    """Return the SELECT from `raw` to boardings and alightings."""
    actions = action_sql((*_WORDS, *programme.source.action_names))
    each = programme.source.without_count or 1
    relation = f"""(
        SELECT *, tap_id AS card_id,
            CASE action WHEN '{TapAction.ENTER}' THEN {_VISIT} END AS boarding_visit,
            CASE action WHEN '{TapAction.EXIT}' THEN {_VISIT} END AS alighting_visit
        FROM (
            SELECT * REPLACE ({actions} AS action),
                CASE WHEN passengers IS NULL THEN {each} WHEN TRY_CAST(passengers AS BIGINT) > 0
                    THEN least(TRY_CAST(passengers AS BIGINT), {MOST_OF_RECORD})
                    WHEN TRY_CAST(passengers AS BIGINT) IS NULL AND ({_TOO_LONG})
                    THEN {MOST_OF_RECORD}
                    ELSE 0 END AS riders
            FROM raw
        )
    )"""
    service_day = "TRY_CAST(service_date AS DATE)"
    return taps_sql(
        programme, week, Taps(relation, "tapped_at", service_day, _FIELDS, ends_alone=True)
    )


def one_row_a_passenger(connection: DuckDBPyConnection) -> Joined:
    """Turn the events of `staged` into a row for each passenger; return what came twice."""
    records, once, rows = (
        number_of(connection, f"SELECT {figure} FROM {relation}")
        for figure, relation in (
            ("count(*)", "staged WHERE broken_rule IS NULL"),
            ("count(*)", f"({_ONCE})"),
            ("coalesce(sum(riders), 0)", f"({_ONCE})"),
        )
    )
    connection.execute(f"""
        CREATE TABLE event AS {_ONCE};
        DELETE FROM staged WHERE broken_rule IS NULL;
        INSERT INTO staged BY NAME
        SELECT * EXCLUDE (number) REPLACE (card_id || ' ' || number AS card_id)
        FROM (SELECT *, unnest(range(riders)) AS number FROM event);
        DROP TABLE event
    """)
    return Joined(duplicates=records - once, joined=0, added=rows - once)


_ONCE = """
    SELECT * EXCLUDE (fields, file, riders),
        min(fields) AS fields, min(file) AS file, max(riders) AS riders
    FROM staged WHERE broken_rule IS NULL GROUP BY ALL
"""


def made(trip: MadeTrip, programme: Programme, names: Mapping[str, str]) -> list[Record]:
    """Return the boarding and the alighting of a made-up ride, which nothing joins."""
    records = []
    for tap in taps_of(trip, programme.source):
        word, visit = _OF_EVENT[str(tap["action"])]
        values = {name: value for name, value in tap.items() if name not in _NO_EVENT}
        scheduled, _, sequence = dict(trip.categories).get(visit, "").partition("/")
        event_fields = {"action": word, "scheduled_trip": scheduled, "stop_sequence": sequence}
        records.append(named(values | {"passengers": "1"} | event_fields, names))
    return records


LAYOUT = FeedLayout(
    shape=RowShape.TRIPS,
    names=(
        ("tap_id", "passenger_event_id"),
        ("service_date", "service_date"),
        ("tapped_at", "event_timestamp"),
        ("action", "event_type"),
        ("place", "stop_id"),
        ("passengers", "event_count"),
        ("mode", "mode"),
        ("scheduled_trip", "trip_id_scheduled"),
        ("stop_sequence", "scheduled_stop_sequence"),
    ),
    fields_of=fields_of,
    typed_sql=typed_sql,
    made=made,
    joining=Joining(
        columns=(("tap_id", "VARCHAR"), ("tapped_at_utc", "TIMESTAMP"), ("riders", "BIGINT")),
        join=one_row_a_passenger,
    ),
    composed=dict.fromkeys(VISITS, ("scheduled_trip", "stop_sequence")),
)
