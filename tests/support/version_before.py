"""The version before this one: the code that did not know the newest kind of ledger entry yet.

That is the parent of the last commit that changed the kinds, as the checkout's history has it.
"""

from __future__ import annotations

import io
import re
import subprocess
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KINDS = "include/turnstile/ledger/entries.py"


def version_before(folder: Path) -> bool:
    """Unpack the version before into a folder.

    Returns:
        False where this checkout has no history to take it from.
    """
    now = _kinds((ROOT / KINDS).read_text(encoding="utf-8"))
    changes = _git("log", "--format=%H", "--", KINDS).decode().split()
    parents = (f"{commit}^" for commit in changes)
    before = next((p for p in parents if _kinds(_git("show", f"{p}:{KINDS}").decode()) < now), "")
    kept = _git("archive", before) if before else b""
    if not kept:
        return False
    with tarfile.open(fileobj=io.BytesIO(kept)) as archive:
        archive.extractall(folder, filter="data")
    return True


def _kinds(text: str) -> set[str]:
    """Return the kinds of entry that a version of the file names."""
    return set(re.findall(r'^    [A-Z_]+ = "(\w+)"', text, re.MULTILINE))


def _git(*arguments: str) -> bytes:
    done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, check=False)  # noqa: S603, S607
    return done.stdout if done.returncode == 0 else b""
