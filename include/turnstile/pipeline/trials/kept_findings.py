"""What was found about the code itself, kept so that the next release need not find it again.

Nothing kept says anything of data. A file's name is the digest of all that decides its content.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from turnstile.durable_files import EVERYBODY_READS, replace_durably

T = TypeVar("T")


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
    finding = find()
    if path.parent.parent.is_dir():
        with suppress(OSError):
            path.parent.mkdir(exist_ok=True)
            content = json.dumps(written(finding)) + "\n"
            replace_durably(path, content.encode(), EVERYBODY_READS)
    return finding
