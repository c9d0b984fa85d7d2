"""The deployment of docker-compose.yaml, as processes: a week is released and the page shows it."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from compose_natively import NativeCompose, missing
from ports import free_port
from real_airflow import DAG, monday, small_checkout

from turnstile.operations.airflow_api import AirflowApi
from turnstile.programme.loading import load_programme
from turnstile.service_calendar import ServiceWeek
from turnstile_native.native_stack import _family

WEEK, NEXT = "2016-W30", "2016-W31"
KEY = f"opal/{NEXT}/r0"
PLAIN = ('"GET /health ', "appbuilder.app is deprecated")  # answers to a check; a library's print
KEEP_FOR_DAYS = {
    "approval: {required: false}": "approval: {required: false}\n"
    "retention: {backfill_days: 14, raw_days: 14, exact_days: 14}"
}
ROOT = Path(__file__).resolve().parents[2]
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))

pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(missing()), reason=missing())]


@pytest.fixture(scope="module")
def deployment(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[NativeCompose, AirflowApi]]:
    """Everything up, and one small week of opal released by the Celery worker."""
    base = tmp_path_factory.mktemp("compose")
    project = small_checkout(base / "project", KEEP_FOR_DAYS).parent
    (project / "docker").symlink_to(ROOT / "docker")
    (base / "run").mkdir()
    with NativeCompose(project, base / "run") as compose:
        weeks = f"{WEEK}:{NEXT}"
        sample = ["turnstile", "sample", "opal", "--weeks", weeks, "--rows", "2000", "--seed", "3"]
        made = compose.run_in("worker-private", *sample)
        assert made.returncode == 0, made.stderr
        api = compose.unpaused(DAG, within_s=300)
        opal = load_programme("opal", ROOT / "include")
        api.release(opal, [ServiceWeek.parse(WEEK)])
        compose.wait_until(lambda: _state(api) in {"success", "failed"}, what="the week",
                           timeout_s=900)  # fmt: skip
        assert _state(api) == "success", compose.failure("worker")
        yield compose, api


def _state(api: AirflowApi, week: str = WEEK) -> str:
    return next((run.state for run in api.runs(DAG) if run.starts == monday(week)), "none")


def _get(address: str, path: str, token: str = "") -> tuple[int, str]:
    request = urllib.request.Request(f"{address}/privacy-budget{path}")  # noqa: S310 - loopback
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with _OPENER.open(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""


def _page(deployment: tuple[NativeCompose, AirflowApi], path: str) -> str:
    compose, api = deployment
    api.import_errors()  # logs in
    status, text = _get(compose.address, path, str(api._token))
    assert status == 200
    return text


def _printed(compose: NativeCompose, *command: str) -> Any:
    """Return what a command prints in the worker, which writes to the ledger."""
    answer = compose.run_in("worker", "turnstile", *command)
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


def test_every_service_stays_healthy(deployment: tuple[NativeCompose, AirflowApi]) -> None:
    compose, api = deployment
    lasting = [name for name, service in compose.services.items() if "healthcheck" in service]
    assert len(lasting) == 8
    assert all(compose.is_healthy(name) for name in lasting if name != "postgres")
    assert api.import_errors() == ()


def test_the_page_shows_the_figures_of_the_ledger(
    deployment: tuple[NativeCompose, AirflowApi],
) -> None:
    compose, _ = deployment
    balance = _printed(compose, "ledger", "balance", "--json")
    assert any(account["spent"]["rho_nano"] for account in balance)
    assert json.loads(_page(deployment, "/data/balance.json")) == balance
    forecast = _printed(compose, "ledger", "forecast", "--json")
    assert json.loads(_page(deployment, "/data/forecast.json")) == forecast
    html = _page(deployment, "/")
    for account in balance:
        parts = (account["spent"][n] for n in ("epsilon_micro", "rho_nano", "delta_femto"))
        value = ",".join("infinite" if part is None else str(part) for part in parts)
        assert f'value="{value}"' in html


def test_the_page_shows_the_week_its_run_and_its_verdicts(
    deployment: tuple[NativeCompose, AirflowApi],
) -> None:
    calendar = json.loads(_page(deployment, "/data/calendar.json"))
    (mark,) = [mark for mark in calendar["opal"] if mark["week"] == WEEK]
    assert mark["state"] == "published"
    assert mark["run_id"] == f"opal_{WEEK}"
    assert _page(deployment, f"/week/opal/{WEEK}").count("<figure>") == 3
    assert f"days_present, {WEEK}: pass" in _page(deployment, "/quality")


def test_nobody_reads_the_page_without_a_login(
    deployment: tuple[NativeCompose, AirflowApi],
) -> None:
    compose, _ = deployment
    for path in ("/", "/data/balance.json", f"/week/opal/{WEEK}"):
        assert _get(compose.address, path)[0] in {401, 403}


def test_the_page_sees_no_private_folder_and_writes_to_none(
    deployment: tuple[NativeCompose, AirflowApi],
) -> None:
    compose, _ = deployment
    page = compose.run_in("api-server", "sh", "-c", 'ls "$TURNSTILE_HOME"')
    worker = compose.run_in("worker", "sh", "-c", 'ls "$TURNSTILE_HOME" "$TURNSTILE_HOME/private"')
    private = compose.run_in("worker-private", "sh", "-c", 'ls "$TURNSTILE_HOME"')
    assert page.stdout.split() == ["embargoed", "operations", "public"]
    assert "landing" not in worker.stdout.split()
    assert worker.stdout.split()[-1] == "failures"  # of its own steps; nothing else is private
    assert {"landing", "private"} <= set(private.stdout.split())
    for folder in page.stdout.split():
        touch = ("sh", "-c", f'touch "$TURNSTILE_HOME/{folder}/mine"')
        assert "Read-only file system" in compose.run_in("api-server", *touch).stderr
        assert compose.run_in("worker", *touch).returncode == 0


@pytest.mark.parametrize("service", ["api-server", "scheduler", "dag-processor", "triggerer"])
def test_what_a_service_prints_is_json(
    deployment: tuple[NativeCompose, AirflowApi], service: str
) -> None:
    compose, _ = deployment
    lines = (compose.base / f"logs/{service}.log").read_text(errors="replace").splitlines()
    assert len(lines) > 5
    others = [line for line in lines if line.strip() and not _is_object(line)]
    assert [line for line in others if not any(word in line for word in PLAIN)] == []
    assert len(others) < len(lines) / 10


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def test_two_schedulers_release_a_week_once(
    deployment: tuple[NativeCompose, AirflowApi],
) -> None:
    compose, api = deployment
    port = "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_SERVER_PORT"
    health = str(free_port(0))
    with (compose.base / "logs/second.log").open("wb") as output:
        second = subprocess.Popen(  # noqa: S603 - the file's own words
            compose._contained("scheduler", ["airflow", "scheduler"]),
            env={**compose.environment("scheduler"), port: health},
            cwd="/",
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        compose.wait_until(lambda: _answers(health), what="the second scheduler", timeout_s=300)
        opal = load_programme("opal", ROOT / "include")
        api.release(opal, [ServiceWeek.parse(NEXT)])
        compose.wait_until(lambda: _state(api, NEXT) in {"success", "failed"}, what="the week",
                           timeout_s=900)  # fmt: skip
        assert _state(api, NEXT) == "success"
        assert second.poll() is None
        assert _answers(health)
    finally:
        for member in _family(second.pid):
            member.kill()
        second.wait()
    of_key = [entry["kind"] for entry in _entries(compose) if entry["body"].get("key") == KEY]
    for kind in ("reserved", "draw_begun", "draw_started", "sealed", "published"):
        assert of_key.count(kind) == 1, of_key
    assert not {"burned", "voided"} & set(of_key)


def _answers(port: str) -> bool:
    try:
        with _OPENER.open(f"http://127.0.0.1:{port}/health", timeout=10) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def test_retention_deletes_on_the_private_worker_alone(
    deployment: tuple[NativeCompose, AirflowApi],
) -> None:
    compose, api = deployment
    assert json.loads(compose.run_in("worker", "turnstile", "retention", "--json").stdout) == []
    api._request("PATCH", "/api/v2/dags/retention", {"is_paused": False})
    path = "/api/v2/dags/retention/dagRuns"
    run = api._request("POST", path, {"logical_date": None})["dag_run_id"].replace("+", "%2B")
    compose.wait_until(
        lambda: api._request("GET", f"{path}/{run}")["state"] in {"success", "failed"},
        what="retention",
        timeout_s=300,
    )
    assert api._request("GET", f"{path}/{run}")["state"] == "success"
    kept = _kept(compose)
    assert (WEEK, "files") in kept, "they came a moment ago"
    assert not {(WEEK, "rows"), (WEEK, "exact")} & kept
    stated = [entry["body"] for entry in _entries(compose) if entry["kind"] == "deleted"]
    assert {(deletion["period"], deletion["part"]) for deletion in stated} >= {
        (WEEK, "rows"),
        (WEEK, "exact"),
    }
    assert compose.run_in("worker", "turnstile", "ledger", "verify").returncode == 0


def _entries(compose: NativeCompose) -> list[Any]:
    lines = compose.run_in("worker", "turnstile", "ledger", "entries", "--json").stdout
    return [json.loads(line) for line in lines.splitlines()]


def _kept(compose: NativeCompose) -> set[tuple[str, str]]:
    answer = compose.run_in("worker-private", "turnstile", "retention", "--json")
    assert answer.returncode == 0, answer.stderr
    return {(record["period"], record["data"]) for record in json.loads(answer.stdout)}
