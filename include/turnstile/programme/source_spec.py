"""Where the raw rows of a programme come from, and how they are read: frozen records."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from fractions import Fraction

from turnstile.programme.id_form import IdForm


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
    ITMS = "itms"
    TIDES_VEHICLE_LOCATIONS = "tides_vehicle_locations"
    GTFS_VEHICLE_POSITIONS = "gtfs_vehicle_positions"

    @property
    def shape(self) -> RowShape:
        """Shape of the canonical rows that this feed becomes."""
        vehicles = (Feed.ITMS, Feed.TIDES_VEHICLE_LOCATIONS, Feed.GTFS_VEHICLE_POSITIONS)
        return RowShape.TELEMETRY if self in vehicles else RowShape.TRIPS

    @property
    def joins_taps(self) -> bool:
        """True if a trip is joined from two records, a tap-on and a tap-off."""
        return self in (Feed.TIDES_FARE_TRANSACTIONS, Feed.TAPS)

    @property
    def names_nobody(self) -> bool:
        """True if a row is a boarding or an alighting alone, and no card says whose."""
        return self is Feed.TIDES_PASSENGER_EVENTS

    @property
    def states_delays(self) -> bool:
        """True if a record may say how late its vehicle is."""
        return self in (Feed.ITMS, Feed.TIDES_VEHICLE_LOCATIONS)

    @property
    def states_occupancy(self) -> bool:
        """True if a record may say how full its vehicle is."""
        return self is Feed.GTFS_VEHICLE_POSITIONS

    @property
    def speed_unit(self) -> SpeedUnit:
        """Unit of speeds by the feed's own specification, unless a programme says otherwise."""
        metric = (Feed.TIDES_VEHICLE_LOCATIONS, Feed.GTFS_VEHICLE_POSITIONS)
        return SpeedUnit.MS if self in metric else SpeedUnit.KMH


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


class DateForm(StrEnum):
    """How a feed of taps writes a date."""

    ISO = "YYYY-MM-DD"
    DAY_FIRST = "DD/MM/YYYY"
    MONTH_FIRST = "MM/DD/YYYY"


class TapAction(StrEnum):
    """What a tap does."""

    ENTER = "enter"
    EXIT = "exit"


@dataclass(frozen=True, slots=True)
class Extent:
    """A public box in degrees that holds all positions; west > east is across the antimeridian."""

    south: Fraction
    west: Fraction
    north: Fraction
    east: Fraction


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """Where the raw rows come from.

    Args:
        feed: layout of the files.
        landing: glob below the landing zone; `{week}` stands for the ISO week.
        modes: legal modes of trips; one name, `bus`, for telemetry.
        missing_day: what a missing service day means.
        columns: pairs (canonical name, name in the source) where they differ from the feed's own.
        mode_names: pairs (value in the source, mode) where they differ.
        speed_unit: unit of the source's speed column.
        speed_at_most_kmh: a faster row is an outlier and goes to quarantine.
        rows_per_day_at_least: volume below which a day is incomplete (0: no floor).
        action_names: pairs (value in the source, what the tap does) where they differ from the
            feed's own; for taps.
        date_form: how dates are written; for taps with a date and a time.
        grid_decimals: decimals of a degree of the grid cells that stand for places; for taps
            without a place of their own.
        extent: box that a position lies in, so that swapped coordinates are found.
        without_card: what happens to rows without a card id; for trips.
        files_at_least: how many files an ISO week has at least.
        absent_days: service days that are known beforehand to have no service; a public fact.
        timetable: GTFS feed (zip) under `include/` that delays and stops are worked out by, from
            positions; None: records state their delay, and no stop. For vehicles.
        stop_within_m: how near to a stop a position must be to be a call at it, meters; beside a
            timetable.
        marker: path below the landing zone of a file that the authority writes when the week is
            complete; `{week}` as in `landing`; empty for none.
        card_form: spelling that ids of cards are brought to; None: they stay as they come.
        vehicle_form: the same of vehicles.
    """

    feed: Feed
    landing: str
    modes: tuple[str, ...]
    missing_day: MissingDay = MissingDay.REFUSE
    columns: tuple[tuple[str, str], ...] = ()
    mode_names: tuple[tuple[str, str], ...] = ()
    speed_unit: SpeedUnit = SpeedUnit.KMH
    speed_at_most_kmh: int = 130
    rows_per_day_at_least: int = 1
    action_names: tuple[tuple[str, TapAction], ...] = ()
    date_form: DateForm = DateForm.ISO
    grid_decimals: int = 1
    extent: Extent | None = None
    without_card: WithoutCard = WithoutCard.DROP
    files_at_least: int = 1
    marker: str = ""
    absent_days: tuple[date, ...] = ()
    timetable: str | None = None
    stop_within_m: int | None = None
    card_form: IdForm | None = None
    vehicle_form: IdForm | None = None

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
