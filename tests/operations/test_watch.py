"""The watchdog: stuck holds and draws, dead runs, overdue weeks; and the audit of public bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from watched_place import INCLUDE, OPAL, Place

from turnstile.ledger.entries import instant
from turnstile.ledger.records import Bindings, Finding, ReleaseKey
from turnstile.operations.airflow_now import AirflowNow, RunNow, TaskNow, waiting_since
from turnstile.operations.calendar_of_weeks import calendar_of, next_week
from turnstile.operations.journal import Happening, Line
from turnstile.operations.ledger_snapshot import LedgerFollower
from turnstile.operations.watchdog.alerts import Alert, Severity, of_run
from turnstile.operations.watchdog.delivery import deliver
from turnstile.operations.watchdog.watch import audited, of_unheard
from turnstile.operations.week_states import Evidence
from turnstile.programme.loading import load_programme
from turnstile.settings import Settings


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place.new(tmp_path)


def _rules(alerts: list[Alert]) -> set[str]:
    return {alert.rule for alert in alerts}


def test_a_hold_is_stuck_after_a_day(place: Place) -> None:
    place.reserve("2016-W30")
    place.clock.now += timedelta(hours=23)
    assert place.watched() == []
    place.clock.now += timedelta(hours=2)
    assert place.watched() == [Alert("hold_stuck", "opal", "2016-W30", "opal/2016-W30/r0#1")]


def test_a_draw_is_stuck_after_an_hour_and_a_sealed_one_never(place: Place) -> None:
    attempt = place.reserve("2016-W30")
    place.clock.now += timedelta(hours=20)
    place.ledger.begin_draw(attempt, Bindings("p", "d", "s"))
    place.clock.now += timedelta(minutes=59)
    assert place.watched() == []
    place.clock.now += timedelta(minutes=2)
    assert _rules(place.watched()) == {"draw_stuck"}
    place.ledger.seal(attempt, "bytes")
    assert place.watched() == []


@pytest.mark.parametrize("state", ["failed", "success", None])
def test_a_run_that_ended_without_a_word_died(place: Place, state: str | None) -> None:
    place.say(Happening.BEGUN, "2016-W30")
    assert _rules(place.watched("running")) == set()
    (alert,) = place.watched(state)
    assert (alert.rule, alert.week, alert.run_id) == (
        "run_died",
        "2016-W30",
        "run" if state else "",
    )
    assert "taken up 2016-08-01T12:00:00+00:00" in alert.identity
    (shown,) = place.now(place.airflow(state)).attention
    assert alert.sentence == f"2016-W30: {shown.reason}. {shown.next_step}"  # as the page says it


def test_what_a_run_without_a_word_charged_is_said_by_the_ledger(place: Place) -> None:
    """A journal on a disk that was full has no word of a run that drew."""
    place.seal("2016-W30")
    place.publish("2016-W31")
    place.reserve("2016-W32")

    def told(period: str) -> str:
        picture = LedgerFollower(place.ledger).now()
        (alert,) = of_unheard(picture, "opal", "run", period, place.journal.of_programme("opal"))
        assert (alert.rule, alert.week) == ("run_died", period or "all")
        return alert.sentence

    assert "its numbers are drawn, charged and sealed, and not public" in told("2016-W30")
    assert "its numbers are public" in told("2016-W31")
    assert "its reservation stands, and nothing is charged" in told("2016-W32")
    assert "; nothing is charged." in told("2016-W33")
    assert "charged" not in told("")
    place.say(Happening.BEGUN, "2016-W33")
    picture, lines = LedgerFollower(place.ledger).now(), place.journal.of_programme("opal")
    assert of_unheard(picture, "opal", "run", "", lines) == ()


def test_a_run_that_said_how_it_ended_did_not_die(place: Place) -> None:
    place.say(Happening.BEGUN, "2016-W30")
    place.say(Happening.ENDED, "2016-W30")
    assert place.watched("success") == []


@pytest.mark.parametrize("working", ["running", "queued", "up_for_retry"])
def test_a_run_that_works_for_long_is_reported(place: Place, working: str) -> None:
    place.say(Happening.BEGUN, "2016-W30")
    place.clock.now += timedelta(hours=7)
    assert _rules(place.watched("running", {"wait": "success", "draw": working})) == {"run_lasts"}
    place.say(Happening.RESUMED, "2016-W30", step="ask")  # somebody answered just now
    assert place.watched("running", {"publish": working}) == []


@pytest.mark.parametrize("waiting", ["deferred", "awaiting_input", "scheduled", None])
def test_a_run_that_waits_for_its_week_for_people_or_for_a_paused_dag_may_wait(
    place: Place, waiting: str | None
) -> None:
    place.say(Happening.BEGUN, "2016-W30")
    place.clock.now += timedelta(days=3)
    assert place.watched("running", {"ask": waiting, "publish": None}) == []
    assert place.watched("queued", {"wait": None}) == []


_AT = datetime(2016, 8, 1, 12, tzinfo=UTC)
_FIRST = RunNow("run", "", "running", {"wait": TaskNow("success", moved=_AT)}, _AT)
_QUEUED = TaskNow("queued", moved=_AT)


@pytest.mark.parametrize(
    ("run", "minutes", "said"),
    [
        (_FIRST, 14, ""),
        (_FIRST, 16, "it is running since 2016-08-01 12:00 UTC; Airflow schedules no task of it"),
        (replace(_FIRST, tasks={"draw": _QUEUED}), 16, "its task draw waits for a worker since"),
        (
            replace(_FIRST, tasks={"reserve": TaskNow("scheduled", moved=_AT)}),
            16,
            "its task reserve waits for a slot since 2016-08-01 12:00 UTC; its pool has none free",
        ),
        (replace(_FIRST, tasks={"a": _QUEUED, "b": TaskNow("running")}), 16, ""),
        (replace(_FIRST, tasks={"a": _QUEUED, "ask": TaskNow("awaiting_input")}), 16, ""),
        (replace(_FIRST, state="queued", tasks={}), 16, "it is queued since"),
        (replace(_FIRST, state="failed"), 16, ""),
    ],
)
def test_a_run_that_nothing_holds_up_and_that_does_not_go_on_is_said_to_stall(
    run: RunNow, minutes: int, said: str, place: Place
) -> None:
    place.say(Happening.BEGUN, "2016-W30")
    now = _AT + timedelta(minutes=minutes)
    airflow = AirflowNow({"opal": False}, {"opal": (run,)}, heard=now)
    assert airflow.stall("opal", run, now).startswith(said)
    place.clock.now = now
    stalled = [
        attention for attention in place.now(airflow).attention if attention.state == "stalled"
    ]
    assert [attention.reason.startswith(said) for attention in stalled] == [True] * bool(said)
    assert replace(airflow, paused={"opal": True}).stall("opal", run, now) == ""
    silent = replace(airflow, heard=now - timedelta(minutes=6))
    words = "Airflow's scheduler was last heard"
    assert silent.stall("opal", run, now).startswith(words) == run.is_live
    assert place.now(silent).not_at_once.startswith(words)
    ahead = replace(run, run_id="ahead", state="running")
    behind = replace(airflow, runs={"opal": (ahead, run)})
    assert run.state != "queued" or behind.stall("opal", run, now) == ""


def _minutes(*after: float) -> list[tuple[str, datetime]]:
    """Lines of Airflow's log which say that no worker took the task `draw`."""
    return [("draw", _AT + timedelta(minutes=minutes)) for minutes in after]


def test_a_task_that_airflow_queues_anew_every_few_minutes_is_said_to_wait_for_a_worker() -> None:
    """Each time its moments were those of just now: it never stood for a quarter of an hour."""
    now = _AT + timedelta(minutes=22)
    requeued = _minutes(5, 12, 19)
    tasks = {"wait": TaskNow("success", moved=_AT), "draw": TaskNow("queued", moved=now)}
    renewed = replace(_FIRST, tasks=tasks)
    airflow = AirflowNow({"opal": False}, {}, heard=now)
    assert airflow.stall("opal", renewed, now) == ""
    run = replace(renewed, tasks=waiting_since(tasks, requeued))
    said = "its task draw waits for a worker since 2016-08-01 12:05 UTC; none takes it"
    assert airflow.stall("opal", run, now) == said
    between = {"draw": TaskNow("scheduled", moved=_AT + timedelta(minutes=19))}
    run = replace(_FIRST, tasks=waiting_since(between, requeued))
    assert airflow.stall("opal", run, now).startswith("its task draw waits for a slot since")


@pytest.mark.parametrize(
    ("task", "requeued"),
    [
        (TaskNow("running", moved=_AT + timedelta(minutes=20)), _minutes(5, 12, 19)),
        (TaskNow("success", moved=_AT + timedelta(minutes=20)), _minutes(5, 12, 19)),
        (TaskNow("queued", moved=_AT + timedelta(hours=9)), _minutes(5, 12, 19)),
        (TaskNow("queued"), _minutes(5, 12, 19)),
        (TaskNow("queued", moved=_AT), []),
    ],
)
def test_what_ran_since_waits_since_it_was_queued_last(
    task: TaskNow, requeued: list[tuple[str, datetime]]
) -> None:
    assert waiting_since({"draw": task}, [("gone", _AT), *requeued]) == {"draw": task}


def test_a_run_whose_logical_date_lies_ahead_is_said_to_hold_up_all_others(place: Place) -> None:
    """Airflow does nothing of it for years; its sentence was that it goes on by itself."""
    place.say(Happening.BEGUN, "2016-W30")
    ahead = replace(_FIRST, run_id="ahead", period="2030-W02", tasks={}, starts=_AT.replace(2030))
    behind = replace(_FIRST, state="queued", period="2016-W30", tasks={})
    airflow = AirflowNow({"opal": False}, {"opal": (ahead, behind)})
    told = [item for item in place.now(airflow).attention if item.state == "stalled"]
    assert [(item.weeks, item.run_id) for item in told] == [("2030-W02", "ahead")]
    assert told[0].reason.endswith("whose logical date lies ahead (2030-08-01 12:00 UTC)")
    assert told[0].next_step.startswith("Mark that run failed in Airflow and delete it")
    begun = replace(ahead, starts=_AT - timedelta(days=7))
    assert place.now(AirflowNow({"opal": False}, {"opal": (begun, behind)})).attention == ()
    # Of the weeks until then nobody has to read a line.
    assert [mark.week for mark in place.marks(airflow)] == ["2016-W30", "2030-W02"]


@pytest.mark.parametrize(("state", "minutes"), [("deferred", 6), ("deferred", 4), ("running", 6)])
def test_a_week_that_waits_while_nothing_wakes_its_task_is_said_to_stall(
    state: str, minutes: int, place: Place
) -> None:
    """Its sentence went on: files are still written to."""
    place.say(Happening.BEGUN, "2016-W30")
    now = place.clock.now = _AT + timedelta(minutes=minutes)
    run = replace(_FIRST, tasks={"wait": TaskNow(state)})
    airflow = AirflowNow({"opal": False}, {"opal": (run,)}, heard=now, triggerer_heard=_AT)
    told = [a.reason for a in place.now(airflow).attention if a.state == "stalled"]
    is_stalled = (state, minutes) == ("deferred", 6)
    assert [reason.startswith("Airflow's triggerer was last heard") for reason in told] == [
        True
    ] * is_stalled


def test_a_run_that_said_why_it_failed_is_not_to_be_cleared_before_airflow_has_ended_it(
    place: Place,
) -> None:
    place.ledger.begin_draw(place.reserve("2016-W30"), Bindings("p", "d", "s"))
    place.say(Happening.FAILED, "2016-W30", step="draw", kind="DrawDied", sentence="it died")
    for state, waits in (("running", True), ("failed", False)):
        (attention,) = place.now(place.airflow(state, {"draw": "failed"})).attention
        assert (attention.state, "it charges eps 4" in attention.next_step) == ("charged", True)
        assert attention.next_step.startswith("Wait until Airflow has ended its run") == waits


def test_a_run_that_was_cleared_and_killed_died_once_more(place: Place) -> None:
    place.say(Happening.BEGUN, "2016-W30")
    (first,) = place.watched("failed")
    place.say(Happening.FAILED, "2016-W30", step="draw", kind="TurnstileError")
    place.clock.now += timedelta(minutes=5)
    place.say(Happening.RESUMED, "2016-W30", step="draw")  # cleared from there on
    second = next(alert for alert in place.watched("failed") if alert.rule == "run_died")
    assert second.identity != first.identity


def test_a_week_that_is_known_to_have_stopped_is_not_reported_again_for_being_late(
    place: Place,
) -> None:
    place.publish("2016-W30")
    place.say(Happening.BEGUN, "2016-W31")
    place.say(Happening.FAILED, "2016-W31", step="validate", kind="InputError", sentence="bad")
    place.clock.now = datetime(2016, 8, 14, tzinfo=UTC)
    assert _rules(place.watched("failed")) == {"week_stopped"}
    place.clock.now = datetime(2016, 8, 20, tzinfo=UTC)  # and the next one nobody took up
    alerts = {(alert.rule, alert.week) for alert in place.watched("failed")}
    assert alerts == {("week_stopped", "2016-W31"), ("release_overdue", "2016-W32")}


@pytest.mark.parametrize("verdict", ["pass", "warn"])
def test_a_week_that_stands_still_because_its_dag_is_paused_is_told_though_a_rule_warned(
    verdict: str, place: Place
) -> None:
    """A warning of its input counted as word of its stop, for ever."""
    place.publish("2016-W30")
    place.say(Happening.BEGUN, "2016-W31")
    place.say(Happening.JUDGED, "2016-W31", verdicts={"volume": verdict})
    place.say(Happening.RESTATED, "2016-W31")
    place.reserve("2016-W31")
    place.clock.now = datetime(2016, 8, 10, tzinfo=UTC)
    rules = {(alert.rule, alert.week) for alert in place.watched(paused=True)}
    assert ("release_overdue", "2016-W31") in rules
    place.say(Happening.FAILED, "2016-W31", step="draw", kind="InputError", sentence="bad")
    rules = {(alert.rule, alert.week) for alert in place.watched("failed", paused=True)}
    assert ("week_stopped", "2016-W31") in rules
    assert not {("release_overdue", "2016-W31"), ("hold_stuck", "2016-W31")} & rules


def test_bytes_that_disagree_are_word_of_a_stop_while_the_week_stands(place: Place) -> None:
    """A hold, or lateness, was told beside them, with advice of its own."""
    place.publish("2016-W30")
    place.say(Happening.BEGUN, "2016-W31")
    place.reserve("2016-W31")
    place.say(Happening.FAILED, "2016-W31", step="draw", kind="IntegrityError")
    place.clock.now = datetime(2016, 8, 13, tzinfo=UTC)
    assert _rules(place.watched("failed")) == {"bytes_disagree"}
    place.say(Happening.RESUMED, "2016-W31", step="draw")  # and stands still, for another reason
    assert {"bytes_disagree", "release_overdue"} <= _rules(place.watched(paused=True))


@pytest.mark.parametrize("kind", ["IntegrityError", "InputError"])
def test_a_draw_that_died_after_a_stop_that_was_told_is_told_of_too(
    place: Place, kind: str
) -> None:
    """A week that failed was released by the command line, and nobody heard that its draw died."""
    place.say(Happening.BEGUN, "2016-W30")
    place.say(Happening.FAILED, "2016-W30", step="reserve", kind=kind)
    told = _rules(place.watched("failed"))
    place.clock.now += timedelta(days=3)
    place.ledger.begin_draw(place.reserve("2016-W30"), Bindings("p", "d", "s"))
    place.clock.now += timedelta(hours=2)
    assert _rules(place.watched("failed")) == told | {"draw_stuck"}


def test_bytes_that_disagreed_are_told_though_they_did_so_twice_between_two_looks(
    place: Place,
) -> None:
    """The second stop took the place of the first, and went with it once the week was public."""
    for _ in range(2):
        place.say(Happening.BEGUN, "2016-W30")
        place.say(Happening.FAILED, "2016-W30", step="draw", kind="IntegrityError")
        place.clock.now += timedelta(minutes=1)
    place.say(Happening.RESUMED, "2016-W30", step="draw")
    place.publish("2016-W30")
    assert [alert.again for alert in place.watched("success")] == [""]


def test_what_a_store_has_lost_is_not_told_as_an_outage(place: Place) -> None:
    place.say(Happening.BEGUN, "2016-W30")
    place.say(Happening.FAILED, "2016-W30", step="ingest", kind="StoreObjectGone")
    (alert,) = place.watched("failed")
    assert "no repeat helps" in alert.sentence


def test_a_failure_that_could_not_be_sent_is_sent_by_the_watchdog(place: Place) -> None:
    place.say(Happening.BEGUN, "2016-W30")
    place.say(Happening.FAILED, "2016-W30", step="draw", kind="BudgetExceeded", sentence="no")
    assert _rules(place.watched("failed")) == {"week_refused"}


def test_nobody_is_told_late_of_a_stop_that_is_over(place: Place) -> None:
    place.say(Happening.BEGUN, "2016-W30")
    place.say(Happening.FAILED, "2016-W30", step="ingest", kind="InputError", sentence="bad")
    assert _rules(place.watched("failed")) == {"week_stopped"}
    place.say(Happening.RESUMED, "2016-W30", step="ingest")
    assert _rules(place.watched("running")) == set()
    place.clock.now += timedelta(minutes=1)
    place.publish("2016-W30")
    assert _rules(place.watched("success")) == set()


def _stops(place: Place, *steps_and_kinds: tuple[str, str], run_id: str = "run") -> None:
    """A run that is taken up, and stops once for each pair, cleared in between."""
    for step, kind in steps_and_kinds:
        place.clock.now += timedelta(minutes=10)
        place.say(Happening.RESUMED, "2016-W30", run_id, step=step)
        place.clock.now += timedelta(minutes=10)
        place.say(Happening.FAILED, "2016-W30", run_id, step=step, kind=kind, sentence="no")


def _delivered(place: Place, alerts: Iterable[Alert]) -> list[str]:
    """The sentences of what is sent now and was not before."""
    addresses = dict.fromkeys(Severity, ("one",))
    sent = deliver(alerts, addresses, place.journal, send=lambda *_: True, now=place.clock.now)
    return [str(alert) for alert in sent]


@pytest.mark.parametrize(
    ("step", "kind"), [("draw", "DrawDied"), ("reserve", "BudgetExceeded"), ("wait", "NotArrived")]
)
@pytest.mark.parametrize("by", ["its run", "the watchdog"])
def test_a_week_that_stops_once_more_in_the_same_way_is_told_once_more(
    step: str, kind: str, by: str, place: Place
) -> None:
    """The second draw that dies is charged too; its alarm counted as the one that was sent."""

    def told() -> list[str]:
        lines = place.journal.of_week("opal", "2016-W30")
        return _delivered(
            place, of_run(lines, "run") if by == "its run" else place.watched("failed")
        )

    _stops(place, (step, kind))
    (first,) = told()
    assert told() == []
    _stops(place, (step, kind))
    (second,) = told()
    assert second == f"{first}, once more at {instant(place.clock.now)}"
    assert told() == []
    _stops(place, (step, kind), (step, kind))
    assert len(told()) == 1  # of what stopped it meanwhile nobody has to read
    _stops(place, (step, kind), run_id="another")
    assert len(_delivered(place, place.watched("failed"))) == 1


def test_after_an_upgrade_nobody_is_told_of_a_stop_that_was_told_or_is_over(place: Place) -> None:
    """Identities of what was sent stand in journals; stops of the same kind lie in the past."""
    for step, kind in (("draw", "DrawDied"), ("publish", "IntegrityError")):
        _stops(place, *[(step, kind)] * 3)
    place.say(Happening.RESTATED, "2016-W30")
    place.say(Happening.RESTATED, "2016-W30")
    known = "week_stopped:step draw, DrawDied", "bytes_disagree:step publish, IntegrityError"
    for identity in (*known, "files_restated:"):
        place.say(Happening.NOTIFIED, "2016-W30", "", identity=identity, severity="error")
    place.clock.now += timedelta(minutes=10)
    place.publish("2016-W30")
    assert _delivered(place, place.watched("success")) == []


@pytest.mark.parametrize("state", [None, "failed", "running"])
def test_nobody_is_reminded_of_a_question_that_airflow_has_no_more(
    place: Place, state: str | None
) -> None:
    attempt = place.reserve("2016-W30")
    place.say(Happening.BEGUN, "2016-W30")
    place.ledger.begin_draw(attempt, Bindings("p", "d", "s"))
    place.ledger.seal(attempt, "bytes")
    place.say(Happening.ASKED, "2016-W30", task="ask", sentence="Publish?")
    place.clock.now += timedelta(days=3)
    asked = {"people_asked", "people_reminded"}
    assert asked <= _rules(place.watched("running", {"ask": "awaiting_input"}))
    assert not asked & _rules(place.watched(state, {"publish": "running"}))
    place.say(Happening.BEGUN, "2016-W30", "another run")  # once its own was deleted
    place.ledger.publish(ReleaseKey("opal", "2016-W30"), "manifest")
    place.say(Happening.ENDED, "2016-W30", "another run")
    assert not asked & _rules(place.watched(state, {"publish": "running"}))


def test_a_week_is_overdue_a_day_after_it_became_final(place: Place) -> None:
    place.publish("2016-W30")
    place.clock.now = datetime(2016, 8, 8, 23, tzinfo=UTC)  # W31 is final on Monday, 10:00 there
    assert place.watched() == []
    place.clock.now += timedelta(days=1)
    assert place.watched() == [Alert("release_overdue", "opal", "2016-W31")]
    place.publish("2016-W31")
    assert place.watched() == []


def test_a_week_that_was_stated_to_have_no_release_is_never_overdue_and_the_next_one_is(
    place: Place,
) -> None:
    place.publish("2016-W30")
    place.clock.now += timedelta(days=9)
    assert place.watched() == [Alert("release_overdue", "opal", "2016-W31")]
    place.ledger.declare_no_release(ReleaseKey("opal", "2016-W31"), "ana", "strike")
    assert place.watched() == []
    place.clock.now += timedelta(days=7)
    assert place.watched("running", {"ask": "awaiting_input"}) == [
        Alert("release_overdue", "opal", "2016-W32")
    ]


def test_a_reminder_names_the_weeks_that_wait_behind_the_unanswered_one(place: Place) -> None:
    place.publish("2016-W30")
    place.say(Happening.BEGUN, "2016-W31")
    place.say(Happening.ASKED, "2016-W31", task="ask", sentence="publish?")
    place.clock.now += timedelta(days=1)
    (said,) = (
        str(alert)
        for alert in place.watched("running", {"ask": "awaiting_input"})
        if alert.rule == "people_reminded"
    )
    assert "nobody has answered: publish?" in said
    place.clock.now += timedelta(days=21)
    (said,) = (
        str(alert)
        for alert in place.watched("running", {"ask": "awaiting_input"})
        if alert.rule == "people_reminded"
    )
    assert "answered; 2016-W32 to 2016-W33 cannot begin before: publish?" in said


def test_nothing_is_overdue_before_the_first_release(place: Place) -> None:
    place.clock.now += timedelta(days=400)
    assert place.watched("running", {"ask": "awaiting_input"}) == []


def test_the_calendar_knows_every_state(place: Place) -> None:
    place.publish("2016-W30")
    place.say(Happening.FAILED, "2016-W31", step="reserve", kind="BudgetExceeded", sentence="cap")
    place.say(Happening.FAILED, "2016-W32", step="validate", kind="InputError", sentence="rule")
    place.reserve("2016-W34")
    place.clock.now += timedelta(days=60)
    marks = place.marks(place.airflow(None))
    states = {mark.week: mark.state for mark in marks}
    assert states == {
        "2016-W30": "published",
        "2016-W31": "refused",
        "2016-W32": "stopped",
        "2016-W33": "missing",
        "2016-W34": "held",
        **{f"2016-W{n}": "missing" for n in range(35, 39)},  # final, and nobody took them up
    }
    assert next_week(OPAL, marks) == "2016-W33"


def test_the_calendar_of_another_period_counts_such_periods(place: Place) -> None:
    month = load_programme("itms_month", INCLUDE)
    at = instant(place.clock.now)
    details = {"step": "validate", "kind": "InputError", "sentence": "rule"}
    lines = [
        Line(at, Happening.FAILED, "itms_month", period, "run", details)
        for period in ("2015-11-09..2015-12-09", "2016-01-10..2016-02-09")
    ]
    snapshot = LedgerFollower(place.ledger).now()
    marks = calendar_of(month, snapshot, Evidence(lines), place.clock.now)
    assert [(mark.week, mark.state) for mark in marks[:4]] == [
        ("2015-11-09..2015-12-09", "stopped"),
        ("2015-12-10..2016-01-09", "missing"),
        ("2016-01-10..2016-02-09", "stopped"),
        ("2016-02-10..2016-03-11", "missing"),
    ]
    assert next_week(month, marks) == "2016-02-10..2016-03-11"


def test_a_programme_that_went_over_to_longer_periods_misses_no_week_of_them(place: Place) -> None:
    """Weeks between weeks are missing, as are those before its first month; no other is."""
    programme = load_programme("itms_month", INCLUDE)
    month = replace(programme, schedule=replace(programme.schedule, first_day=date(2016, 2, 8)))
    at, details = instant(place.clock.now), {"step": "validate", "kind": "InputError"}
    lines = [
        Line(at, Happening.FAILED, "itms_month", period, "run", details | {"sentence": "rule"})
        for period in ("2016-W01", "2016-W03", "2016-02-08..2016-03-09")
    ]
    snapshot = LedgerFollower(place.ledger).now()
    names = [mark.week for mark in calendar_of(month, snapshot, Evidence(lines), place.clock.now)]
    assert names[:7] == [
        *(f"2016-W{n:02}" for n in range(1, 6)),
        "2016-02-08..2016-03-09",
        "2016-03-10..2016-04-09",
    ]
    lines.pop()
    names = [mark.week for mark in calendar_of(month, snapshot, Evidence(lines), place.clock.now)]
    assert names[3:5] == ["2016-02-08..2016-03-09", "2016-03-10..2016-04-09"]


def test_the_snapshot_follows_what_is_appended_and_equal_a_fresh_fold(place: Place) -> None:
    follower = LedgerFollower(place.ledger)
    assert follower.now().lines == ()
    for week in ("2016-W30", "2016-W31"):
        place.publish(week)
        assert follower.now().lines == LedgerFollower(place.ledger).now().lines
        assert follower.now().forecasts == place.ledger.forecast()
    assert follower.now().balances == place.ledger.balance()
    assert follower.now().problems == 0


def _settings(tmp_path: Path) -> Settings:
    return Settings(tmp_path, "", (), INCLUDE)


def test_an_audit_names_what_differs_and_is_silent_otherwise(tmp_path: Path) -> None:
    assert audited(lambda: (), _settings(tmp_path)) == ()
    package = tmp_path / "public/opal/2016-W30/r0"
    package.mkdir(parents=True)
    (package / "manifest.json").write_text('{"files": [{"path": "a.csv", "sha256": "0"}]}')
    chain = Finding("chain", 3, "its hash is not the hash of its text")
    found = audited(lambda: (chain, chain), _settings(tmp_path))
    assert found == ("ledger/all/chain", "opal/2016-W30/package r0")
