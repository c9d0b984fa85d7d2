"""One week by hand on a disk that is full before every step, and has space again after it.

    unshare --map-root-user --mount python tests/support/full_disk.py FOLDER LEDGER_URL

Prints a line for each step: its name, and what it refused with, if it did.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from turnstile.cli import main
from turnstile.errors import TurnstileError
from turnstile.pipeline.steps import STEPS, step_named

WEEK = "2016-W30"


def a_week_on_a_full_disk(home: Path, ledger: str) -> None:
    """Run each step twice: where nothing can be written, and then with space."""
    _mount("-t", "tmpfs", "-o", "size=2g", "tmpfs", home)
    os.environ["TURNSTILE_HOME"] = str(home)  # noqa: TID251 - as a deployment sets it
    os.environ["TURNSTILE_LEDGER_URL"] = ledger  # noqa: TID251
    main(["sample", "opal", "--weeks", WEEK, "--rows", "2000", "--seed", "1"])
    for name in STEPS:
        refusal = ""
        with _full(home):
            try:
                step_named(name)("opal", WEEK, 0)
            except TurnstileError as error:
                refusal = f"{error.exit_code} {error}"
        step_named(name)("opal", WEEK, 0)
        sys.stdout.write(f"{name}: {refusal}\n")
    main(["ledger", "entries", "--json"])


@contextlib.contextmanager
def _full(folder: Path) -> Iterator[None]:
    """Let a disk be as large as what is on it."""
    used = os.statvfs(folder)
    _mount("-o", f"remount,size={(used.f_blocks - used.f_bfree) * used.f_frsize}", folder)
    yield
    _mount("-o", "remount,size=2g", folder)


def _mount(*words: str | Path) -> None:
    subprocess.run(["mount", *words], check=True)  # noqa: S603, S607 - our own words


if __name__ == "__main__":
    a_week_on_a_full_disk(Path(sys.argv[1]), sys.argv[2])
