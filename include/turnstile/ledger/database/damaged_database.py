"""An SQLite file that a disk or a copy damaged: what is wrong, and what it still holds."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Any

from turnstile.ledger.database.database_tables import ATTEMPT, ENTRY, HEAD
from turnstile.ledger.database.pages_of_a_file import rows_in
from turnstile.ledger.database.store import is_damage, reading_uri
from turnstile.ledger.encoding import digest_of
from turnstile.ledger.entries import Entry, read_entry
from turnstile.ledger.fold import Fold

_BESIDE = ("-wal", "-shm")
_OF_HEAD, _OF_ENTRY, _OF_ATTEMPT = (tuple(t.columns.keys()) for t in (HEAD, ENTRY, ATTEMPT))
"""Columns of a table: pages do not say whose rows they hold."""


@dataclass(frozen=True, slots=True)
class Remains:
    """What a damaged database still holds; nothing of one that is sound.

    Args:
        entries: as they were written, by number; there may be holes.
        last: number of the last entry that it held; None if what says so is lost, too.
        attempts: rows of its table of attempts; as bodies of entries name them, too.
    """

    entries: tuple[Entry, ...] = ()
    last: int | None = 0
    attempts: tuple[Mapping[str, Any], ...] = ()


def damage_in(file: Path) -> str:
    """Return the first thing that is wrong with a database; empty if it is sound or not there.

    A look without locks takes a write and its checkpoint for damage, so what it finds is told if
    one with locks, where the folder takes what SQLite keeps beside the file, finds damage as well.
    """
    if not file.exists():
        return ""
    if not file.stat().st_size:
        return "it is empty"
    damage = _damage_by_a_look(file, locks=False)
    if damage:
        with suppress(sqlite3.OperationalError):  # a full disk takes no file of locks
            return _damage_by_a_look(file, locks=True)
    return damage


def _damage_by_a_look(file: Path, *, locks: bool) -> str:
    """Return the first thing that one look finds wrong with a database."""
    try:
        with closing(_opened(file, locks=locks)) as connection:
            (report,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # of a name in its schema
        if not is_damage(error):
            raise
        return str(error)
    return "" if report == "ok" else str(report).splitlines()[-1]


def remains_of(file: Path) -> Remains:
    """Return what a damaged database still holds, wherever in the file that is.

    Whether the entries follow each other is for the reader to check.
    """
    entries: dict[str, Entry] = {}
    heads, attempts = list[int](), list[Mapping[str, Any]]()
    for row in rows_in(file):
        if len(row) == len(_OF_ENTRY):
            if entry := _entry(*row[-2:]):
                entries[entry.hash] = entry
        elif len(row) == len(_OF_ATTEMPT):
            of = dict(zip(_OF_ATTEMPT, row, strict=True))
            attempts.append(of | {"attempt": of["attempt_id"], "key": of["release_key"]})
        elif len(row) == len(_OF_HEAD) and row[0] is None and type(row[1]) is int:
            heads.append(row[1])  # SQLite keeps its key beside the row
    by_number = sorted(entries.values(), key=lambda entry: entry.sequence)
    return Remains(tuple(by_number), max(heads, default=None), tuple(attempts))


def first_altered(file: Path) -> tuple[int, int]:
    """Return the number of the first entry that is not what its hash says, and how many there are.

    0 if all are; a file that SQLite finds sound may hold other texts than were written. One without
    tables holds nothing: whoever was to make them died.
    """
    fold = Fold()
    with closing(_opened(file)) as connection:
        connection.text_factory = partial(str, encoding="utf-8", errors="replace")
        if connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None:
            return 0, 0
        rows = connection.execute("SELECT record, hash FROM entry ORDER BY rowid").fetchall()
    for number, row in enumerate(rows, 1):
        entry = _entry(*row)
        if entry is None or any(fold.follow(entry)):
            return number, len(rows)
    return 0, len(rows)


def _entry(record: object, written_hash: object) -> Entry | None:
    """Read an entry that is what its hash says."""
    try:
        if digest_of(str(record)) != written_hash:
            return None
        entry = read_entry(str(record), str(written_hash))
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None
    return entry if type(entry.sequence) is int and isinstance(entry.body, dict) else None


def newest_aside(file: Path) -> Path | None:
    """Return where a damaged database of this place was set aside last; None if none ever was."""
    paths = file.parent.glob(f"{file.name}.damaged-*")
    return max((path for path in paths if not path.name.endswith(_BESIDE)), default=None)


def place_aside(file: Path, now: datetime) -> Path:
    """Name where a damaged database goes: a place of its own, whatever was set aside before."""
    place = file.with_name(f"{file.name}.damaged-{now:%Y%m%dT%H%M%S}")
    others = (place.with_name(f"{place.name}-{number}") for number in count(1))
    return next(path for path in chain([place], others) if not path.exists())


def set_aside(file: Path, aside: Path) -> None:
    """Rename a database and what SQLite keeps beside it; a repeat goes on where one stopped."""
    for ending in ("", *_BESIDE):
        beside = file.with_name(file.name + ending)
        if beside.exists():
            beside.rename(aside.with_name(aside.name + ending))


def _opened(file: Path, *, locks: bool = False) -> sqlite3.Connection:
    return sqlite3.connect(reading_uri(file.resolve(), locks=locks), uri=True)
