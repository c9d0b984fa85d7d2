"""Folders that cannot be listed or entered: told, and never passed over, as a glob does."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def closed_folders(landing: Path, glob: str) -> Iterator[tuple[Path, OSError]]:
    """Yield each folder on a glob's way that cannot be listed or entered, and what the system said.

    A glob passes over them in silence: of a week in several folders the rest would be published.
    """
    folders = glob.split("/")[:-1]
    for depth in range(len(folders) + 1):
        way = "/".join(folders[:depth])
        for folder in landing.glob(way) if way else (landing,):
            try:
                os.scandir(folder).close()
                (folder / os.pardir).stat()
            except (FileNotFoundError, NotADirectoryError):  # it went, or is a file
                continue
            except OSError as error:
                yield folder, error


def unread(place: str, error: OSError) -> str:
    """Say that a folder cannot be read.

    Args:
        place: its zone, and where it is in it.
        error: what the system said.
    """
    why = error.strerror or type(error).__name__
    return f"{place} cannot be read ({why}); mend its rights or the disk"
