"""Backfills over weeks in every state: a sealed week is drawn once, whoever asks again."""

from __future__ import annotations

import pytest
from matrix_of_weeks import (
    FIRST,
    HALF_COMPLETED,
    HALF_FAILED,
    NEW_COMPLETED,
    NEW_FAILED,
    NEW_NONE,
    NO_FILES,
    REFUSED,
    SCHEDULED,
    SECOND,
    THIRD,
    Matrix,
    attempts,
    note,
    stop_before_draw,
)

from turnstile.errors import TurnstileError

pytestmark = pytest.mark.long


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
    assert run_id == f"opal_{SCHEDULED}"
    assert airflow.call("GET", airflow.path(SCHEDULED))["run_type"] == "scheduled"
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
