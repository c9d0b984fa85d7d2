"""What lies in the folders of zones and witnesses, listed in order.

Every charge lists all of them (PRIVACY 6.2), so ten years of releases must not take seconds. A
folder that cannot be read is an error: what is not seen would count as not there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from operator import attrgetter
from pathlib import Path

from turnstile.errors import InputError
from turnstile.ledger.records import revision_of


def listed(folder: str | Path) -> list[os.DirEntry[str]]:
    """Return what a folder holds, by name; nothing if there is no such folder.

    Raises:
        InputError: it cannot be read.
    """
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=attrgetter("name"))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        rule = f"{error.strerror}; what lies there has to be read before a charge: make it readable"
        raise InputError(where=str(folder), field="folder", rule=rule) from error


def all_below(
    folder: str | Path, name: str = "", *, closed: Callable[[str], bool] = lambda _: False
) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield everything below a folder by its relative path, in order; no link is followed.

    Args:
        folder: that is gone through.
        name: what its paths begin with.
        closed: says of the path of a folder that nobody goes into it.

    Raises:
        InputError: a folder cannot be read.
    """
    for entry in listed(folder):
        path = f"{name}{entry.name}"
        yield path, entry
        if entry.is_dir(follow_symlinks=False) and not closed(path):
            yield from all_below(entry.path, f"{path}/", closed=closed)


def content_of(path: str | Path) -> bytes:
    """Return what a small file holds, at a third of the cost of a buffered one.

    A pipe that somebody put there holds nothing, and nobody waits for it.

    Raises:
        OSError: it cannot be read.
    """
    with open(path, "rb", buffering=0, opener=_without_waiting) as file:
        return file.read() or b""


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def period_folders(zone: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield `opal/2016-W30` and folder of every period of a zone, in order.

    Raises:
        InputError: a folder cannot be read.
    """
    for programme in listed(zone):
        if programme.is_dir():
            for period in listed(programme.path):
                if period.is_dir(follow_symlinks=False):
                    yield f"{programme.name}/{period.name}", period


def release_folders(zone: Path) -> Iterator[tuple[str, Path]]:
    """Yield release key and folder of everything that a zone holds, in order.

    Raises:
        InputError: a folder cannot be read.
    """
    for name, period in period_folders(zone):
        for release in listed(period.path):
            if revision_of(release.name) is not None and release.is_dir():
                yield f"{name}/{release.name}", Path(release.path)


def package_of(path: str) -> str | None:
    """Return the folder of a release that a path of a zone is, or lies in; None if in none.

    Examples:
        >>> package_of("opal/2016-W30/r0"), package_of("opal/2016-W30/r0/data/day.csv")
        ('opal/2016-W30/r0', 'opal/2016-W30/r0')
        >>> package_of("opal/2016-W30/checkpoint-r0.note")
    """
    programme, _, rest = path.partition("/")
    period, _, rest = rest.partition("/")
    release = rest.partition("/")[0]
    return None if revision_of(release) is None else f"{programme}/{period}/{release}"
