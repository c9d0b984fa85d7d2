"""Commands as pages print them, run in a folder that holds what people edit of a clone."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def clone_in(folder: Path) -> Path:
    """Return a folder with what a clone holds that people edit."""
    for name in ("programmes", "domains"):
        shutil.copytree(ROOT / "include" / name, folder / "include" / name)
    for name in ("examples.yaml", "people.yaml"):
        shutil.copy(ROOT / "include" / name, folder / "include" / name)
    return folder


def run(command: str, clone: Path) -> str:
    """Run one line in a shell, and return what it printed, errors included."""
    done = subprocess.run(  # noqa: S603
        ["/bin/bash", "-c", command],
        cwd=clone,
        env={
            "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(clone),
            "PYTHONPATH": str(ROOT / "include"),
            "TURNSTILE_INCLUDE": str(clone / "include"),
            "TURNSTILE_HOME": str(clone / "var"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr
