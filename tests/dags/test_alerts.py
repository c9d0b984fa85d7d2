"""A step that fails tells those whom Airflow's connections name, once, without a raw value."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Message
from pytest_httpserver import HTTPServer

from turnstile.deployment.native_stack import free_port
from turnstile.errors import BudgetExceeded
from turnstile.operations.alerts import Severity
from turnstile.release import steps

START = datetime(2016, 7, 25, tzinfo=ZoneInfo("Australia/Sydney")).astimezone(UTC)
END = START + timedelta(weeks=1)
CANARY = "3085220012345678"
MAIL = {"from_email": "turnstile@transport.example", "to": "officer@transport.example"}


class Inbox(Message):
    """Keeps what a mail server received."""

    def __init__(self) -> None:
        super().__init__()
        self.received: list[Any] = []

    def handle_message(self, message: Any) -> None:
        self.received.append(message)


@pytest.fixture
def telling(release_dag: ModuleType) -> ModuleType:
    assert release_dag
    return importlib.import_module("telling")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TURNSTILE_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def inbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[Inbox]:
    """A real SMTP server, named by Airflow's connection for errors."""
    found, port = Inbox(), free_port(0)
    server = Controller(found, hostname="127.0.0.1", port=port)
    server.start()
    extra = {"disable_tls": True, "disable_ssl": True, **MAIL}
    _connect(monkeypatch, "ERROR", conn_type="smtp", host="127.0.0.1", port=port, extra=extra)
    yield found
    server.stop()


def _connect(monkeypatch: pytest.MonkeyPatch, severity: str, **connection: Any) -> None:
    monkeypatch.setenv(f"AIRFLOW_CONN_TURNSTILE_ALERTS_{severity}", json.dumps(connection))


def _fail(release_dag: ModuleType, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def step(*_: Any) -> str:
        raise error

    monkeypatch.setattr(steps, "step_named", lambda _: step)
    exceptions = importlib.import_module("airflow.sdk.exceptions")
    with pytest.raises(exceptions.AirflowFailException):
        release_dag.run_step("ingest", "opal", START, END, "backfill__1")


def test_a_failed_step_mails_its_kind_once_and_no_value(
    release_dag: ModuleType, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        _fail(release_dag, monkeypatch, ValueError(f"could not convert card {CANARY}"))
    (message,) = inbox.received
    text = message.get_payload(decode=True) or message.as_string().encode()
    assert message["subject"] == "turnstile error: opal 2016-W30"
    assert CANARY not in message.as_string()
    assert CANARY.encode() not in text


def test_a_refusal_reaches_the_webhook_of_its_severity(
    release_dag: ModuleType, httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    httpserver.expect_request("/hook", method="POST").respond_with_data("ok")
    hook = {"host": "127.0.0.1", "port": httpserver.port, "extra": {"path": "/hook"}}
    _connect(monkeypatch, "ERROR", conn_type="http", **hook)
    _fail(release_dag, monkeypatch, BudgetExceeded("asks for 2, 1 is left"))
    ((request, _),) = httpserver.log
    assert "docs/RUNBOOK.md#week_refused" in request.get_data(as_text=True)


def test_a_receiver_that_is_down_does_not_hide_why_the_step_failed(
    release_dag: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    _connect(monkeypatch, "ERROR", conn_type="http", host="127.0.0.1", port=free_port(0))
    _fail(release_dag, monkeypatch, BudgetExceeded("asks for 2, 1 is left"))


@pytest.mark.parametrize(
    ("connection", "urls"),
    [
        (
            {"conn_type": "http", "host": "h", "port": 80, "extra": {"path": "x"}},
            ("json://h:80/x",),
        ),
        ({"conn_type": "https", "host": "h"}, ("jsons://h/",)),
        (
            {"conn_type": "apprise", "extra": {"config": {"path": "slack://a/b/c"}}},
            ("slack://a/b/c",),
        ),
        (
            {"conn_type": "apprise", "extra": {"config": [{"path": "a://"}, {"path": "b://"}]}},
            ("a://", "b://"),
        ),
    ],
)
def test_a_connection_stands_for_addresses(
    telling: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    connection: dict[str, Any],
    urls: tuple[str, ...],
) -> None:
    _connect(monkeypatch, "WARN", **connection)
    assert telling.addresses_of(Severity.WARN) == urls
    assert telling.addresses_of(Severity.CRITICAL) == ()
