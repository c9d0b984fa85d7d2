"""The feeds that are understood; a further one is a module and a line here."""

from __future__ import annotations

from turnstile.programme.source_spec import Feed
from turnstile.sources import (
    gtfs_vehicle_positions,
    itms,
    opal_trips,
    taps,
    tides_fare_transactions,
    tides_passenger_events,
    tides_vehicle_locations,
)
from turnstile.sources.layout import FeedLayout

LAYOUTS: dict[Feed, FeedLayout] = {
    Feed.OPAL_TRIPS: opal_trips.LAYOUT,
    Feed.TIDES_FARE_TRANSACTIONS: tides_fare_transactions.LAYOUT,
    Feed.TIDES_PASSENGER_EVENTS: tides_passenger_events.LAYOUT,
    Feed.TAPS: taps.LAYOUT,
    Feed.ITMS: itms.LAYOUT,
    Feed.TIDES_VEHICLE_LOCATIONS: tides_vehicle_locations.LAYOUT,
    Feed.GTFS_VEHICLE_POSITIONS: gtfs_vehicle_positions.LAYOUT,
}


def layout_of(feed: Feed) -> FeedLayout:
    """Return the layout of a feed."""
    return LAYOUTS[feed]
