"""An SQLite file that a disk or a copy damaged: what is wrong, and which entries still read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from turnstile.ledger.database.store import is_damage, reading_uri
from turnstile.ledger.encoding import digest_of
from turnstile.ledger.entries import Entry, read_entry
from turnstile.ledger.fold import Fold

_BESIDE = ("-wal", "-shm")
_ROW = "SELECT record, hash FROM entry WHERE rowid = ?"
"""By the table's own tree, which grows as entries do: the index of numbers may be what is broken,
and a search without it ends at the first page that is."""
_ATTEMPT = (
    "SELECT attempt_id AS attempt, release_key AS key, state, artefact_digest, manifest_digest "
    "FROM attempt WHERE rowid = ?"
)
_HEAD = "SELECT sequence FROM head WHERE rowid = ?"
_LEAST = 2 * 64
"""Bytes of an entry at least: its hash, and in its record that of the one before."""


@dataclass(frozen=True, slots=True)
class Remains:
    """What a damaged database still holds; nothing of one that is sound.

    Args:
        entries: as they were written, by number; there may be holes.
        last: number of the last entry that it held; None if what says so is lost, too.
        attempts: rows of its table of attempts: name, key, state and digests.
    """

    entries: tuple[Entry, ...] = ()
    last: int | None = 0
    attempts: tuple[Mapping[str, Any], ...] = ()


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
    for record, entry_hash in _rows(file, _ROW):
        with suppress(ValueError, TypeError, AttributeError):
            entry = read_entry(record, entry_hash)
            is_numbered = type(entry.sequence) is int and isinstance(entry.body, dict)
            if is_numbered and digest_of(entry.record) == entry.hash:
                yield entry


def remains_of(file: Path) -> Remains:
    """Return what a damaged database still holds."""
    head = next(_rows(file, _HEAD), None)
    last = None if head is None or type(head["sequence"]) is not int else head["sequence"]
    return Remains(tuple(entries_left(file)), last, tuple(map(dict, _rows(file, _ATTEMPT))))


def _rows(file: Path, query: str) -> Iterator[sqlite3.Row]:
    """Yield the rows of a table that still read, each asked for by its number."""
    parts = [file, file.with_name(f"{file.name}-wal")]
    # What the last page says of the last row may be what is broken.
    most = sum(part.stat().st_size for part in parts if part.is_file()) // _LEAST
    with suppress(sqlite3.DatabaseError, UnicodeDecodeError), closing(_opened(file)) as connection:
        connection.row_factory = sqlite3.Row
        for number in range(1, 1 + most):
            with suppress(sqlite3.DatabaseError):
                row = connection.execute(query, (number,)).fetchone()
                if row is not None:
                    yield row


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
