"""The Privacy budget page behind Airflow's own rights, over HTTP, with and without a user."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import warnings
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
def auth(airflow_home: Path) -> Iterator[Any]:
    """Airflow's own manager of users, with a migrated database behind it."""
    assert airflow_home
    with pytest.MonkeyPatch.context() as patching, warnings.catch_warnings():
        patching.setenv("AIRFLOW__API_AUTH__JWT_SECRET", "tests only, " * 8)
        warnings.simplefilter("ignore")  # Airflow's own, of its own migration
        models = importlib.import_module("airflow.models.revoked_token")
        settings = importlib.import_module("airflow.settings")
        models.RevokedToken.metadata.tables["revoked_token"].create(settings.engine)
        app = importlib.import_module("airflow.api_fastapi.app")
        yield app.create_auth_manager()


@pytest.fixture(scope="module")
def site(home: Path, auth: Any, airflow_home: Path) -> Any:
    """The page, mounted as Airflow mounts it."""
    assert home
    assert auth
    assert airflow_home
    fastapi = importlib.import_module("fastapi")
    page = importlib.import_module("privacy_page")
    outer = fastapi.FastAPI()
    outer.mount(page.PREFIX, page.make_app())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        testclient = importlib.import_module("starlette.testclient")
    return testclient.TestClient(outer, raise_server_exceptions=False)


@pytest.fixture(scope="module")
def bearer(auth: Any) -> Callable[[str], dict[str, str]]:
    """Return the header of a user of a role."""
    user_of = importlib.import_module("airflow.api_fastapi.auth.managers.simple.user")

    def header(role: str) -> dict[str, str]:
        user = user_of.SimpleAuthManagerUser(username=role, role=role)
        return {"Authorization": f"Bearer {auth.generate_jwt(user)}"}

    return header


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
    assert "<p>1 entries</p>" in found
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
