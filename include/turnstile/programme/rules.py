"""What holds between the keys of a programme file: each rule yields where it is broken, and how.

A rule looks at sections as records. One that looks at a section that is not in order, or of which
an earlier rule complained, is not judged: what it would say could follow from the other fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatch
from fractions import Fraction
from itertools import pairwise
from typing import Any

from turnstile.measures.registry import OF_SPEEDS, Measure
from turnstile.privacy.accounts import posted_whole
from turnstile.privacy.mechanisms.registry import Calibration, MechanismKind
from turnstile.privacy.units import ProtectionUnit, Subject
from turnstile.programme.fields import (
    BY_NAME,
    FLOWS,
    OF_OFF,
    OF_ON,
    STOP,
    TAPS,
    VISITS,
    categories,
    dimensions,
)
from turnstile.programme.id_form import IdKind
from turnstile.programme.mechanism_spec import CapSpec, MechanismSpec
from turnstile.programme.schema import Fault, Sections, Unjudged, faults_of_keys, fields_of, key_at
from turnstile.programme.source_spec import DateForm, Feed, RowShape
from turnstile.programme.spec import Outside, TableSpec
from turnstile.programme.yaml_text import Loc
from turnstile.service_calendar import DAYS_PER_WEEK

ALARM_DAYS = 14
"""Data of a period without a release go this many days after somebody was told, at the earliest."""
Rule = Callable[[Sections], Iterator[Fault]]
_NAME_BYTES = 100
_OF_FEEDS = {
    "without_action": (Feed.TAPS,),
    "status_names": (Feed.TAPS, Feed.HIRED_TRIPS),
    "without_count": (Feed.TIDES_PASSENGER_EVENTS,),
}
"""Keys of the source that few feeds have."""
DATED_BY_STANDARD = (Feed.IST_DATEN,)
"""Feeds that read dates in the form of their standard alone."""
_TRIP_TABLES = (  # on and off are never linked
    *((axis,) for tap in TAPS for axis in tap),
    *((category.name,) for category in categories(RowShape.TRIPS)),
    *TAPS,
)


def broken_rules(file: Sections) -> Iterator[Fault]:
    """Yield every rule that a file breaks, as far as its sections are in order."""
    for rule in RULES:
        faults: list[Fault] = []
        try:
            for fault in rule(file):
                faults.append(fault)  # noqa: PERF402 - what was said before it was unjudged stands
        except Unjudged:
            pass
        yield from faults
        file.faulty.update(str(loc[0]) for loc, _ in faults)


def _needed(
    file: Sections,
    loc: Loc,
    needs: Iterable[tuple[str, bool]],
    goes: Iterable[tuple[str, bool]] = (),
) -> Iterator[Fault]:
    """Yield keys of a section that are missing, and those that are not for it.

    Args:
        file: that they stand in.
        loc: of the section.
        needs: keys, and whether the section is one that must have them and else may not.
        goes: keys, and whether the section is one that may have them.
    """
    needs = tuple(needs)
    needed = [key for key, is_so in needs if is_so]
    barred = {key for key, is_so in (*needs, *goes) if not is_so}
    stated = [key for key in (*needed, *barred) if file.stated(*loc, key)]
    if stated != needed:
        known = [key for key in fields_of(key_at(loc)) if key not in barred]
        yield from faults_of_keys(loc, stated, needed, known)


def _name(file: Sections) -> Iterator[Fault]:
    """A programme is named as its file."""
    if f"{file.name}.yaml" != file.file:
        yield ("name",), f"{file.name!r} must be the file's own name; rename one of the two"


def _source(file: Sections) -> Iterator[Fault]:
    """What a source states goes with its feed."""
    source, vehicles = file.source, file.source.feed.shape is RowShape.TELEMETRY
    if vehicles and len(source.modes) > 1:
        yield ("source", "modes"), f"{source.feed} tells no modes apart; write one"
    if source.timetable is None and source.stop_within_m is not None:
        yield ("source", "stop_within_m"), "goes with timetable; add it"
    if source.timetable is not None and (not vehicles or source.feed.names_stops):
        yield ("source", "timetable"), "is for positions of vehicles; remove it"
    for key, feeds in _OF_FEEDS.items():
        if getattr(source, key) and source.feed not in feeds:
            yield ("source", key), f"is for {' and '.join(feeds)}; remove it"
    if source.feed in DATED_BY_STANDARD and source.date_form is not DateForm.ISO:
        yield ("source", "date_form"), f"{source.feed} has dates of its own standard; remove it"
    if source.written.zone is not None and source.feed is Feed.OPAL_TRIPS:
        yield ("source", "file", "zone"), "is for instants; its clock is the agency's; remove it"
    if source.extent is not None and source.extent.south >= source.extent.north:
        yield ("source", "extent", "south"), "must be below north"


def _numbers(file: Sections) -> Iterator[Fault]:
    """Units are of what a feed states as a number, and shares at most 1."""
    source, feed = file.source, file.source.feed
    if file.stated("source", "speed_unit") and feed.shape is RowShape.TRIPS:
        yield ("source", "speed_unit"), f"{feed} states no speed; remove it"
    if source.delay_unit is not None and not feed.has_delays_of_a_unit:
        yield ("source", "delay_unit"), f"{feed} states no delay as a number; remove it"
    for rule, most in source.set_aside_at_most:
        if most > 1:
            yield ("source", "set_aside_at_most", rule), 'is a share; write at most "1"'


def _files_and_cards(file: Sections) -> Iterator[Fault]:
    """What marks a complete week is no data; rows without a card are of trips."""
    source, vehicles = file.source, file.source.feed.shape is RowShape.TELEMETRY
    marker = source.marker
    if marker and fnmatch(marker, source.landing) and not marker.rpartition("/")[2].startswith("."):
        rule = "would be read as data; narrow landing, or begin its name with a dot"
        yield ("source", "marker"), rule
    if marker and "{week}" not in marker:
        yield ("source", "marker"), "names no week, so that one file ends every wait; write {week}"
    if file.stated("source", "without_card"):
        if vehicles:
            yield ("source", "without_card"), "is for trips; remove it"
        elif source.feed.names_nobody:
            yield ("source", "without_card"), f"{source.feed} has no cards; remove it"
    named = [("mode_names", mode) for _, mode in source.mode_names]
    named += [("without_mode", source.without_mode)] if source.without_mode else []
    for key, mode in named:
        if mode not in source.modes:
            yield ("source", key), f"{mode!r} is none of the modes; add it to modes"


def _id_forms(file: Sections) -> Iterator[Fault]:
    """A form of ids is of ids that the feed has, and has what its kind needs."""
    source = file.source
    vehicles = source.feed.shape is RowShape.TELEMETRY
    if source.card_form is not None and (vehicles or source.feed.names_nobody):
        yield ("source", "card_form"), f"{source.feed} has no cards; remove it"
    if source.vehicle_form is not None and not vehicles:
        yield ("source", "vehicle_form"), "is for vehicles; remove it"
    for key, form in (("card_form", source.card_form), ("vehicle_form", source.vehicle_form)):
        if form is not None:
            digits = form.kind is IdKind.DIGITS
            length, case = [("length", digits)], [("case", not digits)]
            yield from _needed(file, ("source", key), length, case)


def _domain(file: Sections) -> Iterator[Fault]:
    """Public cells are of the shape of the rows."""
    domain, loc = file.domain, ("domain",)
    trips = file.source.feed.shape is RowShape.TRIPS
    needs = [("locations", trips), ("service_area", not trips), ("h3_resolution", not trips)]
    goes = [("ring_cells", not trips), ("regions", trips), ("periods", trips)]
    yield from _needed(file, loc, needs, goes)
    if domain.service_hours is not None and not trips:
        rule = 'a file of hours by mode is for trips; write all_day or "09:00-21:00"'
        yield (*loc, "slots"), rule
    if domain.h3_coarsest is not None and domain.h3_coarsest > (domain.h3_resolution or 0):
        yield (*loc, "h3_coarsest"), "must not be finer than h3_resolution"


def _lists(file: Sections) -> Iterator[Fault]:
    """Public lists are of categories that rows have; what a boarding lacks is not UNKNOWN."""
    domain, loc = file.domain, ("domain",)
    known = [field.name for field in categories(file.source.feed.shape) if field.is_listed]
    events = file.source.feed.names_nobody
    for name, _ in domain.lists:
        if name not in known:
            rule = f"is no category of rows; use some of {', '.join(known)}"
            yield (*loc, "lists", name), rule
        elif name in VISITS and not events:
            yield (*loc, "lists", name), f"is of {Feed.TIDES_PASSENGER_EVENTS}; remove it"
    if events and domain.outside is not Outside.DROP:
        rule = "must be drop: a boarding has no alighting that could be UNKNOWN; write drop"
        yield (*loc, "outside"), rule


def _periods(file: Sections) -> Iterator[Fault]:
    """Periods are full slots of one service day, and do not overlap."""
    domain, time, loc = file.domain, file.time, ("domain",)
    for period in domain.periods:
        at = (*loc, "periods", period.name)
        first, last = period.first_minute, period.last_minute
        if not time.day_starts <= first < last <= time.day_ends:
            yield at, "must run forwards within one service day"
        elif first % time.slot_minutes or last % time.slot_minutes:
            yield at, f"must begin and end with a slot of {time.slot_minutes} minutes"
    for before, after in pairwise(domain.periods):
        if after.first_minute < before.last_minute:
            rule = f"begins before {before.name} ends; let them not overlap"
            yield (*loc, "periods", after.name), rule


def _time(file: Sections) -> Iterator[Fault]:
    """A service day begins with a slot."""
    starts, length = file.time.day_starts, file.time.slot_minutes
    if starts % length:
        hour, minute = divmod(starts - starts % length, 60)
        rule = f'is no begin of a slot of {length} minutes; write "{hour:02}:{minute:02}"'
        yield ("time", "day_starts"), rule


def _units(file: Sections) -> Iterator[Fault]:
    """Bounds are of units that records can tell, and of one unit of a day or more."""
    feed = file.source.feed
    if not file.units:
        yield ("units",), "is empty; bound at least one unit"
    if sum(not bound.unit.is_record for bound in file.units) > 1:
        rule = "bounds two units of a day or more; the coarser one alone decides: keep it"
        yield ("units",), rule
    for bound in file.units:
        loc = ("units", bound.unit)
        if feed.names_nobody and not bound.unit.is_record:
            rule = f"cannot be bounded: {feed} names no card; write trip: {{contributes: 1}}"
            yield loc, rule
            continue
        is_of_trips = bound.unit.subject is Subject.CARD and not bound.unit.is_record
        if bound.once_per_finest_cell and (bound.once_per_cell or not is_of_trips):
            yield (*loc, "once_per_finest_cell"), "is for cards, and instead of once_per_cell"
        if bound.coarse_cell_max is not None and not bound.once_per_finest_cell:
            yield (*loc, "coarse_cell_at_most"), "goes with once_per_finest_cell: true; add it"
        if bound.unit.is_record and bound.contributions_max != 1:
            yield (*loc, "contributes"), "must be 1: a trip is one row"


def _tables(file: Sections) -> Iterator[Fault]:
    """There are tables, and each is in order by itself."""
    if not file.tables:
        yield ("tables",), "is empty; name at least one table"
    elif all(table.trips_max is not None for table in file.tables):
        rule = "has no table that counts the trips under units; add one without trips_at_most"
        yield ("tables",), rule
    for table in file.tables:
        if not _is_file_name(table.name):
            yield ("tables", table.name), "names files; write letters, digits and _, at most 100"
        yield from _table(file, table, ("tables", table.name))


def _is_file_name(name: str) -> bool:
    """Return whether files of a package can be called so."""
    is_plain = name.isprintable() and not name.startswith(".") and "/" not in name
    return is_plain and 0 < len(name.encode()) <= _NAME_BYTES


def _table(file: Sections, table: TableSpec, loc: Loc) -> Iterator[Fault]:
    """One table: dimensions and measure are of its shape, and the measure has what it needs."""
    shape = file.source.feed.shape
    known = dimensions(shape)
    if table.measure.kind.is_of_trips != (shape is RowShape.TRIPS):
        yield (*loc, "measure"), "count is for trips; the other measures are for telemetry"
        return
    options = dict.fromkeys(measure.kind.option for measure in Measure if measure.kind.option)
    yield from _needed(
        file, loc, [(option, option == table.measure.kind.option) for option in options]
    )
    unknown = [name for name in table.by if name not in known]
    if unknown:
        yield (*loc, "by"), f"{unknown[0]!r} is unknown; use some of {', '.join(known)}"
    elif not table.by and table.trips_max is None:
        yield (*loc, "by"), "must be a list with at least one entry"
    elif shape is RowShape.TELEMETRY:
        yield from _table_of_vehicles(file, table, loc, known)
    else:
        yield from _table_of_trips(file, table, loc)


def _table_of_vehicles(
    file: Sections, table: TableSpec, loc: Loc, known: tuple[str, ...]
) -> Iterator[Fault]:
    """A table of vehicles is by a slot, and by what else they are told apart by."""
    time, *others = known
    in_order = tuple(name for name in known if name in table.by)
    if table.by[:1] != (time,) or len(table.by) == 1 or table.by != in_order:
        rule = f"must be {time} and one or more of {', '.join(others)}, in this order"
        yield (*loc, "by"), rule
    if file.source.feed.names_stops and "cell" in table.by:
        rule = f"{file.source.feed} states no position: count by {STOP} or route, of a public list"
        yield (*loc, "by"), rule
    if file.source.feed.names_stops and table.measure in OF_SPEEDS:
        yield (*loc, "measure"), f"{file.source.feed} states no speed; use mean_delay or headway"
    for key in ("trips_at_most", "per_cell_at_most", "year_to_date_from"):
        if file.stated(*loc, key):
            yield (*loc, key), "is for tables of trips; remove it"


def _table_of_trips(file: Sections, table: TableSpec, loc: Loc) -> Iterator[Fault]:
    """A table of trips is a marginal of one tap, or has a bound of its own."""
    has_bound = table.trips_max is not None
    crossed = table.by not in _TRIP_TABLES and bool(table.by)
    ends = (set(table.by) & set(OF_ON), set(table.by) & set(OF_OFF))
    feed = file.source.feed
    if set(table.by) & set(VISITS) and not feed.names_nobody:
        yield (*loc, "by"), f"stop visits are of {Feed.TIDES_PASSENGER_EVENTS}; remove them"
    elif feed.names_nobody and bool(ends[0]) == bool(ends[1]):
        rule = f"{feed} joins no boarding to an alighting: name dimensions of one of them, "
        yield (*loc, "by"), f"{rule}tap_on_ or boarding_visit, or tap_off_ or alighting_visit"
    elif crossed and all(ends) and set(table.by) - {"day_period"} not in [set(f) for f in FLOWS]:
        rule = "on and off are never linked but as origin and destination: both regions, or both "
        yield (*loc, "by"), f"{rule}zones, and day_period; any other table is of one tap"
    elif crossed and not has_bound:
        rule = "is missing: only a slot, a location, or slot and location of one tap count the "
        rule += "trips under units; a table of other dimensions needs a bound of its own"
        yield (*loc, "trips_at_most"), rule
    if table.per_cell_max is not None and not has_bound:
        yield (*loc, "per_cell_at_most"), "goes with trips_at_most of the same table; add it"
    if table.year_from is not None and crossed:
        rule = "is for slots, locations and totals; remove it"
        yield (*loc, "year_to_date_from"), rule
    elif table.year_from is not None and not has_bound:
        yield (*loc, "year_to_date_from"), "goes with trips_at_most of the same table; add it"


def _stated(file: Sections) -> Iterator[Fault]:
    """Records say how late, or how full, a vehicle is, where a table asks."""
    source = file.source
    asked = [(table, table.measure.kind) for table in file.tables]
    if source.timetable is not None and not any(
        kind.by_timetable or STOP in table.by for table, kind in asked
    ):
        rule = f"is used by no table; add one of mean_delay or by {STOP}, or remove it"
        yield ("source", "timetable"), rule
    for table, kind in asked:
        is_stated = not kind.row_column or kind.row_column in source.feed.states
        if is_stated or (kind.by_timetable and source.timetable is not None):
            continue
        feeds = [feed for feed in Feed if kind.row_column in feed.states]
        rule = f"{source.feed} states no {kind.states}; use {' or '.join(feeds)}"
        if kind.by_timetable:
            rule += ", or name a public GTFS feed as source.timetable"
        yield ("tables", table.name, "measure"), rule


def _listed(file: Sections) -> Iterator[Fault]:
    """A public list names the values of every category that a table counts."""
    source, listed = file.source, dict(file.domain.lists)
    for table in file.tables:
        for name in table.by:
            loc = ("tables", table.name, "by")
            if BY_NAME[name].is_listed and name not in listed:
                rule = f"counts by {name}, and no public list says which there are; add it, for "
                yield loc, f"{rule}example domain: {{lists: {{{name}: domains/{name}s.csv}}}}"
            elif name == STOP and source.timetable is None and not source.feed.names_stops:
                rule = "counts by stop, which positions tell by a timetable alone; name a public "
                yield loc, f"{rule}GTFS feed as source.timetable"


def _same_cells(file: Sections) -> Iterator[Fault]:
    """All tables of vehicles have the same cells, for which one bound holds."""
    tables = file.tables
    for table in tables:
        if file.source.feed.shape is RowShape.TELEMETRY and table.by != tables[0].by:
            rule = (
                f"must be [{', '.join(tables[0].by)}], as in {tables[0].name}: one bound chooses "
            )
            rule += "the cells that count, in all tables; write a second programme for others"
            yield ("tables", table.name, "by"), rule


def _caps(file: Sections) -> Iterator[Fault]:
    """A cap is on a bounded unit, in one amount."""
    for place, cap in enumerate(file.caps):
        loc = ("caps", place)
        if (cap.epsilon is None) == (cap.rho is None):
            rule = "state the cap in epsilon or in rho; write exactly one of the two"
            yield (*loc, "epsilon"), rule
        yield from _needed(file, loc, (), [("window_weeks", cap.unit.is_lifetime)])
        # the loss of a unit is finite: a bound a day bounds every coarser unit too
        if not cap.unit.is_record and all(bound.unit.is_record for bound in file.units):
            rule = f"{cap.unit} is not bounded by any unit under units, so no cap can hold"
            yield (*loc, "unit"), rule


def _keys_of_mechanism(file: Sections) -> Iterator[Fault]:
    """A mechanism has the keys that its kind needs, and no other's."""
    filled = file.mechanism
    kind: MechanismKind = filled.kind
    by_source = kind.is_thresholded and filled.calibration is Calibration.SOURCE
    is_share = not kind.is_thresholded and file.stated("mechanism", "share_of_cap")
    needs = (
        ("rho", kind.amount == "rho" and not is_share),
        ("epsilon", kind.amount == "epsilon" and not is_share and not by_source),
        ("delta", kind.is_thresholded),
        ("budgets", by_source),
        ("split", not by_source),
    )
    goes = (
        ("share_of_cap", not kind.is_thresholded),
        ("calibration", kind.is_thresholded),
        ("joint_marginals", not kind.is_thresholded),
    )
    yield from _needed(file, ("mechanism",), needs, goes)
    if kind.is_thresholded and filled.delta >= 1:
        rule = f"{filled.delta} is no probability to speak of; write for example 1e-7"
        yield ("mechanism", "delta"), rule
    if by_source and filled.unit is not ProtectionUnit.TRIP:
        rule = "must be trip: the source's calibration protects no other unit"
        yield ("mechanism", "unit"), rule


def _mechanism(file: Sections) -> Iterator[Fault]:
    """A mechanism protects a bounded unit, within what tables and bounds allow it."""
    filled = file.mechanism
    if filled.unit not in {bound.unit for bound in file.units}:
        rule = f"{filled.unit} has no bound under units; add one, or choose a bounded unit"
        yield ("mechanism", "unit"), rule
    is_once = any(bound.once_per_finest_cell for bound in file.units)
    if filled.joint_marginals and not (filled.kind.amount == "rho" and is_once):
        rule = "is for dense_gaussian and once_per_finest_cell"
        yield ("mechanism", "joint_marginals"), rule
    is_gaussian = filled.kind is MechanismKind.DENSE_GAUSSIAN
    if any(table.year_from for table in file.tables) and not is_gaussian:
        rule = "must be dense_gaussian where a table has year_to_date_from"
        yield ("mechanism", "kind"), rule


def _shares(file: Sections) -> Iterator[Fault]:
    """Every draw has a share, and shares add up to 1."""
    filled = file.mechanism
    labels = labels_of(file.tables)
    key, shares = ("split", filled.split) if filled.budgets is None else ("budgets", filled.budgets)
    loc = ("mechanism", key)
    unequal = list(faults_of_keys(loc, shares, labels, labels))
    yield from unequal
    total = sum(shares.values())
    if key == "split" and not unequal and total != 1:
        yield loc, f"shares add up to {total}; they must add up to 1"


def _share_of_cap(file: Sections) -> Iterator[Fault]:
    """A share of a cap is of the one cap over weeks, which holds for at least as many."""
    filled, loc = file.mechanism, ("mechanism", "share_of_cap")
    if filled.share_of_cap is None:
        return
    windows, key = _windows(file.caps), filled.kind.amount
    if len(windows) != 1 or getattr(windows[0], key) is None:
        yield loc, f"needs one cap over window_weeks, stated in {key}; add it"
    elif filled.share_of_cap * (windows[0].window_weeks or 1) > 1:
        weeks = windows[0].window_weeks
        rule = f'{filled.share_of_cap} of {weeks} weeks is above 1; write at most "1/{weeks}"'
        yield loc, rule


def _schedule(file: Sections) -> Iterator[Fault]:
    """Periods other than weeks are counted from a day."""
    is_needed = file.schedule.period_days != DAYS_PER_WEEK
    yield from _needed(file, ("schedule",), [("first_day", is_needed)])


def _publish(file: Sections) -> Iterator[Fault]:
    """What the package holds beside its tables can be made from them."""
    shaped = (*TAPS, *((visit,) for visit in VISITS))
    is_shaped = any(table.by in shaped and table.trips_max is None for table in file.tables)
    if file.publish.tides_shapes and (file.mechanism.kind.is_thresholded or not is_shaped):
        rule = "needs a dense table by slot and location of a tap, or of stop visits; add one"
        yield ("publish", "tides_shapes"), rule
    if file.publish.synthetic_rows and not file.mechanism.kind.is_thresholded:
        rule = "rows are made of thresholded counts (stability_histogram); remove it"
        yield ("publish", "synthetic_rows"), rule


def _meant_for(file: Sections) -> Iterator[Fault]:
    """Queries are of trips."""
    if file.meant_for and file.source.feed.shape is not RowShape.TRIPS:
        yield ("meant_for",), "is for trips; remove it"


def _retention(file: Sections) -> Iterator[Fault]:
    """Private data stay past the window of backfills, and that past an alarm."""
    retention = file.retention
    if retention is None:
        return
    least = file.schedule.final_after_days + ALARM_DAYS
    if retention.backfill_days < least:
        rule = f"leaves no time for an alarm: a period is final, then {ALARM_DAYS} days are needed"
        yield ("retention", "backfill_days"), f"{rule}; write {least} or more"
    for key in ("raw_days", "exact_days"):
        if getattr(retention, key) < retention.backfill_days:
            rule = "ends before the window of backfills does"
            yield ("retention", key), f"{rule}; write {retention.backfill_days} or more"


# In the order of what they look at: of two faults the one that others follow from comes first.
RULES: tuple[Rule, ...] = (
    *(
        _name,
        _source,
        _numbers,
        _files_and_cards,
        _id_forms,
        _time,
        _units,
        _tables,
        _stated,
        _caps,
    ),
    *(_domain, _lists, _periods, _listed, _same_cells, _keys_of_mechanism, _mechanism),
    *(_share_of_cap, _shares, _schedule, _publish, _meant_for, _retention),
)


def labels_of(tables: Iterable[TableSpec]) -> list[str]:
    """Name every vector that gets a share."""
    return [table.label_of(statistic) for table in tables for statistic in table.statistics]


def _windows(caps: Iterable[CapSpec]) -> list[CapSpec]:
    """Return the caps that hold over a window of weeks."""
    return [cap for cap in caps if cap.window_weeks is not None]


def mechanism_of(file: Sections) -> MechanismSpec:
    """Return the mechanism of a file that breaks no rule.

    A share of a cap is rounded down to what the ledger counts in, so that the window's weeks fit
    under the cap whatever each is rounded up to. The source's own budgets are replace-one epsilons;
    adding or removing a trip costs half of one (PRIVACY 5.4), so the amount is half their sum.
    """
    filled: Any = file.mechanism
    key = filled.kind.amount
    shares = filled.split if filled.budgets is None else filled.budgets
    split = [(label, shares[label]) for label in labels_of(file.tables)]
    if filled.budgets is not None:
        total = sum(filled.budgets.values(), Fraction(0))
        amount, split = total / 2, [(label, budget / total) for label, budget in split]
    elif filled.share_of_cap is not None:
        cap = getattr(_windows(file.caps)[0], key)
        amount = posted_whole(filled.share_of_cap * cap, key)
    else:
        amount = getattr(filled, key)
    return MechanismSpec(
        filled.kind,
        filled.unit,
        amount,
        tuple(split),
        filled.delta,
        filled.calibration,
        joint_marginals=filled.joint_marginals,
    )
