"""When people have approved: the one rule, for the question, the page and the steps. Pure.

Of each person who holds the role today, the last decision counts. A rejection stands until the same
person approves, or no longer holds the role: another's approval does not outvote it. Where the
programme says `not_the_starter`, an approval of somebody who set the release going counts for
nothing; a rejection of theirs counts like any other, until they take it back (`WITHDRAWAL`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from turnstile.programme.spec import ApprovalSpec

WITHDRAWAL = "withdrawal"
"""Role of an approval that takes the person's own rejection back and approves nothing."""


class PersonsDecision(Protocol):
    """What somebody decided, whatever about."""

    @property
    def person(self) -> str:
        """User name."""

    @property
    def role(self) -> str:
        """Role in which the person decided."""

    @property
    def is_approval(self) -> bool:
        """Whether it says yes."""


@dataclass(frozen=True, slots=True)
class ApprovalStanding:
    """Where an approval stands.

    Args:
        needed: persons who must say yes.
        approved_by: whose yes counts now.
        rejected_by: whose no stands; one is enough to stop.
        may_answer: holders of the role whose answer can still change something.
    """

    needed: int
    approved_by: tuple[str, ...]
    rejected_by: tuple[str, ...]
    may_answer: tuple[str, ...]

    @property
    def is_approved(self) -> bool:
        """Whether enough people said yes and nobody's no stands."""
        return not self.rejected_by and len(self.approved_by) >= self.needed

    def __str__(self) -> str:
        """Say what is there, what is missing and who may give it."""
        if self.rejected_by:
            names = " and ".join(self.rejected_by)
            return f"rejected by {names}; it stands until {names} approves"
        missing = self.needed - len(self.approved_by)
        has = f" by {' and '.join(self.approved_by)}" if self.approved_by else ""
        if missing <= 0:
            return f"approved{has}"
        asked = ", ".join(self.may_answer) or "nobody: name people in include/people.yaml"
        return f"{len(self.approved_by)} of {self.needed} approvals{has}; may still answer: {asked}"


def approval_standing(
    decisions: Iterable[PersonsDecision],
    asked: ApprovalSpec,
    holders: frozenset[str],
    excluded: frozenset[str] = frozenset(),
) -> ApprovalStanding:
    """Judge decisions about the same bytes, or about the same files.

    Args:
        decisions: oldest first; those in other roles than the asked one count for nothing.
        asked: how many people, in which role, and whether the starter counts.
        holders: who holds the role today.
        excluded: who set the release going.

    Examples:
        >>> asked = ApprovalSpec(required=True, persons=2, not_the_starter=True)
        >>> str(approval_standing((), asked, frozenset({"ada", "olga"}), frozenset({"ada"})))
        '0 of 2 approvals; may still answer: olga'
    """
    latest = {
        decision.person: decision
        for decision in decisions
        if decision.role in {asked.role, WITHDRAWAL}
    }
    counted = {name: decision for name, decision in latest.items() if name in holders}
    barred = excluded if asked.not_the_starter else frozenset()
    approved = {
        n for n, decision in counted.items() if decision.is_approval and decision.role == asked.role
    }
    approved -= barred
    rejected = {name for name, decision in counted.items() if not decision.is_approval}
    open_to = rejected or holders - barred - approved
    names = (tuple(sorted(people)) for people in (approved, rejected, open_to))
    return ApprovalStanding(asked.persons, *names)
