"""Canonical rows: the columns that every feed becomes, and the rules that a row may break."""

from __future__ import annotations

from turnstile.programme.fields import BY_NAME, STOP, categories
from turnstile.programme.source_spec import Feed, RowShape

UNKNOWN = "UNKNOWN"
DUPLICATES = "duplicates"
"""What came twice: no rule is broken, and the records are counted as those of a rule."""
FIRST_BATCH = "b0"
SPEED_SCALE = 1000  # milli-km/h in a km/h: integers, so that sums agree on every engine

# In this order; a category of the field registry stands before the batch.
_ORDER: dict[RowShape, tuple[str, ...]] = {
    RowShape.TRIPS: (
        *("card_id", "mode", "service_date", "tap_on_minute", "tap_on_location"),
        *("tap_off_date", "tap_off_minute", "tap_off_location"),
    ),
    RowShape.TELEMETRY: (
        *("vehicle_id", "observed_at_utc", "service_date", "minute_of_day"),
        *("latitude", "longitude", "speed_milli_kmh", "mode"),
    ),
}


MINUTE = {
    RowShape.TRIPS: "coalesce(tap_on_minute, tap_off_minute)",
    RowShape.TELEMETRY: "minute_of_day",
}
"""SQL of the minute of its service day that a row is counted at."""
FROM_TIMETABLE = ("delay_s", STOP)
"""Columns that are worked out by the timetable, where a programme names one."""
_ON_DEMAND: dict[RowShape, tuple[str, ...]] = {
    RowShape.TRIPS: (),
    RowShape.TELEMETRY: ("delay_s", "occupancy"),
}


def carried_names(shape: RowShape, carried: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns of rows that depend on what is asked for, whatever the feed.

    Args:
        shape: of the rows.
        carried: what a programme asks for: categories whose values a public list names, and
            delays; others are never read.
    """
    names = (field.name for field in categories(shape) if field.labels or field.name in carried)
    return (*names, *(name for name in _ON_DEMAND[shape] if name in carried))


def columns_of(shape: RowShape, carried: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return pairs (name, type) of the columns of canonical rows, in order."""
    names = (*_ORDER[shape], *carried_names(shape, carried), "batch")
    return tuple((name, BY_NAME[name].sql) for name in names)


# A row carries the first rule that it breaks, in this order: what is not of this week is not
# judged further. `malformed_line` is found by the CSV reader, before there is a row.
_TIMES = ("malformed_line", "unparsable_timestamp", "future_date", "outside_week")
RULES: dict[RowShape, tuple[str, ...]] = {
    RowShape.TRIPS: (
        *_TIMES,
        "other_action",  # a fare transaction that is no tap: a purchase, a top-up
        "unknown_action",  # a word that neither the feed's standard nor the programme explains
        *("no_riders", "card_id_missing", "card_id_of_another_form", "unknown_mode"),
        *("null_location", "tap_off_before_tap_on", "tap_off_without_tap_on"),
    ),
    RowShape.TELEMETRY: (
        *_TIMES,
        *("null_vehicle", "vehicle_id_of_another_form", "null_coordinates"),
        *("coordinates_swapped", "coordinates_out_of_range", "null_speed", "speed_out_of_range"),
        "unknown_status",  # a word of how full a vehicle is that GTFS-realtime does not have
    ),
}

# of calls at stops alone: a forecast or one that did not take place, and one without a stop
_OF_CALLS = ("not_observed", "null_stop")
_OF_FEED = {
    # a word of which nobody says whether such a record counts
    **dict.fromkeys((Feed.TAPS, Feed.HIRED_TRIPS), ("unknown_status",)),
    # than the service day that the record itself states
    Feed.TIDES_FARE_TRANSACTIONS: ("time_of_another_day",),
    Feed.TIDES_PASSENGER_EVENTS: ("time_of_another_day",),
}


def rules_broken(feed: Feed) -> tuple[str, ...]:
    """Return the rules that a row of a feed may break."""
    return (*RULES[feed.shape], *_OF_FEED.get(feed, _OF_CALLS if feed.names_stops else ()))


_MAY_BE_NULL = frozenset(
    {
        *("tap_off_date", "tap_off_minute", "delay_s", "occupancy"),
        *(field.name for shape in RowShape for field in categories(shape)),
    }
)


def may_be_null(feed: Feed) -> frozenset[str]:
    """Return the columns of a feed's canonical rows that may be empty."""
    one_end = {"tap_on_minute", "tap_on_location", "tap_off_location"}
    return _MAY_BE_NULL | one_end if feed.names_nobody else _MAY_BE_NULL


def names_of(shape: RowShape, carried: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the canonical column names in order.

    Examples:
        >>> names_of(RowShape.TELEMETRY)[:2]
        ('vehicle_id', 'observed_at_utc')
    """
    return tuple(name for name, _ in columns_of(shape, carried))
