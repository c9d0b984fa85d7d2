"""The form that releases weeks: shown to every reader, answered for those who may start runs.

A click names what it was shown. If a week, a charge or a cap is another by then, nothing is asked
and the new preview is shown. Each run is asked of Airflow's own API with the person's own token, so
Airflow's rights and its audit log hold as if they had started it in Airflow.
"""
# No `from __future__ import annotations`: FastAPI reads the annotations of the routes below.

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Any

from airflow_interfaces import current_user, may_change_runs, runs_by_start
from asking_airflow import ask, form_of

from turnstile.operations.airflow_names import dag_of

if TYPE_CHECKING:
    from fastapi import FastAPI, Request, params

    from turnstile.operations.airflow_now import AirflowNow
    from turnstile.operations.budget_page.page import BudgetPage
    from turnstile.operations.week_requests import KnownRun, WeekRequest

_FIELDS = ("programme", "first", "last")


def add_release_form(
    app: "FastAPI",
    budget: "BudgetPage",
    visible: "params.Depends",
    airflow_now: "Callable[[BudgetPage, frozenset[str]], AirflowNow]",
) -> None:
    """Add the form and its answer."""
    from fastapi import Depends, HTTPException, Request
    from fastapi.responses import HTMLResponse, Response

    from turnstile.operations.deployment_state import periods_asked_for
    from turnstile.operations.people.release_preview import seen as digest_of
    from turnstile.operations.week_requests import week_requests
    from turnstile.programme.loading import load_programme

    def may_release(programme: str, seen: frozenset[str], user: object) -> bool:
        return programme in seen and may_change_runs(dag_of(programme), user)

    def shown(seen: frozenset[str], wanted: dict[str, str], *, may: bool, note: str = "") -> str:
        airflow = airflow_now(budget, seen)
        return budget.release(seen, wanted, airflow, may_release=may, note=note)

    @app.get("/release")
    def form(
        seen: Annotated[frozenset[str], visible],
        user: Annotated[Any, Depends(current_user())],  # noqa: ANN401 - Airflow's own
        request: Request,
    ) -> Response:
        wanted = {name: request.query_params.get(name, "") for name in _FIELDS}
        may = may_release(wanted["programme"], seen, user)
        return HTMLResponse(shown(seen, wanted, may=may))

    @app.post("/release")
    async def release(
        seen: Annotated[frozenset[str], visible],
        user: Annotated[Any, Depends(current_user())],  # noqa: ANN401 - Airflow's own
        request: Request,
    ) -> Response:
        form = await form_of(request)
        wanted = {name: form.get(name, "") for name in _FIELDS}
        programme = wanted["programme"]
        if not may_release(programme, seen, user):
            raise HTTPException(403, "You may not start runs of this programme")
        spec = load_programme(programme, budget.settings.include)
        airflow = airflow_now(budget, seen)
        if digest_of(spec, budget.weeks_previewed(programme, wanted, airflow)) != form.get("seen"):
            note = "Something changed since this was shown. Nothing was asked for; look again."
            return HTMLResponse(shown(seen, wanted, may=True, note=note))
        if airflow.state_of(programme) == "no DAG":
            note = (
                f"Airflow has no DAG of {programme}, so nothing was asked for. An example has none "
                "until it is adopted (include/examples.yaml); a new file has one within a minute."
            )
            return HTMLResponse(shown(seen, wanted, may=True, note=note))
        known = runs_by_start(dag_of(programme))
        asked = week_requests(spec, periods_asked_for(spec, wanted), known)
        if held := _held(asked, known.values()):
            return HTMLResponse(shown(seen, wanted, may=True, note=held))
        note = await _ask(request, asked)
        return HTMLResponse(shown(seen, wanted, may=True, note=note))


def _held(asked: "tuple[WeekRequest, ...]", known: "Iterable[KnownRun]") -> str:
    """Say which runs Airflow would never begin; empty if it would begin all."""
    from turnstile.operations.airflow_now import NOT_BEGUN

    held = {run.run_id for run in known if run.is_held_back}
    if not (names := ", ".join(week.run_id for week in asked if week.run_id in held)):
        return ""
    return (
        f"{NOT_BEGUN}, so nothing was asked for: {names}. Unpause the backfill in Airflow; if it "
        "was canceled, delete these runs there, then ask again: what is sealed stands, uncharged."
    )


async def _ask(request: "Request", asked: "tuple[WeekRequest, ...]") -> str:
    """Ask Airflow for the runs, in order, until it refuses one; return what became of it."""
    done: list[str] = []
    for week_request in asked:
        refusal = (
            await ask(request, "POST", week_request.path, week_request.body)
            if week_request.path
            else ""
        )
        if refusal:
            return f"{_started(done)} Airflow refused {week_request.run_id} {refusal}"
        done.append(week_request.run_id)
    return f"{_started(done)} They run one after the other; the page Weeks shows them."


def _started(runs: list[str]) -> str:
    """Name the runs that were asked for."""
    return f"Asked for: {', '.join(runs) or 'nothing'}."
