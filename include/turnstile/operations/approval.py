"""Approval as people give it: what they are shown, and how their answer gets into the ledger.

An orchestrator's own gate is no lock: its operators may mark it, skip it or clear it. So the answer
counts only as an entry of the ledger, written here after the person's role was checked, and
publishing reads it there again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from turnstile.errors import NotApproved
from turnstile.operations.journal import Happening, Line
from turnstile.operations.plan_view import plan_view
from turnstile.pipeline.context import Release
from turnstile.programme.people import holders

NOBODY = "nobody"
TIMED_OUT = "timed_out"
PERSONS_OF_TWO_PERSON_RULE = 2


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back.

    Args:
        is_approval: whether it says yes.
        person: who said so; None where the time ran out.
        reason: why, in the person's words.
    """

    is_approval: bool
    person: str | None
    reason: str


def record_answer(release: Release, answer: Answer, triggered_by: frozenset[str]) -> str:
    """Write an answer into the ledger and return what it means.

    A time-out is written as a refusal by nobody: it approves nothing and vetoes nothing.

    Args:
        release: sealed, waiting for people.
        answer: what came back.
        triggered_by: everybody known to have started a run of this week; under the two-person rule
            (`approval.persons` of two or more) none of them may approve it.

    Raises:
        NotApproved: the answer approves nothing; the sentence says why.
    """
    asked = release.programme.approval
    if answer.person is None:
        release.ledger.refuse(release.key, NOBODY, TIMED_OUT, "nobody answered in time")
        raise NotApproved(f"{release.key}: nobody answered in time; clear this task to ask again")
    if answer.person not in holders(asked.role, release.settings.include):
        raise NotApproved(
            f"{release.key}: {answer.person} is no {asked.role} (include/people.yaml), so the "
            "answer counts for nothing; clear this task to ask again"
        )
    reason = answer.reason or "no reason given"
    if not answer.is_approval:
        release.ledger.refuse(release.key, answer.person, asked.role, reason)
        raise NotApproved(f"{release.key} was rejected; it stays embargoed and charged")
    if asked.persons >= PERSONS_OF_TWO_PERSON_RULE and answer.person in triggered_by:
        raise NotApproved(
            f"{release.key}: {answer.person} started this week's run and may not approve it (two "
            "persons); clear this task to ask another one"
        )
    release.ledger.approve(release.key, answer.person, asked.role, reason)
    return f"approved by {answer.person}"


def is_answered(release: Release) -> bool:
    """Tell whether nobody has to be asked any more: enough people said yes about these bytes."""
    asked, attempt = release.programme.approval, release.sealed
    if attempt is None:
        return False
    trusted = holders(asked.role, release.settings.include)
    yes = {
        one.person
        for one in release.ledger.approvals(release.key)
        if one.artefact_digest == attempt.artefact_digest
        and one.is_approval
        and one.role == asked.role
        and one.person in trusted
    }
    return len(yes) >= asked.persons


def starters(lines: Sequence[Line]) -> frozenset[str]:
    """Return everybody who is on record as having started a run of a week."""
    return frozenset(
        str(line.told["triggered_by"])
        for line in lines
        if line.happening is Happening.BEGUN and line.told.get("triggered_by")
    )


def question(release: Release) -> str:
    """Return what is shown to those who are asked, in Markdown; public figures only."""
    planned = release.plan
    view = plan_view(planned, release.ledger.balance(planned.family))
    lines = [
        f"Publish **{release.key}** ({release.programme.title})?",
        "",
        "Its noise is drawn and charged; a rejection refunds nothing and keeps it under embargo.",
        "",
        "| unit | epsilon | epsilon at delta 1e-6 | epsilon, replace | rho |",
        "|---|---|---|---|---|",
    ]
    names = ("epsilon", "epsilon_at_delta_1e-6", "epsilon_replace", "rho")
    for unit, figures in view["loss"].items():
        lines.append(f"| {unit} | " + " | ".join(figures[n] or "infinite" for n in names) + " |")
    lines += ["", "| draw | noise | scale | 95 % within |", "|---|---|---|---|"]
    for draw in view["draws"]:
        told = (draw["draw"], draw["noise"], draw["scale"], str(draw["half_width_95"]))
        lines.append("| " + " | ".join(told) + " |")
    report = json.loads((release.folders.embargoed / "assessment.json").read_bytes())
    lines += ["", "| gate | passed | finding |", "|---|---|---|"]
    lines += [
        f"| {gate['gate']} | {'yes' if gate['passed'] else 'NO'} | {gate['statement']} |"
        for gate in report["gates"]
    ]
    way = f"/privacy-budget/embargoed/{release.programme.name}/{release.week}"
    lines += ["", f"Pictures, for those who may edit the DAG's runs: `{way}`"]
    return "\n".join(lines)
