"""Real weeks as processes of their own, with faults put into their system calls by strace.

The simulated world fails the calls of our own files, buckets and transactions; here the kernel says
no, or kills, at any call that reaches it: SQLite's own writes and syncs, and those of libraries.
What stands afterwards is judged by raw rows and bytes.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
from deployment_fixtures import STEADY_ITMS
from forked_commands import forked
from small_deployment import WEEK, Deployment

from turnstile.pipeline.steps import step_named

STRACE = shutil.which("strace")
WEEKS = int(os.environ.get("WEEKS_WITH_FAULTS", "200"))  # noqa: TID251 - a test's own switch
PIECES = 20
CALLS = ("fsync", "fdatasync", "pwrite64", "write", "rename", "link", "unlink", "ftruncate")
KINDS = ("error=EIO", "error=ENOSPC", "signal=SIGKILL")
COST_MICRO, CAP_MICRO = 8_000_000, 24_000_000
KEY = f"itms/{WEEK}/r0"
_TRIES = 5
FEW_CELLS = {
    "h3_resolution: 7": "h3_resolution: 5",
    '"09:00-21:00"': '"09:00-10:00"',
    "cells_at_most: 20": "cells_at_most: 1",
    'add_remove, epsilon: "8"}': 'add_remove, epsilon: "24"}',
}
"""The steady programme in one slot and few cells, which costs little; caps allow three draws."""
pytestmark = [pytest.mark.long, pytest.mark.skipif(STRACE is None, reason="no strace is here")]


class Fault(NamedTuple):
    """What one call answers."""

    call: str
    kind: str
    when: int


def run(*words: str) -> int:
    """Run a command in a process that imports nothing anew; return its exit code."""
    process = forked(words)
    process.join(300)
    assert process.exitcode is not None, words
    return process.exitcode


def traced(*options: str) -> int:
    """Run the week under strace; return its exit code, or minus what killed it.

    The interpreter is a new one: only of a process that strace starts can it stop chosen calls
    alone (seccomp), and stopping at every call a week takes minutes.
    """
    assert STRACE is not None
    python = (sys.executable, "-c", "import sys; from turnstile.cli import main; sys.exit(main())")
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [STRACE, "-f", "-qq", "--seccomp-bpf", *options, *python, *WEEK_OF_ITMS],
        check=False,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=300,
    )
    return done.returncode


@pytest.fixture
def counted(landed: Deployment) -> Deployment:
    """A week that is reserved: what follows writes to the ledger, draws and publishes."""
    shutil.copyfile(STEADY_ITMS, landed.include / "programmes/itms.yaml")
    for old, new in FEW_CELLS.items():
        landed.edit("itms", old, new)
    for step in ("ingest", "validate", "plan", "count", "reserve"):
        step_named(step)("itms", WEEK, 0)
    return landed


def calls_of_a_week(home: Path) -> Counter[str]:
    """How often a week without a fault makes each call."""
    log = home.parent / "calls"
    assert traced("-o", str(log), "-e", f"trace={','.join(CALLS)}") == 0
    lines = log.read_text(errors="replace").splitlines()
    return Counter(name for line in lines for name in CALLS if f" {name}(" in line)


WEEK_OF_ITMS = ("run", "itms", "--week", WEEK)


def judge(home: Path) -> None:
    """Hold rows and bytes against each other, past all of the house."""
    with closing(sqlite3.connect(home / "ledger.sqlite")) as rows:
        kinds = Counter(kind for (kind,) in rows.execute("SELECT kind FROM entry"))
        spent = rows.execute("SELECT max(spent_epsilon_micro) FROM account WHERE unit = 'bus_day'")
        (amount,) = spent.fetchone()
        sealed = rows.execute("SELECT artefact_digest FROM attempt WHERE state = 'published'")
        digests = [digest for (digest,) in sealed]
    files = [*(home / "embargoed").rglob("sealed-*")]
    assert kinds["sealed"] == kinds["published"] == len(digests) == 1
    assert amount == kinds["draw_begun"] * COST_MICRO <= CAP_MICRO
    assert len(files) <= kinds["draw_begun"]
    assert digests[0] in {hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def suffer(home: Path, fault: Fault) -> int:
    """Let a week suffer a fault, then bring it to its end as an operator does."""
    inject = f"inject={fault.call}:{fault.kind}:when={fault.when}"
    code = traced("-o", "/dev/null", "-e", f"trace={fault.call}", "-e", inject)
    for _ in range(_TRIES):
        again = run(*WEEK_OF_ITMS)
        if again == 0:
            break
        if again == 4:
            run("ledger", "recover", "--person", "olga", "--reason", "a fault")
    assert run("ledger", "verify") == 0, fault
    judge(home)
    return code


@pytest.mark.parametrize("piece", range(PIECES))
def test_two_hundred_weeks_with_faults_at_system_calls(
    counted: Deployment, piece: int, record_property: Callable[[str, object], None]
) -> None:
    kept = counted.home.with_name("kept")
    shutil.copytree(counted.home, kept)
    times, chance, ended = calls_of_a_week(counted.home), random.Random(piece), Counter[int]()  # noqa: S311
    assert times["fdatasync"] + times["fsync"] > 20
    killed = 0
    # What says nothing of any data is found once, as in a home that has lived: minutes a week.
    shutil.copytree(counted.home / "small_worlds", kept / "small_worlds", dirs_exist_ok=True)
    for _ in range(WEEKS // PIECES):
        call = chance.choice([name for name in CALLS if times[name]])
        fault = Fault(call, chance.choice(KINDS), chance.randrange(1, times[call] + 1))
        shutil.rmtree(counted.home)
        shutil.copytree(kept, counted.home)
        ended[suffer(counted.home, fault)] += 1
        killed += fault.kind == "signal=SIGKILL"
    record_property("ended", dict(ended))
    assert sum(ended.values()) == WEEKS // PIECES
    assert not killed or ended.total() > ended[0], "faults that strike nothing are none"
