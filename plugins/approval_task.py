"""The task that asks people before a release is published, where the programme asks for people.

The answer is written into the ledger by the same task that receives it, so that there is no moment
in which only Airflow knows it. Marking this task, skipping it or clearing it writes nothing there;
publishing reads the ledger and therefore refuses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Param
from airflow.sdk.exceptions import AirflowFailException

from turnstile.errors import TurnstileError
from turnstile.programme.people import holders
from turnstile.release.interval import week_of_interval
from turnstile.settings import Settings, system_clock

if TYPE_CHECKING:
    from airflow.sdk import Context

    from turnstile.programme.spec import Programme
    from turnstile.release.context import Release

ANSWER_WITHIN = timedelta(days=3)


class AskApproval(ApprovalOperator):
    """Ask those who hold the programme's role to approve or reject; no answer in time rejects."""

    def __init__(self, *, programme: Programme, **operator: Any) -> None:  # noqa: ANN401 - Airflow's own
        people = sorted(holders(programme.approval.role, Settings.from_environment().include))
        super().__init__(
            subject=f"Publish {programme.title}?",
            body="",
            defaults=self.REJECT,
            response_timeout=ANSWER_WITHIN,
            params={"reason": Param("", type="string", title="Why", description="For the ledger")},
            assigned_users=[{"id": person, "name": person} for person in people] or None,
            retries=0,
            **operator,
        )
        self.programme = programme.name

    def execute(self, context: Context) -> Any:  # noqa: ANN401 - Airflow's own
        """Ask, unless enough people have said yes about these very bytes."""
        from turnstile.operations.approval import is_answered, question

        try:
            release = self._release(context)
            if is_answered(release):
                return "answered before"
            self.subject = f"Publish {release.key}?"
            self.body = question(release)
        except TurnstileError as refusal:
            raise AirflowFailException(str(refusal)) from None
        return super().execute(context)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> str:
        """Write the answer into the ledger, if the person may give it.

        Raises:
            AirflowFailException: the answer approves nothing.
        """
        from turnstile.operations.approval import Answer, record_answer, starters
        from turnstile.operations.journal import Journal

        if "error" in event:
            self.process_trigger_event_error(event)
        person: Mapping[str, str] | None = event["responded_by_user"]
        chosen: Sequence[str] = event["chosen_options"]
        answer = Answer(
            is_approval=list(chosen) == [self.APPROVE],
            person=None if person is None else str(person["id"]),
            reason=str((event.get("params_input") or {}).get("reason") or ""),
        )
        release = self._release(context)
        lines = Journal.of(release.settings).of_week(self.programme, str(release.week))
        started = starters(lines) | {str(context["dag_run"].triggering_user_name or "")}
        try:
            return record_answer(release, answer, started)
        except TurnstileError as refusal:
            raise AirflowFailException(str(refusal)) from None

    def _release(self, context: Context) -> Release:
        """Open the release of the run's week."""
        from turnstile.programme.loading import load_programme
        from turnstile.release.context import open_release

        zone = load_programme(self.programme, Settings.from_environment().include).time.zone
        interval = (context["data_interval_start"], context["data_interval_end"])
        week = week_of_interval(*interval, zone=zone, now=system_clock())
        return open_release(self.programme, str(week))


def questions(programme: Programme) -> tuple[AskApproval, ...]:
    """Return one task for each person whose yes is needed; none where none is."""
    asked = programme.approval
    if not asked.required:
        return ()
    names = [f"ask_{n}" for n in range(1, asked.persons + 1)] if asked.persons > 1 else ["ask"]
    doc = (AskApproval.__doc__ or "").strip()
    return tuple(AskApproval(programme=programme, task_id=name, doc_md=doc) for name in names)
