"""The task that asks people before a release is published, where the programme asks for people.

The answer is written into the ledger by the same task that receives it, so that there is no moment
in which only Airflow knows it. Marking this task, skipping it or clearing it writes nothing there;
publishing reads the ledger and therefore refuses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from people_task import (
    answer_in,
    asking,
    assigned,
    excluded_from,
    known_starters,
    numbered,
    remembering,
)
from period_of_run import release_of_run
from run_reports import report_question
from step_task import of_run

from turnstile.errors import NotApproved

if TYPE_CHECKING:
    from airflow.sdk import Context
    from run_reports import RunOfWeek

    from turnstile.operations.approval import Answer
    from turnstile.programme.spec import Programme


class AskApproval(ApprovalOperator):
    """Ask those who hold the programme's role to approve or reject; no answer in time rejects."""

    def __init__(self, *, programme: Programme, number: int, **operator: Any) -> None:  # noqa: ANN401 - Airflow's own
        super().__init__(
            subject=f"Publish {programme.title}?",
            body="",
            defaults=self.REJECT,
            retries=0,
            **operator,
        )
        self.programme = programme.name
        self.number = number

    def execute(self, context: Context) -> Any:  # noqa: ANN401 - Airflow's own
        """Ask, unless enough people have said yes about these very bytes."""
        asked = of_run(
            self.programme, self.task_id, context, lambda run: self._open_question(context, run)
        )
        if not asked:
            return "answered before"
        with remembering({"asked": asked}):
            return super().execute(context)

    def execute_complete(self, context: Context, event: dict[str, Any], asked: str = "") -> str:
        """Write the answer into the ledger, if the person may give it.

        Args:
            context: of the task.
            event: the answer.
            asked: key that the question was about.

        Raises:
            AirflowFailException: the answer approves nothing.
        """
        if "error" in event:
            self.process_trigger_event_error(event)
        answer = answer_in(event, self.APPROVE)

        def record(run: RunOfWeek) -> str:
            run.goes_on(self.task_id)
            return self._record(context, answer, asked)

        return of_run(self.programme, self.task_id, context, record)

    def _open_question(self, context: Context, run: RunOfWeek) -> str:
        """Prepare the question and return the key that it is about; empty if nothing is open."""
        from turnstile.operations.approval import is_to_be_asked, question, question_in_short

        release = release_of_run(self.programme, context)
        started = known_starters(release, context["dag_run"])
        if not is_to_be_asked(release, self.number, started):
            return ""
        self.assigned_users = assigned(release.programme)
        self.subject = f"Publish {release.key}?"
        self.body = question(release, started)
        report_question(run, self.task_id, question_in_short(release, started))
        return str(release.key)

    def _record(self, context: Context, answer: Answer, asked: str) -> str:
        """Write an answer down, unless another revision is up by now: nobody saw its bytes."""
        from turnstile.operations.approval import record_answer

        release = release_of_run(self.programme, context)
        if str(release.key) != asked:
            raise NotApproved(f"{asked} was asked about, {release.key} is up now; ask again")
        return record_answer(release, answer, excluded_from(answer, release, context["dag_run"]))


def questions(programme: Programme) -> tuple[AskApproval, ...]:
    """Return one task for each person whose yes is needed; none where none is."""
    if not programme.approval.required:
        return ()
    doc = (AskApproval.__doc__ or "").strip()
    names = numbered("ask", programme.approval.persons)
    return tuple(
        AskApproval(programme=programme, number=number, task_id=name, doc_md=doc, **asking())
        for number, name in enumerate(names, 1)
    )
