"""Which code drew: the version of the package and a digest of its sources, for the ledger.

A version number alone says nothing of a checkout that was edited, and a commit is not known where
the code was installed or copied into an image.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

_SOURCES = Path(__file__).resolve().parents[1]
_DIGITS = 16
_KINDS = (".py", ".csv", ".txt")  # modules, and lists that they read: fields, allowed contents


@lru_cache(maxsize=1)
def code_version() -> str:
    """Return such as `0.1.0, sources 3f5a...`: of the sources as they lie on this disk."""
    return f"{version('turnstile')}, sources {sources_digest(_SOURCES)[:_DIGITS]}"


def sources_digest(folder: Path) -> str:
    """Return the SHA-256 over names and bytes of all modules below a folder, and of their lists."""
    total = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.suffix in _KINDS):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{path.relative_to(folder).as_posix()}\0{content}\n".encode())
    return total.hexdigest()
