"""Approval on a real scheduler: only an officer's own answer publishes; marks and clears do not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from real_airflow import DAG, RealAirflow, monday, running

from turnstile.ledger.records import ReleaseKey

WEEKS = ("2016-W30", "2016-W31", "2016-W32")
TWO_PERSONS = "approval: {required: true, persons: 2}"

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealAirflow]:
    """Three weeks that wait for two officers; the runs were started by ada, who is one."""
    base = tmp_path_factory.mktemp("approval")
    edits = {"approval: {required: false}": TWO_PERSONS}
    with running(base, f"{WEEKS[0]}:{WEEKS[-1]}", edits=edits, extra={}) as found:
        found.call("POST", "/api/v2/backfills", _order(WEEKS[0], WEEKS[-1]), user="ada")
        for week in WEEKS:
            found.until(lambda week=week: _asks(found, week, "ask_1"), what=f"question of {week}")
        yield found


def _order(first: str, last: str) -> dict[str, Any]:
    return {
        "dag_id": DAG,
        "from_date": monday(first).isoformat(),
        "to_date": monday(last).isoformat(),
        "max_active_runs": 3,
        "reprocess_behavior": "none",
        "run_on_latest_version": True,
    }


def _asks(airflow: RealAirflow, week: str, task: str) -> bool:
    return week in airflow.runs() and airflow.tasks(week).get(task) == "awaiting_input"


def _answer(airflow: RealAirflow, week: str, task: str, user: str, choice: str) -> None:
    body = {"chosen_options": [choice], "params_input": {"reason": f"{user} says so"}}
    airflow.call("PATCH", f"{airflow.path(week, task)}/-1/hitlDetails", body, user=user)


def _is_public(airflow: RealAirflow, week: str) -> bool:
    return (airflow.home / "public/opal" / week / "r0").exists()


def _clear(airflow: RealAirflow, week: str, task: str) -> None:
    body = {
        "dry_run": False,
        "dag_run_id": airflow.run_id(week),
        "task_ids": [task],
        "include_downstream": True,
        "only_failed": False,
        "reset_dag_runs": True,
    }
    airflow.call("POST", f"/api/v2/dags/{DAG}/clearTaskInstances", body, user="eve")


def test_an_operator_who_marks_questions_and_approval_success_publishes_nothing(
    airflow: RealAirflow,
) -> None:
    week = WEEKS[0]
    for task in ("ask_1", "ask_2", "approve"):
        airflow.call("PATCH", airflow.path(week, task), {"new_state": "success"}, user="eve")
    airflow.until_ended(week)
    assert airflow.tasks(week)["publish"] == "failed"
    assert not _is_public(airflow, week)
    assert airflow.ledger.approvals(ReleaseKey("opal", week)) == ()


def test_who_started_the_run_may_not_approve_it_and_two_others_may(airflow: RealAirflow) -> None:
    week = WEEKS[1]
    _answer(airflow, week, "ask_1", "ada", "Approve")
    airflow.until_ended(week)
    assert airflow.tasks(week)["ask_1"] == "failed"
    assert airflow.ledger.approvals(ReleaseKey("opal", week)) == ()
    _clear(airflow, week, "ask_1")
    airflow.until(lambda: _asks(airflow, week, "ask_1"), what="the question again")
    _answer(airflow, week, "ask_1", "admin", "Approve")
    airflow.until(lambda: _asks(airflow, week, "ask_2"), what="the second question")
    _answer(airflow, week, "ask_2", "admin", "Approve")
    airflow.until_ended(week)
    assert not _is_public(airflow, week)  # the same person twice is one person
    _clear(airflow, week, "ask_2")
    airflow.until(lambda: _asks(airflow, week, "ask_2"), what="the second question again")
    _answer(airflow, week, "ask_2", "olga", "Approve")
    airflow.until_ended(week)
    assert airflow.runs()[week] == "success"
    assert _is_public(airflow, week)
    said = airflow.ledger.approvals(ReleaseKey("opal", week))
    assert [decision.person for decision in said] == ["admin", "olga"]


def test_a_rejected_week_stays_embargoed_and_charged_even_if_it_is_cleared_and_marked(
    airflow: RealAirflow,
) -> None:
    week = WEEKS[2]
    _answer(airflow, week, "ask_1", "admin", "Reject")
    airflow.until_ended(week)
    (decision,) = airflow.ledger.approvals(ReleaseKey("opal", week))
    assert (decision.person, decision.is_approval, decision.reason) == (
        "admin",
        False,
        "admin says so",
    )
    _clear(airflow, week, "ask_1")
    airflow.until(lambda: _asks(airflow, week, "ask_1"), what="the question again")
    for task in ("ask_1", "ask_2", "approve"):
        airflow.call("PATCH", airflow.path(week, task), {"new_state": "success"}, user="eve")
    airflow.until_ended(week)
    assert not _is_public(airflow, week)
    attempt = airflow.ledger.find(ReleaseKey("opal", week))
    assert attempt is not None
    assert attempt.is_sealed
