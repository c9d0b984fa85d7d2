"""What a place of files can do; a portal that is one keeps packages under their keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from turnstile.errors import StoreError
from turnstile_stores.bucket import Found

LINK = "link"
"""Tag of a link, which no store of ours makes."""


class Store(Protocol):
    """Files by path. Every call raises PortalError where the store does not answer."""

    def read(self, path: str) -> Found | None:
        """Return a file; None if there is none."""
        ...

    def tags(self, prefix: str) -> Mapping[str, str]:
        """Return the tag of every file below a path that ends in `/`; empty where none is known."""
        ...

    def create(self, path: str, content: bytes) -> None:
        """Write a file unless one stands there, whatever it holds; of several writers one wins."""
        ...

    def replace(self, path: str, content: bytes, tag: str | None) -> bool:
        """Write a file in the place of the version that was read; None: of no file.

        Returns:
            False if another version stands there meanwhile; nothing was written.
        """
        ...

    def delete(self, path: str) -> None:
        """Delete a file; one that is not there changes nothing."""
        ...


class PortalError(StoreError):
    """A portal did not answer, or not as it should; a repeat goes on where this stopped."""
