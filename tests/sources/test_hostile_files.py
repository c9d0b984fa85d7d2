"""A hostile file is refused by an error of ours, or read as what it is; it fills no memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hostile_files import LANDING, programmes
from hostile_reader import outcome_of

ROOT = Path(__file__).resolve().parents[2]
PEAK_MIB = 2048  # of a process that has read all of them; the largest unpacks to 300 MiB
NOT_WRITTEN = Path("/tmp/escaped.csv")  # noqa: S108 - what an archive asks for


def _read(*arguments: object) -> dict[str, str]:
    """Read files in a process of its own; return what came of each."""
    support = ROOT / "tests/support"
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, str(support / "hostile_reader.py"), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'include'}:{support}"},  # noqa: TID251 - handed on
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert max(row["peak_mib"] for row in rows) < PEAK_MIB
    return {row["file"]: row["outcome"] for row in rows}


def _crashes(outcomes: dict[str, str]) -> dict[str, str]:
    return {name: outcome for name, outcome in outcomes.items() if "crash" in outcome}


def test_a_hundred_files_are_kept() -> None:
    good = (ROOT / "include/programmes/opal.yaml").read_text()
    assert len(LANDING) + len(list(programmes(good))) >= 100


def test_an_error_that_is_not_ours_is_seen() -> None:
    assert outcome_of(lambda: {}["x"]).startswith("crash: KeyError in <lambda>")


def test_hostile_programmes_are_refused_by_an_error_of_ours(tmp_path: Path) -> None:
    outcomes = _read("programmes", tmp_path / "include")
    assert outcomes["the good one"] == "ok"
    assert _crashes(outcomes) == {}
    harmless = {name for name, outcome in outcomes.items() if outcome == "ok"}
    assert harmless == {"the good one", "a tag of its own", "binary", "a date",
                        "a byte order mark"}  # fmt: skip
    assert not list(tmp_path.rglob("escaped"))


def test_hostile_lists_of_people_and_examples_crash_nothing(tmp_path: Path) -> None:
    assert set(_read("lists", tmp_path / "include").values()) == {"ok"}


def test_some_hostile_landing_files_crash_nothing(tmp_path: Path) -> None:
    outcomes = _read("landing", tmp_path / "zones", 5, 9)
    assert len(outcomes) >= 9
    assert _crashes(outcomes) == {}


@pytest.mark.long
def test_hostile_landing_files_crash_nothing_and_stay_in_their_zone(tmp_path: Path) -> None:
    outcomes = _read("landing", tmp_path / "zones")
    assert set(outcomes) == set(LANDING)
    assert _crashes(outcomes) == {}
    for name in ("gzip: 300 MiB of zeros", "zip: 300 MiB of zeros", "zip: gzip of 300 MiB"):
        assert outcomes[name] == "InputError"
    assert not NOT_WRITTEN.exists()
    assert not list(tmp_path.rglob("escaped*"))


@pytest.mark.long
def test_hostile_files_are_no_release_of_somebody_else(tmp_path: Path) -> None:
    outcomes = _read("external", tmp_path / "tables", 0, 3)
    assert set(outcomes.values()) == {"InputError"}


@pytest.mark.long
def test_a_first_look_at_hostile_files_crashes_nothing(tmp_path: Path) -> None:
    outcomes = _read("new", tmp_path / "files")
    assert set(outcomes) == set(LANDING)
    assert _crashes(outcomes) == {}


@pytest.mark.long
def test_no_hostile_file_is_a_release_of_somebody_else(tmp_path: Path) -> None:
    outcomes = _read("external", tmp_path / "tables")
    assert set(outcomes) == set(LANDING)
    assert set(outcomes.values()) == {"InputError"}


@pytest.mark.long
@pytest.mark.parametrize("kind", ["fuzzed-landing", "fuzzed-external", "fuzzed-programmes"])
def test_files_with_a_few_changes_crash_nothing(kind: str, tmp_path: Path) -> None:
    outcomes = _read(kind, tmp_path / "zones", 1, 60)
    assert int(outcomes["files"]) > 50
    assert _crashes(outcomes) == {}
