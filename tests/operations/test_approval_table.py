"""The table of approvals through the question that writes the ledger, the page and the step."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest
from approval_cases import CASES, OFFICERS, ApprovalCase
from small_deployment import WEEK, Deployment

from turnstile.errors import NotApproved
from turnstile.ledger.entries import instant
from turnstile.ledger.records import ReleaseKey
from turnstile.ledger.revisions import next_after
from turnstile.operations import deployment_state
from turnstile.operations.airflow_now import AirflowNow, RunNow, TaskNow
from turnstile.operations.budget_page.page import BudgetPage
from turnstile.operations.journal import Happening, Journal, Line
from turnstile.operations.people.approval import (
    Answer,
    is_to_be_asked,
    question,
    question_in_short,
    record_answer,
    standing,
)
from turnstile.operations.people.correction_question import (
    is_to_be_asked as is_correction_to_be_asked,
)
from turnstile.operations.people.correction_question import record_revision_answer
from turnstile.pipeline import steps
from turnstile.pipeline.context import Release, open_release, state_revision
from turnstile.privacy.accounts import NANO, Posting
from turnstile.privacy.units import ProtectionUnit
from turnstile.programme.approval_rule import ApprovalStanding
from turnstile.settings import system_clock


@pytest.fixture
def sealed(deployment: Deployment) -> Callable[..., Release]:
    """Seal made-up bytes under a case's programme: nobody looks at them before people have."""

    def seal(case: ApprovalCase, revision: int = 0) -> Release:
        if not revision:
            deployment.edit("opal", "approval: {required: false}", case.yaml)
            people = f"release_officer: [{', '.join(OFFICERS)}]\n"
            (deployment.include / "people.yaml").write_text(people, encoding="utf-8")
            deployment.make_up_snapshot("opal")
        release = open_release("opal", WEEK, revision)
        if revision:
            words = {"reason": "late rows", "approver": "ada"}
            state_revision(release, words, although_nothing_changed=False)
        attempt = release.ledger.reserve(release.request(release.statement))
        release.ledger.begin_draw(attempt.attempt_id, attempt.bindings)
        release.ledger.seal(attempt.attempt_id, f"{revision}" * 64)
        return release

    return seal


def _answer_all(case: ApprovalCase, release: Release) -> frozenset[str]:
    """Put a case's answers to the question; return who started the run, as the journal has it."""
    begun = {"triggered_by": case.starter}
    at = instant(system_clock())
    Journal.of(release.settings).write(Line(at, Happening.BEGUN, "opal", WEEK, "run", begun))
    started = frozenset({case.starter}) - {""}
    for person, is_yes in case.said:
        with suppress(NotApproved):
            record_answer(release, Answer(is_yes, person, "seen"), started)
    return started


def _on_the_page(release: Release, *, asks: bool) -> tuple[str, str]:
    """Return the state of the week and the reason beside it, from the page's HTML."""
    tasks = {"ask": TaskNow("awaiting_input")} if asks else {"publish": TaskNow("scheduled")}
    airflow = AirflowNow(runs={"opal": (RunNow("run", WEEK, "running", tasks),)})
    page = BudgetPage(release.settings, system_clock).calendar(frozenset({"opal"}), airflow)
    state = re.search(rf'aria-label="{WEEK} ([a-z ]+)"', page)
    assert state is not None
    rows = [row for row in page.split("<tr>") if f">{WEEK}<" in row and 'data-label="why"' in row]
    whys = [row.partition('data-label="why">')[2].partition("</td>")[0] for row in rows]
    return state[1], html.unescape(" ".join(whys))


def _is_as_in(case: ApprovalCase, state: str, why: str) -> bool:
    """Whether the page says what the table says."""
    if case.is_approved:
        return (state, why) == ("under way", "")  # its run is open, and goes on to publish
    if case.rejected_by:
        names = " and ".join(case.rejected_by.split())
        return (state, why) == ("asked", f"rejected by {names}; it stands until {names} approves")
    by = f" by {' and '.join(case.approved_by.split())}" if case.approved_by else ""
    has = f"{len(case.approved_by.split())} of {case.persons} approvals{by}"
    asked = ", ".join(case.may_answer.split())
    return (state, why) == ("asked", f"{has}; may still answer: {asked}")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_question_the_page_and_the_step_judge_by_the_table(
    case: ApprovalCase, sealed: Callable[..., Release], deployment: Deployment
) -> None:
    release = sealed(case)
    started = _answer_all(case, release)
    now = standing(release, started)
    assert " ".join(now.approved_by) == case.approved_by
    assert " ".join(now.rejected_by) == case.rejected_by
    assert " ".join(now.may_answer) == case.may_answer
    state, why = _on_the_page(release, asks=not case.is_approved)
    assert _is_as_in(case, state, why), (state, why)
    is_open = any(is_to_be_asked(release, n + 1, started) for n in range(case.persons))
    assert is_open != case.is_approved  # never a week that is neither approved nor asked about
    if case.is_approved:
        assert steps.approve("opal", WEEK) == "approved"
        return
    for step in (steps.approve, steps.publish):
        with pytest.raises(NotApproved, match="stays embargoed and charged"):
            step("opal", WEEK)
    assert not list(deployment.public.glob("opal/*/r*"))


@pytest.mark.parametrize(
    "name",
    [
        "rejection, then approval by another",
        "a veto after two yeses",
        "the starter's own yes is not enough",
    ],
)
def test_a_page_that_counts_every_yes_does_not_pass_the_table(
    name: str, sealed: Callable[..., Release], monkeypatch: pytest.MonkeyPatch
) -> None:
    def any_yes(*_: object) -> ApprovalStanding:
        return ApprovalStanding(case.persons, tuple(p for p, yes in case.said if yes), (), ())

    case = next(candidate for candidate in CASES if candidate.name == name)
    release = sealed(case)
    _answer_all(case, release)
    assert _is_as_in(case, *_on_the_page(release, asks=not case.is_approved))
    monkeypatch.setattr(deployment_state, "standing_of", any_yes)
    assert not _is_as_in(case, *_on_the_page(release, asks=not case.is_approved))


@pytest.mark.parametrize("said_before", [None, False, True])
def test_who_made_a_correction_by_hand_may_not_approve_it_where_the_starter_may_not(
    sealed: Callable[..., Release], *, said_before: bool | None
) -> None:
    """Nor after another one's no, or a yes that was taken back."""
    case = next(candidate for candidate in CASES if candidate.not_the_starter)
    first = sealed(case)
    if said_before is not None:
        record_revision_answer(first, Answer(said_before, "grace", "seen"), "files", frozenset())
        first.ledger.declare_no_release(next_after(first.key), "olga", "not worth it")
    release = sealed(case, 1)
    assert standing(release).may_answer == ("grace", "olga")
    with pytest.raises(NotApproved, match="ada set this week going"):
        record_answer(release, Answer(is_approval=True, person="ada", reason=""), frozenset())
    with pytest.raises(NotApproved):
        steps.approve("opal", WEEK, 1)
    record_answer(release, Answer(is_approval=True, person="grace", reason=""), frozenset())
    assert steps.approve("opal", WEEK, 1) == "approved"


@pytest.mark.parametrize("is_yes", [True, False])
def test_nobody_is_asked_about_files_again_whose_correction_was_stated_to_have_no_release(
    sealed: Callable[..., Release], *, is_yes: bool
) -> None:
    release = sealed(next(case for case in CASES if case.persons == 1))
    assert is_correction_to_be_asked(release, "files", 1)
    record_revision_answer(release, Answer(is_yes, "ada", "seen"), "files", frozenset())
    release.ledger.declare_no_release(next_after(release.key), "grace", "not worth it")
    assert not is_correction_to_be_asked(release, "files", 1)
    assert is_correction_to_be_asked(release, "files that came later", 1)


def test_a_no_to_what_another_run_made_public_counts_for_nothing(
    sealed: Callable[..., Release],
) -> None:
    """It stood in the ledger: every later run of the public week asked, and held up all others."""
    release = sealed(next(case for case in CASES if case.persons == 1))
    record_answer(release, Answer(True, "ada", "seen"), frozenset())
    assert "rejected" in str(_said(release, Answer(False, "grace", "no")))  # negative control
    assert is_to_be_asked(release, 1, frozenset())
    record_answer(release, Answer(True, "grace", "seen"), frozenset())
    release.ledger.publish(release.key, "manifest")
    before = release.ledger.approvals(release.key)
    for person in ("grace", None):
        said = record_answer(release, Answer(False, person, "late"), frozenset())
        assert said == f"{release.key} is public already; this answer changes nothing"
    assert release.ledger.approvals(release.key) == before
    assert not is_to_be_asked(release, 1, frozenset())


def _said(release: Release, answer: Answer) -> NotApproved:
    """Return what an answer is refused with."""
    with pytest.raises(NotApproved) as refused:
        record_answer(release, answer, frozenset())
    return refused.value


def test_the_question_names_charge_caps_pictures_and_gates_that_did_not_apply(
    sealed: Callable[..., Release],
) -> None:
    release = sealed(CASES[0])
    gates = [
        {"gate": name, "statement": "s", "outcome": name} for name in ("passed", "not applicable")
    ]
    release.folders.embargoed.mkdir(parents=True, exist_ok=True)
    report = release.folders.embargoed / "assessment.json"
    old = {"gate": "old", "statement": "s", "passed": False}
    report.write_text(json.dumps({"gates": [*gates, old]}), encoding="utf-8")
    shown = question(release, frozenset({"eve"}), "http://airflow/privacy-budget/x")
    assert "(http://airflow/privacy-budget/x)" in shown
    assert (
        "| passed | passed | s |\n| not applicable | not applicable | s |\n| old | FAILED | s |"
        in shown
    )
    assert "It is drawn and charged: epsilon " in shown
    assert "card over 52 weeks has " in shown
    assert "A rejection refunds nothing" in shown
    assert "may still answer" in shown


@pytest.mark.parametrize("shares_window", [False, True])
def test_the_question_says_what_is_left_in_a_window_of_its_week(
    sealed: Callable[..., Release], *, shares_window: bool
) -> None:
    """It named the fullest window of all history, be it years ago."""
    release = sealed(CASES[0])
    before = question_in_short(release, frozenset())
    week = "2016-W10" if shares_window else "2012-W10"
    postings = (Posting(ProtectionUnit.CARD, "ever", None, 40 * NANO, 0),)
    postings += (Posting(ProtectionUnit.CARD_DAY, "2012-03-05", None, 1, 0),)
    other = replace(
        release.request(release.statement),
        key=ReleaseKey("opal", week),
        week=week,
        first_week=None,
        postings=postings,
    )
    release.ledger.reserve(other)
    after = question_in_short(release, frozenset())
    assert "card over 52 weeks has rho 4" in before
    assert (after == before) is not shares_window
