"""Approval as people give it: what they are shown, and how their answer gets into the ledger.

An orchestrator's own gate is no lock: its operators may mark it, skip it or clear it. So the answer
counts only as an entry of the ledger, written here after the person's role was checked, and
publishing reads it there again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from turnstile.errors import NotApproved, ProgrammeError
from turnstile.ledger.presentation import left_text, most_spent
from turnstile.ledger.weeks import Standing
from turnstile.operations.budget_page.plan_view import cost_in_words, plan_view
from turnstile.pipeline.approvals import maker_of_correction, standing_of
from turnstile.pipeline.context import Release
from turnstile.programme.approval_rule import WITHDRAWAL, ApprovalStanding, approval_standing
from turnstile.programme.people import PEOPLE_FILE, holders

NOBODY = "nobody"
TIMED_OUT = "timed_out"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back.

    Args:
        is_approval: whether it says yes.
        person: who said so; None where the time ran out.
        reason: why, in the person's words; it stays internal.
        public_note: what the public is to be told.
    """

    is_approval: bool
    person: str | None
    reason: str
    public_note: str = ""


def record_answer(release: Release, answer: Answer, started_by: frozenset[str]) -> str:
    """Write an answer into the ledger and return what it means.

    A time-out is written as a refusal by nobody: it approves nothing and vetoes nothing. A yes that
    is not enough, because another's no stands or it was said before, leaves the question open. Of
    a release that another run has made public meanwhile nothing is decided any more.

    Args:
        release: sealed, waiting for people.
        answer: what came back.
        started_by: everybody known to have started a run of this week.

    Raises:
        NotApproved: the answer does not bring the release on; the sentence says why.
    """
    asked, key, person = release.programme.approval, release.key, answer.person
    if _is_public(release):
        return f"{key} is public already; this answer changes nothing"
    if person is None:
        release.ledger.refuse(key, NOBODY, TIMED_OUT, "nobody answered in time")
        raise NotApproved(f"{key}: nobody answered in time; clear this task to ask again")
    if person not in holders(asked.role, release.settings.include):
        raise NotApproved(
            f"{key}: {person} is no {asked.role} (include/people.yaml), so the answer counts for "
            "nothing; clear this task to ask again"
        )
    reason = answer.reason or "no reason given"
    if not answer.is_approval:
        release.ledger.refuse(key, person, asked.role, reason)
        raise NotApproved(
            f"{key}, embargoed and charged: {standing(release, started_by)}; {person} wrote: "
            f"{reason}"
        )
    before = standing(release, started_by)
    if asked.not_the_starter and person in started_by | maker_of_correction(release.ledger, key):
        taken_back = ""
        if person in before.rejected_by:
            release.ledger.approve(key, person, WITHDRAWAL, reason)
            taken_back = "; the rejection is taken back"
        raise NotApproved(
            f"{key}: {person} set this week going and may not approve it{taken_back}; "
            f"{standing(release, started_by)}; clear this task to ask another one"
        )
    release.ledger.approve(key, person, asked.role, reason, public_note=answer.public_note)
    now = standing(release, started_by)
    if now.rejected_by or person in before.approved_by:
        return f"{key}: the yes of {person} is in the ledger and is not enough: {now}"
    return str(now)


def standing(release: Release, started_by: frozenset[str] = frozenset()) -> ApprovalStanding:
    """Judge the decisions about a release by the one rule."""
    return standing_of(release.ledger, release.key, release.programme, release.settings, started_by)


def nobody_to_ask(
    release: Release, started_by: frozenset[str], set_again: Callable[[], frozenset[str]]
) -> ProgrammeError | None:
    """Return why nobody could approve what is not charged yet, or None where it could be approved.

    Args:
        release: about to be read.
        started_by: everybody known to have started a run of this week.
        set_again: says who set it going again; asked where they may not approve.

    Raises:
        NotApproved: who did cannot be known, so that no answer would count.
    """
    asked = release.programme.approval
    if release.sealed or not asked.required:
        return None
    able = holders(asked.role, release.settings.include)
    barred = started_by | maker_of_correction(release.ledger, release.key)
    if asked.not_the_starter:
        barred |= set_again()
    now = approval_standing((), asked, able, barred)
    if len(now.may_answer) >= now.needed:
        return None
    rule = (
        f"{release.key} has {now}, because who set this week going may not approve it "
        f"({', '.join(sorted(barred))}); name more people for the role, then clear this task; "
        "nothing is read or charged yet"
    )
    return ProgrammeError(where=f"include/{PEOPLE_FILE}", field=asked.role, rule=rule)


def is_to_be_asked(release: Release, number: int, started_by: frozenset[str]) -> bool:
    """Return whether the question of the first, second, ... person is open.

    Args:
        release: sealed, waiting for people.
        number: 1 for the first person who is asked, 2 for the next.
        started_by: everybody known to have started a run of this week.
    """
    now = standing(release, started_by)
    is_open = bool(now.rejected_by) or len(now.approved_by) < number
    return is_open and not _is_public(release)


def _is_public(release: Release) -> bool:
    """Return whether the ledger says that the release is public."""
    return release.ledger.revision(release.key).standing is Standing.PUBLIC


def question_in_short(release: Release, started_by: frozenset[str]) -> str:
    """Return the question in a sentence: what is charged, what is left, and who may answer."""
    parts = [
        f"May {release.key} be published? It is drawn and charged: {cost_in_words(release.plan)}",
        *_left(release),
        f"{standing(release, started_by)}",
    ]
    return ". ".join(parts) + ". A rejection refunds nothing."


def question(release: Release, started_by: frozenset[str], pictures: str) -> str:
    """Return what is shown to those who are asked, in Markdown; public figures only.

    Args:
        release: sealed, waiting for people.
        started_by: everybody known to have started a run of this week.
        pictures: address of the page's view of the week, for those who may edit the DAG's runs.
    """
    view = plan_view(release.plan, ())
    report = json.loads((release.folders.embargoed / "assessment.json").read_bytes())
    look = f"[Look at the map and the assessment]({pictures})"
    lines = [
        f"Publish **{release.key}** ({release.programme.title})? {look}",
        "",
        f"- It is drawn and charged: {cost_in_words(release.plan)}",
        *(f"- {sentence}" for sentence in _left(release)),
        "- A rejection refunds nothing and keeps it under embargo",
        f"- {standing(release, started_by)}",
        "",
        "| gate | outcome | finding |",
        "|---|---|---|",
        *(f"| {g['gate']} | {_outcome(g)} | {g['statement']} |" for g in report["gates"]),
        "",
        "| draw | noise | 95 % within |",
        "|---|---|---|",
        *(f"| {d['draw']} | {d['noise']} | {d['half_width_95']} |" for d in view["draws"]),
    ]
    return "\n".join(lines)


def _outcome(gate: Mapping[str, Any]) -> str:
    """Return `passed`, `FAILED` or `not applicable`; version 0.1.0 did not write the last."""
    return str(gate.get("outcome") or ("passed" if gate["passed"] else "FAILED"))


def _left(release: Release) -> list[str]:
    """Say what is left under each cap over weeks, in the fullest window that holds the week."""
    balances = release.ledger.balance(release.plan.family, release.plan.week)
    return [
        f"{balance.unit.value} over {balance.cap.window_weeks} weeks has {left_text(balance)} left"
        for balance in most_spent(balances)
        if balance.cap is not None and balance.cap.window_weeks
    ]
