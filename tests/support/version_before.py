"""Versions before this one, as the checkout's history has them."""

from __future__ import annotations

import io
import re
import subprocess
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KINDS = "include/turnstile/ledger/entries.py"
_DAY_S = 86_400


def version_before(folder: Path) -> bool:
    """Unpack the code of a day ago, to which an upgrade may be taken back.

    Returns:
        False where this checkout has no history to take it from.
    """
    newest = _git("log", "-1", "--format=%ct").decode().strip()
    until = f"--before={int(newest) - _DAY_S}" if newest else "--before=0"
    return _unpack(_git("log", "-1", "--format=%H", until).decode().strip(), folder)


def version_of_fewer_kinds(folder: Path, kinds: set[str]) -> bool:
    """Unpack the last code that did not know all of some kinds of ledger entries.

    Returns:
        False where this checkout has no history to take it from.
    """
    changes = _git("log", "--format=%H", "--", KINDS).decode().split()
    parents = (f"{commit}^" for commit in changes)
    fewer = (p for p in parents if not kinds <= _kinds(_git("show", f"{p}:{KINDS}").decode()))
    return _unpack(next(fewer, ""), folder)


def _unpack(commit: str, folder: Path) -> bool:
    kept = _git("archive", commit) if commit else b""
    if not kept:
        return False
    with tarfile.open(fileobj=io.BytesIO(kept)) as archive:
        archive.extractall(folder)  # noqa: S202 - ours; Python before 3.11.4 has no filters
    return True


def _kinds(text: str) -> set[str]:
    """Return the kinds of entry that a version of the file names."""
    return set(re.findall(r'^    [A-Z_]+ = "(\w+)"', text, re.MULTILINE))


def _git(*arguments: str) -> bytes:
    done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, check=False)  # noqa: S603, S607
    return done.stdout if done.returncode == 0 else b""
