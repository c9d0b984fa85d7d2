"""Approval on a real scheduler: only an officer's own answer publishes; marks and clears do not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from real_airflow import DAG, PASSWORD, RealAirflow, monday, own_port, running

from turnstile.ledger.records import ReleaseKey

WEEKS = tuple(f"2016-W{n}" for n in range(30, 35))
TWO_PERSONS = "approval: {required: true, persons: 2}"

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealAirflow]:
    """Five weeks that wait for two officers; the runs were started by ada, who is one."""
    base = tmp_path_factory.mktemp("approval")
    edits = {"approval: {required: false}": TWO_PERSONS}
    port = own_port()
    reader = {"conn_type": "http", "host": "127.0.0.1", "port": port, "login": "vera"}
    extra = {"AIRFLOW_CONN_TURNSTILE_AIRFLOW": json.dumps(reader | {"password": PASSWORD})}
    weeks = f"{WEEKS[0]}:{WEEKS[-1]}"
    with running(base, weeks, edits=edits, extra=extra, port=port) as instance:
        instance.call("POST", "/api/v2/backfills", _order(WEEKS[0], WEEKS[-1]), user="ada")
        for week in WEEKS:
            instance.until(
                lambda week=week: instance.asks(week, "ask_1"), what=f"question of {week}"
            )
        yield instance


def _order(first: str, last: str) -> dict[str, Any]:
    return {
        "dag_id": DAG,
        "from_date": monday(first).isoformat(),
        "to_date": monday(last).isoformat(),
        "max_active_runs": len(WEEKS),
        "reprocess_behavior": "none",
        "run_on_latest_version": True,
    }


def _is_public(airflow: RealAirflow, week: str) -> bool:
    return (airflow.home / "public/opal" / week / "r0").exists()


def test_an_operator_who_marks_questions_and_approval_success_publishes_nothing(
    airflow: RealAirflow,
) -> None:
    week = WEEKS[0]
    for task in ("ask_1", "ask_2", "approve"):
        airflow.mark(week, task, "success", user="eve")
    airflow.until_ended(week)
    assert airflow.tasks(week)["publish"] == "failed"
    assert not _is_public(airflow, week)
    assert airflow.ledger.approvals(ReleaseKey("opal", week)) == ()


def test_an_operator_who_skips_questions_and_approval_publishes_nothing(
    airflow: RealAirflow,
) -> None:
    week = WEEKS[3]
    for task in ("ask_1", "ask_2", "approve"):
        airflow.mark(week, task, "skipped", user="eve")
    airflow.until_ended(week)
    assert airflow.tasks(week)["publish"] != "success"
    assert not _is_public(airflow, week)
    assert airflow.ledger.approvals(ReleaseKey("opal", week)) == ()


def test_an_operator_who_clears_an_answer_and_marks_the_rest_publishes_nothing(
    airflow: RealAirflow,
) -> None:
    week = WEEKS[4]
    airflow.answer(week, "ask_1", "admin", "Approve")
    airflow.until(lambda: airflow.asks(week, "ask_2"), what="the second question")
    airflow.clear(week, "ask_1", user="eve")  # its answer stands: the second person is asked
    airflow.until(lambda: airflow.asks(week, "ask_2"), what="the second question again")
    for task in ("ask_1", "ask_2", "approve"):
        airflow.mark(week, task, "success", user="eve")
    airflow.until_ended(week)
    assert airflow.tasks(week)["publish"] == "failed"
    assert not _is_public(airflow, week)
    (decision,) = airflow.ledger.approvals(ReleaseKey("opal", week))
    assert (decision.person, decision.is_approval) == ("admin", True)  # what was said stays said


def test_who_cleared_the_run_may_not_approve_it(airflow: RealAirflow) -> None:
    week = WEEKS[4]
    airflow.clear(week, "reconcile", user="olga")
    airflow.until(lambda: airflow.asks(week, "ask_2"), what="the question after the clear")
    airflow.answer(week, "ask_2", "olga", "Approve")
    airflow.until_ended(week)
    assert airflow.tasks(week)["ask_2"] == "failed"
    said = airflow.ledger.approvals(ReleaseKey("opal", week))
    assert [decision.person for decision in said] == ["admin"]
    assert not _is_public(airflow, week)


def test_who_started_the_run_may_not_approve_it_and_two_others_may(airflow: RealAirflow) -> None:
    week = WEEKS[1]
    airflow.answer(week, "ask_1", "ada", "Approve")
    airflow.until_ended(week)
    assert airflow.tasks(week)["ask_1"] == "failed"
    assert airflow.ledger.approvals(ReleaseKey("opal", week)) == ()
    airflow.clear(week, "ask_1", user="eve")
    airflow.until(lambda: airflow.asks(week, "ask_1"), what="the question again")
    airflow.answer(week, "ask_1", "admin", "Approve")
    airflow.until(lambda: airflow.asks(week, "ask_2"), what="the second question")
    airflow.answer(week, "ask_2", "admin", "Approve")  # twice is one person: the question stays
    airflow.answer(week, "ask_2", "olga", "Approve", asked=2)
    airflow.until_ended(week)
    assert airflow.runs()[week] == "success"
    assert _is_public(airflow, week)
    said = airflow.ledger.approvals(ReleaseKey("opal", week))
    assert [decision.person for decision in said] == ["admin", "olga"]
    manifest = (airflow.home / "public/opal" / week / "r0/manifest.json").read_bytes()
    airflow.clear(week, "ask_1", user="eve")  # after the answers: nobody is asked, nothing changes
    airflow.until_ended(week)
    assert airflow.runs()[week] == "success"
    assert airflow.ledger.approvals(ReleaseKey("opal", week)) == said
    assert (airflow.home / "public/opal" / week / "r0/manifest.json").read_bytes() == manifest


def test_a_rejected_week_stays_embargoed_and_charged_even_if_it_is_cleared_and_marked(
    airflow: RealAirflow,
) -> None:
    week = WEEKS[2]
    airflow.answer(week, "ask_1", "admin", "Reject")
    airflow.until_ended(week)
    (decision,) = airflow.ledger.approvals(ReleaseKey("opal", week))
    assert (decision.person, decision.is_approval, decision.reason) == (
        "admin",
        False,
        "admin says so",
    )
    airflow.clear(week, "ask_1", user="eve")
    airflow.until(lambda: airflow.asks(week, "ask_1"), what="the question again")
    airflow.answer(week, "ask_1", "olga", "Approve")  # kept; the no stands, and so the question
    airflow.until(lambda: airflow.is_read(week, "ask_1", 2), what="the question once more")
    assert airflow.asks(week, "ask_1")
    for task in ("ask_1", "ask_2", "approve"):
        airflow.mark(week, task, "success", user="eve")
    airflow.until_ended(week)
    assert not _is_public(airflow, week)
    attempt = airflow.ledger.find(ReleaseKey("opal", week))
    assert attempt is not None
    assert attempt.is_sealed
