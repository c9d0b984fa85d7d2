"""Losses of a ledger's file, each as a disk, a copy or a hand makes it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from turnstile.ledger.of_deployment import open_ledger
from turnstile.settings import Settings

PAGE = 4096


def gone(file: Path) -> None:
    for path in file.parent.glob(f"{file.name}*"):
        path.unlink()


def _cut_to_nothing(file: Path) -> None:
    gone(file)
    file.touch()


def _new(file: Path) -> None:
    gone(file)
    open_ledger(Settings.from_environment(), new=True)


def _no_database(file: Path) -> None:
    file.write_bytes(b"\xab" * file.stat().st_size)


def _torn(table: str) -> Callable[[Path], None]:
    """A disk that lost one page, the first of a table."""

    def tear(file: Path) -> None:
        with closing(sqlite3.connect(file)) as connection:
            asked = "SELECT rootpage FROM sqlite_master WHERE name = ?"
            (root,) = connection.execute(asked, (table,)).fetchone()
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        pages = bytearray(file.read_bytes())
        pages[(root - 1) * PAGE : root * PAGE] = b"\xab" * PAGE
        file.write_bytes(pages)

    return tear


LOSSES: dict[str, Callable[[Path], None]] = {
    "gone": gone,
    "cut to nothing": _cut_to_nothing,
    "a new one": _new,
    "no database": _no_database,
    "its entries": _torn("entry"),
    "its attempts": _torn("attempt"),  # which the judgement of weeks alone reads
    "its accounts": _torn("account"),
    "its leases": _torn("draw_lease"),
}
