"""The environment of the native Airflow: every setting and secret that its processes are given.

Everything lives under `$TURNSTILE_HOME/airflow`. Secrets are made once per folder and kept in a
file that only the owner reads; `docker-compose.yaml` asks for the same keys.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from turnstile.settings import Settings

USER = "admin"
READER = "audit_reader"
DATABASE = "TURNSTILE_AIRFLOW_DATABASE"
"""Names a PostgreSQL database for Airflow; without it, SQLite in Airflow's folder."""
_LOCAL = "127.0.0.1,localhost"
# How long one process waits for another's SQLite transaction; the default of 5 s is not enough.
_LOCKED_S = 60


@dataclass(frozen=True, slots=True)
class Secrets:
    """What the processes of one Airflow must agree on, and the passwords of its two users.

    The reader's is in the environment of tasks, which ask with it who cleared their run.
    """

    jwt_secret: str
    api_secret_key: str
    fernet_key: str
    admin_password: str
    reader_password: str = ""

    @classmethod
    def of_folder(cls, airflow_home: Path) -> Secrets:
        """Read the secrets of an Airflow folder; make them the first time."""
        path = airflow_home / "secrets.json"
        if path.exists():
            held = cls(**json.loads(path.read_text(encoding="utf-8")))
            if held.reader_password:
                return held
            held = replace(held, reader_password=secrets.token_urlsafe(12))  # made by 0.1.0
            _write_private(path, asdict(held))
            return held
        made = cls(
            jwt_secret=secrets.token_hex(32),
            api_secret_key=secrets.token_hex(32),
            fernet_key=base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
            admin_password=secrets.token_urlsafe(12),
            reader_password=secrets.token_urlsafe(12),
        )
        airflow_home.mkdir(parents=True, exist_ok=True, mode=0o700)
        _write_private(path, asdict(made))
        return made


def write_passwords(airflow_home: Path, held: Secrets) -> Path:
    """Write the password file that SimpleAuthManager reads, and return its path."""
    path = airflow_home / "passwords.json"
    _write_private(path, {USER: held.admin_password, READER: held.reader_password})
    return path


def airflow_environment(
    settings: Settings, held: Secrets, *, port: int, inherited: Mapping[str, str]
) -> dict[str, str]:
    """Return the whole environment of Airflow's processes.

    Args:
        settings: where the zones and the ledger are.
        held: secrets of this Airflow's folder.
        port: TCP port of the API server on the loopback interface.
        inherited: environment of this process; Airflow settings in it are left out, so that a
            machine's other Airflow neither disturbs this one nor is disturbed.
    """
    home = airflow_home(settings)
    address = f"http://127.0.0.1:{port}"
    in_folder = f"sqlite:///{home}/airflow.db?timeout={_LOCKED_S}"
    reader = {"conn_type": "http", "host": "127.0.0.1", "port": port, "login": READER}
    reader |= {"password": held.reader_password}
    kept = {key: value for key, value in inherited.items() if not key.startswith("AIRFLOW")}
    return kept | {
        "AIRFLOW_CONN_TURNSTILE_AIRFLOW": json.dumps(reader),
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__API_AUTH__JWT_SECRET": held.jwt_secret,
        "AIRFLOW__API__BASE_URL": address,
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__SECRET_KEY": held.api_secret_key,
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__CORE__AUTH_MANAGER": (
            "airflow.api_fastapi.auth.managers.simple.simple_auth_manager.SimpleAuthManager"
        ),
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "True",
        "AIRFLOW__CORE__DAGS_FOLDER": str(settings.include.parent / "dags"),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{address}/execution/",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__FERNET_KEY": held.fernet_key,
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__PARALLELISM": "2",
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(settings.include.parent / "plugins"),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(home / "passwords.json"),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin,{READER}:viewer",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": inherited.get(DATABASE) or in_folder,
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(home / "logs"),
        # Only the weeks that are asked for: no run of last week on unpausing.
        "AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE": "False",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "GX_ANALYTICS_ENABLED": "false",
        "NO_PROXY": _LOCAL,
        "no_proxy": _LOCAL,
        "PYTHONUNBUFFERED": "1",
        "TURNSTILE_ADOPTED": ":".join(sorted(settings.adopted)),
        "TURNSTILE_HOME": str(settings.home),
        "TURNSTILE_INCLUDE": str(settings.include),
        "TURNSTILE_LEDGER_URL": settings.ledger_url,
        "TURNSTILE_WITNESS": ":".join(str(place) for place in settings.witness),
    }


def airflow_home(settings: Settings) -> Path:
    """Return the folder of the native Airflow: its database, logs, secrets and lock."""
    return settings.home / "airflow"


def _write_private(path: Path, content: Mapping[str, str]) -> None:
    """Write a file that only the owner may read, from its first byte on."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(dict(content), file)
