"""The table of approvals through the question that writes the ledger, and through the step."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from approval_cases import CASES, OFFICERS, ApprovalCase
from small_deployment import WEEK, Deployment

from turnstile.errors import NotApproved
from turnstile.operations.approval import Answer, is_to_be_asked, record_answer, standing
from turnstile.pipeline import steps
from turnstile.pipeline.context import Release, open_release, state_revision
from turnstile.pipeline.drawing import _request


@pytest.fixture
def sealed(deployment: Deployment) -> Callable[..., Release]:
    """Seal made-up bytes under a case's programme: nobody looks at them before people have."""

    def seal(case: ApprovalCase, revision: int = 0) -> Release:
        if not revision:
            deployment.edit("opal", "approval: {required: false}", case.yaml)
            people = f"release_officer: [{', '.join(OFFICERS)}]\n"
            (deployment.include / "people.yaml").write_text(people, encoding="utf-8")
        release = open_release("opal", WEEK, revision)
        release.folders.private.mkdir(parents=True, exist_ok=True)
        (release.folders.private / "snapshot").write_text("made up")
        if revision:
            state_revision(release, reason="late rows", approver="ada")
        attempt = release.ledger.reserve(_request(release))
        release.ledger.begin_draw(attempt.attempt_id, attempt.bindings)
        release.ledger.seal(attempt.attempt_id, f"{revision}" * 64)
        return release

    return seal


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_question_and_the_step_judge_by_the_table(
    case: ApprovalCase, sealed: Callable[..., Release], deployment: Deployment
) -> None:
    release, started = sealed(case), frozenset({case.starter}) - {""}
    for person, is_yes in case.said:
        with suppress(NotApproved):
            record_answer(release, Answer(is_yes, person, "seen"), started)
    now = standing(release, started)
    assert " ".join(now.approved_by) == case.approved_by
    assert " ".join(now.rejected_by) == case.rejected_by
    assert " ".join(now.may_answer) == case.may_answer
    is_open = any(is_to_be_asked(release, n + 1, started) for n in range(case.persons))
    assert is_open != case.is_approved  # never a week that is neither approved nor asked about
    if case.is_approved:
        assert steps.approve("opal", WEEK) == "approved"
        return
    for step in (steps.approve, steps.publish):
        with pytest.raises(NotApproved, match="stays embargoed and charged"):
            step("opal", WEEK)
    assert not list(deployment.public.glob("opal/*/r*"))


def test_who_made_a_correction_by_hand_may_not_approve_it_where_the_starter_may_not(
    sealed: Callable[..., Release],
) -> None:
    case = next(one for one in CASES if one.not_the_starter)
    sealed(case)
    release = sealed(case, 1)
    assert standing(release).may_answer == ("grace", "olga")
    with pytest.raises(NotApproved, match="ada set this week going"):
        record_answer(release, Answer(is_approval=True, person="ada", reason=""), frozenset())
    with pytest.raises(NotApproved):
        steps.approve("opal", WEEK, 1)
    record_answer(release, Answer(is_approval=True, person="grace", reason=""), frozenset())
    assert steps.approve("opal", WEEK, 1) == "approved"
