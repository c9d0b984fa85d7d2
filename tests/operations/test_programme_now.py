"""The page never says "in order" when it is not, and says why and what to do."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from watched_place import INCLUDE, Clock, Place

from turnstile.errors import RefusedError
from turnstile.ledger.of_deployment import open_ledger
from turnstile.ledger.records import Bindings, ReleaseKey, Request
from turnstile.ledger.revisions import RevisionDecision
from turnstile.operations.airflow_now import AirflowNow, RunNow
from turnstile.operations.budget_page.page import BudgetPage
from turnstile.operations.budget_page.plan_view import plan_of
from turnstile.operations.deployment_state import DeploymentState
from turnstile.operations.journal import Happening, Journal, Line
from turnstile.operations.programme_now import ProgrammeNow
from turnstile.programme.approval_rule import ApprovalStanding
from turnstile.programme.loading import load_programme
from turnstile.release.ledger_caps import ledger_cap
from turnstile.settings import Settings

IN_TIME = datetime(2016, 8, 1, 12, tzinfo=UTC)  # W30 is final since 10:00 in Sydney


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place.new(tmp_path)
    made.clock.now = IN_TIME
    return made


def _now(
    place: Place,
    *,
    standing: ApprovalStanding | None = None,
    paused: bool = False,
    state: str | None = "running",
    tasks: Mapping[str, str | None] | None = None,
) -> ProgrammeNow:
    return place.now(place.airflow(state, tasks, paused=paused), standing)


def _seal(place: Place, week: str) -> None:
    attempt = place.reserve(week)
    place.ledger.begin_draw(attempt, Bindings("p", "d", "s"))
    place.ledger.seal(attempt, "bytes")


def test_a_programme_whose_last_week_is_out_in_time_is_in_order(place: Place) -> None:
    place.publish("2016-W30")
    now = _now(place)
    assert now.verdict == "in order"
    assert now.answer == (
        "2016-W30 is out; 2016-W31 is due on Monday 08 August 2016, 10:00 (Australia/Sydney)."
    )
    assert _now(place, paused=True).answer == (
        now.answer.removesuffix(".") + "; no run will take it up while the DAG is paused."
    )


def test_having_notified_somebody_changes_nothing(place: Place) -> None:
    place.publish("2016-W30")
    place.say(Happening.FAILED, "2016-W31", step="wait", kind="NotArrived", sentence="no file")
    before = _now(place).attention
    place.say(Happening.NOTIFIED, "2016-W31", identity="week_stopped:x", severity="error")
    assert _now(place).attention == before != ()


@pytest.mark.parametrize("paused", [True, False])
def test_weeks_after_the_last_known_one_are_overdue_however_many(
    place: Place, *, paused: bool
) -> None:
    place.publish("2016-W30")
    place.clock.now += timedelta(days=700)
    (attention,) = _now(place, paused=paused).attention
    assert (attention.weeks, attention.state) == ("2016-W31 to 2018-W25", "overdue")
    assert ("its DAG is paused" in attention.reason) == paused
    # A run by name begins no sooner than the DAG is unpaused.
    unpause = "Unpause the DAG. " if paused else ""
    assert attention.next_step.startswith(f"{unpause}Release it by name.")


def test_a_run_that_never_begins_is_said_in_one_sentence(place: Place) -> None:
    place.publish("2016-W30")
    place.say(Happening.BEGUN, "2016-W31")
    (run,) = (place.airflow("queued").runs or {})["opal"]
    held = AirflowNow({"opal": False}, {"opal": (replace(run, is_held_back=True),)})
    assert "the run of 2016-W31 is queued, and Airflow begins no run" in place.now(held).answer


def test_a_week_that_is_charged_and_not_public_is_said_with_the_reason_and_the_run(
    place: Place,
) -> None:
    place.publish("2016-W30")
    _seal(place, "2016-W31")
    place.say(Happening.BEGUN, "2016-W31")
    place.say(Happening.FAILED, "2016-W31", step="assess", kind="TurnstileError", sentence="gate x")
    (attention,) = _now(place, state="failed").attention
    assert (attention.state, attention.reason, attention.run_id) == ("withheld", "gate x", "run")
    assert "clear that task" in attention.next_step


@pytest.mark.parametrize(
    ("standing", "state"),
    [
        (ApprovalStanding(1, (), (), ("ada",)), "asked"),
        (ApprovalStanding(1, (), ("ada",), ("ada",)), "asked"),  # once more, after a no
        (ApprovalStanding(1, (), ("ada",), ("ada",)), "rejected"),
        (ApprovalStanding(1, ("ada",), (), ()), "withheld"),
    ],
)
def test_a_week_that_waits_for_people_says_who_may_still_answer(
    place: Place, standing: ApprovalStanding, state: str
) -> None:
    place.publish("2016-W30")
    _seal(place, "2016-W31")
    place.say(Happening.ASKED, "2016-W31", task="ask", sentence="x")
    run = "running" if state == "asked" else "failed"
    if state == "withheld":
        place.say(Happening.FAILED, "2016-W31", step="publish", kind="OSError", sentence="x")
    (attention,) = _now(place, standing=standing, state=run, tasks=_asking(state)).attention
    assert attention.state == state
    assert attention.reason == (str(standing) if state != "withheld" else attention.reason)


def _asking(state: str) -> dict[str, str | None]:
    """What Airflow says of the question of a week that is in a state."""
    return {"ask": "awaiting_input" if state == "asked" else "failed"}


@pytest.mark.parametrize(
    ("kind", "state"), [("BudgetExceeded", "refused"), ("InputError", "stopped")]
)
def test_a_week_that_was_refused_or_stopped_is_said(place: Place, kind: str, state: str) -> None:
    place.publish("2016-W30")
    place.say(Happening.FAILED, "2016-W31", step="reserve", kind=kind, sentence="the cap")
    (attention,) = _now(place).attention
    assert (attention.state, attention.reason) == (state, "the cap")


def _burn(place: Place, week: str, revision: int = 0) -> None:
    attempt = place.reserve(week, revision=revision)
    place.ledger.begin_draw(attempt, Bindings("p", "d", "s"))
    place.ledger.burn(attempt, "its worker died")


@pytest.mark.parametrize("before", ["stopped", "missing", "burned", "drawing", "another programme"])
def test_a_week_that_was_stated_to_have_no_release_is_said_to_be_that(
    place: Place, before: str
) -> None:
    place.publish("2016-W30")
    week, programme = "2016-W31", "opal"
    match before:
        case "stopped":
            place.say(Happening.FAILED, week, step="wait", kind="NotArrived", sentence="no file")
        case "burned":
            _burn(place, week)
        case "drawing":
            place.ledger.begin_draw(place.reserve(week), Bindings("p", "d", "s"))
        case "another programme":
            programme = "itms"
    place.clock.now += timedelta(days=8)
    (attention,) = _now(place).attention
    assert attention.weeks == week
    place.ledger.declare_no_release(ReleaseKey(programme, week), "ana", "strike")
    mark = next(week_mark for week_mark in place.marks() if week_mark.week == week)
    if before in {"drawing", "another programme"}:
        assert _now(place).attention == (attention,)
        assert mark.state == ("charged" if before == "drawing" else "missing")
        return
    assert (mark.state, mark.reason) == ("declared", "no release, ana stated: strike")
    assert _now(place).verdict == "in order"
    assert "2016-W32 is due on" in _now(place).answer


def test_a_correction_that_was_stated_to_have_no_release_is_nothing_to_look_at(
    place: Place,
) -> None:
    place.publish("2016-W30")
    place.clock.now += timedelta(hours=1)
    failed = {"step": "wait", "kind": "NotArrived", "sentence": "no file"}
    place.say(Happening.FAILED, "2016-W30", **failed)
    (attention,) = _now(place, state="failed").attention
    place.ledger.declare_no_release(ReleaseKey("opal", "2016-W30", 1), "ana", "none")
    assert _now(place, state="failed").attention == ()
    place.clock.now += timedelta(hours=1)
    place.say(Happening.FAILED, "2016-W30", **failed)
    assert _now(place, state="failed").attention == (attention,)


def test_a_burned_correction_is_over_by_its_statement_until_it_is_taken_up_again(
    place: Place,
) -> None:
    """Taken up by hand, which is no word in the ledger, it can be stated again."""
    place.publish("2016-W30")
    correction = ReleaseKey("opal", "2016-W30", 1)
    for _ in range(2):
        _burn(place, "2016-W30", revision=1)
        place.clock.now += timedelta(hours=1)
        (attention,) = _now(place, state="success").attention
        assert attention.state == "charged"
        place.ledger.declare_no_release(correction, "ana", "not worth it")
        assert _now(place, state="success").attention == ()
        place.clock.now += timedelta(hours=1)
        place.say(Happening.BEGUN, "2016-W30")
        place.say(Happening.ENDED, "2016-W30")  # the first release was issued again
        assert _now(place, state="success").attention == ()


def test_a_run_that_died_is_said_and_a_working_or_waiting_one_is_not(place: Place) -> None:
    place.publish("2016-W30")
    place.say(Happening.BEGUN, "2016-W31")
    assert _now(place, state="running").verdict == "in order"
    assert _now(place).answer == "2016-W30 is out; a run works on 2016-W31."
    for state in ("failed", None):
        assert [attention.state for attention in _now(place, state=state).attention] == ["dead"]
    place.say(Happening.WAITS, "2016-W31", sentence="no file in landing/opal/2016-W31")
    place.clock.now += timedelta(days=8)
    now = _now(place)
    assert "2016-W31 waits: no file in landing/opal/2016-W31 (since 2016-08-01 12:00" in now.answer
    assert now.verdict == "in order"


def _reserve(place: Place, week: str) -> None:
    place.reserve(week)


def _begin_draw(place: Place, week: str) -> None:
    place.ledger.begin_draw(place.reserve(week), Bindings("p", "d", "s"))


@pytest.mark.parametrize(
    ("act", "left"),
    [(_reserve, "held"), (_begin_draw, "charged"), (_seal, "withheld")],
)
def test_what_a_live_run_reserved_or_drew_is_no_trouble_and_what_a_dead_one_left_is(
    place: Place, act: Callable[[Place, str], None], left: str
) -> None:
    place.publish("2016-W30")
    place.say(Happening.BEGUN, "2016-W31")
    act(place, "2016-W31")
    says = {
        "running": "a run works on 2016-W31",
        "queued": "the run of 2016-W31 is queued; Airflow begins it in its turn",
    }
    for state, words in says.items():
        now = _now(place, state=state)
        assert (now.verdict, now.attention) == ("in order", ())
        assert now.answer == f"2016-W30 is out; {words}."
    (died,) = _now(place, state="failed").attention
    assert died.state == "dead"
    assert ("(it charges eps 4)" in died.next_step) == (left != "withheld")
    place.say(Happening.FAILED, "2016-W31", step="draw", kind="TurnstileError", sentence="x")
    (week,) = _now(place).attention
    assert (week.state, week.reason) == (left, "x")
    place.say(Happening.RESUMED, "2016-W31", step="draw")
    assert _now(place).attention == ()


def _ask(place: Place, week: str) -> None:
    _seal(place, week)
    place.say(Happening.BEGUN, week)
    place.say(Happening.ASKED, week, task="ask", sentence="x")


OPEN = ApprovalStanding(1, (), (), ("ada",))


def test_an_unanswered_week_says_which_weeks_it_holds_up_and_they_say_what_stands_before_them(
    place: Place,
) -> None:
    place.publish("2016-W30")
    _ask(place, "2016-W31")
    asking = _asking("asked")
    (asked,) = _now(place, standing=OPEN, tasks=asking).attention
    assert "cannot begin" not in asked.next_step  # nothing is due yet
    place.clock.now += timedelta(days=22)
    asked, late = _now(place, standing=OPEN, tasks=asking).attention
    assert "Until then 2016-W32 to 2016-W33 cannot begin" in asked.next_step
    assert "the run of 2016-W31 stands before it and waits for people" in late.reason
    assert "See to 2016-W31 first" in late.next_step
    first = "The run of 2016-W31 comes first, and waits for people."
    assert _now(place, standing=OPEN, tasks=asking).not_at_once == first
    paused = _now(place, standing=OPEN, paused=True, tasks=asking).not_at_once
    assert paused == f"The DAG is paused: no run begins until somebody unpauses it. {first}"
    (dead, late) = _now(place, standing=OPEN, state="failed").attention  # its run has died
    assert (dead.state, "cannot begin" in dead.next_step) == ("dead", False)
    assert "stands before" not in late.reason
    assert _now(place, standing=OPEN, state="failed").not_at_once == ""


def test_an_unanswered_correction_says_which_weeks_it_holds_up_on_page_and_in_mail(
    place: Place,
) -> None:
    """Of a public week it was not looked for: the weeks behind it were to be released by name."""
    place.publish("2016-W30")
    place.clock.now += timedelta(hours=1)
    place.say(Happening.BEGUN, "2016-W30")
    place.say(Happening.ASKED, "2016-W30", task="ask_revision", sentence="Correct it?")
    asking: dict[str, str | None] = {"ask_revision": "awaiting_input"}
    place.clock.now += timedelta(days=22)
    now = _now(place, tasks=asking)
    assert now.answer == "2016-W30 is out; people are asked about a correction of 2016-W30."
    asked, late = now.attention
    assert (asked.weeks, asked.state) == ("2016-W30", "asked_revision")
    assert "Until then 2016-W31 to 2016-W33 cannot begin" in asked.next_step
    assert "the run of 2016-W30 stands before it and waits for people" in late.reason
    assert "See to 2016-W30 first" in late.next_step
    assert now.not_at_once == "The run of 2016-W30 comes first, and waits for people."
    mail = {alert.rule: str(alert) for alert in place.watched("running", asking)}
    assert "See to 2016-W30 first" in mail["release_overdue"]
    assert "2016-W31 to 2016-W33 cannot begin before: Correct it?" in mail["people_reminded"]


def test_a_correction_that_stands_still_because_its_dag_is_paused_is_said(place: Place) -> None:
    place.publish("2016-W30")
    place.clock.now += timedelta(days=3)
    place.say(Happening.BEGUN, "2016-W30")
    assert _now(place).answer == "2016-W30 is out; a run works on 2016-W30."
    (paused,) = _now(place, paused=True).attention
    assert (paused.weeks, paused.reason) == (
        "2016-W30",
        "its DAG is paused, so its run does not go on",
    )


def test_a_question_that_ended_is_not_called_asked_until_it_is_asked_again(place: Place) -> None:
    place.publish("2016-W30")
    _ask(place, "2016-W31")
    place.say(Happening.FAILED, "2016-W31", step="ask", kind="NotApproved", sentence="no answer")
    (attention,) = _now(place, standing=OPEN, state="failed").attention
    assert (attention.state, attention.reason) == ("withheld", f"no answer; {OPEN}")
    assert "clear that task" in attention.next_step
    place.say(Happening.ASKED, "2016-W31", task="ask", sentence="x")
    (attention,) = _now(place, standing=OPEN, tasks=_asking("asked")).attention
    assert attention.state == "asked"


def _page(place: Place, home: Path) -> BudgetPage:
    """Return the page of a place, whose journal is now kept where the page reads it."""
    settings = Settings(home, f"sqlite:///{home}/ledger.sqlite", (), INCLUDE)
    place.journal = Journal.of(settings)
    return BudgetPage(settings, place.clock)


@pytest.mark.parametrize("end", ["published", "no_release", "deleted", "another week", "before"])
def test_a_week_that_loses_its_data_is_said_until_the_ledger_says_what_became_of_it(
    place: Place, tmp_path: Path, end: str
) -> None:
    page = _page(place, tmp_path)
    place.publish("2016-W30")
    if end == "before":
        place.ledger.record_deletion("opal", "2016-W31", "files", 90)
    place.clock.now += timedelta(days=60)
    place.say(Happening.EXPIRES, "2016-W31", "", day="2016-11-01 04:30", files=["card 17"])

    def said() -> str:
        return page.budget(frozenset({"opal"}), AirflowNow())

    assert said().count("its private data go from 2016-11-01 04:30 UTC on") == 1
    assert "card 17" not in said()
    assert "its private data" not in page.budget(frozenset({"itms"}), AirflowNow())
    place.clock.now += timedelta(days=1)
    match end:
        case "published":
            place.publish("2016-W31")
        case "no_release":
            place.ledger.declare_no_release(ReleaseKey("opal", "2016-W31"), "ana", "no files")
        case "deleted":
            place.ledger.record_deletion("opal", "2016-W31", "rows", 90)
        case _:
            place.publish("2016-W32")
    assert ("its private data" in said()) == (end in {"another week", "before"})


def test_a_public_week_that_loses_its_data_is_advised_its_correction_or_a_backup(
    place: Place, tmp_path: Path
) -> None:
    page = _page(place, tmp_path)
    place.publish("2016-W31")
    place.clock.now += timedelta(days=1)
    place.say(Happening.EXPIRES, "2016-W31", "", day="2016-11-01 04:30")
    said = page.budget(frozenset({"opal"}), AirflowNow())
    assert "its sealed bytes and its package are gone: restore them from a backup" in said
    assert "Release it by name, or end its correction" not in said


@pytest.mark.parametrize("is_sealed", [True, False])
def test_a_week_that_loses_its_data_is_not_advised_what_the_ledger_refuses(
    place: Place, tmp_path: Path, *, is_sealed: bool
) -> None:
    page = _page(place, tmp_path)
    if is_sealed:
        place.seal("2016-W31")
    place.say(Happening.EXPIRES, "2016-W31", "", day="2016-11-01 04:30")
    said = page.budget(frozenset({"opal"}), AirflowNow())
    assert ("or state turnstile ledger no-release" in said) is not is_sealed
    assert ("approve it, or end its correction" in said) is is_sealed
    with pytest.raises(RefusedError) if is_sealed else nullcontext():
        place.ledger.declare_no_release(ReleaseKey("opal", "2016-W31"), "ana", "no files")


@pytest.mark.parametrize("gone", ["files", "rows", "published"])
def test_a_week_that_keeps_its_data_too_long_is_said_until_these_are_deleted(
    place: Place, tmp_path: Path, gone: str
) -> None:
    page = _page(place, tmp_path)
    place.publish("2016-W30")
    place.ledger.record_deletion("opal", "2016-W31", "rows", 90)  # and then they came again
    place.clock.now += timedelta(days=60)
    why = "opal 2016-W31 is held or drawn now"
    for reason in ("the ledger is quiet", why):
        place.say(Happening.OVERSTAYS, "2016-W31", "", why=reason, of="2016-W31", part="rows")

    def said() -> str:
        return page.budget(frozenset({"opal"}), AirflowNow())

    assert said().count(f"its private data stay beyond their days: {why}") == 1
    assert "the ledger is quiet" not in said()
    assert "retention_held" in said()
    assert "beyond their days" not in page.budget(frozenset({"itms"}), AirflowNow())
    place.clock.now += timedelta(days=1)
    if gone == "published":
        place.publish("2016-W31")
    else:
        place.ledger.record_deletion("opal", "2016-W31", gone, 90)
    assert ("beyond their days" in said()) == (gone != "rows")


ONE_DRAW = {'window_weeks: 52, rho: "48"': 'window_weeks: 52, rho: "7/12"'}
TWO_DRAWS = {'window_weeks: 52, rho: "48"': 'window_weeks: 52, rho: "7/6"'}


def _deployment(
    folder: Path, patch: pytest.MonkeyPatch, edits: Mapping[str, str]
) -> DeploymentState:
    """Return what a deployment of edited programmes says in August of 2016."""
    include = folder / "include"
    for name in ("programmes", "domains"):
        shutil.copytree(INCLUDE / name, include / name)
    shutil.copy(INCLUDE / "examples.yaml", include)
    (include / "people.yaml").write_text("release_officer: [ada]\n")
    opal = include / "programmes/opal.yaml"
    text = opal.read_text()
    for old, new in edits.items():
        assert old in text
        text = text.replace(old, new)
    opal.write_text(text)
    for name, its in (("HOME", folder), ("INCLUDE", include)):
        patch.setenv(f"TURNSTILE_{name}", str(its))
    now = datetime(2016, 8, 10, 13, tzinfo=UTC)
    return DeploymentState(Settings.from_environment(), lambda: now)


def _tell(state: DeploymentState, happening: Happening, week: str, **details: object) -> None:
    line = Line("2016-08-10T12:00:00+00:00", happening, "opal", week, week, details)
    Journal.of(state.settings).write(line)


def _running(*weeks: str) -> AirflowNow:
    """What an Airflow says in which these weeks of opal have a run."""
    runs = tuple(RunNow(week, week, "running") for week in weeks)
    return AirflowNow({"opal": False, "itms": False}, {"opal": runs})


def test_advice_about_a_week_counts_no_draw_of_another_week_that_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = _deployment(tmp_path, monkeypatch, ONE_DRAW)
    for week in ("2016-W30", "2016-W31"):
        told = {"step": "ingest", "kind": "InputError", "sentence": "bad"}
        _tell(state, Happening.FAILED, week, **told)
    airflow = AirflowNow({"opal": False}, {"opal": ()})
    now = state.now_of(load_programme("opal", state.settings.include), airflow)
    advice = {
        attention.week: attention.next_step
        for attention in now.attention
        if attention.state == "stopped"
    }
    assert all("it charges epsilon" in advice[week] for week in ("2016-W30", "2016-W31"))
    both = state.weeks_previewed("opal", {"first": "2016-W30", "last": "2016-W31"}, airflow)
    assert [week_preview.is_refused for week_preview in both.weeks] == [
        False,
        True,
    ]  # asked for together


def test_a_preview_counts_first_what_other_runs_of_the_group_will_charge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = _deployment(tmp_path, monkeypatch, ONE_DRAW)
    _tell(state, Happening.BEGUN, "2016-W30")
    asked = {"first": "2016-W31"}
    behind = state.weeks_previewed("opal", asked, _running("2016-W30"))
    assert (behind.before, behind.weeks[0].is_refused) == (("opal 2016-W30",), True)
    alone = state.weeks_previewed("opal", asked, AirflowNow({}, {"opal": ()}))
    assert (alone.before, alone.weeks[0].is_refused) == ((), False)
    others = state.weeks_previewed("itms", asked, _running("2016-W30"))
    assert (others.before, others.weeks[0].is_refused) == ((), False)  # another group


def _asked_of_opal(state: DeploymentState, key: ReleaseKey) -> Request:
    """Return what a run of opal asks the ledger for."""
    opal = load_programme("opal", state.settings.include)
    planned = plan_of(opal, state.settings.include, key.period, 0)
    caps = tuple(ledger_cap(cap) for cap in opal.caps)
    charged = (planned.postings, str(planned.charged_in), caps)
    return Request(key, opal.family, Bindings("p", "d", "s"), "plan", (), *charged)


def test_a_hold_after_a_burned_draw_is_not_counted_a_second_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both fill the cap; a run goes on from the hold, though the week is charged already."""
    state, key = _deployment(tmp_path, monkeypatch, TWO_DRAWS), ReleaseKey("opal", "2016-W30")
    ledger, request = open_ledger(state.settings), _asked_of_opal(state, key)
    attempt = ledger.reserve(request).attempt_id
    ledger.begin_draw(attempt, request.bindings)
    ledger.burn(attempt, "its process died")
    asked, nobody = {"first": key.period}, AirflowNow({}, {"opal": ()})
    for is_held in (False, True):  # without the hold there is room for one more draw
        (week,) = state.weeks_previewed("opal", asked, nobody).weeks
        assert (week.is_refused, "a hold exists" in week.effect) == (False, is_held)
        ledger.reserve(request)
    (other,) = state.weeks_previewed("opal", {"first": "2016-W31"}, nobody).weeks
    assert other.is_refused  # negative control: the cap is full


@pytest.mark.parametrize("is_full", [True, False])
def test_the_next_week_is_judged_by_its_window_not_by_the_fullest_of_all_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_full: bool
) -> None:
    """A window that was full years ago had it said that the next week is refused."""
    state = _deployment(tmp_path, monkeypatch, TWO_DRAWS)
    ledger = open_ledger(state.settings)
    before = ("2016-W29",) if is_full else ("2014-W01", "2014-W02")
    for week in (*before, "2016-W30"):
        request = _asked_of_opal(state, ReleaseKey("opal", week))
        attempt = ledger.reserve(request).attempt_id
        ledger.begin_draw(attempt, request.bindings)
        ledger.seal(attempt, "bytes")
        ledger.publish(request.key, "manifest")
    nobody = AirflowNow({}, {"opal": ()})
    preview = state.weeks_previewed("opal", {"first": "2016-W31"}, nobody)
    view = state.next_plans(frozenset({"opal"}), nobody)["opal"]
    assert view["week"] == "2016-W31"
    (line,) = [of_cap for of_cap in view["left"] if of_cap["window_weeks"]]
    assert (line["left_after"] < 0) == is_full == preview.weeks[0].is_refused
    page = BudgetPage(state.settings, state.clock)
    assert ("refused" in page.plan(frozenset({"opal"}), nobody)) == is_full


@pytest.mark.parametrize(("before", "is_refused"), [("2016-W29", True), ("2016-W28", False)])
def test_a_preview_of_a_longer_period_asks_for_each_of_its_weeks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, *, is_refused: bool
) -> None:
    """A window that ends with its first week was full, and only the ledger saw it."""
    fortnights = {
        'window_weeks: 52, rho: "48"': 'window_weeks: 2, rho: "7/6"',
        'weekly_at: "10:00"}': 'weekly_at: "10:00", period_days: 14, first_day: 2016-07-25}',
    }
    state = _deployment(tmp_path, monkeypatch, fortnights)
    ledger, period = open_ledger(state.settings), "2016-07-25..2016-08-07"
    request = _asked_of_opal(state, ReleaseKey("opal", period))
    ledger.reserve(replace(request, key=ReleaseKey("opal", before), week=before))
    nobody = AirflowNow({}, {"opal": ()})
    (preview,) = state.weeks_previewed("opal", {"first": period}, nobody).weeks
    assert preview.is_refused == is_refused
    asked = replace(request, week="2016-W31", first_week="2016-W30")
    assert (ledger.refusal_of(asked) is not None) == is_refused


@pytest.mark.parametrize("is_allowed", [True, False])
def test_a_preview_counts_first_a_correction_that_people_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_allowed: bool
) -> None:
    state = _deployment(tmp_path, monkeypatch, TWO_DRAWS)
    ledger, key = open_ledger(state.settings), ReleaseKey("opal", "2016-W30")
    opal = load_programme("opal", state.settings.include)
    request = _asked_of_opal(state, key)
    attempt = ledger.reserve(request).attempt_id
    ledger.begin_draw(attempt, request.bindings)
    ledger.seal(attempt, "bytes")
    ledger.publish(key, "manifest")
    word = RevisionDecision(
        ReleaseKey("opal", key.period, 1), is_allowed, "ada", opal.approval.role, "late", "files"
    )
    ledger.decide_on_revision(word)
    _tell(state, Happening.BEGUN, key.period, revision=int(is_allowed))
    preview = state.weeks_previewed("opal", {"first": "2016-W31"}, _running(key.period))
    assert preview.before == (("opal 2016-W30",) if is_allowed else ())
    assert preview.weeks[0].is_refused == is_allowed


@pytest.mark.parametrize("is_charged", [True, False])
def test_a_programme_whose_file_was_renamed_is_said_to_be_broken_once_it_charged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_charged: bool
) -> None:
    state = _deployment(tmp_path, monkeypatch, {})
    place = Place(open_ledger(state.settings), Journal.of(state.settings), Clock())
    attempt = place.reserve("2016-W30")
    if is_charged:
        place.ledger.begin_draw(attempt, Bindings("p", "d", "s"))
        place.ledger.seal(attempt, "bytes")  # people are asked; nothing is public yet
    else:
        place.ledger.void(attempt, "inputs changed")
    assert state.broken(frozenset({"opal"})) == ()
    programmes = state.settings.include / "programmes"
    (programmes / "opal.yaml").rename(programmes / "cards.yaml")
    problems = {programme.name: programme.problem for programme in state.broken(state.ever_known())}
    assert "cards" in problems  # it says another name than its file
    assert ("opal" in problems) == is_charged
    assert "put it back under this name" in problems.get("opal", "put it back under this name")
