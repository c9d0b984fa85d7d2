"""Every rule from what sets it off to real receivers: mail, Slack, Teams, Mattermost; once a week.

Slack and Teams are their real addresses, answered by a TLS server of this machine.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from receivers import (
    MATTERMOST,
    MATTERMOST_URL,
    SLACK,
    SLACK_URL,
    TEAMS,
    TEAMS_URL,
    Inbox,
    Services,
    mail_server,
    services,
    text_of,
)
from watched_place import INCLUDE, MONDAY, Place

from turnstile.ledger.entries import instant
from turnstile.ledger.records import Bindings, Finding
from turnstile.operations.journal import Happening, Line
from turnstile.operations.programme_now import BrokenProgramme
from turnstile.operations.watchdog import delivery
from turnstile.operations.watchdog.alerts import RULES, Alert, Severity
from turnstile.operations.watchdog.delivery import deliver, send_by_apprise
from turnstile.operations.watchdog.last_verification import tell_verification
from turnstile.operations.watchdog.watch import audited
from turnstile.settings import Settings

CANARY = "3085220012345678"
WEEK, LATER = "2016-W30", "2016-W31"
HOSTS = (SLACK, TEAMS, MATTERMOST)
MAIL = "from=turnstile@transport.example&to=officer@transport.example&mode=insecure"
Cause = Callable[[Place, str], None]


def _failure(step: str, kind: str) -> Cause:
    def cause(place: Place, week: str) -> None:
        place.say(Happening.BEGUN, week, week)
        sentence = f"could not convert card {CANARY}"
        place.say(Happening.FAILED, week, week, step=step, kind=kind, sentence=sentence)

    return cause


def _verdict(verdict: str) -> Cause:
    def cause(place: Place, week: str) -> None:
        place.say(Happening.JUDGED, week, week, verdicts={"nulls": verdict}, sentence=CANARY)

    return cause


def _restated(place: Place, week: str) -> None:
    place.say(Happening.RESTATED, week, week, files=[f"{CANARY}.csv"])


def _spent(thousandths: int) -> Cause:
    def cause(place: Place, week: str) -> None:
        place.publish(week, thousandths)

    return cause


def _held(place: Place, week: str) -> None:
    place.reserve(week)
    place.clock.now += timedelta(hours=25)


def _drawing(place: Place, week: str) -> None:
    place.ledger.begin_draw(place.reserve(week), Bindings("p", "d", "s"))
    place.clock.now += timedelta(hours=2)


def _burned(place: Place, week: str) -> None:
    place.ledger.begin_draw(place.reserve(week), Bindings("p", "d", "s"))
    place.reserve(week)


def _overdue(place: Place, week: str) -> None:
    place.publish(week)
    place.clock.now += timedelta(days=21)


def _died(place: Place, week: str) -> None:
    place.say(Happening.BEGUN, week, f"manual__{week}", note=CANARY)


def _lasts(place: Place, week: str) -> None:
    place.say(Happening.BEGUN, week, f"lasting__{week}", note=CANARY)
    place.clock.now += timedelta(hours=7)


def _stalls(place: Place, week: str) -> None:
    place.say(Happening.BEGUN, week, f"stalled__{week}", note=CANARY)
    place.heard = place.clock.now
    place.clock.now += timedelta(minutes=6)


def _altered(place: Place, week: str) -> None:
    package = place.journal._folder.parent / "public/opal" / week / "r0"
    package.mkdir(parents=True)
    (package / f"{CANARY}.csv").write_text(CANARY)
    (package / "manifest.json").write_text('{"files": []}')


def _missing(place: Place, week: str) -> None:
    sentence = f"Week {week} did not arrive: no file in landing/opal/{week}"
    place.say(Happening.BEGUN, week, week, note=CANARY)
    place.say(Happening.FAILED, week, week, step="wait", kind="NotArrived", sentence=sentence)


def _asked(days: int) -> Cause:
    def cause(place: Place, week: str) -> None:
        if week != WEEK:
            place.say(Happening.RESUMED, WEEK, WEEK, step="ask")  # the first one was answered
        place.say(Happening.BEGUN, week, week, note=CANARY)
        place.say(Happening.ASKED, week, week, task="ask", sentence=f"May {week} be published?")
        place.clock.now += timedelta(days=days)

    return cause


def _expires(place: Place, week: str) -> None:
    place.say(Happening.EXPIRES, week, day="2016-11-01 00:00", files=[CANARY])


def _overstays(place: Place, week: str) -> None:
    place.say(Happening.OVERSTAYS, week, why="opal is held or drawn now", files=[CANARY])


def _private_gone(place: Place, week: str) -> None:
    details = {"found": [f"opal/{week}/exact counts, r0"], "problem": CANARY}
    at = instant(place.clock())
    place.journal.write(Line(at, Happening.COMPARED, "ledger", "all", details=details))


def _not_compared(place: Place, week: str) -> None:
    place.are_looks_asked = True
    if week == WEEK:
        place.seal(week)
    else:
        _private_gone(place, week)  # it was made meanwhile
    place.clock.now += timedelta(days=4)


def _unreadable(place: Place, week: str) -> None:
    problem = f"include/programmes/opal.yaml: line 3: unit: choose trip ({week})"
    place.broken.append(BrokenProgramme("opal", problem, 1))


CAUSES: dict[str, Cause] = {
    "programme_broken": _unreadable,
    "retention_near": _expires,
    "retention_held": _overstays,
    "week_missing": _missing,
    "people_asked": _asked(0),
    "people_reminded": _asked(1),
    "week_stopped": _failure("ingest", "ValueError"),
    "week_refused": _failure("reserve", "BudgetExceeded"),
    "bytes_disagree": _failure("publish", "IntegrityError"),
    "quality_failed": _verdict("fail"),
    "quality_warned": _verdict("warn"),
    "files_restated": _restated,
    "budget_50": _spent(500),
    "budget_75": _spent(750),
    "budget_90": _spent(900),
    "hold_stuck": _held,
    "draw_stuck": _drawing,
    "draw_burned": _burned,
    "release_overdue": _overdue,
    "run_died": _died,
    "run_lasts": _lasts,
    "run_stalled": _stalls,
    "audit_failed": _altered,
    "private_differs": _private_gone,
    "look_missing": _not_compared,
}
# What is sent of a cap, a programme or a stall is not sent once a week.
OF_NO_WEEK = {rule for rule in RULES if rule.startswith("budget")}
OF_NO_WEEK |= {"programme_broken", "run_stalled", "look_missing"}


OF_AN_END = {"run_died", "week_stopped", "week_refused", "week_missing"}
# A digest needs no cause; of a lost ledger tests/dags/test_ledger_that_is_lost.py says it.
WATCHED = [rule for rule in RULES if rule not in {"weekly_digest", "ledger_lost"}]


@dataclass
class Receivers:
    """Where alerts arrive, and the addresses that lead there."""

    mail: Inbox
    services: Services
    urls: tuple[str, ...]

    def texts(self) -> list[str]:
        posts = [text for host in HOSTS for text in self.services.texts(host)]
        return [*posts, *(text_of(message) for message in self.mail.received)]


@pytest.fixture
def receivers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Receivers]:
    with mail_server() as (inbox, port), services(tmp_path, monkeypatch) as webhooks:
        mail = f"mailto://127.0.0.1:{port}?smtp=127.0.0.1&{MAIL}"
        yield Receivers(inbox, webhooks, (mail, SLACK_URL, TEAMS_URL, MATTERMOST_URL))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place.new(tmp_path)


def _send(place: Place, receivers: Receivers, rule: str, now: datetime) -> list[Alert]:
    """Look for everything, as watchdog and audit do, and send what the rule is about."""
    settings = Settings(place.journal._folder.parent, "", (), INCLUDE)
    state = "failed" if rule in OF_AN_END else "running"
    tasks = {"ask": "awaiting_input"} if rule.startswith("people_") else None
    tell_verification(place.journal, now, (0, ""), audited(lambda: (), settings))
    alerts = place.watched(state, tasks)
    about = [alert for alert in alerts if alert.rule == rule]
    addresses = dict.fromkeys(Severity, receivers.urls)
    return list(deliver(about, addresses, place.journal, send=send_by_apprise, now=now))


def test_every_rule_has_a_cause_here() -> None:
    assert set(CAUSES) == set(WATCHED)


@pytest.mark.some(12)
@pytest.mark.parametrize("rule", WATCHED)
def test_an_alert_arrives_at_every_receiver_once_for_its_week_without_a_value(
    place: Place, receivers: Receivers, rule: str
) -> None:
    assert _send(place, receivers, rule, place.clock()) == []
    CAUSES[rule](place, WEEK)
    (sent,) = _send(place, receivers, rule, place.clock())
    assert _send(place, receivers, rule, place.clock()) == []
    texts = receivers.texts()
    assert len(texts) == len(receivers.urls)
    for text in texts:
        assert f"docs/RUNBOOK.md#{rule}" in text
        assert (sent.sentence or RULES[rule].sentence) in text
        assert CANARY not in text
    if rule not in OF_NO_WEEK:
        assert sent.week == (LATER if rule == "release_overdue" else WEEK)
        CAUSES[rule](place, "2016-W33")
        (later,) = _send(place, receivers, rule, place.clock())
        assert later.week > WEEK
        assert len(receivers.texts()) == 2 * len(receivers.urls)


def test_the_canary_was_there_to_be_leaked(place: Place, receivers: Receivers) -> None:
    for rule in ("week_stopped", "audit_failed"):
        CAUSES[rule](place, WEEK)
    folder = place.journal._folder.parent
    assert any(CANARY in path.read_text() for path in folder.rglob("*.jsonl"))
    assert any(CANARY in path.name for path in folder.rglob("*.csv"))
    assert send_by_apprise(receivers.urls, "subject", f"a text with {CANARY}", Severity.WARN)
    assert all(CANARY in text for text in receivers.texts())


def test_thresholds_follow_one_another_and_each_is_reported_once(
    place: Place, receivers: Receivers
) -> None:
    addresses = dict.fromkeys(Severity, receivers.urls[:1])
    rules_sent = []
    for week, cost in (("2016-W30", 400), ("2016-W31", 150), ("2016-W32", 250), ("2016-W33", 150)):
        place.publish(week, cost)
        budget = [alert for alert in place.watched() if alert.rule.startswith("budget")]
        sent = deliver(budget, addresses, place.journal, send=send_by_apprise, now=place.clock())
        rules_sent.append([alert.rule for alert in sent])
    assert rules_sent == [[], ["budget_50"], ["budget_75"], ["budget_90"]]
    assert len(receivers.mail.received) == 3


def _takes_nothing(*_: object) -> bool:
    return False


def test_a_ledger_that_contradicts_itself_arrives_by_check_each_time_until_it_was_sent(
    place: Place, receivers: Receivers
) -> None:
    settings = Settings(place.journal._folder.parent, "", (), INCLUDE)
    wrong = Finding("chain", 3, f"its hash is not that of {CANARY}")
    addresses = {Severity.CRITICAL: receivers.urls}
    said = []
    for hours, problems, is_up in ((0, [wrong], False), (1, [wrong], True), (2, [wrong], True),
                                   (3, [], True), (4, [wrong], True)):  # fmt: skip
        place.clock.now = MONDAY + timedelta(hours=hours)
        found = audited(lambda problems=tuple(problems): problems, settings)
        tell_verification(place.journal, place.clock(), (0, ""), found)
        send = send_by_apprise if is_up else _takes_nothing
        told = deliver(place.watched(), addresses, place.journal, send=send, now=place.clock())
        said += [(hours, alert.programme, alert.week, alert.subject) for alert in told]
    assert said == [
        (1, "ledger", "all", "chain, since 2016-08-01T12:00:00+00:00"),
        (4, "ledger", "all", "chain, since 2016-08-01T16:00:00+00:00"),
    ]
    assert all("(chain, since " in text and CANARY not in text for text in receivers.texts())


def test_a_service_that_takes_nothing_is_noticed_and_reported_again(
    place: Place, receivers: Receivers
) -> None:
    receivers.services.status = 500
    CAUSES["hold_stuck"](place, WEEK)
    assert _send(place, receivers, "hold_stuck", place.clock()) == []
    receivers.services.status = 200
    assert len(_send(place, receivers, "hold_stuck", place.clock())) == 1


class _Drips(BaseHTTPRequestHandler):
    """Takes a message; its answer begins at once, and a header of it goes on for ever."""

    is_endless = True

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.wfile.write(b"HTTP/1.0 200 OK\r\nX-Slow: ")
        with suppress(OSError):
            while self.is_endless:
                self.wfile.write(b".")
                time.sleep(0.1)
        self.wfile.write(b"\r\n\r\n")

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def test_a_receiver_that_answers_byte_by_byte_holds_nobody_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its task hung for as long as the bytes came: no library bounds the whole exchange."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Drips) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"json://127.0.0.1:{server.server_port}/alerts"

        def sent() -> bool:
            return send_by_apprise([url], "turnstile", "one", Severity.ERROR)

        monkeypatch.setattr(delivery, "WITHIN_S", 2.0)
        began = time.monotonic()
        assert not sent()
        assert time.monotonic() - began < 30
        monkeypatch.setattr(delivery, "WITHIN_S", 120.0)
        monkeypatch.setattr(_Drips, "is_endless", False)
        assert sent()  # negative control
        server.shutdown()


def test_slack_and_teams_get_the_forms_that_they_ask_for(receivers: Receivers) -> None:
    assert send_by_apprise(
        receivers.urls, "turnstile error: opal 2016-W30", "one\ntwo", Severity.ERROR
    )
    ((path, slack),) = receivers.services.received[SLACK]
    assert path == "/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ"
    assert slack["attachments"][0]["title"] == "turnstile error: opal 2016-W30"
    ((path, teams),) = receivers.services.received[TEAMS]
    assert path.startswith("/workflows/0123456789abcdef")
    (card,) = teams["attachments"]
    assert card["contentType"] == "application/vnd.microsoft.card.adaptive"
    assert "turnstile error: opal 2016-W30" in json.dumps(card)


def test_a_receiver_that_does_not_prove_its_name_gets_nothing(
    receivers: Receivers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REQUESTS_CA_BUNDLE")
    assert not send_by_apprise([SLACK_URL], "subject", "text", Severity.ERROR)
    assert receivers.services.received == {}
