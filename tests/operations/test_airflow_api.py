"""The client logs in once, waits for a busy SQLite, and reports a refusal in one sentence."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from turnstile.errors import TurnstileError
from turnstile.operations import airflow_api
from turnstile.operations.airflow_api import AirflowApi
from turnstile.operations.airflow_now import RunsAsked
from turnstile.programme.loading import load_programme
from turnstile.service_calendar import ServiceWeek

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def api(httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> AirflowApi:
    monkeypatch.setattr(airflow_api, "_PAUSE_S", 0)
    httpserver.expect_ordered_request("/auth/token", "POST").respond_with_json(
        {"access_token": "t"}
    )
    return AirflowApi(httpserver.url_for("").rstrip("/"), "admin", "secret")


def test_a_login_that_is_refused_is_told_as_that_and_not_tried_again(
    httpserver: HTTPServer,
) -> None:
    """It was "Airflow does not answer", with an address of pages about HTTP."""
    httpserver.expect_request("/auth/token", "POST").respond_with_data("no", 401)
    address = httpserver.url_for("").rstrip("/")
    with pytest.raises(TurnstileError) as refused:
        AirflowApi(address, "vera", "secret").has_dag("release_opal")
    assert str(refused.value).startswith(f"{address} answers 401 to the login of 'vera': it takes")
    assert "secret" not in str(refused.value)
    assert len(httpserver.log) == 1


def test_a_busy_database_is_asked_again(api: AirflowApi, httpserver: HTTPServer) -> None:
    path = "/api/v2/dags/release_opal"
    httpserver.expect_ordered_request(path).respond_with_data("locked", 503)
    httpserver.expect_ordered_request(path).respond_with_json({"is_stale": False})
    assert api.has_dag("release_opal")
    httpserver.check_assertions()


def test_a_refusal_is_not_asked_again(api: AirflowApi, httpserver: HTTPServer) -> None:
    httpserver.expect_ordered_request("/api/v2/dags/release_opal").respond_with_data("no", 403)
    with pytest.raises(TurnstileError, match="403 to GET /api/v2/dags/release_opal: no"):
        api.has_dag("release_opal")
    assert len(httpserver.log) == 2


def test_a_database_that_stays_busy_is_given_up(api: AirflowApi, httpserver: HTTPServer) -> None:
    httpserver.expect_request("/api/v2/pools/p").respond_with_data("locked", 500)
    with pytest.raises(TurnstileError, match="500 to PATCH"):
        api.make_pool("p", slots=1, description="")


def test_a_dag_that_is_unknown_or_stale_is_not_there(
    api: AirflowApi, httpserver: HTTPServer
) -> None:
    path = "/api/v2/dags/release_opal"
    httpserver.expect_ordered_request(path).respond_with_data("", 404)
    httpserver.expect_ordered_request(path).respond_with_json({"is_stale": True})
    assert not api.has_dag("release_opal")
    assert not api.has_dag("release_opal")


def test_a_pool_is_made_where_there_is_none(api: AirflowApi, httpserver: HTTPServer) -> None:
    httpserver.expect_ordered_request("/api/v2/pools/p", "PATCH").respond_with_data("", 404)
    made = {"name": "p", "slots": 1, "description": "d"}
    httpserver.expect_ordered_request("/api/v2/pools", "POST", json=made).respond_with_json({})
    api.make_pool("p", slots=1, description="d")
    httpserver.check_assertions()


def _all(rows: list[dict[str, str | None]]) -> dict[str, Any]:
    return {"dag_runs": rows, "total_entries": len(rows)}


@pytest.mark.long
def test_every_run_is_known_though_airflow_hands_out_a_hundred_at_once(
    api: AirflowApi, httpserver: HTTPServer
) -> None:
    at = {"logical_date": "2016-07-24T14:00:00Z", "data_interval_start": "2016-07-24T14:00:00Z"}
    rows = [{"dag_run_id": str(n), "state": "queued", "run_type": "x", **at} for n in range(250)]

    def page(request: Request) -> Response:
        first, most = (int(request.args[name]) for name in ("offset", "limit"))
        assert most == 100
        answer = {"dag_runs": rows[first : first + most], "total_entries": len(rows)}
        return Response(json.dumps(answer), content_type="application/json")

    path = "/api/v2/dags/release_opal"
    httpserver.expect_request(f"{path}/dagRuns").respond_with_handler(page)
    httpserver.expect_request(path).respond_with_json({"is_stale": False, "is_paused": False})
    tasks = re.compile(rf"{path}/dagRuns/\d+/taskInstances")
    httpserver.expect_request(tasks).respond_with_json({"task_instances": []})
    health = {"scheduler": {"latest_scheduler_heartbeat": None}}
    httpserver.expect_request("/api/v2/monitor/health").respond_with_json(health)
    httpserver.expect_request("/api/v2/backfills").respond_with_json(
        {"backfills": [], "total_entries": 0}
    )
    assert len(api.runs("release_opal")) == 250
    now = api.now(RunsAsked({"opal": frozenset({"249"})}, {}), lambda *_: "")
    assert now.runs is not None
    assert len(now.runs["opal"]) == 250


@pytest.mark.parametrize(
    ("last_is_paused", "run_type", "is_held_back"),
    [(True, "backfill", True), (False, "backfill", False), (True, "manual", False)],
)
def test_a_run_whose_last_backfill_is_paused_is_held(
    api: AirflowApi,
    httpserver: HTTPServer,
    run_type: str,
    *,
    last_is_paused: bool,
    is_held_back: bool,
) -> None:
    run = {"dag_run_id": "r", "state": "queued", "run_type": run_type}
    run |= {"logical_date": "2016-07-24T14:00:00Z"}
    days = {"from_date": "2016-07-18T00:00:00Z", "to_date": "2016-08-10T00:00:00Z"}
    later = {"from_date": "2016-08-01T00:00:00Z", "to_date": "2016-08-10T00:00:00Z"}
    backfills = [
        {"id": 9, "is_paused": last_is_paused, **days},
        {"id": 10, "is_paused": not last_is_paused, **later},
        {"id": 8, "is_paused": not last_is_paused, **days},
    ]
    path = "/api/v2/dags/release_opal"
    answers: dict[str, dict[str, Any]] = {
        path: {"is_stale": False, "is_paused": False},
        f"{path}/dagRuns": {"dag_runs": [run], "total_entries": 1},
        f"{path}/dagRuns/r/taskInstances": {"task_instances": []},
        "/api/v2/backfills": {"backfills": backfills, "total_entries": 3},
        "/api/v2/monitor/health": {"scheduler": {"latest_scheduler_heartbeat": None}},
    }
    for address, answer in answers.items():
        httpserver.expect_request(address).respond_with_json(answer)
    now = api.now(RunsAsked({"opal": frozenset()}, {}), lambda *_: "")
    assert [found.is_held_back for found in (now.runs or {})["opal"]] == [is_held_back]
    known = [found.backfill for found in (now.runs or {})["opal"]]
    assert known == [9 if run_type == "backfill" else None]


@pytest.mark.parametrize("may_read", [True, False])
def test_a_task_that_is_queued_anew_waits_since_the_first_time(
    api: AirflowApi, httpserver: HTTPServer, *, may_read: bool
) -> None:
    run = {"dag_run_id": "r", "state": "running", "run_type": "manual", "logical_date": None}
    task = {"task_id": "draw", "state": "queued", "start_date": None, "end_date": None}
    task |= {"scheduled_when": "2016-08-01T12:19:00Z", "queued_when": "2016-08-01T12:19:02Z"}
    path = "/api/v2/dags/release_opal"
    answers: dict[str, dict[str, Any]] = {
        path: {"is_stale": False, "is_paused": False},
        f"{path}/dagRuns": {"dag_runs": [run], "total_entries": 1},
        f"{path}/dagRuns/r/taskInstances": {"task_instances": [task]},
        "/api/v2/monitor/health": {"scheduler": {"latest_scheduler_heartbeat": None}},
    }
    for address, answer in answers.items():
        httpserver.expect_request(address).respond_with_json(answer)
    lines = [{"task_id": "draw", "when": f"2016-08-01T12:{n:02}:00Z"} for n in (5, 12, 19)]
    query = {"dag_id": "release_opal", "run_id": "r", "event": "stuck in queued reschedule"}
    asked = httpserver.expect_request(
        "/api/v2/eventLogs", query_string=query | {"limit": "100", "offset": "0"}
    )
    status = 200 if may_read else 403
    asked.respond_with_json({"event_logs": lines, "total_entries": 3}, status=status)
    now = api.now(RunsAsked({"opal": frozenset()}, {}), lambda *_: "")
    (found,) = (now.runs or {})["opal"]
    said = "2016-08-01T12:05:00+00:00" if may_read else "2016-08-01T12:19:02+00:00"
    assert found.still_since == datetime.fromisoformat(said)


def test_a_reader_who_may_list_no_backfills_is_told_the_rest(
    api: AirflowApi, httpserver: HTTPServer
) -> None:
    run = {"dag_run_id": "r", "state": "queued", "run_type": "backfill"}
    path, heard = "/api/v2/dags/release_opal", "2026-11-29T06:30:00Z"
    answers: dict[str, dict[str, Any]] = {
        path: {"is_stale": False, "is_paused": False},
        f"{path}/dagRuns": {
            "dag_runs": [run | {"logical_date": "2016-07-24T14:00:00Z"}],
            "total_entries": 1,
        },
        f"{path}/dagRuns/r/taskInstances": {"task_instances": []},
        "/api/v2/monitor/health": {
            "scheduler": {"latest_scheduler_heartbeat": None},
            "triggerer": {"latest_triggerer_heartbeat": heard},
        },
    }
    for address, answer in answers.items():
        httpserver.expect_request(address).respond_with_json(answer)
    httpserver.expect_request("/api/v2/backfills").respond_with_data("", 403)
    now = api.now(RunsAsked({"opal": frozenset()}, {}), lambda *_: "")
    assert [found.is_held_back for found in (now.runs or {})["opal"]] == [False]
    assert (now.heard, now.triggerer_heard) == (None, datetime.fromisoformat(heard))


def test_runs_without_a_week_are_left_out_and_the_rest_is_in_order(
    api: AirflowApi, httpserver: HTTPServer
) -> None:
    starts = ["2016-08-07T14:00:00Z", None, "2016-07-24T14:00:00Z"]
    rows = [
        {"dag_run_id": str(n), "state": "success", "data_interval_start": start}
        for n, start in enumerate(starts)
    ]
    path = "/api/v2/dags/release_opal/dagRuns"
    httpserver.expect_ordered_request(path).respond_with_json(_all(rows))
    assert [run.run_id for run in api.runs("release_opal")] == ["2", "0"]


def test_what_was_left_behind_is_failed_and_no_backfill_is_canceled(
    api: AirflowApi, httpserver: HTTPServer
) -> None:
    asked: list[str] = []

    def answer(request: Request) -> Response:
        asked.append(f"{request.method} {request.path}")
        return Response("{}", content_type="application/json")

    start = datetime(2016, 7, 24, 14, tzinfo=UTC).isoformat()
    rows = [
        {"dag_run_id": state, "state": state, "data_interval_start": start}
        for state in ("success", "running", "queued", "failed")
    ]
    runs = "/api/v2/dags/release_opal/dagRuns"
    httpserver.expect_ordered_request(runs).respond_with_json(_all(rows))
    for state in ("running", "queued"):
        httpserver.expect_ordered_request(f"{runs}/{state}").respond_with_handler(answer)
    api.abandon_unfinished("release_opal")
    assert asked == [f"PATCH {runs}/running", f"PATCH {runs}/queued"]


@pytest.mark.parametrize("is_held", [False, True])
def test_a_run_that_airflow_would_never_begin_gives_way_to_one_that_it_does(
    api: AirflowApi, httpserver: HTTPServer, *, is_held: bool
) -> None:
    asked: list[str] = []

    def answer(request: Request) -> Response:
        asked.append(f"{request.method} {request.path.partition('/dagRuns')[2]}")
        return Response("{}", content_type="application/json")

    at = dict.fromkeys(("data_interval_start", "logical_date"), "2016-07-24T14:00:00Z")
    rows = [{"dag_run_id": "backfill__x", "state": "failed", "run_type": "backfill", **at}]
    days = {"from_date": "2016-07-18T00:00:00Z", "to_date": "2016-08-10T00:00:00Z"}
    runs = "/api/v2/dags/release_opal/dagRuns"
    httpserver.expect_request(runs, "GET").respond_with_json(_all(rows))
    httpserver.expect_request("/api/v2/backfills").respond_with_json(
        {"backfills": [{"id": 1, "is_paused": is_held, **days}], "total_entries": 1}
    )
    httpserver.expect_request(re.compile(runs)).respond_with_handler(answer)
    opal = load_programme("opal", ROOT / "include")
    api.release(opal, [ServiceWeek.parse("2016-W30")])
    assert asked == (["DELETE /backfill__x", "POST "] if is_held else ["POST /backfill__x/clear"])


def test_a_week_is_started_under_its_name_cleared_if_it_ended_and_left_alone_under_way(
    api: AirflowApi, httpserver: HTTPServer
) -> None:
    opal = load_programme("opal", ROOT / "include")
    weeks = [ServiceWeek.parse(f"2016-W{n}") for n in (30, 31, 32)]
    rows = [
        {
            "dag_run_id": "scheduled__x",
            "state": "failed",
            "data_interval_start": "2016-07-24T14:00:00Z",
        },
        {
            "dag_run_id": "opal_2016-W31",
            "state": "running",
            "data_interval_start": "2016-07-31T14:00:00Z",
        },
    ]
    runs = "/api/v2/dags/release_opal/dagRuns"
    httpserver.expect_ordered_request(runs, "GET").respond_with_json(_all(rows))
    query = {"run_type": "backfill", "limit": "100", "offset": "0"}
    of_backfills = httpserver.expect_ordered_request(runs, "GET", query_string=query)
    of_backfills.respond_with_json(_all([]))
    again = {"dry_run": False, "only_failed": False, "run_on_latest_version": True}
    cleared = f"{runs}/scheduled__x/clear"
    httpserver.expect_ordered_request(cleared, "POST", json=again).respond_with_json({})
    start, end = "2016-08-07T14:00:00+00:00", "2016-08-14T14:00:00+00:00"
    made = {"dag_run_id": "opal_2016-W32", "logical_date": start, "conf": {}}
    made |= {"data_interval_start": start, "data_interval_end": end, "run_after": end}
    httpserver.expect_ordered_request(runs, "POST", json=made).respond_with_json({})
    api.release(opal, weeks)
    httpserver.check_assertions()
    assert len(httpserver.log) == 5


def test_nothing_listens_is_no_answer() -> None:
    assert not AirflowApi("http://127.0.0.1:9", "admin", "secret").answers()
