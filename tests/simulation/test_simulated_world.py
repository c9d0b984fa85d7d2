"""Simulated worlds: nothing over a cap, drawn twice, lost or deleted early, whatever goes wrong.

Here a few weeks of each; `make simulate` lives a thousand years (benchmarks/simulated_years.py).
"""

from __future__ import annotations

import hashlib
import logging
import runpy
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from planted_in_the_house import PLANTED
from raw_auditor import Promise, RawAuditor, Violation
from simulated_world import World, world_of

YEARS = Path(__file__).resolve().parents[2] / "benchmarks/simulated_years.py"
WEEKS = 3
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'draw_lease'"
"""A lease has the time in it at which a process began."""
SEEDS_OF_PLANTED = 200  # worlds of a quarter: fifty years


def lived(seed: int, weeks: int = WEEKS) -> World:
    with world_of(seed) as world:
        world.live(weeks)
        return world


@pytest.mark.some(1)
@pytest.mark.parametrize("seed", [0, 1])
def test_some_weeks_with_faults_break_no_promise(seed: int) -> None:
    world = lived(seed)
    assert world.did["released"] > 0
    assert world.did["faults"] >= WEEKS


def test_a_seed_does_the_same_again() -> None:
    first, again, other = lived(3, 1), lived(3, 1), lived(4, 1)
    assert first.log == again.log
    assert first.trace() == again.trace() != other.trace()


@pytest.mark.some(2)
@pytest.mark.parametrize("seed", [0, 1, 3, 10])
def test_a_world_without_memory_does_the_same(seed: int) -> None:
    """Of one with stores and two machines too: no answer is remembered beyond what it is of."""
    with world_of(seed) as world:
        world.live(WEEKS)
    with world_of(seed, remembers=False) as again:
        again.live(WEEKS)
    assert world.log == again.log
    assert world.trace() == again.trace()
    assert world.remembered.answered > again.remembered.answered == 0


def test_a_world_asks_sqlite_what_sqlalchemy_would() -> None:
    """Without faults, which count the calls on the way; 4 is of two machines, stores, a witness."""
    told = []
    for asks_sqlite in (True, False):
        with world_of(4, faults_a_week=0.0, asks_sqlite=asks_sqlite) as world:
            world.live(2)
            with closing(sqlite3.connect(world.database)) as ledger:
                tables = [table for (table,) in ledger.execute(_TABLES)]
                told.append(
                    (world.log, [list(ledger.execute(f"SELECT * FROM {t}")) for t in tables])
                )
    assert "entry" in tables
    assert told[0] == told[1]


def test_a_week_without_a_fault_is_released_and_verifies() -> None:
    with world_of(5, faults_a_week=0.0) as world:
        world.live(1)
    assert world.did["released"] == 2
    assert world.did["verified"] == 1


def test_who_waits_for_a_draw_waits_by_the_clock_of_the_world() -> None:
    """Seed 71013 stood still: `plan` waited by the real one for a lease that never ended."""
    with world_of(5) as world, world.natural_laws():
        steps = [m for n, m in sys.modules.items() if n.startswith(("turnstile.p", "turnstile_s"))]
        files = ((module, vars(module).get("__file__")) for module in steps)
        waiting = [m for m, file in files if file and "time.sleep(" in Path(file).read_text()]
        assert "turnstile.pipeline.before_charge" in {module.__name__ for module in waiting}
        assert not [module.__name__ for module in waiting if vars(module)["time"] is time]


def test_years_begin_anew_where_the_order_in_sets_is_not_that_of_other_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is part of a world, and only the Makefile said which one: a failing seed was another."""
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    stopped = "os.execve = lambda path, words, env: sys.exit(words[-1] + env['PYTHONHASHSEED'])"
    code = f"import os, runpy, sys; {stopped}; runpy.run_path({str(YEARS)!r}, run_name='__main__')"
    command = [sys.executable, "-c", code, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.stderr == "--help0\n", done.stderr


def test_years_of_a_world_that_does_not_verify_in_the_end_fail_and_name_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    years = runpy.run_path(str(YEARS))
    world = years["Lived"](7, "", "is altered", Counter(), Counter(), 1.0)
    monkeypatch.setitem(years["main"].__globals__, "lives", lambda *_: iter([world]))
    monkeypatch.setattr(sys, "argv", ["simulated_years.py", "--years", "0.25"])
    disabled = logging.root.manager.disable
    assert years["main"]() == 1
    logging.disable(disabled)
    assert "0 of 1; without: seeds 7" in capsys.readouterr().out


def test_a_charge_after_its_draw_is_found() -> None:
    """The negative control: the first draw shows it, in the first week."""
    with PLANTED["charge_after_draw"](), pytest.raises(Violation, match="charged 0 times"):
        lived(5, 1)


@pytest.mark.parametrize("went", ["by a disaster", "with the power", "with power and ledger"])
@pytest.mark.parametrize("is_public", [True, False])
def test_bytes_of_which_nothing_in_the_world_knows_pass_no_cap(
    tmp_path: Path, went: str, *, is_public: bool
) -> None:
    """Whatever else goes was drawn, and counts: two draws of a week that pays for one.

    Seed 441: a draw died before its name was on the disk, and later the one ledger was lost.
    """
    sealed = tmp_path / "embargoed/itms/2016-W30/r0/sealed-1.parquet"
    sealed.parent.mkdir(parents=True)
    auditor = RawAuditor(
        tmp_path / "ledger.sqlite",
        Promise(days=1, bus=1, cap_of_day=1, cap_of_bus=1, window_weeks=8),
        lambda: datetime(2016, 8, 1, tzinfo=UTC),
        lambda: iter([tmp_path]),
        lambda: iter(()),
        lambda _: object(),
    )
    key, first = "itms/2016-W30/r0", b"first"
    sealed.write_bytes(first)
    auditor.stored(key, sealed)
    if is_public:
        auditor.sealed[key] = hashlib.sha256(first).hexdigest()
        auditor.packages[key] = "of its manifest"
    sealed.unlink()
    auditor.lost(excused=went == "by a disaster")
    if went == "with power and ledger":
        auditor.ledger_lost()
    sealed.write_bytes(b"another draw")
    if went != "with the power" and not is_public:
        auditor.stored(key, sealed)
    else:
        with pytest.raises(Violation, match="drawn on 2 times"):
            auditor.stored(key, sealed)
        return
    sealed.with_name("sealed-2.parquet").write_bytes(first)  # a backup had them after all
    with pytest.raises(Violation, match="drawn on 2 times"):
        auditor.lost()


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(PLANTED))
def test_a_planted_fault_is_found_within_fifty_years(name: str) -> None:
    for seed in range(1000, 1000 + SEEDS_OF_PLANTED):
        with PLANTED[name](), world_of(seed) as world:
            try:
                world.live()
            except Violation:
                return
    pytest.fail(f"{name} was not found")


@pytest.mark.long
@pytest.mark.parametrize("piece", range(10))
def test_ten_years_break_no_promise(piece: int) -> None:
    for seed in range(2000 + 4 * piece, 2004 + 4 * piece):
        with world_of(seed) as world:
            world.live()
