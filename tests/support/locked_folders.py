"""Folders that nobody may read, whoever runs the tests: the rights of a folder stop no root."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def lock(folder: Path, patch: pytest.MonkeyPatch, *, lists: bool = False) -> None:
    """Let a folder be as of mode 000, or of a broken disk, to root as well; 600 if it lists."""

    def refusing(act: Callable[..., Any], *, itself: bool) -> Callable[..., Any]:
        def refuses(path: Any = ".", *words: Any, **options: Any) -> Any:
            place = Path(os.fsdecode(path)) if isinstance(path, (str, bytes, Path)) else Path()
            if folder in place.parents or (itself and place == folder):
                raise PermissionError(13, "Permission denied", str(path))
            return act(path, *words, **options)

        return refuses

    for name in ("listdir", "scandir"):
        patch.setattr(os, name, refusing(getattr(os, name), itself=not lists))
    for name in ("stat", "lstat"):
        patch.setattr(os, name, refusing(getattr(os, name), itself=False))
