"""Backfills, clears, marks and crashes on a real scheduler: no week is drawn twice for nothing.

One Airflow, one ledger. Weeks are brought into every state, then everything is done to them that
an operator or a failing machine can do. Each row states which draws may come of it; after the row
every charge, digest and state is recomputed (`accounts_of_weeks`). The rows are printed at the end.

The card's cap over 52 weeks is three draws, so each group of weeks below has a budget of its own,
and the first group has used it up.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from accounts_of_weeks import Weeks, disagreements, weeks_of
from matrix_of_weeks import (
    AT_FIRST,
    BESIDE_RUN,
    CANARY,
    CLEARED_MIDWAY,
    FIRST,
    HALF_COMPLETED,
    HALF_FAILED,
    KILLED_EARLY,
    KILLED_ONCE,
    KILLED_TWICE,
    MARKED_EARLY,
    NEW_COMPLETED,
    NEW_FAILED,
    NEW_NONE,
    NO_FILES,
    ORPHANED,
    ORPHANED_LONG,
    REFUSED,
    SCHEDULED,
    SCHEDULER_KILLED,
    SECOND,
    THIRD,
    Matrix,
    attempts,
    deliver_again,
    journal,
    kill_with_worker,
    note,
    run_by_hand,
    standing_before_a_draw,
    stop_before_draw,
    until_step,
)
from row_table import ROWS

from turnstile.errors import TurnstileError

LOOKS_FOR_ORPHANS_S = 45

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def matrix(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[Matrix]:
    """An Airflow whose scheduled run of last week stands just before its draw."""
    lines: list[tuple[str, ...]] = []
    pytestconfig.stash[ROWS] = lines
    with standing_before_a_draw(tmp_path_factory.mktemp("matrix"), lines) as made:
        yield made


@pytest.fixture(autouse=True)
def _calm(matrix: Matrix) -> Iterator[None]:
    """Whatever became of a test, nothing of it goes on into the next."""
    yield
    holds = [path for path in (matrix.airflow.home / "hold").iterdir() if path.name != AT_FIRST]
    if holds:
        for path in holds:
            path.unlink()
        matrix.airflow.until_no_backfill()


@pytest.fixture(scope="module")
def sealed(matrix: Matrix) -> Matrix:
    """Three weeks sealed beside the scheduled one, one without files, one refused by the cap."""
    airflow = matrix.airflow
    with matrix.row(
        "scheduled run, beside a backfill of other weeks",
        {SCHEDULED: 1, FIRST: 1, SECOND: 1, THIRD: 1},
    ):
        airflow.backfill(FIRST, THIRD)
        airflow.until(lambda: airflow.runs().get(FIRST) == "running", what="the backfill")
        assert airflow.runs()[SCHEDULED] == "running"
        airflow.let_go(SCHEDULED, "draw")
        airflow.until_ended(SCHEDULED)
        airflow.backfilled(FIRST, NO_FILES, SECOND, THIRD)
    assert airflow.runs() == {
        FIRST: "success",
        NO_FILES: "failed",
        SECOND: "success",
        THIRD: "success",
        SCHEDULED: "success",
    }
    with matrix.row("backfill of a week past the cap: refused", {}):
        airflow.backfill(REFUSED, REFUSED)
        airflow.backfilled(REFUSED)
    assert airflow.tasks(REFUSED)["wait"] == "failed"
    assert "BudgetExceeded" in journal(airflow, REFUSED)
    return matrix


def test_a_backfill_of_the_week_that_the_schedule_is_releasing_leaves_it_alone(
    matrix: Matrix,
) -> None:
    airflow = matrix.airflow
    if airflow.runs().get(SCHEDULED) != "running":
        pytest.skip("another test let the scheduled run go; run this file from its first test on")
    with matrix.row("backfill of the very week whose scheduled run is at its draw", {}):
        airflow.backfill(SCHEDULED, SCHEDULED)
        airflow.until_no_backfill()
        assert airflow.runs() == {SCHEDULED: "running"}


@pytest.mark.parametrize("backwards", [False, True], ids=["forwards", "backwards"])
@pytest.mark.parametrize("behavior", ["none", "failed", "completed"])
@pytest.mark.parametrize("way", ["REST", "CLI"])
def test_every_reprocess_behavior_over_sealed_refused_and_failed_weeks_draws_nothing(
    sealed: Matrix, way: str, behavior: str, *, backwards: bool
) -> None:
    airflow = sealed.airflow
    direction = "backwards" if backwards else "forwards"
    with sealed.row(f"{way} backfill, {behavior}, {direction}: sealed, refused, no files", {}):
        if way == "REST":
            airflow.backfill(REFUSED, THIRD, behavior, run_backwards=backwards)
        else:
            done = airflow.cli_backfill(REFUSED, THIRD, behavior, backwards=backwards)
            assert done.returncode == 0, done.stderr[-2000:]
        airflow.backfilled(REFUSED, FIRST, NO_FILES, SECOND, THIRD)
        states = airflow.runs()
        assert [states[week] for week in (FIRST, SECOND, THIRD)] == ["success"] * 3
        assert [states[week] for week in (REFUSED, NO_FILES)] == ["failed"] * 2
    if behavior == "completed":
        assert "re-issued, 0 charged" in note(airflow, FIRST)
    assert airflow.tasks(REFUSED)["wait"] == "failed"


def test_a_backfill_takes_the_sealed_scheduled_run_over_and_re_issues(sealed: Matrix) -> None:
    airflow = sealed.airflow
    run_id = airflow.run_id(SCHEDULED)
    assert run_id.startswith("scheduled__")
    with sealed.row("backfill, completed, over the sealed scheduled run", {}):
        airflow.backfill(SCHEDULED, SCHEDULED)
        airflow.backfilled(SCHEDULED)
        assert airflow.runs()[SCHEDULED] == "success"
    assert airflow.run_id(SCHEDULED) == run_id
    assert "re-issued, 0 charged" in note(airflow, SCHEDULED)


def test_a_second_backfill_at_once_is_turned_away_and_the_first_goes_on(sealed: Matrix) -> None:
    airflow = sealed.airflow
    with sealed.row("a second backfill at once, by REST and by CLI: turned away", {}):
        airflow.backfill(FIRST, THIRD, max_active_runs=4)
        with pytest.raises(TurnstileError, match="409"):
            airflow.backfill(FIRST, THIRD)
        assert airflow.cli_backfill(FIRST, THIRD, "completed").returncode != 0
        airflow.backfilled(FIRST, SECOND, THIRD)


@pytest.mark.parametrize("task", ["ingest", "reserve", "draw", "publish"])
def test_a_cleared_task_of_a_sealed_week_draws_nothing(sealed: Matrix, task: str) -> None:
    airflow = sealed.airflow
    with sealed.row(f"task {task} cleared in a sealed week", {}):
        airflow.clear(FIRST, task)
        airflow.until_ended(FIRST)
        assert airflow.runs()[FIRST] == "success"


def test_a_task_cleared_in_the_middle_of_a_re_issue_draws_nothing(sealed: Matrix) -> None:
    airflow = sealed.airflow
    with sealed.row("task cleared in the middle of a backfill of a sealed week", {}):
        airflow.backfill(SECOND, SECOND)
        airflow.until(
            lambda: airflow.tasks(SECOND)["assess"] in {"running", "success"}, what="assess"
        )
        airflow.clear(SECOND, "count")
        airflow.backfilled(SECOND)
        assert airflow.runs()[SECOND] == "success"


def test_a_sealed_run_that_is_marked_failed_by_hand_is_taken_up_at_no_cost(sealed: Matrix) -> None:
    airflow = sealed.airflow
    with sealed.row("sealed run marked failed by hand, then backfill, failed", {}):
        airflow.call("PATCH", airflow.path(SECOND), {"state": "failed"})
        airflow.backfill(FIRST, SECOND, "failed")
        airflow.until(lambda: airflow.runs()[SECOND] == "success", what="the run")
        airflow.until_no_backfill()


def test_marking_draw_and_publish_success_by_hand_draws_and_publishes_nothing(
    sealed: Matrix,
) -> None:
    airflow = sealed.airflow
    with sealed.row("every task of a week without files marked success by hand", {}):
        for task in ("ingest", "validate", "count", "reserve", "draw", "publish"):
            airflow.call("PATCH", airflow.path(NO_FILES, task), {"new_state": "success"})
        time.sleep(5)
        assert not (airflow.home / "public/opal" / NO_FILES).exists()
        airflow.call("PATCH", airflow.path(NO_FILES), {"state": "failed"})


def test_half_run_and_never_run_weeks_by_none_and_failed(sealed: Matrix) -> None:
    airflow = sealed.airflow
    stop_before_draw(sealed, HALF_FAILED)
    with sealed.row("backfill, none: half-run week left alone, never-run week", {NEW_NONE: 1}):
        airflow.backfill(HALF_FAILED, NEW_NONE, "none")
        airflow.backfilled(HALF_FAILED, NEW_NONE)
        assert airflow.runs()[HALF_FAILED] == "failed"
    new = {HALF_FAILED: 1, NEW_FAILED: 1}
    with sealed.row("CLI backfill, failed, backwards: half-run, sealed and never-run week", new):
        done = airflow.cli_backfill(HALF_FAILED, NEW_FAILED, "failed", backwards=True)
        assert done.returncode == 0, done.stderr[-2000:]
        airflow.backfilled(HALF_FAILED, NEW_FAILED)
    assert "a hold exists and is resumed, no second one" in note(airflow, HALF_FAILED)
    assert attempts(airflow, HALF_FAILED) == ("published",)


def test_half_run_and_never_run_weeks_by_completed(sealed: Matrix) -> None:
    airflow = sealed.airflow
    stop_before_draw(sealed, HALF_COMPLETED)
    new = {HALF_COMPLETED: 1, NEW_COMPLETED: 1}
    with sealed.row("CLI backfill, completed: half-run and never-run week", new):
        done = airflow.cli_backfill(HALF_COMPLETED, NEW_COMPLETED, "completed")
        assert done.returncode == 0, done.stderr[-2000:]
        airflow.backfilled(HALF_COMPLETED, NEW_COMPLETED)
    assert attempts(airflow, HALF_COMPLETED) == ("published",)


def test_a_run_that_is_marked_success_before_its_draw_has_drawn_nothing(sealed: Matrix) -> None:
    airflow = sealed.airflow
    with sealed.row("run marked success by hand before its draw", {}):
        airflow.hold(MARKED_EARLY, "draw")
        airflow.backfill(MARKED_EARLY, MARKED_EARLY)
        airflow.held(MARKED_EARLY, "draw")
        airflow.call("PATCH", airflow.path(MARKED_EARLY), {"state": "success"})
        airflow.until_no_backfill()
        airflow.let_go(MARKED_EARLY, "draw")
        assert not (airflow.home / "public/opal" / MARKED_EARLY).exists()
    with sealed.row("the same run again, backfill, completed", {MARKED_EARLY: 1}):
        airflow.backfill(MARKED_EARLY, MARKED_EARLY)
        airflow.backfilled(MARKED_EARLY)
    assert attempts(airflow, MARKED_EARLY) == ("published",)


def test_a_draw_that_is_cleared_midway_is_burned_and_charged_again(sealed: Matrix) -> None:
    airflow = sealed.airflow
    with sealed.row("task cleared in the middle of its draw: burned", {CLEARED_MIDWAY: 2}):
        airflow.hold(CLEARED_MIDWAY, "seal")
        airflow.backfill(CLEARED_MIDWAY, CLEARED_MIDWAY)
        process = airflow.held(CLEARED_MIDWAY, "seal")
        airflow.clear(CLEARED_MIDWAY, "draw")
        airflow.until(lambda: not process.is_running(), what="the end of the cleared task")
        airflow.let_go(CLEARED_MIDWAY, "seal")
        airflow.backfilled(CLEARED_MIDWAY)
    assert attempts(airflow, CLEARED_MIDWAY) == ("burned", "published")


def test_a_draw_that_is_killed_is_burned_reported_once_and_charged_again(sealed: Matrix) -> None:
    airflow = sealed.airflow
    landed = sorted((airflow.home / "landing/opal" / KILLED_ONCE).glob("*.csv"))
    for file in landed:
        header, row, *rest = file.read_text().splitlines()
        planted = re.sub(r"^\d+", CANARY, row)
        file.write_text("\n".join([header, planted, *rest]) + "\n")
    with sealed.row("kill -9 of the task's process in its draw", {KILLED_ONCE: 1}):
        airflow.hold(KILLED_ONCE, "seal")
        airflow.backfill(KILLED_ONCE, KILLED_ONCE)
        kill_with_worker(airflow.held(KILLED_ONCE, "seal"))
        airflow.backfilled(KILLED_ONCE)
        airflow.let_go(KILLED_ONCE, "seal")
        assert airflow.runs()[KILLED_ONCE] == "failed"
        assert airflow.tasks(KILLED_ONCE)["draw"] == "failed"
    assert attempts(airflow, KILLED_ONCE) == ("drawing",)
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
    with sealed.row("kill -9 in the draw, twice", {KILLED_TWICE: 2}):
        airflow.hold(KILLED_TWICE, "seal")
        for behavior in ("none", "failed"):
            airflow.backfill(KILLED_TWICE, KILLED_TWICE, behavior)
            airflow.held(KILLED_TWICE, "seal").kill()
            airflow.backfilled(KILLED_TWICE)
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
    draws: dict[str, int] = {}
    with sealed.row("scheduler killed alone, started again while its worker draws", draws):
        airflow.hold(ORPHANED_LONG, "seal")
        airflow.backfill(ORPHANED_LONG, ORPHANED_LONG)
        drawing = airflow.held(ORPHANED_LONG, "seal")
        assert drawing in airflow.kill_scheduler(with_workers=False)
        assert airflow.stack.revive_scheduler()
        time.sleep(LOOKS_FOR_ORPHANS_S)
        airflow.let_go(ORPHANED_LONG, "seal")
        airflow.backfilled(ORPHANED_LONG)
        # Airflow either leaves the old worker alone, or ends it and tries again: a second charge.
        draws[ORPHANED_LONG] = len(attempts(airflow, ORPHANED_LONG))
    assert airflow.runs()[ORPHANED_LONG] == "success"
    assert attempts(airflow, ORPHANED_LONG) in {("published",), ("burned", "published")}


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
            until_step(by_hand.stderr, "reserve")
            airflow.let_go(BESIDE_RUN, "seal")
            by_hand.communicate()
        assert by_hand.returncode == 0
        airflow.backfilled(BESIDE_RUN)
    assert airflow.runs()[BESIDE_RUN] == "success"
    assert attempts(airflow, BESIDE_RUN) == ("published",)


def test_a_late_file_that_the_budget_has_no_room_to_correct_is_reported_and_changes_nothing(
    sealed: Matrix,
) -> None:
    airflow = sealed.airflow
    with sealed.row("late file in a sealed week, run cleared, no room under the cap", {}):
        deliver_again(airflow, FIRST)
        airflow.clear(FIRST, "wait")
        airflow.until_ended(FIRST)
        assert airflow.runs()[FIRST] == "success"
    assert '"happening": "restated"' in journal(airflow, FIRST)


def test_a_late_file_that_could_be_corrected_is_asked_about_and_changes_nothing(
    sealed: Matrix,
) -> None:
    airflow = sealed.airflow
    with sealed.row("late file in a sealed week, run cleared, an officer keeps the week", {}):
        deliver_again(airflow, SCHEDULED)
        airflow.clear(SCHEDULED, "wait")
        airflow.until(lambda: airflow.asks(SCHEDULED, "ask_revision"), what="the question")
        airflow.answer(SCHEDULED, "ask_revision", "admin", "Keep the sealed week")
        airflow.until_ended(SCHEDULED)
        assert airflow.runs()[SCHEDULED] == "success"
    assert '"happening": "restated"' in journal(airflow, SCHEDULED)


def test_the_audit_finds_the_ledger_in_order(sealed: Matrix) -> None:
    with sealed.row("audit of everything above", {}):
        assert run_by_hand(sealed.airflow, "audit_ledger") == "success"


# -- the checks themselves must be able to fail ----------------------------------------------------


def _altered_bytes(home: Path) -> None:
    file = next((home / "embargoed/opal" / FIRST / "r0").glob("sealed-*.parquet"))
    file.chmod(0o644)
    file.write_bytes(file.read_bytes()[:-1] + b"x")


def _altered_package(home: Path) -> None:
    file = home / "public/opal" / FIRST / "r0/release_card.md"
    file.write_text(file.read_text() + " ")


def _refunded_account(home: Path) -> None:
    with sqlite3.connect(home / "ledger.sqlite") as ledger:
        ledger.execute("DROP TRIGGER account_no_refund")
        ledger.execute("UPDATE account SET spent_rho_nano = 0 WHERE unit = 'card_day'")


def _unknown_package(home: Path) -> None:
    public = home / "public/opal"
    shutil.copytree(public / FIRST, public / "2016-W50")


@pytest.mark.parametrize(
    ("alter", "named"),
    [
        (_altered_bytes, f"{FIRST}: the sealed bytes are not those of the ledger"),
        (_altered_package, f"{FIRST}: release_card.md was altered"),
        (_refunded_account, "the account is not what the draws cost"),
        (_unknown_package, "2016-W50: public, and the ledger does not say so"),
    ],
)
def test_the_checks_of_every_row_see_what_was_altered(
    sealed: Matrix, tmp_path: Path, alter: Callable[[Path], None], named: str
) -> None:
    home = tmp_path / "var"
    for name in ("embargoed", "public"):
        shutil.copytree(sealed.airflow.home / name, home / name, symlinks=True)
    for file in ("ledger.sqlite", "ledger-key.pem"):
        shutil.copy(sealed.airflow.home / file, home)
    include = sealed.airflow.base / "include"
    assert disagreements(home, include) == ()
    alter(home)
    assert any(named in found for found in disagreements(home, include))


def test_a_row_with_a_draw_too_many_or_another_digest_fails(sealed: Matrix) -> None:
    now = weeks_of(sealed.airflow.home)
    assert now.unlike(now, {}) == ()
    assert now.unlike(now, {FIRST: 1}) == (f"{FIRST}: 1 draws, not 2",)
    digest = {**now.sealed, FIRST: "another"}
    other = Weeks(now.draws, now.attempts, digest, now.packages)
    assert other.unlike(now, {}) == (f"{FIRST}: another sealed bytes",)
