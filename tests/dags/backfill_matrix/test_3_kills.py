"""What is killed: a draw whose own process died is burned and charged again, and no other."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from matrix_of_weeks import (
    BESIDE_RUN,
    CANARY,
    KILLED_EARLY,
    KILLED_ONCE,
    KILLED_TWICE,
    ORPHANED,
    ORPHANED_LONG,
    SCHEDULER_KILLED,
    Matrix,
    attempts,
    journal,
    kill_with_task_and_worker,
    kill_with_worker,
    note,
    run_by_hand,
    until_lease_ends,
    until_said,
)

LOOKS_FOR_ORPHANS_S = 45

pytestmark = pytest.mark.long


def test_a_draw_that_is_killed_is_burned_reported_once_and_charged_again(sealed: Matrix) -> None:
    airflow = sealed.airflow
    landed = sorted((airflow.home / "landing/opal" / KILLED_ONCE).glob("*.csv"))
    for file in landed:
        header, row, *rest = file.read_text().splitlines()
        planted = re.sub(r"^\d+", CANARY, row)
        file.write_text("\n".join([header, planted, *rest]) + "\n")
    with sealed.row("kill -9 of worker, task and drawing process", {KILLED_ONCE: 1}):
        airflow.hold(KILLED_ONCE, "seal")
        airflow.backfill(KILLED_ONCE, KILLED_ONCE)
        kill_with_task_and_worker(airflow.held(KILLED_ONCE, "seal"))
        airflow.backfilled(KILLED_ONCE)
        airflow.let_go(KILLED_ONCE, "seal")
        assert airflow.runs()[KILLED_ONCE] == "failed"
        assert airflow.tasks(KILLED_ONCE)["draw"] == "failed"
    assert attempts(airflow, KILLED_ONCE) == ("drawing",)
    until_lease_ends(airflow)
    _the_watchdog_reports_once(sealed, KILLED_ONCE, landed)
    with sealed.row("the killed draw's run again, backfill, failed", {KILLED_ONCE: 1}):
        airflow.backfill(KILLED_ONCE, KILLED_ONCE, "failed")
        airflow.backfilled(KILLED_ONCE)
    assert "a draw that died stays charged; another" in note(airflow, KILLED_ONCE)
    assert attempts(airflow, KILLED_ONCE) == ("burned", "published")


def _the_watchdog_reports_once(sealed: Matrix, week: str, landed: list[Path]) -> None:
    """Let the watchdog look twice: one message by mail and webhook, and no card in any."""
    airflow, sinks = sealed.airflow, sealed.sinks
    assert not any("run_died" in text for text in (*sinks.mails(), *sinks.posts()))
    for _ in range(2):
        assert run_by_hand(airflow, "watchdog") == "success"
    mails = [text for text in sinks.mails() if "run_died" in text and week in text]
    posts = [text for text in sinks.posts() if "run_died" in text and week in text]
    assert (len(mails), len(posts)) == (1, 1)
    cards = {line.split(",")[0] for file in landed for line in file.read_text().splitlines()[1:]}
    assert CANARY in cards
    messages = "\n".join([*sinks.mails(), *sinks.posts()])
    assert not [card for card in cards if card in messages]


def test_a_week_whose_draw_is_killed_twice_needs_a_person(sealed: Matrix) -> None:
    airflow = sealed.airflow
    with sealed.row("kill -9 of the drawing process, twice", {KILLED_TWICE: 2}):
        airflow.hold(KILLED_TWICE, "seal")
        for behavior in ("none", "failed"):
            airflow.backfill(KILLED_TWICE, KILLED_TWICE, behavior)
            airflow.held(KILLED_TWICE, "seal").kill()
            airflow.backfilled(KILLED_TWICE)
            assert "the drawing process died (SIGKILL)" in journal(airflow, KILLED_TWICE)
        # The lease of the first may have run on when the second run began: its charge was said.
        assert "a draw that died stays charged; another" in note(airflow, KILLED_TWICE)
        airflow.let_go(KILLED_TWICE, "seal")
    with sealed.row("a third try: refused, a person decides", {}):
        airflow.backfill(KILLED_TWICE, KILLED_TWICE, "failed")
        airflow.backfilled(KILLED_TWICE)
        assert airflow.runs()[KILLED_TWICE] == "failed"
    assert "no draw is left, a person decides" in note(airflow, KILLED_TWICE)
    assert "a third draw needs a person" in journal(airflow, KILLED_TWICE)
    assert attempts(airflow, KILLED_TWICE) == ("burned", "burned")


def test_a_worker_that_is_killed_before_the_draw_costs_nothing(sealed: Matrix) -> None:
    airflow = sealed.airflow
    with sealed.row("worker and task killed while they count; retried", {KILLED_EARLY: 1}):
        airflow.hold(KILLED_EARLY, "count")
        airflow.backfill(KILLED_EARLY, KILLED_EARLY)
        kill_with_worker(airflow.held(KILLED_EARLY, "count"))
        airflow.let_go(KILLED_EARLY, "count")
        airflow.backfilled(KILLED_EARLY)
    assert airflow.runs()[KILLED_EARLY] == "success"
    assert attempts(airflow, KILLED_EARLY) == ("published",)


def test_a_scheduler_that_is_killed_and_started_again_draws_once(sealed: Matrix) -> None:
    airflow = sealed.airflow
    with sealed.row("scheduler killed mid-run, and started again", {SCHEDULER_KILLED: 1}):
        airflow.hold(SCHEDULER_KILLED, "count")
        airflow.backfill(SCHEDULER_KILLED, SCHEDULER_KILLED)
        airflow.held(SCHEDULER_KILLED, "count")
        assert airflow.kill_scheduler(with_workers=True) == set()
        airflow.let_go(SCHEDULER_KILLED, "count")
        assert airflow.stack.revive_scheduler()
        airflow.backfilled(SCHEDULER_KILLED)
    assert airflow.runs()[SCHEDULER_KILLED] == "success"
    assert attempts(airflow, SCHEDULER_KILLED) == ("published",)


def test_a_scheduler_that_is_killed_alone_lets_its_worker_finish_the_draw(sealed: Matrix) -> None:
    airflow = sealed.airflow
    with sealed.row("scheduler killed alone, its worker seals, started again", {ORPHANED: 1}):
        airflow.hold(ORPHANED, "seal")
        airflow.backfill(ORPHANED, ORPHANED)
        drawing = airflow.held(ORPHANED, "seal")
        assert drawing in airflow.kill_scheduler(with_workers=False)
        airflow.let_go(ORPHANED, "seal")
        drawing.wait(timeout=300)
        assert attempts(airflow, ORPHANED) == ("sealed",)
        assert airflow.stack.revive_scheduler()
        airflow.backfilled(ORPHANED)
    assert airflow.runs()[ORPHANED] == "success"
    assert attempts(airflow, ORPHANED) == ("published",)


def test_a_scheduler_that_comes_back_while_the_old_worker_draws_seals_once(sealed: Matrix) -> None:
    airflow = sealed.airflow
    new = {ORPHANED_LONG: 1}
    with sealed.row("scheduler killed alone, started again while its worker draws", new):
        airflow.hold(ORPHANED_LONG, "seal")
        airflow.backfill(ORPHANED_LONG, ORPHANED_LONG)
        drawing = airflow.held(ORPHANED_LONG, "seal")
        assert drawing in airflow.kill_scheduler(with_workers=False)
        assert airflow.stack.revive_scheduler()
        time.sleep(LOOKS_FOR_ORPHANS_S)
        airflow.let_go(ORPHANED_LONG, "seal")
        airflow.backfilled(ORPHANED_LONG)
    # Airflow leaves the old worker alone, or ends it and tries again: the draw goes on.
    assert airflow.runs()[ORPHANED_LONG] == "success"
    assert attempts(airflow, ORPHANED_LONG) == ("published",)


def test_a_release_by_hand_at_the_same_time_draws_once(sealed: Matrix) -> None:
    airflow = sealed.airflow
    with sealed.row("`turnstile run` of the week that Airflow is drawing", {BESIDE_RUN: 1}):
        airflow.hold(BESIDE_RUN, "seal")
        airflow.backfill(BESIDE_RUN, BESIDE_RUN)
        airflow.held(BESIDE_RUN, "seal")
        command = [sys.executable, "-m", "turnstile.cli", "run", "opal", "--week", BESIDE_RUN]
        with subprocess.Popen(  # noqa: S603 - our own interpreter
            command, env=airflow.stack._environment, stderr=subprocess.PIPE, text=True
        ) as by_hand:
            assert by_hand.stderr is not None
            until_said(by_hand.stderr, f"waiting: another process draws opal/{BESIDE_RUN}/r0 ")
            airflow.let_go(BESIDE_RUN, "seal")
            by_hand.communicate()
        assert by_hand.returncode == 0
        airflow.backfilled(BESIDE_RUN)
    assert airflow.runs()[BESIDE_RUN] == "success"
    assert attempts(airflow, BESIDE_RUN) == ("published",)
