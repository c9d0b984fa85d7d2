"""A release programme as frozen records: what is read, counted, bounded, noised and promised.

The records hold values only; `programme.loading` reads and checks them from YAML, and nothing else
makes one. Privacy parameters come from here and from nowhere else: never from a run's form.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import time
from enum import StrEnum
from fractions import Fraction
from zoneinfo import ZoneInfo

from turnstile.privacy.events import NoiseFamily
from turnstile.privacy.units import NeighboringRelation, ProtectionUnit
from turnstile.service_calendar import DAYS_PER_WEEK


class RowShape(StrEnum):
    """The two shapes of canonical rows that are counted."""

    TRIPS = "trips"
    TELEMETRY = "telemetry"


class Feed(StrEnum):
    """Layouts of source files that are understood."""

    OPAL_TRIPS = "opal_trips"
    TIDES_FARE_TRANSACTIONS = "tides_fare_transactions"
    TAPS = "taps"
    ITMS = "itms"
    TIDES_VEHICLE_LOCATIONS = "tides_vehicle_locations"
    GTFS_VEHICLE_POSITIONS = "gtfs_vehicle_positions"

    @property
    def shape(self) -> RowShape:
        """Shape of the canonical rows that this feed becomes."""
        trips = (Feed.OPAL_TRIPS, Feed.TIDES_FARE_TRANSACTIONS, Feed.TAPS)
        return RowShape.TRIPS if self in trips else RowShape.TELEMETRY

    @property
    def speed_unit(self) -> SpeedUnit:
        """Unit of speeds by the feed's own specification, unless a programme says otherwise."""
        metric = (Feed.TIDES_VEHICLE_LOCATIONS, Feed.GTFS_VEHICLE_POSITIONS)
        return SpeedUnit.MS if self in metric else SpeedUnit.KMH


class MissingDay(StrEnum):
    """What a week with a missing service day means."""

    REFUSE = "refuse"
    PUBLISH_WITH_GAP = "publish_with_gap"


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
        extent: box that a position lies in, so that swapped coordinates can be told.
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


@dataclass(frozen=True, slots=True)
class TimeSpec:
    """The agency's clock. `slot_minutes` divides a day."""

    zone: ZoneInfo
    slot_minutes: int


class Outside(StrEnum):
    """What happens to a row whose place or time is outside the public domain."""

    UNKNOWN = "unknown"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class DomainSpec:
    """The public cells: files under `include/`, never the data.

    Args:
        locations: CSV of modes, locations and the areas they are published as; for trips.
        service_area: GeoJSON polygon, or CSV of H3 cells or of stops; for telemetry.
        h3_resolution: 0-15; for telemetry. The finest, where the area is a list of cells.
        ring_cells: cells around each stop that belong to the area, where the area is a stop list.
        first_minute: start of the first slot, minutes after midnight.
        last_minute: end of the last slot, minutes after midnight, exclusive.
        outside: where a row goes that lies in no cell.
        h3_coarsest: coarsest resolution of a list that mixes several; None if it has one.
    """

    locations: str | None
    service_area: str | None
    h3_resolution: int | None
    ring_cells: int
    first_minute: int
    last_minute: int
    outside: Outside
    h3_coarsest: int | None = None


@dataclass(frozen=True, slots=True)
class UnitBound:
    """How much one unit contributes at most.

    Args:
        unit: what is bounded.
        contributions_max: trips (or H3-cell-and-slot pairs) of one unit that are counted.
        once_per_cell: True if no two trips of a unit that are counted share a cell of any table.
        once_per_finest_cell: True if they share no cell of a table that no other table refines;
            they may share cells of coarser ones.
    """

    unit: ProtectionUnit
    contributions_max: int
    once_per_cell: bool = False
    once_per_finest_cell: bool = False


class Measure(StrEnum):
    """What a table says of each of its cells."""

    COUNT = "count"
    MEAN_SPEED = "mean_speed"
    BUSES = "buses"
    BUSES_OVER = "buses_over"


@dataclass(frozen=True, slots=True)
class TableSpec:
    """One published table.

    Args:
        name: as published.
        by: dimensions, in order.
        measure: what is told of a cell.
        clamp_kmh: public upper bound V of a speed; for MEAN_SPEED.
        limits_kmh: speed limits, each a statistic of its own; for BUSES_OVER.
    """

    name: str
    by: tuple[str, ...]
    measure: Measure = Measure.COUNT
    clamp_kmh: int | None = None
    limits_kmh: tuple[int, ...] = ()

    @property
    def statistics(self) -> tuple[str, ...]:
        """Names of the integer vectors that are drawn for this table."""
        if self.measure is Measure.COUNT:
            return ("count",)
        if self.measure is Measure.MEAN_SPEED:
            return ("sum", "buses")
        if self.measure is Measure.BUSES:
            return ("buses",)
        return tuple(f"over_{limit}" for limit in self.limits_kmh)


class MechanismKind(StrEnum):
    """Mechanisms that may publish."""

    DENSE_LAPLACE = "dense_laplace"
    DENSE_GAUSSIAN = "dense_gaussian"
    STABILITY_HISTOGRAM = "stability_histogram"

    @property
    def noise(self) -> NoiseFamily:
        """Sampler that draws for it."""
        if self is MechanismKind.DENSE_GAUSSIAN:
            return NoiseFamily.DISCRETE_GAUSSIAN
        return NoiseFamily.DISCRETE_LAPLACE


class Calibration(StrEnum):
    """How a thresholded histogram gets its scale and threshold."""

    TIGHT = "tight"  # the smallest that meet the amount and the delta of a table
    SOURCE = "source"  # those of the Opal release of 2017 (PRIVACY 5.4)


@dataclass(frozen=True, slots=True)
class MechanismSpec:
    """How the noise is scaled.

    Args:
        kind: mechanism.
        unit: unit whose add/remove loss `amount` is.
        amount: epsilon (Laplace) or rho (Gaussian) of the whole release for that unit, on the
            blocks that one instance can touch.
        split: share of the amount for each table or `table/statistic`; the shares sum to 1.
        delta: a table's delta; for STABILITY_HISTOGRAM. Of the source's calibration: its own.
        calibration: for STABILITY_HISTOGRAM.
    """

    kind: MechanismKind
    unit: ProtectionUnit
    amount: Fraction
    split: tuple[tuple[str, Fraction], ...]
    delta: Fraction = Fraction(0)
    calibration: Calibration = Calibration.TIGHT


@dataclass(frozen=True, slots=True)
class CapSpec:
    """What one unit may lose: epsilon, or rho and delta; over a window of weeks if it says so.

    `line` is where the programme file states it, for messages.
    """

    unit: ProtectionUnit
    relation: NeighboringRelation
    epsilon: Fraction | None
    rho: Fraction | None
    delta: Fraction | None
    window_weeks: int | None
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ScheduleSpec:
    """When a period is final, in days after its end, and the time of day of the run.

    Args:
        final_after_days: days after the period's end.
        weekly_at: on the agency's clock.
        period_days: service days of one release; 7 is an ISO week.
    """

    final_after_days: int
    weekly_at: time
    period_days: int = DAYS_PER_WEEK


@dataclass(frozen=True, slots=True)
class ApprovalSpec:
    """Whether people must say yes, how many, and in which role."""

    required: bool
    persons: int = 1
    role: str = "release_officer"


@dataclass(frozen=True, slots=True)
class PublishSpec:
    """Licence and people behind the package.

    Args:
        licence: SPDX name.
        curator: who publishes.
        contact: whom to ask.
        synthetic_rows: True if the package also holds each count table as that many equal rows.
    """

    licence: str
    curator: str
    contact: str
    synthetic_rows: bool = False


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
        family: programmes that touch the same people or vehicles share one book of accounts.
        digest: SHA-256 of the file's canonical content, without comments or layout.
        meant_for: queries that the release is meant to answer.
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

    def bound_of(self, unit: ProtectionUnit) -> UnitBound | None:
        """Return the bound that the programme sets on a unit, if it sets one."""
        return next((bound for bound in self.units if bound.unit is unit), None)

    @property
    def kept_apart(self) -> tuple[tuple[str, ...], ...]:
        """Dimensions in which two counted trips of a card-day may not agree, table by table.

        Once in each cell: those of every table whose dimensions include no other table's, because
        who differs in the slot differs in slot and place too. Once in each finest cell: those of
        every table that no other refines. Without such a bound none.
        """
        used = sorted({tuple(sorted(table.by)) for table in self.tables})
        bound = self.bound_of(ProtectionUnit.CARD_DAY)
        if bound is not None and bound.once_per_cell:
            return tuple(by for by in used if not any(set(other) < set(by) for other in used))
        if bound is not None and bound.once_per_finest_cell:
            return tuple(by for by in used if not any(set(by) < set(other) for other in used))
        return ()

    def is_kept_apart(self, table: TableSpec) -> bool:
        """Tell whether no two counted trips of a card-day share a cell of a table."""
        return any(set(by) <= set(table.by) for by in self.kept_apart)
