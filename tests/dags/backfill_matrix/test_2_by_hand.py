"""Clears and marks by hand: none of them draws, and none publishes."""

from __future__ import annotations

import time

import pytest
from matrix_of_weeks import (
    CLEARED_MIDWAY,
    FIRST,
    MARKED_EARLY,
    NO_FILES,
    SECOND,
    Matrix,
    attempts,
)

pytestmark = pytest.mark.long


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
