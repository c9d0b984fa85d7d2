"""What the landing and private zones hold of each period: found by name, never read.

    landing/<source.landing>                         files, of one ISO week; several programmes
    private/<programme>/<period>/snapshots           rows
    private/<programme>/<period>/...                 exact: tables, figures, reports, and what died
    private/.store/aside/<programme>/<period>/...    the same, where a store was put back

Who corrects a week and why stays, in `revision.json`: it holds nothing of the rows.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from turnstile.errors import InputError
from turnstile.ledger.records import revision_of
from turnstile.programme.calendar.release_schedule import period_containing
from turnstile.programme.spec import Programme
from turnstile.release.zone_copies import ASIDE, ChangedAt, changed_here
from turnstile.service_calendar import ServicePeriod, ServiceWeek, parse_period

_SNAPSHOTS = "snapshots"
_STAYS = frozenset({"revision.json", ".draw.lock"})
_WEEK = re.compile(r"\d{4}-W\d{2}")


class Part(StrEnum):
    """What retention tells apart."""

    FILES = "files"  # raw, of the landing zone
    ROWS = "rows"  # made from them, with quarantine and findings
    EXACT = "exact"  # tables, figures, reports


@dataclass(frozen=True, slots=True)
class Kept:
    """Private data that stay or go together.

    Args:
        part: what they are.
        name: period, or the ISO week of files.
        users: programmes that read them, each with its period.
        paths: files and folders.
        written_at: when anything of them was last written, by the system's own clock; aware.
    """

    part: Part
    name: str
    users: tuple[tuple[Programme, ServicePeriod], ...]
    paths: tuple[Path, ...]
    written_at: datetime


def private_data(
    programme: Programme, private: Path, changed_at: ChangedAt = changed_here
) -> Iterator[Kept]:
    """Yield rows and exact data of a programme, by period.

    Args:
        programme: whose.
        private: private zone.
        changed_at: says when a file was last written, in seconds since 1970.
    """
    folders: defaultdict[str, list[Path]] = defaultdict(list)
    aside = f"{ASIDE}/{programme.name}/*/*"
    for folder in sorted((*(private / programme.name).glob("*"), *private.glob(aside))):
        name = folder.parent.name if folder.is_relative_to(private / ASIDE) else folder.name
        folders[name].append(folder)
    for name, period_folders in folders.items():
        try:
            period = parse_period(name)
        except InputError:
            continue
        rows = tuple(path for folder in period_folders for path in folder.glob(_SNAPSHOTS))
        others = tuple(path for folder in period_folders for path in _others(folder))
        for part, paths in ((Part.ROWS, rows), (Part.EXACT, others)):
            if paths:
                users, written = ((programme, period),), _written(paths, changed_at)
                yield Kept(part, name, users, paths, written)


def _others(folder: Path) -> Iterator[Path]:
    """Yield everything of a period that is neither rows nor stays."""
    for path in sorted(folder.iterdir()):
        if revision_of(path.name) is not None and path.is_dir():
            yield from (child for child in sorted(path.iterdir()) if child.name not in _STAYS)
        elif path.name != _SNAPSHOTS:
            yield path


def landing_data(
    programmes: Iterable[Programme], landing: Path, changed_at: ChangedAt = changed_here
) -> Iterator[Kept]:
    """Yield the files of the landing zone by week and by who reads them, hidden ones too.

    Args:
        programmes: every one that reads files here.
        landing: landing zone.
        changed_at: says when a file was last written, in seconds since 1970.
    """
    readers: defaultdict[tuple[str, Path], list[Programme]] = defaultdict(list)
    for programme in programmes:
        for week, path in _files_of(programme, landing):
            readers[week, path].append(programme)
    groups: defaultdict[tuple[str, tuple[str, ...]], list[Path]] = defaultdict(list)
    by_name: dict[str, Programme] = {}
    for (week, path), path_readers in readers.items():
        by_name |= {reader.name: reader for reader in path_readers}
        groups[week, tuple(reader.name for reader in path_readers)].append(path)
    for (week, names), paths in sorted(groups.items()):
        users = tuple(user for name in names for user in _periods_with(by_name[name], week))
        yield Kept(Part.FILES, week, users, tuple(paths), _written(paths, changed_at))


def _files_of(programme: Programme, landing: Path) -> Iterator[tuple[str, Path]]:
    """Yield week and path of each file that a programme reads, or that says it is complete."""
    source = programme.source
    for pattern in filter(None, (source.landing, source.marker)):
        seen = (str(path) for path in landing.glob(pattern.replace("{week}", "*")))
        for week in sorted({week for text in seen for week in _WEEK.findall(text)}):
            paths = landing.glob(pattern.replace("{week}", week))
            yield from ((week, path) for path in sorted(paths) if not path.is_dir())


def _periods_with(programme: Programme, week: str) -> Iterator[tuple[Programme, ServicePeriod]]:
    """Yield the periods of a programme that read the files of a week."""
    try:
        days = ServiceWeek.parse(week).days
    except InputError:  # W99 is a name, and no week
        return
    for period in dict.fromkeys(period_containing(day, programme.schedule) for day in days):
        yield programme, period


def _written(paths: Iterable[Path], changed_at: ChangedAt) -> datetime:
    """Return when anything was last written."""
    entries = [entry for path in paths for entry in (path, *path.rglob("*"))]
    return datetime.fromtimestamp(max(map(changed_at, entries)), UTC)
