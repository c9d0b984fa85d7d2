"""The Privacy budget page behind Airflow's own rights, over HTTP, with and without a user."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from made_homes import MadeHome

from turnstile.cli import main
from turnstile.settings import system_clock

WEEK = "2016-W30"
PATHS = [
    "/",
    "/calendar",
    "/ledger",
    "/plan",
    "/quality",
    "/release",
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
def home(
    tmp_path_factory: pytest.TempPathFactory, public_week: MadeHome, airflow_home: Path
) -> Iterator[Path]:
    """A deployment with one published week of opal, without Airflow."""
    assert airflow_home
    home_copy = public_week.copy(tmp_path_factory.mktemp("page"))
    with pytest.MonkeyPatch.context() as patching:
        home_copy.enter(patching)
        yield home_copy.home


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
    assert "<h1>Nothing here</h1>" in answer.text
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
@pytest.mark.parametrize("path", ["/", "/calendar", "/ledger", "/plan", "/quality", PATHS[6]])
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
    forms = {("POST", "/release"), ("POST", f"/embargoed/opal/{WEEK}")}  # refused: not sent from it
    expected = {422, 403, 404, 405} if (method, path) in forms else {404, 405}
    assert answer.status_code in expected


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


def _words_of(html: str, programme: str) -> str:
    """Return the words about a programme on the first page."""
    parts = html.split("<section")
    section = next(part for part in parts if f'data-programme="{programme}"' in part)
    return " ".join(re.sub(r"<[^>]+>", " ", section.partition("</section>")[0]).split())


@pytest.mark.usefixtures("dags_in_airflow")
def test_the_page_says_which_programmes_never_ran_and_which_are_paused(
    site: Any, bearer: Callable[[str], dict[str, str]]
) -> None:
    html = _get(site, "/", headers=bearer("viewer")).text
    opal = _words_of(html, "opal")
    assert "1 to look at : 2016-W30 is out; 2016-W31 was due on Monday 08 August 2016" in opal
    assert "in Airflow: active" in opal
    assert "2016-W31 to " in opal  # ten years that no run took up are no order
    assert "A card has used 2 % of what it may lose over 52 weeks" in opal
    itms = _words_of(html, "itms")
    assert "never run : nothing is out yet" in itms
    assert "in Airflow: paused" in itms
    assert "in Airflow: no DAG" in _words_of(html, "opal_trip")  # no longer there
    assert "in Airflow: no DAG" in _words_of(html, "opal_2017")
    assert 'href="../dags/release_itms"' in html
    assert 'href="../dags/release_opal_trip"' not in html
    assert "<p>Never run." in _get(site, "/calendar", headers=bearer("viewer")).text
    assert "Never run" in _get(site, "/plan", headers=bearer("viewer")).text
    for programme, is_paused in (("itms", True), ("opal", False)):
        wanted = {"programme": programme, "first": "2016-W31"}
        form = _get(site, "/release", params=wanted, headers=bearer("viewer")).text
        assert ("The DAG is paused: no run begins until" in form) == is_paused


def test_a_reservation_says_what_it_holds_of_each_unit(
    site: Any, bearer: Callable[[str], dict[str, str]]
) -> None:
    text = _get(site, "/ledger?kind=reserved", headers=bearer("viewer")).text
    assert re.search(r"holds card rho [\d.]+, card_day rho [\d.]+", text)


def test_no_section_asks_another_host_for_anything(
    site: Any, bearer: Callable[[str], dict[str, str]]
) -> None:
    shown = [_get(site, path, headers=bearer("viewer")).text for path in PATHS[:7]]
    shown += [_get(site, path, headers=bearer("viewer")).text for path in PATHS[10:12]]
    foreign = re.compile(r"""(?:src|href)\s*=\s*["'](?:https?:)?//|@import|url\(""")
    for text in shown:
        assert not foreign.search(text)
    assert foreign.search('<script src="https://cdn.example/x.js">')  # the check can fail


def test_a_week_shows_map_heat_map_error_bars_and_gates(
    site: Any, bearer: Callable[[str], dict[str, str]]
) -> None:
    text = _get(site, f"/week/opal/{WEEK}", headers=bearer("viewer")).text
    assert text.count("<svg") == 3
    assert "km; north is up" in text
    assert "95 % of the numbers of locations are within" in text
    assert "not applicable" in text
    assert text.count("<circle") > 20  # places of the map
    assert 'class="error"' in text
    assert "Assessment" in text
    assert "manifest.json" in text
    asked = f"/week/opal/{WEEK}?place=2130"
    compared = _get(site, asked, headers=bearer("viewer")).text
    assert "its 95 % interval" in compared
    assert "its 95 % interval" not in text  # no place was chosen
    assert _get(site, "/week/opal/2016-W31", headers=bearer("viewer")).status_code == 404


def test_a_week_under_embargo_is_for_those_who_may_edit_runs(
    site: Any, bearer: Callable[[str], dict[str, str]]
) -> None:
    answers = {
        role: _get(site, f"/embargoed/opal/{WEEK}", headers=bearer(role)).status_code
        for role in ("viewer", "user", "op", "admin")
    }
    assert answers["viewer"] == 403
    assert answers["admin"] == 404  # it is public: nothing of it lies under embargo (test_desk)
    assert _get(site, "/embargoed/opal/2016-W31", headers=bearer("admin")).status_code == 404
    assert _get(site, "/embargoed/ferries/2016-W31", headers=bearer("admin")).status_code == 403


def test_a_filter_finds_entries_and_says_how_many(
    site: Any, bearer: Callable[[str], dict[str, str]]
) -> None:
    page = _get(site, "/ledger?kind=sealed&programme=opal&key=W30", headers=bearer("viewer")).text
    none = _get(site, "/ledger?kind=sealed&key=W99&page=x", headers=bearer("viewer")).text
    assert "<p>1 entry</p>" in page
    assert "<p>0 entries</p>" in none


def test_a_page_of_script_tags_in_a_filter_comes_back_as_text(
    site: Any, bearer: Callable[[str], dict[str, str]]
) -> None:
    text = _get(site, "/ledger?key=<script>alert(1)</script>", headers=bearer("viewer")).text
    assert "<script>alert" not in text


@pytest.mark.parametrize(
    "path", ["/nothing", "/week/opal/rubbish", f"/week/opal/{WEEK}?revision=x"]
)
def test_whatever_a_person_asks_for_is_a_page(
    site: Any, bearer: Callable[[str], dict[str, str]], path: str
) -> None:
    for headers in (bearer("admin"), {}):
        answer = _get(site, path, headers=headers)
        assert answer.status_code in {401, 403, 404}
        assert answer.headers["content-type"].startswith("text/html")
        assert "<h1>Nothing here</h1>" in answer.text
        assert answer.headers["content-security-policy"]
    data = _get(site, "/data/anything.json", headers=bearer("admin"))
    assert data.headers["content-type"] == "application/json"


def test_a_database_that_does_not_answer_is_said_and_nothing_else_is(
    site: Any, bearer: Callable[[str], dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = importlib.import_module("privacy_page")
    errors = importlib.import_module("sqlalchemy.exc")

    def down(*_: object) -> None:
        raise errors.OperationalError("SELECT", {}, OSError("connection refused"))

    assert "A database does not answer" not in _get(site, "/", headers=bearer("viewer")).text
    monkeypatch.setattr(page, "runs_now", down)
    for path in ("/", "/calendar", "/plan", "/release", f"/embargoed/opal/{WEEK}"):
        answer = _get(site, path, headers=bearer("admin"))
        assert answer.status_code == 503
        assert "A database does not answer" in answer.text
        assert "SELECT" not in answer.text


WANTED = {"programme": "opal", "first": WEEK, "last": "2016-W32"}


def test_the_form_shows_what_a_click_would_charge_week_by_week(
    site: Any, bearer: Callable[[str], dict[str, str]]
) -> None:
    viewer = _get(site, "/release", params=WANTED, headers=bearer("viewer")).text
    words = " ".join(re.sub(r"<[^>]+>", " ", viewer).split())
    assert re.search(r"2016-W30 published week sealed on \d{4}-\d\d-\d\d: re-issued, 0 ch", words)
    assert "2016-W31 missing never drawn: once its rows pass validation" in words
    assert "2 of 3 weeks would be charged" in words
    assert "Together: 2 x epsilon" in words
    assert "Left after that: card" in words
    assert "You may look." in words
    for name, is_in_the_way in (("opal_trip", True), ("opal", False)):
        asked = {"programme": name, "first": "2016-W31"}
        text = _get(site, "/release", params=asked, headers=bearer("viewer")).text
        said = "in the way, of the same budget group opal_cards: opal<"
        assert (said in text) == is_in_the_way
    admin = _get(site, "/release", params=WANTED, headers=bearer("admin")).text
    assert "Release 3 weeks" in admin
    for last in ("2016-W29", "2019-W30", "2016-W99"):
        wrong = _get(site, "/release", params=WANTED | {"last": last}, headers=bearer("admin"))
        assert 'role="alert"' in wrong.text


def test_a_week_that_is_not_over_is_not_asked_for(
    site: Any, bearer: Callable[[str], dict[str, str]]
) -> None:
    """Airflow would begin its run, do nothing of it, and begin no other until the week begins."""
    now = system_clock()
    for days, is_over in ((-15, True), (0, False), (30, False)):
        week = f"{now + timedelta(days=days):%G-W%V}"
        asked = {"programme": "opal", "first": week, "last": week}
        text = _get(site, "/release", params=asked, headers=bearer("admin")).text
        assert ("Release 1 week" in text) == is_over
        assert (f"week {week} is not over before" in text) == (not is_over)
        form = asked | {"seen": "what was shown"}
        clicked = site.post("/privacy-budget/release", data=form, headers=bearer("admin")).text
        assert ("Something changed since this was shown" in clicked) == is_over


def test_a_click_by_another_site_without_the_right_or_on_something_else_asks_for_nothing(
    site: Any, bearer: Callable[[str], dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("release_form")
    asking = importlib.import_module("asking_airflow")
    monkeypatch.setattr(asking, "application_of_airflow", lambda: pytest.fail("Airflow was asked"))
    monkeypatch.setattr(module, "runs_by_start", lambda _: {})

    def click(role: str, **headers: str) -> Any:
        return site.post(
            "/privacy-budget/release",
            data=WANTED | {"seen": "something else"},
            headers=bearer(role) | headers,
        )

    assert click("viewer").status_code == 403
    assert click("admin", Origin="http://evil.example").status_code == 403
    assert click("admin", **{"Sec-Fetch-Site": "cross-site"}).status_code == 403
    changed = click("admin")
    assert changed.status_code == 200
    assert "Nothing was asked for; look again" in changed.text


def test_a_click_asks_airflow_for_each_week_by_name_in_the_persons_name(
    site: Any, bearer: Callable[[str], dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    fastapi = importlib.import_module("fastapi")
    module, asked = importlib.import_module("release_form"), []
    airflow = fastapi.FastAPI()

    async def started(request: Any) -> Any:
        asked.append((request.headers["authorization"], await request.json()))
        return fastapi.Response("no room", status_code=409 if len(asked) > 1 else 200)

    airflow.add_route("/api/v2/dags/release_opal/dagRuns", started, methods=["POST"])
    asking = importlib.import_module("asking_airflow")
    monkeypatch.setattr(asking, "application_of_airflow", lambda: airflow)
    monkeypatch.setattr(module, "runs_by_start", lambda _: {})
    wanted = WANTED | {"first": "2016-W31"}
    shown = _get(site, "/release", params=wanted, headers=bearer("admin")).text
    seen = re.search(r'name="seen" value="(\w+)"', shown)
    assert seen is not None
    headers, form = bearer("admin"), wanted | {"seen": seen[1]}
    without = site.post("/privacy-budget/release", data=form, headers=headers)
    assert "Airflow has no DAG of opal, so nothing was asked for" in without.text
    page = importlib.import_module("privacy_page")
    monkeypatch.setattr(page, "paused_by_dag", lambda _: {"release_opal": False})
    assert asked == []
    answer = site.post("/privacy-budget/release", data=form, headers=headers)
    assert [body["dag_run_id"] for _, body in asked] == ["opal_2016-W31", "opal_2016-W32"]
    assert {token for token, _ in asked} == {headers["Authorization"]}
    assert asked[0][1]["logical_date"] == "2016-07-31T14:00:00+00:00"
    models = importlib.import_module("airflow.api_fastapi.core_api.datamodels.dag_run")
    taken = [models.TriggerDAGRunPostBody(**body) for _, body in asked]
    assert [run.run_after for run in taken] == [run.data_interval_end for run in taken]
    assert "Asked for: opal_2016-W31. Airflow refused opal_2016-W32 (409): no room" in answer.text


def test_a_run_of_a_canceled_backfill_is_not_asked_for(
    site: Any, bearer: Callable[[str], dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    module, page = importlib.import_module("release_form"), importlib.import_module("privacy_page")
    asking = importlib.import_module("asking_airflow")
    requests = importlib.import_module("turnstile.operations.week_requests")
    monkeypatch.setattr(asking, "application_of_airflow", lambda: pytest.fail("Airflow was asked"))
    monkeypatch.setattr(page, "paused_by_dag", lambda _: {"release_opal": False})
    start = datetime(2016, 7, 31, 14, tzinfo=UTC)
    held = requests.KnownRun("backfill__1", "failed", is_held_back=True)
    monkeypatch.setattr(module, "runs_by_start", lambda _: {start: held})
    wanted = WANTED | {"first": "2016-W31"}
    shown = _get(site, "/release", params=wanted, headers=bearer("admin")).text
    seen = re.search(r'name="seen" value="(\w+)"', shown)
    assert seen is not None
    form = wanted | {"seen": seen[1]}
    answer = site.post("/privacy-budget/release", data=form, headers=bearer("admin"))
    assert "so nothing was asked for: backfill__1." in answer.text
    assert "delete these runs there, then ask again" in answer.text


def test_the_application_is_built_in_the_api_server_only(airflow_home: Path) -> None:
    assert airflow_home
    page = importlib.import_module("privacy_page")
    assert page.is_api_server(["/venv/bin/airflow", "api-server"])
    assert page.is_api_server(["gunicorn", "airflow.api_fastapi.main:app"])
    assert not page.is_api_server(["/venv/bin/airflow", "scheduler"])
    assert page.PrivacyBudgetPlugin.fastapi_apps == []
