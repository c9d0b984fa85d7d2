"""docker-compose.yaml: valid, complete, without a secret in it, and the same Airflow as ours."""

from __future__ import annotations

import importlib
import re
import shlex
import subprocess
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from compose_natively import services

from turnstile.settings import Settings
from turnstile_native.native_environment import Secrets, airflow_environment

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = ROOT / "docker-compose.yaml"
WORKERS = {"worker", "worker-private"}
METADATA = {"init", "api-server", "scheduler", "dag-processor", "triggerer", "housekeeping"}
AIRFLOW_SERVICES = METADATA | WORKERS
ONCE = {"init", "init-ledger"}
UNCHECKED = {"housekeeping"}  # it sleeps
ZONES = "/var/lib/turnstile"
SHOWN = {f"{ZONES}/{folder}" for folder in ("public", "embargoed", "operations")}
# Where the two differ on purpose: real users, and a schedule that runs by itself.
NATIVE_ONLY = {
    "AIRFLOW_CONN_TURNSTILE_AIRFLOW",  # under Compose the init service makes it
    "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE",
    "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS",
    "AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE",
}
OF_METADATA = {
    "AIRFLOW__API_AUTH__JWT_SECRET_CMD",
    "AIRFLOW__CORE__FERNET_KEY_CMD",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_CMD",
}
SECRET_NAME = re.compile(r"SECRET|PASSWORD|FERNET|SQL_ALCHEMY_CONN|LEDGER_URL|BROKER|RESULT")
VARIABLE = re.compile(r"(?<!\$)\$\{(\w+)(:[?-][^}]*)?\}")
IN_FILE = re.compile(r"/run/secrets/\w+|/opt/turnstile/docker/with-secret\.sh \w+ ")


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
    assert lasting == set(compose["services"]) - ONCE - UNCHECKED


def test_no_health_check_starts_airflow_or_celery(compose: Any) -> None:
    for service in compose["services"].values():
        words = " ".join(service.get("healthcheck", {}).get("test", ()))
        assert not re.search(r"airflow|celery", words.replace("/opt/turnstile/docker/", ""))


def test_the_image_holds_the_code_and_no_service_can_change_it(compose: Any) -> None:
    for name in AIRFLOW_SERVICES | {"init-ledger"}:
        service = compose["services"][name]
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges"]
        assert not [mount for mount in service["volumes"] if mount.startswith(".")]


def test_every_service_has_bounds_and_logs_that_rotate(compose: Any) -> None:
    for service in compose["services"].values():
        assert service["mem_limit"]
        assert service["logging"]["options"] == {"max-size": "10m", "max-file": "5"}


def test_a_worker_stops_before_what_its_draw_writes_to(compose: Any) -> None:
    for name in WORKERS:
        assert {"postgres", "redis", "api-server"} <= set(compose["services"][name]["depends_on"])


def test_what_sees_raw_data_reaches_no_web(compose: Any) -> None:
    closed = {
        name for name, network in compose["networks"].items() if network and network.get("internal")
    }
    assert set(compose["services"]["worker-private"]["networks"]) <= closed
    open_to_the_web = {
        name for name, service in compose["services"].items() if set(service["networks"]) - closed
    }
    assert open_to_the_web == {"worker", "api-server"}


def test_every_task_has_a_worker_that_listens_to_its_queue(compose: Any) -> None:
    def queue(name: str) -> str:
        words: list[str] = compose["services"][name]["command"]
        return words[words.index("--queues") + 1]

    assert {queue(name) for name in WORKERS} == {"private", "default"}
    assert queue("worker-private") == "private"


def test_containers_are_given_the_settings_of_the_native_airflow(
    compose: Any, native_environment: dict[str, str]
) -> None:
    native = {key for key in native_environment if key.startswith(("AIRFLOW", "GX", "TURNSTILE"))}
    given = {*compose["services"]["worker"]["environment"],
             *compose["services"]["scheduler"]["environment"]}  # fmt: skip
    assert native - {key.removesuffix("_CMD") for key in given} == NATIVE_ONLY


def test_a_task_that_no_worker_takes_is_queued_anew_and_never_failed_for_it(compose: Any) -> None:
    given, of = compose["services"]["scheduler"]["environment"], "AIRFLOW__SCHEDULER__"
    seconds = int(given[f"{of}TASK_QUEUED_TIMEOUT"])
    assert seconds * int(given[f"{of}NUM_STUCK_IN_QUEUED_RETRIES"]) > 365 * 86_400
    spec = find_spec("airflow.jobs")
    assert spec is not None
    assert spec.origin is not None
    scheduler = Path(spec.origin).with_name("scheduler_job_runner.py").read_text()
    assert 'key="num_stuck_in_queued_retries"' in scheduler  # Airflow's reference names it nowhere


def _mounts(compose: Any, service: str) -> dict[str, tuple[str, str]]:
    """Return target to volume and mode."""
    split = (mount.split(":") for mount in compose["services"][service].get("volumes", ()))
    return {target: (source, "".join(mode) or "rw") for source, target, *mode in split}


def _logins(compose: Any) -> dict[str, str]:
    """Return the ledger's role that each service connects as."""
    matches = {
        name: re.fullmatch(r"postgresql\+psycopg://(\w+)@.*", str(url))
        for name, service in compose["services"].items()
        if (url := service.get("environment", {}).get("TURNSTILE_LEDGER_URL"))
    }
    return {name: match[1] for name, match in matches.items() if match}


def test_each_service_connects_to_the_ledger_as_the_least_that_it_needs(compose: Any) -> None:
    assert _logins(compose) == {
        "init-ledger": "turnstile_ledger",
        "worker": "turnstile_release",
        "worker-private": "turnstile_release",
        "api-server": "turnstile_page",
    }


def _secrets(compose: Any, service: str) -> set[str]:
    return set(compose["services"][service].get("secrets", ()))


def test_workers_cannot_open_the_metadata_database(compose: Any) -> None:
    for name in (*WORKERS, "init-ledger"):
        assert not set(compose["services"][name]["environment"]) & OF_METADATA
        assert not {
            secret for secret in _secrets(compose, name) if "database" in secret or "jwt" in secret
        }


def test_each_service_is_given_the_ledgers_password_of_its_own_role_only(compose: Any) -> None:
    roles = {"init-ledger": "owner", "worker": "writer", "worker-private": "writer",
             "api-server": "reader"}  # fmt: skip
    for name in set(compose["services"]) - {"postgres"}:
        given = {secret for secret in _secrets(compose, name) if secret.startswith("ledger_")}
        assert given == ({f"ledger_{roles[name]}_password"} if name in roles else set())


def _reach(compose: Any, service: str) -> set[tuple[str, str]]:
    """Return every folder of the deployment's own data that a service sees, with its mode."""
    mounts = _mounts(compose, service).items()
    return {(target, mode) for target, (_, mode) in mounts if target.startswith("/var/lib")}


def test_the_page_sees_three_folders_and_can_write_to_none(compose: Any) -> None:
    assert _reach(compose, "api-server") == {(folder, "ro") for folder in SHOWN}


def test_what_the_page_sees_is_what_workers_write(compose: Any) -> None:
    page = _mounts(compose, "api-server")
    for name in WORKERS:
        worker = _mounts(compose, name)
        assert {page[folder][0] for folder in SHOWN} == {worker[folder][0] for folder in SHOWN}


def _seeing(compose: Any, volumes: set[str]) -> set[str]:
    """Name the services that mount one of some volumes."""
    return {
        name
        for name in compose["services"]
        if volumes & {source for source, _ in _mounts(compose, name).values()}
    }


def test_one_service_sees_raw_data(compose: Any) -> None:
    assert _seeing(compose, {"landing", "private"}) == {"worker-private"}
    assert _seeing(compose, {"keys", "witness"}) == WORKERS
    assert {name for name in compose["services"] if _reach(compose, name)} == {
        *WORKERS,
        "api-server",
        "postgres",
    }


def test_a_package_index_is_handed_to_the_build_and_stands_in_no_layer(compose: Any) -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert compose["services"]["worker"]["build"]["secrets"] == ["pip_conf"]
    steps = text.replace("\\\n", " ").splitlines()
    installs = [step for step in steps if step.startswith("RUN") and "--require-hashes" in step]
    assert len(installs) == 1
    assert "--mount=type=secret,id=pip_conf,target=/etc/pip.conf" in installs[0]
    assert not [step for step in steps if step.startswith(("COPY", "ARG", "ENV")) and "pip" in step]
    given = {
        name for service in compose["services"].values() for name in service.get("secrets", ())
    }
    assert "pip_conf" not in given  # no container runs with it


def test_a_page_that_saw_the_private_zone_would_be_seen() -> None:
    volumes = [f"private:{ZONES}/private", f"public:{ZONES}/public:ro"]
    compose = {"services": {"api-server": {"volumes": volumes}}}
    assert _reach(compose, "api-server") == {(f"{ZONES}/private", "rw"), (f"{ZONES}/public", "ro")}
    assert _seeing(compose, {"private"}) == {"api-server"}


def test_the_context_of_the_image_has_what_the_image_copies() -> None:
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    copied = [line.split()[1] for line in lines if line.startswith("COPY ") and "--" not in line]
    let_in = {
        line.removeprefix("!")
        for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
        if line.startswith("!")
    }
    assert "extensions/" in copied
    assert {name.rstrip("/") for name in copied} <= let_in


def test_the_image_has_a_folder_of_its_user_for_every_volume(compose: Any) -> None:
    """A volume takes its owner from the image's folder; where there is none, root owns it."""
    made = (ROOT / "Dockerfile").read_text(encoding="utf-8").partition("mkdir -p")[2]
    folders = made.partition("&&")[0].replace("\\", " ").split()
    for name in WORKERS:
        inside = {target for target, _ in _reach(compose, name)}
        assert inside <= {*folders, f"{ZONES}/private"}  # made with private/failures


def test_the_ledger_has_a_database_of_its_own(compose: Any) -> None:
    services = compose["services"]
    metadata = services["init"]["environment"]["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_CMD"]
    assert metadata.endswith("@postgres/airflow")
    for name in _logins(compose):
        url = services[name]["environment"]["TURNSTILE_LEDGER_URL"]
        assert url.endswith("@postgres/turnstile_ledger")


def _secrets_in_clear(compose: Any) -> set[str]:
    """Name the settings that look like secrets and do not come from a file."""
    return {
        key
        for service in compose["services"].values()
        for key, value in service.get("environment", {}).items()
        if SECRET_NAME.search(key)
        and not IN_FILE.search(str(value))
        and not re.fullmatch(r"postgresql\+psycopg://\w+@postgres/\w+", str(value))
    }


def test_every_secret_comes_from_a_file(compose: Any) -> None:
    assert _secrets_in_clear(compose) == set()
    assert "REDIS_PASSWORD" not in COMPOSE.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "value", ["hunter2", "${REDIS_PASSWORD}", "postgresql+psycopg://a:b@postgres/ledger"]
)
def test_a_secret_in_clear_is_seen(value: str) -> None:
    service = {"environment": {"REDIS_PASSWORD": value, "AIRFLOW_HOME": "/opt"}}
    assert _secrets_in_clear({"services": {"redis": service}}) == {"REDIS_PASSWORD"}


def test_secrets_of_portals_are_handed_to_the_worker_that_reaches_them(tmp_path: Path) -> None:
    text = (ROOT / "docs/PORTALS.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```yaml\n(services:.*?)```", text, re.DOTALL)
    path = tmp_path / "docker-compose.override.yaml"
    path.write_text(example, encoding="utf-8")
    assert _check_schema(path) == 0
    override = yaml.safe_load(example)
    assert override["services"].keys() == {"worker"}
    assert override["services"]["worker"]["secrets"] == list(override["secrets"])
    given = override["services"]["worker"]["environment"]
    assert given.keys() == {"AWS_SHARED_CREDENTIALS_FILE", "TURNSTILE_CKAN_TOKEN"}
    file = given["AWS_SHARED_CREDENTIALS_FILE"]
    assert file.removeprefix("/run/secrets/") in override["secrets"]


def _made_secrets(folder: Path) -> dict[str, str]:
    script = ROOT / "docker/make-secrets.sh"
    subprocess.run([str(script), str(folder)], check=True)  # noqa: S603 - our own script
    return {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir()}


def test_a_script_makes_every_secret_and_none_twice(compose: Any, tmp_path: Path) -> None:
    made = _made_secrets(tmp_path / "secrets")
    assert set(made) == set(compose["secrets"]) - {"pip_conf"}  # the operator's, if there is one
    random = set(made) - {"airflow_connections"}
    assert len({made[name] for name in random}) == len(random)
    assert all(len(made[name]) >= 43 for name in random)
    assert (tmp_path / "secrets").stat().st_mode & 0o777 == 0o700
    (tmp_path / "secrets/redis_password").unlink()
    again = _made_secrets(tmp_path / "secrets")
    assert {name for name in made if made[name] != again[name]} == {"redis_password"}


def test_the_example_names_every_variable_with_its_default() -> None:
    text = (ROOT / ".env.example").read_text(encoding="utf-8")
    given = dict(re.findall(r"^([A-Z_]+)=(.*)$", text, re.MULTILINE))
    asked = dict(VARIABLE.findall(COMPOSE.read_text(encoding="utf-8")))
    assert given == {name: default.removeprefix(":-") for name, default in asked.items()}


@pytest.mark.parametrize(("given", "value"), [({}, ""), ({"TURNSTILE_MEMORY_LIMIT": "4GB"}, "4GB")])
def test_a_variable_that_nobody_set_is_empty_and_no_word(given: dict[str, str], value: str) -> None:
    environment = services(COMPOSE, given)["worker"]["environment"]
    assert environment["TURNSTILE_MEMORY_LIMIT"] == value


def test_a_draw_that_died_does_not_hold_up_the_other_programmes() -> None:
    script = (ROOT / "docker/initialize-airflow.sh").read_text(encoding="utf-8")
    assert "airflow pools set turnstile_ledger 2 " in script


def test_fab_lets_the_reader_see_what_approvals_and_the_watchdog_ask(airflow_home: Path) -> None:
    """A right to the audit log alone opens no list of it, and no line of a DAG."""
    assert airflow_home
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Airflow's own, on its own import
        fab = importlib.import_module("airflow.providers.fab.auth_manager.fab_auth_manager")
    of = importlib.import_module("airflow.api_fastapi.auth.managers.models.resource_details")
    script = (ROOT / "docker/initialize-airflow.sh").read_text(encoding="utf-8")
    words = shlex.split(script[script.index('add-perms "Audit log"') :].partition("\nmake_user")[0])
    rights = {("can_read", name) for name in words[words.index("--resource") + 1 :]}

    def may(method: str, entity: Any, dag: str | None, rights: set[tuple[str, str]]) -> bool:
        details, user = of.DagDetails(id=dag), SimpleNamespace(perms=rights)
        return fab.FabAuthManager().is_authorized_dag(
            method=method, access_entity=entity, details=details, user=user
        )

    entities = of.DagAccessEntity
    asked = [(entities.AUDIT_LOG, None)]  # as the list of events is asked for
    dag = (None, entities.AUDIT_LOG, entities.RUN, entities.TASK_INSTANCE)  # a backfill is a run
    asked += [(entity, "release_opal") for entity in dag]
    assert all(may("GET", *door, rights) for door in asked)
    assert not any(may("PUT", *door, rights) for door in asked)
    assert not any(may("GET", *door, {("can_read", "Audit Logs")}) for door in asked)


def test_a_password_may_begin_like_an_option(tmp_path: Path) -> None:
    airflow = tmp_path / "airflow"
    airflow.write_text(
        f"#!{sys.executable}\n"
        "import argparse, sys\n"
        "parser = argparse.ArgumentParser(allow_abbrev=False)\n"
        "parser.add_argument('--password', required=sys.argv[1:3] == ['users', 'create'])\n"
        "print(parser.parse_known_args()[0].password)\n"
    )
    airflow.chmod(0o755)
    for name in ("airflow_admin_password", "airflow_reader_password", "airflow_connections"):
        (tmp_path / name).write_text("-secret")
    done = subprocess.run(  # noqa: S603 - our own script
        ["/bin/bash", str(ROOT / "docker/initialize-airflow.sh")],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "SECRETS": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split().count("-secret") == 2, "one for each user"
