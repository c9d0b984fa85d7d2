"""Canonical rows: the columns that every feed becomes, and the rules that a row may break."""

from __future__ import annotations

from turnstile.programme.source_spec import RowShape

UNKNOWN = "UNKNOWN"
FIRST_BATCH = "b0"
SPEED_SCALE = 1000  # milli-km/h in a km/h: integers, so that sums agree on every engine

COLUMNS: dict[RowShape, tuple[tuple[str, str], ...]] = {
    RowShape.TRIPS: (
        ("card_id", "VARCHAR"),
        ("mode", "VARCHAR"),
        ("service_date", "DATE"),
        ("tap_on_minute", "INTEGER"),
        ("tap_on_location", "VARCHAR"),
        ("tap_off_date", "DATE"),
        ("tap_off_minute", "INTEGER"),
        ("tap_off_location", "VARCHAR"),
        ("batch", "VARCHAR"),
    ),
    RowShape.TELEMETRY: (
        ("vehicle_id", "VARCHAR"),
        ("observed_at_utc", "TIMESTAMP"),
        ("service_date", "DATE"),
        ("minute_of_day", "INTEGER"),
        ("latitude", "DOUBLE"),
        ("longitude", "DOUBLE"),
        ("speed_milli_kmh", "BIGINT"),
        ("mode", "VARCHAR"),
        ("batch", "VARCHAR"),
    ),
}

# A row carries the first rule that it breaks, in this order: what is not of this week is not
# judged further. `malformed_line` is told by the CSV reader, before there is a row.
RULES: dict[RowShape, tuple[str, ...]] = {
    RowShape.TRIPS: (
        "malformed_line",
        "unparsable_timestamp",
        "future_date",
        "outside_week",
        "other_action",  # a fare transaction that is no tap: a purchase, a top-up
        "no_riders",
        "card_id_missing",
        "unknown_mode",
        "null_location",
        "tap_off_before_tap_on",
        "tap_off_without_tap_on",
    ),
    RowShape.TELEMETRY: (
        "malformed_line",
        "unparsable_timestamp",
        "future_date",
        "outside_week",
        "null_vehicle",
        "null_coordinates",
        "coordinates_swapped",
        "coordinates_out_of_range",
        "null_speed",
        "speed_out_of_range",
    ),
}

MAY_BE_NULL = frozenset({"tap_off_date", "tap_off_minute"})


def names_of(shape: RowShape) -> tuple[str, ...]:
    """Return the canonical column names in order.

    Examples:
        >>> names_of(RowShape.TELEMETRY)[:2]
        ('vehicle_id', 'observed_at_utc')
    """
    return tuple(name for name, _ in COLUMNS[shape])
