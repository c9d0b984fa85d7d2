"""Exact trip counts of service days: all modes, all tables, zeros included.

A row lies in one cell by its own content: the slot of its tap-on and tap-off on the clock (a
tap-off after midnight too), among the slots of its mode, and the area of its locations. What has
no label is `UNKNOWN`; where the programme drops rows outside, a trip without a label in any
dimension that some table uses is dropped from all tables, so that tap-on and tap-off tables still
add up to the same trips.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from turnstile.counting.bounding import keep_at_most
from turnstile.counting.engine import Connection, columns_of, day_files
from turnstile.counting.exact import Counts, ExactTable
from turnstile.counting.trip_queries import (
    axes_of,
    grouping_id,
    groups_sql,
    lookups,
    trip_bounding,
    trips_sql,
)
from turnstile.privacy.units import Block
from turnstile.programme.bounding_rule import BoundingRule, rule_of
from turnstile.programme.domain import PublicDomain, layout
from turnstile.programme.spec import Programme, TableSpec, TimeSpec


def install_domain(connection: Connection, domain: PublicDomain, time: TimeSpec) -> None:
    """Put the public lookups into the engine.

    Args:
        connection: engine.
        domain: public cells.
        time: slots and the begin of a service day.
    """
    for lookup, table in lookups(domain, time).items():
        connection.register("given", table)
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {lookup} AS FROM given")
        connection.unregister("given")


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
    counted = []
    for number, day in enumerate(days):
        groups = {
            rule: columns_of(connection, groups_sql(programme, rule, relation, number))
            for rule, relation in kept.items()
        }
        counted.append(exact_tables(programme, domain, day, groups))
    return counted


def _read_days(connection: Connection, programme: Programme, files: Sequence[list[str]]) -> None:
    """Make the table `trip` of some days: number of the day, card, indices of mode and axes."""
    axes = ", ".join(f"{axis} INTEGER" for axis in axes_of(programme))
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE trip "
        f"(day_index INTEGER, card_id VARCHAR, mode_index INTEGER, {axes})"
    )
    rows = "read_parquet(?, hive_partitioning = false, union_by_name = true)"
    for number, of_day in enumerate(files):
        if of_day:
            connection.execute(f"INSERT INTO trip {trips_sql(programme, number, rows)}", [of_day])


def _kept_by_rule(
    connection: Connection, programme: Programme, days: Sequence[date]
) -> dict[BoundingRule | None, str]:
    """Return the relation of the trips that count, for each rule of the programme's tables."""
    found: dict[BoundingRule | None, str] = {}
    for rule in dict.fromkeys(rule_of(programme, table) for table in programme.tables):
        if rule is None:
            found[rule] = "trip"
            continue
        found[rule] = f"kept_trip_{len(found)}"
        scope = rule.unit.scope(Block(days[0], ""))
        keep_at_most(
            connection, "trip", found[rule], bounding=trip_bounding(programme, rule), scope=scope
        )
    return found


def exact_tables(
    programme: Programme,
    domain: PublicDomain,
    day: date,
    groups: Mapping[BoundingRule | None, dict[str, NDArray[Any]]],
) -> tuple[ExactTable, ...]:
    """Return the exact tables of one day from what `groups_sql` found for each rule."""
    axes = axes_of(programme)
    vectors = (
        (table, _vector(domain, table, groups.get(rule_of(programme, table)), axes))
        for table in programme.tables
    )
    return tuple(ExactTable(table.name, "count", day, vector) for table, vector in vectors)


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
    is_of_table = groups["grouping_set"] == grouping_id(table.by, axes)
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
