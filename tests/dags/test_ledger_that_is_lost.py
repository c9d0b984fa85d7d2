"""A ledger that is gone, empty or damaged is one critical alarm, and nobody is told to release."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from lost_ledgers import LOSSES, gone
from pytest_httpserver import HTTPServer
from small_deployment import Deployment

from turnstile.operations import deployment_state
from turnstile.settings import system_clock


@pytest.fixture
def said(httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """What was sent to whoever is named for anything, since it was asked last."""
    httpserver.expect_request("/hook", method="POST").respond_with_data("ok")
    hook = {"conn_type": "http", "host": "127.0.0.1", "port": httpserver.port}
    monkeypatch.setenv(
        "AIRFLOW_CONN_TURNSTILE_ALERTS", json.dumps(hook | {"extra": {"path": "/hook"}})
    )

    def messages() -> list[str]:
        texts = [json.loads(request.get_data(as_text=True)) for request, _ in httpserver.log]
        httpserver.clear_log()
        return [f"{text['title']}\n{text['message']}" for text in texts]

    return messages


@pytest.fixture
def watch_dags(bag: Any) -> ModuleType:
    assert bag.dags
    return importlib.import_module("watch_dags")


@pytest.mark.parametrize("loss", LOSSES)
def test_a_lost_ledger_is_one_critical_alarm_until_it_is_back_and_no_week_is_to_be_released(
    loss: str,
    published: Deployment,
    watch_dags: ModuleType,
    said: Callable[[], list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was none: the watchdog advised to release weeks that are public, or failed."""
    file = published.home / "ledger.sqlite"
    sound = {path: path.read_bytes() for path in published.home.glob("ledger.sqlite*")}
    watch_dags.audit_ledger()
    watch_dags.watch()
    (before,) = [text for text in said() if "release_overdue" in text]
    assert "Release it by name" in before
    LOSSES[loss](file)
    for _ in range(2):
        watch_dags.watch()
        with pytest.raises(Exception, match="turnstile doctor"):
            watch_dags.audit_ledger()
    (told,) = said()
    subject, text = told.split("\n", 1)
    assert subject == "turnstile critical: ledger all"
    assert text.startswith(f"[critical] ledger all: {file}: the ledger is ")
    assert "turnstile doctor" in text
    assert "docs/RUNBOOK.md#ledger_lost" in text
    watch_dags.weekly_digest()
    (digest,) = said()
    assert "turnstile doctor" in digest
    report = importlib.import_module("run_ended").ReportKilled("opal")
    report.notify({"run_id": "of a week that is public"})
    assert said() == []
    assert all(
        word not in told + digest for word in ("elease it", "release the week", "is charged")
    )

    gone(file)
    for path, content in sound.items():
        path.write_bytes(content)
    tomorrow = system_clock() + timedelta(days=1)
    monkeypatch.setattr(watch_dags, "system_clock", lambda: tomorrow)
    watch_dags.audit_ledger()
    watch_dags.watch()
    assert not [text for text in said() if "critical" in text]
    LOSSES[loss](file)
    watch_dags.watch()
    (again,) = said()
    assert again == told


def test_whoever_watches_looks_at_the_ledgers_file_whole_once(
    published: Deployment,
    watch_dags: ModuleType,
    said: Callable[[], list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Four times an hour it was read twice, and at the end of each run that failed."""
    looked = list[Path]()
    look = deployment_state.damage_in
    monkeypatch.setattr(
        deployment_state, "damage_in", lambda file: looked.append(file) or look(file)
    )
    watch_dags.watch()
    assert looked == [published.home / "ledger.sqlite"]
    importlib.import_module("run_ended").ReportKilled("opal").notify({"run_id": "unheard"})
    assert len(looked) == 2
    assert said()


def test_before_the_first_release_no_ledger_is_lost(
    deployment: Deployment, watch_dags: ModuleType, said: Callable[[], list[str]]
) -> None:
    deployment.home.mkdir(exist_ok=True)
    watch_dags.watch()
    watch_dags.audit_ledger()
    assert said() == []
