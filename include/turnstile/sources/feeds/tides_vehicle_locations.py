"""Feed `tides_vehicle_locations`: TIDES 1.0 (tides-transit.org), one row a ping, metres a second.

TIDES' own words for nothing (`NA`, `NaN`) are nothing: a row without a vehicle, coordinates or a
speed goes to quarantine. A time without an offset is the agency's own clock.
"""

from __future__ import annotations

from collections.abc import Mapping

from turnstile.programme.source_spec import RowShape
from turnstile.sources.feeds.itms import typed_sql
from turnstile.sources.feeds.layout import FeedLayout
from turnstile.sources.feeds.made_records import position_made
from turnstile.sources.feeds.tides_fare_transactions import tides_fields

_IF_THERE = ("delay", "trip", "start_date")


def fields_of(columns: frozenset[str], names: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the SQL of each field; of delay, trip and its day NULL where a file lacks them.

    Raises:
        ColumnMissing: the file lacks one of the others.
    """
    always = tuple(field for field in names if field not in _IF_THERE)
    return tides_fields(columns, names, always, _IF_THERE)


LAYOUT = FeedLayout(
    shape=RowShape.TELEMETRY,
    names=(
        ("vehicle_id", "vehicle_id"),
        ("observed_at", "event_timestamp"),
        ("speed", "speed"),
        ("latitude", "latitude"),
        ("longitude", "longitude"),
        ("delay", "schedule_deviation"),
        ("trip", "trip_id_scheduled"),
        ("start_date", "service_date"),
    ),
    fields_of=fields_of,
    typed_sql=typed_sql,
    made=position_made,
    composed={"delay_s": ("delay",)},
)
