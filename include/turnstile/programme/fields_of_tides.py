"""The registry's columns of TIDES shapes: `station_activities`, `stop_visits`, and errors beside.

Plain data. Names, types and meanings are those of TIDES 1.0 (tides-transit.org); columns that no
release fills stay in the file, empty, because the schema lists them.
"""

from __future__ import annotations

from turnstile.programme.field import Field, FieldType, Role

_T = FieldType
_SIDES = (
    ("entries", "tap-ons", "boardings or entrances"),
    ("exits", "tap-offs", "alightings or exits"),
)
_NEVER_FILLED = (
    ("number_of_transactions", "Number of transactions"),
    ("bike_entries", "Bikes in"),
    ("bike_exits", "Bikes out"),
    ("ramp_entries", "Entrances by ramp"),
    ("ramp_exits", "Exits by ramp"),
)
_OF_VISITS = (
    ("boarding_1", "Boardings", "boardings"),
    ("alighting_1", "Alightings", "alightings"),
)
# Columns of stop_visits that no release fills: what a vehicle did is not in a table of passengers.
_NO_VISIT = (
    ("scheduled_stop_sequence", "Scheduled sequence", _T.INTEGER),
    ("pattern_id", "Pattern", _T.STRING),
    ("dwell", "Dwell", _T.INTEGER),
    ("timepoint", "Timepoint", _T.BOOLEAN),
    ("schedule_arrival_time", "Scheduled arrival", _T.DATETIME),
    ("schedule_departure_time", "Scheduled departure", _T.DATETIME),
    ("actual_arrival_time", "Arrival", _T.DATETIME),
    ("actual_departure_time", "Departure", _T.DATETIME),
    ("distance", "Distance", _T.INTEGER),
    ("boarding_2", "Boardings, other doors", _T.INTEGER),
    ("alighting_2", "Alightings, other doors", _T.INTEGER),
    ("departure_load", "Load", _T.INTEGER),
    ("door_open", "Door opened", _T.DATETIME),
    ("door_close", "Door closed", _T.DATETIME),
    ("door_status", "Doors", _T.STRING),
    ("ramp_deployed_time", "Ramp", _T.NUMBER),
    ("ramp_failure", "Ramp failed", _T.BOOLEAN),
    ("kneel_deployed_time", "Kneel", _T.NUMBER),
    ("lift_deployed_time", "Lift", _T.NUMBER),
    ("bike_rack_deployed", "Bike rack", _T.BOOLEAN),
    ("bike_load", "Bikes", _T.INTEGER),
    ("revenue", "Revenue", _T.NUMBER),
    ("schedule_relationship", "Status", _T.STRING),
)
# name, type, unit, title, description, role
TIDES: tuple[Field, ...] = (
    Field("stop_id", _T.STRING, "", "Stop", "Location as published, over all modes.", Role.KEY),
    Field("time_period_start", _T.DATETIME, "", "Period from", "Start of the slot.", Role.KEY),
    Field("time_period_end", _T.DATETIME, "", "Period until", "End of the slot.", Role.KEY),
    Field("time_period_category", _T.STRING, "", "Kind of period", "Never filled.", Role.KEY),
    *(
        Field(
            f"total_{side}",
            _T.INTEGER,
            "trips",
            f"Total {side}",
            f"Counted {taps}, as {meaning}: the integers of tables/, not below zero and biased by "
            "that; absent on days without input.",
            Role.PRESENTATION,
        )
        for side, taps, meaning in _SIDES
    ),
    *(
        Field(name, _T.INTEGER, "", title, "Never filled.", Role.PRESENTATION)
        for name, title in _NEVER_FILLED
    ),
    *(
        field
        for side, taps, _ in _SIDES
        for field in (
            Field(
                f"total_{side}_reconciled",
                _T.NUMBER,
                "trips",
                f"Reconciled total {side}",
                f"Counted {taps} without bias, may be negative: use it for sums.",
                Role.ESTIMATE,
            ),
            Field(
                f"total_{side}_standard_deviation",
                _T.NUMBER,
                "trips",
                f"Standard deviation of total {side}",
                "Of the noise of the reconciled number.",
                Role.ERROR,
            ),
        )
    ),
    Field(
        "trip_id_performed",
        _T.STRING,
        "",
        "Trip",
        "The vehicle trip as it is scheduled, by the public list of stop visits.",
        Role.KEY,
    ),
    Field("trip_stop_sequence", _T.INTEGER, "", "Order", "Of the stop, from 1.", Role.KEY),
    *(
        field
        for name, title, what in _OF_VISITS
        for field in (
            Field(
                name,
                _T.INTEGER,
                "passengers",
                title,
                f"Counted {what} of all doors: the integers of tables/, not below zero and biased "
                "by that; absent on days without input.",
                Role.PRESENTATION,
            ),
            Field(
                f"{name}_reconciled",
                _T.NUMBER,
                "passengers",
                f"Reconciled {what}",
                f"Counted {what} without bias, may be negative: use it for sums.",
                Role.ESTIMATE,
            ),
            Field(
                f"{name}_standard_deviation",
                _T.NUMBER,
                "passengers",
                f"Standard deviation of {what}",
                "Of the noise of the reconciled number.",
                Role.ERROR,
            ),
        )
    ),
    *(Field(name, kind, "", title, "Never filled.", Role.KEY) for name, title, kind in _NO_VISIT),
)
