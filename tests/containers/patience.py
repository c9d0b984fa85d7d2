"""Waiting on a machine that others use too: a time-out counts seconds of a quiet machine.

A second in which three processes wait for each core counts as a third of one. What is waited for is
said once a minute, so that a slow machine and a dead deployment look different.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

_POLL_S = 2.0
_SAY_EVERY_S = 60.0


def crowding() -> float:
    """Return how many processes there are for each core, at least 1."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def wait_for(
    holds: Callable[[], bool],
    what: str,
    quiet_s: float,
    say: Callable[[str], None],
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
    crowd: Callable[[], float] = crowding,
) -> None:
    """Poll until something holds.

    Args:
        holds: asked every two seconds.
        what: for people.
        quiet_s: how long it may take where nothing else runs.
        say: prints a line.
        sleep: for tests.
        clock: for tests.
        crowd: for tests.

    Raises:
        AssertionError: it took longer.
    """
    begun = last = said = clock()
    spent = 0.0
    while not holds():
        sleep(_POLL_S)
        now = clock()
        spent += (now - last) / crowd()
        last = now
        if spent > quiet_s:
            took = f"{now - begun:.0f} s, {spent:.0f} of a quiet machine's"
            raise AssertionError(f"{what} took more than {quiet_s:.0f} s ({took})")
        if now - said >= _SAY_EVERY_S:
            said = now
            say(f"  waiting for {what}: {spent:.0f} of {quiet_s:.0f} s, load {crowd():.1f} a core")
