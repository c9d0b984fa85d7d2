"""Where the raw rows of a programme come from, and how they are read: frozen records."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Annotated

from turnstile.programme.id_form import IdForm
from turnstile.programme.key import (
    Amount,
    Days,
    Key,
    Named,
    Positive,
    Read,
    Stretch,
    Text,
    Texts,
    Whole,
    Zone,
    degrees,
    read_text,
    whole,
)

STOP_WITHIN_M = 100
_GRID_FINEST = 3  # decimals of a degree, about 100 m


class RowShape(StrEnum):
    """The two shapes of canonical rows that are counted."""

    TRIPS = "trips"
    TELEMETRY = "telemetry"


class Feed(StrEnum):
    """Layouts of source files that are understood."""

    OPAL_TRIPS = "opal_trips"
    TIDES_FARE_TRANSACTIONS = "tides_fare_transactions"
    TIDES_PASSENGER_EVENTS = "tides_passenger_events"
    TAPS = "taps"
    HIRED_TRIPS = "hired_trips"
    GATE_COUNTS = "gate_counts"
    GATE_COUNTERS = "gate_counters"
    ITMS = "itms"
    TIDES_VEHICLE_LOCATIONS = "tides_vehicle_locations"
    GTFS_VEHICLE_POSITIONS = "gtfs_vehicle_positions"
    HFP = "hfp"
    SIRI_VM = "siri_vm"
    GTFS_TRIP_UPDATES = "gtfs_trip_updates"
    IST_DATEN = "ist_daten"

    @property
    def shape(self) -> RowShape:
        """Shape of the canonical rows that this feed becomes."""
        return RowShape.TELEMETRY if self in _OF_VEHICLES else RowShape.TRIPS

    @property
    def joins_taps(self) -> bool:
        """True if a trip is joined from two records, a tap-on and a tap-off."""
        return self in (Feed.TIDES_FARE_TRANSACTIONS, Feed.TAPS)

    @property
    def names_nobody(self) -> bool:
        """True if a row is a boarding or an alighting alone, and no card says whose."""
        return self in (Feed.TIDES_PASSENGER_EVENTS, Feed.GATE_COUNTS, Feed.GATE_COUNTERS)

    @property
    def has_delays_of_a_unit(self) -> bool:
        """True if its delays are plain numbers: not durations, nor worked out from two times."""
        return "delay_s" in self.states and self not in (Feed.SIRI_VM, Feed.IST_DATEN)

    @property
    def states(self) -> tuple[str, ...]:
        """Columns that its rows may have: how late a vehicle is, how full it is, at which stop."""
        return _OF_VEHICLES.get(self, ())

    @property
    def names_stops(self) -> bool:
        """True if a row is a call at a stop, without a position or a speed."""
        return "stop" in self.states

    @property
    def speed_unit(self) -> SpeedUnit:
        """Unit of speeds by the feed's own specification, unless a programme says otherwise."""
        metric = (Feed.TIDES_VEHICLE_LOCATIONS, Feed.GTFS_VEHICLE_POSITIONS, Feed.HFP)
        return SpeedUnit.MS if self in metric else SpeedUnit.KMH


# and what rows of each may have
_OF_VEHICLES: dict[Feed, tuple[str, ...]] = {
    Feed.ITMS: ("delay_s",),
    Feed.TIDES_VEHICLE_LOCATIONS: ("delay_s",),
    Feed.GTFS_VEHICLE_POSITIONS: ("occupancy",),
    Feed.HFP: ("delay_s",),
    Feed.SIRI_VM: ("delay_s",),
    Feed.GTFS_TRIP_UPDATES: ("delay_s", "stop"),
    Feed.IST_DATEN: ("delay_s", "stop"),
}


class MissingDay(StrEnum):
    """What a week with a missing service day means."""

    REFUSE = "refuse"
    PUBLISH_WITH_GAP = "publish_with_gap"


class WithoutCard(StrEnum):
    """What happens to a row of trips or taps that has no card id."""

    DROP = "drop"
    OWN_UNIT = "own_unit"

    @property
    def sentence(self) -> str:
        """What people must know of it."""
        if self is WithoutCard.DROP:
            return "Rows without a card id are left out."
        return (
            "Each row without a card id is a unit of its own: one such trip is protected, not the "
            "other trips of whoever made it."
        )


class SpeedUnit(StrEnum):
    """Unit of the source's speed column."""

    KMH = "km/h"
    MS = "m/s"
    MPH = "mph"
    KNOTS = "knots"

    @property
    def milli_kmh(self) -> Fraction:
        """How many thousandths of a km/h one is; miles and sea miles are international ones."""
        of = {"km/h": "1000", "m/s": "3600", "mph": "1609.344", "knots": "1852"}
        return Fraction(of[self])


class DelayUnit(StrEnum):
    """Unit of the source's column of delays, and whether its sign is not the feed's."""

    SECONDS = "s"
    MINUTES = "min"
    SECONDS_REVERSED = "s_reversed"
    MINUTES_REVERSED = "min_reversed"


class Encoding(StrEnum):
    """Characters of a file's bytes, by the names of Python's codecs."""

    UTF_8 = "utf-8"
    LATIN_1 = "latin-1"
    WINDOWS_1252 = "windows-1252"
    UTF_16 = "utf-16"


class Delimiter(StrEnum):
    """What stands between fields."""

    COMMA = "comma"
    SEMICOLON = "semicolon"
    TAB = "tab"
    PIPE = "pipe"

    @property
    def character(self) -> str:
        """The character."""
        return {"comma": ",", "semicolon": ";", "tab": "\t"}.get(self, "|")


class QuoteMark(StrEnum):
    """What encloses a field that holds a delimiter."""

    DOUBLE = "double"
    SINGLE = "single"
    NONE = "none"


class DecimalMark(StrEnum):
    """What stands before the decimals of a number."""

    POINT = "point"
    COMMA = "comma"


class TimeForm(StrEnum):
    """How an instant is written: as a date and a time, or in units since 1970, UTC."""

    WRITTEN = "written"
    EPOCH_S = "epoch_s"
    EPOCH_MS = "epoch_ms"
    EPOCH_US = "epoch_us"
    EPOCH_NS = "epoch_ns"

    @property
    def of_second(self) -> int:
        """Units of a second; 0 of a written time."""
        return 0 if self is TimeForm.WRITTEN else 1000 ** (list(TimeForm).index(self) - 1)


@dataclass(frozen=True, slots=True)
class FileSpec:
    """How delivered text files are written. Nothing of it is told by a record."""

    encoding: Annotated[
        Encoding, Key("characters; a byte order mark says UTF-16 itself", "windows-1252")
    ] = Encoding.UTF_8
    delimiter: Annotated[
        Delimiter | None, Key("between fields", "semicolon", default="as the header's line")
    ] = None
    quote: Annotated[QuoteMark, Key("around a field that holds a delimiter", "single")] = (
        QuoteMark.DOUBLE
    )
    header_row: Annotated[Positive, Key("line of the header; those above are no records", "4")] = 1
    decimal: Annotated[DecimalMark, Key("before the decimals of numbers", "comma")] = (
        DecimalMark.POINT
    )
    times: Annotated[TimeForm, Key("how instants are written", "epoch_ms")] = TimeForm.WRITTEN
    zone: Annotated[
        Zone | None, Key("of written instants without an offset", "UTC", default="time.zone")
    ] = None


class DateForm(StrEnum):
    """How a feed of taps writes a date."""

    ISO = "YYYY-MM-DD"
    DAY_FIRST = "DD/MM/YYYY"
    MONTH_FIRST = "MM/DD/YYYY"


class TapAction(StrEnum):
    """What a tap does."""

    ENTER = "enter"
    EXIT = "exit"
    NO_TAP = "no_tap"


class RecordStatus(StrEnum):
    """Whether what a record says took place."""

    COUNTS = "counts"
    VOID = "void"


@dataclass(frozen=True, slots=True)
class Extent:
    """A public box in degrees that holds all positions; west > east is across the antimeridian."""

    south: Annotated[Fraction, degrees(90), Key("degrees, -90 to 90", '"20.5"')]
    west: Annotated[Fraction, degrees(180), Key("degrees, -180 to 180", '"72.2"')]
    north: Annotated[Fraction, degrees(90), Key("degrees, -90 to 90", '"21.9"')]
    east: Annotated[Fraction, degrees(180), Key("degrees, -180 to 180", '"73.5"')]


def _landing(value: object) -> str:
    """Return a glob that stays below the landing zone and names the week."""
    landing = read_text(value)
    if landing.startswith("/") or ".." in landing:
        raise ValueError("must stay below the landing zone; write it without / or ..")
    if "{week}" not in landing:
        raise ValueError("names no week; write {week} where the week's name stands")
    return landing


_MISSING = "a day without a row stops the week; or one without a file is a gap (FEEDS.md)"
_UNSTATED = "without it ids stay as they come, less outer spaces (FEEDS.md)"


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """Where the raw rows come from; pairs are (the source's own name, what it stands for)."""

    feed: Annotated[Feed, Key("layout of the files (FEEDS.md)", "opal_trips")]
    landing: Annotated[
        str, Read(_landing), Key("a week's files; {week} stands for its name", '"opal/{week}/*"')
    ]
    modes: Annotated[Texts, Key("public list of modes", "[bus, ferry, train]")]
    missing_day: Annotated[MissingDay, Key(_MISSING, "refuse")] = MissingDay.REFUSE
    file: Annotated[FileSpec | None, Key("how text files are written (FEEDS.md)")] = None
    columns: Annotated[
        tuple[tuple[str, str], ...],
        Named(Annotated[Text, Key("the source's name of a field", "card_number")]),
        Key("our field: the source's column"),
    ] = ()
    mode_names: Annotated[
        tuple[tuple[str, str], ...],
        Named(Annotated[Text, Key("the mode that a name stands for", "bus")]),
        Key("the source's name: our mode"),
    ] = ()
    speed_unit: Annotated[
        SpeedUnit, Key("unit of the source's speeds", "km/h", default="as the feed says")
    ] = SpeedUnit.KMH
    delay_unit: Annotated[
        DelayUnit | None, Key("unit of the source's delays", "min", default="s, as standards say")
    ] = None
    speed_at_most_kmh: Annotated[Positive, Key("faster rows are quarantined, km/h", "130")] = 130
    rows_per_day_at_least: Annotated[
        Whole, Key("a day with fewer rows is not complete; a public number, rows", "1000")
    ] = 1
    action_names: Annotated[
        tuple[tuple[str, TapAction], ...],
        Named(Annotated[TapAction, Key("what the word means", "enter")]),
        Key("the source's word: what a tap does; a word that nobody explains stops the week"),
    ] = ()
    status_names: Annotated[
        tuple[tuple[str, RecordStatus], ...],
        Named(Annotated[RecordStatus, Key("counts, or void: it did not take place", "void")]),
        Key("the source's word: whether a tap counts; a word that nobody explains stops the week"),
    ] = ()
    set_aside_at_most: Annotated[
        tuple[tuple[str, Fraction], ...],
        Named(Annotated[Amount, Key("share of the records of a week", '"1/20"')]),
        Key("a rule of FEEDS.md: the largest share that it may set aside before the week stops"),
    ] = ()
    without_action: Annotated[
        TapAction | None, Key("what a tap does that says nothing of it", "enter", default="enter")
    ] = None
    without_count: Annotated[
        Positive | None, Key("passengers of an event in a file without their number", "1")
    ] = None
    without_mode: Annotated[
        Text | None, Key("mode of a record that names none", "bus", default="the only one of modes")
    ] = None
    quiet_hours: Annotated[
        Stretch | None, Key("when it is quietest, if not at night; public", '"10:00-14:00"')
    ] = None
    date_form: Annotated[DateForm, Key("how dates are written", "DD/MM/YYYY")] = DateForm.ISO
    grid_decimals: Annotated[
        int, whole(0, _GRID_FINEST), Key("taps at coordinates: decimals of the grid", "2")
    ] = 1
    extent: Annotated[
        Extent | None, Key("box in degrees that holds the city: finds swapped coordinates")
    ] = None
    without_card: Annotated[
        WithoutCard, Key("what happens to a row of a trip that names no card", "drop")
    ] = WithoutCard.DROP
    files_at_least: Annotated[Positive, Key("files that a complete week has at least", "7")] = 1
    marker: Annotated[
        Text, Key("file written when a week is complete; empty: none", '"opal/{week}.done"')
    ] = ""
    absent_days: Annotated[
        Days, Key("days without service: not read, drawn or charged; gaps", "[2016-12-25]")
    ] = ()
    timetable: Annotated[
        Text | None, Key("vehicles: public GTFS feed; tells delays and stops", "domains/gtfs.zip")
    ] = None
    stop_within_m: Annotated[
        Positive | None,
        Key("how near to a stop is a call at it, m", "60", default=str(STOP_WITHIN_M)),
    ] = None
    card_form: Annotated[
        IdForm | None, Key(f"trips: the one spelling of card ids; {_UNSTATED}")
    ] = None
    vehicle_form: Annotated[
        IdForm | None, Key(f"vehicles: the one spelling of their ids; {_UNSTATED}")
    ] = None

    @property
    def written(self) -> FileSpec:
        """How text files are written."""
        return self.file or FileSpec()

    @property
    def usual_mode(self) -> str | None:
        """Mode of a record that names none, if there is one."""
        return self.without_mode or (self.modes[0] if len(self.modes) == 1 else None)

    @property
    def id_field(self) -> str:
        """Field of a record that says which unit it is of."""
        return "vehicle_id" if self.feed.shape is RowShape.TELEMETRY else "card_id"

    @property
    def id_form(self) -> IdForm | None:
        """The one form of such ids, if the programme states it."""
        return self.vehicle_form if self.feed.shape is RowShape.TELEMETRY else self.card_form

    @property
    def identity_sentence(self) -> str:
        """What people must know of the spelling of ids; empty where no form is stated."""
        of = "vehicle" if self.feed.shape is RowShape.TELEMETRY else "card"
        return "" if self.id_form is None else self.id_form.sentence(of)

    @property
    def without_card_sentence(self) -> str:
        """What people must know of rows that name no card."""
        if self.feed.names_nobody:
            return (
                "Records name nobody: one ride is protected, one boarding and one alighting, not "
                "the other rides of whoever made it."
            )
        return self.without_card.sentence
