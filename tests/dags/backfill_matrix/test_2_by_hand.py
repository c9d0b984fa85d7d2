"""Clears and marks by hand: none of them draws, burns or publishes."""

from __future__ import annotations

import time

import pytest
from matrix_of_weeks import (
    CLEARED_AND_KILLED,
    CLEARED_MIDWAY,
    FIRST,
    MARKED_EARLY,
    MARKED_LATE,
    NO_FILES,
    SECOND,
    Matrix,
    attempts,
    cleared_in_its_draw,
    parent_of,
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


def test_a_draw_that_is_cleared_midway_goes_on_and_the_next_try_waits_for_its_seal(
    sealed: Matrix,
) -> None:
    airflow = sealed.airflow
    with sealed.row("task cleared in the middle of its draw: nothing burned", {CLEARED_MIDWAY: 1}):
        airflow.hold(CLEARED_MIDWAY, "seal")
        airflow.backfill(CLEARED_MIDWAY, CLEARED_MIDWAY)
        cleared_in_its_draw(airflow, CLEARED_MIDWAY)
        airflow.let_go(CLEARED_MIDWAY, "seal")
        airflow.backfilled(CLEARED_MIDWAY)
        assert airflow.runs()[CLEARED_MIDWAY] == "success"
    assert attempts(airflow, CLEARED_MIDWAY) == ("published",)


def test_a_run_that_is_marked_failed_in_its_draw_is_sealed_and_goes_on_at_no_cost(
    sealed: Matrix,
) -> None:
    airflow = sealed.airflow
    with sealed.row("run marked failed by hand in its draw: sealed all the same", {MARKED_LATE: 1}):
        airflow.hold(MARKED_LATE, "seal")
        airflow.backfill(MARKED_LATE, MARKED_LATE)
        drawing = airflow.held(MARKED_LATE, "seal")
        task = parent_of(drawing)
        airflow.call("PATCH", airflow.path(MARKED_LATE), {"state": "failed"})
        airflow.until(lambda: not task.is_running(), what="the end of the marked task")
        assert attempts(airflow, MARKED_LATE) == ("drawing",)
        airflow.let_go(MARKED_LATE, "seal")
        drawing.wait(timeout=300)
        airflow.until_no_backfill()
        assert attempts(airflow, MARKED_LATE) == ("sealed",)
        assert not (airflow.home / "public/opal" / MARKED_LATE).exists()
    with sealed.row("the same run again, backfill, failed", {}):
        airflow.backfill(MARKED_LATE, MARKED_LATE, "failed")
        airflow.backfilled(MARKED_LATE)
    assert attempts(airflow, MARKED_LATE) == ("published",)


def test_a_draw_that_is_cleared_midway_and_then_dies_itself_is_burned_and_charged_again(
    sealed: Matrix,
) -> None:
    # Negative control of the two before: what dies is the process that draws.
    airflow, week = sealed.airflow, CLEARED_AND_KILLED
    with sealed.row("cleared in its draw, whose process is then killed: burned", {week: 2}):
        airflow.hold(week, "seal")
        airflow.backfill(week, week)
        drawing = cleared_in_its_draw(airflow, week)
        drawing.kill()
        airflow.held(week, "seal")
        airflow.let_go(week, "seal")
        airflow.backfilled(week)
        assert airflow.runs()[week] == "success"
    assert attempts(airflow, week) == ("burned", "published")
