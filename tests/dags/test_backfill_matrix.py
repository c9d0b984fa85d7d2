"""Backfills, clears, marks and crashes on a real scheduler: no week is drawn twice for nothing.

One Airflow, one ledger. Weeks are brought into every state, then everything is done to them that
an operator or a failing machine can do. Each row states which draws may come of it; after the row
every charge, digest and state is recomputed (`books_of_weeks`). The rows are printed at the end.

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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import psutil
import pytest
from books_of_weeks import Weeks, disagreements, weeks_of
from real_airflow import DAG, RealAirflow, running
from row_table import ROWS
from sinks import Sinks, sinks

from turnstile.errors import TurnstileError
from turnstile.service_calendar import ServiceWeek
from turnstile.settings import system_clock

REFUSED, FIRST, NO_FILES, SECOND, THIRD = (f"2016-W{n}" for n in range(30, 35))
HALF_FAILED, NEW_NONE, NEW_FAILED = "2018-W10", "2018-W11", "2018-W12"
HALF_COMPLETED, NEW_COMPLETED = "2019-W40", "2019-W41"
KILLED_ONCE = "2021-W10"
KILLED_TWICE = "2022-W30"
KILLED_EARLY, SCHEDULER_KILLED, BESIDE_RUN = "2023-W40", "2023-W41", "2023-W42"
CLEARED_MIDWAY, MARKED_EARLY = "2024-W50", "2024-W51"
SYDNEY = ZoneInfo("Australia/Sydney")
SCHEDULED = str(ServiceWeek.containing(system_clock().astimezone(SYDNEY).date()).plus(-1))
AT_FIRST = f"{SCHEDULED}.draw"
DELIVERED = (
    f"{REFUSED}:{FIRST}",
    f"{SECOND}:{THIRD}",
    f"{HALF_FAILED}:{NEW_FAILED}",
    f"{HALF_COMPLETED}:{NEW_COMPLETED}",
    KILLED_ONCE,
    KILLED_TWICE,
    f"{KILLED_EARLY}:{BESIDE_RUN}",
    f"{CLEARED_MIDWAY}:{MARKED_EARLY}",
    SCHEDULED,
)
CANARY = "3085220012345678"
EDITS = {'window_weeks: 52, rho: "48"': 'window_weeks: 52, rho: "21/8"'}
SETTINGS = {
    "AIRFLOW__CORE__PARALLELISM": "3",
    "AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE": "True",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "30",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
    "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "10",
    "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "20",
}

pytestmark = pytest.mark.long


@dataclass
class Matrix:
    """An Airflow, and the rows that were tried on it."""

    airflow: RealAirflow
    sinks: Sinks
    lines: list[tuple[str, ...]] = field(default_factory=list)

    @contextmanager
    def row(self, act: str, draws: Mapping[str, int]) -> Iterator[None]:
        """Do something, and hold what came of it against the draws that may come of it."""
        home = self.airflow.home
        before = weeks_of(home)
        yield
        after = weeks_of(home)
        assert after.unlike(before, draws) == ()
        assert disagreements(home, home.parent / "include") == ()
        drawn = ", ".join(f"{week} {number}" for week, number in draws.items()) or "none"
        rho = f"{sum(draws.values()) * 7 / 8:.3f}"
        kept = sum(after.sealed.get(week) == digest for week, digest in before.sealed.items())
        new = len(after.sealed) - len(before.sealed)
        self.lines.append((act, drawn, rho, f"{kept} of {len(before.sealed)}", str(new)))


@pytest.fixture(scope="module")
def matrix(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[Matrix]:
    """An Airflow whose scheduled run of last week stands just before its draw."""
    base = tmp_path_factory.mktemp("matrix")
    hold = base / "var/hold" / AT_FIRST
    hold.parent.mkdir(parents=True)
    hold.touch()
    with sinks() as found:
        extra = {**SETTINGS, "AIRFLOW_CONN_TURNSTILE_ALERTS": found.connection}
        with running(base, ",".join(DELIVERED), edits=EDITS, extra=extra) as airflow:
            made = Matrix(airflow, found)
            pytestconfig.stash[ROWS] = made.lines
            airflow.held(SCHEDULED, "draw")
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
    assert airflow.tasks(REFUSED)["reserve"] == "failed"
    assert "BudgetExceeded" in _journal(airflow, REFUSED)
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
        assert "re-issued, 0 charged" in _note(airflow, FIRST)
    assert airflow.tasks(REFUSED)["reserve"] == "failed"


def test_a_backfill_takes_the_sealed_scheduled_run_over_and_re_issues(sealed: Matrix) -> None:
    airflow = sealed.airflow
    run_id = airflow.run_id(SCHEDULED)
    assert run_id.startswith("scheduled__")
    with sealed.row("backfill, completed, over the sealed scheduled run", {}):
        airflow.backfill(SCHEDULED, SCHEDULED)
        airflow.backfilled(SCHEDULED)
        assert airflow.runs()[SCHEDULED] == "success"
    assert airflow.run_id(SCHEDULED) == run_id
    assert "re-issued, 0 charged" in _note(airflow, SCHEDULED)


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
        _clear(airflow, FIRST, task)
        airflow.until_ended(FIRST)
        assert airflow.runs()[FIRST] == "success"


def test_a_task_cleared_in_the_middle_of_a_re_issue_draws_nothing(sealed: Matrix) -> None:
    airflow = sealed.airflow
    with sealed.row("task cleared in the middle of a backfill of a sealed week", {}):
        airflow.backfill(SECOND, SECOND)
        airflow.until(
            lambda: airflow.tasks(SECOND)["assess"] in {"running", "success"}, what="assess"
        )
        _clear(airflow, SECOND, "count")
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
    _stop_before_draw(sealed, HALF_FAILED)
    with sealed.row("backfill, none: half-run week left alone, never-run week", {NEW_NONE: 1}):
        airflow.backfill(HALF_FAILED, NEW_NONE, "none")
        airflow.backfilled(HALF_FAILED, NEW_NONE)
        assert airflow.runs()[HALF_FAILED] == "failed"
    new = {HALF_FAILED: 1, NEW_FAILED: 1}
    with sealed.row("CLI backfill, failed, backwards: half-run, sealed and never-run week", new):
        done = airflow.cli_backfill(HALF_FAILED, NEW_FAILED, "failed", backwards=True)
        assert done.returncode == 0, done.stderr[-2000:]
        airflow.backfilled(HALF_FAILED, NEW_FAILED)
    assert "a hold exists and is resumed, no second one" in _note(airflow, HALF_FAILED)
    assert _attempts(airflow, HALF_FAILED) == ("published",)


def test_half_run_and_never_run_weeks_by_completed(sealed: Matrix) -> None:
    airflow = sealed.airflow
    _stop_before_draw(sealed, HALF_COMPLETED)
    new = {HALF_COMPLETED: 1, NEW_COMPLETED: 1}
    with sealed.row("CLI backfill, completed: half-run and never-run week", new):
        done = airflow.cli_backfill(HALF_COMPLETED, NEW_COMPLETED, "completed")
        assert done.returncode == 0, done.stderr[-2000:]
        airflow.backfilled(HALF_COMPLETED, NEW_COMPLETED)
    assert _attempts(airflow, HALF_COMPLETED) == ("published",)


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
    assert _attempts(airflow, MARKED_EARLY) == ("published",)


def test_a_draw_that_is_cleared_midway_is_burned_and_charged_again(sealed: Matrix) -> None:
    airflow = sealed.airflow
    with sealed.row("task cleared in the middle of its draw: burned", {CLEARED_MIDWAY: 2}):
        airflow.hold(CLEARED_MIDWAY, "seal")
        airflow.backfill(CLEARED_MIDWAY, CLEARED_MIDWAY)
        process = airflow.held(CLEARED_MIDWAY, "seal")
        _clear(airflow, CLEARED_MIDWAY, "draw")
        airflow.until(lambda: not process.is_running(), what="the end of the cleared task")
        airflow.let_go(CLEARED_MIDWAY, "seal")
        airflow.backfilled(CLEARED_MIDWAY)
    assert _attempts(airflow, CLEARED_MIDWAY) == ("burned", "published")


def test_a_draw_that_is_killed_is_burned_told_once_and_charged_again(sealed: Matrix) -> None:
    airflow = sealed.airflow
    landed = sorted((airflow.home / "landing/opal" / KILLED_ONCE).glob("*.csv"))
    for file in landed:
        header, row, *rest = file.read_text().splitlines()
        planted = re.sub(r"^\d+", CANARY, row)
        file.write_text("\n".join([header, planted, *rest]) + "\n")
    with sealed.row("kill -9 of the task's process in its draw", {KILLED_ONCE: 1}):
        airflow.hold(KILLED_ONCE, "seal")
        airflow.backfill(KILLED_ONCE, KILLED_ONCE)
        _kill_with_worker(airflow.held(KILLED_ONCE, "seal"))
        airflow.backfilled(KILLED_ONCE)
        airflow.let_go(KILLED_ONCE, "seal")
        assert airflow.runs()[KILLED_ONCE] == "failed"
        assert airflow.tasks(KILLED_ONCE)["draw"] == "failed"
    assert _attempts(airflow, KILLED_ONCE) == ("drawing",)
    _the_watchdog_tells_once(sealed, KILLED_ONCE, landed)
    with sealed.row("the killed draw's run again, backfill, failed", {KILLED_ONCE: 1}):
        airflow.backfill(KILLED_ONCE, KILLED_ONCE, "failed")
        airflow.backfilled(KILLED_ONCE)
    assert "a draw that died stays charged; another" in _note(airflow, KILLED_ONCE)
    assert _attempts(airflow, KILLED_ONCE) == ("burned", "published")


def _the_watchdog_tells_once(sealed: Matrix, week: str, landed: list[Path]) -> None:
    """Let the watchdog look twice: one message by mail and webhook, and no card in any."""
    airflow, told = sealed.airflow, sealed.sinks
    assert not any("run_died" in text for text in (*told.mails(), *told.posts()))
    for _ in range(2):
        assert _run_by_hand(airflow, "watchdog") == "success"
    mails = [text for text in told.mails() if "run_died" in text and week in text]
    posts = [text for text in told.posts() if "run_died" in text and week in text]
    assert (len(mails), len(posts)) == (1, 1)
    cards = {line.split(",")[0] for file in landed for line in file.read_text().splitlines()[1:]}
    assert CANARY in cards
    messages = "\n".join([*told.mails(), *told.posts()])
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
    assert "no draw is left, a person decides" in _note(airflow, KILLED_TWICE)
    assert "a third draw needs a person" in _journal(airflow, KILLED_TWICE)
    assert _attempts(airflow, KILLED_TWICE) == ("burned", "burned")


def test_a_worker_that_is_killed_before_the_draw_costs_nothing(sealed: Matrix) -> None:
    airflow = sealed.airflow
    with sealed.row("worker and task killed while they count; retried", {KILLED_EARLY: 1}):
        airflow.hold(KILLED_EARLY, "count")
        airflow.backfill(KILLED_EARLY, KILLED_EARLY)
        _kill_with_worker(airflow.held(KILLED_EARLY, "count"))
        airflow.let_go(KILLED_EARLY, "count")
        airflow.backfilled(KILLED_EARLY)
    assert airflow.runs()[KILLED_EARLY] == "success"
    assert _attempts(airflow, KILLED_EARLY) == ("published",)


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
    assert _attempts(airflow, SCHEDULER_KILLED) == ("published",)


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
            _until_step(by_hand.stderr, "reserve")
            airflow.let_go(BESIDE_RUN, "seal")
            by_hand.communicate()
        assert by_hand.returncode == 0
        airflow.backfilled(BESIDE_RUN)
    assert airflow.runs()[BESIDE_RUN] == "success"
    assert _attempts(airflow, BESIDE_RUN) == ("published",)


def test_a_late_file_that_the_budget_has_no_room_to_correct_is_told_and_changes_nothing(
    sealed: Matrix,
) -> None:
    airflow = sealed.airflow
    with sealed.row("late file in a sealed week, run cleared, no room under the cap", {}):
        _deliver_again(airflow, FIRST)
        _clear(airflow, FIRST, "wait")
        airflow.until_ended(FIRST)
        assert airflow.runs()[FIRST] == "success"
    assert '"happening": "restated"' in _journal(airflow, FIRST)


def test_a_late_file_that_could_be_corrected_is_asked_about_and_changes_nothing(
    sealed: Matrix,
) -> None:
    airflow = sealed.airflow
    with sealed.row("late file in a sealed week, run cleared, an officer keeps the week", {}):
        _deliver_again(airflow, SCHEDULED)
        _clear(airflow, SCHEDULED, "wait")
        airflow.until(lambda: airflow.asks(SCHEDULED, "ask_revision"), what="the question")
        airflow.answer(SCHEDULED, "ask_revision", "admin", "Keep the sealed week")
        airflow.until_ended(SCHEDULED)
        assert airflow.runs()[SCHEDULED] == "success"
    assert '"happening": "restated"' in _journal(airflow, SCHEDULED)


def test_the_audit_finds_the_ledger_in_order(sealed: Matrix) -> None:
    with sealed.row("audit of everything above", {}):
        assert _run_by_hand(sealed.airflow, "audit_ledger") == "success"


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


# -- acts ------------------------------------------------------------------------------------------


def _stop_before_draw(matrix: Matrix, week: str) -> None:
    """Bring a week to its hold in the ledger, and mark its run failed."""
    airflow = matrix.airflow
    with matrix.row("run marked failed by hand between reserve and draw", {}):
        airflow.hold(week, "draw")
        airflow.backfill(week, week)
        process = airflow.held(week, "draw")
        airflow.call("PATCH", airflow.path(week), {"state": "failed"})
        airflow.until(lambda: not process.is_running(), what="the end of the marked task")
        airflow.let_go(week, "draw")
        airflow.backfilled(week)
    assert _attempts(airflow, week) == ("reserved",)


def _kill_with_worker(process: psutil.Process) -> None:
    """Kill a task and the worker that watches it, as the system does when memory is short."""
    worker = process.parent()
    assert worker is not None
    worker.kill()
    process.kill()


def _deliver_again(airflow: RealAirflow, week: str) -> None:
    """Let the authority send a file of a week once more, with one row twice."""
    file = min((airflow.home / "landing/opal" / week).glob("*.csv"))
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines, lines[-1]]) + "\n")


def _clear(airflow: RealAirflow, week: str, *tasks: str) -> None:
    """Clear tasks of a run and what follows them."""
    body: dict[str, Any] = {
        "dry_run": False,
        "dag_run_id": airflow.run_id(week),
        "task_ids": list(tasks),
        "include_downstream": True,
        "only_failed": False,
        "reset_dag_runs": True,
    }
    airflow.call("POST", f"/api/v2/dags/{DAG}/clearTaskInstances", body)


def _run_by_hand(airflow: RealAirflow, dag: str) -> str:
    """Run one of the two DAGs that watch, and return how it ended."""
    airflow.api().unpause(dag)
    run = airflow.call("POST", f"/api/v2/dags/{dag}/dagRuns", {"logical_date": None})["dag_run_id"]
    path = f"/api/v2/dags/{dag}/dagRuns/{run.replace('+', '%2B')}"
    airflow.until(lambda: airflow.call("GET", path)["state"] in {"success", "failed"}, what=dag)
    return str(airflow.call("GET", path)["state"])


def _until_step(progress: Any, step: str) -> None:
    """Read what `turnstile run` says until it is at a step."""
    for line in progress:
        if line.rstrip().endswith(f"] {step}"):
            return
    pytest.fail(f"turnstile run never came to {step}")


def _attempts(airflow: RealAirflow, week: str) -> tuple[str, ...]:
    return weeks_of(airflow.home).attempts[week]


def _journal(airflow: RealAirflow, week: str) -> str:
    return (airflow.home / "operations/journal/opal" / f"{week}.jsonl").read_text()


def _note(airflow: RealAirflow, week: str) -> str:
    """Return what the run's first task said."""
    found = airflow.call("GET", f"{airflow.path(week, 'wait')}/xcomEntries/return_value")
    return str(found["value"])
