"""On a real Airflow, both programmes, looked at once a second: what waits, asks, stands, is killed.

Runs that are slow, paused, queued, wait for their day, ask people, lose their worker or scheduler:
no false trouble, no question that Airflow does not have, no two that differ.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from looks import Looks
from matrix_of_weeks import SCHEDULED, SETTINGS, kill_with_worker
from real_airflow import RealAirflow, monday, running

from turnstile.cli import main
from turnstile.errors import TurnstileError

ASKED, QUEUED, SLOW, KILLED = OPAL = tuple(f"2016-W{n}" for n in range(30, 34))
HEALTHY, ORPHANED = ITMS = ("2016-W40", "2016-W41")
EDITS = {
    "approval: {required: false}": "approval: {required: true}",
    "final_after_days: 0": "final_after_days: 30",  # last week waits for its day
}
EXTRA = SETTINGS | {"AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE": "False"}
STANDS_S = 8  # how long a state is looked at

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealAirflow]:
    """Four weeks of cards and two of buses that nobody has released."""
    base = tmp_path_factory.mktemp("waits")
    with running(base, f"{ASKED}:{KILLED}", edits=EDITS, extra=EXTRA) as found:
        weeks = f"{HEALTHY}:{ORPHANED}"
        assert main(["sample", "itms", "--weeks", weeks, "--rows", "2000", "--seed", "3"]) == 0
        found.until(lambda: found.api().has_dag("release_itms"), what="the DAG of buses")
        found.api().unpause("release_itms")
        yield found


def _approve(airflow: RealAirflow, *weeks: str) -> None:
    for week in weeks:
        airflow.answer(week, "ask", "ada", "Approve")
        airflow.until_ended(week)
        assert airflow.runs()[week] == "success"


def _look(airflow: RealAirflow, looks: Looks, week: str, state: str) -> None:
    """Wait until the page has a state of a week, and look at it for a while."""
    airflow.until(lambda: looks.last_state(week) == state, what=f"{week} {state}")
    seen = len(looks.seen[week])
    airflow.until(lambda: len(looks.seen[week]) >= seen + STANDS_S, what="looks")


def _is_clean(looks: Looks, *weeks: str) -> bool:
    return not any(looks.faults(week) for week in weeks)


def test_a_question_and_what_is_queued_behind_it(airflow: RealAirflow) -> None:
    looks = Looks(airflow, OPAL)
    with looks.once_a_second():
        airflow.backfill(ASKED, QUEUED, max_active_runs=1)
        _look(airflow, looks, ASKED, "asked")
        assert looks.last_state(QUEUED) == "held_up"
        assert "queued behind the run of 2016-W30" in looks.seen[QUEUED][-1].mark["reason"]
        _approve(airflow, ASKED, QUEUED)
        airflow.until_no_backfill()
    assert looks.faults(ASKED) | looks.faults(QUEUED) == set()
    assert {one.trouble for one in looks.seen[ASKED]} <= {"", "asked"}


def test_a_slow_run_is_paused_and_loses_its_scheduler(airflow: RealAirflow) -> None:
    looks = Looks(airflow, OPAL)
    airflow.hold(SLOW, "count")
    with looks.once_a_second():
        airflow.backfill(SLOW, SLOW)
        airflow.held(SLOW, "count")
        _look(airflow, looks, SLOW, "under_way")
        airflow.call("PATCH", f"/api/v2/dags/{airflow.dag}", {"is_paused": True})
        _look(airflow, looks, SLOW, "under_way")
        airflow.call("PATCH", f"/api/v2/dags/{airflow.dag}", {"is_paused": False})
        airflow.kill_scheduler(with_workers=False)
        time.sleep(STANDS_S)
        assert looks.last_state(SLOW) == "under_way"
        assert airflow.stack.revive_scheduler()
        airflow.let_go(SLOW, "count")
        airflow.until(lambda: airflow.asks(SLOW, "ask"), what="its question")
        _approve(airflow, SLOW)
        airflow.until_no_backfill()
    assert looks.faults(SLOW) == set()
    assert {one.trouble for one in looks.seen[SLOW]} == {"", "overdue", "asked"}  # while paused


def test_a_run_whose_worker_is_killed_goes_on(airflow: RealAirflow) -> None:
    looks = Looks(airflow, OPAL)
    airflow.hold(KILLED, "count")
    with looks.once_a_second():
        airflow.backfill(KILLED, KILLED)
        kill_with_worker(airflow.held(KILLED, "count"))
        airflow.let_go(KILLED, "count")
        airflow.until(lambda: airflow.asks(KILLED, "ask"), what="its question")
        _approve(airflow, KILLED)
        airflow.until_no_backfill()
    assert looks.faults(KILLED) == set()
    assert not {one.trouble for one in looks.seen[KILLED]} - {"", "asked"}


def test_buses_healthy_and_with_a_task_that_is_killed_in_its_draw(airflow: RealAirflow) -> None:
    buses = replace(airflow, dag="release_itms")
    looks = Looks(buses, ITMS)
    a_day = {"to_date": (monday(HEALTHY) + timedelta(days=1)).isoformat()}
    with looks.once_a_second():
        buses.backfill(HEALTHY, HEALTHY, **a_day)
        buses.backfilled(HEALTHY)
        airflow.until(lambda: looks.seen[HEALTHY][-1].run == "success", what="a last look")
        assert buses.runs()[HEALTHY] == "success"
        airflow.hold(ORPHANED, "seal")
        a_day = {"to_date": (monday(ORPHANED) + timedelta(days=1)).isoformat()}
        buses.backfill(ORPHANED, ORPHANED, **a_day)
        drawing = airflow.held(ORPHANED, "seal")
        task = drawing.parent()
        assert task is not None
        kill_with_worker(task)
        buses.until_ended(ORPHANED)
        _look(airflow, looks, ORPHANED, "under_way")  # its draw goes on without it
        assert drawing.is_running()
        airflow.let_go(ORPHANED, "seal")
        seen = looks.until(ORPHANED, "dead")
        assert seen.mark["of_budget"] == "sealed"
        buses.clear(ORPHANED, "draw")
        buses.until_ended(ORPHANED)
    assert buses.runs()[ORPHANED] == "success"
    assert looks.faults(HEALTHY) | looks.faults(ORPHANED) == set()
    assert not any(one.trouble for one in looks.seen[HEALTHY])
    assert {one.trouble for one in looks.seen[ORPHANED]} <= {"", "dead"}
    entries = [entry.kind.value for entry in airflow.ledger.entries() if "itms" in str(entry.key)]
    assert entries.count("draw_begun") == len(ITMS)


def test_a_week_that_waits_for_its_day_and_whose_run_is_marked_failed(
    airflow: RealAirflow,
) -> None:
    looks = Looks(airflow, (SCHEDULED,))
    with looks.once_a_second():
        airflow.backfill(SCHEDULED, SCHEDULED)
        _look(airflow, looks, SCHEDULED, "waiting")
        assert f"{SCHEDULED} is final on" in looks.seen[SCHEDULED][-1].mark["reason"]
        airflow.call("PATCH", airflow.path(SCHEDULED), {"state": "failed"})
        looks.until(SCHEDULED, "dead")
    assert looks.faults(SCHEDULED) == set()


def test_a_backfill_whose_field_names_one_week_releases_no_other(airflow: RealAirflow) -> None:
    weeks = ("2016-W34", "2016-W35")
    airflow.deliver("2016-W34:2016-W35")
    airflow.backfill(*weeks, dag_run_conf={"week": weeks[0]}, max_active_runs=1)
    _approve(airflow, weeks[0])
    airflow.until_ended(weeks[1])
    assert airflow.runs()[weeks[1]] == "failed"
    assert not [one for one in airflow.ledger.entries() if weeks[1] in str(one.key)]
    note = airflow.call("GET", airflow.path(weeks[1]))["note"]
    assert "stands for 2016-W35 by its dates" in note
    with pytest.raises(TurnstileError):
        airflow.backfill(*weeks, dag_run_conf={"week": "last week"})
    public = airflow.call("GET", airflow.path(weeks[0]))["note"]
    assert public == "opal/2016-W34/r0 is public, and its audit passed"
    events = airflow.call("GET", "/api/v2/assets/events?order_by=-timestamp&limit=1")
    (last,) = events["asset_events"]
    assert (last["extra"]["week"], last["extra"]["revision"]) == (weeks[0], 0)
    assert len(last["extra"]["manifest_digest"]) == 64
