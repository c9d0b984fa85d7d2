"""Exact trip counts of service days: all modes, all tables, zeros included.

A row lies in one cell by its own content: the slot of its tap-on and tap-off on the clock (a
tap-off after midnight too), among the slots of its mode, and the area of its locations. What has
no label is `UNKNOWN`; where the programme drops rows outside, a trip without a label in any
dimension that some table uses is dropped from all tables, so that tap-on and tap-off tables still
add up to the same trips.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from turnstile.counting.bounding import Bounding, Limit, keep_at_most
from turnstile.counting.engine import Connection, columns_of, day_files
from turnstile.counting.exact import Counts, ExactTable
from turnstile.duckdb_engine import text
from turnstile.privacy.units import Block
from turnstile.programme.bounding_rule import BoundingRule, bound_in_force, rule_of, tables_of
from turnstile.programme.domain import UNKNOWN, Dimension, PublicDomain, layout
from turnstile.programme.fields import TAPS, categories
from turnstile.programme.mode_slots import minute_of
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Programme, TableSpec, TimeSpec

AXES = tuple(axis for tap in TAPS for axis in tap)
_OUTSIDE = -1


def install_domain(connection: Connection, domain: PublicDomain, time: TimeSpec) -> None:
    """Put the public lookups into the engine: modes with UNKNOWN indices, slots and locations.

    Args:
        connection: engine.
        domain: public cells.
        time: slots and the begin of a service day.
    """
    axes = [axis.name for axis in domain.cells_by_mode[0].dimensions]
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE modes (mode VARCHAR, mode_index INTEGER, "
        + ", ".join(f"unknown_{axis} INTEGER" for axis in axes)
        + ")"
    )
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE slots (mode_index INTEGER, of_day INTEGER, slot INTEGER)"
    )
    for index, mode in enumerate(domain.modes):
        unknown = [domain.dimension(mode, axis).unknown for axis in axes]
        values = [mode, index, *unknown]
        marks = ", ".join("?" for _ in values)
        connection.execute(f"INSERT INTO modes VALUES ({marks})", values)  # noqa: S608 - marks only
        connection.execute(
            "INSERT INTO slots SELECT ?, unnest(range(len(own))), unnest(own) "
            "FROM (SELECT ?::INTEGER[] AS own)",
            [index, _slots_of_day(domain.dimension(mode, AXES[0]), time)],
        )
    areas = {
        mode: {label: n for n, label in enumerate(domain.dimension(mode, AXES[1]).labels)}
        for mode in domain.modes
    }
    columns = {
        "mode": [one.mode for one in domain.places],
        "location": [one.location for one in domain.places],
        "area": [areas[one.mode][one.area] for one in domain.places],
    }
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE places AS SELECT unnest(?::VARCHAR[]) AS mode, "
        "unnest(?::VARCHAR[]) AS location, unnest(?::INTEGER[]) AS area",
        [columns["mode"], columns["location"], columns["area"]],
    )


def _slots_of_day(axis: Dimension, time: TimeSpec) -> list[int | None]:
    """Return the index of each slot of a service day among a mode's own; None where it has none."""
    own = {minute_of(label): n for n, label in enumerate(axis.labels) if label != UNKNOWN}
    return [own.get(minute) for minute in range(time.day_starts, time.day_ends, time.slot_minutes)]


def count_trips(
    connection: Connection,
    programme: Programme,
    domain: PublicDomain,
    rows_folder: Path,
    days: Sequence[date],
) -> list[tuple[ExactTable, ...]]:
    """Return the exact tables of every day of one scope; call `install_domain` first.

    Args:
        connection: engine, with the key of the bounds installed.
        programme: bounds and tables.
        domain: public cells.
        rows_folder: canonical rows; a day without files counts as zeros.
        days: service days of the tap-ons: one, or those of a week that bounds hold over.
    """
    files = [day_files(rows_folder, day) for day in days]
    _read_days(connection, programme, files)
    kept = _kept_by_rule(connection, programme, days) if any(files) else {}
    axes, counted = axes_of(programme), []
    for number, day in enumerate(days):
        groups = {
            rule: _groups(connection, programme, rule, relation, number)
            for rule, relation in kept.items()
        }
        vectors = (
            (table, _vector(domain, table, groups.get(rule_of(programme, table)), axes))
            for table in programme.tables
        )
        counted.append(tuple(ExactTable(table.name, "count", day, v) for table, v in vectors))
    return counted


def _read_days(connection: Connection, programme: Programme, files: Sequence[list[str]]) -> None:
    """Make the table `trip` of some days: number of the day, card, indices of mode and axes."""
    used = sorted({axis for table in programme.tables for axis in table.by})
    conditions = [f"{axis} <> {_OUTSIDE}" for axis in used]
    if bound_in_force(programme) is not None:
        conditions.append("card_id IS NOT NULL")  # what has no unit could not be bounded
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    axes = ", ".join(f"{axis} INTEGER" for axis in axes_of(programme))
    off = ", ".join((_slot("tap_off"), _area("tap_off"), *_categories(programme)))
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE trip "
        f"(day_index INTEGER, card_id VARCHAR, mode_index INTEGER, {axes})"
    )
    for number, of_day in enumerate(files):
        if not of_day:
            continue
        connection.execute(
            "INSERT INTO trip SELECT * FROM ("  # noqa: S608 - names of ours
            f"SELECT {number} AS day_index, trips.card_id, modes.mode_index, "
            f"{_slot('tap_on')}, {_area('tap_on')}, {off} "
            "FROM read_parquet(?, hive_partitioning = false, union_by_name = true) AS trips "
            "JOIN modes ON trips.mode = modes.mode "
            f"LEFT JOIN slots AS on_slots ON {_is_in_slot(programme, 'tap_on', 'on_slots')} "
            f"LEFT JOIN slots AS off_slots ON {_is_in_slot(programme, 'tap_off', 'off_slots')} "
            "LEFT JOIN places AS tap_on ON trips.mode = tap_on.mode "
            "AND trips.tap_on_location = tap_on.location "
            "LEFT JOIN places AS tap_off ON trips.mode = tap_off.mode "
            f"AND trips.tap_off_location = tap_off.location) {where}",
            [of_day],
        )


def _is_in_slot(programme: Programme, tap: str, slots: str) -> str:
    """Return the SQL of a tap's time in a slot of its mode; a tap without a time is in none."""
    time = programme.time
    of_day = f"(trips.{tap}_minute - {time.day_starts}) // {time.slot_minutes}"
    return f"{slots}.mode_index = modes.mode_index AND {slots}.of_day = {of_day}"


def _slot(tap: str) -> str:
    """Return the SQL of the slot of a tap."""
    slots = "on_slots" if tap == "tap_on" else "off_slots"
    return f"coalesce({slots}.slot, modes.unknown_{tap}_slot, {_OUTSIDE})::INTEGER AS {tap}_slot"


def _area(tap: str) -> str:
    """Return the SQL of the area of a tap."""
    name = f"{tap}_location"
    return f"coalesce({tap}.area, modes.unknown_{name}, {_OUTSIDE}) AS {name}"


def _categories(programme: Programme) -> list[str]:
    """Return the SQL of the index of each category that some table uses."""
    used = [one for one in categories(RowShape.TRIPS) if one.name in axes_of(programme)]
    return [
        f"CASE trips.{one.name} "
        + " ".join(f"WHEN {text(label)} THEN {index}" for index, label in enumerate(one.labels))
        + f" ELSE coalesce(modes.unknown_{one.name}, {_OUTSIDE}) END AS {one.name}"
        for one in used
    ]


def axes_of(programme: Programme) -> tuple[str, ...]:
    """Return what says in which cell a trip of a programme lies, in a fixed order.

    Examples:
        >>> AXES
        ('tap_on_slot', 'tap_on_location', 'tap_off_slot', 'tap_off_location')
    """
    used = {axis for table in programme.tables for axis in table.by}
    own = (one.name for one in categories(RowShape.TRIPS) if one.name in used)
    return (*AXES, *own)


def _kept_by_rule(
    connection: Connection, programme: Programme, days: Sequence[date]
) -> dict[BoundingRule | None, str]:
    """Return the relation of the trips that count, for each rule of the programme's tables."""
    found: dict[BoundingRule | None, str] = {}
    for rule in dict.fromkeys(rule_of(programme, table) for table in programme.tables):
        if rule is None:
            found[rule] = "trip"
            continue
        # a service day is a part of the unit of a day, and of the cell of a week's
        day = ("day_index",) if (rule.unit.days_max or 0) > 1 else ()
        bounding = Bounding(
            unit="card_id",
            cell=(*day, "mode_index", *axes_of(programme)),
            at_most=rule.records_max,
            limits=tuple(
                Limit((*day, "mode_index", *limit.by), limit.at_most) for limit in rule.limits
            ),
        )
        found[rule] = f"kept_trip_{len(found)}"
        scope = rule.unit.scope(Block(days[0], ""))
        keep_at_most(connection, "trip", found[rule], bounding=bounding, scope=scope)
    return found


def _groups(
    connection: Connection,
    programme: Programme,
    rule: BoundingRule | None,
    kept: str,
    day_index: int,
) -> dict[str, NDArray[Any]]:
    """Count all tables of one rule on one day, in one pass over the trips."""
    tables = tables_of(programme, rule)
    sets = ", ".join(
        f"({', '.join(('mode_index', *by))})" for by in sorted({table.by for table in tables})
    )
    every = axes_of(programme)
    used = [axis for axis in every if any(axis in table.by for table in tables)]
    axes = "".join(f"coalesce({axis}, 0) AS {axis}, " for axis in used)
    # an axis that no table has counts as not grouped by in all of them
    bits = "".join(f"{1 << every.index(axis)} * grouping({axis}) + " for axis in used)
    unused = sum(1 << index for index, axis in enumerate(every) if axis not in used)
    return columns_of(
        connection,
        f"SELECT {bits}{unused} AS grouping_set, mode_index, {axes}"  # noqa: S608 - names of ours
        f"count(*) AS records FROM {kept} WHERE day_index = {day_index} "
        f"GROUP BY GROUPING SETS ({sets})",
    )


def _vector(
    domain: PublicDomain,
    table: TableSpec,
    groups: dict[str, NDArray[Any]] | None,
    axes: tuple[str, ...],
) -> Counts:
    """Lay the counts of one table into the full domain."""
    counts = np.zeros(domain.cells(table), dtype=np.int64)
    if groups is None:
        return counts
    is_of_table = groups["grouping_set"] == _grouping_id(table.by, axes)
    mode_index = groups["mode_index"][is_of_table]
    segments = layout(domain, table)
    cell = np.array([segment.offset for segment in segments], dtype=np.int64)[mode_index]
    for number, axis in enumerate(table.by):
        strides = [
            int(np.prod(segment.shape[number + 1 :], dtype=np.int64)) for segment in segments
        ]
        cell += np.array(strides, dtype=np.int64)[mode_index] * groups[axis][is_of_table]
    counts[cell] = groups["records"][is_of_table]
    return counts


def _grouping_id(by: tuple[str, ...], axes: tuple[str, ...]) -> int:
    """Return the number of a grouping set: a bit for each axis that is not grouped by."""
    return sum(1 << index for index, axis in enumerate(axes) if axis not in by)
