"""A release programme as frozen records: what is read, counted, bounded, noised and promised.

Each field says with `Key` what it means in a file; that is the only place where a key stands. The
records hold values only: `programme.schema` makes them from YAML, and nothing else does. Privacy
parameters come from here and from nowhere else: never from a run's form.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, time
from enum import StrEnum
from typing import Annotated

from turnstile.measures.kind import Options
from turnstile.measures.registry import OF_SPEEDS, Measure
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.key import (
    Clock,
    Day,
    DayStarts,
    Dimensions,
    Flag,
    Key,
    Limits,
    Named,
    Positive,
    Read,
    Stretch,
    Text,
    Texts,
    Whole,
    Zone,
    parsed,
    read_texts,
    whole,
)
from turnstile.programme.mechanism_spec import CapSpec, MechanismSpec
from turnstile.programme.source_spec import SourceSpec
from turnstile.service_calendar import DAYS_PER_WEEK, MINUTES_PER_DAY, ServicePeriod, ServiceWeek

_H3_FINEST = 15


def _slot_minutes(value: object) -> int:
    """Return a length of slots that divides a day."""
    minutes: int = whole(1).read(value)
    if MINUTES_PER_DAY % minutes:
        raise ValueError(f"{minutes} does not divide a day; write 15, 30 or 60")
    return minutes


@dataclass(frozen=True, slots=True)
class TimeSpec:
    """The agency's clock.

    What is before `day_starts` on the clock is of the service day before, at 24:00 and later, as in
    GTFS.
    """

    zone: Annotated[Zone, Key("IANA time zone", "Australia/Sydney")]
    slot_minutes: Annotated[
        int,
        Read(_slot_minutes, "integer, 1 or more", {"type": "integer", "minimum": 1}),
        Key("length of a slot; divides a day", "15"),
    ]
    day_starts: Annotated[
        DayStarts, Key("hour at which a service day begins", '"04:00"', default="00:00")
    ] = 0

    @property
    def day_ends(self) -> int:
        """Minutes after the service day's midnight at which it ends, exclusive: 1440 to 2160."""
        return self.day_starts + MINUTES_PER_DAY


class Outside(StrEnum):
    """What happens to a row whose place or time is outside the public domain."""

    UNKNOWN = "unknown"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class Period:
    """A named stretch of the service day, full slots, in minutes after its midnight."""

    name: str
    first_minute: int
    last_minute: int


@dataclass(frozen=True, slots=True)
class DomainSpec:
    """The public cells: files under `include/`, never the data.

    Args:
        h3_resolution: the finest, where the area is a list of cells.
        first_minute: start of the first slot, minutes after the service day's midnight.
        last_minute: end of the last slot, exclusive; beyond 1440 where a day starts later.
        service_hours: CSV of the hours of each mode, for trips; None if all modes have the same.
        lists: pairs (dimension, CSV of value and label) of the categories that rows carry.
    """

    locations: Annotated[
        Text | None, Key("trips: file of places", "domains/stops.csv", default="required")
    ]
    service_area: Annotated[
        Text | None,
        Key(
            "GeoJSON polygon, or CSV of H3 cells or stops",
            "domains/area.geojson",
            default="required",
        ),
    ]
    h3_resolution: Annotated[
        Annotated[int, whole(0, _H3_FINEST)] | None, Key("telemetry", "7", default="required")
    ]
    ring_cells: Annotated[
        Whole, Key("telemetry, an area of stops: cells added around each, as rings", "1")
    ]
    first_minute: int
    last_minute: int
    outside: Annotated[
        Outside,
        Key(
            "rows outside the public cells are counted as UNKNOWN or not at all",
            "drop",
            default="unknown for trips, drop for telemetry",
        ),
    ]
    h3_coarsest: Annotated[
        Whole | None, Key("telemetry, a list of H3 cells: coarser ones too", "5")
    ] = None
    service_hours: str | None = None
    timetable: Annotated[
        Text | None,
        Key("public GTFS feed; shows which cells are one vehicle or one stop", "domains/gtfs.zip"),
    ] = None
    lists: Annotated[
        tuple[tuple[str, str], ...],
        Named(Annotated[Text, Key("CSV of value and label (FEEDS.md)", "domains/routes.csv")]),
        Key("our category: its public list"),
    ] = ()
    regions: Annotated[
        Text | None, Key("trips: CSV of area, region, zone; sums and flows", "domains/regions.csv")
    ] = None
    periods: Annotated[
        tuple[Period, ...],
        Named(
            Annotated[
                Stretch, Key("a stretch of full slots; what is in none is OTHER", '"07:00-09:00"')
            ]
        ),
        Key("trips: periods of the day, by name"),
    ] = ()


@dataclass(frozen=True, slots=True)
class UnitBound:
    """How much one unit contributes at most; its unit and the number of its records are a key."""

    unit: ProtectionUnit
    contributions_max: int
    once_per_cell: Annotated[
        Flag, Key("no two counted records of a unit share a cell of any table", "true")
    ] = False
    once_per_finest_cell: Annotated[
        Flag, Key("no two counted records of a unit share a slot and place", "true")
    ] = False
    coarse_cell_max: Annotated[
        Positive | None, Key("records of a unit in a coarser cell", "2", name="coarse_cell_at_most")
    ] = None


class OccupancyClass(StrEnum):
    """How full a vehicle says it is, from empty to full: the words of GTFS-realtime, in order."""

    EMPTY = "EMPTY"
    MANY_SEATS_AVAILABLE = "MANY_SEATS_AVAILABLE"
    FEW_SEATS_AVAILABLE = "FEW_SEATS_AVAILABLE"
    STANDING_ROOM_ONLY = "STANDING_ROOM_ONLY"
    CRUSHED_STANDING_ROOM_ONLY = "CRUSHED_STANDING_ROOM_ONLY"
    FULL = "FULL"
    NOT_ACCEPTING_PASSENGERS = "NOT_ACCEPTING_PASSENGERS"

    @property
    def number(self) -> int:
        """Its number in GTFS-realtime, 0 to 6."""
        return list(OccupancyClass).index(self)


def _classes(value: object) -> tuple[int, ...]:
    """Return numbers of classes, in rising order; EMPTY is none, as all are that or fuller."""
    words = read_texts(value)
    known = list(OccupancyClass)[1:]
    if not set(words) <= set(known):
        raise ValueError(f"must be some of {', '.join(known)}")
    return tuple(sorted(OccupancyClass(word).number for word in words))


@dataclass(frozen=True, slots=True)
class TableSpec:
    """One published table.

    Args:
        name: as published.
        trips_max: without it, tables count the same trips, those of the bound under `units`.
        classes: numbers of classes of occupancy, each a statistic of its own.
        year_from: later years are joined to it; each draw carries the exact counts of its year so
            far along (year_to_date.proof.md).
    """

    name: str
    by: Annotated[
        Dimensions,
        Key(
            "its dimensions; [] for totals by mode and day, beside trips_at_most; of vehicles slot "
            "and some of cell, route, direction, in all tables the same",
            "[tap_on_slot]",
        ),
    ]
    measure: Annotated[
        Measure,
        Key("what is measured", "buses_over", default="count for trips, mean_speed for telemetry"),
    ] = Measure.COUNT
    clamp_kmh: Annotated[
        Positive | None,
        Key("mean_speed: speeds are clamped to 0 to this, km/h", "65", default="required"),
    ] = None
    limits_kmh: Annotated[
        Limits, Key("buses_over: integer speed limits, km/h", "[40, 60]", default="required")
    ] = ()
    trips_max: Annotated[
        Positive | None, Key("trips of a unit that this table counts", "40", name="trips_at_most")
    ] = None
    per_cell_max: Annotated[
        Positive | None, Key("those of one mode, day and cell", "8", name="per_cell_at_most")
    ] = None
    year_from: Annotated[
        Annotated[
            ServiceWeek, parsed(ServiceWeek.parse, "is no ISO week; write for example 2016-W27")
        ]
        | None,
        Key(
            "beside trips_at_most, dense_gaussian: each week's draw carries its year so far along, "
            "and sums of 13 weeks and of the year are published; a year is 52 weeks, this is the "
            "first one",
            "2016-W27",
            name="year_to_date_from",
        ),
    ] = None
    clamp_minutes: Annotated[
        Positive | None, Key("clamp of delays, early and late, minutes", "15", default="required")
    ] = None
    classes: Annotated[
        tuple[int, ...],
        Read(_classes, "texts", {"type": "array", "items": {"enum": list(OccupancyClass)[1:]}}),
        Key(
            "occupancy: classes of GTFS-realtime; buses that are so full or fuller are counted",
            "[STANDING_ROOM_ONLY]",
            name="at_least",
            default="required",
        ),
    ] = ()

    @property
    def options(self) -> Options:
        """What it states for its measure: a clamp, limits, or classes."""
        clamps = tuple(clamp for clamp in (self.clamp_kmh, self.clamp_minutes) if clamp is not None)
        return clamps or self.limits_kmh or self.classes

    @property
    def mean_range(self) -> int | None:
        """Width of the public range of what a mean is taken of: V km/h, or 2D minutes."""
        return self.measure.kind.mean_range(self.options)

    @property
    def is_total(self) -> bool:
        """Trips by mode and day, under a bound of their own, each week anew."""
        return not self.by and self.year_from is None

    @property
    def is_flow(self) -> bool:
        """Whether it links origins to destinations."""
        return any(axis.startswith("destination_") for axis in self.by) and any(
            axis.startswith("origin_") for axis in self.by
        )

    @property
    def statistics(self) -> tuple[str, ...]:
        """Names of the integer vectors that are drawn for this table."""
        return self.measure.kind.statistics(self.options)

    def label_of(self, statistic: str) -> str:
        """Name a vector in a programme's split: `table` for a count, else `table/statistic`."""
        return self.name if self.measure.kind.is_of_trips else f"{self.name}/{statistic}"


@dataclass(frozen=True, slots=True)
class ScheduleSpec:
    """When a period is final, in days after its end, and the time of day of the run."""

    final_after_days: Annotated[
        Whole, Key("days after the week until its files are final", "4")
    ] = 0
    weekly_at: Annotated[
        Clock, Key("time of day in the agency's zone", '"10:00"', default="10:00")
    ] = time(10)
    period_days: Annotated[Positive, Key("length of a period, days; 7 is an ISO week", "31")] = (
        DAYS_PER_WEEK
    )
    first_day: Annotated[
        Day | None,
        Key("periods of other days: the very first day", "2021-11-15", default="required"),
    ] = None


@dataclass(frozen=True, slots=True)
class RetentionSpec:
    """How long private data stay."""

    backfill_days: Annotated[
        Positive, Key("days after a period in which it may be released or corrected", "60")
    ]
    raw_days: Annotated[
        Positive, Key("days after a period until its raw files and rows are deleted", "90")
    ]
    exact_days: Annotated[
        Positive,
        Key("days until exact tables go, with year_to_date_from not before it ends", "120"),
    ]


@dataclass(frozen=True, slots=True)
class ApprovalSpec:
    """Whether people must say yes, how many, and in which role."""

    required: Annotated[Flag, Key("whether people are asked at all", "true")] = False
    persons: Annotated[Positive, Key("how many people must approve", "2")] = 1
    role: Annotated[Text, Key("their role in people.yaml", "release_officer")] = "release_officer"
    not_the_starter: Annotated[
        Flag,
        Key(
            "whoever started the run may not approve it", "true", default="true from two persons on"
        ),
    ] = False


@dataclass(frozen=True, slots=True)
class PublishSpec:
    """Licence and people behind the package, and what it holds beside its tables."""

    licence: Annotated[Text, Key("licence of the data, SPDX", "CC-BY-4.0")]
    curator: Annotated[Text, Key("who publishes", "Example Transport Authority")]
    contact: Annotated[Text, Key("where questions go", "open-data@transport.example")]
    synthetic_rows: Annotated[
        Flag, Key("stability_histogram: also one row per counted trip", "true")
    ] = False
    to: Annotated[
        Texts,
        Key("portals that every release is sent to (PORTALS.md)", '["s3://bucket/transport"]'),
    ] = ()
    holidays: Annotated[
        Text | None,
        Key("public holidays: CSV with service_date, holiday", "domains/holidays_nsw.csv"),
    ] = None
    tides_shapes: Annotated[
        Flag, Key("also as TIDES 1.0 station_activities and stop_visits (PACKAGES.md)", "true")
    ] = False


class Query(StrEnum):
    """What people may be meant to ask a release of trips, each with an error in the report."""

    TOP_STATIONS_BY_HOUR = "top_stations_by_hour"
    DAILY_TOTALS_BY_PLACE = "daily_totals_by_place"
    PEAK_SHARE = "peak_share"
    WEEK_ON_WEEK_CHANGE = "week_on_week_change"


def _queries(value: object) -> tuple[Query, ...]:
    """Return queries that the report can answer."""
    names = read_texts(value)
    if unknown := set(names) - set(Query):
        raise ValueError(f"{min(unknown)!r} is unknown; use some of {', '.join(Query)}")
    return tuple(map(Query, names))


@dataclass(frozen=True, slots=True)
class Programme:
    """A reviewed promise: everything that a release of one week is made from, except the rows.

    Args:
        name: also its folder in the public zone.
        description: one paragraph for the release card.
        digest: SHA-256 of the file's canonical content, without comments or layout.
    """

    name: Annotated[Text, Key("the file's own name, without .yaml", "opal")]
    title: Annotated[Text, Key("title of the published package", "Opal taps by place and time")]
    description: Annotated[Text, Key("what is published, in words", "Numbers of tap-ons ...")]
    family: Annotated[
        Text, Key("budget group: shared by programmes of the same people or vehicles", "opal_cards")
    ]
    source: Annotated[SourceSpec, Key("where the rows come from")]
    time: Annotated[TimeSpec, Key("the agency's clock")]
    domain: Annotated[DomainSpec, Key("the public cells")]
    units: Annotated[tuple[UnitBound, ...], Key("contribution bounds, by unit")]
    tables: Annotated[tuple[TableSpec, ...], Key("published tables, by name")]
    mechanism: Annotated[MechanismSpec, Key("the noise")]
    caps: Annotated[tuple[CapSpec, ...], Key("limits on what a unit may lose")]
    schedule: Annotated[ScheduleSpec, Key("when a week is released")]
    approval: Annotated[ApprovalSpec, Key("who must say yes before publication")]
    publish: Annotated[PublishSpec, Key("what the package says of itself")]
    digest: str
    meant_for: Annotated[
        tuple[Query, ...],
        Read(_queries, "texts", {"type": "array", "items": {"enum": list(Query)}, "minItems": 1}),
        Key("queries that the release is meant for"),
    ] = ()
    retention: Annotated[
        RetentionSpec | None, Key("how long private data stay; without it, for ever")
    ] = None
    redraws: Annotated[
        Whole,
        Key(
            "draws that may die in any window of a cap: room for them, and for one correction, is "
            "left beside all releases; 0: none, a draw that dies costs its period, on purpose",
            "0",
        ),
    ] = 1
    typical_volume: Annotated[
        Positive | None,
        Key("public: tap-ons a week of the mode with most places, or vehicles a day", "2000000"),
    ] = None
    accept_no_gain: Annotated[
        Text, Key("why to release what naive tables tell as well", "a baseline for 2027")
    ] = ""

    def __hash__(self) -> int:
        """Hash the digest: programmes are looked up for every table of every day."""
        return hash(self.digest)

    @property
    def listed(self) -> tuple[str, ...]:
        """Categories that rows carry, because a public list of the programme names their values."""
        return tuple(name for name, _ in self.domain.lists)

    @property
    def carried(self) -> tuple[str, ...]:
        """Columns of rows that this programme asks for: categories, delays, occupancy."""
        measured = {table.measure for table in self.tables}
        asked = (measure.kind.row_column for measure in Measure if measure in measured)
        return (*self.listed, *(name for name in asked if name))

    @property
    def charged(self) -> Programme:
        """The same for a sealed key, held to no cap: what it cost is charged already."""
        return replace(self, caps=())

    @property
    def speeds(self) -> tuple[TableSpec, ...]:
        """Tables of mean speeds."""
        return tuple(table for table in self.tables if table.measure is OF_SPEEDS[0])

    @property
    def shared_tables(self) -> tuple[TableSpec, ...]:
        """Tables that count the same records, so that they are marginals of one table."""
        return tuple(table for table in self.tables if table.trips_max is None)

    def days_of(self, period: ServicePeriod) -> tuple[date, ...]:
        """Return the service days of a period that are read, counted, drawn and charged.

        Those are all but the ones that the programme declares to be without service.
        """
        return tuple(day for day in period.days if day not in self.source.absent_days)

    def bound_of(self, unit: ProtectionUnit) -> UnitBound | None:
        """Return the bound that the programme sets on a unit, if it sets one."""
        return next((bound for bound in self.units if bound.unit is unit), None)
