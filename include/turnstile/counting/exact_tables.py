"""The exact tables of a week: day by day, bounded, in the order in which they are drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from turnstile.counting.bounding import install_key
from turnstile.counting.engine import Connection, engine
from turnstile.counting.exact import ExactTable
from turnstile.counting.telemetry import Vectors, count_telemetry
from turnstile.counting.trips import count_trips, install_domain
from turnstile.counting.vehicle_cells import install_lookups, vehicle_cells
from turnstile.errors import ProgrammeError
from turnstile.privacy.units import Block, ProtectionUnit, Subject, units_of
from turnstile.programme.bounding_rule import bound_in_force
from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Programme

Progress = Callable[[str], None]


class CountWeek(Protocol):
    """How a counting engine is called; `count` below says what each argument is."""

    def __call__(  # noqa: D102, PLR0913 - as `count`
        self,
        programme: Programme,
        domain: PublicDomain,
        days: Sequence[date],
        rows_folder: Path,
        *,
        secret: bytes,
        work: Path,
        progress: Progress,
        memory: str | None = None,
    ) -> tuple[ExactTable, ...]: ...


Counted = TypeVar("Counted")


def count(  # noqa: PLR0913 - the keyword-only rest is where it runs, not what it counts
    programme: Programme,
    domain: PublicDomain,
    days: Sequence[date],
    rows_folder: Path,
    *,
    secret: bytes,
    work: Path,
    progress: Progress,
    memory: str | None = None,
) -> tuple[ExactTable, ...]:
    """Count a week into the public domain, zeros included.

    Args:
        programme: bounds and tables.
        domain: public cells.
        days: service days of the week, in order.
        rows_folder: `rows/` of the snapshot; a day without files counts as zeros.
        secret: release secret, the key of the contribution bounds.
        work: folder of the private zone for what does not fit into memory.
        progress: called for every counted day, with public words only.
        memory: the most that the engine takes, as `duckdb_engine.connect` takes it.

    Returns:
        Trips: one table for each table and day. Telemetry: one for each table and statistic, all
        days added up. Ordered by table, statistic, day, as a plan's events are.

    Raises:
        ProgrammeError: a bound or measure that cannot be enforced here.
        IntegrityError: the canonical rows cannot be counted.
    """
    check_countable(programme)
    with engine(work, memory) as connection:
        install_key(connection, secret)
        if programme.source.feed.shape is RowShape.TELEMETRY:
            install_lookups(connection, vehicle_cells(programme, domain))
            of_buses = partial(count_telemetry, connection, programme, domain, rows_folder)
            return _added_up(each_scope(programme, days, of_buses, progress))
        install_domain(connection, domain, programme.time)
        of_trips = partial(count_trips, connection, programme, domain, rows_folder)
        return by_table(each_scope(programme, days, of_trips, progress))


def count_scopes(  # noqa: PLR0913 - the keyword-only rest is where it runs
    programme: Programme,
    domain: PublicDomain,
    days: Sequence[date],
    rows_folder: Path,
    *,
    secret: bytes,
    work: Path,
) -> tuple[ExactTable, ...]:
    """Count made-up days, each scope of the bounded unit by itself, of vehicles too.

    So each scope is a trial of its own. Arguments and errors are those of `count`.

    Returns:
        One table for each table, statistic and day; of vehicles for each scope, by its first day.
    """
    check_countable(programme)
    with engine(work) as connection:
        install_key(connection, secret)
        known = connection, programme, domain, rows_folder
        if programme.source.feed.shape is RowShape.TELEMETRY:
            of_scope: Callable[[Sequence[date]], list[tuple[ExactTable, ...]]]
            install_lookups(connection, vehicle_cells(programme, domain))
            of_scope = partial(_of_vehicles, *known)
        else:
            install_domain(connection, domain, programme.time)
            of_scope = partial(count_trips, *known)
        return by_table(each_scope(programme, days, of_scope, lambda _: None))


def _of_vehicles(
    connection: Connection,
    programme: Programme,
    domain: PublicDomain,
    rows_folder: Path,
    days: Sequence[date],
) -> list[tuple[ExactTable, ...]]:
    """Return the vectors of a scope's days as tables of its first day."""
    vectors = count_telemetry(connection, programme, domain, rows_folder, days)
    return [tuple(ExactTable(*label, days[0], counts) for label, counts in vectors.items())]


def enforced(shape: RowShape) -> tuple[ProtectionUnit, ...]:
    """Return the units whose records counting bounds: those that a programme can bound."""
    subject = Subject.CARD if shape is RowShape.TRIPS else Subject.BUS
    return tuple(unit for unit in units_of(subject) if unit.bound_key is not None)


def check_countable(programme: Programme) -> None:
    """Refuse what would be promised and not kept.

    Raises:
        ProgrammeError: a bound on a unit that counting does not bound, or a measure of the other
            shape of rows.
    """
    shape, where = programme.source.feed.shape, f"{programme.name}.yaml"
    for bound in programme.units:
        allowed = enforced(shape)
        if bound.unit not in allowed:
            rule = f"is not enforced for {shape}; bound {' or '.join(allowed)}"
            raise ProgrammeError(where=where, field=f"units.{bound.unit}", rule=rule)
    for table in programme.tables:
        if table.measure.kind.is_of_trips != (shape is RowShape.TRIPS):
            rule = f"{table.measure} cannot be counted from {shape}"
            raise ProgrammeError(where=where, field=f"tables.{table.name}.measure", rule=rule)


def each_scope(
    programme: Programme,
    days: Sequence[date],
    count_days: Callable[[Sequence[date]], Counted],
    progress: Progress,
) -> list[Counted]:
    """Count one scope of the bounded unit after the other: a service day, or the days of a week."""
    bound = bound_in_force(programme)
    by_scope: dict[str, list[date]] = {}
    for day in days:
        is_longer = bound is not None and (bound.unit.days_max or 0) > 1
        scope = bound.unit.scope(Block(day, "")) if bound and is_longer else str(day)
        by_scope.setdefault(scope, []).append(day)
    counted = []
    for number, (scope, of_scope) in enumerate(by_scope.items(), 1):
        counted.append(count_days(of_scope))
        progress(f"counted {scope} ({number} of {len(by_scope)})")
    return counted


def by_table(by_scope: Sequence[Sequence[tuple[ExactTable, ...]]]) -> tuple[ExactTable, ...]:
    """Return the tables of all days, the days of each table together."""
    by_day = [tables for of_scope in by_scope for tables in of_scope]
    return tuple(table for same_table in zip(*by_day, strict=True) for table in same_table)


def _added_up(by_day: list[Vectors]) -> tuple[ExactTable, ...]:
    """Return the days' sum of each vector."""
    sums: Vectors = {}
    for day in by_day:
        for label, counts in day.items():
            sums[label] = sums[label] + counts if label in sums else counts
    return tuple(
        ExactTable(table, statistic, None, counts) for (table, statistic), counts in sums.items()
    )
