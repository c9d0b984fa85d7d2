"""Which code drew: the version of the package and a digest of its sources, for the ledger.

A version number alone says nothing of a checkout that was edited, and a commit is not known where
the code was installed or copied into an image. What was found about the code itself is kept for the
next release here too; nothing of it says anything of data, and a file's name is the digest of all
that decides its content.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from turnstile.durable_files import EVERYBODY_READS, replace_durably

T = TypeVar("T")

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


def kept_name(of: str) -> str:
    """Return the digest that names what was found of something."""
    return hashlib.sha256(of.encode()).hexdigest()


def kept_or_found(
    path: Path, find: Callable[[], T], *, written: Callable[[T], Any], read: Callable[[Any], T]
) -> T:
    """Return what stands in a file, or find it and write it there where its folder may be made.

    Args:
        path: of the file; its folder is made where that one's folder is.
        find: what costs much.
        written: found -> plain values.
        read: plain values -> found; raises where they are none of ours.
    """
    with suppress(OSError, ValueError, KeyError, TypeError, IndexError):
        return read(json.loads(path.read_bytes()))
    found = find()
    if path.parent.parent.is_dir():
        with suppress(OSError):
            path.parent.mkdir(exist_ok=True)
            content = json.dumps(written(found)) + "\n"
            replace_durably(path, content.encode(), EVERYBODY_READS)
    return found
