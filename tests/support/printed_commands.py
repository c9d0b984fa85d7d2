"""Commands as pages print them, run in a folder that holds what people edit of a clone."""

from __future__ import annotations

import contextlib
import glob
import io
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from turnstile.cli import main

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
            **_deployment(clone),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def run_here(command: str, clone: Path) -> str:
    """Run one line as a shell does, but the console script in this process.

    It starts at once there, and knows what other tests found of this code: how very many draws of
    its noise fit, and what units do in small worlds.
    """
    program, *words = shlex.split(command)
    if program != "turnstile":
        return run(command, clone)
    with pytest.MonkeyPatch.context() as environment:
        environment.chdir(clone)
        for name, folder in _deployment(clone).items():
            environment.setenv(name, folder)
        given = [name for word in words for name in sorted(glob.glob(word)) or [word]]  # noqa: PTH207 - as a shell
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            assert main(given) == 0, command
    return printed.getvalue()


def _deployment(clone: Path) -> dict[str, str]:
    return {"TURNSTILE_INCLUDE": str(clone / "include"), "TURNSTILE_HOME": str(clone / "var")}
