"""States of a week that ledger, journal and Airflow tell together: none of them alone decides."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from watched_place import MONDAY, Place

from turnstile.ledger.entries import instant
from turnstile.ledger.records import Bindings, ReleaseKey
from turnstile.operations.airflow_now import HELD, AirflowNow, RunNow
from turnstile.operations.budget_page.page import BudgetPage
from turnstile.operations.journal import Happening, Journal, Line
from turnstile.operations.week_states import STATES, WeekMark
from turnstile.settings import Settings

BOUND = Bindings("p", "d", "s")
STYLE = Path(__file__).parents[2] / "plugins/page_files/style.css"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place.new(tmp_path)


def _mark(place: Place, state: str | None, **tasks: str | None) -> WeekMark:
    return next(
        mark for mark in place.marks(place.airflow(state, tasks)) if mark.week == "2016-W30"
    )


def _draw(place: Place, holder: str = "") -> str:
    attempt = place.reserve("2016-W30")
    place.ledger.begin_draw(attempt, BOUND, holder=holder)
    return attempt


def test_a_draw_that_lives_is_no_dead_run_even_if_airflow_says_that_its_task_is_over(
    place: Place,
) -> None:
    place.say(Happening.BEGUN, "2016-W30")
    attempt = _draw(place, "this machine")
    assert _mark(place, "failed").state == "under_way"
    assert place.now(place.airflow("failed")).attention == ()
    place.ledger.end_lease("this machine")
    assert _mark(place, "failed").state == "dead"
    place.ledger.seal(attempt, "bytes")
    assert _mark(place, "failed").of_budget == "sealed"


@pytest.mark.parametrize(("state", "tasks"), [("queued", {}), ("running", {"draw": "scheduled"})])
def test_a_run_that_failed_and_is_cleared_works_again_before_it_says_so(
    place: Place, state: str, tasks: dict[str, str | None]
) -> None:
    place.say(Happening.BEGUN, "2016-W30")
    _draw(place)
    place.say(Happening.FAILED, "2016-W30", step="draw", kind="TurnstileError", sentence="x")
    assert _mark(place, "failed", draw="failed").state == "charged"
    assert _mark(place, "running", draw="running").state == "charged"  # Airflow will hear of it
    assert _mark(place, state, **tasks).state in {"under_way", "held_up"}


def test_nobody_is_asked_once_airflow_has_no_question(place: Place) -> None:
    place.say(Happening.BEGUN, "2016-W30")
    place.ledger.seal(_draw(place), "bytes")
    place.say(Happening.ASKED, "2016-W30", task="ask", sentence="May it be published?")
    assert _mark(place, "running", ask="awaiting_input").state == "asked"
    assert _mark(place, "running", ask="success", publish="queued").state == "under_way"
    assert _mark(place, "failed", ask="failed").state == "dead"


def test_a_question_about_a_correction_is_no_question_about_a_drawn_week(place: Place) -> None:
    place.publish("2016-W30")
    place.clock.now += timedelta(hours=1)
    place.say(Happening.ASKED, "2016-W30", task="ask_revision", sentence="files changed")
    airflow = place.airflow("running", {"ask_revision": "awaiting_input"})
    correction = _mark(place, "running", ask_revision="awaiting_input").correction
    assert correction is not None
    assert correction.state == "asked_revision"
    (shown,) = place.now(airflow).attention
    assert "no answer keeps the sealed bytes" in shown.next_step
    assert "clear" not in shown.next_step


def test_what_a_run_said_before_the_week_was_public_is_over(place: Place) -> None:
    place.say(Happening.BEGUN, "2016-W30")
    place.say(Happening.FAILED, "2016-W30", step="publish", kind="OSError", sentence="disk full")
    place.clock.now += timedelta(hours=1)
    place.publish("2016-W30")  # by hand
    assert place.now(place.airflow("failed")).attention == ()
    place.clock.now += timedelta(hours=1)
    place.say(Happening.FAILED, "2016-W30", step="audit", kind="IntegrityError", sentence="bytes")
    (shown,) = place.now(place.airflow("failed")).attention
    assert "r0 is public" in shown.reason
    assert "bytes" in shown.reason


def test_a_correction_that_failed_is_not_hidden_by_the_public_week(place: Place) -> None:
    place.publish("2016-W30")
    place.clock.now += timedelta(hours=1)
    first = place.ledger.attempts(ReleaseKey("opal", "2016-W30"))[0]
    assert first.is_public
    place.say(Happening.BEGUN, "2016-W30", revision=1)
    assert _mark(place, "failed").correction is not None
    assert _mark(place, "failed").state == "published"
    (shown,) = place.now(place.airflow("failed")).attention
    assert shown.state == "dead"


@pytest.mark.parametrize(("state", "looks"), [("success", []), ("failed", ["dead"])])
def test_a_task_of_a_public_week_that_was_cleared_alone_leaves_no_dead_run(
    place: Place, state: str, looks: list[str]
) -> None:
    place.publish("2016-W30")
    place.clock.now += timedelta(hours=1)
    place.say(Happening.RESUMED, "2016-W30", step="validate")
    airflow = place.airflow(state, {"validate": state, "audit": "success"})
    assert [shown.state for shown in place.now(airflow).attention] == looks


@pytest.mark.parametrize(
    ("happening", "details", "looks"),
    [
        (Happening.RESUMED, {"step": "validate"}, []),
        (Happening.RESUMED, {"step": "ask_revision"}, ["dead"]),
        (Happening.ASKED, {"task": "ask_revision"}, ["dead"]),
        (Happening.BEGUN, {}, ["dead"]),
    ],
)
def test_a_deleted_run_of_a_public_week_is_dead_only_if_it_had_a_question_before_it(
    place: Place, happening: Happening, details: dict[str, str], looks: list[str]
) -> None:
    place.publish("2016-W30")
    place.clock.now += timedelta(hours=1)
    place.say(happening, "2016-W30", **details)
    assert [shown.state for shown in place.now(place.airflow(None)).attention] == looks


def test_a_question_of_a_second_run_is_no_question_once_the_week_is_public(place: Place) -> None:
    """A backfill and a run by name asked about one week; the page sent people to an empty desk."""
    place.say(Happening.BEGUN, "2016-W30")
    place.publish("2016-W30")
    (shown,) = place.now(place.airflow("running", {"ask": "awaiting_input"})).attention
    assert shown.state == "asked"
    assert shown.reason.endswith(
        "one more run of it asks still, and no answer changes what is public"
    )
    assert shown.next_step == (
        "Answer in Airflow under Required Actions, either way: that run ends then."
    )


def test_a_run_of_a_backfill_that_was_canceled_is_said_never_to_begin(place: Place) -> None:
    place.say(Happening.BEGUN, "2016-W30")
    (run,) = (place.airflow("queued").runs or {})["opal"]
    assert place.now(place.airflow("queued")).attention == ()
    held = AirflowNow({"opal": False}, {"opal": (replace(run, is_held_back=True),)})
    mark = next(mark for mark in place.marks(held) if mark.week == "2016-W30")
    assert (mark.state, mark.reason) == ("held_up", HELD)
    (shown,) = place.now(held).attention
    assert (shown.state, shown.reason) == ("stalled", HELD)
    assert "delete this run there and release its week by name" in shown.next_step


@pytest.mark.parametrize(
    ("queued", "begun", "reason"),
    [
        (None, None, "queued behind the run of 2016-W29"),
        (7, 7, "queued behind the run of 2016-W29"),
        (7, None, "queued; Airflow begins it in its turn"),
        (None, 7, "queued; Airflow begins it in its turn"),
        (8, 7, "queued; Airflow begins it in its turn"),
    ],
)
def test_a_run_is_queued_behind_those_of_its_own_backfill_or_those_of_none(
    place: Place, queued: int | None, begun: int | None, reason: str
) -> None:
    """The page named a run by hand, beside which Airflow begins those of a backfill."""
    place.say(Happening.BEGUN, "2016-W30")
    (run,) = (place.airflow("queued").runs or {})["opal"]
    other = RunNow("by hand", "2016-W29", "running", backfill=begun)
    runs = (replace(run, period="2016-W30", backfill=queued), other)
    airflow = AirflowNow({"opal": False}, {"opal": runs})
    mark = next(mark for mark in place.marks(airflow) if mark.week == "2016-W30")
    assert (mark.state, mark.reason) == ("held_up", reason)
    paused = replace(airflow, paused={"opal": True})  # "Airflow begins it next", it said
    (mark,) = (mark for mark in place.marks(paused) if mark.week == "2016-W30")
    assert mark.reason == "queued; its DAG is paused"
    is_first = "The run of 2016-W30 comes first" in place.now(airflow).not_at_once
    assert is_first == (queued is None)  # a run by name waits for none of a backfill


def test_a_queued_run_of_a_paused_dag_is_said_once_its_week_is_late(place: Place) -> None:
    place.publish("2016-W30")
    place.say(Happening.BEGUN, "2016-W31")
    assert place.now(place.airflow("queued", paused=True)).attention == ()
    place.clock.now += timedelta(days=10)
    (shown, *_) = place.now(place.airflow("queued", paused=True)).attention
    assert (shown.weeks, shown.next_step) == ("2016-W31", "Unpause the DAG.")


def test_every_state_has_a_square() -> None:
    style = STYLE.read_text()
    shown_otherwise = {"published"}  # the square itself
    assert not {name for name in STATES if f".{name}" not in style} - shown_otherwise


@pytest.mark.parametrize("is_sealed", [True, False])
def test_a_run_that_was_deleted_in_airflow_is_not_to_be_opened_or_cleared(
    place: Place, *, is_sealed: bool
) -> None:
    place.say(Happening.BEGUN, "2016-W30")
    attempt = _draw(place)
    if is_sealed:
        place.ledger.seal(attempt, "bytes")
        place.say(Happening.ASKED, "2016-W30", task="ask", sentence="May it be published?")
    (shown,) = place.now(place.airflow(None)).attention
    assert (shown.state, shown.run_id) == ("dead", "")
    assert "was deleted in Airflow" in shown.reason
    assert "Release it by name." in shown.next_step
    assert "Open the run" not in shown.next_step
    assert ("Nothing more is charged" in shown.next_step) == is_sealed
    assert ("(it charges eps 4)" in shown.next_step) != is_sealed
    (there,) = place.now(place.airflow("failed")).attention  # negative control
    assert (there.run_id, "was deleted" in there.reason) == ("run", False)
    # After a loss of Airflow's own database every DAG comes back paused.
    paused = place.now(place.airflow(None, paused=True)).attention
    assert "no run of it. Unpause the DAG. Release it by name." in paused[0].next_step


@pytest.mark.parametrize("state", ["failed", None])
def test_a_draw_that_goes_on_without_its_run_is_no_run_that_a_paused_dag_stops(
    place: Place, monkeypatch: pytest.MonkeyPatch, state: str | None
) -> None:
    place.publish("2016-W30")
    place.say(Happening.BEGUN, "2016-W31")
    attempt = place.reserve("2016-W31")
    place.ledger.begin_draw(attempt, Bindings("p", "d", "s"))
    place.clock.now += timedelta(days=10)
    monkeypatch.setattr(type(place.ledger), "living_draws", lambda _: frozenset({attempt}))
    airflow = place.airflow(state, paused=True)
    mark = next(mark for mark in place.marks(airflow) if mark.week == "2016-W31")
    assert (mark.state, mark.run_id) == ("under_way", "run" if state else "")
    assert "goes on without its run" in mark.reason
    shown = place.now(airflow).attention
    assert not any("its run does not go on" in week.reason for week in shown)


def test_a_run_that_said_why_it_failed_and_was_deleted_is_not_to_be_cleared(place: Place) -> None:
    place.say(Happening.BEGUN, "2016-W30")
    place.say(Happening.FAILED, "2016-W30", step="ingest", kind="InputError", sentence="bad row")
    (there,) = place.now(place.airflow("failed")).attention
    (gone,) = place.now(place.airflow(None)).attention
    assert (there.reason, there.run_id) == ("bad row", "run")
    assert (gone.reason, gone.run_id) == ("bad row", "")
    assert "clear the run" in there.next_step
    assert "Release it by name" in gone.next_step
    assert "clear" not in gone.next_step


@pytest.mark.parametrize("known_as", ["nothing", "failed", "success"])
@pytest.mark.parametrize("news", [Happening.BEGUN, Happening.RESUMED, Happening.ASKED])
def test_a_run_that_is_taken_up_between_airflows_answer_and_the_look_did_not_die(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known_as: str, news: Happening
) -> None:
    monkeypatch.setenv("TURNSTILE_HOME", str(tmp_path))
    page = BudgetPage(Settings.from_environment(), lambda: MONDAY)
    journal, at = Journal.of(page.settings), instant(MONDAY)
    journal.write(Line(at, Happening.BEGUN, "opal", "2016-W30", "run"))
    failed = {"step": "draw", "kind": "TurnstileError", "sentence": "x"}
    journal.write(Line(at, Happening.FAILED, "opal", "2016-W30", "run", failed))
    runs = () if known_as == "nothing" else (RunNow("run", "", known_as),)
    before = AirflowNow({"opal": False}, {"opal": runs}, asked=page.runs_asked(frozenset({"opal"})))
    journal.write(Line(at, news, "opal", "2016-W30", "run", {"step": "x", "task": "ask"}))

    def said(airflow: AirflowNow) -> tuple[str, set[str], bool]:
        mark = page.calendars(frozenset({"opal"}), airflow)["opal"][0]
        html = page.budget(frozenset({"opal"}), airflow)
        return (
            mark.state,
            {alert.rule for alert in page.watched(airflow)},
            'data-state="dead"' in html,
        )

    state, rules, is_dead_on_page = said(before)
    assert (state, "run_died" in rules, is_dead_on_page) == ("under_way", False, False)
    asked_since = replace(before, asked=page.runs_asked(frozenset({"opal"})))
    state, rules, is_dead_on_page = said(asked_since)  # negative control: the same answer, later
    assert (state, "run_died" in rules, is_dead_on_page) == ("dead", True, True)
