"""The DAG files, parsed once as Airflow parses them, in a throw-away Airflow folder."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def parse(airflow_home: Path) -> Callable[[Path], Any]:
    """Parse a folder or file of DAGs, and return Airflow's DagBag."""
    assert airflow_home.is_dir()

    def parsed(path: Path) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Airflow's own, on its own import
            dagbag = importlib.import_module("airflow.dag_processing.dagbag")
            importlib.import_module("airflow.plugins_manager").get_timetables_plugins()
            return dagbag.DagBag(path)

    return parsed


@pytest.fixture(scope="session")
def bag(parse: Callable[[Path], Any]) -> Any:
    """The project's DAGs."""
    return parse(ROOT / "dags")


@pytest.fixture(scope="session")
def step_task(bag: Any) -> ModuleType:
    """The module of the steps as tasks."""
    assert bag.dags
    return importlib.import_module("step_task")


@pytest.fixture(params=["release_opal", "release_itms", "release_itms_month"])
def dag(request: pytest.FixtureRequest, bag: Any) -> Any:
    """Each DAG in turn."""
    return bag.dags[request.param]


@pytest.fixture(scope="session")
def auth(airflow_home: Path) -> Iterator[Any]:
    """Airflow's own manager of users, with a migrated database behind it."""
    assert airflow_home
    with pytest.MonkeyPatch.context() as patching, warnings.catch_warnings():
        patching.setenv("AIRFLOW__API_AUTH__JWT_SECRET", "tests only, " * 8)
        warnings.simplefilter("ignore")  # Airflow's own, of its own migration
        models = importlib.import_module("airflow.models.dag")
        for name in ("revoked_token", "trigger", "tasklog", "dagrun", "taskinstance", "backfill"):
            importlib.import_module(f"airflow.models.{name}")
        importlib.import_module("airflow.jobs.job")
        settings = importlib.import_module("airflow.settings")
        runs = ("log_template", "backfill", "dag_run", "task_instance")
        for table in ("revoked_token", "dag_bundle", "dag", "job", *runs):
            models.DagModel.metadata.tables[table].create(settings.engine)
        app = importlib.import_module("airflow.api_fastapi.app")
        yield app.create_auth_manager()


@pytest.fixture(scope="session")
def mounted_page(auth: Any) -> Callable[[], Any]:
    """Mount the budget page of the deployment in the environment, and return a client of it."""
    assert auth

    def mounted() -> Any:
        fastapi = importlib.import_module("fastapi")
        page = importlib.import_module("privacy_page")
        outer = fastapi.FastAPI()
        outer.mount(page.PREFIX, page.make_app())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            testclient = importlib.import_module("starlette.testclient")
        return testclient.TestClient(outer, raise_server_exceptions=False)

    return mounted


@pytest.fixture(scope="session")
def bearer(auth: Any) -> Callable[[str], dict[str, str]]:
    """Return the header of a user of a role."""
    user_of = importlib.import_module("airflow.api_fastapi.auth.managers.simple.user")

    def header(role: str) -> dict[str, str]:
        user = user_of.SimpleAuthManagerUser(username=role, role=role)
        return {"Authorization": f"Bearer {auth.generate_jwt(user)}"}

    return header
