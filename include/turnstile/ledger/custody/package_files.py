"""Whether the files of a package are those of its manifest: by name, size and SHA-256."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from turnstile.durable_files import sha256_of
from turnstile.ledger.custody.folders import all_below, content_of
from turnstile.ledger.custody.traces import MANIFEST


def file_problems(folder: Path) -> tuple[str, ...]:
    """Name what in a package is not as its manifest says; empty if all is."""
    path = folder / MANIFEST
    if not path.exists():
        return (f"{MANIFEST} is missing",)
    try:
        listed = {entry["path"]: entry["sha256"] for entry in json.loads(content_of(path))["files"]}
    except (ValueError, KeyError, TypeError):
        return (f"{MANIFEST} cannot be read",)
    files = dict(_files(folder))
    problems = [f"{name} is missing" for name in sorted(listed.keys() - files.keys())]
    problems += [f"{name} is not listed" for name in sorted(files.keys() - listed.keys())]
    problems += [
        f"{name} was altered"
        for name in sorted(files.keys() & listed.keys())
        if not files[name].is_file(follow_symlinks=False)
        or sha256_of(Path(files[name])) != listed[name]
    ]
    return tuple(problems)


def _files(folder: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield the files of a package by relative path, in order, but for the manifest."""
    for name, entry in all_below(folder):
        if not entry.is_dir(follow_symlinks=False) and name != MANIFEST:
            yield name, entry
