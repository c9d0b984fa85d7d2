"""An SQLite file that a disk or a copy damaged: what is wrong, and which entries still read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path

from turnstile.ledger.database.store import is_damage, reading_uri
from turnstile.ledger.encoding import digest_of
from turnstile.ledger.entries import Entry, read_entry
from turnstile.ledger.fold import Fold

_BESIDE = ("-wal", "-shm")
_ROW = "SELECT record, hash FROM entry WHERE rowid = ?"
"""By the table's own tree, which grows as entries do: the index of numbers may be what is broken,
and a search without it ends at the first page that is."""
_LEAST = 2 * 64
"""Bytes of an entry at least: its hash, and in its record that of the one before."""


def damage_in(file: Path) -> str:
    """Return the first thing that is wrong with a database; empty if it is sound or not there."""
    if not file.exists():
        return ""
    if not file.stat().st_size:
        return "it is empty"
    try:
        with closing(_opened(file)) as connection:
            (report,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # of a name in its schema
        if not is_damage(error):
            raise
        return str(error)
    return "" if report == "ok" else str(report).splitlines()[-1]


def entries_left(file: Path) -> Iterator[Entry]:
    """Yield the entries that a damaged database still holds as they were written, in order.

    Whether they follow each other is for the reader to check: there may be holes.
    """
    parts = [file, file.with_name(f"{file.name}-wal")]
    # What the last page says of the last entry may be what is broken.
    most = sum(part.stat().st_size for part in parts if part.is_file()) // _LEAST
    with suppress(sqlite3.DatabaseError, UnicodeDecodeError), closing(_opened(file)) as connection:
        for number in range(1, 1 + most):
            with suppress(sqlite3.DatabaseError, ValueError, TypeError, AttributeError):
                entry = read_entry(*connection.execute(_ROW, (number,)).fetchone())
                is_numbered = type(entry.sequence) is int and isinstance(entry.body, dict)
                if is_numbered and digest_of(entry.record) == entry.hash:
                    yield entry


def first_altered(file: Path) -> tuple[int, int]:
    """Return the number of the first entry that is not what its hash says, and how many there are.

    0 if all are; a file that SQLite finds sound may hold other texts than were written. One without
    tables holds nothing: whoever was to make them died.
    """
    fold, number = Fold(), 0
    with closing(_opened(file)) as connection:
        if connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None:
            return 0, 0
        (length,) = connection.execute("SELECT count(*) FROM entry").fetchone()
    for number, entry in enumerate(islice(entries_left(file), length), 1):
        if any(fold.follow(entry)):
            return number, length
    return (number + 1 if number < length else 0), length


def newest_aside(file: Path) -> Path | None:
    """Return where a damaged database of this place was set aside last; None if none ever was."""
    paths = file.parent.glob(f"{file.name}.damaged-*")
    return max((path for path in paths if not path.name.endswith(_BESIDE)), default=None)


def set_aside(file: Path, aside: Path) -> None:
    """Rename a database and what SQLite keeps beside it; a repeat goes on where one stopped."""
    for ending in ("", *_BESIDE):
        beside = file.with_name(file.name + ending)
        if beside.exists():
            beside.rename(aside.with_name(aside.name + ending))


def _opened(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(reading_uri(file.resolve()), uri=True)
