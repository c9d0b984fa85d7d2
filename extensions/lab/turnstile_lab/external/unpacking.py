"""The texts of a file that somebody else made: plain, gzipped or zipped, and never without a bound.

A table is held in memory whole, so what unpacks to more than a large release is refused, not read.
"""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from turnstile.errors import InputError

UNPACKED_MIB = 256
_MIB = 2**20
_DAMAGES = (
    OSError,
    EOFError,
    zipfile.BadZipFile,
    zlib.error,
    ValueError,  # an archive that names a place before its own beginning, or bytes that are no text
    RuntimeError,  # an archive that is encrypted, or compressed in a way that is not known
)


def texts_of(file: Path) -> list[tuple[str, str]]:
    """Return name and text of each table in a file; none if it cannot be read.

    Raises:
        InputError: one unpacks to more than is held in memory.
    """
    try:
        return [(name, _decoded(content)) for name, content in _contents(file)]
    except _DAMAGES:
        return []


def _contents(file: Path) -> Iterator[tuple[str, bytes]]:
    """Yield name and bytes of each table in a file, unpacked."""
    content = file.read_bytes()
    if content.startswith(b"\x1f\x8b"):
        with gzip.open(io.BytesIO(content)) as unpacked:
            yield file.name, _bounded(file.name, unpacked)
    elif content.startswith(b"PK\x03\x04"):
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            for name in sorted(packed.namelist()):
                if name.lower().endswith((".csv", ".txt")):
                    with packed.open(name) as unpacked:
                        yield name, _bounded(name, unpacked)
    else:
        yield file.name, content


def _bounded(name: str, unpacked: IO[bytes] | gzip.GzipFile) -> bytes:
    """Read all of a stream, as long as it is not too much."""
    content = unpacked.read(UNPACKED_MIB * _MIB + 1)
    if len(content) > UNPACKED_MIB * _MIB:
        rule = f"unpacks to more than {UNPACKED_MIB} MiB; unpack it by hand if it is a table"
        raise InputError(where=name, field="file", rule=rule)
    return content


def _decoded(content: bytes) -> str:
    """Return text: UTF-16 by its mark, else UTF-8, else the code page of old spreadsheets."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252")
