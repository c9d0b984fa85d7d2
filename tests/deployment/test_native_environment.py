"""The native Airflow's environment: its own, and with secrets that only the owner reads."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from turnstile.commands.airflow_settings import AirflowSettings
from turnstile.settings import Settings
from turnstile_native.native_environment import (
    Secrets,
    airflow_environment,
    airflow_home,
    write_passwords,
)


def _settings(home: Path) -> Settings:
    return Settings(home, f"sqlite:///{home}/ledger.sqlite", (), home / "project/include")


def test_secrets_are_made_once_and_are_the_owners(tmp_path: Path) -> None:
    home = tmp_path / "airflow"
    first = Secrets.of_folder(home)
    assert Secrets.of_folder(home) == first
    assert Secrets.of_folder(tmp_path / "other") != first
    assert len(base64.urlsafe_b64decode(first.fernet_key)) == 32
    passwords = write_passwords(home, first)
    assert json.loads(passwords.read_text(encoding="utf-8")) == {
        "admin": first.admin_password,
        "audit_reader": first.reader_password,
    }
    for path in home.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600, path.name


def test_another_airflow_of_the_machine_is_left_out(tmp_path: Path) -> None:
    inherited = {
        "PATH": "/usr/bin",
        "AIRFLOW_HOME": "/srv/airflow",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": "postgresql://production",
        "AIRFLOW_CONN_WAREHOUSE": "postgresql://production",
    }
    made = airflow_environment(
        _settings(tmp_path), Secrets("a", "b", "c", "d"), port=1, inherited=inherited
    )
    assert made["PATH"] == "/usr/bin"
    assert made["AIRFLOW_HOME"] == str(tmp_path / "airflow")
    assert not any("production" in value for value in made.values())


def test_everything_is_below_one_folder_and_on_the_loopback_interface(tmp_path: Path) -> None:
    settings = _settings(tmp_path)
    made = airflow_environment(settings, Secrets("a", "b", "c", "d"), port=8181, inherited={})
    assert made["AIRFLOW__API__HOST"] == "127.0.0.1"
    assert made["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] == "http://127.0.0.1:8181/execution/"
    paths = [value for value in made.values() if value.startswith("/")]
    assert all(Path(path).is_relative_to(tmp_path) for path in paths)
    assert airflow_home(settings).is_relative_to(settings.home)


def test_the_password_is_in_no_variable(tmp_path: Path) -> None:
    held = Secrets.of_folder(tmp_path / "airflow")
    made = airflow_environment(_settings(tmp_path), held, port=1, inherited={})
    assert held.admin_password not in made.values()
    assert held.jwt_secret in made.values()


def test_tasks_may_ask_who_cleared_their_run_in_a_fresh_installation(tmp_path: Path) -> None:
    held = Secrets.of_folder(tmp_path / "airflow")
    made = airflow_environment(_settings(tmp_path), held, port=81, inherited={})
    connection = json.loads(made["AIRFLOW_CONN_TURNSTILE_AIRFLOW"])
    assert (connection["login"], connection["port"]) == ("audit_reader", 81)
    assert connection["password"] == held.reader_password
    assert "audit_reader:viewer" in made["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS"]


def test_secrets_of_an_older_version_get_what_they_lack_and_keep_the_rest(tmp_path: Path) -> None:
    old = {"jwt_secret": "a", "api_secret_key": "b", "fernet_key": "c", "admin_password": "d"}
    (tmp_path / "secrets.json").write_text(json.dumps(old), encoding="utf-8")
    first = Secrets.of_folder(tmp_path)
    assert (first.admin_password, bool(first.reader_password)) == ("d", True)
    assert Secrets.of_folder(tmp_path) == first


def test_a_postgresql_that_is_given_holds_airflows_metadata(tmp_path: Path) -> None:
    url = "postgresql+psycopg2://airflow@127.0.0.1/airflow"
    given = {"TURNSTILE_AIRFLOW_DATABASE": url}
    held = Secrets("a", "b", "c", "d")
    name = "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"
    made = airflow_environment(_settings(tmp_path), held, port=1, inherited=given)
    assert made[name] == url
    without = airflow_environment(_settings(tmp_path), held, port=1, inherited={})
    assert without[name].startswith("sqlite:///")


def test_doctor_finds_nothing_in_the_settings_of_this_airflow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Path(__file__).parents[2]
    settings = Settings(tmp_path, f"sqlite:///{tmp_path}/ledger.sqlite", (), project / "include")
    made = airflow_environment(settings, Secrets.of_folder(tmp_path), port=81, inherited={})
    for name, value in made.items():
        monkeypatch.setenv(name, value)
    assert [*AirflowSettings.of_process().harms(project / "plugins")] == []
    monkeypatch.setenv("AIRFLOW__CORE__PLUGINS_FOLDER", str(tmp_path))
    assert len([*AirflowSettings.of_process().harms(project / "plugins")]) == 1
