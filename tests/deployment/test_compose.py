"""docker-compose.yaml: valid, complete, without a secret in it, and the same Airflow as ours."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from turnstile.deployment.native_environment import Secrets, airflow_environment
from turnstile.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = ROOT / "docker-compose.yaml"
AIRFLOW_SERVICES = {"init", "api-server", "scheduler", "dag-processor", "triggerer", "worker"}
ONCE = {"init", "init-ledger"}
ZONES = "/var/lib/turnstile"
SHOWN = {f"{ZONES}/{folder}" for folder in ("public", "embargoed", "operations")}
# Where the two differ on purpose: real users, and a schedule that runs by itself.
NATIVE_ONLY = {
    "AIRFLOW_CONN_TURNSTILE_AIRFLOW",  # under Compose made by hand, with a role (docs/RUNBOOK.md)
    "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE",
    "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS",
    "AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE",
}
OF_METADATA = {
    "AIRFLOW__API_AUTH__JWT_SECRET",
    "AIRFLOW__CORE__FERNET_KEY",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN",
}
SECRET_NAME = re.compile(r"SECRET|PASSWORD|FERNET|SQL_ALCHEMY_CONN|LEDGER_URL|BROKER|RESULT")
VARIABLE = re.compile(r"(?<!\$)\$\{(\w+)(:[?-][^}]*)?\}")


@pytest.fixture(scope="module")
def compose() -> Any:
    return yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def native_environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("home")
    settings = Settings(home, f"sqlite:///{home}/ledger.sqlite", (), ROOT / "include")
    return airflow_environment(settings, Secrets("a", "b", "c", "d"), port=8080, inherited={})


def _check_schema(path: Path) -> int:
    """Ask check-jsonschema, which carries the schema of the Compose specification."""
    return subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", path],
        capture_output=True,
        check=False,
    ).returncode


def test_the_file_follows_the_compose_specification() -> None:
    assert _check_schema(COMPOSE) == 0


def test_a_misspelled_key_does_not(tmp_path: Path) -> None:
    broken = tmp_path / "docker-compose.yaml"
    text = COMPOSE.read_text(encoding="utf-8").replace("healthcheck:", "healthchek:")
    broken.write_text(text, encoding="utf-8")
    assert _check_schema(broken) == 1


def test_every_service_that_airflow_needs_is_there(compose: Any) -> None:
    assert set(compose["services"]) == AIRFLOW_SERVICES | ONCE | {"postgres", "redis"}


def test_every_lasting_service_has_a_health_check(compose: Any) -> None:
    lasting = {name for name, service in compose["services"].items() if "healthcheck" in service}
    assert lasting == set(compose["services"]) - ONCE


def test_every_airflow_service_has_the_project_as_it_is_laid_out(compose: Any) -> None:
    for name in AIRFLOW_SERVICES:
        mounts = {mount.split(":")[0] for mount in compose["services"][name]["volumes"]}
        assert {"./dags", "./plugins", "./include"} <= mounts
        assert all((ROOT / mount).is_dir() for mount in mounts if mount.startswith("./"))


def test_containers_are_given_the_settings_of_the_native_airflow(
    compose: Any, native_environment: dict[str, str]
) -> None:
    native = {key for key in native_environment if key.startswith(("AIRFLOW", "GX", "TURNSTILE"))}
    worker = set(compose["services"]["worker"]["environment"])
    scheduler = set(compose["services"]["scheduler"]["environment"])
    assert native - (worker | scheduler) == NATIVE_ONLY


def _mounts(compose: Any, service: str) -> dict[str, tuple[str, str]]:
    """Return target to volume and mode."""
    split = (mount.split(":") for mount in compose["services"][service].get("volumes", ()))
    return {target: (source, "".join(mode) or "rw") for source, target, *mode in split}


def _logins(compose: Any) -> dict[str, str]:
    """Return the ledger's role that each service connects as."""
    found = {
        name: re.fullmatch(r"postgresql\+psycopg://(\w+):\$\{.*", str(url))
        for name, service in compose["services"].items()
        if (url := service.get("environment", {}).get("TURNSTILE_LEDGER_URL"))
    }
    return {name: match[1] for name, match in found.items() if match}


def test_each_service_connects_to_the_ledger_as_the_least_that_it_needs(compose: Any) -> None:
    assert _logins(compose) == {
        "init-ledger": "turnstile_ledger",
        "worker": "turnstile_release",
        "api-server": "turnstile_page",
    }


def test_workers_cannot_open_the_metadata_database(compose: Any) -> None:
    assert not set(compose["services"]["worker"]["environment"]) & OF_METADATA
    assert not set(compose["services"]["init-ledger"]["environment"]) & OF_METADATA


def _reach(compose: Any, service: str) -> set[tuple[str, str]]:
    """Return every folder of the deployment's own data that a service sees, with its mode."""
    mounts = _mounts(compose, service).items()
    return {(target, mode) for target, (_, mode) in mounts if target.startswith("/var/lib")}


def test_the_page_sees_three_folders_and_can_write_to_none(compose: Any) -> None:
    assert _reach(compose, "api-server") == {(folder, "ro") for folder in SHOWN}


def test_what_the_page_sees_is_what_workers_write_and_holds_nothing_else(compose: Any) -> None:
    page, worker = _mounts(compose, "api-server"), _mounts(compose, "worker")
    assert {page[folder][0] for folder in SHOWN} == {worker[folder][0] for folder in SHOWN}
    others = {source for target, (source, _) in worker.items() if target not in SHOWN}
    assert not {page[folder][0] for folder in SHOWN} & others
    assert worker[ZONES] == ("zones", "rw")  # landing, private and the signing key stay there


def test_only_workers_see_anything_that_is_private(compose: Any) -> None:
    private = {"zones", "witness"}
    seeing = {
        name
        for name in compose["services"]
        if private & {source for source, _ in _mounts(compose, name).values()}
    }
    assert seeing == {"worker"}
    assert {name for name in compose["services"] if _reach(compose, name)} == {
        "worker",
        "api-server",
        "postgres",
    }


def test_a_page_that_saw_the_private_zone_would_be_seen() -> None:
    volumes = [f"zones:{ZONES}", f"public:{ZONES}/public:ro"]
    compose = {"services": {"api-server": {"volumes": volumes}}}
    assert _reach(compose, "api-server") == {(ZONES, "rw"), (f"{ZONES}/public", "ro")}


def test_the_image_has_a_folder_of_its_user_for_every_volume(compose: Any) -> None:
    """A volume takes its owner from the image's folder; where there is none, root owns it."""
    made = (ROOT / "Dockerfile").read_text(encoding="utf-8").partition("mkdir -p")[2]
    folders = made.partition("&&")[0].replace("\\", " ").split()
    assert {target for target, _ in _reach(compose, "worker")} - {ZONES} <= set(folders)


def test_the_ledger_has_a_database_of_its_own(compose: Any) -> None:
    services = compose["services"]
    metadata = services["init"]["environment"]["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"]
    assert metadata.endswith("@postgres/airflow")
    assert "LEDGER" not in metadata
    for name in _logins(compose):
        url = services[name]["environment"]["TURNSTILE_LEDGER_URL"]
        assert url.endswith("@postgres/turnstile_ledger")
        assert "LEDGER_" in url


def _secrets_in_clear(compose: Any) -> set[str]:
    """Name the settings that look like secrets and do not come from the environment."""
    return {
        key
        for service in compose["services"].values()
        for key, value in service.get("environment", {}).items()
        if SECRET_NAME.search(key) and not re.search(r"\$\{\w+:\?[^}]+\}", str(value))
    }


def test_every_secret_comes_from_the_environment(compose: Any) -> None:
    assert _secrets_in_clear(compose) == set()


def test_a_secret_in_clear_is_seen() -> None:
    service = {"environment": {"REDIS_PASSWORD": "hunter2", "AIRFLOW_HOME": "/opt"}}
    assert _secrets_in_clear({"services": {"redis": service}}) == {"REDIS_PASSWORD"}


def test_the_example_names_every_variable_and_gives_no_secret() -> None:
    text = (ROOT / ".env.example").read_text(encoding="utf-8")
    given = dict(re.findall(r"^([A-Z_]+)=(.*)$", text, re.MULTILINE))
    asked = {name for name, _ in VARIABLE.findall(COMPOSE.read_text(encoding="utf-8"))}
    assert set(given) == asked
    assert {name for name, value in given.items() if value} == {"AIRFLOW_PORT"}


def test_the_pool_of_the_ledger_is_made_with_one_slot() -> None:
    script = (ROOT / "docker/initialize-airflow.sh").read_text(encoding="utf-8")
    assert "airflow pools set turnstile_ledger 1 " in script
