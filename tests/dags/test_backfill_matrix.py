"""Backfills, clears, marks and crashes on a real scheduler: no week is drawn twice for nothing.

One Airflow, one ledger: the weeks are brought into every state first, then everything that an
operator can do to them is done, and after each act draws, sealed digests and states are compared
with what PRIVACY 6 promises.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import psutil
import pytest
from real_airflow import DAG, RealAirflow, running

from turnstile.ledger.entries import EntryKind
from turnstile.ledger.records import ReleaseKey

FIRST, SECOND, NO_FILES, FOURTH = "2016-W30", "2016-W31", "2016-W32", "2016-W33"

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealAirflow]:
    """Two weeks sealed, one without files, one never run."""
    base = tmp_path_factory.mktemp("matrix")
    quick = {"AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "30"}
    with running(base, f"{FIRST}:{FOURTH}", edits={}, extra=quick) as found:
        shutil.rmtree(found.home / "landing/opal" / NO_FILES)
        found.backfill(FIRST, NO_FILES)
        found.until_ended(FIRST, SECOND, NO_FILES)
        found.until_no_backfill()
        yield found


def _key(week: str) -> ReleaseKey:
    return ReleaseKey("opal", week)


def _draws(airflow: RealAirflow) -> dict[str, int]:
    """Return how often noise was drawn for each week."""
    entries = airflow.ledger.entries()
    return Counter(str(e.key).split("/")[1] for e in entries if e.kind is EntryKind.DRAW_BEGUN)


def _bytes(airflow: RealAirflow, week: str) -> tuple[str | None, str]:
    """Return the sealed digest and the manifest of a week."""
    attempt = airflow.ledger.find(_key(week))
    manifest = airflow.home / "public/opal" / week / "r0/manifest.json"
    assert attempt is not None
    return attempt.artefact_digest, manifest.read_text()


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


def _note(airflow: RealAirflow, week: str) -> str:
    """Return what the run's first task said."""
    found = airflow.call("GET", f"{airflow.path(week, 'wait')}/xcomEntries/return_value")
    return str(found["value"])


def test_the_weeks_are_in_the_states_that_the_matrix_starts_from(airflow: RealAirflow) -> None:
    assert airflow.runs() == {FIRST: "success", SECOND: "success", NO_FILES: "failed"}
    assert _draws(airflow) == {FIRST: 1, SECOND: 1}


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("behavior", ["none", "failed", "completed"])
def test_every_reprocess_behavior_over_sealed_and_failed_weeks_draws_nothing(
    airflow: RealAirflow, behavior: str, *, backwards: bool
) -> None:
    draws, sealed = _draws(airflow), [_bytes(airflow, week) for week in (FIRST, SECOND)]
    airflow.backfill(FIRST, NO_FILES, behavior, run_backwards=backwards)
    time.sleep(8)  # for the scheduler to take the cleared runs up
    airflow.until_ended(FIRST, SECOND, NO_FILES)
    airflow.until_no_backfill()
    assert _draws(airflow) == draws
    assert [_bytes(airflow, week) for week in (FIRST, SECOND)] == sealed
    assert airflow.runs()[FIRST] == airflow.runs()[SECOND] == "success"
    if behavior == "completed":
        assert "re-issued, 0 charged" in _note(airflow, FIRST)


@pytest.mark.parametrize("task", ["ingest", "reserve", "draw", "publish"])
def test_a_cleared_task_of_a_sealed_week_draws_nothing(airflow: RealAirflow, task: str) -> None:
    draws, sealed = _draws(airflow), _bytes(airflow, FIRST)
    _clear(airflow, FIRST, task)
    airflow.until_ended(FIRST)
    assert airflow.runs()[FIRST] == "success"
    assert (_draws(airflow), _bytes(airflow, FIRST)) == (draws, sealed)


def test_a_sealed_run_that_is_marked_failed_by_hand_is_taken_up_at_no_cost(
    airflow: RealAirflow,
) -> None:
    draws, sealed = _draws(airflow), _bytes(airflow, SECOND)
    airflow.call("PATCH", airflow.path(SECOND), {"state": "failed"})
    airflow.backfill(FIRST, SECOND, "failed")
    airflow.until(lambda: airflow.runs()[SECOND] == "success", what="the run")
    airflow.until_no_backfill()
    assert (_draws(airflow), _bytes(airflow, SECOND)) == (draws, sealed)


def test_marking_draw_and_publish_success_by_hand_draws_and_publishes_nothing(
    airflow: RealAirflow,
) -> None:
    for task in ("ingest", "validate", "count", "reserve", "draw", "publish"):
        airflow.call("PATCH", airflow.path(NO_FILES, task), {"new_state": "success"})
    time.sleep(5)
    assert NO_FILES not in _draws(airflow)
    assert not (airflow.home / "public/opal" / NO_FILES).exists()
    airflow.call("PATCH", airflow.path(NO_FILES), {"state": "failed"})


def test_a_worker_that_is_killed_costs_no_second_draw(airflow: RealAirflow) -> None:
    draws = _draws(airflow)
    airflow.backfill(FOURTH, FOURTH, "none")
    airflow.until(
        lambda: FOURTH in airflow.runs() and airflow.tasks(FOURTH).get("validate") == "running",
        what="the validation",
    )
    assert _kill_worker(airflow, FOURTH, "validate")
    airflow.until_ended(FOURTH)
    airflow.until_no_backfill()
    if airflow.runs()[FOURTH] == "failed":
        airflow.backfill(FOURTH, FOURTH, "failed")
        airflow.until(lambda: airflow.runs()[FOURTH] == "success", what="the second try")
        airflow.until_no_backfill()
    assert _draws(airflow) == {**draws, FOURTH: 1}
    assert airflow.ledger.verify() == ()


def _kill_worker(airflow: RealAirflow, week: str, task: str) -> int:
    """Kill the worker of a task and the task, as the system does when memory is short."""
    identity = airflow.call("GET", airflow.path(week, task))["id"]
    killed = 0
    deadline = time.monotonic() + 20
    while not killed and time.monotonic() < deadline:
        for process in psutil.process_iter():
            try:
                if identity in " ".join(process.cmdline()):
                    process.kill()
                    killed += 1
            except psutil.Error:
                continue
        time.sleep(0.1)
    return killed


def test_a_late_file_changes_no_sealed_byte_and_raises_a_warning(airflow: RealAirflow) -> None:
    draws, sealed = _draws(airflow), _bytes(airflow, FIRST)
    file = next(iter((airflow.home / "landing/opal" / FIRST).glob("*.csv")))
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines, lines[-1]]) + "\n")
    _clear(airflow, FIRST, "wait")
    airflow.until_ended(FIRST)
    assert (_draws(airflow), _bytes(airflow, FIRST)) == (draws, sealed)
    journal = (airflow.home / "operations/journal/opal" / f"{FIRST}.jsonl").read_text()
    assert '"happening": "restated"' in journal


def test_the_watchdog_and_the_audit_run_and_find_the_ledger_in_order(airflow: RealAirflow) -> None:
    for dag in ("watchdog", "audit_ledger"):
        airflow.api().unpause(dag)
        body = {"logical_date": None}
        run = airflow.call("POST", f"/api/v2/dags/{dag}/dagRuns", body)["dag_run_id"]
        path = f"/api/v2/dags/{dag}/dagRuns/{run.replace('+', '%2B')}"
        airflow.until(
            lambda path=path: airflow.call("GET", path)["state"] in {"success", "failed"},
            what=dag,
        )
        assert airflow.call("GET", path)["state"] == "success"
