"""The task that asks whether a sealed week is corrected, when its files came again.

A week that is not sealed, or whose files are those that it was made from, goes on at once. An
answer allows one revision of one week; the steps that follow read it in the ledger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from people_task import AskPeople, assigned, excluded_from, numbered
from period_of_run import release_of_run
from run_reports import RunOfWeek, report_question, report_restated
from step_task import PRIVATE_QUEUE

from turnstile.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.sdk import Context

    from turnstile.operations.people.approval import Answer
    from turnstile.pipeline.context import Release
    from turnstile.programme.spec import Programme

KEEP = "Keep the sealed week"
REVISE = "Make a revision"


class AskCorrection(AskPeople):
    """Ask whether a sealed week whose files changed is corrected; no answer in time keeps it."""

    YES = REVISE
    NOTHING_TO_ASK = "nothing to ask"

    def __init__(self, *, programme: Programme, **operator: Any) -> None:  # noqa: ANN401 - Airflow's own
        super().__init__(
            programme=programme,
            subject=f"Correct {programme.title}?",
            options=[KEEP, REVISE],
            defaults=KEEP,
            **operator,
        )

    def open_question(self, context: Context, run: RunOfWeek) -> dict[str, str]:
        """Prepare the question; return key and files that it is about, nothing if none is open."""
        from turnstile.ledger.revisions import next_after
        from turnstile.operations.people.correction_question import (
            is_to_be_asked,
            revision_cost,
            revision_question,
        )
        from turnstile.pipeline.landing.redelivered_files import changed_files
        from turnstile.pipeline.ledger_preview import refusal_of_correction

        release = release_of_run(self.programme, context)
        with release.copies.in_step(raw=True, files=True):
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
            f"for a correction, which charges once more ({revision_cost(release)}); no answer "
            "keeps them."
        )
        report_question(run, self.task_id, sentence)
        return {"asked": str(next_after(release.key)), "files": files}

    def record(self, context: Context, answer: Answer, about: Mapping[str, str]) -> str:
        """Write an answer down, and say what it does to the budget."""
        from turnstile.ledger.revisions import next_after
        from turnstile.operations.people.correction_question import record_revision_answer
        from turnstile.pipeline.ledger_preview import refusal_of_correction

        release = release_of_run(self.programme, context)
        if str(next_after(release.key)) != about["asked"]:
            raise RefusedError(f"{about['asked']} was asked about, and is up no more; ask again")
        if answer.is_approval and (refusal := refusal_of_correction(release)):
            raise refusal  # the word would bind the week's runs to what cannot be drawn
        started = excluded_from(answer, release, context["dag_run"])
        if not record_revision_answer(release, answer, about["files"], started):
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
    return tuple(
        # It compares files of the landing zone.
        AskCorrection(programme=programme, number=number, task_id=name, queue=PRIVATE_QUEUE)
        for number, name in enumerate(numbered("ask_revision", programme.approval.persons), 1)
    )
