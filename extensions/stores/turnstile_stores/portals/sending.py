"""Sends a release to a store and verifies it there: what is not read back as it was is not there.

The digests go first, so of two publishers with different bytes under one key only one gets past
them; the manifest goes last, so whoever finds one finds a whole package. Files of a release are
created, never replaced, but for the beginning of themselves; a repeat writes what is missing.
"""

from __future__ import annotations

import json
from pathlib import Path

from turnstile.errors import IntegrityError
from turnstile.publishing.describe.manifest import MANIFEST, differences
from turnstile.publishing.describe.statement import SUMS
from turnstile_stores.portals.store import PortalError, Store


def files_of(package: Path) -> tuple[str, ...]:
    """Return the files of a package, its digests first, the manifest last.

    Raises:
        IntegrityError: it is not as its manifest says.
    """
    if problems := differences(package):
        raise IntegrityError(f"{package}: {problems[0]}; nothing was sent, restore the package")
    listed = json.loads((package / MANIFEST).read_bytes())["files"]
    names = sorted((entry["path"] for entry in listed), key=lambda name: (name != SUMS, name))
    return (*names, MANIFEST)


def send_release(store: Store, portal: str, package: Path, key: str) -> None:
    """Create every file of a package in a store, and read each of them back.

    Args:
        store: where to.
        portal: its name.
        package: folder.
        key: `opal/2016-W30/r0`, its folder in the store.

    Raises:
        IntegrityError: the store holds other bytes under one of the names.
        PortalError: it does not answer, or does not hold what it took.
    """
    for name in files_of(package):
        path, content = f"{key}/{name}", (package / name).read_bytes()
        store.create(path, content)
        stored = store.read(path)
        if stored is not None and stored.content != content and content.startswith(stored.content):
            store.replace(path, content, stored.tag)  # a store that keeps what was cut off
        _require_same(store, portal, package, key, name)


def verify_release(store: Store, portal: str, package: Path, key: str) -> None:
    """Read every file of a package back from a store.

    Raises:
        IntegrityError: the store holds other bytes under one of the names.
        PortalError: it does not answer, or lacks a file.
    """
    for name in files_of(package):
        _require_same(store, portal, package, key, name)


def _require_same(store: Store, portal: str, package: Path, key: str, name: str) -> None:
    """Compare a file in a store with that of a package."""
    stored = store.read(f"{key}/{name}")
    if stored is None:
        raise PortalError(portal, f"{key}/{name} is not there")
    if stored.content != (package / name).read_bytes():
        raise IntegrityError(
            f"{portal}: {key}/{name} holds other bytes than the release; a release never "
            "changes: find out who put them there, move them away, then run this again"
        )
