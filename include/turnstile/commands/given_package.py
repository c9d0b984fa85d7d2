"""A folder that somebody names as a package."""

from __future__ import annotations

from pathlib import Path

from turnstile.errors import InputError
from turnstile.publishing.carried.verify_package import SUCH_AS, is_package


def require_package(folder: Path) -> None:
    """Refuse a folder that holds nothing of a package; one that lacks a part is another matter.

    Raises:
        InputError: it is no folder, or that of a programme or a period.
    """
    if not folder.is_dir():
        raise InputError(where=str(folder), field="folder", rule="is no folder; name a package")
    if not is_package(folder):
        rule = f"is no package; name the folder of a revision{SUCH_AS}"
        raise InputError(where=str(folder), field="folder", rule=rule)
