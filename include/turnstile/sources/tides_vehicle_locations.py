"""Feed `tides_vehicle_locations`: TIDES 1.0 (tides-transit.org), one row a ping, metres a second.

The agency's own words for nothing (`NA`, `NaN`) are no numbers, so such a row goes to quarantine
as one without coordinates or speed. A time without an offset is the agency's own clock.
"""

from __future__ import annotations

from turnstile.programme.source_spec import RowShape
from turnstile.sources.itms import typed_sql
from turnstile.sources.layout import FeedLayout, plain_fields

LAYOUT = FeedLayout(
    shape=RowShape.TELEMETRY,
    names=(
        ("vehicle_id", "vehicle_id"),
        ("observed_at", "event_timestamp"),
        ("speed", "speed"),
        ("latitude", "latitude"),
        ("longitude", "longitude"),
    ),
    fields_of=plain_fields,
    typed_sql=typed_sql,
)
