"""The task that asks people before a release is published, where the programme asks for people.

Marking, skipping or clearing it approves nothing: publishing reads the ledger, and refuses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow_interfaces import address_of_ui
from people_task import AskPeople, assigned, excluded_from, known_starters, numbered
from period_of_run import release_of_run
from run_reports import report_question

from turnstile.errors import NotApproved

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.sdk import Context
    from run_reports import RunOfWeek

    from turnstile.operations.people.approval import Answer
    from turnstile.programme.spec import Programme


class AskApproval(AskPeople, ApprovalOperator):
    """Ask those who hold the programme's role to approve or reject; no answer in time rejects."""

    YES = ApprovalOperator.APPROVE
    NOTHING_TO_ASK = "answered before"

    def __init__(self, *, programme: Programme, **operator: Any) -> None:  # noqa: ANN401 - Airflow's own
        super().__init__(
            programme=programme,
            subject=f"Publish {programme.title}?",
            defaults=self.REJECT,
            retries=0,
            **operator,
        )

    def open_question(self, context: Context, run: RunOfWeek) -> dict[str, str]:
        """Prepare the question, unless enough people have said yes about these very bytes."""
        from turnstile.operations.people.approval import is_to_be_asked, question, question_in_short

        release = release_of_run(self.programme, context)
        started = known_starters(release, context["dag_run"])
        if not is_to_be_asked(release, self.number, started):
            return {}
        self.assigned_users = assigned(release.programme)
        self.subject = f"Publish {release.key}?"
        week = f"{quote(self.programme)}/{quote(str(release.week))}"
        self.body = question(release, started, f"{address_of_ui()}/privacy-budget/embargoed/{week}")
        report_question(run, self.task_id, question_in_short(release, started))
        return {"asked": str(release.key)}

    def record(self, context: Context, answer: Answer, about: Mapping[str, str]) -> str:
        """Write an answer down, unless another revision is up by now: nobody saw its bytes."""
        from turnstile.operations.people.approval import record_answer

        release = release_of_run(self.programme, context)
        if str(release.key) != about["asked"]:
            raise NotApproved(
                f"{about['asked']} was asked about, {release.key} is up now; ask again"
            )
        return record_answer(release, answer, excluded_from(answer, release, context["dag_run"]))


def questions(programme: Programme) -> tuple[AskApproval, ...]:
    """Return one task for each person whose yes is needed; none where none is."""
    if not programme.approval.required:
        return ()
    names = numbered("ask", programme.approval.persons)
    return tuple(
        AskApproval(programme=programme, number=number, task_id=name)
        for number, name in enumerate(names, 1)
    )
