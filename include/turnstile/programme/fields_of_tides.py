"""The registry's columns of TIDES shapes: those of `station_activities`, and errors beside them.

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
)
