"""The SQL of counting trips, and the public lookups that it joins: the same for every engine.

A portable subset: integers, joins, CASE, grouping sets; no function of one engine alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa

from turnstile.arrow_columns import texts, whole
from turnstile.counting.bounding import Bounding, Limit
from turnstile.duckdb_engine import text
from turnstile.privacy.stability import Bound, OnceInACell, Selection
from turnstile.programme.counting_chain import chain_of, tables_of
from turnstile.programme.domain.public_domain import (
    PERIOD,
    UNKNOWN,
    Dimension,
    PublicDomain,
    period_of_slots,
)
from turnstile.programme.field import Field
from turnstile.programme.fields import COARSER_OFF, COARSER_ON, TAPS, categories
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Programme, TableSpec, TimeSpec
from turnstile.service_calendar import minute_of

AXES = tuple(axis for tap in TAPS for axis in tap)
_OUTSIDE = -1
_RUN = ("first_slot", "last_slot", "slots_left_out")


def lookups(domain: PublicDomain, time: TimeSpec) -> dict[str, pa.Table]:
    """Return the public lookups by name: modes with UNKNOWN indices and slots, locations, lists.

    Args:
        domain: public cells.
        time: slots and the begin of a service day.
    """
    modes = {"mode": list(domain.modes)} | _of_modes(domain, time)
    areas = _indices(domain, [AXES[1]])
    zones, regions = (
        _indices(domain, [f"origin_{grain}", f"destination_{grain}"])
        for grain in ("zone", "region")
    )
    places = [
        (
            place.mode,
            domain.modes.index(place.mode),
            place.location,
            areas[place.mode].get(place.area),
            zones[place.mode].get(place.zone),
            regions[place.mode].get(place.region),
        )
        for place in domain.places
    ]
    listed = [
        (name, value, _indices(domain, [name])[domain.modes[0]][label])
        for name, value, label in domain.listed
        if f"unknown_{name}" in modes and name != PERIOD
    ]
    tables = {
        "modes": (tuple(modes), [*zip(*modes.values(), strict=True)]),
        "places": (("mode", "mode_index", "location", "area", "zone", "region"), places),
        "listed": (("dimension", "value", "label"), listed),
        "periods": (("of_day", "period"), _periods(domain, time)),
    }
    return {name: _table(*columns) for name, columns in tables.items() if columns[1]}


def _of_modes(domain: PublicDomain, time: TimeSpec) -> dict[str, list[int | None]]:
    """Return what the SQL needs to know of each mode: its number, UNKNOWN of each axis, slots."""
    columns: dict[str, list[int | None]] = {"mode_index": list(range(len(domain.modes)))}
    for axis in (dimension.name for dimension in domain.cells_by_mode[0].dimensions):
        columns[f"unknown_{axis}"] = [domain.dimension(mode, axis).unknown for mode in domain.modes]
    runs = [_runs_of_slots(domain.dimension(mode, AXES[0]), time) for mode in domain.modes]
    for number in range(max(map(len, runs))):
        for at, name in enumerate(_RUN):
            columns[f"{name}_{number}"] = [
                of_mode[number][at] if number < len(of_mode) else None for of_mode in runs
            ]
    return columns


def _indices(domain: PublicDomain, names: list[str]) -> dict[str, dict[str, int]]:
    """Return, by mode, the index of each label on the first of these axes that the mode has."""
    indices: dict[str, dict[str, int]] = {}
    for cells in domain.cells_by_mode:
        labels = next((axis.labels for axis in cells.dimensions if axis.name in names), ())
        indices[cells.mode] = {label: index for index, label in enumerate(labels)}
    return indices


def _periods(domain: PublicDomain, time: TimeSpec) -> list[tuple[object, ...]]:
    """Return the number of each slot of the day and the index of its period; none without any."""
    labels = _indices(domain, [PERIOD])[domain.modes[0]]
    return [
        (of_day, labels[name])
        for of_day, name in enumerate(period_of_slots(domain.listed, time))
        if labels
    ]


def _table(names: tuple[str, ...], rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """Return rows of texts, and of whole numbers of which some are absent, as a table."""
    columns = [[row[at] for row in rows] for at in range(len(names))]
    return pa.table(
        [texts(column) if isinstance(column[0], str) else whole(column) for column in columns],
        names,
    )


def _runs_of_slots(axis: Dimension, time: TimeSpec) -> list[tuple[int, int, int]]:
    """Return the runs of a mode's slots among those of a service day: first, last, left out before.

    They are one, or two where service past midnight opens the day's first slots too.
    """
    slot_of_minute = {
        minute_of(label): n for n, label in enumerate(axis.labels) if label != UNKNOWN
    }
    runs: list[tuple[int, int, int]] = []
    minutes = range(time.day_starts, time.day_ends, time.slot_minutes)
    for of_day, minute in enumerate(minutes):
        if minute not in slot_of_minute:
            continue
        before = of_day - slot_of_minute[minute]
        if runs and runs[-1][1:] == (of_day - 1, before):
            runs[-1] = (runs[-1][0], of_day, before)
        else:
            runs.append((of_day, of_day, before))
    return runs


def trips_sql(programme: Programme, domain: PublicDomain, number: int, rows: str) -> str:
    """Return the SELECT of trips: number of the day, card, indices of mode and axes.

    Args:
        programme: axes and slots.
        domain: public cells.
        number: of the day among those of the scope.
        rows: SQL of the canonical rows of the day.
    """
    where, modes = _inside(programme, domain), _sql_of_modes(domain, programme.time)
    further = (*_categories(programme, modes), *_coarser(programme, domain, modes))
    taps = [
        (_slot(programme, modes, tap), _area(domain, modes, tap)) for tap in ("tap_on", "tap_off")
    ]
    axes = ", ".join((*taps[0], *taps[1], *further))
    return (
        "SELECT * FROM ("  # noqa: S608 - names of ours
        f"SELECT {number} AS day_index, trips.card_id, modes.mode_index, "
        f"{axes} "
        f"FROM {rows} AS trips "
        "JOIN modes ON trips.mode = modes.mode "
        f"{_places(domain)} {_lists(programme)}) AS found {where}"
    )


def _inside(programme: Programme, domain: PublicDomain) -> str:
    """Return the SQL of the condition that a trip lies in the public cells, as its chain says.

    An axis with UNKNOWN has a cell for every trip; to ask would compute each index twice.
    """
    chain = chain_of(programme, programme.tables[0])
    judged = (
        [
            axis
            for axis in group
            if any(domain.dimension(mode, axis).unknown is None for mode in domain.modes)
        ]
        for group in chain.filter.judged
    )
    conditions = (
        " AND ".join(f"{axis} <> {_OUTSIDE}" for axis in axes) or "true" for axes in judged
    )
    id_field = chain.identify.id_field
    has_unit = f" AND {id_field} IS NOT NULL" if chain.identify.is_required else ""
    return f"WHERE ({' OR '.join(conditions)}){has_unit}"  # what has no unit could not be bounded


def _lists(programme: Programme) -> str:
    """Return the SQL of the joins of listed categories, and of periods, that some table uses."""
    used = axes_of(programme)
    joins = [
        f"LEFT JOIN listed AS listed_{name} ON listed_{name}.dimension = {text(name)} "
        f"AND trips.{name} = listed_{name}.value"
        for name in used
        if name in programme.listed
    ]
    if PERIOD in used:
        joins.append(f"LEFT JOIN periods ON periods.of_day = {_of_day(programme, 'tap_on')}")
    return " ".join(joins)


def _of_day(programme: Programme, tap: str) -> str:
    """Return the SQL of the number of a tap's slot among all of the service day."""
    time = programme.time
    return f"(trips.{tap}_minute - {time.day_starts}) // {time.slot_minutes}"


def _slot(programme: Programme, modes: Mapping[str, str], tap: str) -> str:
    """Return the SQL of the slot of a tap among its mode's; a tap without a time is in none."""
    of_day = _of_day(programme, tap)
    branches, number = "", 0
    while f"{_RUN[0]}_{number}" in modes:
        first, last, before = (modes[f"{name}_{number}"] for name in _RUN)
        branches += f" WHEN {of_day} BETWEEN {first} AND {last} THEN {of_day} - {before}"
        number += 1
    slot = f"CASE{branches} END" if branches else "NULL"
    return f"coalesce({slot}, {modes[f'unknown_{tap}_slot']}, {_OUTSIDE})::INTEGER AS {tap}_slot"


def _places(domain: PublicDomain) -> str:
    """Return the SQL of the joins of both taps' places: by one text where that is enough."""
    of_mode = " AND trips.mode = {tap}.mode" if not _names_tell_modes(domain) else ""
    join = "LEFT JOIN places AS {tap} ON trips.{tap}_location = {tap}.location" + of_mode
    return " ".join(join.format(tap=tap) for tap in ("tap_on", "tap_off"))


def _names_tell_modes(domain: PublicDomain) -> bool:
    """Return whether no two modes have places of the same name."""
    return len({place.location for place in domain.places}) == len(domain.places)


def _of_place(domain: PublicDomain, tap: str, column: str) -> str:
    """Return the SQL of what is known of a tap's place; NULL where its mode has no such place."""
    if not _names_tell_modes(domain):
        return f"{tap}.{column}"
    return f"CASE WHEN {tap}.mode_index = modes.mode_index THEN {tap}.{column} END"


def _area(domain: PublicDomain, modes: Mapping[str, str], tap: str) -> str:
    """Return the SQL of the area of a tap."""
    name, area = f"{tap}_location", _of_place(domain, tap, "area")
    return f"coalesce({area}, {modes[f'unknown_{name}']}, {_OUTSIDE}) AS {name}"


def _sql_of_modes(domain: PublicDomain, time: TimeSpec) -> dict[str, str]:
    """Return the SQL of each of `_of_modes`: a number that all modes share, or the column."""
    return {
        name: f"modes.{name}" if len(set(values)) > 1 else _literal(values[0])
        for name, values in _of_modes(domain, time).items()
    }


def _literal(value: int | None) -> str:
    """Return the SQL of a whole number or NULL."""
    return "NULL" if value is None else str(value)


def _categories(programme: Programme, modes: Mapping[str, str]) -> list[str]:
    """Return the SQL of the index of each category that some table uses."""
    used = [field for field in categories(RowShape.TRIPS) if field.name in axes_of(programme)]
    return [
        f"coalesce({_label_index(field)}, {modes[f'unknown_{field.name}']}, {_OUTSIDE}) "
        f"AS {field.name}"
        for field in used
    ]


def _label_index(category: Field) -> str:
    """Return the SQL of the index of a category's label; NULL for what has none."""
    if category.is_listed:
        return f"listed_{category.name}.label"
    known = " ".join(
        f"WHEN {text(label)} THEN {index}" for index, label in enumerate(category.labels)
    )
    return f"CASE trips.{category.name} {known} END"


def _coarser(programme: Programme, domain: PublicDomain, modes: Mapping[str, str]) -> list[str]:
    """Return the SQL of the index of each region, zone and period that some table uses."""
    expressions = []
    for name in axes_of(programme):
        if name not in (*COARSER_ON, *COARSER_OFF):
            continue
        end, _, grain = name.partition("_")
        tap = "tap_on" if end == "origin" else "tap_off"
        index = f"coalesce({_of_place(domain, tap, grain)}, {modes[f'unknown_{name}']}, {_OUTSIDE})"
        if name == PERIOD:
            index = f"coalesce(periods.period, {_OUTSIDE})"
        expressions.append(f"{index}::INTEGER AS {name}")
    return expressions


def axes_of(programme: Programme) -> tuple[str, ...]:
    """Return what says in which cell a trip of a programme lies, in a fixed order.

    Examples:
        >>> AXES
        ('tap_on_slot', 'tap_on_location', 'tap_off_slot', 'tap_off_location')
    """
    used = {axis for table in programme.tables for axis in table.by}
    every = (*(field.name for field in categories(RowShape.TRIPS)), *COARSER_ON, *COARSER_OFF)
    return (*AXES, *(name for name in every if name in used))


def trip_bounding(programme: Programme, once: OnceInACell | None, bound: Bound) -> Bounding:
    """Return what two steps of a chain keep, in the names of `trips_sql`."""
    # a service day is a part of the unit of a day, and of the cell of a week's
    day = ("day_index",) if (bound.unit.days_max or 0) > 1 else ()
    return Bounding(
        unit="card_id",
        cell=(*day, "mode_index", *axes_of(programme)),
        at_most=bound.records_max,
        limits=tuple(
            Limit((*day, "mode_index", *limit.by), limit.at_most)
            for limit in (once.limits if once else ())
        ),
    )


def groups_sql(programme: Programme, selection: Selection, kept: str, day_index: int) -> str:
    """Return the SELECT that counts the finest tables of one selection on one day, in one pass."""
    tables = tables_of(programme, selection)
    finest = sorted({counted_by(programme, table) for table in tables})
    sets = ", ".join(f"({', '.join(('mode_index', *by))})" for by in finest)
    every = axes_of(programme)
    used = [axis for axis in every if any(axis in table.by for table in tables)]
    axes = "".join(f"coalesce({axis}, 0) AS {axis}, " for axis in used)
    # an axis that no table has counts as not grouped by in all of them
    bits = "".join(f"{1 << every.index(axis)} * grouping({axis}) + " for axis in used)
    unused = sum(1 << index for index, axis in enumerate(every) if axis not in used)
    return (
        f"SELECT {bits}{unused} AS grouping_set, mode_index, {axes}"  # noqa: S608 - names of ours
        f"count(*) AS records FROM {kept} WHERE day_index = {day_index} "
        f"GROUP BY GROUPING SETS ({sets})"
    )


@lru_cache(maxsize=256)  # asked for each table of each day
def counted_by(programme: Programme, table: TableSpec) -> tuple[str, ...]:
    """Return the axes of the table that a table is added up from: the finest, or itself."""
    tables = tables_of(programme, chain_of(programme, table).selection)
    finer = (other.by for other in tables if set(table.by) <= set(other.by))
    return max(finer, key=lambda by: (len(by), by))


def grouping_id(by: tuple[str, ...], axes: tuple[str, ...]) -> int:
    """Return the number of a grouping set: a bit for each axis that is not grouped by."""
    return sum(1 << index for index, axis in enumerate(axes) if axis not in by)
