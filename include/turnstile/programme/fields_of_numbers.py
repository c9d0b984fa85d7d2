"""The registry's columns of numbers: as drawn, as presented, as estimated, and their errors.

Plain data; `fields` adds the columns of canonical rows and the labels of published ones.
"""

from __future__ import annotations

from turnstile.programme.field import Field, FieldType, Role

_T = FieldType
_ENDS = {"low": "Lower", "high": "Upper"}
# name, type, unit, title, description, role
NUMBERS: tuple[Field, ...] = (
    # of trips
    Field(
        "count",
        _T.INTEGER,
        "trips",
        "Number of trips counted",
        "Of the trips that the bound lets count (release_card.json, counted). In measurements/: "
        "the noisy number as drawn. In tables/: made an integer not below zero that adds up, and "
        "biased by that.",
        Role.MEASUREMENT,
    ),
    Field(
        "reconciled",
        _T.NUMBER,
        "trips",
        "Reconciled number of trips counted",
        "By least squares over all tables: without bias for the trips counted, may be negative. "
        "What the bound leaves out is in no error bar.",
        Role.ESTIMATE,
    ),
    Field(
        "estimate",
        _T.NUMBER,
        "trips, km/h, minutes or buses a day",
        "Estimate",
        "In estimates/: the most exact number that the release has for this cell, from like "
        "places, days and earlier weeks. Biased towards the usual, so that short bursts are lost; "
        "never negative. In packages of version 0.1: the reconciled number.",
        Role.ESTIMATE,
    ),
    Field(
        "is_flow",
        _T.BOOLEAN,
        "",
        "More than noise",
        "Of pairs of places: true where the week's number is so far above its noise that of all "
        "pairs that say so fewer than one in a hundred are expected to have no trips counted.",
        Role.ESTIMATE,
    ),
    Field(
        "standard_deviation",
        _T.NUMBER,
        "trips",
        "Standard deviation",
        "Of the noise of the number beside it.",
        Role.ERROR,
    ),
    *(
        Field(
            f"{end}_{level}",
            _T.NUMBER,
            "trips",
            f"{_ENDS[end]} end, {level} %",
            f"{_ENDS[end]} end of the {level} % interval of the estimate; absent where the numbers "
            "carry too little signal for it.",
            Role.ERROR,
        )
        for level in (90, 95)
        for end in _ENDS
    ),
    *(
        Field(
            f"half_width_{level}",
            _T.NUMBER,
            "trips",
            f"Half-width, {level} %",
            f"The number lies this near to the exact one with probability 0.{level}.",
            Role.ERROR,
        )
        for level in (90, 95)
    ),
    # of a series
    Field("period", _T.STRING, "", "Period", "ISO week, or first and last service day.", Role.KEY),
    Field("revision", _T.INTEGER, "", "Revision", "Of the release that is in force.", Role.KEY),
    *(
        field
        for unit in ("day", "week")
        for field in (
            Field(
                f"{unit}s",
                _T.INTEGER,
                f"{unit}s",
                f"Number of {unit}s",
                f"Of the {unit}s that the mean, or the sum, is taken over.",
                Role.KEY,
            ),
            Field(
                f"trips_a_{unit}",
                _T.NUMBER,
                "trips",
                f"Mean number of trips counted a {unit}",
                "Mean of reconciled numbers, without bias for the trips counted.",
                Role.ESTIMATE,
            ),
        )
    ),
    # of speeds and buses
    Field(
        "sum",
        _T.INTEGER,
        "0.1 km/h",
        "Sum of centered speeds",
        "Noisy sum, over bus-days, of mean speeds less half the clamp, as drawn.",
        Role.MEASUREMENT,
    ),
    Field(
        "buses",
        _T.INTEGER,
        "bus-days",
        "Bus-days",
        "Noisy number of bus-days, as drawn.",
        Role.MEASUREMENT,
    ),
    Field(
        "over_{limit}",
        _T.INTEGER,
        "bus-days",
        "Bus-days above {limit} km/h",
        "Noisy number of bus-days on which a bus was faster, as drawn.",
        Role.MEASUREMENT,
    ),
    Field(
        "bus_days",
        _T.INTEGER,
        "bus-days",
        "Bus-days",
        "Noisy number of bus-days, not below zero.",
        Role.PRESENTATION,
    ),
    Field(
        "bus_days_standard_deviation",
        _T.NUMBER,
        "bus-days",
        "Standard deviation of bus-days",
        "Of the noise of bus_days.",
        Role.ERROR,
    ),
    Field(
        "bus_days_half_width_95",
        _T.INTEGER,
        "bus-days",
        "Half-width of bus-days, 95 %",
        "The noise of bus_days is within this with probability 0.95.",
        Role.ERROR,
    ),
    Field(
        "buses_a_day",
        _T.NUMBER,
        "buses",
        "Buses a day",
        "bus_days over the service days with input.",
        Role.PRESENTATION,
    ),
    Field(
        "mean_speed_kmh",
        _T.NUMBER,
        "km/h",
        "Mean speed",
        "Mean over bus-days of a bus's mean speed; absent where withheld.",
        Role.ESTIMATE,
    ),
    Field(
        "standard_deviation_kmh",
        _T.NUMBER,
        "km/h",
        "Standard deviation",
        "Of the noise of the mean, to first order.",
        Role.ERROR,
    ),
    *(
        Field(
            f"{end}_{level}_kmh",
            _T.NUMBER,
            "km/h",
            f"{_ENDS[end]} end, {level} %",
            f"{_ENDS[end]} end of the {level} % interval of the mean; noise only.",
            Role.ERROR,
        )
        for level in (90, 95)
        for end in _ENDS
    ),
    # of delays and headways
    Field(
        "mean_delay_minutes",
        _T.NUMBER,
        "min",
        "Mean delay",
        "Mean over bus-days of how late a bus is, early below 0; absent where withheld.",
        Role.ESTIMATE,
    ),
    Field(
        "headway_minutes",
        _T.NUMBER,
        "min",
        "Mean headway",
        "Minutes observed over the buses that came in them, a bus once in each slot and day; "
        "absent where withheld.",
        Role.ESTIMATE,
    ),
    Field(
        "standard_deviation_minutes",
        _T.NUMBER,
        "min",
        "Standard deviation",
        "Of the noise of the mean, to first order.",
        Role.ERROR,
    ),
    *(
        Field(
            f"{end}_95_minutes",
            _T.NUMBER,
            "min",
            f"{_ENDS[end]} end, 95 %",
            f"{_ENDS[end]} end of the 95 % interval of the mean; noise only.",
            Role.ERROR,
        )
        for end in _ENDS
    ),
    Field(
        "is_withheld",
        _T.BOOLEAN,
        "",
        "Withheld",
        "True where too few bus-days rise above the noise for a mean.",
        Role.PRESENTATION,
    ),
    Field(
        "buses_a_day_over_{limit}_kmh",
        _T.NUMBER,
        "buses",
        "Buses a day above {limit} km/h",
        "Noisy number over the service days with input, not below zero.",
        Role.PRESENTATION,
    ),
    Field(
        "standard_deviation_over_{limit}",
        _T.NUMBER,
        "buses",
        "Standard deviation above {limit} km/h",
        "Of the noise of buses a day.",
        Role.ERROR,
    ),
    *(
        Field(
            f"{end}_95_over_{{limit}}",
            _T.NUMBER,
            "buses",
            f"{_ENDS[end]} end above {{limit}} km/h, 95 %",
            f"{_ENDS[end]} end of the 95 % interval of buses a day.",
            Role.ERROR,
        )
        for end in _ENDS
    ),
    # of occupancy: classes of GTFS-realtime
    Field(
        "class_{limit}",
        _T.INTEGER,
        "bus-days",
        "Bus-days of class {limit} or fuller",
        "Noisy number of bus-days on which a bus said once or more that it was so full, as drawn.",
        Role.MEASUREMENT,
    ),
    Field(
        "buses_a_day_class_{limit}",
        _T.NUMBER,
        "buses",
        "Buses a day of class {limit} or fuller",
        "Noisy number over the service days with input, not below zero.",
        Role.PRESENTATION,
    ),
    Field(
        "standard_deviation_class_{limit}",
        _T.NUMBER,
        "buses",
        "Standard deviation of class {limit} or fuller",
        "Of the noise of buses a day.",
        Role.ERROR,
    ),
    *(
        Field(
            f"{end}_95_class_{{limit}}",
            _T.NUMBER,
            "buses",
            f"{_ENDS[end]} end of class {{limit}} or fuller, 95 %",
            f"{_ENDS[end]} end of the 95 % interval of buses a day.",
            Role.ERROR,
        )
        for end in _ENDS
    ),
)
