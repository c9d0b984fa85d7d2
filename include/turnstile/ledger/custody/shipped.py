"""Entries shipped to a witness: each a file of its own, written once, in the order of the chain.

    <witness>/witness.id                                random; distinguishes this folder from an
    empty one <witness>/entries/000000000042.json                 {"hash": ..., "record": ...}

A lost tail of the ledger is rebuilt from them bit by bit; and of two copies of one ledger, the
second that ships an entry under a number finds the other's there.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from turnstile.durable_files import create_durably
from turnstile.errors import IntegrityError
from turnstile.ledger.custody.notes import HashAt
from turnstile.ledger.encoding import canonical, digest_of
from turnstile.ledger.entries import Entry, read_entry
from turnstile.ledger.records import Finding

_DIGITS = 12
_ID = "witness.id"
_SUFFIX = ".json"
_NO_ENTRY = "holds no entry; restore it, or take it away: what the ledger holds comes again"


def witness_id(folder: Path) -> str | None:
    """Return the name of a witness; None of a folder that is none, or not mounted."""
    try:
        return (folder / _ID).read_text("utf-8").strip() or None
    except OSError:
        return None


def make_witness(folder: Path) -> str:
    """Make a folder a witness, unless it is one, and return its name.

    Raises:
        OSError: the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    create_durably(folder / _ID, f"{secrets.token_hex(16)}\n".encode())
    name = witness_id(folder)
    if name is None:
        raise IntegrityError(f"{folder / _ID} is empty; find out who wrote it, then remove it")
    return name


def last_shipped(folder: Path) -> int:
    """Return the number of the last entry that a witness holds, 0 without any."""
    return max(_numbers(folder), default=0)


def first_gap(folder: Path) -> int:
    """Return the number of the first entry that a witness does not hold."""
    numbers, sequence = set(_numbers(folder)), 1
    while sequence in numbers:
        sequence += 1
    return sequence


def ship(folder: Path, entries: Iterable[Entry]) -> None:
    """Write entries to a witness, unless they are there.

    Raises:
        OSError: the folder cannot be written.
        IntegrityError: another entry stands there under the number: another copy of this ledger
            writes to the same witness; or none, as a loss of power leaves it.
    """
    for entry in entries:
        path = _path(folder, entry.sequence)
        path.parent.mkdir(parents=True, exist_ok=True)
        line = canonical({"hash": entry.hash, "record": entry.record}) + "\n"
        if not create_durably(path, line.encode()) and path.read_bytes() != line.encode():
            try:
                shipped_entry(folder, entry.sequence)
            except ValueError:
                raise IntegrityError(f"{path} {_NO_ENTRY}") from None
            raise IntegrityError(
                f"entry {entry.sequence} is not the one that {path} holds: another copy of this "
                "ledger lives on with the same witness; stop one of them, keep both, and run "
                "turnstile ledger verify"
            )


def shipped_entry(folder: Path, sequence: int) -> Entry:
    """Read one entry of a witness.

    Raises:
        ValueError: the file holds no entry.
        OSError: it cannot be read.
    """
    written = json.loads(_path(folder, sequence).read_text("utf-8"))
    try:
        return read_entry(written["record"], written["hash"])
    except (KeyError, TypeError) as error:
        raise ValueError("not an entry") from error


def shipped_entries(folder: Path, *, after: int, left: Mapping[int, Entry]) -> Iterator[Entry]:
    """Yield the entries of a witness after a number in order, up to the first gap.

    Args:
        folder: of the witness.
        after: number of the last entry that is not asked for.
        left: entries by number from elsewhere, for those that it lacks or that cannot be read.

    Raises:
        ValueError: a file holds no entry.
    """
    numbers = set(_numbers(folder))
    sequence = after + 1
    while sequence in numbers or sequence in left:
        try:
            yield shipped_entry(folder, sequence)
        except (OSError, ValueError):
            if sequence not in left:
                raise
            yield left[sequence]
        sequence += 1


def newest_findings(folder: Path, last: int, hash_at: HashAt) -> Iterator[Finding]:
    """Compare the last entry of a witness with the ledger: enough before a charge.

    Args:
        folder: of the witness.
        last: number of its last entry, read before the ledger: others write meanwhile.
        hash_at: looks up the hash of an entry of the ledger.
    """
    if last:
        yield from _compared(folder, last, hash_at)


def entry_findings(folder: Path, last: int, hash_at: HashAt, head: int) -> Iterator[Finding]:
    """Compare every entry of a witness with the ledger.

    Args:
        folder: of the witness.
        last: number of its last entry, read before the ledger: others write meanwhile.
        hash_at: looks up the hash of an entry of the ledger.
        head: number of the ledger's last entry.
    """
    numbers = sorted(number for number in _numbers(folder) if number <= last)
    missing = sorted(set(range(1, max(numbers, default=0) + 1)) - set(numbers))
    for sequence in missing[:1]:
        yield Finding("witness", sequence, f"{folder} holds later entries, but not this one")
    for sequence in numbers:
        yield from _compared(folder, sequence, hash_at)
        if sequence > head:
            break  # one sentence says that the ledger is behind


def _compared(folder: Path, sequence: int, hash_at: HashAt) -> Iterator[Finding]:
    """Compare one entry of a witness with the ledger's."""
    path = _path(folder, sequence)
    try:
        written = json.loads(path.read_bytes())
        record, shipped_hash = str(written["record"]), str(written["hash"])
    except (OSError, ValueError, KeyError, TypeError):
        yield Finding("witness", sequence, f"{path} {_NO_ENTRY}")
        return
    ledger_hash = hash_at(sequence)
    if ledger_hash is None:
        problem = f"the ledger ends before it, but {path} holds it: an old copy was restored"
        yield Finding("witness", sequence, problem)
    elif ledger_hash != shipped_hash or digest_of(record) != shipped_hash:
        problem = f"is not the entry that {path} holds: the ledger's history was replaced"
        yield Finding("witness", sequence, problem)


def _numbers(folder: Path) -> Iterator[int]:
    """Yield the numbers of the entries that a witness holds, in any order."""
    try:
        names = os.listdir(folder / "entries")  # noqa: PTH208 - thousands of names, no paths
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in names:
        stem = name.removesuffix(_SUFFIX)
        if stem != name and stem.isdigit():
            yield int(stem)


def _path(folder: Path, sequence: int) -> Path:
    """Return where an entry goes."""
    return folder / "entries" / f"{sequence:0{_DIGITS}d}{_SUFFIX}"
