"""On a real scheduler: a sealed week whose files come again, and a programme that is one YAML."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from real_airflow import DAG, QUICK, RealAirflow, running

from turnstile.errors import TurnstileError
from turnstile.ledger.records import ReleaseKey

WEEK = "2016-W30"
ASK, KEEP, REVISE = "ask_revision", "Keep the sealed week", "Make a revision"
FERRIES = "release_ferries"
BEYOND_A_MINUTE_S = 70

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealAirflow]:
    """A week that is sealed and published."""
    with running(tmp_path_factory.mktemp("restated"), WEEK, edits={}, extra=QUICK) as instance:
        instance.backfill(WEEK, WEEK)
        instance.backfilled(WEEK)
        assert instance.runs()[WEEK] == "success"
        yield instance


def _manifest(airflow: RealAirflow, revision: int) -> Path:
    return airflow.home / f"public/opal/{WEEK}/r{revision}/manifest.json"


def _spent(airflow: RealAirflow) -> int:
    day = next(
        balance for balance in airflow.ledger.balance("opal_cards") if balance.scope == "2016-07-25"
    )
    assert day.spent.rho_nano
    return day.spent.rho_nano


def _words(airflow: RealAirflow) -> list[tuple[str, bool]]:
    said = airflow.ledger.decisions_on_revision(ReleaseKey("opal", WEEK, 1))
    return [(word.person, word.is_allowed) for word in said]


def _restate(airflow: RealAirflow) -> None:
    """Deliver a file of the week again, with one row more."""
    file = min((airflow.home / "landing/opal" / WEEK).glob("*.csv"))
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines, lines[-1]]) + "\n")


def test_a_week_whose_files_did_not_change_does_not_wait(airflow: RealAirflow) -> None:
    assert airflow.tasks(WEEK)[ASK] == "success"
    airflow.clear(WEEK, "wait")
    airflow.until_ended(WEEK)
    assert airflow.runs()[WEEK] == "success"


def test_only_an_officers_answer_makes_a_revision_and_it_is_charged_once(
    airflow: RealAirflow,
) -> None:
    once, first = _spent(airflow), _manifest(airflow, 0).read_bytes()
    _restate(airflow)
    airflow.clear(WEEK, "wait", user="eve")
    airflow.until(lambda: airflow.asks(WEEK, ASK), what="the question")
    with pytest.raises(TurnstileError, match="403"):
        airflow.answer(WEEK, ASK, "eve", REVISE)  # an operator, no officer
    airflow.mark(WEEK, ASK, "success", user="eve")
    airflow.until_ended(WEEK)
    assert (airflow.runs()[WEEK], _words(airflow), _spent(airflow)) == ("success", [], once)

    airflow.clear(WEEK, "wait", user="eve")
    airflow.until(lambda: airflow.asks(WEEK, ASK), what="the question again")
    airflow.answer(WEEK, ASK, "ada", REVISE)
    airflow.until_ended(WEEK)
    assert (airflow.runs()[WEEK], _words(airflow)) == ("success", [("ada", True)])
    assert _spent(airflow) == 2 * once
    second = _manifest(airflow, 1).read_bytes()
    assert second != first == _manifest(airflow, 0).read_bytes()

    airflow.backfill(WEEK, WEEK, "completed")
    airflow.backfilled(WEEK)
    airflow.clear(WEEK, ASK, user="eve")
    airflow.until_ended(WEEK)
    assert airflow.runs()[WEEK] == "success"
    assert _manifest(airflow, 1).read_bytes() == second
    assert _spent(airflow) == 2 * once
    assert airflow.ledger.verify() == ()


def test_a_yaml_gives_a_programme_that_releases_and_a_broken_one_beside_it_is_reported(
    airflow: RealAirflow,
) -> None:
    folder = airflow.base / "include/programmes"
    opal = (folder / "opal.yaml").read_text()
    ferries = opal.replace("name: opal", "name: ferries").replace("opal_cards", "ferry_cards")
    ferries = ferries.replace('"opal/{week}/*"', '"ferries/{week}/*"')  # of other people
    theirs = airflow.home / "landing/ferries" / WEEK
    shutil.copytree(airflow.home / "landing/opal" / WEEK, theirs)
    for file in theirs.glob("*.csv"):  # the same bytes would be the same people
        file.write_text(file.read_text() + file.read_text().splitlines()[-1] + "\n")
    (folder / "ferries.yaml").write_text(ferries)
    (folder / "trams.yaml").write_text("name: trains\n")
    airflow.until(lambda: airflow.api().has_dag(FERRIES), what="the new DAG", timeout_s=300)
    said = "trams.yaml:1: title: is missing"
    airflow.until(lambda: said in _import_errors(airflow), what="the import error", timeout_s=120)

    dag = airflow.call("GET", f"/api/v2/dags/{FERRIES}")
    assert dag["is_paused"]
    airflow.api().unpause(FERRIES)
    airflow.backfill(WEEK, WEEK, dag_id=FERRIES)

    def ended() -> bool:
        states = {run.state for run in airflow.api().runs(FERRIES)}
        return bool(states) and states <= {"success", "failed"}

    airflow.until(ended, what="the new programme's run", timeout_s=600)
    assert {run.state for run in airflow.api().runs(FERRIES)} == {"success"}
    assert (airflow.home / f"public/ferries/{WEEK}/r0/manifest.json").exists()
    assert not airflow.call("GET", f"/api/v2/dags/{DAG}")["has_import_errors"]


def test_who_watches_runs_by_the_clock_where_airflow_stays(airflow: RealAirflow) -> None:
    watchdog = airflow.base / "dags/watchdog.py"
    text = watchdog.read_text()
    assert 'cron="*/15 * * * *"' in text
    watchdog.write_text(text.replace('cron="*/15 * * * *"', 'cron="* * * * *"'))
    path = "/api/v2/dags/watchdog"
    airflow.until(lambda: _clock_of(airflow, path) == "* * * * *", what="its new clock")
    airflow.api().unpause("watchdog")  # as it is from the start; tests pause it

    def ran() -> list[str]:
        return [run["state"] for run in airflow.call("GET", f"{path}/dagRuns")["dag_runs"]]

    before = ran()
    time.sleep(BEYOND_A_MINUTE_S)
    assert ran() == before  # nothing runs unless it is asked for, as in make release
    airflow.stack.schedule_by_the_clock()  # as make ui does
    airflow.until(lambda: ran() != before and "success" in ran(), what="a scheduled look")


def _clock_of(airflow: RealAirflow, path: str) -> str:
    return str(airflow.call("GET", path)["timetable_summary"])


def _import_errors(airflow: RealAirflow) -> str:
    errors = airflow.call("GET", "/api/v2/importErrors")["import_errors"]
    return "\n".join(error["stack_trace"] for error in errors)
