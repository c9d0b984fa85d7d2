"""The Privacy budget page behind Airflow's own rights, over HTTP, with and without a user."""

from __future__ import annotations

import importlib
import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from turnstile.cli import main

ROOT = Path(__file__).resolve().parents[2]
WEEK = "2016-W30"
PATHS = [
    "/",
    "/calendar",
    "/ledger",
    "/plan",
    "/quality",
    f"/week/opal/{WEEK}",
    f"/embargoed/opal/{WEEK}",
    "/data/balance.json",
    "/data/anything.json",
    "/style.css",
    "/page.js",
    "/unknown",
    "/page_files/style.css",
    "/docs",
    "/openapi.json",
    "/..%2f..%2fsecrets.json",
    "//",
]
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, airflow_home: Path) -> Iterator[Path]:
    """A deployment with one published week of opal, without Airflow."""
    assert airflow_home
    base = tmp_path_factory.mktemp("deployment")
    include, home = base / "include", base / "var"
    for name in ("programmes", "domains"):
        shutil.copytree(ROOT / "include" / name, include / name)
    opal = include / "programmes/opal.yaml"
    opal.write_text(opal.read_text().replace("slot_minutes: 15", "slot_minutes: 240"))
    with pytest.MonkeyPatch.context() as patching:
        patching.setenv("TURNSTILE_HOME", str(home))
        patching.setenv("TURNSTILE_INCLUDE", str(include))
        patching.delenv("TURNSTILE_LEDGER_URL", raising=False)
        assert main(["sample", "opal", "--weeks", WEEK, "--rows", "2000", "--seed", "3"]) == 0
        assert main(["run", "opal", "--week", WEEK]) == 0
        yield home


@pytest.fixture(scope="module")
def site(home: Path, mounted_page: Callable[[], Any]) -> Any:
    """The page of this deployment, mounted as Airflow mounts it."""
    assert home
    return mounted_page()


def _get(site: Any, path: str, **options: Any) -> Any:
    return site.get(f"/privacy-budget{path}", **options)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", METHODS)
def test_every_path_and_method_refuses_who_is_not_logged_in(
    site: Any, method: str, path: str
) -> None:
    answer = site.request(method, f"/privacy-budget{path}", follow_redirects=False)
    assert answer.status_code in {401, 403}
    assert "opal" not in answer.text


@pytest.mark.parametrize("path", PATHS)
def test_rubbish_for_a_token_is_refused(site: Any, path: str) -> None:
    rubbish = {"Authorization": "Bearer rubbish"}
    assert _get(site, path, headers=rubbish).status_code in {401, 403}
    assert _get(site, path, headers={"Cookie": "_token=rubbish"}).status_code in {401, 403}


def test_a_user_who_may_read_no_release_dag_is_refused_everywhere(
    site: Any, auth: Any, bearer: Callable[[str], dict[str, str]]
) -> None:
    with patch.object(type(auth), "is_authorized_dag", return_value=False):
        answers = {path: _get(site, path, headers=bearer("admin")).status_code for path in PATHS}
    assert set(answers.values()) == {403}


def test_a_manager_that_fails_lets_nobody_in(
    site: Any, auth: Any, bearer: Callable[[str], dict[str, str]]
) -> None:
    with patch.object(type(auth), "is_authorized_dag", side_effect=RuntimeError("database gone")):
        answer = _get(site, "/", headers=bearer("admin"))
    assert answer.status_code == 500
    assert "opal" not in answer.text.lower()


def test_a_reader_sees_only_the_programmes_whose_dag_he_may_read(
    site: Any, auth: Any, bearer: Callable[[str], dict[str, str]]
) -> None:
    def only_itms(*_: Any, details: Any, **__: Any) -> bool:
        return bool(details.id == "release_itms")

    with patch.object(type(auth), "is_authorized_dag", side_effect=only_itms):
        shown = _get(site, "/", headers=bearer("viewer")).text
        entries = _get(site, "/data/entries.json", headers=bearer("viewer")).json()
        week = _get(site, f"/week/opal/{WEEK}", headers=bearer("viewer"))
    assert "Bus speeds" in shown
    assert "Opal" not in shown
    assert entries == []
    assert week.status_code == 404


@pytest.mark.parametrize("role", ["viewer", "user", "op", "admin"])
@pytest.mark.parametrize("path", ["/", "/calendar", "/ledger", "/plan", "/quality", PATHS[5]])
def test_every_role_may_read_the_sections(
    site: Any, bearer: Callable[[str], dict[str, str]], role: str, path: str
) -> None:
    answer = _get(site, path, headers=bearer(role))
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    assert "frame-ancestors 'self'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("path", PATHS)
def test_nothing_can_be_written(
    site: Any, bearer: Callable[[str], dict[str, str]], method: str, path: str
) -> None:
    answer = site.request(method, f"/privacy-budget{path}", headers=bearer("admin"))
    assert answer.status_code in {404, 405}


def test_the_figures_are_those_of_the_command_line(
    site: Any, bearer: Callable[[str], dict[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    for view in ("balance", "forecast"):
        assert main(["ledger", view, "--json"]) == 0
        printed = json.loads(capsys.readouterr().out)
        assert _get(site, f"/data/{view}.json", headers=bearer("viewer")).json() == printed
    html = _get(site, "/", headers=bearer("viewer")).text
    assert main(["ledger", "balance", "--json"]) == 0
    spent = [account["spent"] for account in json.loads(capsys.readouterr().out)]
    assert any(figures["rho_nano"] for figures in spent)
    for figures in spent:
        exact = (figures[name] for name in ("epsilon_micro", "rho_nano", "delta_femto"))
        value = ",".join("infinite" if part is None else str(part) for part in exact)
        assert f'value="{value}"' in html


@pytest.fixture
def dags_in_airflow(auth: Any) -> Iterator[None]:
    """What Airflow knows: one programme paused, one not, one that is no longer there."""
    assert auth
    sqlalchemy = importlib.import_module("sqlalchemy")
    model = importlib.import_module("airflow.models.dag").DagModel
    create_session = importlib.import_module("airflow.utils.session").create_session
    known = {"opal": (False, False), "itms": (True, False), "opal_trip": (True, True)}
    bundle = importlib.import_module("airflow.models.dagbundle").DagBundleModel
    with create_session() as session:
        session.add(bundle(name="dags-folder"))
        session.flush()
        for name, (is_paused, is_stale) in known.items():
            row = {"dag_id": f"release_{name}", "is_paused": is_paused, "is_stale": is_stale}
            session.add(model(**row, bundle_name="dags-folder"))
    yield
    with create_session() as session:
        session.execute(sqlalchemy.delete(model))


def _row_of(html: str, programme: str) -> str:
    """Return the words of a programme's row of the first table."""
    rows = [row for row in html.split("<tr>") if f'data-programme="{programme}"' in row]
    return re.sub(r"<[^>]+>", " ", rows[0])


@pytest.mark.usefixtures("dags_in_airflow")
def test_the_page_says_which_programmes_never_ran_and_which_are_paused(
    site: Any, bearer: Callable[[str], dict[str, str]]
) -> None:
    html = _get(site, "/", headers=bearer("viewer")).text
    assert re.search(r"in order\s+active\s+2016-W30", _row_of(html, "opal"))
    assert re.search(r"never run\s+paused\s+never", _row_of(html, "itms"))
    assert re.search(r"never run\s+no DAG\s+never", _row_of(html, "opal_trip"))  # no longer there
    assert re.search(r"never run\s+no DAG\s+never", _row_of(html, "opal_2017"))
    assert 'href="../dags/release_itms"' in html
    assert 'href="../dags/release_opal_trip"' not in html
    assert "<p>Never run.</p>" in _get(site, "/calendar", headers=bearer("viewer")).text
    assert "Never run" in _get(site, "/plan", headers=bearer("viewer")).text


def test_a_reservation_says_what_it_holds_of_each_unit(
    site: Any, bearer: Callable[[str], dict[str, str]]
) -> None:
    text = _get(site, "/ledger?kind=reserved", headers=bearer("viewer")).text
    assert re.search(r"holds card rho [\d.]+, card_day rho [\d.]+", text)


def test_no_section_asks_another_host_for_anything(
    site: Any, bearer: Callable[[str], dict[str, str]]
) -> None:
    shown = [_get(site, path, headers=bearer("viewer")).text for path in PATHS[:6]]
    shown += [_get(site, path, headers=bearer("viewer")).text for path in PATHS[9:11]]
    foreign = re.compile(r"""(?:src|href)\s*=\s*["'](?:https?:)?//|@import|url\(""")
    for text in shown:
        assert not foreign.search(text)
    assert foreign.search('<script src="https://cdn.example/x.js">')  # the check can fail


def test_a_week_shows_map_heat_map_error_bars_and_gates(
    site: Any, bearer: Callable[[str], dict[str, str]]
) -> None:
    text = _get(site, f"/week/opal/{WEEK}", headers=bearer("viewer")).text
    assert text.count("<svg") == 3
    assert text.count("<circle") > 20  # places of the map
    assert 'class="error"' in text
    assert "Assessment" in text
    assert "manifest.json" in text
    assert _get(site, "/week/opal/2016-W31", headers=bearer("viewer")).status_code == 404


def test_a_week_under_embargo_is_for_those_who_may_edit_runs(
    site: Any, bearer: Callable[[str], dict[str, str]]
) -> None:
    answers = {
        role: _get(site, f"/embargoed/opal/{WEEK}", headers=bearer(role)).status_code
        for role in ("viewer", "user", "op", "admin")
    }
    assert answers["viewer"] == 403
    assert answers["admin"] == 200
    assert _get(site, "/embargoed/opal/2016-W31", headers=bearer("admin")).status_code == 404
    assert _get(site, "/embargoed/ferries/2016-W31", headers=bearer("admin")).status_code == 403


def test_a_filter_finds_entries_and_says_how_many(
    site: Any, bearer: Callable[[str], dict[str, str]]
) -> None:
    found = _get(site, "/ledger?kind=sealed&programme=opal&key=W30", headers=bearer("viewer")).text
    none = _get(site, "/ledger?kind=sealed&key=W99&page=x", headers=bearer("viewer")).text
    assert "<p>1 entry</p>" in found
    assert "<p>0 entries</p>" in none


def test_a_page_of_script_tags_in_a_filter_comes_back_as_text(
    site: Any, bearer: Callable[[str], dict[str, str]]
) -> None:
    text = _get(site, "/ledger?key=<script>alert(1)</script>", headers=bearer("viewer")).text
    assert "<script>alert" not in text


def test_the_application_is_built_in_the_api_server_only(airflow_home: Path) -> None:
    assert airflow_home
    page = importlib.import_module("privacy_page")
    assert page.is_api_server(["/venv/bin/airflow", "api-server"])
    assert page.is_api_server(["gunicorn", "airflow.api_fastapi.main:app"])
    assert not page.is_api_server(["/venv/bin/airflow", "scheduler"])
    assert page.PrivacyBudgetPlugin.fastapi_apps == []
