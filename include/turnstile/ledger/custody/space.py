"""Space before a charge: a real file of the needed size, allocated in each folder and removed."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from turnstile.errors import InputError

_MIB = 2**20


def require_space(needed: Mapping[Path, int]) -> None:
    """Make sure that so many bytes can be written to each folder, by writing them.

    Args:
        needed: bytes by folder; folders that do not exist are made.

    Raises:
        InputError: a folder cannot hold them; nothing was charged.
    """
    for folder, size in needed.items():
        probe = folder / f".space-{secrets.token_hex(8)}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _fill(probe, size)
        except OSError as error:
            rule = (
                f"{error.strerror}: {-(-size // _MIB)} MiB have to be free before a draw; nothing "
                "was charged: free space or mend the rights, then run the step again"
            )
            raise InputError(where=str(folder), field="space", rule=rule) from error
        finally:
            with suppress(OSError):
                probe.unlink()


def _fill(path: Path, size: int) -> None:
    """Allocate a file for real: a full disk, a quota and a read-only folder all say no here."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, size)
        os.write(descriptor, b"\0")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
