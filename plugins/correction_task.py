"""The task that asks whether a sealed week is corrected, when its files came again.

A week that is not sealed, or whose files are those that it was made from, goes on at once. The
answer is written into the ledger by the task that receives it, and allows one revision of one week;
the steps that follow read it there. Marking, skipping or clearing this task allows nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import HITLOperator
from people_task import answer_in, asking, assigned, excluded_from, numbered, remembering
from period_of_run import release_of_run
from run_reports import RunOfWeek, report_question, report_restated
from step_task import of_run

from turnstile.errors import RefusedError

if TYPE_CHECKING:
    from airflow.sdk import Context

    from turnstile.operations.approval import Answer
    from turnstile.pipeline.context import Release
    from turnstile.programme.spec import Programme

KEEP = "Keep the sealed week"
REVISE = "Make a revision"


class AskCorrection(HITLOperator):
    """Ask whether a sealed week whose files changed is corrected; no answer in time keeps it."""

    def __init__(self, *, programme: Programme, number: int, **operator: Any) -> None:  # noqa: ANN401 - Airflow's own
        super().__init__(
            subject=f"Correct {programme.title}?",
            body="",
            options=[KEEP, REVISE],
            defaults=KEEP,
            **operator,
        )
        self.programme = programme.name
        self.number = number

    def execute(self, context: Context) -> Any:  # noqa: ANN401 - Airflow's own
        """Ask, if the files of a sealed week changed and nobody has answered about these files."""
        about = of_run(
            self.programme, self.task_id, context, lambda run: self._open_question(context, run)
        )
        if not about:
            return "nothing to ask"
        with remembering(about):
            return super().execute(context)

    def execute_complete(
        self, context: Context, event: dict[str, Any], asked: str = "", files: str = ""
    ) -> str:
        """Write the answer into the ledger, if the person may give it.

        Args:
            context: of the task.
            event: the answer.
            asked: key of the correction that the question was about.
            files: commitment to the files that it was about.

        Raises:
            AirflowFailException: the answer counts for nothing.
        """
        if "error" in event:
            self.process_trigger_event_error(event)
        answer = answer_in(event, REVISE)

        def record(run: RunOfWeek) -> str:
            run.goes_on(self.task_id)
            return self._record(context, answer, asked, files)

        return of_run(self.programme, self.task_id, context, record)

    def _open_question(self, context: Context, run: RunOfWeek) -> dict[str, str]:
        """Prepare the question; return key and files that it is about, nothing if none is open."""
        from turnstile.ledger.revisions import next_after
        from turnstile.operations.correction_question import is_to_be_asked, revision_question
        from turnstile.pipeline.correction_budget import refusal_of_correction
        from turnstile.pipeline.redelivered_files import changed_files

        release = release_of_run(self.programme, context)
        files = changed_files(release)
        if files is None or not is_to_be_asked(release, files, self.number):
            return {}
        report_restated(_run(release, context))
        if refusal := refusal_of_correction(release):
            self.log.warning("files changed, and there is no room to correct them: %s", refusal)
            return {}
        self.assigned_users = assigned(release.programme)
        self.subject = f"Correct {release.key}?"
        self.body = revision_question(release)
        sentence = (
            f"The files of {release.key} came again. Its sealed bytes stand unless somebody asks "
            "for a correction, which charges once more; no answer keeps them."
        )
        report_question(run, self.task_id, sentence)
        return {"asked": str(next_after(release.key)), "files": files}

    def _record(self, context: Context, answer: Answer, asked: str, files: str) -> str:
        """Write an answer down, and say what it does to the budget."""
        from turnstile.ledger.revisions import next_after
        from turnstile.operations.correction_question import record_revision_answer
        from turnstile.pipeline.correction_budget import refusal_of_correction

        release = release_of_run(self.programme, context)
        if str(next_after(release.key)) != asked:
            raise RefusedError(f"{asked} was asked about, and is up no more; ask again")
        if answer.is_approval and (refusal := refusal_of_correction(release)):
            raise refusal  # the word would bind the week's runs to what cannot be drawn
        started = excluded_from(answer, release, context["dag_run"])
        if not record_revision_answer(release, answer, files, started):
            return f"{release.key} stands"
        run = _run(release_of_run(self.programme, context), context)
        return run.begin(str(context["dag_run"].triggering_user_name or ""))


def _run(release: Release, context: Context) -> RunOfWeek:
    """Return the run as its reports name it."""
    run_id = context.get("run_id", "")
    key = release.key
    return RunOfWeek(release.settings, key.programme, key.period, run_id, key.revision)


def correction_questions(programme: Programme) -> tuple[AskCorrection, ...]:
    """Return one task for each person whose yes a correction needs."""
    doc = (AskCorrection.__doc__ or "").strip()
    return tuple(
        AskCorrection(programme=programme, number=number, task_id=name, doc_md=doc, **asking())
        for number, name in enumerate(numbered("ask_revision", programme.approval.persons), 1)
    )
