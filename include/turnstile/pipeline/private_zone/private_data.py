"""What the landing and private zones hold of each period: found by name, never read.

    landing/<source.landing>                         files, of one ISO week; several programmes
    private/<programme>/<period>/snapshots           rows
    private/<programme>/<period>/...                 exact: tables, figures, reports, and what died
    private/.store/aside/<programme>/<period>/...    the same, where a store was put back

Who corrects a week and why stays, in `revision.json`: it holds nothing of the rows.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

from turnstile.closed_folders import closed_folders, unread
from turnstile.errors import InputError
from turnstile.ledger.records import revision_of
from turnstile.programme.calendar.release_schedule import period_containing
from turnstile.programme.spec import Programme
from turnstile.release.zone_copies import ASIDE, SNAPSHOTS, ChangedAt, changed_here
from turnstile.service_calendar import ServicePeriod, ServiceWeek, parse_period

_STAYS = frozenset({"revision.json", ".draw.lock"})
_WEEK, _ANY_WEEK = re.compile(r"\d{4}-W\d{2}"), f"{'[0-9]' * 4}-W{'[0-9]' * 2}"
_NO_END = "9999-W99"
ReadBefore = Mapping[str, Mapping[str, str]]
"""Landing patterns by programme that it released from, each with the ISO week when it last did."""


class Part(StrEnum):
    """What retention tells apart."""

    FILES = "files"  # raw, of the landing zone
    ROWS = "rows"  # made from them, with quarantine and findings
    EXACT = "exact"  # tables, figures, reports


_PRIVATE = (Part.ROWS, Part.EXACT)


@dataclass(frozen=True, slots=True)
class Kept:
    """Private data that stay or go together.

    Args:
        part: what they are.
        name: period, or the ISO week of files.
        users: programmes that read them, each with its period.
        paths: files and folders.
        written_at: when anything of them was last written, by the system's own clock; aware.
        gone: names of programmes that read them and have no file any more.
        unread: which folders of them cannot be read, and why; empty if all can.
    """

    part: Part
    name: str
    users: tuple[tuple[Programme, ServicePeriod], ...]
    paths: tuple[Path, ...]
    written_at: datetime
    gone: tuple[str, ...] = ()
    unread: str = ""


def private_data(
    programme: Programme, private: Path, changed_at: ChangedAt = changed_here, first: str = ""
) -> Iterator[Kept]:
    """Yield rows and exact data of a programme, by period.

    Args:
        programme: whose.
        private: private zone.
        changed_at: says when a file was last written, in seconds since 1970.
        first: its first period, by which it is told if nobody can see of which there are data.
    """
    for name, lists in _periods_of(programme, private, first).items():
        try:
            period = parse_period(name)
        except InputError:
            continue
        for part, listed in lists.items():
            if listed:
                paths = tuple(path for path, _ in listed)
                written, lost = _written(paths, changed_at)
                lost |= {path: why for path, why in listed if why}
                users = ((programme, period),)
                yield Kept(part, name, users, paths, written, unread=_told(lost, private))


def _told(lost: Mapping[Path, OSError], zone: Path) -> str:
    """Say what cannot be read, of folders in each other the outermost alone."""
    outermost = {path: why for path, why in lost.items() if lost.keys().isdisjoint(path.parents)}
    places = ((path.relative_to(zone), why) for path, why in outermost.items())
    return "; ".join(unread(f"{zone.name}/{place}", why) for place, why in places)


Listed = dict[Part, list[tuple[Path, OSError | None]]]
"""What stays or goes by part, each with why it cannot be read; None if it can."""


def _periods_of(programme: Programme, private: Path, first: str) -> Mapping[str, Listed]:
    """Return what lies in a programme's folders by name of its period, or of what is none.

    A folder of the programme that cannot be read itself counts to its first period.
    """
    lists = defaultdict[str, Listed](lambda: {part: [] for part in _PRIVATE})
    for folder in _children(private / programme.name, lists[first], _PRIVATE):
        _sort(folder, lists[folder.name])
    for period in _children(private / ASIDE / programme.name, lists[first], _PRIVATE):
        for folder in _children(period, lists[period.name], _PRIVATE):
            _sort(folder, lists[period.name])
    return lists


def _sort(folder: Path, lists: Listed) -> None:
    """Add rows and everything else of a period that does not stay.

    A folder that cannot be read may hold either, and keeps nothing else from being found.
    """
    for path in _children(folder, lists, _PRIVATE):
        try:
            is_revision = revision_of(path.name) is not None and path.is_dir()
        except OSError as error:
            lists[Part.EXACT].append((path, error))
            continue
        if is_revision:
            children = _children(path, lists, (Part.EXACT,))
            lists[Part.EXACT] += ((child, None) for child in children if child.name not in _STAYS)
        else:
            lists[Part.ROWS if path.name == SNAPSHOTS else Part.EXACT].append((path, None))


def _children(folder: Path, lists: Listed, parts: Iterable[Part]) -> list[Path]:
    """Return what lies in a folder, if there is one; note one that cannot be read."""
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        is_there = not isinstance(error, FileNotFoundError) or folder.is_symlink()
        for part in parts if is_there else ():
            lists[part].append((folder, error))
        return []


def landing_data(
    programmes: Iterable[Programme],
    landing: Path,
    changed_at: ChangedAt = changed_here,
    read_before: ReadBefore = MappingProxyType({}),
    firsts: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Kept]:
    """Yield the files of the landing zone by week and by who reads them, hidden ones too.

    A folder that cannot be read counts to the week that it names, or to its reader's first.

    Args:
        programmes: every one that reads files here.
        landing: landing zone.
        changed_at: says when a file was last written, in seconds since 1970.
        read_before: what programmes read, too, whatever their files say now.
        firsts: ISO week of the first period by programme, where there is one.
    """
    by_name = {programme.name: programme for programme in programmes}
    readers: defaultdict[tuple[str, Path], dict[str, None]] = defaultdict(dict)
    for name, pattern, last in _reads(by_name.values(), read_before):
        for file in _files_at(pattern, landing, firsts.get(name, "")):
            if file[0] <= last:
                readers[file][name] = None
    groups: defaultdict[tuple[str, tuple[str, ...]], list[Path]] = defaultdict(list)
    for (week, path), names in readers.items():
        groups[week, tuple(names)].append(path)
    for (week, of), paths in sorted(groups.items()):
        known = (by_name[name] for name in of if name in by_name)
        users = tuple(user for programme in known for user in _periods_with(programme, week))
        gone = tuple(name for name in of if name not in by_name)
        written, lost = _written(paths, changed_at)
        yield Kept(Part.FILES, week, users, tuple(paths), written, gone, _told(lost, landing))


def _reads(
    programmes: Iterable[Programme], read_before: ReadBefore
) -> Iterator[tuple[str, str, str]]:
    """Yield by name which landing patterns programmes read, each with its last ISO week."""
    for programme in programmes:
        for pattern in filter(None, (programme.source.landing, programme.source.marker)):
            yield programme.name, pattern, _NO_END
    for name, patterns in read_before.items():
        for pattern, last in patterns.items():
            if not Path(pattern).is_absolute():  # a link leads out, where nothing is deleted
                yield name, pattern, last


def _files_at(pattern: str, landing: Path, first: str) -> Iterator[tuple[str, Path]]:
    """Yield week and path of each file that a landing pattern names, and of each of its drafts."""
    for folder, _ in closed_folders(landing, pattern.replace("{week}", _ANY_WEEK)):
        named = _WEEK.findall(str(folder.relative_to(landing)))
        yield named[0] if named else first, folder
    seen = map(str, _found(pattern.replace("{week}", _ANY_WEEK), landing))
    for week in sorted({week for text in seen for week in _WEEK.findall(text)}):
        paths = _found(pattern.replace("{week}", week), landing)
        yield from ((week, path) for path in sorted(paths) if not _is_folder(path))


def _is_folder(path: Path) -> bool:
    """Return whether a path is known to be a folder."""
    try:
        return path.is_dir()
    except OSError:
        return False


def _found(glob: str, landing: Path) -> set[Path]:
    """Return what a glob finds, and drafts of it, whatever ending a client of a server added."""
    folder, slash, name = glob.replace("**", "*").rpartition("/")
    return {*landing.glob(glob), *landing.glob(f"{folder}{slash}.{name}.*")}


def _periods_with(programme: Programme, week: str) -> Iterator[tuple[Programme, ServicePeriod]]:
    """Yield the periods of a programme that read the files of a week."""
    try:
        days = ServiceWeek.parse(week).days
    except InputError:  # W99 is a name, and no week
        return
    for period in dict.fromkeys(period_containing(day, programme.schedule) for day in days):
        yield programme, period


def _written(paths: Sequence[Path], changed_at: ChangedAt) -> tuple[datetime, dict[Path, OSError]]:
    """Return when anything was last written, of what can be read, and which folders cannot."""
    entries, lost, last = [*paths], dict[Path, OSError](), 0.0

    def note(error: OSError) -> None:
        if not isinstance(error, NotADirectoryError | FileNotFoundError):  # a file, or it went
            lost[Path(error.filename)] = error

    for path in paths:  # no glob: one passes over a folder that cannot be listed
        for folder, folders, files in os.walk(path, onerror=note):
            entries += (Path(folder, name) for name in (*folders, *files))
    for entry in entries:
        try:
            last = max(last, changed_at(entry))
        except OSError as error:
            lost.setdefault(entry.parent, error)
    return datetime.fromtimestamp(last, UTC), lost
