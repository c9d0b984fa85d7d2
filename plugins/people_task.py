"""What the two kinds of questions to people share: who is asked, how long, and what came back.

The answer is written into the ledger by the task that receives it, so that there is no moment in
which only Airflow knows it. Marking such a task, skipping it or clearing it writes nothing there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import Param
from airflow_interfaces import HITLUser, TaskAwaitingInput, names_people_by_user_id
from audit_log import who_set_going_again
from run_reports import report_goes_on
from step_task import of_run

from turnstile.errors import AirflowAway, NotApproved
from turnstile.programme.people import holders
from turnstile.settings import Settings

if TYPE_CHECKING:
    from airflow.sdk import Context
    from run_reports import RunOfWeek

    from turnstile.operations.people.approval import Answer
    from turnstile.pipeline.context import Release
    from turnstile.programme.spec import Programme

ANSWER_WITHIN = timedelta(days=3)


class AskPeople(HITLOperator):
    """A question about a week, and one answer to it: who asks differs, how is the same."""

    YES: ClassVar[str]
    NOTHING_TO_ASK: ClassVar[str]

    def __init__(self, *, programme: Programme, number: int, **operator: Any) -> None:  # noqa: ANN401 - Airflow's own
        reason = Param("", type="string", title="Why", description="For the file; internal")
        # null, not "": Airflow's own form holds its button until a text is filled in.
        note = Param(
            None, type=["null", "string"], title="For the public", description="Will be published"
        )
        operator.pop("params", None)  # the DAG's own, which Airflow adds again
        super().__init__(
            body="",  # written when the question is opened
            doc_md=(type(self).__doc__ or "").strip(),
            response_timeout=ANSWER_WITHIN,
            params={"reason": reason, "public_note": note},
            **operator,
        )
        self.programme = programme.name
        self.number = number

    def execute(self, context: Context) -> Any:  # noqa: ANN401 - Airflow's own
        """Ask, if a question is open."""
        about = of_run(
            self.programme, self.task_id, context, lambda run: self.open_question(context, run)
        )
        return self._ask(context, about) if about else self.NOTHING_TO_ASK

    def execute_complete(self, context: Context, event: dict[str, Any], **about: str) -> str:
        """Write the answer into the ledger, if the person may give it.

        A yes that leaves the question open, because another's no stands or the same person said it
        before, is asked again at once: the run does not end while somebody may still answer.

        Args:
            context: of the task.
            event: the answer.
            about: what `open_question` said that the question is about.

        Raises:
            AirflowFailException: the answer counts for nothing.
        """
        if "error" in event:
            self.process_trigger_event_error(event)
        answer = answer_in(event, self.YES)

        def record(run: RunOfWeek) -> str:
            report_goes_on(run, self.task_id)
            said = self.record(context, answer, about)
            is_yes = answer.is_approval and answer.person is not None
            if is_yes and (again := self.open_question(context, run)):
                self.log.info("%s; the question stays open", said)
                self._ask(context, again)
            return said

        return of_run(self.programme, self.task_id, context, record)

    def _ask(self, context: Context, about: dict[str, str]) -> Any:  # noqa: ANN401 - Airflow's own
        """Put the prepared question; Airflow goes on in `execute_complete`."""
        with remembering(about):
            return super().execute(context)

    def open_question(self, context: Context, run: RunOfWeek) -> dict[str, str]:
        """Prepare the question; return what it is about, nothing if none is open."""
        raise NotImplementedError

    def record(self, context: Context, answer: Answer, about: Mapping[str, str]) -> str:
        """Write an answer down and say what came of it."""
        raise NotImplementedError


def assigned(programme: Programme) -> list[HITLUser] | None:
    """Return whom Airflow lets answer; None is whoever may edit the DAG's runs.

    Airflow compares these with user ids, which are user names in its simple auth manager only.
    Elsewhere the role decides afterwards what an answer counts.
    """
    if not names_people_by_user_id():
        return None
    people = sorted(holders(programme.approval.role, Settings.from_environment().include))
    return [HITLUser(id=name, name=name) for name in people] or None


def numbered(name: str, persons: int) -> tuple[str, ...]:
    """Return the names of the tasks that ask so many persons.

    Examples:
        >>> numbered("ask", 1), numbered("ask", 2)
        (('ask',), ('ask_1', 'ask_2'))
    """
    return tuple(f"{name}_{n}" for n in range(1, persons + 1)) if persons > 1 else (name,)


@contextmanager
def remembering(about: dict[str, str]) -> Iterator[None]:
    """Hand what a question is about on to the moment of its answer.

    Args:
        about: keyword arguments of the operator's `execute_complete`.
    """
    try:
        yield
    except TaskAwaitingInput as waits:
        waits.kwargs = about
        raise


def answer_in(event: Mapping[str, Any], yes: str) -> Answer:
    """Return an answer by a person's user name; no person where the time ran out.

    Args:
        event: what Airflow hands on when the wait ends.
        yes: the option that approves.
    """
    from turnstile.operations.people.approval import Answer

    person: Mapping[str, str] | None = event["responded_by_user"]
    written = event.get("params_input") or {}
    return Answer(
        is_approval=list(event["chosen_options"]) == [yes],
        person=None if person is None else str(person["name"] or person["id"]),
        reason=str(written.get("reason") or ""),
        public_note=str(written.get("public_note") or ""),
    )


def known_starters(release: Release, dag_run: Any) -> frozenset[str]:  # noqa: ANN401 - Airflow's own
    """Return everybody whom the journal and the run name as having started the release's week."""
    from turnstile.operations.journal import Journal, starters

    lines = Journal.of(release.settings).of_week(release.programme.name, str(release.week))
    return (starters(lines) | {str(getattr(dag_run, "triggering_user_name", None) or "")}) - {""}


def excluded_from(answer: Answer, release: Release, dag_run: Any) -> frozenset[str]:  # noqa: ANN401 - Airflow's own
    """Return everybody who started a run of the release's week, or set it going again.

    They may not say yes where the programme says so; a no, or none in time, is anybody's.

    Raises:
        NotApproved: none of them may approve, and who cleared the run cannot be known.
    """
    known = known_starters(release, dag_run)
    if not (answer.is_approval and release.programme.approval.not_the_starter):
        return known
    try:
        return known | who_set_going_again(dag_run)
    except AirflowAway as error:  # a question is asked again by people alone
        raise NotApproved(f"{error}; the answer was not taken: clear this task") from None
