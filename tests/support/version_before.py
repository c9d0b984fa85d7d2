"""The version before this one: the code that did not know the newest kind of ledger entry yet.

That is the parent of the commit that last changed the kinds, as the checkout's history has it.
"""

from __future__ import annotations

import io
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
    changed = _git("log", "-1", "--format=%H", "--", KINDS).decode().strip()
    kept = _git("archive", f"{changed}^") if changed else b""
    if not kept:
        return False
    with tarfile.open(fileobj=io.BytesIO(kept)) as archive:
        archive.extractall(folder, filter="data")
    assert (folder / KINDS).read_text() != (ROOT / KINDS).read_text()
    return True


def _git(*arguments: str) -> bytes:
    done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, check=False)  # noqa: S603, S607
    return done.stdout if done.returncode == 0 else b""
