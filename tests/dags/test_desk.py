"""The officer's desk: what is seen before a yes, and an answer through Airflow's question."""

from __future__ import annotations

import asyncio
import html
import importlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import HTTPException
from made_homes import MadeHome
from small_deployment import Deployment

from turnstile.operations.airflow_now import AirflowNow, RunNow, TaskNow

LAST, WEEK = "2016-W30", "2016-W31"
DESK = f"/privacy-budget/embargoed/opal/{WEEK}"
ANSWERED = "/api/v2/dags/release_opal/dagRuns/run/taskInstances/ask/-1/hitlDetails"


@pytest.fixture(scope="module")
def home(
    tmp_path_factory: pytest.TempPathFactory, public_week: MadeHome, airflow_home: Path
) -> Iterator[Deployment]:
    """A public week of opal, and one that is sealed and waits for people."""
    assert airflow_home
    home_copy = public_week.copy(tmp_path_factory.mktemp("desk"))
    with pytest.MonkeyPatch.context() as patching:
        home_copy.enter(patching)
        place = Deployment(home_copy.home, home_copy.include)
        place.edit("opal", "approval: {required: false}", "approval: {required: true}")
        main = importlib.import_module("turnstile.cli").main
        assert main(["run", "opal", "--week", WEEK]) == 3
        yield place


class Asked:
    """What Airflow says, and what it was asked for."""

    def __init__(self) -> None:
        self.task: str | None = "ask"
        self.got: list[tuple[str, dict[str, Any]]] = []
        self.status = 200

    def now(self, *_: Any) -> AirflowNow:
        tasks = {self.task: TaskNow("awaiting_input")} if self.task else {}
        run = RunNow("run", WEEK, "running", tasks)
        return AirflowNow({"opal": False}, {"opal": (run,)})


@pytest.fixture
def asked() -> Asked:
    return Asked()


@pytest.fixture
def site(
    home: Deployment,
    asked: Asked,
    mounted_page: Callable[[], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> Any:
    assert home
    page = importlib.import_module("privacy_page")
    fastapi = importlib.import_module("fastapi")
    airflow = fastapi.FastAPI()

    async def answered(request: Any) -> Any:
        asked.got.append((request.headers["authorization"], await request.json()))
        return fastapi.Response(json.dumps({"detail": "too late"}), status_code=asked.status)

    airflow.add_route(ANSWERED, answered, methods=["PATCH"])
    monkeypatch.setattr(page, "_airflow_now", asked.now)
    forms = importlib.import_module("asking_airflow")
    monkeypatch.setattr(forms, "application_of_airflow", lambda: airflow)
    return mounted_page()


def _seen(text: str) -> str:
    match = re.search(r'name="seen" value="([^"]+)"', text)
    assert match is not None
    return match[1]


def test_an_officer_sees_the_week_beside_the_last_one_and_answers_in_their_own_name(
    site: Any, asked: Asked, bearer: Callable[[str], dict[str, str]]
) -> None:
    shown = site.get(DESK, headers=bearer("op")).text
    words = " ".join(re.sub(r"<[^>]+>", " ", shown).split())
    assert f"Taps beside {LAST}" in words
    assert re.search(r"all days of both [\d,]+ [\d,]+ [+-][\d,.]+ \u00b1 [\d,.]+", words)
    assert re.search(r"(Places that moved more|No place of \d+ moved more)", words)
    assert "Rules of the input" not in words  # no run reported any: nothing is made up
    form = {"seen": _seen(shown), "choice": "Approve", "reason": "seen", "public_note": "all well"}
    headers = bearer("op")
    answer = site.post(DESK, data=form, headers=headers)
    assert "Your answer is given." in answer.text
    said = {"reason": "seen", "public_note": "all well"}
    body = {"chosen_options": ["Approve"], "params_input": said}
    assert asked.got == [(headers["Authorization"], body)]
    asked.status = 409
    assert (
        "Airflow did not take the answer (409): too late"
        in site.post(DESK, data=form, headers=headers).text
    )


def test_what_was_written_is_sent_again_after_a_login_that_had_ended(
    site: Any, asked: Asked, bearer: Callable[[str], dict[str, str]]
) -> None:
    seen = _seen(site.get(DESK, headers=bearer("op")).text)
    form = {"seen": seen, "choice": "Reject", "reason": "two days <low>", "public_note": ""}
    ended = site.post(DESK, data=form)
    assert (ended.status_code, asked.got) == (401, [])
    assert "send what you wrote from here" in ended.text
    for said in ("choice: Reject", "reason: two days &lt;low&gt;"):  # another person may log in
        assert said in ended.text
    kept = re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', ended.text)
    again = {name: html.unescape(value) for name, value in kept}
    assert "Your answer is given." in site.post(DESK, data=again, headers=bearer("op")).text
    assert asked.got[0][1]["params_input"] == {"reason": "two days <low>", "public_note": ""}
    long = site.post(DESK, data=form | {"reason": "a" * 20_000})
    assert (long.status_code, "aaa" in long.text) == (401, False)
    evil = site.post(DESK, data=form, headers={"Origin": "http://evil.example"})
    assert (evil.status_code, "two days" in evil.text) == (401, False)
    assert "Log in to Airflow first" in site.get(DESK).text


def test_what_is_no_form_of_the_page_is_not_read(bag: Any) -> None:
    """Of whoever is not logged in the whole body was read into memory."""
    assert bag.dags
    form_of = importlib.import_module("asking_airflow").form_of

    async def body() -> bytes:
        raise AssertionError

    for headers in ({"content-length": str(1 << 30)}, {"transfer-encoding": "chunked"}):
        with pytest.raises(HTTPException, match="413"):
            asyncio.run(form_of(SimpleNamespace(headers=headers, body=body)))


def test_nothing_is_answered_without_a_question_a_right_or_for_what_was_not_shown(
    site: Any, asked: Asked, bearer: Callable[[str], dict[str, str]]
) -> None:
    seen = _seen(site.get(DESK, headers=bearer("op")).text)
    form = {"seen": seen, "choice": "Approve"}
    assert site.get(DESK, headers=bearer("viewer")).status_code == 403
    assert site.post(DESK, data=form, headers=bearer("viewer")).status_code == 403
    evil = bearer("op") | {"Origin": "http://evil.example"}
    assert site.post(DESK, data=form, headers=evil).status_code == 403
    other = site.post(DESK, data=form | {"seen": "0/run/ask"}, headers=bearer("op"))
    assert "Nothing was answered; look again" in other.text
    assert site.post(DESK, data=form | {"choice": "x"}, headers=bearer("op")).status_code == 400
    asked.task = None
    closed = site.post(DESK, data=form, headers=bearer("op"))
    assert "Nothing was answered; look again" in closed.text
    assert "Airflow has no question about this week open" in closed.text
    assert asked.got == []


def test_the_page_says_asked_only_while_airflow_has_the_question(
    site: Any, asked: Asked, bearer: Callable[[str], dict[str, str]]
) -> None:
    def state() -> str:
        marks = site.get("/privacy-budget/data/calendar.json", headers=bearer("op")).json()["opal"]
        return str(next(mark["state"] for mark in marks if mark["week"] == WEEK))

    assert state() == "asked"
    asked.task = None
    assert state() == "under_way"
