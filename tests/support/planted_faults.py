"""Faults that are put into the product's own reading, bounding and counting, to be found.

Each is a mistake that somebody could make, for every unit that it could break, on a programme that
would show it. `FAULTS` is the list; `FAULTS_OF_FORMS` are of files that canaries do not write.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pytest

from turnstile.counting import exact_tables, telemetry, trip_queries, trips
from turnstile.counting.bounding import Bounding, keep_at_most
from turnstile.measures.buses import BusesOver
from turnstile.privacy import stability
from turnstile.privacy.mechanisms import bounded_mean
from turnstile.privacy.sensitivities import records_at_most
from turnstile.programme import counting_chain
from turnstile.sources.feeds import itms, opal_trips, tap_trips
from turnstile.sources.feeds.zoned import ServiceClock
from turnstile.sources.ingest import documents, identity, lines, reading, typed_cells, worksheet
from turnstile.sources.ingest import week as ingest_module

Patch = Callable[[pytest.MonkeyPatch], None]
# SQL of a class of records; `{late}` and `{weekend}` are put in
_LATE = "{late}"
_WEEKEND = "day_index IN ({weekend})"
_MINUTES = 1440


@dataclass(frozen=True)
class Fault:
    """A mistake.

    Args:
        name: what is wrong.
        put: puts it in.
        cases: of `raw_cases` that show it.
    """

    name: str
    put: Patch
    cases: tuple[str, ...]

    @cached_property
    def is_in_reading(self) -> bool:
        """Whether it replaces anything of what reads files; others are in what is counted."""
        with pytest.MonkeyPatch.context() as patch:
            self.put(patch)
            homes = [inspect.getmodule(target) for target, *_ in patch._setattr]
        return any(home and home.__name__.startswith("turnstile.sources.") for home in homes)


@dataclass
class _Now:
    """What is being counted."""

    is_of_trips: bool = True
    weekend: str = "-1"
    late: str = "false"


def _watched(patch: pytest.MonkeyPatch) -> _Now:
    """Say what is being counted, whenever it is."""
    now = _Now()
    for count_days in (exact_tables.count_trips, exact_tables.count_telemetry):

        def noted(*known: Any, count: Any = count_days) -> Any:
            _, programme, _, _, days = known
            now.weekend = ", ".join(
                ["-1", *(str(n) for n, day in enumerate(days) if day.weekday() > 4)]
            )
            first = (_MINUTES - programme.time.day_starts) // programme.time.slot_minutes
            now.late = (
                f"(tap_on_slot >= {first} OR tap_off_slot < tap_on_slot)"
                if count.__name__ == "count_trips"
                else f"slot >= {first}"
            )
            return count(*known)

        patch.setattr(exact_tables, count_days.__name__, noted)
    return now


def _bounding_by(change: Callable[[Any, str, str, Bounding, str, _Now], None]) -> Patch:
    """Counting with another bounding, of cards and of buses."""

    def put(patch: pytest.MonkeyPatch) -> None:
        now = _watched(patch)

        def keep(
            connection: Any, records: str, kept: str, *, bounding: Bounding, scope: str
        ) -> None:
            change(connection, records, kept, bounding, scope, now)

        for module in (trips, telemetry):
            patch.setattr(module, "keep_at_most", keep)

    return put


def _for_each(kind: str) -> Patch:
    """A unit may have its bound in each class of its records."""

    def keep(
        connection: Any, records: str, kept: str, bounding: Bounding, scope: str, now: _Now
    ) -> None:
        of_class = f"{kept}_by_class"
        condition = kind.format(late=now.late, weekend=now.weekend)
        connection.execute(
            f"CREATE OR REPLACE TEMP TABLE {of_class} AS SELECT * REPLACE "
            f"({bounding.unit} || ' ' || ({condition}) AS {bounding.unit}) FROM {records}"
        )
        keep_at_most(connection, of_class, kept, bounding=bounding, scope=scope)

    return _bounding_by(keep)


def _not_for(kind: str) -> Patch:
    """Records of a class have no bound."""

    def keep(
        connection: Any, records: str, kept: str, bounding: Bounding, scope: str, now: _Now
    ) -> None:
        condition = kind.format(late=now.late, weekend=now.weekend)
        others = f"{kept}_others"
        connection.execute(
            f"CREATE OR REPLACE TEMP TABLE {others} AS "
            f"SELECT * FROM {records} WHERE NOT ({condition})"
        )
        keep_at_most(connection, others, f"{kept}_some", bounding=bounding, scope=scope)
        connection.execute(
            f"CREATE OR REPLACE TEMP VIEW {kept} AS SELECT * FROM {kept}_some "
            f"UNION ALL SELECT * FROM {records} WHERE {condition}"
        )

    return _bounding_by(keep)


def _other_bound(change: Callable[[Bounding], Bounding], kind: str = "true") -> Patch:
    """Records of a class are bounded otherwise, and the others as they should be."""

    def keep(
        connection: Any, records: str, kept: str, bounding: Bounding, scope: str, now: _Now
    ) -> None:
        condition = kind.format(late=now.late, weekend=now.weekend)
        parts = ((condition, change(bounding)), (f"NOT ({condition})", bounding))
        for n, (which, by) in enumerate(parts):
            part = f"{kept}_part_{n}"
            connection.execute(
                f"CREATE OR REPLACE TEMP TABLE {part} AS SELECT * FROM {records} WHERE {which}"
            )
            keep_at_most(connection, part, f"{part}_kept", bounding=by, scope=scope)
        connection.execute(
            f"CREATE OR REPLACE TEMP TABLE {kept}_all AS "
            f"FROM {kept}_part_0_kept UNION ALL FROM {kept}_part_1_kept"
        )
        loose = replace(bounding, limits=(), at_most=change(bounding).at_most)
        keep_at_most(connection, f"{kept}_all", kept, bounding=loose, scope=scope)

    return _bounding_by(keep)


def _without_limits(bounding: Bounding) -> Bounding:
    return replace(bounding, limits=())


def _one_more(bounding: Bounding) -> Bounding:
    return replace(bounding, at_most=bounding.at_most + 1)


def _one_more_in_a_cell(bounding: Bounding) -> Bounding:
    limits = tuple(replace(limit, at_most=limit.at_most + 1) for limit in bounding.limits)
    return replace(bounding, limits=limits)


def _week_by_day(patch: pytest.MonkeyPatch) -> None:
    """The bound of a week is kept on each of its days."""
    of_trips, of_vehicles = exact_tables.count_trips, exact_tables.count_telemetry

    def trips_by_day(*known: Any) -> Any:
        *others, days = known
        return [tables_of for day in days for tables_of in of_trips(*others, [day])]

    def vehicles_by_day(*known: Any) -> Any:
        *others, days = known
        tables_by_day = [of_vehicles(*others, [day]) for day in days]
        return {label: sum(tables[label] for tables in tables_by_day) for label in tables_by_day[0]}

    patch.setattr(exact_tables, "count_trips", trips_by_day)
    patch.setattr(exact_tables, "count_telemetry", vehicles_by_day)


def _last_table_unbounded(patch: pytest.MonkeyPatch) -> None:
    """Of the last table the engine counts every record, whatever its chain declares."""

    def of_others(programme: Any, table: Any) -> Any:
        chain = counting_chain.chain_of(programme, table)
        is_last = table == programme.tables[-1]
        return replace(chain, once=None, bound=None) if is_last else chain

    def alike(programme: Any, selection: Any) -> Any:
        return [t for t in programme.tables if of_others(programme, t).selection == selection]

    patch.setattr(trip_queries, "tables_of", alike)
    for module in (trips, trip_queries):
        patch.setattr(module, "chain_of", of_others)
        patch.setattr(module, "counted_by", trip_queries.counted_by.__wrapped__)  # as it is now


def _ids_of_files(change: Callable[[str, str, Any], str]) -> Patch:
    """Ids are brought to another form, by the file that they came in."""

    def put(patch: pytest.MonkeyPatch) -> None:
        stage, form = ingest_module._stage, ingest_module.in_form
        now = [""]

        def noted(work: Any, file: Any, folder: Any) -> int:
            now[0] = file.name
            return stage(work, file, folder)

        def of_file(relation: str, source: Any) -> str:
            return change(now[0], relation, source) or form(relation, source)

        patch.setattr(ingest_module, "_stage", noted)
        patch.setattr(ingest_module, "in_form", of_file)

    return put


def _by_file(name: str, relation: str, source: Any) -> str:
    field = source.id_field
    identifier = f"{field} || ' {name}'" if not name.endswith("csv") else field
    return f"SELECT * REPLACE ({identifier} AS {field}) FROM ({identity.in_form(relation, source)})"


def _json_as_it_comes(name: str, relation: str, _: Any) -> str:
    return "" if "csv" in name else f"SELECT *, true AS id_is_plain FROM {relation}"


def _as_they_come(_: str, relation: str, __: Any) -> str:
    return f"SELECT *, true AS id_is_plain FROM {relation}"


def _form_without(*left_out: tuple[str, str]) -> Patch:
    """Ids are brought to a form that some step of the canonical one is missing in."""

    def put(patch: pytest.MonkeyPatch) -> None:
        canonical = identity._canonical

        def without(*known: Any) -> str:
            sql = canonical(*known)
            for old, new in left_out:
                assert old in sql
                sql = sql.replace(old, new)
            return sql

        patch.setattr(identity, "_canonical", without)

    return put


def _case_as_it_comes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(identity, "_FOLDED", {})


def _once_in_each_file(patch: pytest.MonkeyPatch) -> None:
    """A row that came twice counts twice."""

    def all_rows(work: Any, day: Any, _: int) -> str:
        canonical = ", ".join(ingest_module.names_of(work.layout.shape, work.programme.carried))
        return (
            f"SELECT {canonical} FROM staged WHERE broken_rule IS NULL "
            f"AND service_date = DATE '{day}'"
        )

    patch.setattr(ingest_module, "_rows_once", all_rows)


def _swallowed_line(patch: pytest.MonkeyPatch) -> None:
    """Quotes reach over line ends, and nobody counts the lines."""
    patch.setattr(lines, "_mark_unbalanced", lambda *_: None)
    opened = reading.open_source
    patch.setattr(
        ingest_module, "open_source", lambda *given: replace(opened(*given), records=None)
    )


def _shape_switch(patch: pytest.MonkeyPatch) -> None:
    """The keys of all records decide in which one shape every record is read."""
    opened, shapes = reading.open_source, itms._shapes

    def by_keys(connection: Any, *of_file: Any) -> Any:
        source = opened(connection, *of_file)
        if source.keys is None:
            return source
        keys = {str(row[0]) for row in connection.execute(source.keys).fetchall()}
        return replace(source, columns=tuple(c for c in source.columns if c in keys))

    patch.setattr(ingest_module, "open_source", by_keys)
    patch.setattr(itms, "_shapes", lambda *arguments: list(shapes(*arguments))[:1])


def _joined_within(*columns: str) -> Patch:
    join = replace(tap_trips.JOIN_OF_TAPS, within=columns)
    return lambda patch: patch.setattr(tap_trips, "JOIN_OF_TAPS", join)


class _CalendarDay(ServiceClock):
    """The hours after midnight of a service day, put on the day after."""

    def day(self, local: str) -> str:
        return f"CAST({local} AS DATE)"

    def day_of(self, date: str, _: str) -> str:
        return date


def _day_by_calendar(patch: pytest.MonkeyPatch) -> None:
    """Hours after midnight are of the next service day."""
    for module in (opal_trips, tap_trips, itms):
        patch.setattr(module, "ServiceClock", _CalendarDay)


def _trip_of_one_record(patch: pytest.MonkeyPatch) -> None:
    """A pair of taps is declared as if it could part no other."""
    patch.setattr(stability, "_parted", lambda *_: records_at_most(1))


def _delays_as_they_come(patch: pytest.MonkeyPatch) -> None:
    """A day's delay is added up as it is, without its clamp."""
    patch.setattr(
        bounded_mean, "centered_delays", lambda sums, numbers, _: np.asarray(sums // (6 * numbers))
    )


def _full_at_any_time(patch: pytest.MonkeyPatch) -> None:
    """Readings of a full bus are counted, not buses."""
    adds = BusesOver.adds
    patch.setattr(BusesOver, "adds", lambda *given: adds(*given) * given[3]["readings"])


def _counted_twice(patch: pytest.MonkeyPatch) -> None:
    """Each record moves its cell by two."""
    for module in (trips, telemetry):

        def doubled(*given: Any, laid: Any = module._vector) -> Any:
            return 2 * laid(*given)

        patch.setattr(module, "_vector", doubled)


_DAY, _WEEK, _TRIP = "opal", "opal, week", "opal, one trip"
_BUS_DAY, _BUS_WEEK = "itms", "itms, week, Parquet"
_CARDS, _BUSES = (_DAY, _WEEK), (_BUS_DAY, _BUS_WEEK)
_EVERY, _WEEKS = (*_CARDS, *_BUSES), (_WEEK, _BUS_WEEK)
_BY_NIGHT = ("opal by night", "opal, week by night", "itms by night", "itms, week by night")
_IN_TEXT, _IN_DIGITS = "opal, cards in many spellings", "gtfs, buses of digits"
FAULTS = (
    Fault("no bound", _not_for("true"), (*_EVERY, "flows, week", "delays")),
    Fault("one too many", _other_bound(_one_more), (*_EVERY, "flows, week")),
    Fault("a bound for each mode", _for_each("mode_index"), (*_CARDS, "taps", "flows, week")),
    Fault("no bound in the first mode", _not_for("mode_index = 0"), _CARDS),
    Fault("no bound in the last mode", _not_for("mode_index = 2"), _CARDS),
    Fault("no bound in the first mode alone", _not_for("mode_index <> 0"), _CARDS),
    Fault("a bound for workdays, one for weekends", _for_each(_WEEKEND), _WEEKS),
    Fault("no bound at weekends", _not_for(_WEEKEND), _EVERY),
    Fault("no bound on workdays", _not_for(f"NOT {_WEEKEND}"), _EVERY),
    Fault("a bound for each day of a week", _week_by_day, _WEEKS),
    Fault("a bound for hours after midnight", _for_each(_LATE), _BY_NIGHT),
    Fault("no bound after midnight", _not_for(_LATE), _BY_NIGHT),
    Fault("after midnight is the next day", _day_by_calendar, ("opal by night", "itms by night")),
    Fault("a bound for each slot", _for_each("tap_on_slot"), _CARDS),
    Fault("a bound for each slot of buses", _for_each("slot"), _BUSES),
    Fault("a bound for each place", _for_each("tap_on_location"), _CARDS),
    Fault("a bound for each hexagon", _for_each("cell"), _BUSES),
    Fault("a bound for each route", _for_each("route"), ("delays by route",)),
    Fault("a bound for each file", _ids_of_files(_by_file), (*_EVERY, "taps")),
    Fault("a bound for each table", _last_table_unbounded, ("opal, lines", _WEEK, "flows, week")),
    Fault("no limit on cells", _other_bound(_without_limits), _CARDS),
    Fault("no limit on cells in one mode", _other_bound(_without_limits, "mode_index = 1"), _CARDS),
    Fault("no limit on cells at weekends", _other_bound(_without_limits, _WEEKEND), _CARDS),
    Fault(
        "one too many in a cell",
        _other_bound(_one_more_in_a_cell),
        (*_CARDS, "opal, coarse cells, Parquet"),
    ),
    Fault("each spelling is a card", _ids_of_files(_as_they_come), (_IN_TEXT, _IN_DIGITS)),
    Fault("ids of JSON as they come", _ids_of_files(_json_as_it_comes), (_IN_TEXT, _IN_DIGITS)),
    Fault("NFC is left out", _form_without(("nfc_normalize", "")), (_IN_TEXT,)),
    Fault("case is not folded", _case_as_it_comes, (_IN_TEXT,)),
    Fault("what is not seen stays", _form_without((identity._INVISIBLE, "[\\x00]")), (_IN_TEXT,)),
    Fault("blanks in a row stay", _form_without(("+', ' ', 'g'", "', ' ', 'g'")), (_IN_TEXT,)),
    Fault("a record that came twice", _once_in_each_file, (_TRIP,)),
    Fault("taps joined over days", _joined_within("card_id", "mode"), ("taps",)),
    Fault("swallowed line", _swallowed_line, (_DAY,)),
    Fault("shape switch", _shape_switch, (_BUS_DAY,)),
    Fault("counted twice", _counted_twice, (*_EVERY, _TRIP, "passenger events")),
    Fault("readings of full buses", _full_at_any_time, ("occupancy",)),
    Fault("delays without a clamp", _delays_as_they_come, ("delays",)),
    Fault("a pair of taps is one record", _trip_of_one_record, ("taps, one trip",)),
)


def _no_record_stops(patch: pytest.MonkeyPatch) -> None:
    """What is no record of a document has the whole of it refused."""
    parts = documents._parts

    def refused(records: Any) -> Iterator[Any]:
        for part in parts(records):
            if any(isinstance(found, bytes) for found in part):
                raise EOFError
            yield part

    patch.setattr(documents, "_parts", refused)


def _first_record_stays(patch: pytest.MonkeyPatch) -> None:
    """What a record says first stands for those behind it."""
    parts = documents._parts

    def filled(records: Any) -> Iterator[Any]:
        said: dict[str, str] = {}
        for part in parts(records):
            yield [
                found if isinstance(found, bytes) else dict(said := found | said) for found in part
            ]

    patch.setattr(documents, "_parts", filled)


def _cell_above_stays(patch: pytest.MonkeyPatch) -> None:
    """An empty cell of a workbook is what stands above it, as of cells that were merged."""
    rows = worksheet._Sheet.rows

    def filled(sheet: Any, part: str) -> Iterator[tuple[int, dict[int, str]]]:
        above: dict[int, str] = {}
        for number, row in rows(sheet, part):
            above = above | row
            yield number, above

    patch.setattr(worksheet._Sheet, "rows", filled)


def _any_text_is_read(patch: pytest.MonkeyPatch) -> None:
    """Bytes that are no text are handed to the engine, which refuses the file."""
    patch.setattr(typed_cells, "readable", lambda cells: cells)
    patch.setattr(reading, "with_marks", lambda file, _: file.path)


FAULTS_OF_FORMS = (
    Fault("no record stops its document", _no_record_stops, ("gtfs, protobuf", "siri, XML")),
    Fault("the first record stays", _first_record_stays, ("gtfs, protobuf", "siri, XML")),
    Fault("a cell above stays", _cell_above_stays, ("taps, workbook and Arrow",)),
    Fault(
        "any text is read",
        _any_text_is_read,
        ("taps, workbook and Arrow", "taps by night, Parquet"),
    ),
)


def planted() -> Iterator[tuple[Fault, str]]:
    """Yield each fault with each case that shows it."""
    for fault in FAULTS:
        for case in fault.cases:
            yield fault, case
