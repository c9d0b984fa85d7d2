"""The officer's desk: the page of a week under embargo, and the form that approves or rejects it.

The answer goes through Airflow's own question, in the person's name: the page has no right to write
that the person has not, and the task that receives the answer judges it by role (`approval`).
"""
# No `from __future__ import annotations`: FastAPI reads the annotations of the routes below.

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

from airflow_interfaces import current_user, may_change_runs
from asking_airflow import ask, form_of

from turnstile.operations.airflow_names import dag_of

if TYPE_CHECKING:
    from fastapi import FastAPI, params

    from turnstile.operations.airflow_now import AirflowNow
    from turnstile.operations.budget_page.page import BudgetPage

_CHOICES = ("Approve", "Reject")


def add_desk(
    app: "FastAPI",
    budget: "BudgetPage",
    visible: "params.Depends",
    airflow_now: "Callable[[BudgetPage, frozenset[str]], AirflowNow]",
) -> None:
    """Add the page of a week under embargo, and the answer of its form."""
    from fastapi import Depends, HTTPException, Request
    from fastapi.responses import HTMLResponse, Response

    def shown(programme: str, week: str, note: str = "") -> Response:
        airflow = airflow_now(budget, frozenset({programme}))
        return HTMLResponse(budget.embargoed(programme, week, airflow, note=note))

    def require_right(seen: frozenset[str], user: object, programme: str) -> None:
        if programme not in seen or not may_change_runs(dag_of(programme), user):
            raise HTTPException(403, "This week is under embargo")

    @app.get("/embargoed/{programme}/{week}")
    def embargoed(
        seen: Annotated[frozenset[str], visible],
        user: Annotated[Any, Depends(current_user())],  # noqa: ANN401 - Airflow's own
        programme: str,
        week: str,
    ) -> Response:
        require_right(seen, user, programme)
        return shown(programme, week)

    @app.post("/embargoed/{programme}/{week}")
    async def answer(
        seen: Annotated[frozenset[str], visible],
        user: Annotated[Any, Depends(current_user())],  # noqa: ANN401 - Airflow's own
        request: Request,
        programme: str,
        week: str,
    ) -> Response:
        require_right(seen, user, programme)
        form = await form_of(request)
        airflow = airflow_now(budget, frozenset({programme}))
        question = budget.open_question(programme, week, airflow)
        if question is None or question.seen != form.get("seen"):
            note = "Nothing is asked about what was shown here. Nothing was answered; look again."
            return shown(programme, week, note)
        if form.get("choice") not in _CHOICES:
            raise HTTPException(400, "Approve or Reject")
        path = (
            f"/api/v2/dags/{quote(dag_of(programme))}/dagRuns/{quote(question.run_id, safe='')}"
            f"/taskInstances/{question.task}/-1/hitlDetails"
        )
        said = {name: form.get(name, "") for name in ("reason", "public_note")}
        body = {"chosen_options": [form["choice"]], "params_input": said}
        refusal = await ask(request, "PATCH", path, body)
        note = f"Airflow did not take the answer {refusal}" if refusal else "Your answer is given."
        return shown(programme, week, note)
