"""A step that fails notifies those whom Airflow's connections name, once, without a raw value."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from ports import free_port
from pytest_httpserver import HTTPServer
from receivers import SLACK, SLACK_URL, TEAMS, TEAMS_URL, Inbox, mail_server, services, text_of
from small_deployment import Deployment

from turnstile.errors import BudgetExceeded, InputError
from turnstile.operations.airflow_now import AirflowNow
from turnstile.operations.budget_page.page import BudgetPage
from turnstile.operations.journal import Happening
from turnstile.operations.watchdog.alerts import Alert, Severity
from turnstile.pipeline import steps
from turnstile.settings import Settings, system_clock

START = datetime(2016, 7, 25, tzinfo=ZoneInfo("Australia/Sydney")).astimezone(UTC)
END = START + timedelta(weeks=1)
INTERVAL = {"data_interval_start": START, "data_interval_end": END}
CANARY = "3085220012345678"
MAIL = {"from_email": "turnstile@transport.example", "to": "officer@transport.example"}


@pytest.fixture
def addresses(step_task: ModuleType) -> ModuleType:
    assert step_task
    return importlib.import_module("alert_addresses")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TURNSTILE_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def inbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[Inbox]:
    """A real SMTP server, named by Airflow's connection for errors."""
    with mail_server() as (mailbox, port):
        extra = {"disable_tls": True, "disable_ssl": True, **MAIL}
        _connect(monkeypatch, "ERROR", conn_type="smtp", host="127.0.0.1", port=port, extra=extra)
        yield mailbox


def _connect(monkeypatch: pytest.MonkeyPatch, severity: str, **connection: Any) -> None:
    monkeypatch.setenv(f"AIRFLOW_CONN_TURNSTILE_ALERTS_{severity}", json.dumps(connection))


def _connect_to(httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch, severity: str) -> None:
    """Let alerts of a severity go to a webhook that takes them."""
    httpserver.expect_request("/hook", method="POST").respond_with_data("ok")
    hook = {"host": "127.0.0.1", "port": httpserver.port, "extra": {"path": "/hook"}}
    _connect(monkeypatch, severity, conn_type="http", **hook)


def _fail(step_task: ModuleType, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def step(*_: Any) -> str:
        raise error

    monkeypatch.setattr(steps, "step_named", lambda _: step)
    exceptions = importlib.import_module("airflow.sdk.exceptions")
    with pytest.raises(exceptions.AirflowFailException):
        step_task.run_step("ingest", "opal", run_id="backfill__1", **INTERVAL)


def _notify_once_more() -> None:
    """Send what the failed run gave cause to report, if that was not sent."""
    reports = importlib.import_module("run_reports")
    reports.RunOfWeek(Settings.from_environment(), "opal", "2016-W30", "backfill__1").notify()


def test_a_failed_step_mails_its_kind_once_and_no_value(
    step_task: ModuleType, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fail(step_task, monkeypatch, ValueError(f"could not convert card {CANARY}"))
    _notify_once_more()
    (message,) = inbox.received
    assert message["subject"] == "turnstile error: opal 2016-W30"
    assert "\n  what to do: docs/RUNBOOK.md#" in text_of(message).replace("\r\n", "\n")
    assert CANARY not in message.as_string()
    assert CANARY not in text_of(message)
    _fail(step_task, monkeypatch, ValueError("the run was cleared, and it failed again"))
    _, second = inbox.received
    assert "(task ingest), once more at 20" in " ".join(text_of(second).split())


def test_a_run_that_was_killed_is_reported_when_airflow_ends_it_once_and_no_other(
    bag: Any, inbox: Inbox, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = bag.dags["release_opal"].on_failure_callback
    run_ended = importlib.import_module("run_ended")
    report.notify({"run_id": "killed"})  # as where the DAG processor sees no journal
    assert not (home / "operations").exists()
    for week, run_id in (("2016-W30", "killed"), ("2016-W31", "works")):
        run = importlib.import_module("run_reports").RunOfWeek(
            Settings.from_environment(), "opal", week, run_id
        )
        run._write(Happening.BEGUN, note="")
    for _ in range(2):
        report.notify({"run_id": "killed"})
    for _ in range(2):
        report.notify({"run_id": "named no week"})
    message, unheard = inbox.received
    words = " ".join(text_of(unheard).split())
    assert "opal all: a run failed, and the journal has no word of it; which week" in words
    assert "opal 2016-W30: 2016-W30: its run, taken up" in " ".join(text_of(message).split())
    assert "RUNBOOK.md#run_died" in text_of(message)

    def gone(*_: Any) -> None:
        raise OSError(CANARY)

    monkeypatch.setattr(run_ended, "write_note", gone)
    ended = SimpleNamespace(dag_id="release_opal")
    run_ended.on_dag_run_failed(dag_run=ended, msg="")  # the scheduler goes on


@pytest.mark.parametrize(
    ("task", "link"),
    [
        ("ask_1", "look and answer: {}/privacy-budget/embargoed/opal/2016-W30"),
        ("ask_revision", "answer: {}/dags/release_opal/runs/a/tasks/ask_revision/required_actions"),
    ],
)
def test_a_message_leads_to_where_its_question_is_answered(task: str, link: str, bag: Any) -> None:
    assert bag.dags
    reports = importlib.import_module("run_reports")
    alert = Alert("people_asked", "opal", "2016-W30", f"{task}, now", "?", "a")
    assert reports._links(alert)[0] == link.format(reports.address_of_ui())


def test_a_refusal_reaches_the_webhook_of_its_severity(
    step_task: ModuleType, httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    _connect_to(httpserver, monkeypatch, "ERROR")
    _fail(step_task, monkeypatch, BudgetExceeded("asks for 2, 1 is left"))
    ((request, _),) = httpserver.log
    assert "docs/RUNBOOK.md#week_refused" in request.get_data(as_text=True)


def test_a_refusal_reaches_slack_and_teams_by_one_connection(
    step_task: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = [{"path": SLACK_URL}, {"path": TEAMS_URL}]
    _connect(monkeypatch, "ERROR", conn_type="apprise", extra={"config": config})
    with services(tmp_path, monkeypatch) as webhooks:
        _fail(step_task, monkeypatch, BudgetExceeded(f"card {CANARY} asks for 2, 1 is left"))
        _notify_once_more()
    for host in (SLACK, TEAMS):
        (text,) = webhooks.texts(host)
        assert "docs/RUNBOOK.md#week_refused" in text
        assert CANARY not in text


def test_a_receiver_that_is_down_does_not_hide_why_the_step_failed(
    step_task: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    _connect(monkeypatch, "ERROR", conn_type="http", host="127.0.0.1", port=free_port(0))
    _fail(step_task, monkeypatch, BudgetExceeded("asks for 2, 1 is left"))


def test_the_digest_of_monday_says_of_every_programme_what_the_page_says_and_once(
    step_task: ModuleType, bag: Any, httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert step_task
    _connect_to(httpserver, monkeypatch, "NOTICE")
    watch, page = (
        importlib.import_module("watch_dags"),
        BudgetPage(Settings.from_environment(), system_clock),
    )

    def sentences() -> dict[str, str]:
        airflow = AirflowNow(runs={})
        return {
            programme.name: page.in_one_sentence(programme, airflow)
            for programme in page.programmes()
        }

    said = sentences()
    assert {sentence.partition(":")[0] for sentence in said.values()} == {"never run"}
    assert watch.weekly_digest() == f"{len(said)} programmes reported"
    ((request, _),) = httpserver.log
    text = json.loads(request.get_data(as_text=True))["message"]
    week = f"{system_clock():%G-W%V}"
    assert all(f"[notice] {name} {week}: {sentence}" in text for name, sentence in said.items())
    assert watch.weekly_digest() == "0 programmes reported"  # the same Monday again
    assert len(httpserver.log) == 1
    assert sentences() == said  # a report makes no week known
    assert bag.dags["weekly_digest"].timetable.expression == "0 7 * * MON"


_MAILED = "from=turnstile%40transport.example&to=officer%40transport.example&smtp=h"


@pytest.mark.parametrize(
    ("connection", "urls"),
    [
        (
            {"conn_type": "http", "host": "h", "port": 80, "extra": {"path": "x"}},
            ("json://h:80/x",),
        ),
        ({"conn_type": "https", "host": "h"}, ("jsons://h/",)),
        (
            {"conn_type": "https", "host": "h", "login": "a/b", "password": "c@d"},
            ("jsons://a%2Fb:c%40d@h/",),
        ),
        ({"conn_type": "smtp", "host": "h", "extra": MAIL}, (f"mailto://h?{_MAILED}&mode=ssl",)),
        (
            {"conn_type": "smtp", "host": "h", "extra": {**MAIL, "disable_ssl": True}},
            (f"mailto://h?{_MAILED}&mode=starttls",),
        ),
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
    addresses: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    connection: dict[str, Any],
    urls: tuple[str, ...],
) -> None:
    _connect(monkeypatch, "WARN", **connection)
    assert addresses.addresses_of(Severity.WARN) == urls
    assert addresses.addresses_of(Severity.CRITICAL) == ()


@pytest.mark.parametrize(
    "connection",
    [
        {"conn_type": "smtp", "host": "h", "password": "hunter2", "extra": {"to": "a@b"}},
        {"conn_type": "slackwebhook", "password": "hunter2"},
        {"conn_type": "apprise", "extra": {"config": [{"url": "slack://hunter2"}]}},
    ],
)
def test_a_connection_that_names_no_receiver_is_reported_without_its_secret_and_falls_back(
    addresses: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    connection: dict[str, Any],
) -> None:
    _connect(monkeypatch, "WARN", **connection)
    assert addresses.addresses_of(Severity.WARN) == ()
    assert "turnstile_alerts_warn names no receiver" in caplog.text
    assert "hunter2" not in caplog.text
    all_others = json.dumps({"conn_type": "https", "host": "h"})
    monkeypatch.setenv("AIRFLOW_CONN_TURNSTILE_ALERTS", all_others)
    assert addresses.addresses_of(Severity.WARN) == ("jsons://h/",)


def test_retention_deletes_on_a_private_worker_and_says_no_file_names(
    bag: Any, published: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = importlib.import_module("watch_dags")
    assert bag.dags["retention"].timetable.expression == "30 4 * * *"
    published.make_siblings_examples("itms")
    assert watch.delete_what_is_due() == "2016-W30 rows; 2016-W30 exact"
    assert watch.delete_what_is_due() == "nothing is due"

    def fails(*_: object) -> None:
        raise ValueError("a card 3085220012345678")

    monkeypatch.setattr("turnstile.operations.retention_day.RetentionDay.act", fails)
    with pytest.raises(Exception, match="ValueError") as caught:
        watch.delete_what_is_due()
    assert "3085220012345678" not in str(caught.value)
    (report,) = (published.home / "private/failures").glob("retention-*.txt")
    assert "3085220012345678" in report.read_text()


def test_the_day_of_retention_fails_where_the_private_zone_is_not_as_it_was_reserved(
    published: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = importlib.import_module("watch_dags")
    (published.home / "private/bounding.key").unlink()
    with pytest.raises(Exception, match=r"bounding\.key is gone"):
        watch.delete_what_is_due()

    def fails(*_: object) -> None:
        raise InputError(where="itms.yaml", field="retention", rule="cannot be read")

    monkeypatch.setattr("turnstile.operations.retention_day.RetentionDay.act", fails)
    with pytest.raises(Exception, match=r"bounding\.key is gone"):
        watch.delete_what_is_due()


def test_data_that_a_day_of_retention_could_not_delete_are_told_of_once_until_it_can(
    published: Deployment, httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task failed every day, and only its log said so."""
    _connect_to(httpserver, monkeypatch, "WARN")
    watch = importlib.import_module("watch_dags")
    published.make_siblings_examples("itms")

    def fails(*_: object) -> None:
        raise InputError(where="itms.yaml", field="retention", rule="cannot be read")

    for _ in range(2):  # each day
        with monkeypatch.context() as patch:
            patch.setattr("turnstile.operations.retention_day.RetentionDay.act", fails)
            with pytest.raises(Exception, match="cannot be read"):
                watch.delete_what_is_due()
        watch.watch()
    said = [json.loads(r.get_data(as_text=True))["message"] for r, _ in httpserver.log]
    (told,) = [text for text in said if "could not be deleted (InputError)" in text]
    assert "docs/RUNBOOK.md#retention_held" in told
    watch.delete_what_is_due()
    page = BudgetPage(Settings.from_environment(), system_clock)
    assert not [a for a in page.watched(AirflowNow(runs={})) if a.programme == "ledger"]


def test_what_the_day_of_retention_finds_is_mailed_once_and_on_the_page_until_it_is_restored(
    published: Deployment, httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The audit of every day, which looks at nothing private, does not cover it."""
    _connect_to(httpserver, monkeypatch, "CRITICAL")
    watch = importlib.import_module("watch_dags")
    page = BudgetPage(Settings.from_environment(), system_clock)

    def page_says_so() -> bool:
        sentences = [
            page.in_one_sentence(programme, AirflowNow(runs={})) for programme in page.programmes()
        ]
        said = {"private data differ since" in sentence for sentence in sentences}
        return said == {True}

    watch.delete_what_is_due()
    watch.watch()
    assert not page_says_so()
    assert httpserver.log == []
    (exact,) = (published.home / "private/opal/2016-W30/r0").glob("exact-*.bin")
    whole = exact.read_bytes()
    exact.unlink()
    for _ in range(2):  # each day
        with pytest.raises(Exception, match="its exact counts are gone or altered"):
            watch.delete_what_is_due()
        watch.audit_ledger()
        watch.watch()
        assert page_says_so()
    ((request, _),) = httpserver.log
    text = json.loads(request.get_data(as_text=True))["message"]
    assert "[critical] opal 2016-W30: private data are gone or altered" in text
    assert "docs/RUNBOOK.md#private_differs" in text
    assert exact.name not in text
    exact.write_bytes(whole)
    watch.delete_what_is_due()
    assert not page_says_so()
