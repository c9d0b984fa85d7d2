"""The manifest of a package: every file with its size and SHA-256, and how a package is checked."""

from __future__ import annotations

import json
from pathlib import Path

from turnstile.release.zones import digest_of

MANIFEST = "manifest.json"


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
    return (json.dumps(content, indent=1, sort_keys=True) + "\n").encode()


def differences(folder: Path) -> tuple[str, ...]:
    """Name what in a package is not as its manifest says; empty if all is."""
    path = folder / MANIFEST
    if not path.exists():
        return (f"{MANIFEST} is missing",)
    try:
        listed = {entry["path"]: entry for entry in json.loads(path.read_bytes())["files"]}
    except (ValueError, KeyError, TypeError):
        return (f"{MANIFEST} cannot be read",)
    found = dict(_contents(folder))
    problems = [f"{name} is missing" for name in sorted(listed.keys() - found.keys())]
    problems += [f"{name} is not listed" for name in sorted(found.keys() - listed.keys())]
    problems += [
        f"{name} was altered"
        for name in sorted(found.keys() & listed.keys())
        if digest_of(found[name]) != listed[name]["sha256"]
    ]
    return tuple(problems)


def _contents(folder: Path) -> list[tuple[str, bytes]]:
    """Return the files of a package by relative path, in order, but for the manifest."""
    return [
        (path.relative_to(folder).as_posix(), path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.relative_to(folder).as_posix() != MANIFEST
    ]
