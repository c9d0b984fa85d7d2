"""Exact tables of a week as one file of the private zone, found again by its digest.

The file's name is its digest, which must not reveal the counts to somebody who guesses them: it
begins with 32 random bytes. A repeated count of the same rows keeps the file of before; the digest
stays in the private zone, and in the ledger under a key.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path

import numpy as np

from turnstile.counting.exact import ExactTable
from turnstile.durable_files import OWNER_ONLY, replace_durably
from turnstile.errors import IntegrityError

_SALT_BYTES = 32
_HEADER_END = b"\n"
_NUMBERS = np.dtype("<i8")


def save_exact(tables: Sequence[ExactTable], folder: Path, before: str = "") -> str:
    """Write all exact tables of a week and return the digest by which they are found again.

    The file appears complete or not at all, readable by its owner only. Equal counts keep the file
    of before: a hold names it, and the draw under that hold is compared with it for ever.

    Args:
        tables: in the order in which they are to be read back.
        folder: of the private zone; made if need be.
        before: digest of the last count of the same rows; empty without one.
    """
    content = b"".join(
        (
            json.dumps([_heading(table) for table in tables]).encode(),
            _HEADER_END,
            *(table.reveal_to_mechanism().astype(_NUMBERS).tobytes() for table in tables),
        )
    )
    with suppress(OSError):
        kept = _path(folder, before).read_bytes()
        if kept[_SALT_BYTES:] == content and hashlib.sha256(kept).hexdigest() == before:
            return before
    content = secrets.token_bytes(_SALT_BYTES) + content
    digest = hashlib.sha256(content).hexdigest()
    folder.mkdir(parents=True, exist_ok=True)
    replace_durably(_path(folder, digest), content, OWNER_ONLY)
    return digest


def load_exact(folder: Path, digest: str) -> tuple[ExactTable, ...]:
    """Read the tables of this digest.

    Raises:
        IntegrityError: the file is gone, or its bytes have changed.
    """
    try:
        content = _path(folder, digest).read_bytes()
    except FileNotFoundError:
        raise IntegrityError(
            f"no exact tables of digest {digest[:12]} in the private zone; count the week again"
        ) from None
    if hashlib.sha256(content).hexdigest() != digest:
        raise IntegrityError(
            f"exact tables of digest {digest[:12]} were altered after they were counted; "
            "find out by whom before counting again"
        )
    return _decoded(content)


def _heading(table: ExactTable) -> list[str | int | None]:
    """Describe a table without its counts."""
    day = None if table.service_date is None else table.service_date.isoformat()
    return [table.table, table.statistic, day, table.cells]


def _decoded(content: bytes) -> tuple[ExactTable, ...]:
    """Split content whose digest was checked."""
    header_end = content.index(_HEADER_END, _SALT_BYTES)
    numbers = np.frombuffer(content, dtype=_NUMBERS, offset=header_end + len(_HEADER_END))
    tables: list[ExactTable] = []
    for name, statistic, day, cells in json.loads(content[_SALT_BYTES:header_end]):
        service_date = None if day is None else date.fromisoformat(day)
        counts, numbers = numbers[:cells].astype(np.int64), numbers[cells:]
        tables.append(ExactTable(name, statistic, service_date, counts))
    return tuple(tables)


def _path(folder: Path, digest: str) -> Path:
    """Name the file."""
    return folder / f"exact-{digest}.bin"
