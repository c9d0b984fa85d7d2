"""A full disk stops a step with a sentence that says so; nothing is charged or drawn twice."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from compose_natively import missing_namespaces

from turnstile.durable_files import full_disk_named, refuse_if_full
from turnstile.errors import InputError, IntegrityError
from turnstile.pipeline.steps import STEPS

SUPPORT = Path(__file__).parents[1] / "support"
TO_THE_LEDGER_ALONE = {"reserve", "approve", "audit"}


@pytest.mark.long
@pytest.mark.skipif(bool(missing_namespaces()), reason=missing_namespaces())
@pytest.mark.usefixtures("deployment")  # whose programmes have few places
def test_every_step_says_that_the_disk_is_full_and_goes_on_when_it_is_not(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    words = ["unshare", "--map-root-user", "--mount", sys.executable, SUPPORT / "full_disk.py",
             home, f"sqlite:///{tmp_path}/ledger.sqlite"]  # fmt: skip
    done = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    told = dict(line.split(": ", 1) for line in lines if line.split(":")[0] in STEPS)
    assert set(told) == set(STEPS)
    for name in set(STEPS) - TO_THE_LEDGER_ALONE:
        assert "space" in told[name], (name, told[name])
    kinds = [json.loads(line)["kind"] for line in lines if line.startswith("{")]
    assert [kinds.count(kind) for kind in ("sealed", "published", "burned")] == [1, 1, 0]


def test_whoever_finds_a_disk_full_it_is_said_in_our_words() -> None:
    quoted = duckdb.IOException('IO Error: Could not write file "card 7": No space left on device')
    for error in (
        quoted,
        OSError(28, "No space left on device"),
        OSError(122, "Disk quota exceeded"),
    ):
        with pytest.raises(InputError, match="a disk is full: free space") as caught:
            refuse_if_full(error)
        assert "card 7" not in str(caught.value)
    refuse_if_full(duckdb.IOException("IO Error: no such file"))


def test_another_fault_and_a_sentence_of_ours_stay_what_they_are() -> None:
    with pytest.raises(KeyError), full_disk_named():
        raise KeyError("card 7")
    ours = IntegrityError("cannot write a.json (No space left on device); free space, run again")
    with pytest.raises(IntegrityError, match=r"a\.json"), full_disk_named():
        raise ours
