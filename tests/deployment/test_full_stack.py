"""`make release` as a person runs it: interrupted, run again, and run once more."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "turnstile_native.weekly_release", "--weeks", "1", "--port=0"]
BOUND_S = 900


def _environment(home: Path) -> dict[str, str]:
    return {
        "PATH": os.defpath,
        "HOME": str(home),
        "TURNSTILE_HOME": str(home),
        "TURNSTILE_INCLUDE": str(ROOT / "include"),
    }


def _left(home: Path) -> list[str]:
    """Name the processes that were given this home."""
    command_lines = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("TURNSTILE_HOME") == str(home):
                command_lines.append(" ".join(process.cmdline()))
        except psutil.Error:
            continue
    return command_lines


def _release(home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own command
        COMMAND,
        env=_environment(home),
        capture_output=True,
        text=True,
        timeout=BOUND_S,
        check=False,
    )


def _interrupt_in_the_middle(home: Path) -> int:
    """Start a release, interrupt it when a step runs, and return its exit code."""
    log = home / "interrupted.log"
    with log.open("w") as output:
        process = subprocess.Popen(  # noqa: S603 - our own command
            COMMAND, env=_environment(home), stdout=output, stderr=subprocess.STDOUT
        )
    deadline = time.monotonic() + BOUND_S
    while "2016-W30  ingest" not in log.read_text():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline
        time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    return process.wait(timeout=60)


@pytest.mark.long
def test_an_interrupted_release_leaves_nothing_running_and_is_taken_up_again(
    tmp_path: Path,
) -> None:
    assert _interrupt_in_the_middle(tmp_path) == 128 + signal.SIGINT
    assert _left(tmp_path) == []

    first = _release(tmp_path)
    assert first.returncode == 0, first.stdout
    assert first.stdout.count("  published ") == 2
    assert _left(tmp_path) == []

    again = _release(tmp_path)
    assert again.returncode == 0, again.stdout
    assert again.stdout.count("re-issued, same bytes: nothing was redrawn") == 2
