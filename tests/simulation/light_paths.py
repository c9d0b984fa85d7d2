"""What a simulated world asks of paths most often, found once for each name.

The same answers as pathlib's, which takes a sixth of a world's time for them. A path never changes,
so the same text may be the same path.
"""

# ruff: noqa: PTH110, PTH112, PTH113, PTH123 - in the place of pathlib
from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PosixPath, PurePath
from typing import Any
from unittest.mock import patch

_REAL_NEW, _REAL_JOIN, _REAL_MKDIR = Path.__new__, PurePath.__truediv__, Path.mkdir
_REAL_READ_TEXT = Path.read_text
_MADE: dict[str, PosixPath] = {}
_JOINED: dict[tuple[str, str], Any] = {}
_AT_MOST = 50_000


def patches() -> Iterator[Any]:
    """Yield what takes the place of methods."""
    yield patch.object(Path, "__new__", _new)
    yield patch.object(PurePath, "__truediv__", _joined)
    yield patch.object(PurePath, "__fspath__", PurePath.__str__)
    yield patch.object(Path, "mkdir", _made)
    yield patch.object(Path, "exists", lambda path: os.path.exists(str(path)))
    yield patch.object(Path, "is_dir", lambda path: os.path.isdir(str(path)))
    yield patch.object(Path, "is_file", lambda path: os.path.isfile(str(path)))


def _new(cls: type, *parts: Any, **more: Any) -> Any:
    """Take a text apart once."""
    if cls is not Path or len(parts) != 1 or parts[0].__class__ is not str:
        return _REAL_NEW(cls, *parts, **more)
    made = _MADE.get(parts[0])
    if made is None:
        if len(_MADE) > _AT_MOST:
            _MADE.clear()
        made = _MADE[parts[0]] = _REAL_NEW(PosixPath, parts[0])
    return made


def _joined(self: Any, key: Any) -> Any:
    """Join two names once."""
    if key.__class__ is not str or self.__class__ is not PosixPath:
        return _REAL_JOIN(self, key)
    try:
        asked = self._str, key
    except AttributeError:  # nobody asked for its text yet
        asked = str(self), key
    made = _JOINED.get(asked)
    if made is None:
        if len(_JOINED) > _AT_MOST:
            _JOINED.clear()
        made = _JOINED[asked] = _REAL_JOIN(self, key)
    return made


def read_bytes(self: Path) -> bytes:
    """Read a file whole, without a buffer that nobody needs."""
    with open(self, "rb", buffering=0) as file:
        return bytes(file.read())


def read_text(self: Path, encoding: str | None = None, errors: str | None = None) -> str:
    """Read a text of one kind of lines so, too."""
    if encoding != "utf-8" or errors is not None:
        return _REAL_READ_TEXT(self, encoding, errors)
    text = read_bytes(self).decode()
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _made(self: Path, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:  # noqa: FBT001, FBT002 - as pathlib has it
    """Make a folder, unless it is there and may be."""
    if not (exist_ok and os.path.isdir(str(self))):
        _REAL_MKDIR(self, mode, parents, exist_ok)
