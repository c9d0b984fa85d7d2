"""How large a package would be, from the plan and the public cells alone: before any charge.

Bytes of a row are those of released weeks; a package is within a third of what is said here
(`tests/publishing/test_package_size.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from turnstile.errors import TurnstileError
from turnstile.estimates.roll_ups import roll_ups_of
from turnstile.estimates.table_names import BESIDE_MEANS, means_of
from turnstile.measures.buses import BusesOver, Headway, Mean
from turnstile.programme.domain.files import load_domain
from turnstile.programme.domain.public_domain import PublicDomain
from turnstile.programme.source_spec import RowShape
from turnstile.programme.spec import Programme, TableSpec
from turnstile.publishing.data_tables import DAY, ESTIMATES, MEASURED, MODE, UNBIASED, layouts
from turnstile.publishing.package_reader import PLAIN_AT_MOST
from turnstile.release.plan import ReleasePlan
from turnstile.release.sealed import day_of_draw

LARGE_BYTES = 100_000_000
_REST_BYTES, _REST_FILES = 900_000, 22  # report, card, plan, assessment, programs
_CSV, _PACKED, _PARQUET, _HEAD = 95, 11, 7, 5_000  # bytes of a row, and of a Parquet file's head
_SMALL_ROWS = 5_000  # of which Parquet takes as much again and more
_COARSER_MINUTES = (30, 60, 120, 180, 240)


@dataclass(frozen=True, slots=True)
class PackageSize:
    """Tables of a package.

    Args:
        rows: of each table, by name, coarse grains first.
    """

    rows: Mapping[str, int]

    @property
    def cells(self) -> int:
        """Rows of all tables."""
        return sum(self.rows.values())

    @property
    def files(self) -> int:
        """Files, without the shapes that a programme may ask for."""
        return 2 * len(self.rows) + _REST_FILES

    @property
    def size_bytes(self) -> int:
        """Bytes of all files."""
        return _REST_BYTES + sum(map(table_bytes, self.rows.values()))

    @property
    def sentence(self) -> str:
        """Say it in words, with the largest table."""
        name, rows = max(self.rows.items(), key=lambda entry: entry[1])
        return (
            f"package: {self.cells:,} rows in {len(self.rows)} tables, {self.files} files, about "
            f"{megabytes(self.size_bytes)}; of these {name} has {rows:,} rows and about "
            f"{megabytes(table_bytes(rows))}"
        )


def table_bytes(rows: int) -> int:
    """Return the bytes of a table's two files."""
    csv = _CSV * rows if _CSV * rows <= PLAIN_AT_MOST else _PACKED * rows
    return csv + _HEAD + _PARQUET * rows + 2 * _PARQUET * min(rows, _SMALL_ROWS)


def megabytes(size_bytes: int) -> str:
    """Return a size for people.

    Examples:
        >>> megabytes(12_400_000), megabytes(900_000)
        ('12 MB', '0.9 MB')
    """
    size = size_bytes / 1_000_000
    return f"{size:,.0f} MB" if size >= 1 else f"{size:.1f} MB"


def package_size(programme: Programme, domain: PublicDomain, plan: ReleasePlan) -> PackageSize:
    """Return the size of a release's package.

    Args:
        programme: whose release it is.
        domain: public cells.
        plan: of the release.
    """
    columns, cells = columns_of(programme, domain, plan)
    table_layouts = layouts(columns, plan.events)
    rows = {
        name: sum(
            cells[(ESTIMATES, origin.estimates) if origin.estimates else (MEASURED, origin.table)]
            for origin in layout.sources
        )
        for name, layout in table_layouts.items()
        if all(origin.estimates or origin.table for origin in layout.sources)
    }
    return PackageSize(rows)


def columns_of(
    programme: Programme, domain: PublicDomain, plan: ReleasePlan
) -> tuple[dict[str, dict[str, list[str]]], dict[tuple[str, str], int]]:
    """Return the telling columns of each table of each part of a release, and its rows."""
    has_days = {event.table for event in plan.events if day_of_draw(event) is not None}
    columns: dict[str, dict[str, list[str]]] = {MEASURED: {}, UNBIASED: {}, ESTIMATES: {}}
    cells: dict[tuple[str, str], int] = {}
    for source, table, part, numbers, table_domain in _tables(programme, domain):
        is_daily = source.name in has_days and not (part == ESTIMATES and source.is_flow)
        labels = [DAY] * is_daily + [MODE] * (len(domain.modes) > 1) + list(table.by)
        columns[part][table.name] = [*labels, *numbers]
        days = len(plan.week.days) if is_daily else 1
        cells[part, table.name] = days * table_domain.cells(table)
    return columns, cells


def _tables(
    programme: Programme, domain: PublicDomain
) -> Iterator[tuple[TableSpec, TableSpec, str, tuple[str, ...], PublicDomain]]:
    """Yield drawn tables, what each makes in a part, telling columns and public cells."""
    is_dense = not programme.mechanism.kind.is_thresholded
    number = "reconciled" if is_dense else "count"
    for table in programme.tables:
        yield table, table, MEASURED, table.statistics, domain
        kind, more = table.measure.kind, dict[str, tuple[str, ...]]()
        if isinstance(kind, Mean):
            yield table, table, UNBIASED, (f"mean_{kind.noun}_{kind.suffix}",), domain
            more = {BESIDE_MEANS: table.by, **means_of(table.by)}
        elif isinstance(kind, Headway):
            yield table, table, UNBIASED, ("headway_minutes",), domain
        elif not isinstance(kind, BusesOver) and kind.is_of_trips:
            yield table, table, UNBIASED, (number,), domain
        if is_dense:
            yield table, table, ESTIMATES, ("estimate",), domain
            for suffix, by in more.items():
                spec = replace(table, name=table.name + suffix, by=by)
                yield table, spec, ESTIMATES, ("estimate",), domain
    if is_dense and programme.source.feed.shape is RowShape.TRIPS:
        for rolled in roll_ups_of(programme, domain):
            yield rolled.source, rolled.table, ESTIMATES, ("estimate",), rolled.domain


def smaller_grain(programme: Programme, include: Path, plan: ReleasePlan) -> str:
    """Say which coarser grain makes a package that is not large; empty if none does.

    Args:
        programme: whose package would be large.
        include: folder of public files.
        plan: of the release.
    """
    for words, coarser in _coarser(programme):
        try:
            size = package_size(coarser, load_domain(coarser, include), plan)
        except TurnstileError:
            continue
        if size.size_bytes <= LARGE_BYTES:
            return f"{words} makes about {megabytes(size.size_bytes)}"
    return ""


def _coarser(programme: Programme) -> Iterator[tuple[str, Programme]]:
    """Yield coarser grains of a programme, the finest first."""
    minutes, resolution = programme.time.slot_minutes, programme.domain.h3_resolution
    for longer in _COARSER_MINUTES:
        if longer > minutes and longer % minutes == 0:
            time = replace(programme.time, slot_minutes=longer)
            yield f"slot_minutes: {longer}", replace(programme, time=time)
    for coarser in range((resolution or 0) - 1, 3, -1):
        domain = replace(programme.domain, h3_resolution=coarser)
        yield f"h3_resolution: {coarser}", replace(programme, domain=domain)


def large_package(size: PackageSize, programme: Programme, include: Path, plan: ReleasePlan) -> str:
    """Return a warning of a package that would be large, with the grain that would do.

    Args:
        size: of the package.
        programme: whose it is.
        include: folder of public files.
        plan: of the release.
    """
    if size.size_bytes <= LARGE_BYTES:
        return ""
    rest = smaller_grain(programme, include, plan) or "take fewer places or tables"
    return f"{size.sentence}, which is above {megabytes(LARGE_BYTES)}; {rest}"
