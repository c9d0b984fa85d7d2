"""On a real Airflow, both programmes, looked at once a second: what waits, asks, stands, is killed.

Runs that are slow, paused, queued, wait for their day, ask people, lose their worker or scheduler:
no false trouble, no question that Airflow does not have, no two that differ.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from looks import Looks
from matrix_of_weeks import (
    SCHEDULED,
    SETTINGS,
    cleared_in_its_draw,
    kill_with_worker,
    parent_of,
)
from real_airflow import RealAirflow, monday, running
from sinks import Sinks, sinks

from turnstile.cli import main
from turnstile.errors import TurnstileError
from turnstile.ledger.entries import EntryKind
from turnstile.ledger.records import ReleaseKey

ASKED, QUEUED, SLOW, KILLED = OPAL = tuple(f"2016-W{n}" for n in range(30, 34))
HEALTHY, TROUBLED, BEHIND, ORPHANED = BUSES = tuple(f"2016-W{n}" for n in range(40, 44))
EDITS = {
    "approval: {required: false}": "approval: {required: true}",
    "final_after_days: 0": "final_after_days: 30",  # last week waits for its day
}
EXTRA = SETTINGS | {"AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE": "False"}
STANDS_S = 8  # how long a state is looked at

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def found() -> Iterator[Sinks]:
    """Where messages arrive."""
    with sinks() as made:
        yield made


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory, found: Sinks) -> Iterator[RealAirflow]:
    """Four weeks of cards and four of buses that nobody has released."""
    base = tmp_path_factory.mktemp("waits")
    extra = EXTRA | {"AIRFLOW_CONN_TURNSTILE_ALERTS": found.connection}
    weeks = f"{ASKED}:{KILLED}"
    with running(base, weeks, edits=EDITS, extra=extra, edits_of_buses=EDITS) as started:
        weeks = f"{HEALTHY}:{ORPHANED}"
        assert main(["sample", "itms", "--weeks", weeks, "--rows", "5000", "--seed", "3"]) == 0
        started.until(lambda: started.api().has_dag("release_itms"), what="the DAG of buses")
        started.api().unpause("release_itms")
        yield started


@pytest.fixture
def buses(airflow: RealAirflow) -> RealAirflow:
    """The same Airflow, whose weeks of buses are meant."""
    return replace(airflow, dag="release_itms")


def _approve(airflow: RealAirflow, *weeks: str) -> None:
    for week in weeks:
        airflow.answer(week, "ask", "ada", "Approve")
        airflow.until_ended(week)
        assert airflow.runs()[week] == "success"


def _look(airflow: RealAirflow, observer: Looks, week: str, state: str) -> None:
    """Wait until the page has a state of a week, and look at it for a while."""
    airflow.until(lambda: observer.last_state(week) == state, what=f"{week} {state}")
    seen = len(observer.seen[week])
    airflow.until(lambda: len(observer.seen[week]) >= seen + STANDS_S, what="looks")


def test_a_question_and_what_is_queued_behind_it(airflow: RealAirflow) -> None:
    observer = Looks(airflow, OPAL)
    with observer.once_a_second():
        airflow.backfill(ASKED, QUEUED, max_active_runs=1)
        _look(airflow, observer, ASKED, "asked")
        assert observer.last_state(QUEUED) == "held_up"
        assert "queued behind the run of 2016-W30" in observer.seen[QUEUED][-1].mark["reason"]
        _approve(airflow, ASKED, QUEUED)
        airflow.until_no_backfill()
    assert observer.faults(ASKED) | observer.faults(QUEUED) == set()
    assert {look.trouble for look in observer.seen[ASKED]} <= {"", "asked"}


def test_a_slow_run_is_paused_and_loses_its_scheduler(airflow: RealAirflow) -> None:
    observer = Looks(airflow, OPAL)
    airflow.hold(SLOW, "count")
    with observer.once_a_second():
        airflow.backfill(SLOW, SLOW)
        airflow.held(SLOW, "count")
        _look(airflow, observer, SLOW, "under_way")
        airflow.call("PATCH", f"/api/v2/dags/{airflow.dag}", {"is_paused": True})
        _look(airflow, observer, SLOW, "under_way")
        airflow.call("PATCH", f"/api/v2/dags/{airflow.dag}", {"is_paused": False})
        airflow.kill_scheduler(with_workers=False)
        time.sleep(STANDS_S)
        assert observer.last_state(SLOW) == "under_way"
        assert airflow.stack.revive_scheduler()
        airflow.let_go(SLOW, "count")
        airflow.until(lambda: airflow.asks(SLOW, "ask"), what="its question")
        _approve(airflow, SLOW)
        airflow.until_no_backfill()
    assert observer.faults(SLOW) == set()
    assert {look.trouble for look in observer.seen[SLOW]} == {
        "",
        "overdue",
        "asked",
    }  # while paused


def test_a_run_whose_worker_is_killed_goes_on(airflow: RealAirflow) -> None:
    observer = Looks(airflow, OPAL)
    airflow.hold(KILLED, "count")
    with observer.once_a_second():
        airflow.backfill(KILLED, KILLED)
        kill_with_worker(airflow.held(KILLED, "count"))
        airflow.let_go(KILLED, "count")
        airflow.until(lambda: airflow.asks(KILLED, "ask"), what="its question")
        _approve(airflow, KILLED)
        airflow.until_no_backfill()
    assert observer.faults(KILLED) == set()
    assert not {look.trouble for look in observer.seen[KILLED]} - {"", "asked"}


def test_buses_healthy_and_asked(buses: RealAirflow, found: Sinks) -> None:
    observer = Looks(buses, BUSES)
    with observer.once_a_second():
        _backfill_of_buses(buses, HEALTHY, HEALTHY)
        _look(buses, observer, HEALTHY, "asked")
        _approve(buses, HEALTHY)
        buses.until(lambda: observer.seen[HEALTHY][-1].run == "success", what="a last look")
    assert observer.faults(HEALTHY) == set()
    assert {look.trouble for look in observer.seen[HEALTHY]} == {"", "asked"}
    assert _told(found, HEALTHY) == set()


def test_buses_slow_queued_paused_without_scheduler_and_worker_and_cleared_in_their_draw(
    buses: RealAirflow, found: Sinks
) -> None:
    observer = Looks(buses, BUSES)
    for moment in ("count", "seal"):
        buses.hold(TROUBLED, moment)
    with observer.once_a_second():
        _backfill_of_buses(buses, TROUBLED, BEHIND)
        counting = buses.held(TROUBLED, "count")
        _look(buses, observer, TROUBLED, "under_way")
        _look(buses, observer, BEHIND, "held_up")
        for is_paused in (True, False):
            buses.call("PATCH", f"/api/v2/dags/{buses.dag}", {"is_paused": is_paused})
            _look(buses, observer, TROUBLED, "under_way")
        buses.kill_scheduler(with_workers=False)
        time.sleep(STANDS_S)
        assert observer.last_state(TROUBLED) == "under_way"
        assert buses.stack.revive_scheduler()
        kill_with_worker(counting)
        buses.let_go(TROUBLED, "count")
        cleared_in_its_draw(buses, TROUBLED)
        _look(buses, observer, TROUBLED, "under_way")
        buses.let_go(TROUBLED, "seal")
        _approve(buses, TROUBLED, BEHIND)
        buses.until_no_backfill()
    assert observer.faults(TROUBLED) | observer.faults(BEHIND) == set()
    for week in (TROUBLED, BEHIND):
        assert {look.trouble for look in observer.seen[week]} <= {
            "",
            "overdue",
            "asked",
        }  # while paused
        assert _draws(buses, week) == 1
        assert _told(found, week) == set()


def test_buses_whose_task_is_killed_in_its_draw(buses: RealAirflow, found: Sinks) -> None:
    observer = Looks(buses, BUSES)
    buses.hold(ORPHANED, "seal")
    with observer.once_a_second():
        _backfill_of_buses(buses, ORPHANED, ORPHANED)
        drawing = buses.held(ORPHANED, "seal")
        kill_with_worker(parent_of(drawing))
        buses.until_ended(ORPHANED)
        _look(buses, observer, ORPHANED, "under_way")  # its draw goes on without it
        assert drawing.is_running()
        buses.let_go(ORPHANED, "seal")
        seen = observer.until(ORPHANED, "dead")
        assert seen.mark["of_budget"] == "sealed"
        buses.clear(ORPHANED, "draw")
        _approve(buses, ORPHANED)
    assert observer.faults(ORPHANED) == set()
    assert {look.trouble for look in observer.seen[ORPHANED]} <= {"", "dead", "asked"}
    assert _draws(buses, ORPHANED) == 1
    assert _told(found, ORPHANED) <= {"run_died"}


def _backfill_of_buses(buses: RealAirflow, first: str, last: str) -> None:
    """Ask for weeks of buses, whose first instant is on another clock than that of cards."""
    end = (monday(last) + timedelta(days=1)).isoformat()
    buses.until_no_backfill()
    buses.backfill(first, last, to_date=end, max_active_runs=1)


def _draws(airflow: RealAirflow, week: str) -> int:
    """Count the draws of a week that ever began."""
    entries = airflow.ledger.entries_of(ReleaseKey(airflow.dag.removeprefix("release_"), week))
    return sum(entry.kind is EntryKind.DRAW_BEGUN for entry in entries)


def _told(receivers: Sinks, week: str) -> set[str]:
    """Return what was sent of a week beside questions: the chapters that messages lead to."""
    rules = set()
    for post in receivers.posts():
        lines = str(json.loads(post)["message"]).splitlines()
        starts = [n for n, line in enumerate(lines) if line.startswith("[")]
        for begin, end in pairwise([*starts, len(lines)]):
            if f" {week}:" in lines[begin]:
                text = "\n".join(lines[begin:end])
                rules |= set(re.findall(r"RUNBOOK\.md#(\w+)", text))
    return rules - {"people_asked"}


@pytest.mark.parametrize("programme", ["opal", "itms"])
def test_a_week_that_waits_for_its_day_and_whose_run_is_marked_failed(
    airflow: RealAirflow, buses: RealAirflow, programme: str
) -> None:
    airflow = buses if programme == "itms" else airflow
    observer = Looks(airflow, (SCHEDULED,))
    with observer.once_a_second():
        _backfill_of_buses(airflow, SCHEDULED, SCHEDULED)
        _look(airflow, observer, SCHEDULED, "waiting")
        assert f"{SCHEDULED} is final on" in observer.seen[SCHEDULED][-1].mark["reason"]
        airflow.call("PATCH", airflow.path(SCHEDULED), {"state": "failed"})
        observer.until(SCHEDULED, "dead")
        airflow.until_no_backfill()
    assert observer.faults(SCHEDULED) == set()


def test_a_backfill_whose_field_names_one_week_releases_no_other(airflow: RealAirflow) -> None:
    weeks = ("2016-W34", "2016-W35")
    airflow.deliver("2016-W34:2016-W35")
    airflow.backfill(*weeks, dag_run_conf={"week": weeks[0]}, max_active_runs=1)
    _approve(airflow, weeks[0])
    airflow.until_ended(weeks[1])
    assert airflow.runs()[weeks[1]] == "failed"
    assert not [entry for entry in airflow.ledger.entries() if weeks[1] in str(entry.key)]
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
