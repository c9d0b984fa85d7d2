"""The rule of approvals, by the table that the question, the page and the step are put through."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from approval_cases import CASES, OFFICERS, ROLE, ApprovalCase

from turnstile.programme.approval_rule import WITHDRAWAL, approval_standing
from turnstile.programme.spec import ApprovalSpec


@dataclass(frozen=True)
class Said:
    person: str
    role: str
    is_approval: bool


def _asked(case: ApprovalCase) -> ApprovalSpec:
    return ApprovalSpec(required=True, persons=case.persons, not_the_starter=case.bars_the_starter)


def _said(case: ApprovalCase) -> list[Said]:
    """What the question writes: a withdrawal where a starter who may not approve says yes."""
    barred = case.starter if case.bars_the_starter else ""
    return [
        Said(person, WITHDRAWAL if is_yes and person == barred else ROLE, is_yes)
        for person, is_yes in case.said
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_table_of_approvals(case: ApprovalCase) -> None:
    excluded = frozenset({case.starter}) - {""}
    now = approval_standing(_said(case), _asked(case), frozenset(OFFICERS), excluded)
    assert now.is_approved == case.is_approved
    assert " ".join(now.approved_by) == case.approved_by
    assert " ".join(now.rejected_by) == case.rejected_by
    assert " ".join(now.may_answer) == case.may_answer


def _any_yes(said: list[Said], asked: ApprovalSpec, _: frozenset[str]) -> bool:
    return len({answer.person for answer in said if answer.is_approval}) >= asked.persons


def _latest_wins(said: list[Said], asked: ApprovalSpec, _: frozenset[str]) -> bool:
    return bool(said) and said[-1].is_approval and _any_yes(said, asked, _)


def _starter_counts(said: list[Said], asked: ApprovalSpec, _: frozenset[str]) -> bool:
    in_role = [replace(answer, role=ROLE) for answer in said]
    return approval_standing(in_role, asked, frozenset(OFFICERS)).is_approved


def _one_is_enough(said: list[Said], asked: ApprovalSpec, excluded: frozenset[str]) -> bool:
    spec = replace(asked, persons=1)
    return approval_standing(said, spec, frozenset(OFFICERS), excluded).is_approved


@pytest.mark.parametrize("rule", [_any_yes, _latest_wins, _starter_counts, _one_is_enough])
def test_a_wrong_rule_does_not_pass_the_table(
    rule: Callable[[list[Said], ApprovalSpec, frozenset[str]], bool],
) -> None:
    assert any(
        rule(_said(case), _asked(case), frozenset({case.starter}) - {""}) != case.is_approved
        for case in CASES
    )


def test_a_yes_of_a_barred_starter_in_the_role_itself_counts_for_nothing() -> None:
    asked = ApprovalSpec(required=True, not_the_starter=True)
    said, officers = [Said("ada", ROLE, is_approval=True)], frozenset(OFFICERS)
    assert approval_standing(said, asked, officers).is_approved
    assert not approval_standing(said, asked, officers, frozenset({"ada"})).is_approved


def test_who_no_longer_holds_the_role_neither_approves_nor_stands_in_the_way() -> None:
    asked, today = ApprovalSpec(required=True), frozenset({"grace"})
    no, yes = Said("ada", ROLE, is_approval=False), Said("grace", ROLE, is_approval=True)
    assert approval_standing([no, yes], asked, today).is_approved
    assert not approval_standing([Said("ada", ROLE, is_approval=True)], asked, today).is_approved


def test_where_nobody_is_left_to_answer_the_sentence_says_so() -> None:
    now = approval_standing([], ApprovalSpec(required=True), frozenset())
    assert "nobody: name people in include/people.yaml" in str(now)
