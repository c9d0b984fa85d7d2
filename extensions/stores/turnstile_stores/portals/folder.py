"""A portal that is a folder, as a web server shows it; mounted file systems too."""

from __future__ import annotations

import re
from pathlib import Path

from turnstile.durable_files import (
    DRAFT,
    create_durably,
    delete_for_good,
    exclusively,
    replace_durably,
)
from turnstile.release.zones import digest_of
from turnstile_stores.bucket import Found
from turnstile_stores.portals.store import LINK, PortalError

_DRAFT = re.compile(DRAFT)


class FolderStore:
    """A folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._name = folder.as_uri()

    def read(self, path: str) -> Found | None:
        """Return a file, a link with nothing in it; None if there is none."""
        file = self._folder / path
        if file.is_symlink():
            return Found(b"", LINK)
        try:
            content = file.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise PortalError(self._name, f"cannot read {path} ({error.strerror})") from None
        return Found(content, digest_of(content))

    def tags(self, prefix: str) -> dict[str, str]:
        """Return every file and link below a path; what a file holds its bytes alone say."""
        below = self._folder / prefix
        return {
            path.relative_to(self._folder).as_posix(): LINK if path.is_symlink() else ""
            for path in (below, *below.rglob("*"))
            if (path.is_symlink() or path.is_file()) and not _DRAFT.fullmatch(path.name)
        }

    def create(self, path: str, content: bytes) -> None:
        """Write a file unless one stands there."""
        try:
            self._place(path)
            create_durably(self._folder / path, content)
        except OSError as error:
            raise PortalError(self._name, f"cannot write {path} ({error.strerror})") from None

    def replace(self, path: str, content: bytes, tag: str | None) -> bool:
        """Write a file in the place of the version that was read."""
        try:
            self._place(path)
            with exclusively(self._folder / ".turnstile.lock"):
                stored = self.read(path)
                if (stored.tag if stored else None) != tag:
                    return False
                replace_durably(self._folder / path, content)
        except OSError as error:
            raise PortalError(self._name, f"cannot write {path} ({error.strerror})") from None
        return True

    def delete(self, path: str) -> None:
        """Delete a file."""
        delete_for_good(self._folder / path)

    def _place(self, path: str) -> None:
        """Make the folder of a file."""
        (self._folder / path).parent.mkdir(parents=True, exist_ok=True)
