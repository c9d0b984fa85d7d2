"""On a real Airflow: the task of a draw is cleared at moments of its life, and again and again.

`tests/pipeline/test_drawing_apart.py` kills it in every 100 ms of its life, as a clear does.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
from matrix_of_weeks import SETTINGS, attempts
from real_airflow import RealAirflow, running
from row_table import MOMENTS, keep

from turnstile.errors import TurnstileError

AGAIN_AND_AGAIN, *ONCE = (f"2016-W{n}" for n in range(30, 38))
APART_S = 0.7
EVERY_S = 0.1

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealAirflow]:
    """Weeks that nobody has released."""
    base = tmp_path_factory.mktemp("cleared")
    with running(base, f"{AGAIN_AND_AGAIN}:{ONCE[-1]}", edits={}, extra=SETTINGS) as instance:
        yield instance


def _draws(airflow: RealAirflow, week: str) -> bool:
    return week in airflow.runs() and airflow.tasks(week).get("draw") == "running"


def _until_it_draws(airflow: RealAirflow, week: str) -> None:
    """Ask for a week, and wait until Airflow says that its task draws."""
    airflow.backfill(week, week)
    until = time.monotonic() + 600
    while not _draws(airflow, week):
        assert time.monotonic() < until
        time.sleep(EVERY_S / 2)


def _states(airflow: RealAirflow, week: str) -> tuple[str, ...]:
    airflow.backfilled(week)
    assert airflow.runs()[week] == "success"
    return attempts(airflow, week)


def test_a_draw_that_is_cleared_at_any_moment_burns_nothing(
    airflow: RealAirflow, request: pytest.FixtureRequest
) -> None:
    then, sealed = [], []
    for number, week in enumerate(ONCE):
        _until_it_draws(airflow, week)
        time.sleep(number * APART_S)
        airflow.clear(week, "draw")
        then.append(attempts(airflow, week))
        sealed.append(_states(airflow, week))
    row = ("the task, by Airflow's clear", len(ONCE), then.count(("drawing",)))
    burned = sum("burned" in states for states in sealed)
    keep(request.node, MOMENTS, [(*map(str, row), str(burned))])
    assert sealed == [("published",)] * len(ONCE)
    assert ("reserved",) in then


def test_a_draw_that_is_cleared_every_100_ms_burns_nothing(airflow: RealAirflow) -> None:
    week, clears = AGAIN_AND_AGAIN, 0
    _until_it_draws(airflow, week)
    ends = time.monotonic() + 20
    while time.monotonic() < ends:
        with suppress(TurnstileError):  # its database is busy with the clear before
            airflow.clear(week, "draw")
            clears += 1
        time.sleep(EVERY_S)
    assert clears >= 10
    assert _states(airflow, week) == ("published",)
