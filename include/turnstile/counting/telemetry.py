"""Exact vectors of telemetry: bus-days in every cell of the tables, added up over the days.

PRIVACY 5.5: cells are pairs of a slot and an H3 cell, or told apart by what public lists name of a
vehicle, such as its route. A bus-day contributes to at most K of them, and to each of them at most
1 bus and a centered speed, or 1 bus above a limit (`measures.buses`). All tables of a programme
have the same cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from turnstile.counting.bounding import Bounding, keep_at_most
from turnstile.counting.cells import OUTSIDE
from turnstile.counting.engine import Connection, columns_of, day_files
from turnstile.counting.exact import Counts
from turnstile.counting.vehicle_cells import (
    CELL,
    VehicleCells,
    joins_sql,
    labels_sql,
    vehicle_cells,
)
from turnstile.privacy.units import Block
from turnstile.programme.counting_chain import chain_of
from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.spec import Programme, TableSpec

Vectors = dict[tuple[str, str], Counts]


def count_telemetry(
    connection: Connection,
    programme: Programme,
    domain: PublicDomain,
    rows_folder: Path,
    days: Sequence[date],
) -> Vectors:
    """Return what the days of one scope add to every vector, by table and statistic.

    Call `install_lookups` first.

    Args:
        connection: engine, with the key of the bounds installed.
        programme: bounds and tables.
        domain: public cells, of one mode.
        rows_folder: canonical rows; a day without files adds zeros.
        days: service days: one, or those of a week that bounds hold over.
    """
    cells = vehicle_cells(programme, domain)
    into, counted = "CREATE OR REPLACE TEMP TABLE bus_day_cell AS", None
    given = {n: files for n, day in enumerate(days) if (files := day_files(rows_folder, day))}
    for number, files in given.items():
        read_bus_cells(connection, programme, files, cells)
        connection.execute(f"{into} SELECT {number}::INTEGER AS day_index, * FROM bus_cell")  # noqa: S608 - names of ours
        into = "INSERT INTO bus_day_cell"
    if given:
        counted = columns_of(
            connection,
            f"SELECT {', '.join(cells.axes)}, readings, speed_sum_milli, speed_max_milli, delays, "  # noqa: S608 - names of ours
            f"delay_sum_s, fullest FROM {_bounded(connection, programme, days)}",
        )
    return {
        (table.name, statistic): _vector(domain, table, statistic, counted)
        for table in programme.tables
        for statistic in table.statistics
    }


def read_bus_cells(
    connection: Connection, programme: Programme, files: list[str], cells: VehicleCells
) -> None:
    """Make the table `bus_cell` of a day: one row for each bus and cell of the tables.

    A reading that is there twice (same bus, instant, position, speed and carried columns) is one
    reading: within a file ingest has seen to that. Positions that no pixel decides become cells
    outside the engine.

    Args:
        connection: engine, with the lookups of the cells installed.
        programme: slots, and what rows carry.
        files: canonical rows of one service day.
        cells: of the tables.
    """
    category_columns = "".join(f", {name}" for name in cells.categories)
    distinct = "DISTINCT" if len(files) > 1 else ""
    stated = ", ".join(
        name if name in programme.carried else f"NULL::INTEGER AS {name}"
        for name in ("delay_s", "occupancy")
    )
    readings = (
        f"(SELECT vehicle_id, {_slot(programme, cells.outside_slot)} AS slot, latitude, longitude, "  # noqa: S608 - names of ours
        f"speed_milli_kmh, delay_s, occupancy{labels_sql(cells)} FROM (SELECT {distinct} "
        f"vehicle_id, observed_at_utc, minute_of_day, latitude, longitude, "
        f"speed_milli_kmh{category_columns}, {stated} "
        "FROM read_parquet(?, hive_partitioning = false, union_by_name = true) "
        f"WHERE vehicle_id IS NOT NULL AND speed_milli_kmh IS NOT NULL) AS reading "
        f"{joins_sql(cells)} WHERE slot <> {OUTSIDE})"
    )
    inside = " AND ".join(f"{name} <> {OUTSIDE}" for name in cells.categories) or "true"
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE part AS SELECT vehicle_id, slot, cell{category_columns}, "  # noqa: S608 - names of ours
        "CASE WHEN cell IS NULL THEN latitude END AS latitude, "
        "CASE WHEN cell IS NULL THEN longitude END AS longitude, count(*) AS readings, "
        "sum(speed_milli_kmh) AS sum_milli, max(speed_milli_kmh) AS max_milli, "
        "count(delay_s) AS delays, coalesce(sum(delay_s), 0) AS delay_sum_s, "
        "coalesce(max(occupancy), 0) AS fullest "
        f"FROM ({cells.pixels.cell_sql(readings, 'pixels')}) "
        f"WHERE cell IS DISTINCT FROM {OUTSIDE} AND {inside} GROUP BY ALL",
        [files],
    )
    rest = columns_of(
        connection, "SELECT rowid AS place, latitude, longitude FROM part WHERE cell IS NULL"
    )
    converted_cells = cells.to_cells(rest["latitude"], rest["longitude"])
    connection.register(
        "converted", pa.table({"place": rest["place"], "converted_cell": converted_cells})
    )
    of_cell = "coalesce(cell, converted_cell)"
    axes = ", ".join(f"{of_cell} AS cell" if axis == CELL else axis for axis in cells.axes)
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE bus_cell AS SELECT vehicle_id, {axes}, "  # noqa: S608 - names of ours
        "sum(readings)::BIGINT AS readings, "
        "sum(sum_milli)::BIGINT AS speed_sum_milli, max(max_milli) AS speed_max_milli, "
        "sum(delays)::BIGINT AS delays, sum(delay_sum_s)::BIGINT AS delay_sum_s, "
        "max(fullest) AS fullest "
        "FROM part LEFT JOIN converted ON part.rowid = place "
        f"WHERE {of_cell} <> {OUTSIDE} "
        f"GROUP BY vehicle_id, {', '.join(of_cell if a == CELL else a for a in cells.axes)}"
    )
    connection.unregister("converted")


def _slot(programme: Programme, outside_slot: int) -> str:
    """Return the SQL of the slot of a reading."""
    first, last = programme.domain.first_minute, programme.domain.last_minute
    return (
        f"(CASE WHEN minute_of_day >= {first} AND minute_of_day < {last} "
        f"THEN (minute_of_day - {first}) // {programme.time.slot_minutes} "
        f"ELSE {outside_slot} END)::INTEGER"
    )


def _bounded(connection: Connection, programme: Programme, days: Sequence[date]) -> str:
    """Return the relation of the buses' slots and cells that count."""
    chain = chain_of(programme, programme.tables[0])
    if chain.bound is None:
        return "bus_day_cell"
    unit = chain.bound.unit
    day = ("day_index",) if (unit.days_max or 0) > 1 else ()
    bounding = Bounding("vehicle_id", (*day, *chain.project.tables[0]), chain.bound.records_max)
    scope = unit.scope(Block(days[0], ""))
    keep_at_most(connection, "bus_day_cell", "kept_bus_cell", bounding=bounding, scope=scope)
    return "kept_bus_cell"


def _vector(
    domain: PublicDomain, table: TableSpec, statistic: str, counted: dict[str, NDArray[Any]] | None
) -> Counts:
    """Lay what one statistic adds into the full domain."""
    sums = np.zeros(domain.shape(table, domain.modes[0]), dtype=np.int64)
    if counted is not None:
        index = tuple(counted[axis] for axis in table.by)
        np.add.at(sums, index, table.measure.kind.adds(table.options, statistic, counted))
    return sums.reshape(-1)
