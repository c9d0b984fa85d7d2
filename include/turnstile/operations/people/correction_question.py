"""The choice when files of a sealed week come again: what people are shown, and what they say.

The sealed bytes stand unless somebody in the programme's role asks for a correction; no answer in
time keeps them. What is shown is made from the plan and the ledger alone: that the files differ is
said, how they differ is not.
"""

from __future__ import annotations

from turnstile.errors import NotApproved
from turnstile.ledger.balances.amounts import amount_text
from turnstile.ledger.records import ReleaseKey
from turnstile.ledger.revisions import RevisionDecision, next_after
from turnstile.operations.budget_page.plan_view import cost_in_words, plan_view
from turnstile.operations.people.approval import NOBODY, TIMED_OUT, Answer
from turnstile.pipeline.context import Release, correction_of
from turnstile.pipeline.revision_in_force import correction_standing
from turnstile.programme.approval_rule import ApprovalStanding
from turnstile.programme.people import holders


def is_to_be_asked(release: Release, files_digest: str, number: int) -> bool:
    """Return whether the question of one person is open.

    Args:
        release: sealed, whose landing files changed.
        files_digest: commitment to the files that are there now.
        number: 1 for the first person who is asked, 2 for the second, who is asked after a yes.
    """
    now = _standing(release, files_digest, frozenset())
    return not now.rejected_by and len(now.approved_by) == number - 1


def record_revision_answer(
    release: Release, answer: Answer, files_digest: str, started: frozenset[str]
) -> bool:
    """Write an answer into the ledger; return whether the correction may be drawn now.

    Args:
        release: sealed, whose landing files changed.
        answer: what came back; no person where the time ran out.
        files_digest: commitment to the files that the question was about.
        started: everybody known to have started a run of this week; where the programme says
            `not_the_starter`, none of them may allow its correction.

    Raises:
        NotApproved: the answer counts for nothing; the sentence says why.
        RefusedError: the release was corrected meanwhile.
    """
    asked, correction = release.programme.approval, next_after(release.key)
    person = answer.person
    if person is None:
        nobody = Answer(is_approval=False, person=NOBODY, reason="nobody answered in time")
        _say(release, correction, nobody, TIMED_OUT, files_digest)
        return False
    if person not in holders(asked.role, release.settings.include):
        raise NotApproved(
            f"{correction}: {person} is no {asked.role} (include/people.yaml), so the answer "
            "counts for nothing; clear this task to ask again"
        )
    if answer.is_approval and asked.not_the_starter and person in started:
        raise NotApproved(
            f"{correction}: {person} started this week's run and may not allow its correction; "
            f"{_standing(release, files_digest, started)}; clear this task to ask another one"
        )
    _say(release, correction, answer, asked.role, files_digest)
    return _standing(release, files_digest, started).is_approved


def revision_cost(release: Release) -> str:
    """Return what a correction of a sealed release charges, in words."""
    return cost_in_words(correction_of(release).plan)


def revision_question(release: Release) -> str:
    """Return what is shown to those who are asked, in Markdown; from plan and ledger alone."""
    correction, planned = next_after(release.key), correction_of(release).plan
    changed = (
        f"The landing files of **{release.key}** are no longer those that it was made from. Its "
        "sealed bytes stand, and are re-issued at no cost."
    )
    choice = (
        f"A revision, **{correction}**, draws new noise over the new files, is published beside "
        f"the first, and charges once more: {cost_in_words(planned)}. Both together reveal more "
        "about each unit than either."
    )
    lines = [
        changed,
        "",
        choice,
        "",
        "| unit | of the cap | taken | the revision | left after |",
        "|---|---|---|---|---|",
    ]
    balances = release.ledger.balance(planned.family, planned.week)
    for line in plan_view(planned, balances)["left"]:
        name = line["coordinate"]
        figures = [amount_text(name, line[part]) for part in ("cap", "taken", "asked")]
        after = "nothing" if line["left_after"] is None else amount_text(name, line["left_after"])
        lines.append(f"| {line['unit']}, {name} | " + " | ".join([*figures, after]) + " |")
    return "\n".join(lines)


def _standing(release: Release, files_digest: str, started: frozenset[str]) -> ApprovalStanding:
    """Judge what was said about the next correction by the rule of approvals."""
    said = release.ledger.decisions_on_revision(next_after(release.key))
    return correction_standing(said, files_digest, release.programme, release.settings, started)


def _say(
    release: Release, correction: ReleaseKey, answer: Answer, role: str, files_digest: str
) -> None:
    """Write a word."""
    reason = answer.reason or "no reason given"
    release.ledger.decide_on_revision(
        RevisionDecision(
            correction,
            answer.is_approval,
            str(answer.person),
            role,
            reason,
            files_digest,
            answer.public_note,
        )
    )
