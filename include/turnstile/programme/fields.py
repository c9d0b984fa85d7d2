"""The one registry of fields: every column of canonical rows and of published tables.

Plain data. The canonical rows (`sources.canonical`), the dimensions that a programme may ask for,
counting, labelled tables, descriptors and the data dictionary all read it, so that a field is
described once. A further dimension is one entry here: a category that rows carry as they come,
with its public labels.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from turnstile.programme.source_spec import RowShape


class FieldType(StrEnum):
    """Types of the Data Package's table schema."""

    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    DATE = "date"
    DATETIME = "datetime"


class Role(StrEnum):
    """What a field is to those who read it, and so where it may be."""

    UNIT = "unit"  # names a person's card or a vehicle: private zone only
    ROW = "row"  # other content of a canonical row: private zone only
    KEY = "key"  # labels a row of a published table, from the calendar or the programme
    DIMENSION = "dimension"  # labels a row of a published table, from the public domain
    MEASUREMENT = "measurement"  # a noisy integer as drawn
    PRESENTATION = "presentation"  # made from measurements, for people; may be biased
    ESTIMATE = "estimate"  # made from measurements by a stated estimator
    ERROR = "error"  # made from the plan's declared noise: how far a number may be off


PUBLIC_ROLES = frozenset(set(Role) - {Role.UNIT, Role.ROW})
_TRIPS, _TELEMETRY = (RowShape.TRIPS,), (RowShape.TELEMETRY,)
_BOTH = (*_TRIPS, *_TELEMETRY)


@dataclass(frozen=True, slots=True)
class Field:
    """One column.

    Args:
        name: as in files; `{limit}` stands for a public number that the programme states.
        type: of its values.
        unit: of its values; empty for labels.
        title: a few words.
        description: one sentence.
        role: what it is.
        sql: type in canonical rows; empty if it is in none.
        rows: shapes of canonical rows that hold it.
        tables: shapes whose tables may have it as a dimension.
        labels: public values of a category; other values are outside of the public domain.
    """

    name: str
    type: FieldType
    unit: str
    title: str
    description: str
    role: Role
    sql: str = ""
    rows: tuple[RowShape, ...] = ()
    tables: tuple[RowShape, ...] = ()
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check what no reader of this registry could make sense of.

        Raises:
            ValueError: a category that is not of trips, where counting knows categories.
        """
        if self.labels and not self.rows == self.tables == (RowShape.TRIPS,):
            raise ValueError(f"{self.name}: a category is a column and a dimension of trips")

    @property
    def is_category(self) -> bool:
        """Whether rows carry this dimension as they come, under its own name."""
        return bool(self.labels)


_T = FieldType
_ENDS = {"low": "Lower", "high": "Upper"}
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
    Field(
        "slot",
        _T.STRING,
        "HH:MM",
        "Time",
        "Start of the slot.",
        Role.DIMENSION,
        tables=_TELEMETRY,
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
    # numbers of trips
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
        "trips, km/h or buses a day",
        "Estimate",
        "In estimates/: the most exact number that the release has for this cell, from like "
        "places, days and earlier weeks. Biased towards the usual, so that short bursts are lost; "
        "never negative. In packages of version 0.1: the reconciled number.",
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
                f"Of the {unit}s that the mean is taken over.",
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
    # speeds and buses
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
)
BY_NAME = {field.name: field for field in FIELDS}
_PATTERNS = [
    (re.compile(re.escape(field.name).replace(r"\{limit\}", r"(\d+)")), field)
    for field in FIELDS
    if "{limit}" in field.name
]


def field_of(name: str) -> Field | None:
    """Return the entry of a column; None for a column that has none.

    Examples:
        >>> field_of("over_40").title
        'Bus-days above {limit} km/h'
        >>> field_of("card") is None
        True
    """
    patterned = (field for pattern, field in _PATTERNS if pattern.fullmatch(name))
    return BY_NAME.get(name) or next(patterned, None)


def title_of(name: str) -> str:
    """Return the title of a column, with its own number; the name where it has no entry.

    Examples:
        >>> title_of("over_40")
        'Bus-days above 40 km/h'
    """
    field = field_of(name)
    limit = re.search(r"over_(\d+)", name)
    return name if field is None else field.title.replace("{limit}", limit[1] if limit else "")


# A tap has a time and a location, which one table may have together.
TAPS = (("tap_on_slot", "tap_on_location"), ("tap_off_slot", "tap_off_location"))


def categories(shape: RowShape) -> tuple[Field, ...]:
    """Return the dimensions that rows of a shape carry as they come."""
    return tuple(field for field in FIELDS if field.is_category and shape in field.rows)


def dimensions(shape: RowShape) -> tuple[str, ...]:
    """Return the names of the dimensions that tables of a shape may have, in their fixed order.

    Examples:
        >>> dimensions(RowShape.TELEMETRY)
        ('slot', 'cell')
    """
    return tuple(field.name for field in FIELDS if shape in field.tables)
