"""A release programme as frozen records: what is read, counted, bounded, noised and promised.

The records hold values only; `programme.loading` reads and checks them from YAML, and nothing else
makes one. Privacy parameters come from here and from nowhere else: never from a run's form.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, time
from enum import StrEnum
from zoneinfo import ZoneInfo

from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.mechanism_spec import CapSpec, MechanismSpec
from turnstile.programme.source_spec import SourceSpec
from turnstile.service_calendar import DAYS_PER_WEEK, MINUTES_PER_DAY, ServicePeriod, ServiceWeek


@dataclass(frozen=True, slots=True)
class TimeSpec:
    """The agency's clock.

    Args:
        zone: its time zone.
        slot_minutes: length of a slot; divides a day.
        day_starts: minutes after midnight at which a service day begins, 0 to 720. What is before
            that on the clock is of the service day before, at 24:00 and later, as in GTFS.
    """

    zone: ZoneInfo
    slot_minutes: int
    day_starts: int = 0

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
        locations: CSV of modes, locations and the areas they are published as; for trips.
        service_area: GeoJSON polygon, or CSV of H3 cells or of stops; for telemetry.
        h3_resolution: 0-15; for telemetry. The finest, where the area is a list of cells.
        ring_cells: cells around each stop that belong to the area, where the area is a stop list.
        first_minute: start of the first slot, minutes after the service day's midnight.
        last_minute: end of the last slot, exclusive; beyond 1440 where a day starts later.
        outside: where a row goes that lies in no cell.
        h3_coarsest: coarsest resolution of a list that mixes several; None if it has one.
        service_hours: CSV of the hours of each mode, for trips; None if all modes have the same.
        timetable: GTFS feed (zip) that the assessment lists cells of one vehicle by; None if none.
        lists: pairs (dimension, CSV of value and label) of the categories that rows carry.
        regions: CSV of area, region and zone; for tables of regions and zones. None if none.
        periods: stretches of the service day by name; what is in none of them is OTHER.
    """

    locations: str | None
    service_area: str | None
    h3_resolution: int | None
    ring_cells: int
    first_minute: int
    last_minute: int
    outside: Outside
    h3_coarsest: int | None = None
    service_hours: str | None = None
    timetable: str | None = None
    lists: tuple[tuple[str, str], ...] = ()
    regions: str | None = None
    periods: tuple[Period, ...] = ()


@dataclass(frozen=True, slots=True)
class UnitBound:
    """How much one unit contributes at most.

    Args:
        unit: what is bounded.
        contributions_max: trips (or H3-cell-and-slot pairs) of one unit that are counted.
        once_per_cell: True if no two trips of a unit that are counted share a cell of any table.
        once_per_finest_cell: True if they share no cell of a table that no other table refines;
            they may share cells of coarser ones.
        coarse_cell_max: trips of a unit, mode and service day that may share a cell of a coarser
            table, beside `once_per_finest_cell`; None: all of them.
    """

    unit: ProtectionUnit
    contributions_max: int
    once_per_cell: bool = False
    once_per_finest_cell: bool = False
    coarse_cell_max: int | None = None


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


class Measure(StrEnum):
    """What a table says of each of its cells."""

    COUNT = "count"
    MEAN_SPEED = "mean_speed"
    BUSES = "buses"
    BUSES_OVER = "buses_over"
    HEADWAY = "headway"
    MEAN_DELAY = "mean_delay"
    OCCUPANCY = "occupancy"


@dataclass(frozen=True, slots=True)
class TableSpec:
    """One published table.

    Args:
        name: as published.
        by: dimensions, in order.
        measure: what is measured in a cell.
        clamp_kmh: public upper bound V of a speed; for MEAN_SPEED.
        limits_kmh: speed limits, each a statistic of its own; for BUSES_OVER.
        classes: numbers of classes of occupancy, each a statistic of its own; for OCCUPANCY.
        clamp_minutes: public bound D of a delay, which is clamped to -D to D; for MEAN_DELAY.
        trips_max: trips of the bounded unit that this table counts, a bound of its own; None: the
            one under `units`, with which tables count the same trips.
        per_cell_max: those of one mode and service day in one cell; beside `trips_max`.
        year_from: first week of a year of 52 weeks, to which later years are joined; each draw
            carries the exact counts of its year so far along (year_to_date.proof.md). None: not.
    """

    name: str
    by: tuple[str, ...]
    measure: Measure = Measure.COUNT
    clamp_kmh: int | None = None
    limits_kmh: tuple[int, ...] = ()
    trips_max: int | None = None
    per_cell_max: int | None = None
    year_from: ServiceWeek | None = None
    clamp_minutes: int | None = None
    classes: tuple[int, ...] = ()

    @property
    def limits(self) -> tuple[int, ...]:
        """What buses are counted above, or at: speeds, or classes of occupancy."""
        return self.limits_kmh or self.classes

    @property
    def mean_range(self) -> int | None:
        """Width of the public range of what a mean is taken of: V km/h, or 2D minutes."""
        return self.clamp_kmh if self.clamp_minutes is None else 2 * self.clamp_minutes

    @property
    def is_flow(self) -> bool:
        """Whether it links origins to destinations."""
        return any(axis.startswith("destination_") for axis in self.by) and any(
            axis.startswith("origin_") for axis in self.by
        )

    @property
    def statistics(self) -> tuple[str, ...]:
        """Names of the integer vectors that are drawn for this table."""
        if self.measure is Measure.COUNT:
            return ("count",)
        if self.measure in {Measure.MEAN_SPEED, Measure.MEAN_DELAY}:
            return ("sum", "buses")
        if self.measure in {Measure.BUSES, Measure.HEADWAY}:
            return ("buses",)
        if self.measure is Measure.OCCUPANCY:
            return tuple(f"class_{number}" for number in self.classes)
        return tuple(f"over_{limit}" for limit in self.limits_kmh)


@dataclass(frozen=True, slots=True)
class ScheduleSpec:
    """When a period is final, in days after its end, and the time of day of the run.

    Args:
        final_after_days: days after the period's end.
        weekly_at: on the agency's clock.
        period_days: service days of one release; 7 is an ISO week.
        first_day: service day on which some period begins, from which all are counted; None for
            weeks, which begin on Monday.
    """

    final_after_days: int
    weekly_at: time
    period_days: int = DAYS_PER_WEEK
    first_day: date | None = None


@dataclass(frozen=True, slots=True)
class RetentionSpec:
    """How long private data stay, in days after the end of their period.

    Args:
        backfill_days: as long as a period may still be released or corrected; nothing goes earlier.
        raw_days: raw files and the rows made from them.
        exact_days: exact tables and figures; those that a year's draws need stay longer.
    """

    backfill_days: int
    raw_days: int
    exact_days: int


@dataclass(frozen=True, slots=True)
class ApprovalSpec:
    """Whether people must say yes, how many, and in which role.

    Args:
        required: whether nothing is published without them.
        persons: how many.
        role: as `include/people.yaml` names it.
        not_the_starter: whether the yes of somebody who set the release going counts for nothing;
            a programme that does not say so means it where two persons or more are needed.
    """

    required: bool
    persons: int = 1
    role: str = "release_officer"
    not_the_starter: bool = False


@dataclass(frozen=True, slots=True)
class PublishSpec:
    """Licence and people behind the package.

    Args:
        licence: SPDX name.
        curator: who publishes.
        contact: whom to ask.
        synthetic_rows: True if the package also holds each count table as that many equal rows.
        to: addresses of portals that every release is sent to.
        holidays: CSV of public holidays (service_date, holiday), below the folder of domains.
        tides_shapes: True if the package also holds its taps in the shape of TIDES 1.0.
    """

    licence: str
    curator: str
    contact: str
    synthetic_rows: bool = False
    to: tuple[str, ...] = ()
    holidays: str | None = None
    tides_shapes: bool = False


class Query(StrEnum):
    """What people may be meant to ask a release of trips, each with an error in the report."""

    TOP_STATIONS_BY_HOUR = "top_stations_by_hour"
    DAILY_TOTALS_BY_PLACE = "daily_totals_by_place"
    PEAK_SHARE = "peak_share"
    WEEK_ON_WEEK_CHANGE = "week_on_week_change"


@dataclass(frozen=True, slots=True)
class Programme:
    """A reviewed promise: everything that a release of one week is made from, except the rows.

    Args:
        name: file name without suffix, and folder in the public zone.
        title: for people.
        description: one paragraph for the release card.
        family: programmes that touch the same people or vehicles share one set of accounts.
        digest: SHA-256 of the file's canonical content, without comments or layout.
        meant_for: queries that the release is meant to answer.
        retention: how long private data stay; without it, for ever.
        redraws: draws that may die before their seal in any window of a cap, for which there is
            room beside all promised releases and one correction; 0: there need not be any room.
    """

    name: str
    title: str
    description: str
    family: str
    source: SourceSpec
    time: TimeSpec
    domain: DomainSpec
    units: tuple[UnitBound, ...]
    tables: tuple[TableSpec, ...]
    mechanism: MechanismSpec
    caps: tuple[CapSpec, ...]
    schedule: ScheduleSpec
    approval: ApprovalSpec
    publish: PublishSpec
    digest: str
    meant_for: tuple[Query, ...] = ()
    retention: RetentionSpec | None = None
    redraws: int = 1

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
        asked = {Measure.MEAN_DELAY: "delay_s", Measure.OCCUPANCY: "occupancy"}
        measured = {table.measure for table in self.tables}
        return (*self.listed, *(name for measure, name in asked.items() if measure in measured))

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
