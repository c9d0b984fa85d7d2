"""The question about a correction: whose answer counts, and what it makes the steps do."""

from __future__ import annotations

import errno
import importlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import Mock
from zoneinfo import ZoneInfo

import pytest
from deployment_fixtures import deployment_in
from made_homes import MadeHome, MadeHomes
from small_deployment import WEEK, Deployment

from turnstile.cli import main
from turnstile.ledger.records import ReleaseKey
from turnstile.ledger.states import ReleaseState
from turnstile.operations.journal import Happening, Journal
from turnstile.pipeline.landing import arrival
from turnstile.pipeline.landing.fetching import Elsewhere
from turnstile.pipeline.revision_in_force import revision_in_force
from turnstile.pipeline.steps import STEPS
from turnstile.programme.loading import load_programme
from turnstile.service_calendar import parse_period
from turnstile.settings import Settings

START = datetime(2016, 7, 25, tzinfo=ZoneInfo("Australia/Sydney")).astimezone(UTC)
INTERVAL = {"data_interval_start": START, "data_interval_end": START + timedelta(weeks=1)}
SAID = {"reason": "late rows", "public_note": "buses of two depots came late"}
R1 = ReleaseKey("opal", WEEK, 1)
KEEP, REVISE = "Keep the sealed week", "Make a revision"


class Question:
    """The task of one run, as Airflow drives it, without Airflow around it."""

    def __init__(self, module: ModuleType, number: int = 1, *, starter: str = "") -> None:
        include = Settings.from_environment().include
        programme = load_programme("opal", include)
        self.task = module.AskCorrection(
            programme=programme, number=number, task_id=f"ask_revision_{number}"
        )
        dag_run = SimpleNamespace(triggering_user_name=starter, run_type="backfill")
        instance = SimpleNamespace(id="0")
        self.context = {"run_id": "a", "dag_run": dag_run, "task_instance": instance} | INTERVAL

    def ask(self) -> dict[str, str] | None:
        """Return what the question is about; None if nobody is asked."""
        waits = importlib.import_module("airflow.sdk.exceptions").TaskAwaitingInput
        try:
            assert self.task.execute(self.context) == "nothing to ask"
        except waits as waiting:
            return dict(waiting.kwargs)
        return None

    def answer(self, about: dict[str, str], person: str | None, choice: str) -> str:
        """Return what the answer leads to."""
        event = {
            "chosen_options": [choice],
            "params_input": SAID if person else {},
            "responded_by_user": None if person is None else {"id": person, "name": person},
            "responded_at": START,
        }
        return str(self.task.execute_complete(self.context, event, **about))


@pytest.fixture(scope="module")
def sealed_once(tmp_path_factory: pytest.TempPathFactory, homes: MadeHomes) -> MadeHome:
    """A deployment with a published week of opal."""
    base = tmp_path_factory.mktemp("revision")
    with pytest.MonkeyPatch.context() as environment:
        begun = deployment_in(base, environment)
    begun.edit("opal", 'rho: "1/12"', 'rho: "1/8"')  # room for one correction, and no more
    (begun.include / "people.yaml").write_text("release_officer: [admin, ada]\n", encoding="utf-8")
    sample = ("sample", "opal", "--weeks", WEEK, "--rows", "2000", "--seed", "3")
    return homes.get(base, sample, ("run", "opal", "--week", WEEK))


@pytest.fixture
def deployment(
    sealed_once: MadeHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Deployment:
    """A copy of it, whose files came again, more than a minute ago."""
    monkeypatch.setattr(arrival, "QUIET_FOR", timedelta())
    home_copy = sealed_once.copy(tmp_path / "copy")
    home_copy.enter(monkeypatch)
    made = Deployment(home_copy.home, home_copy.include)
    _restate(made)
    return made


@pytest.fixture
def undisturbed(
    sealed_once: MadeHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Deployment:
    """A copy of it, whose files an authority has on a server."""
    home_copy = sealed_once.copy(tmp_path / "copy")
    home_copy.enter(monkeypatch)
    monkeypatch.setenv("TURNSTILE_LANDING_FROM", "opal=sftp://authority/out/{week}")
    return Deployment(home_copy.home, home_copy.include)


@pytest.fixture
def module(bag: Any, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module of the task; what Airflow's database would hear goes nowhere."""
    assert bag.dags
    hitl = importlib.import_module("airflow.providers.standard.operators.hitl")
    monkeypatch.setattr(hitl, "upsert_hitl_detail", lambda **_: None)
    return importlib.import_module("correction_task")


def _restate(deployment: Deployment) -> None:
    """Deliver a file of the week again, with one row more."""
    file = min(deployment.landing("opal").glob("*.csv"))
    lines = file.read_text(encoding="utf-8").splitlines()
    file.write_text("\n".join([*lines, lines[-1]]) + "\n", encoding="utf-8")


def _run_steps(step_task: ModuleType) -> None:
    for step in STEPS:
        step_task.run_step(step, "opal", run_id="a", **INTERVAL)


def _in_force(deployment: Deployment) -> int:
    """Return the revision that the steps of any run would work on now."""
    opal = load_programme("opal", deployment.include)
    return revision_in_force(deployment.ledger, opal, WEEK, Settings.from_environment())


def _states(deployment: Deployment, revision: int) -> list[ReleaseState]:
    attempts = deployment.ledger.attempts(ReleaseKey("opal", WEEK, revision))
    return [attempt.state for attempt in attempts]


class Server:
    """One file of the week, at the authority's, with one row more."""

    def __init__(self, deployment: Deployment) -> None:
        self._file = min(deployment.landing("opal").glob("*.csv"))
        text = self._file.read_text(encoding="utf-8")
        self._content = (text + text.splitlines()[-1] + "\n").encode()

    def files(self, _: str) -> list[Elsewhere]:
        return [Elsewhere(self._file.name, len(self._content), int(START.timestamp()))]

    def copy(self, _folder: str, _name: str, to: Path) -> None:
        to.write_bytes(self._content)


def _serves(monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    servers = importlib.import_module("landing_servers")
    monkeypatch.setattr(servers, "server_of", lambda _: server)


def _fetch(week: str = WEEK) -> str:
    """Run the task before the wait."""
    task = importlib.import_module("fetch_task").FetchNew(task_id="fetch", programme="opal")
    start = START + (parse_period(week).first_day - parse_period(WEEK).first_day)
    interval = {"data_interval_start": start, "data_interval_end": start + timedelta(weeks=1)}
    return str(task.execute({"run_id": "a"} | interval))


def test_a_sealed_week_that_a_server_has_anew_is_fetched_and_asked_about(
    undisturbed: Deployment, module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    _serves(monkeypatch, Server(undisturbed))
    assert Question(module).ask() is None
    assert (_fetch(), _fetch()) == ("1 new file", "no new file")
    about = Question(module).ask()
    assert about is not None
    assert about["asked"] == "opal/2016-W30/r1"
    lines = Journal.of(Settings.from_environment()).of_week("opal", WEEK)
    assert Happening.RESTATED in {line.happening for line in lines}


def test_what_retention_has_deleted_of_a_sealed_week_stays_away(
    undisturbed: Deployment, module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    _serves(monkeypatch, Server(undisturbed))
    undisturbed.ledger.record_deletion("opal", WEEK, "files", 90)
    assert _fetch() == "no new file"
    assert Question(module).ask() is None


def test_a_server_that_is_away_stops_no_week_and_the_wait_asks_again(
    undisturbed: Deployment, module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_: object) -> object:
        raise ConnectionRefusedError("10.0.0.1")

    assert undisturbed
    servers = importlib.import_module("landing_servers")
    monkeypatch.setattr(servers, "server_of", away)
    assert _fetch().startswith("nobody could be asked; the sealed bytes stand")
    assert Question(module).ask() is None
    assert _fetch("2016-W31") == (
        "the server of the files is away, or writes to one (ConnectionRefusedError); "
        "the wait after this task asks again"
    )


def test_an_answer_counts_though_the_journal_cannot_be_written(
    deployment: Deployment, module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its disk may be full while the ledger is a server's."""
    about = Question(module).ask()
    assert about is not None
    stopped = importlib.import_module("airflow.sdk.exceptions").AirflowException
    full = OSError(errno.ENOSPC, "No space left on device")
    with monkeypatch.context() as patching:
        patching.setattr(Journal, "write", Mock(side_effect=full))
        with pytest.raises(stopped, match="OSError"):  # when it begins the revision
            Question(module).answer(about, "admin", REVISE)
    assert _in_force(deployment) == 1


def test_an_officers_yes_publishes_one_revision_charged_once_and_for_ever(
    deployment: Deployment, module: ModuleType, step_task: ModuleType
) -> None:
    once = deployment.spent()["card_day:2016-07-25"]
    assert once is not None
    about = Question(module).ask()
    assert about is not None
    assert about["asked"] == "opal/2016-W30/r1"
    note = Question(module).answer(about, "admin", REVISE)
    assert note.startswith("opal/2016-W30/r1: never drawn: ")

    _run_steps(step_task)
    package = deployment.public / "opal" / WEEK / "r1"
    manifest, head = (package / "manifest.json").read_bytes(), deployment.ledger.head()
    assert Question(module).ask() is None
    _run_steps(step_task)  # a retry, a clear, a backfill
    assert (package / "manifest.json").read_bytes() == manifest
    assert deployment.ledger.head() == head
    assert deployment.spent()["card_day:2016-07-25"] == 2 * once
    assert _states(deployment, 1) == [ReleaseState.PUBLISHED]
    assert main(["ledger", "verify"]) == 0
    reserved = next(e for e in deployment.ledger.entries_of(R1) if e.kind.value == "reserved")
    assert (reserved.body["reason"], reserved.body["approver"]) == ("late rows", "admin")
    corrected = deployment.public / "opal" / WEEK / "r1"
    assert f"correction: {SAID['public_note']}" in (corrected / "docs/GUIDE.md").read_text()
    words = b"late rows"
    assert not [p for p in corrected.rglob("*") if p.is_file() and words in p.read_bytes()]

    _restate(deployment)  # and the next correction is another question
    assert Question(module).ask() is None  # but the day has no budget for a third draw


def test_the_question_shows_plan_and_budget_and_no_count(
    deployment: Deployment, module: ModuleType
) -> None:
    question = Question(module)
    assert question.ask() is not None
    assert question.task.subject == "Correct opal/2016-W30/r0?"
    body = question.task.body
    assert "| card_day, rho | 0.25 | 0.124999995 | 0.124999995 | 0.00000001 |" in body
    assert "opal/2016-W30/r1" in body
    assert not any(count in body for count in ("2000", "2001", "rows"))
    assert "Keep the sealed week" in question.task.defaults
    lines = Journal.of(Settings.from_environment()).of_week("opal", WEEK)
    assert [line.happening for line in lines if line.happening is not Happening.NOTIFIED] == [
        Happening.RESTATED,
        Happening.RESUMED,  # here no task before it took the week up
        Happening.ASKED,
    ]
    assert deployment.ledger.decisions_on_revision(R1) == ()


@pytest.mark.parametrize("person", [None, "admin"])
def test_a_time_out_or_a_no_keeps_the_sealed_week(
    deployment: Deployment, module: ModuleType, person: str | None
) -> None:
    about = Question(module).ask()
    assert about is not None
    assert Question(module).answer(about, person, KEEP) == "opal/2016-W30/r0 stands"
    (word,) = deployment.ledger.decisions_on_revision(R1)
    assert not word.is_allowed
    assert _in_force(deployment) == 0
    # A person's no is remembered for these files; a time-out is not an answer.
    assert (Question(module).ask() is None) == (person is not None)
    _restate(deployment)
    assert Question(module).ask() is not None


def test_an_answer_without_the_role_allows_nothing(
    deployment: Deployment, module: ModuleType, step_task: ModuleType
) -> None:
    spent = deployment.spent()
    about = Question(module).ask()
    assert about is not None
    failed = importlib.import_module("airflow.sdk.exceptions").AirflowFailException
    with pytest.raises(failed, match="eve is no release_officer"):
        Question(module).answer(about, "eve", REVISE)
    Question(module).answer(about, None, REVISE)  # a yes of nobody
    _run_steps(step_task)  # an operator marks the task success
    assert deployment.spent() == spent
    assert _states(deployment, 1) == []


def test_who_loses_the_role_before_the_draw_has_allowed_nothing(
    deployment: Deployment, module: ModuleType
) -> None:
    about = Question(module).ask()
    assert about is not None
    Question(module).answer(about, "ada", REVISE)
    assert _in_force(deployment) == 1
    people = deployment.include / "people.yaml"
    people.write_text("release_officer: [admin]\n", encoding="utf-8")
    assert _in_force(deployment) == 0


def test_two_persons_allow_a_correction_where_two_approve_and_none_of_them_started_it(
    deployment: Deployment, module: ModuleType
) -> None:
    deployment.edit("opal", "approval: {required: false}", "approval: {persons: 2}")
    people = deployment.include / "people.yaml"
    people.write_text("release_officer: [admin, ada, olga]\n", encoding="utf-8")
    failed = importlib.import_module("airflow.sdk.exceptions").AirflowFailException
    first, second = Question(module, 1, starter="ada"), Question(module, 2, starter="ada")
    about = first.ask()
    assert about is not None
    assert second.ask() is None  # nobody is asked for a second yes before there is a first
    with pytest.raises(failed, match="ada started this week's run"):
        first.answer(about, "ada", REVISE)
    assert first.answer(about, "admin", REVISE) == "opal/2016-W30/r0 stands"
    second.context["dag_run"].clear_number = 1  # and nobody can read who did it
    about = second.ask()
    assert about is not None
    with pytest.raises(failed, match="who set this run going again cannot be read"):
        second.answer(about, "olga", REVISE)
    assert second.answer(about, None, KEEP) == "opal/2016-W30/r0 stands"
    second.context["dag_run"].clear_number = 0
    waits = importlib.import_module("airflow.sdk.exceptions").TaskAwaitingInput
    with pytest.raises(waits):  # one person said it twice: another is asked at once
        second.answer(about, "admin", REVISE)
    assert "r1: never drawn" in second.answer(about, "olga", REVISE)


def test_an_answer_to_a_question_that_is_up_no_more_counts_for_nothing(
    deployment: Deployment, module: ModuleType
) -> None:
    about = Question(module).ask()
    assert about is not None
    Question(module).answer(about, "admin", REVISE)
    failed = importlib.import_module("airflow.sdk.exceptions").AirflowFailException
    with pytest.raises(failed, match="is up no more"):
        Question(module).answer(about, "ada", REVISE)
    assert [word.person for word in deployment.ledger.decisions_on_revision(R1)] == ["admin"]
