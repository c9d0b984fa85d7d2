"""The Privacy budget page in Airflow's own navigation: routes and rights; the rest is Airflow-free.

Every path below `/privacy-budget`, known or not, whatever the method, asks for an Airflow user who
may read at least one release DAG; anything that goes wrong on the way to that answer refuses. A
reader sees the programmes whose DAG they may read. Nothing here writes but two forms, that release
weeks and that answer a question: they need the right to start and clear runs, come from this very
page, say what they were shown, and ask Airflow's own API in the person's name.

Airflow loads plugins in every process; the web application is built in the API server only.
"""
# No `from __future__ import annotations`: FastAPI reads the annotations of the routes below.

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any

from airflow.plugins_manager import AirflowPlugin
from airflow_interfaces import (
    current_user,
    last_heard,
    may_read_dag,
    paused_by_dag,
    runs_now,
)
from answer_form import add_desk
from asking_airflow import form_of
from release_form import add_release_form

from turnstile.errors import IntegrityError, TurnstileError
from turnstile.operations.airflow_names import dag_of, programme_of

if TYPE_CHECKING:
    from fastapi import FastAPI, params
    from fastapi.responses import Response

    from turnstile.operations.airflow_now import AirflowNow
    from turnstile.operations.budget_page.page import BudgetPage

PREFIX = "/privacy-budget"
FILES = Path(__file__).resolve().parent / "page_files"
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"]
NOT_LOGGED_IN = 401
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; "
    "img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'self'",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}


def make_app() -> "FastAPI":
    """Return the web application."""
    from fastapi import Depends, FastAPI, HTTPException

    from turnstile.operations.budget_page.page import BudgetPage
    from turnstile.settings import Settings, system_clock

    budget = BudgetPage(Settings.from_environment(), system_clock)

    def visible_to(user: Annotated[Any, Depends(current_user())]) -> frozenset[str]:  # noqa: ANN401 - Airflow's own
        """Return the programmes whose release DAG the user may read; refuse if there is none."""
        seen = frozenset(name for name in budget.ever_known() if may_read_dag(dag_of(name), user))
        if not seen:
            raise HTTPException(403, "You may read no release DAG; ask your Airflow administrator")
        return seen

    app = FastAPI(
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        dependencies=[Depends(visible_to)],
    )
    _harden(app)
    _explain(app, budget)
    _add_pages(app, budget, Depends(visible_to))
    add_release_form(app, budget, Depends(visible_to), _airflow_now)
    add_desk(app, budget, Depends(visible_to), _airflow_now)
    _add_files(app)
    Thread(target=budget.warm, name="privacy-page", daemon=True).start()
    return app


def _harden(app: "FastAPI") -> None:
    """Put the same headers on every answer, refusals included."""
    from fastapi import Request
    from fastapi.responses import Response
    from starlette.middleware.base import RequestResponseEndpoint

    @app.middleware("http")
    async def harden(request: Request, go_on: RequestResponseEndpoint) -> Response:
        answer = await go_on(request)
        answer.headers.update(HEADERS)
        return answer


def _explain(app: "FastAPI", budget: "BudgetPage") -> None:
    """Answer a person with a page, whatever is wrong; a script that asked for data with JSON."""
    from fastapi import HTTPException, Request
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import HTMLResponse, JSONResponse, Response
    from sqlalchemy.exc import DBAPIError
    from starlette.exceptions import HTTPException as StarletteException

    def answer(
        request: Request, sentence: str, status: int, kept: Mapping[str, str] | None = None
    ) -> Response:
        path = request.url.path.partition(PREFIX)[2]
        if path.startswith("/data/"):
            return JSONResponse({"detail": sentence}, status_code=status)
        root = "../" * max(0, path.count("/") - 1)
        return HTMLResponse(budget.problem(sentence, root, kept), status_code=status)

    @app.exception_handler(TurnstileError)
    def ours(request: Request, error: TurnstileError) -> Response:
        return answer(request, *_said(error))

    @app.exception_handler(RequestValidationError)
    def malformed(request: Request, _: RequestValidationError) -> Response:
        return answer(request, "This address does not name anything here", 404)

    @app.exception_handler(DBAPIError)
    def unanswered(request: Request, _: DBAPIError) -> Response:
        sentence = (
            "A database does not answer, Airflow's or the ledger's, so nobody can say here where "
            "things stand. What runs goes on or waits; look again in a minute"
        )
        return answer(request, sentence, 503)

    @app.exception_handler(Exception)
    def unforeseen(request: Request, _: Exception) -> Response:
        return answer(request, "This page failed; the API server's log says why", 500)

    @app.exception_handler(StarletteException)
    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: StarletteException) -> Response:
        sentence, kept = str(error.detail), dict[str, str]()
        if error.status_code == NOT_LOGGED_IN:
            sentence = "Log in to Airflow first, then come back"
            with suppress(StarletteException):  # it is no form of this page
                kept = await form_of(request)
        if kept:
            sentence = (
                "Your login has ended, so nothing was sent. Log in to Airflow in another tab, then "
                "send what you wrote from here"
            )
        return answer(request, sentence, error.status_code, kept)


def _said(error: TurnstileError) -> tuple[str, int]:
    """Return what a person is told of an error of ours, and the status of the answer."""
    if not isinstance(error, IntegrityError):
        return str(error), 404
    sentence = f"Nobody can say here where things stand: {error}. Stop releasing, and do what"
    return f"{sentence} turnstile doctor says", 503


def _add_pages(app: "FastAPI", budget: "BudgetPage", visible: "params.Depends") -> None:
    """Add the sections, the weeks and the same figures as JSON."""
    from fastapi import HTTPException, Request
    from fastapi.responses import HTMLResponse, JSONResponse, Response

    @app.get("/")
    def budget_now(seen: Annotated[frozenset[str], visible]) -> Response:
        return HTMLResponse(budget.budget(seen, _airflow_now(budget, seen)))

    sections = {
        "/calendar": budget.calendar,
        "/plan": budget.plan,
        "/quality": budget.quality,
    }
    for path, answer in sections.items():
        app.add_api_route(path, _section(budget, answer, visible), methods=["GET"])

    @app.get("/ledger")
    def ledger(seen: Annotated[frozenset[str], visible], request: Request) -> Response:
        return HTMLResponse(budget.ledger(seen, _asked(request.query_params)))

    @app.get("/week/{programme}/{week}")
    def week(
        seen: Annotated[frozenset[str], visible],
        programme: str,
        week: str,
        revision: int | None = None,
        place: str = "",
    ) -> Response:
        if programme not in seen:
            raise HTTPException(404, "There is no such week")
        airflow = _airflow_now(budget, frozenset({programme}))
        shown = budget.week(programme, week, airflow, revision=revision, place=place)
        return HTMLResponse(shown)

    @app.get("/data/{view}.json")
    def data(seen: Annotated[frozenset[str], visible], view: str, request: Request) -> Response:
        airflow = _airflow_now(budget, seen)
        return JSONResponse(budget.data(view, seen, _asked(request.query_params), airflow))


def _airflow_now(budget: "BudgetPage", programmes: frozenset[str]) -> "AirflowNow":
    """Return what Airflow says of programmes, of their runs that live and of those to ask about."""
    from turnstile.operations.airflow_now import AirflowNow

    paused = paused_by_dag(dag_of(name) for name in programmes)
    asked = budget.runs_asked(programmes)
    dags = {dag_of(name): ids for name, ids in asked.runs.items()}
    runs = runs_now(dags, budget.period_of_run)
    return AirflowNow(
        {programme_of(dag_id): is_paused for dag_id, is_paused in paused.items()},
        {programme_of(dag_id): ones for dag_id, ones in runs.items()},
        last_heard("Scheduler"),
        asked,
        last_heard("Triggerer"),
    )


def _section(
    budget: "BudgetPage",
    answer: "Callable[[frozenset[str], AirflowNow], str]",
    visible: "params.Depends",
) -> Callable[..., "Response"]:
    """Return the route of one section."""
    from fastapi.responses import HTMLResponse

    def section(seen: Annotated[frozenset[str], visible]) -> HTMLResponse:
        return HTMLResponse(answer(seen, _airflow_now(budget, seen)))

    return section


def _add_files(app: "FastAPI") -> None:
    """Add style and script, and an answer for everything else that the rights guard too."""
    from fastapi import HTTPException
    from fastapi.responses import FileResponse, Response

    @app.get("/style.css")
    def style() -> Response:
        return FileResponse(FILES / "style.css", media_type="text/css")

    @app.get("/page.js")
    def script() -> Response:
        return FileResponse(FILES / "page.js", media_type="text/javascript")

    @app.api_route("/{path:path}", methods=METHODS)
    def nothing_here() -> Response:
        raise HTTPException(404, "There is nothing here")


def _asked(query: Mapping[str, str]) -> dict[str, str]:
    """Return the filters of a request; a page number that is none is the first page."""
    asked = {name: str(query.get(name, ""))[:100] for name in ("programme", "kind", "key", "page")}
    asked["page"] = asked["page"] if asked["page"].isdecimal() else ""
    return asked


def is_api_server(arguments: list[str]) -> bool:
    """Tell from a command line whether the process serves Airflow's API.

    Examples:
        >>> is_api_server(["airflow", "api-server"]), is_api_server(["airflow", "scheduler"])
        (True, False)
    """
    return any(
        word in argument
        for argument in arguments
        for word in ("api-server", "api_server", "api_fastapi")
    )


class PrivacyBudgetPlugin(AirflowPlugin):
    """Adds the page and its entry in the navigation."""

    name = "privacy_budget"
    fastapi_apps: list[Any] = []  # noqa: RUF012 - as Airflow declares it
    external_views: list[Any] = [  # noqa: RUF012 - as Airflow declares it
        {
            "name": "Budget",
            "href": f"{PREFIX}/".lstrip("/"),
            "destination": "nav",
            "url_route": "privacy-budget-view",
        }
    ]

    @classmethod
    def on_load(cls, *_: object, **__: object) -> None:
        """Build the web application where it is served."""
        if is_api_server(sys.argv):
            cls.fastapi_apps = [{"app": make_app(), "url_prefix": PREFIX, "name": "Privacy budget"}]
