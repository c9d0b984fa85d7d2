"""One table of answers and what becomes of them: for the rule, the question, the page and the step.

The officers are ada, grace and olga; eve holds no role. A yes is `+name`, a no is `-name`.
"""

from __future__ import annotations

from dataclasses import dataclass

OFFICERS = ("ada", "grace", "olga")
ROLE = "release_officer"


@dataclass(frozen=True)
class ApprovalCase:
    """Answers in their order, and what stands after them.

    Args:
        name: what is tried.
        answers: in their order.
        approved_by: whose yes counts at the end.
        rejected_by: whose no stands at the end.
        may_answer: whose answer can still change something.
        persons: how many the programme asks for.
        starter: who started the run, or made the correction.
        not_the_starter: what the programme says of them; None where it says nothing.
        is_approved: whether the release may be published.
    """

    name: str
    answers: str
    approved_by: str
    rejected_by: str
    may_answer: str
    is_approved: bool
    persons: int = 1
    starter: str = ""
    not_the_starter: bool | None = None

    @property
    def said(self) -> tuple[tuple[str, bool], ...]:
        """Person and whether it is a yes, in order."""
        return tuple((answer[1:], answer[0] == "+") for answer in self.answers.split())

    @property
    def bars_the_starter(self) -> bool:
        return self.persons > 1 if self.not_the_starter is None else self.not_the_starter

    @property
    def yaml(self) -> str:
        """The programme's words."""
        more = "" if self.not_the_starter is None else f", not_the_starter: {self.not_the_starter}"
        return f"approval: {{required: true, persons: {self.persons}{more.lower()}}}"


CASES = (
    ApprovalCase("nobody answered", "", "", "", "ada grace olga", is_approved=False),
    ApprovalCase("one yes of one", "+ada", "ada", "", "grace olga", is_approved=True),
    ApprovalCase("the yes of somebody without the role", "+eve", "", "", "ada grace olga",
                 is_approved=False),
    ApprovalCase("the no of somebody without the role", "-eve +ada", "ada", "", "grace olga",
                 is_approved=True),
    ApprovalCase("rejection, then approval by the same person", "-ada +ada", "ada", "",
                 "grace olga", is_approved=True),
    ApprovalCase("rejection, then approval by another", "-ada +grace", "grace", "ada", "ada",
                 is_approved=False),
    ApprovalCase("and then by the same person too", "-ada +grace +ada", "ada grace", "", "olga",
                 is_approved=True),
    ApprovalCase("approval, then rejection by the same person", "+ada -ada", "", "ada", "ada",
                 is_approved=False),
    ApprovalCase("the same person twice is one", "+ada +ada", "ada", "", "grace olga", persons=2,
                 is_approved=False),
    ApprovalCase("two persons", "+ada +grace", "ada grace", "", "olga", persons=2,
                 is_approved=True),
    ApprovalCase("two persons, the other order", "+grace +ada", "ada grace", "", "olga",
                 persons=2, is_approved=True),
    ApprovalCase("two persons, a rejection first", "-ada +grace +olga +ada", "ada grace olga", "",
                 "", persons=2, is_approved=True),
    ApprovalCase("a veto after two yeses", "+ada +grace -olga", "ada grace", "olga", "olga",
                 persons=2, is_approved=False),
    ApprovalCase("two persons, one of them the starter", "+ada +grace", "grace", "", "olga",
                 persons=2, starter="ada", is_approved=False),
    ApprovalCase("two persons, the starter counts as one", "+ada +grace", "ada grace", "", "olga",
                 persons=2, starter="ada", not_the_starter=False, is_approved=True),
    ApprovalCase("one person, the starter", "+ada", "ada", "", "grace olga", starter="ada",
                 is_approved=True),
    ApprovalCase("one person who is not the starter", "+ada +grace", "grace", "", "olga",
                 starter="ada", not_the_starter=True, is_approved=True),
    ApprovalCase("the starter's own yes is not enough", "+ada", "", "", "grace olga",
                 starter="ada", not_the_starter=True, is_approved=False),
    ApprovalCase("the starter's no stands like any other", "-ada +grace", "grace", "ada", "ada",
                 starter="ada", not_the_starter=True, is_approved=False),
    ApprovalCase("until the starter takes it back", "-ada +grace +ada", "grace", "", "olga",
                 starter="ada", not_the_starter=True, is_approved=True),
)  # fmt: skip
