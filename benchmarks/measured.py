"""What one process tree costs, and what a figure may be at most."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

_KIB_PER_MIB = 1024


@dataclass(frozen=True)
class Cost:
    """Of one process tree."""

    wall_s: float
    cpu_s: float
    peak_mib: float


@dataclass(frozen=True)
class Held:
    """A figure and the most that it may be; `limit` is None where it is only shown."""

    name: str
    figure: float
    limit: float | None

    @property
    def is_passed(self) -> bool:
        """Return whether the figure is above its limit."""
        return self.limit is not None and self.figure > self.limit

    def __str__(self) -> str:
        """One line; a passed limit stands out."""
        if self.limit is None:
            return f"{self.name:62} {self.figure:8.2f}"
        verdict = "PASSED ITS LIMIT" if self.is_passed else "within"
        return f"{self.name:62} {self.figure:8.2f}  at most {self.limit:.3g}: {verdict}"


def measured(arguments: list[str], home: Path, *, python: str = sys.executable) -> Cost:
    """Run Python with some arguments in a process of its own.

    Args:
        arguments: of the interpreter.
        home: `TURNSTILE_HOME` of the process.
        python: interpreter.
    """
    environment = {**os.environ, "TURNSTILE_HOME": str(home)}  # noqa: TID251 - handed to a child
    started = time.perf_counter()
    child = subprocess.Popen(  # noqa: S603 - our own interpreter and code
        [python, *arguments],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(child.pid, 0)
    wall_s = time.perf_counter() - started
    if status:
        sys.exit(f"{arguments} failed")
    return Cost(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / _KIB_PER_MIB)
