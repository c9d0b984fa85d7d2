"""Exact trip counts of service days: all modes, all tables, zeros included.

A row lies in one cell by its own content: the slot of its tap-on and tap-off on the clock (a
tap-off after midnight too), among the slots of its mode, and the area of its locations. What has
no label is `UNKNOWN`; where the programme drops rows outside, a trip without a label in any
dimension that some table uses is dropped from all tables, so that tap-on and tap-off tables still
add up to the same trips.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from turnstile.counting.bounding import Bounding, keep_at_most
from turnstile.counting.cells import OUTSIDE
from turnstile.counting.engine import Connection, columns_of, day_files
from turnstile.counting.exact import Counts, ExactTable
from turnstile.counting.trip_queries import (
    axes_of,
    counted_by,
    grouping_id,
    groups_sql,
    lookups,
    trip_bounding,
    trips_sql,
)
from turnstile.privacy.stability import Selection
from turnstile.privacy.units import Block
from turnstile.programme.counting_chain import chain_of
from turnstile.programme.domain.public_domain import PublicDomain, layout
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
    _read_days(connection, programme, domain, files)

    def keep(kept: str, bounding: Bounding, scope: str) -> None:
        keep_at_most(connection, "trip", kept, bounding=bounding, scope=scope)

    kept = kept_by_selection(programme, days, keep) if any(files) else {}
    return tables_of_days(programme, domain, days, kept, partial(columns_of, connection))


def _read_days(
    connection: Connection, programme: Programme, domain: PublicDomain, files: Sequence[list[str]]
) -> None:
    """Make the table `trip` of some days: number of the day, card, indices of mode and axes."""
    axes = ", ".join(f"{axis} INTEGER" for axis in axes_of(programme))
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE trip "
        f"(day_index INTEGER, card_id VARCHAR, mode_index INTEGER, {axes})"
    )
    rows = "read_parquet(?, hive_partitioning = false, union_by_name = true)"
    for number, of_day in enumerate(files):
        if of_day:
            connection.execute(
                f"INSERT INTO trip {trips_sql(programme, domain, number, rows)}", [of_day]
            )


def kept_by_selection(
    programme: Programme, days: Sequence[date], keep: Callable[[str, Bounding, str], None]
) -> dict[Selection, str]:
    """Return the relation of the trips that count, for each selection of the programme's tables.

    Args:
        programme: whose chains.
        days: service days of one scope.
        keep: makes a relation of this name, of the trips that a bound within a scope lets count.
    """
    kept: dict[Selection, str] = {}
    for selection in (chain_of(programme, table).selection for table in programme.tables):
        once, bound = selection
        if selection in kept:
            continue
        kept[selection] = "trip" if bound is None else f"kept_trip_{len(kept)}"
        if bound is not None:
            bounding = trip_bounding(programme, once, bound)
            keep(kept[selection], bounding, bound.unit.scope(Block(days[0], "")))
    return kept


def tables_of_days(
    programme: Programme,
    domain: PublicDomain,
    days: Sequence[date],
    kept: Mapping[Selection, str],
    run: Callable[[str], dict[str, NDArray[Any]]],
) -> list[tuple[ExactTable, ...]]:
    """Return the exact tables of every day; zeros where nothing was kept because no rows came.

    Args:
        programme: whose tables.
        domain: public cells.
        days: service days of one scope.
        kept: as `kept_by_selection` returns it.
        run: runs a query and returns its columns.
    """
    counted = []
    for number, day in enumerate(days):
        groups = {
            selection: run(groups_sql(programme, selection, relation, number))
            for selection, relation in kept.items()
        }
        counted.append(_exact_tables(programme, domain, day, groups))
    return counted


def _exact_tables(
    programme: Programme,
    domain: PublicDomain,
    day: date,
    groups: Mapping[Selection, dict[str, NDArray[Any]]],
) -> tuple[ExactTable, ...]:
    """Return the exact tables of one day from what `groups_sql` found for each selection."""
    exact_tables = []
    for table in programme.tables:
        finest = grouping_id(counted_by(programme, table), axes_of(programme))
        selected = groups.get(chain_of(programme, table).selection)
        vector = _vector(domain, table, selected, finest)
        exact_tables.append(ExactTable(table.name, "count", day, vector))
    return tuple(exact_tables)


def _vector(
    domain: PublicDomain,
    table: TableSpec,
    groups: dict[str, NDArray[Any]] | None,
    grouping_set: int,
) -> Counts:
    """Add up the counts of one table, or of a finer one, in the full domain."""
    counts = np.zeros(domain.cells(table), dtype=np.int64)
    if groups is None:
        return counts
    is_of_table = groups["grouping_set"] == grouping_set
    for axis in table.by:  # an end that a row does not have
        is_of_table &= groups[axis] != OUTSIDE
    mode_index = groups["mode_index"][is_of_table]
    segments = layout(domain, table)
    cell = np.array([segment.offset for segment in segments], dtype=np.int64)[mode_index]
    for number, axis in enumerate(table.by):
        strides = [
            int(np.prod(segment.shape[number + 1 :], dtype=np.int64)) for segment in segments
        ]
        cell += np.array(strides, dtype=np.int64)[mode_index] * groups[axis][is_of_table]
    np.add.at(counts, cell, groups["records"][is_of_table])
    return counts
