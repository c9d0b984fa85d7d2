"""The registry of fields, its first part: columns of canonical rows, keys and dimensions.

Plain data. The canonical rows (`canonical`), the dimensions that a programme may ask for
and counting read it; `field_registry` adds the columns of published numbers, so that a field is
described once. A further dimension is one entry here: a category that rows carry as they come,
with its public labels.
"""

from __future__ import annotations

from functools import cache

from turnstile.programme.field import Field, FieldType, Role
from turnstile.programme.source_spec import RowShape

_TRIPS, _TELEMETRY = (RowShape.TRIPS,), (RowShape.TELEMETRY,)
_BOTH = (*_TRIPS, *_TELEMETRY)
STOP = "stop"
_T = FieldType
# name, type, unit, title, description, role
FIELDS: tuple[Field, ...] = (
    # what canonical rows hold and nobody outside of the private zone sees
    Field("card_id", _T.STRING, "", "Card", "Id of the card.", Role.UNIT, "VARCHAR", _TRIPS),
    Field("vehicle_id", _T.STRING, "", "Vehicle", "Id of a bus.", Role.UNIT, "VARCHAR", _TELEMETRY),
    Field(
        "observed_at_utc",
        _T.DATETIME,
        "UTC",
        "Instant",
        "Instant of a reading.",
        Role.ROW,
        "TIMESTAMP",
        _TELEMETRY,
    ),
    Field(
        "minute_of_day",
        _T.INTEGER,
        "min",
        "Minute",
        "Minute of a reading after its service day's midnight, by the agency's clock.",
        Role.ROW,
        "INTEGER",
        _TELEMETRY,
    ),
    Field(
        "latitude", _T.NUMBER, "degree", "Latitude", "Of a reading.", Role.ROW, "DOUBLE", _TELEMETRY
    ),
    Field(
        "longitude",
        _T.NUMBER,
        "degree",
        "Longitude",
        "Of a reading.",
        Role.ROW,
        "DOUBLE",
        _TELEMETRY,
    ),
    Field(
        "speed_milli_kmh",
        _T.INTEGER,
        "0.001 km/h",
        "Speed",
        "Speed of a reading.",
        Role.ROW,
        "BIGINT",
        _TELEMETRY,
    ),
    Field(
        "delay_s",
        _T.INTEGER,
        "s",
        "Delay",
        "How late a bus is by the record itself, or at its stop; early below 0; -86400 to 86400.",
        Role.ROW,
        "BIGINT",
        _TELEMETRY,
    ),
    Field(
        "occupancy",
        _T.INTEGER,
        "",
        "Occupancy",
        "Class of GTFS-realtime by the record itself, 0 (empty) to 6.",
        Role.ROW,
        "INTEGER",
        _TELEMETRY,
    ),
    Field(
        "tap_on_minute",
        _T.INTEGER,
        "min",
        "Minute of the tap-on",
        "Minute after midnight of its service day, by the agency's clock.",
        Role.ROW,
        "INTEGER",
        _TRIPS,
    ),
    Field(
        "tap_off_date",
        _T.DATE,
        "",
        "Day of the tap-off",
        "Service day, by the agency's clock.",
        Role.ROW,
        "DATE",
        _TRIPS,
    ),
    Field(
        "tap_off_minute",
        _T.INTEGER,
        "min",
        "Minute of the tap-off",
        "Minute after midnight of its service day, by the agency's clock.",
        Role.ROW,
        "INTEGER",
        _TRIPS,
    ),
    Field("batch", _T.STRING, "", "Batch", "Delivery of a row.", Role.ROW, "VARCHAR", _BOTH),
    # what labels a row of a published table
    Field(
        "service_date",
        _T.DATE,
        "",
        "Service day",
        "Service day in the agency's time zone, of the tap-on.",
        Role.KEY,
        "DATE",
        _BOTH,
    ),
    Field("mode", _T.STRING, "", "Mode", "Mode of transport.", Role.KEY, "VARCHAR", _BOTH),
    Field(
        "limit_kmh",
        _T.INTEGER,
        "km/h",
        "Speed limit",
        "In estimates of buses above limits: the limit that the row is about.",
        Role.KEY,
    ),
    Field(
        "occupancy_class",
        _T.INTEGER,
        "",
        "Class of occupancy",
        "In estimates of full buses: the class of GTFS-realtime that the row is about.",
        Role.KEY,
    ),
    Field(
        "gap_days",
        _T.INTEGER,
        "days",
        "Days without input",
        "Service days of this row without input: in a table of days 1 where the row is no more "
        "than noise, in a table of weeks how many days are missing from its sums.",
        Role.GAP,
    ),
    Field(
        "tap_on_slot",
        _T.STRING,
        "HH:MM",
        "Time of the tap-on",
        "Start of the slot of the tap-on; UNKNOWN outside of the mode's slots.",
        Role.DIMENSION,
        tables=_TRIPS,
    ),
    Field(
        "tap_on_location",
        _T.STRING,
        "",
        "Location of the tap-on",
        "Location of the tap-on as published; UNKNOWN outside of the public list.",
        Role.DIMENSION,
        "VARCHAR",
        _TRIPS,
        _TRIPS,
    ),
    Field(
        "tap_off_slot",
        _T.STRING,
        "HH:MM",
        "Time of the tap-off",
        "Start of the slot of the tap-off; UNKNOWN without one, or outside of the mode's slots.",
        Role.DIMENSION,
        tables=_TRIPS,
    ),
    Field(
        "tap_off_location",
        _T.STRING,
        "",
        "Location of the tap-off",
        "Location of the tap-off as published; UNKNOWN without one.",
        Role.DIMENSION,
        "VARCHAR",
        _TRIPS,
        _TRIPS,
    ),
    *(
        Field(name, _T.STRING, "", title, text, Role.DIMENSION, tables=_TRIPS)
        for name, title, text in (
            ("day_period", "Period", "Period of the day of the tap-on, by its public name."),
            ("origin_region", "Origin region", "Public region of the tap-on's location."),
            ("origin_zone", "Origin zone", "REGION/ZONE of the tap-on's location."),
            ("destination_region", "Destination region", "Public region of the tap-off."),
            ("destination_zone", "Destination zone", "REGION/ZONE of the tap-off's location."),
        )
    ),
    Field(
        "slot", _T.STRING, "HH:MM", "Time", "Start of the slot.", Role.DIMENSION, tables=_TELEMETRY
    ),
    Field(
        "cell",
        _T.STRING,
        "",
        "H3 cell",
        "Index of the H3 cell, hexadecimal.",
        Role.DIMENSION,
        tables=_TELEMETRY,
    ),
    *(
        Field(
            name,
            _T.STRING,
            "",
            title,
            f"{title} of {of}, by the programme's public list; UNKNOWN for what it lacks.",
            Role.DIMENSION,
            "VARCHAR",
            rows,
            rows,
            is_listed=True,
        )
        for name, title, of, rows in (
            (STOP, "Stop", "the call of the vehicle, by the timetable", _TELEMETRY),
            ("route", "Route or line", "the tap-on, or of the vehicle", _BOTH),
            ("direction", "Direction", "the tap-on, or of the vehicle", _BOTH),
            ("fare_product", "Group of fare products", "the tap-on", _TRIPS),
            ("vehicle_trip", "Vehicle trip", "the tap-on", _TRIPS),
        )
    ),
    *(
        Field(
            f"{side}_visit",
            _T.STRING,
            "",
            f"Stop visit of a {side}",
            "TRIP/SEQUENCE/STOP of the timetable: the visit of a vehicle trip to a stop, by the "
            "programme's public list.",
            Role.DIMENSION,
            "VARCHAR",
            _TRIPS,
            _TRIPS,
            is_listed=True,
        )
        for side in ("boarding", "alighting")
    ),
)
BY_NAME = {field.name: field for field in FIELDS}
# A tap has a time and a location, which one table may have together.
TAPS = (("tap_on_slot", "tap_on_location"), ("tap_off_slot", "tap_off_location"))
# What is a coarser time or place of a tap: of the one, of the other.
COARSER_ON = ("day_period", "origin_region", "origin_zone")
COARSER_OFF = ("destination_region", "destination_zone")
# Which end of a trip a table is of, by its dimensions; those of others are of the whole trip.
OF_ON = (*TAPS[0], *COARSER_ON, "boarding_visit")
OF_OFF = (*TAPS[1], *COARSER_OFF, "alighting_visit")
VISITS = ("boarding_visit", "alighting_visit")
FLOWS = tuple((f"origin_{grain}", f"destination_{grain}") for grain in ("region", "zone"))


@cache
def categories(shape: RowShape) -> tuple[Field, ...]:
    """Return the dimensions that rows of a shape carry as they come."""
    return tuple(field for field in FIELDS if field.is_category and shape in field.rows)


def dimensions(shape: RowShape) -> tuple[str, ...]:
    """Return the names of the dimensions that tables of a shape may have, in their fixed order.

    Examples:
        >>> dimensions(RowShape.TELEMETRY)
        ('slot', 'cell', 'stop', 'route', 'direction')
    """
    return tuple(field.name for field in FIELDS if shape in field.tables)
