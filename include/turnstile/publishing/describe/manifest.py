"""The manifest of a package: every file with its size and SHA-256, and how a package is checked."""

from __future__ import annotations

from pathlib import Path

from turnstile.ledger.custody.package_files import file_problems as differences
from turnstile.ledger.custody.traces import MANIFEST
from turnstile.publishing.written_text import json_bytes
from turnstile.release.zones import digest_of

__all__ = ["MANIFEST", "differences", "manifest_bytes"]


def manifest_bytes(folder: Path, *, key: str, sealed_digest: str) -> bytes:
    """Return the manifest of the files in a folder.

    Args:
        folder: package without its manifest.
        key: release key, `opal/2016-W30/r0`.
        sealed_digest: SHA-256 of the sealed bytes that the package is made from.
    """
    files = [
        {"path": name, "bytes": len(content), "sha256": digest_of(content)}
        for name, content in _contents(folder)
    ]
    content = {"key": key, "sealed_sha256": sealed_digest, "files": files}
    return json_bytes(content)


def _contents(folder: Path) -> list[tuple[str, bytes]]:
    """Return the files of a package by relative path, in order, but for the manifest."""
    return [
        (path.relative_to(folder).as_posix(), path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.relative_to(folder).as_posix() != MANIFEST
    ]
