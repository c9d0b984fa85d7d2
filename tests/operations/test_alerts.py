"""Alerts: sent once, to the right people, through real mail and a real webhook, without values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer
from sinks import Inbox, sinks

from turnstile import errors
from turnstile.ledger.balances.amounts import Cap
from turnstile.ledger.balances.forecast import CapForecast
from turnstile.operations.journal import Happening, Journal, Line
from turnstile.operations.watchdog.alerts import (
    RULES,
    Alert,
    Severity,
    digest,
    of_budget,
    of_questions,
    of_run,
)
from turnstile.operations.watchdog.delivery import deliver, send_by_apprise
from turnstile.privacy.units import ProtectionUnit

ROOT = Path(__file__).resolve().parents[2]
NOW = datetime(2026, 11, 20, 10, tzinfo=UTC)
CANARY = "3085220012345678"
AT = "2026-11-20T10:00:00+00:00"


@pytest.fixture
def inbox() -> Iterator[tuple[Inbox, str]]:
    """A real SMTP server, and the Apprise URL that leads to it."""
    with sinks() as receivers:
        yield receivers.inbox, receivers.mail_url


def _line(happening: Happening, run_id: str = "a", **details: object) -> Line:
    return Line(AT, happening, "opal", "2016-W30", run_id, details)


def _failed(kind: str) -> Line:
    sentence = f"could not convert card {CANARY}"
    return _line(Happening.FAILED, step="ingest", kind=kind, sentence=sentence)


class Post:
    """Takes messages, or refuses them."""

    def __init__(self, *, takes: bool = True) -> None:
        self.takes = takes
        self.sent: list[tuple[tuple[str, ...], str, str]] = []

    def __call__(self, urls: Sequence[str], subject: str, text: str, severity: Severity) -> bool:
        assert str(severity) in subject
        self.sent.append((tuple(urls), subject, text))
        return self.takes


def _deliver(alerts: Sequence[Alert], journal: Journal, post: Post) -> tuple[Alert, ...]:
    addresses = dict.fromkeys(Severity, ("one",))
    return deliver(alerts, addresses, journal, send=post, now=NOW)


def test_alerts_arrive_by_mail_and_by_webhook_and_hold_no_value(
    inbox: tuple[Inbox, str], httpserver: HTTPServer, tmp_path: Path
) -> None:
    mail, mail_url = inbox
    httpserver.expect_request("/hook", method="POST").respond_with_data("ok")
    webhook = f"json://127.0.0.1:{httpserver.port}/hook"
    addresses = {Severity.ERROR: (mail_url, webhook), Severity.WARN: (webhook,)}
    lines = [_line(Happening.JUDGED, verdicts={"volume": "warn"}), _failed("ValueError")]
    sent = deliver(of_run(lines, "a"), addresses, Journal(tmp_path), send=send_by_apprise, now=NOW)
    assert {alert.rule for alert in sent} == {"quality_warned", "week_stopped"}
    (message,) = mail.received
    posted = [request.get_data(as_text=True) for request, _ in httpserver.log]
    assert "opal 2016-W30" in message["subject"]
    assert len(posted) == 2
    assert {json.loads(text)["type"] for text in posted} == {"failure", "warning"}
    assert any("volume" in json.loads(text)["message"] for text in posted)
    for text in (message.as_string(), *posted):
        assert CANARY not in text
        assert not re.search(r"\d{6,}", json.loads(text)["message"] if text[0] == "{" else "")
    assert CANARY in str(lines[1])  # the canary was there to be leaked


def test_what_was_reported_is_not_reported_again(tmp_path: Path) -> None:
    journal, post = Journal(tmp_path), Post()
    alert = Alert("hold_stuck", "opal", "2016-W30", "opal/2016-W30/r0#1")
    assert _deliver([alert, alert], journal, post) == (alert,)
    assert _deliver([alert], journal, post) == ()
    other_week = Alert("hold_stuck", "opal", "2016-W31", "opal/2016-W31/r0#1")
    assert _deliver([alert, other_week], journal, post) == (other_week,)
    assert len(post.sent) == 2


def test_what_did_not_arrive_is_reported_again(tmp_path: Path) -> None:
    journal, alert = Journal(tmp_path), Alert("run_died", "opal", "2016-W30", "a")
    assert _deliver([alert], journal, Post(takes=False)) == ()
    assert _deliver([alert], journal, Post()) == (alert,)


def test_a_receiver_that_refuses_is_noticed(httpserver: HTTPServer) -> None:
    httpserver.expect_request("/hook").respond_with_data("no", status=500)
    assert not send_by_apprise(
        [f"json://127.0.0.1:{httpserver.port}/hook"], "a", "b", Severity.WARN
    )
    assert not send_by_apprise(["nonsense"], "a", "b", Severity.WARN)


def test_one_run_gives_one_digest_for_an_address_gravest_first(tmp_path: Path) -> None:
    post = Post()
    lines = [_line(Happening.JUDGED, verdicts={"a": "warn", "b": "fail"}), _failed("InputError")]
    _deliver(of_run(lines, "a"), Journal(tmp_path), post)
    ((_, subject, text),) = post.sent
    assert subject == "turnstile error: opal 2016-W30"
    assert text.index("[error]") < text.index("[warn]")


def test_severities_go_to_their_own_addresses(tmp_path: Path) -> None:
    post = Post()
    addresses = {Severity.CRITICAL: ("phone",), Severity.WARN: ("mail",)}
    alerts = [Alert("audit_failed", "ledger", "all"), Alert("budget_50", "ledger", "all", "card")]
    deliver(alerts, addresses, Journal(tmp_path), send=post, now=NOW)
    assert {urls for urls, _, _ in post.sent} == {("phone",), ("mail",)}


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        ("ValueError", "week_stopped"),
        ("InputError", "week_stopped"),
        ("BudgetExceeded", "week_refused"),
        ("NotApproved", "week_refused"),
        ("IntegrityError", "bytes_disagree"),
        ("NoEntryError", "bytes_disagree"),
        ("DrawGoesOn", "week_refused"),
        ("Path", "week_stopped"),
    ],
)
def test_a_failure_is_reported_by_its_kind(kind: str, rule: str) -> None:
    assert [alert.rule for alert in of_run([_failed(kind)], "a")] == [rule]
    assert of_run([_failed(kind)], "another run") == ()


def test_a_failure_of_no_kind_is_told_too() -> None:
    (alert,) = of_run([_line(Happening.FAILED, step="ingest")], "a")
    assert "nobody foresaw" in str(alert)


def test_nobody_foresaw_only_what_is_no_error_of_ours() -> None:
    ours = [e.__name__ for e in vars(errors).values() if isinstance(e, type)]
    assert {"StoreConflict", "TurnstileError"} <= {*ours}
    for kind in (*ours, "ValueError"):
        (alert,) = of_run([_failed(kind)], "a")
        assert ("nobody foresaw" in str(alert)) == (kind == "ValueError")


AWAY = "a disk or a server refused or is away; a repeat goes on once it is back"


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("AirflowAway", "Airflow did not answer; a repeat goes on"),
        ("StoreConflict", "another worker was first"),
        ("StoreError", "a store did not answer; a repeat goes on"),
        *((kind, AWAY) for kind in ("OSError", "ConnectionResetError", "PermissionError")),
        ("TimeoutError", AWAY),
        ("OperationalError", "the ledger's server did not answer; a repeat goes on"),
        ("InterfaceError", "the ledger's server did not answer; a repeat goes on"),
    ],
)
def test_an_outage_on_the_last_try_is_told_as_what_was_away(kind: str, words: str) -> None:
    """They were told as a check that failed, a store, or what nobody foresaw."""
    (alert,) = of_run([_failed(kind)], "a")
    assert words in str(alert)


def test_a_drawing_process_that_died_is_said_to_leave_its_charge() -> None:
    (alert,) = of_run([_failed("DrawDied")], "a")
    assert "what it had charged stays charged" in str(alert)
    assert "stays charged" not in str(of_run([_failed("ValueError")], "a")[0])


def _forecast(taken: int, limit: int = 100) -> CapForecast:
    cap = Cap(ProtectionUnit.CARD, rho_nano=limit, window_weeks=52)
    path = (("2016-W30", taken), ("2016-W31", limit))
    return CapForecast(
        "cards", cap, "rho_nano", limit, taken, 1, 52, None, path, "2016-W31", 1, None, None
    )


@pytest.mark.parametrize(
    ("taken", "rules"),
    [(49, []), (50, ["budget_50"]), (75, ["budget_75"]), (89, ["budget_75"]), (90, ["budget_90"])],
)
def test_the_highest_threshold_passed_is_reported_of_what_is_spent_not_of_what_is_forecast(
    taken: int, rules: list[str]
) -> None:
    assert [alert.rule for alert in of_budget([_forecast(taken)])] == rules


def test_every_rule_has_a_chapter_in_the_runbook() -> None:
    text = (ROOT / "docs/RUNBOOK.md").read_text(encoding="utf-8")
    chapters = set(re.findall(r"^#+ ([a-z_0-9]+)$", text, flags=re.MULTILINE))
    assert set(RULES) <= chapters


def test_a_digest_names_the_runbook() -> None:
    _, text = digest([Alert("run_died", "opal", "2016-W30", "a")])
    assert "docs/RUNBOOK.md#run_died" in text


def test_a_failure_of_our_own_is_reported_in_the_operators_words_with_its_run() -> None:
    sentence = "Week 2016-W34 did not arrive: no file in landing/opal/2016-W34"
    line = _line(Happening.FAILED, step="wait", kind="NotArrived", sentence=sentence)
    (alert,) = of_run([line], "a")
    assert (alert.rule, alert.run_id) == ("week_missing", "a")
    assert str(alert) == f"[error] opal 2016-W30: {sentence} (task wait)"
    for kind in ("ValueError", "BudgetExceeded", "InputError"):
        (alert,) = of_run([_failed(kind)], "a")
        assert CANARY not in str(alert)
        assert kind not in str(alert)


def test_people_are_notified_when_they_are_asked_and_reminded_once_a_day() -> None:
    asked = _line(Happening.ASKED, task="ask_1", sentence="May it be published?")

    def rules(after: timedelta, *lines: Line) -> list[tuple[str, str]]:
        alerts = of_questions([asked, *lines], NOW + after)
        return [(alert.rule, alert.identity) for alert in alerts]

    first = ("people_asked", f"people_asked:ask_1, {AT}")
    assert rules(timedelta(hours=23)) == [first]
    day, later = rules(timedelta(hours=25)), rules(timedelta(hours=49))
    assert [rule for rule, _ in day] == ["people_asked", "people_reminded"]
    assert day[0] == later[0] == first  # sent once
    assert day[1] != later[1]
    answered = _line(Happening.RESUMED, step="ask_1")
    assert rules(timedelta(hours=49), answered) == [first]
    (_, reminder) = of_questions([asked], NOW + timedelta(hours=49))
    assert str(reminder).endswith("2 day(s) ago, and nobody has answered: May it be published?")


def test_what_a_person_wrote_ends_no_line_of_a_message() -> None:
    written = "holiday\n[now] itms 2016-W31: all is well\u202e"
    alert = Alert("week_refused", "opal", "2016-W30", sentence=written)
    assert str(alert).isprintable()
    assert str(alert).endswith("holiday\\u000a[now] itms 2016-W31: all is well\\u202e")
