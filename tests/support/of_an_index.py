"""Packages that a test alone needs, from an index; where none answers, it is skipped."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def uv(*words: str | Path) -> None:
    """Let uv do something, or skip the tests that need it done."""
    command = [Path(sys.executable).with_name("uv"), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        pytest.skip(f"no environment: {done.stderr[-200:]}")
