"""The exact tables of a week: day by day, bounded, in the order in which they are drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import TypeVar

from turnstile.counting.bounding import install_key
from turnstile.counting.engine import engine
from turnstile.counting.exact import ExactTable
from turnstile.counting.telemetry import Vectors, count_telemetry
from turnstile.counting.trips import count_trips, install_domain
from turnstile.errors import ProgrammeError
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.domain import PublicDomain
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Measure, Programme

Progress = Callable[[str], None]
Counted = TypeVar("Counted")
_ENFORCED = {
    RowShape.TRIPS: (ProtectionUnit.TRIP, ProtectionUnit.CARD_DAY),
    RowShape.TELEMETRY: (ProtectionUnit.BUS_DAY,),
}


def count(  # noqa: PLR0913 - the keyword-only rest is where it runs, not what it counts
    programme: Programme,
    domain: PublicDomain,
    days: Sequence[date],
    rows_folder: Path,
    *,
    secret: bytes,
    work: Path,
    progress: Progress,
) -> tuple[ExactTable, ...]:
    """Count a week into the public domain, zeros included.

    Args:
        programme: bounds and tables.
        domain: public cells.
        days: service days of the week, in order.
        rows_folder: `rows/` of the snapshot; a day without files counts as zeros.
        secret: release secret, the key of the contribution bounds.
        work: folder of the private zone for what does not fit into memory.
        progress: told of every counted day; hears public words only.

    Returns:
        Trips: one table for each table and day. Telemetry: one for each table and statistic, all
        days added up. Ordered by table, statistic, day, as a plan's events are.

    Raises:
        ProgrammeError: a bound or measure that cannot be enforced here.
        IntegrityError: the canonical rows cannot be counted.
    """
    check_countable(programme)
    with engine(work) as connection:
        install_key(connection, secret)
        if programme.source.feed.shape is RowShape.TELEMETRY:
            bus_day = partial(count_telemetry, connection, programme, domain, rows_folder)
            return _added_up(_each_day(days, bus_day, progress))
        install_domain(connection, domain, programme.time.slot_minutes)
        trip_day = partial(count_trips, connection, programme, domain, rows_folder)
        by_day = _each_day(days, trip_day, progress)
        return tuple(table for same_table in zip(*by_day, strict=True) for table in same_table)


def check_countable(programme: Programme) -> None:
    """Refuse what would be promised and not kept.

    Raises:
        ProgrammeError: a bound on a unit that counting does not bound, or a measure of the other
            shape of rows.
    """
    shape, where = programme.source.feed.shape, f"{programme.name}.yaml"
    for bound in programme.units:
        if bound.unit not in _ENFORCED[shape]:
            names = " or ".join(_ENFORCED[shape])
            rule = f"is not enforced for {shape}; bound {names}"
            raise ProgrammeError(where=where, field=f"units.{bound.unit}", rule=rule)
    for table in programme.tables:
        if (table.measure is not Measure.COUNT) != (shape is RowShape.TELEMETRY):
            rule = f"{table.measure} cannot be counted from {shape}"
            raise ProgrammeError(where=where, field=f"tables.{table.name}.measure", rule=rule)


def _each_day(
    days: Sequence[date], count_day: Callable[[date], Counted], progress: Progress
) -> list[Counted]:
    """Count one day after the other."""
    counted = []
    for day in days:
        counted.append(count_day(day))
        progress(f"counted {day}")
    return counted


def _added_up(by_day: list[Vectors]) -> tuple[ExactTable, ...]:
    """Return the days' sum of each vector."""
    sums: Vectors = {}
    for day in by_day:
        for label, counts in day.items():
            sums[label] = sums[label] + counts if label in sums else counts
    return tuple(
        ExactTable(table, statistic, None, counts) for (table, statistic), counts in sums.items()
    )
