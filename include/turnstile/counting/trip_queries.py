"""The SQL of counting trips, and the public lookups that it joins: the same for every engine.

A portable subset: integers, joins, CASE, grouping sets; no function of one engine alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from turnstile.counting.bounding import Bounding, Limit
from turnstile.duckdb_engine import text
from turnstile.programme.bounding_rule import BoundingRule, bound_in_force, tables_of
from turnstile.programme.domain import UNKNOWN, Dimension, PublicDomain
from turnstile.programme.fields import TAPS, categories
from turnstile.programme.mode_slots import minute_of
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Programme, TimeSpec

AXES = tuple(axis for tap in TAPS for axis in tap)
_OUTSIDE = -1


def lookups(domain: PublicDomain, time: TimeSpec) -> dict[str, pa.Table]:
    """Return the public lookups by name: modes with UNKNOWN indices, slots, and locations.

    Args:
        domain: public cells.
        time: slots and the begin of a service day.
    """
    axes = [axis.name for axis in domain.cells_by_mode[0].dimensions]
    modes: dict[str, list[object]] = {
        "mode": list(domain.modes),
        "mode_index": list(range(len(domain.modes))),
    }
    for axis in axes:
        modes[f"unknown_{axis}"] = [domain.dimension(mode, axis).unknown for mode in domain.modes]
    slots = [
        (index, of_day, slot)
        for index, mode in enumerate(domain.modes)
        for of_day, slot in enumerate(_slots_of_day(domain.dimension(mode, AXES[0]), time))
        if slot is not None
    ]
    areas = {
        mode: {label: n for n, label in enumerate(domain.dimension(mode, AXES[1]).labels)}
        for mode in domain.modes
    }
    places = [(one.mode, one.location, areas[one.mode][one.area]) for one in domain.places]
    unknown = [(f"unknown_{axis}", pa.int32()) for axis in axes]
    return {
        "modes": pa.table(
            modes, pa.schema([("mode", pa.string()), ("mode_index", pa.int32()), *unknown])
        ),
        "slots": _table(slots, ("mode_index", "of_day", "slot"), (pa.int32(),) * 3),
        "places": _table(
            places, ("mode", "location", "area"), (pa.string(), pa.string(), pa.int32())
        ),
    }


def _table(
    rows: Sequence[tuple[object, ...]], names: tuple[str, ...], kinds: tuple[pa.DataType, ...]
) -> pa.Table:
    """Return rows as a table."""
    columns = [[row[at] for row in rows] for at in range(len(names))]
    return pa.table(
        [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)], names
    )


def _slots_of_day(axis: Dimension, time: TimeSpec) -> list[int | None]:
    """Return the index of each slot of a service day among a mode's own; None where it has none."""
    own = {minute_of(label): n for n, label in enumerate(axis.labels) if label != UNKNOWN}
    return [own.get(minute) for minute in range(time.day_starts, time.day_ends, time.slot_minutes)]


def trips_sql(programme: Programme, number: int, rows: str) -> str:
    """Return the SELECT of trips: number of the day, card, indices of mode and axes.

    Args:
        programme: axes and slots.
        number: of the day among those of the scope.
        rows: SQL of the canonical rows of the day.
    """
    used = sorted({axis for table in programme.tables for axis in table.by})
    conditions = [f"{axis} <> {_OUTSIDE}" for axis in used]
    if bound_in_force(programme) is not None:
        conditions.append("card_id IS NOT NULL")  # what has no unit could not be bounded
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    off = ", ".join((_slot("tap_off"), _area("tap_off"), *_categories(programme)))
    return (
        "SELECT * FROM ("  # noqa: S608 - names of ours
        f"SELECT {number} AS day_index, trips.card_id, modes.mode_index, "
        f"{_slot('tap_on')}, {_area('tap_on')}, {off} "
        f"FROM {rows} AS trips "
        "JOIN modes ON trips.mode = modes.mode "
        f"LEFT JOIN slots AS on_slots ON {_is_in_slot(programme, 'tap_on', 'on_slots')} "
        f"LEFT JOIN slots AS off_slots ON {_is_in_slot(programme, 'tap_off', 'off_slots')} "
        "LEFT JOIN places AS tap_on ON trips.mode = tap_on.mode "
        "AND trips.tap_on_location = tap_on.location "
        "LEFT JOIN places AS tap_off ON trips.mode = tap_off.mode "
        f"AND trips.tap_off_location = tap_off.location) AS found {where}"
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


def trip_bounding(programme: Programme, rule: BoundingRule) -> Bounding:
    """Return what a rule bounds, in the names of `trips_sql`."""
    # a service day is a part of the unit of a day, and of the cell of a week's
    day = ("day_index",) if (rule.unit.days_max or 0) > 1 else ()
    return Bounding(
        unit="card_id",
        cell=(*day, "mode_index", *axes_of(programme)),
        at_most=rule.records_max,
        limits=tuple(
            Limit((*day, "mode_index", *limit.by), limit.at_most) for limit in rule.limits
        ),
    )


def groups_sql(programme: Programme, rule: BoundingRule | None, kept: str, day_index: int) -> str:
    """Return the SELECT that counts all tables of one rule on one day, in one pass."""
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
    return (
        f"SELECT {bits}{unused} AS grouping_set, mode_index, {axes}"  # noqa: S608 - names of ours
        f"count(*) AS records FROM {kept} WHERE day_index = {day_index} "
        f"GROUP BY GROUPING SETS ({sets})"
    )


def grouping_id(by: tuple[str, ...], axes: tuple[str, ...]) -> int:
    """Return the number of a grouping set: a bit for each axis that is not grouped by."""
    return sum(1 << index for index, axis in enumerate(axes) if axis not in by)
