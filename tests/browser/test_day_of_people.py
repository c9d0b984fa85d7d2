"""A day of an engineer and two officers on a real stack, in a real Chromium, from install on.

At each step the page, the message and the task's last line agree with the ledger, and what is
charged is what was shown before the click. The watchdog looks while runs wait, work, are paused and
lose their scheduler, and says nothing; of the killed one it says one thing. Steps are tests in
order: each goes on where the one before stopped. What was charged is printed at the end.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack

import pyarrow as pa
import pytest
from day_of_people import (
    ENGINEER,
    FIRST_OFFICER,
    INTERNAL,
    PUBLIC,
    READER,
    SECOND_OFFICER,
    Day,
    public_text,
    replaced,
)
from in_chromium import MISSING, find
from matrix_of_weeks import (
    SETTINGS,
    kill_with_task_and_worker,
    run_by_hand,
    until_lease_ends,
)
from pyarrow import parquet
from real_airflow import DAG, PASSWORD, own_port, running
from row_table import DAY, keep
from sinks import sinks

from turnstile.ledger.entries import EntryKind
from turnstile.ledger.states import ReleaseState

FIRST, SECOND, THIRD, NO_FILES, BAD, KILLED, TOO_MUCH = (f"2016-W{n}" for n in range(30, 37))
DELIVERED = f"{FIRST}:{THIRD},{BAD}:{TOO_MUCH}"
A_WEEK = 583_333_331  # of a card, rho in 1e-9
DRAWS = 7
EDITS = {
    "approval: {required: false}": "approval: {required: true, persons: 2}",
    'window_weeks: 52, rho: "48"': f'window_weeks: 52, rho: "{DRAWS * 7}/12"',
}

pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(MISSING), reason=MISSING)]


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Day]:
    """A fresh installation with files of six weeks, one of them bad, and a witness elsewhere."""
    base, port = tmp_path_factory.mktemp("day"), own_port()
    (base / "witness").mkdir()
    reader = {"conn_type": "http", "host": "127.0.0.1", "port": port, "login": "vera"}
    with sinks() as receivers:
        extra = {
            **SETTINGS,
            "AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE": "False",
            "AIRFLOW_CONN_TURNSTILE_AIRFLOW": json.dumps(reader | {"password": PASSWORD}),
            "AIRFLOW_CONN_TURNSTILE_ALERTS": receivers.connection,
            "TURNSTILE_WITNESS": str(base / "witness"),
        }
        with running(base, DELIVERED, edits=EDITS, extra=extra, port=port) as airflow:
            file = min((airflow.home / "landing/opal" / BAD).glob("*.csv"))
            replaced(file, "tap_on_time,", "tapped_at,")
            (base / "browsers").mkdir()
            with ExitStack() as browsers:
                yield Day(airflow, receivers, base / "browsers", browsers)


@pytest.fixture(autouse=True)
def _kept(day: Day, request: pytest.FixtureRequest) -> Iterator[None]:
    """What was charged is printed at the end."""
    yield
    keep(request.node, DAY, day.lines)


def test_a_fresh_installation_has_never_run_and_nothing_is_charged(day: Day) -> None:
    assert list(day.airflow.ledger.entries()) == []
    assert "never run" in find(day.page(), "[data-programme=opal]").text


def test_the_first_week_is_released_by_the_engineer_and_approved_by_two_officers(day: Day) -> None:
    said = day.release(FIRST, FIRST)
    shown = day.answer(FIRST, "ask_1", FIRST_OFFICER, "Approve")
    assert f"{FIRST}, under embargo" in shown
    assert day.watch().get("run_died") is None  # it waits for the second officer
    day.airflow.until(lambda: day.airflow.asks(FIRST, "ask_2"), what="the second question")
    assert FIRST_OFFICER in day.page_says(FIRST, "asked")
    day.answer(FIRST, "ask_2", SECOND_OFFICER, "Approve")
    day.airflow.until_ended(FIRST)
    day.charged(FIRST, said[FIRST])
    day.is_out(FIRST)
    assert f"opal/{FIRST}/r0: published" in day.last_line(FIRST, "publish")
    live = sqlite3.connect(day.airflow.home / "ledger.sqlite")
    copy = sqlite3.connect(day.work / "last-night.sqlite")
    with live, copy:
        live.backup(copy)
    live.close(), copy.close()


def test_four_weeks_by_name_one_rejected_first_one_without_files_one_with_bad_data(
    day: Day,
) -> None:
    said = day.release(SECOND, BAD)
    assert list(said) == [SECOND, THIRD, NO_FILES, BAD]
    # A rejection: the week stays under embargo, and the next one begins.
    day.answer(SECOND, "ask_1", FIRST_OFFICER, "Reject")
    day.airflow.until_ended(SECOND)
    assert f"rejected by {FIRST_OFFICER}" in day.page_says(SECOND, "rejected")
    assert f"rejected by {FIRST_OFFICER}" in day.last_line(SECOND, "ask_1")
    assert f"rejected by {FIRST_OFFICER}" in day.told_once("week_refused", SECOND)
    assert not (day.airflow.home / "public/opal" / SECOND).exists()
    day.approve(THIRD)
    # The week that does not come: page, message and last line say so in the same words.
    day.airflow.until_ended(NO_FILES)
    sentence = f"Week {NO_FILES} did not arrive"
    assert sentence in day.page_says(NO_FILES, "stopped")
    assert sentence in day.last_line(NO_FILES, "wait")
    assert sentence in day.told_once("week_missing", NO_FILES)
    # Bad data: nothing is charged, and nothing of a row is said.
    day.airflow.until_ended(BAD)
    sentence = "tap_on_time: the column is missing"
    assert sentence in day.page_says(BAD, "stopped")
    assert sentence in day.last_line(BAD, "ingest")
    assert "its input breaks a rule" in day.told_once("week_stopped", BAD)
    for week in (NO_FILES, BAD):
        assert day.airflow.ledger.attempts(_key(week)) == ()
    # Who rejected approves after all, and another one too.
    day.airflow.clear(SECOND, "ask_1", user=ENGINEER)
    day.approve(SECOND)
    assert (day.airflow.runs()[SECOND], day.airflow.runs()[THIRD]) == ("success", "success")
    card = "epsilon 5.7 for a card"
    assert all(card in said[week] for week in (SECOND, THIRD, BAD))
    day.spends(2 * A_WEEK, f"{SECOND} and {THIRD}, as shown; {NO_FILES} and {BAD} nothing")
    day.is_out(SECOND)
    day.is_out(THIRD)


def test_the_mended_week_is_released_under_the_same_run(day: Day) -> None:
    file = min((day.airflow.home / "landing/opal" / BAD).glob("*.csv"))
    replaced(file, "tapped_at,", "tap_on_time,")
    run = day.airflow.run_id(BAD)
    said = day.release(BAD, BAD)
    day.approve(BAD)
    assert day.airflow.run_id(BAD) == run
    day.charged(BAD, said[BAD])
    day.is_out(BAD)


def test_a_correction_is_charged_as_the_question_says(day: Day) -> None:
    file = min((day.airflow.home / "landing/opal" / FIRST).glob("*.csv"))
    file.write_text(file.read_text() + file.read_text().splitlines()[-1] + "\n")
    day.airflow.clear(FIRST, "wait", user=ENGINEER)
    shown = day.answer(FIRST, "ask_revision_1", FIRST_OFFICER, "Make a revision")
    day.answer(FIRST, "ask_revision_2", SECOND_OFFICER, "Make a revision")
    day.approve(FIRST)
    day.charged(FIRST, shown, revision=1)
    day.is_out(FIRST, revision=1)
    assert "files changed" in day.told_once("files_restated", FIRST)


def test_the_watchdog_is_silent_but_of_the_killed_run_and_another_draw_is_shown_and_charged(
    day: Day,
) -> None:
    airflow = day.airflow
    for moment in ("count", "seal"):
        airflow.hold(KILLED, moment)
    said = day.release(KILLED, KILLED)
    airflow.held(KILLED, "count")
    assert day.watch() == {}  # it works
    airflow.call("PATCH", f"/api/v2/dags/{DAG}", {"is_paused": True})
    assert day.watch() == {}  # it is paused
    airflow.call("PATCH", f"/api/v2/dags/{DAG}", {"is_paused": False})
    assert airflow.kill_scheduler(with_workers=True) == set()
    assert airflow.stack.revive_scheduler()
    assert day.watch() == {}  # its scheduler came back
    airflow.let_go(KILLED, "count")
    process = airflow.held(KILLED, "seal")
    assert day.watch() == {}  # it draws
    kill_with_task_and_worker(process)
    airflow.until_ended(KILLED)
    airflow.let_go(KILLED, "seal")
    until_lease_ends(airflow)
    day.charged(KILLED, said[KILLED])
    sentence = day.page_says(KILLED, "dead")
    assert "is over and did not say how; its draw was charged" in sentence
    assert "epsilon 5.7 for a card" in sentence.partition("it charges ")[2]
    day.watch()  # Airflow's end of the run may have said it before
    assert day.watch() == {}
    told = day.told_once("run_died", KILLED)
    assert "is over and did not say how; its draw was charged" in told
    assert "epsilon 5.7 for a card" in told.partition("it charges ")[2]
    said = day.release(KILLED, KILLED)
    assert "a draw that died stays charged; another" in said[KILLED]
    day.approve(KILLED)
    day.charged(KILLED, said[KILLED])
    states = [attempt.state for attempt in airflow.ledger.attempts(_key(KILLED))]
    assert states == [ReleaseState.BURNED, ReleaseState.PUBLISHED]
    day.is_out(KILLED)


def test_the_budget_runs_out_and_the_page_says_so_before_and_after_the_click(day: Day) -> None:
    assert day.spent() == DRAWS * A_WEEK
    said = day.release(TOO_MUCH, TOO_MUCH)
    assert "refused: it asks rho" in said[TOO_MUCH]
    day.airflow.until_ended(TOO_MUCH)
    assert "card" in day.page_says(TOO_MUCH, "refused")
    assert "card" in day.last_line(TOO_MUCH, "wait")
    told = day.told_once("week_refused", TOO_MUCH)
    assert "a cap would be passed; nothing more was charged" in told
    day.spends(0, f"{TOO_MUCH}: refused, as shown")


def test_an_old_ledger_that_is_restored_is_seen_and_recovered(day: Day) -> None:
    airflow = day.airflow
    before = _draws_begun(day)
    with (
        sqlite3.connect(day.work / "last-night.sqlite") as old,
        sqlite3.connect(airflow.home / "ledger.sqlite") as live,
    ):
        old.backup(live)
    assert len(_draws_begun(day)) == 1 < len(before) == DRAWS
    assert run_by_hand(airflow, "audit_ledger") == "failed"
    airflow.clear(TOO_MUCH, "wait", user=ENGINEER)
    airflow.until_ended(TOO_MUCH)
    assert airflow.runs()[TOO_MUCH] == "failed"
    assert airflow.ledger.attempts(_key(TOO_MUCH)) == ()
    assert "disagree; stop releasing" in day.told_once("bytes_disagree", TOO_MUCH)
    browser = day.browser_of(READER)
    browser.get(f"{airflow.address}/privacy-budget/")
    assert "Stop releasing" in find(browser, "p.alarm").text
    words = ("--person", FIRST_OFFICER, "--reason", "an old copy was restored")
    done = day.command("ledger", "recover", *words)
    assert done.returncode == 0, done.stderr
    assert day.command("ledger", "verify").returncode == 0
    assert _draws_begun(day) == before
    day.spends(0, "an old ledger restored and recovered")
    for week, revision in ((FIRST, 1), (SECOND, 0), (THIRD, 0), (BAD, 0), (KILLED, 0)):
        day.is_out(week, revision)
    assert run_by_hand(airflow, "audit_ledger") == "success"


def test_the_digest_of_monday_says_what_the_page_says(day: Day) -> None:
    assert run_by_hand(day.airflow, "weekly_digest") == "success"
    told = [text for text in day.sinks.mails() if "opal" in text and "RUNBOOK.md#weekly" in text]
    assert len(told) == 1
    assert f"{KILLED} is out" in told[0]


def test_no_public_file_has_a_login_or_a_word_that_was_not_marked_public(day: Day) -> None:
    texts = day.public_texts()
    assert any("correction" in text for text in texts.values())
    assert any(PUBLIC in text for text in texts.values())  # so it would be found
    people = f"{ENGINEER}|{FIRST_OFFICER}|{SECOND_OFFICER}|{READER}"
    unmarked = re.compile(rf"\b({people})\b|{INTERNAL}")
    assert [path for path, text in texts.items() if unmarked.search(text)] == []
    names = pa.table({"by": [FIRST_OFFICER]})
    planted = (day.work / "by.md", day.work / "by.parquet", day.work / "why.json")
    planted[0].write_text(f"correction: {FIRST_OFFICER}")
    parquet.write_table(names, planted[1])
    planted[2].write_text(json.dumps({"reason": f"it {INTERNAL}"}))
    assert all(unmarked.search(public_text(path)) for path in planted)


def _draws_begun(day: Day) -> list[tuple[int, str]]:
    """Return sequence and hash of every draw that the ledger knows."""
    entries = day.airflow.ledger.entries()
    return [(entry.sequence, entry.hash) for entry in entries if entry.kind is EntryKind.DRAW_BEGUN]


def _key(week: str) -> object:
    from turnstile.ledger.records import ReleaseKey

    return ReleaseKey("opal", week)
