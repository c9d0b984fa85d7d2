"""Real weeks as processes of their own, with faults put into their system calls by strace.

The simulated world fails the calls of our own files, buckets and transactions; here the kernel says
no, or kills, at any call that reaches it: SQLite's own writes and syncs, and those of libraries.
What stands afterwards is judged by raw rows and bytes.
"""

from __future__ import annotations

import hashlib
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
from small_deployment import WEEK, Deployment

from turnstile.pipeline.steps import step_named

STRACE = shutil.which("strace")
WEEKS, PIECES = 200, 20
CALLS = ("fsync", "fdatasync", "pwrite64", "write", "rename", "link", "unlink", "ftruncate")
KINDS = ("error=EIO", "error=ENOSPC", "signal=SIGKILL")
COST_MICRO, CAP_MICRO = 8_000_000, 24_000_000
KEY = f"itms/{WEEK}/r0"
_TRIES = 5
pytestmark = [pytest.mark.long, pytest.mark.skipif(STRACE is None, reason="no strace is here")]


class Fault(NamedTuple):
    """What one call answers."""

    call: str
    kind: str
    when: int


def command(*words: str) -> list[str]:
    return [
        sys.executable,
        "-c",
        "import sys; from turnstile.cli import main; sys.exit(main())",
        *words,
    ]


def traced(*options: str) -> list[str]:
    assert STRACE is not None
    return [STRACE, "-f", "-qq", "--seccomp-bpf", *options]


def run(words: list[str]) -> int:
    done = subprocess.run(  # noqa: S603 - our own interpreter
        words, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300
    )
    return done.returncode


@pytest.fixture
def counted(landed: Deployment) -> Deployment:
    """A week that is reserved: what follows writes to the ledger, draws and publishes."""
    shutil.copyfile(STEADY_ITMS, landed.include / "programmes/itms.yaml")
    landed.edit("itms", 'add_remove, epsilon: "8"}', 'add_remove, epsilon: "24"}')
    for step in ("ingest", "validate", "plan", "count", "reserve"):
        step_named(step)("itms", WEEK, 0)
    return landed


def calls_of_a_week(home: Path) -> Counter[str]:
    """How often a week without a fault makes each call."""
    log = home.parent / "calls"
    assert run([*traced("-o", str(log), "-e", f"trace={','.join(CALLS)}"), *WEEK_OF_ITMS]) == 0
    lines = log.read_text(errors="replace").splitlines()
    return Counter(name for line in lines for name in CALLS if f" {name}(" in line)


WEEK_OF_ITMS = command("run", "itms", "--week", WEEK)


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
    code = run(
        [*traced("-o", "/dev/null", "-e", f"trace={fault.call}", "-e", inject), *WEEK_OF_ITMS]
    )
    for _ in range(_TRIES):
        again = run(WEEK_OF_ITMS)
        if again == 0:
            break
        if again == 4:
            run(command("ledger", "recover", "--person", "olga", "--reason", "a fault"))
    assert run(command("ledger", "verify")) == 0, fault
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
    for _ in range(WEEKS // PIECES):
        call = chance.choice([name for name in CALLS if times[name]])
        fault = Fault(call, chance.choice(KINDS), chance.randrange(1, times[call] + 1))
        shutil.rmtree(counted.home)
        shutil.copytree(kept, counted.home)
        ended[suffer(counted.home, fault)] += 1
    record_property("ended", dict(ended))
    assert sum(ended.values()) == WEEKS // PIECES
