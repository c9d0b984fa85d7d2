"""docker-compose.yaml run as processes: its environments, commands, mounts and health checks.

Stands in for a container engine. Each service gets a root folder in which its volumes are mounted
as the file says (a mount namespace of its own, read-only where it says `:ro`), and its paths, host
names and ports are written over to that root and to free ports of the loopback interface. What an
image brings along (PostgreSQL's first start, the virtual environment, the project's files) is done
by hand.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import yaml
from ports import free_port

from turnstile.operations.airflow_api import AirflowApi
from turnstile_native.native_stack import NativeStack

ROOT = Path(__file__).resolve().parents[2]
FROM_IMAGE = (
    "/opt/airflow",
    "/opt/turnstile",
    "/var/lib/turnstile-keys",
    "/var/lib/turnstile-witness",
    "/var/lib/turnstile",
)
PATHS = re.compile(f"(?<![\\w/])({'|'.join(FROM_IMAGE)})(?![\\w-])")
VARIABLE = re.compile(r"(?<!\$)\$\{(\w+)(?::[?-]([^}]*))?\}")
PORTS = ("AIRFLOW_PORT", "postgres", "redis", "health", "trigger_log", "worker", "worker-private")
HEALTHY_WITHIN_S = 300
BINARIES = os.pathsep.join((str(Path(sys.executable).parent), os.defpath, "/usr/local/bin"))


def missing() -> str:
    """Say what this machine lacks to run the file; empty if nothing."""
    if postgresql() is None:
        return "no initdb of PostgreSQL is installed"
    if shutil.which("redis-server") is None:
        return "no Redis here: apt install redis-server"
    return missing_namespaces()


def missing_namespaces() -> str:
    """Say why no process can have mounts of its own here; empty if it can."""
    probe = ["unshare", "--map-root-user", "--mount", "true"]
    if not shutil.which("unshare") or subprocess.run(probe, check=False).returncode:  # noqa: S603 - our own words
        return "mount namespaces (unshare) are not allowed here"
    return ""


def postgresql() -> Path | None:
    """Return the folder of PostgreSQL's programs."""
    initdb = shutil.which("initdb") or next(
        map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)), None
    )
    return None if initdb is None else Path(initdb).resolve().parent


class PostgresImage:
    """What the image of PostgreSQL does: makes its data once, runs the init scripts, listens.

    Args:
        port: of the loopback interface.
        secrets: folder of the secrets.
        scripts: mounted at `/docker-entrypoint-initdb.d`.
    """

    def __init__(self, port: int, secrets: Path, scripts: Sequence[Path]) -> None:
        self.port = port
        self.folder = Path(tempfile.mkdtemp(prefix="turnstile-compose-pg-"))
        self.secrets = secrets
        self.scripts = scripts
        self._owner = {"user": "postgres"} if os.geteuid() == 0 else {}

    def start(self) -> None:
        """Start the server for the first time and run the scripts as its superuser."""
        if self._owner:
            shutil.chown(self.folder, user="postgres")
        data, secret = self.folder / "data", self.folder / "password"
        password = (self.secrets / "postgres_password").read_text()
        secret.write_text(password)
        secret.chmod(0o644)  # of a throw-away server; its folder is the owner's alone
        self._run("initdb", "-D", data, "-U", "postgres", "-A", "scram-sha-256",
                  f"--pwfile={secret}")  # fmt: skip
        self.start_again()
        client = {
            "PATH": f"{postgresql()}{os.pathsep}{BINARIES}",
            "PGHOST": "127.0.0.1",
            "PGPORT": str(self.port),
            "PGPASSWORD": password,
            "POSTGRES_USER": "postgres",
            "SECRETS": str(self.secrets),
        }
        for script in self.scripts:
            subprocess.run(["bash", str(script)], check=True, env=client)  # noqa: S603, S607 - the project's own

    def start_again(self) -> None:
        """Start the server on the data that there is."""
        data = self.folder / "data"
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1"
        self._run("pg_ctl", "-D", data, "-w", "-l", self.folder / "log", "-o", options, "start")

    def kill(self) -> None:
        """End the server without a word to anybody, as a lack of memory would."""
        self._run("pg_ctl", "-D", self.folder / "data", "-w", "-m", "immediate", "stop")

    def stop(self) -> None:
        """Stop the server, unless it was killed, and remove its data."""
        with contextlib.suppress(subprocess.CalledProcessError):
            self.kill()
        shutil.rmtree(self.folder)

    def _run(self, program: str, *arguments: object) -> None:
        """Run a program of the server as the user that may."""
        command = [str(postgresql() / program), *map(str, arguments)]  # type: ignore[operator]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/", **self._owner)  # type: ignore[call-overload]  # noqa: S603 - our own words


class NativeCompose(NativeStack):
    """A context manager: inside it every service of the file runs and is healthy.

    Args:
        project: folder that `./` of the file means; holds `dags`, `plugins`, `include`.
        base: an empty folder for volumes, container roots and logs.
        override: another file, which adds to services and puts other volumes in their places.
        variables: that the files ask for.
    """

    def __init__(
        self,
        project: Path,
        base: Path,
        override: Path | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(base, {})
        self.project, self.base, self.secrets = project, base, base / "secrets"
        subprocess.run([ROOT / "docker/make-secrets.sh", self.secrets], check=True)  # noqa: S603 - ours
        self.ports = {name: free_port(0) for name in PORTS}
        given = {"AIRFLOW_PORT": str(self.ports["AIRFLOW_PORT"]), **(variables or {})}
        self.services: dict[str, Any] = services(ROOT / "docker-compose.yaml", given)
        if override is not None:
            for name, service in services(override, given).items():
                self.services[name] = added(self.services[name], service)
        self.address = f"http://127.0.0.1:{self.ports['AIRFLOW_PORT']}"
        self._done: set[str] = set()
        self._database: PostgresImage | None = None

    def __enter__(self) -> Self:
        """Start every service, each after those that it depends on."""
        (self.base / "logs").mkdir()
        try:
            for name in self.services:
                self._bring_up(name)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Stop everything, the database last."""
        self.stop()
        if self._database is not None:
            self._database.stop()

    def unpaused(self, dag_id: str, *, within_s: float) -> AirflowApi:
        """Return a client of its Airflow, once a DAG is parsed, without errors, and may run."""
        password = (self.secrets / "airflow_admin_password").read_text()
        api = AirflowApi(self.address, "admin", password)
        self.wait_until(
            lambda: api.has_dag(dag_id) or api.import_errors(), what="parsing", timeout_s=within_s
        )
        assert api.import_errors() == ()
        api.unpause(dag_id)
        return api

    def run_in(self, service: str, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command as `docker compose exec` does."""
        return subprocess.run(  # noqa: S603 - the test's own words
            self._contained(service, command),
            env=self.environment(service),
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
        )

    def environment(self, service: str) -> dict[str, str]:
        """Return the environment of a service, and no more."""
        given = self.services[service].get("environment", {})
        variables = {key: self._natively(service, str(value)) for key, value in given.items()}
        if "AIRFLOW__API__PORT" in variables:
            variables["AIRFLOW__API__PORT"] = str(self.ports["AIRFLOW_PORT"])
            variables["AIRFLOW__API__HOST"] = "127.0.0.1"
        logs, scheduler = "AIRFLOW__LOGGING__", "AIRFLOW__SCHEDULER__"
        return variables | {
            "PATH": BINARIES,
            "SECRETS": str(self.secrets),
            "HOME": str(self._root(service)),
            "HOSTNAME": socket.gethostname(),
            "NO_PROXY": "*",  # a machine's proxy has no business with the loopback interface
            f"{logs}WORKER_LOG_SERVER_PORT": str(self.ports.get(service, 0)),
            f"{logs}TRIGGER_LOG_SERVER_PORT": str(self.ports["trigger_log"]),
            f"{scheduler}SCHEDULER_HEALTH_CHECK_SERVER_PORT": str(self.ports["health"]),
        }

    def _bring_up(self, name: str) -> None:
        """Start a service and wait until it is healthy, or has run to its end."""
        if name in self._done:
            return
        service = self.services[name]
        for other in service.get("depends_on", {}):
            self._bring_up(other)
        self._lay_out(name)
        if name == "postgres":
            scripts = [
                self.project / volume.split(":")[0]
                for volume in service["volumes"]
                if "initdb" in volume
            ]
            self._database = PostgresImage(self.ports["postgres"], self.secrets, scripts)
            self._database.start()
        elif "healthcheck" in service:
            self._processes[name] = self._begin(name)
            healthy: Callable[[], bool] = lambda: self.is_healthy(name)  # noqa: E731
            self.wait_until(healthy, what=f"health of {name}", timeout_s=HEALTHY_WITHIN_S)
        elif service["restart"] != "no":
            self._processes[name] = self._begin(name)
        elif (process := self._begin(name)).wait(HEALTHY_WITHIN_S):
            raise AssertionError(self.failure(name) + f" ({process.returncode})")
        self._done.add(name)

    def is_healthy(self, name: str) -> bool:
        """Run the service's own health check."""
        kind, *words = self.services[name]["healthcheck"]["test"]
        command = words if kind == "CMD" else ["sh", "-c", words[0]]
        return self.run_in(name, *(word.replace("$$", "$") for word in command)).returncode == 0

    def _begin(self, name: str) -> subprocess.Popen[bytes]:
        """Start the command of a service in a session of its own."""
        command = [word.replace("$$", "$") for word in self.services[name]["command"]]
        if "celery" in command:  # a container has a host name of its own
            command += ["--celery-hostname", f"{name}@localhost"]
        with (self.base / "logs" / f"{name}.log").open("wb") as output:
            return subprocess.Popen(  # noqa: S603 - the file's own words
                self._contained(name, command),
                env=self.environment(name),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _contained(self, name: str, command: Sequence[str]) -> list[str]:
        """Return a command that first mounts the volumes of its service, where nobody else sees."""
        lines = ["set -e"]
        for source, target, is_read_only in self._mounts(name):
            place = shlex.quote(str(target))
            lines.append(f"mount --bind {shlex.quote(str(source))} {place}")
            if is_read_only:
                lines.append(f"mount -o remount,bind,ro {place}")
        lines.append(shlex.join(["exec", *(self._natively(name, word) for word in command)]))
        return ["unshare", "--map-root-user", "--mount", "sh", "-c", "\n".join(lines)]

    def _mounts(self, name: str) -> list[tuple[Path, Path, bool]]:
        """Return source, target and whether it is read-only of each volume, outermost first."""
        mounts = []
        for mount in self.services[name].get("volumes", ()):
            source, target, *mode = mount.split(":")
            place = (
                self.project / source if source.startswith(".") else self.base / "volumes" / source
            )
            mounts.append((place, self._root(name) / target.lstrip("/"), mode == ["ro"]))
        return sorted(mounts, key=lambda mount: len(mount[1].parts))

    def _lay_out(self, name: str) -> None:
        """Make what the image holds: empty folders for the volumes, and the project's scripts."""
        for source, target, _ in self._mounts(name):
            if source.is_dir() or not source.exists():
                source.mkdir(parents=True, exist_ok=True)
                target.mkdir(parents=True, exist_ok=True)
        for folder in FROM_IMAGE:
            (self._root(name) / folder.lstrip("/")).mkdir(parents=True, exist_ok=True)
        for folder in ("dags", "plugins", "include"):
            link = self._root(name) / "opt/turnstile" / folder
            link.symlink_to(self.project / folder)
        shutil.copytree(ROOT / "docker", self._root(name) / "opt/turnstile/docker")

    def _root(self, name: str) -> Path:
        """Return the folder that is `/` to a service, as far as its volumes go."""
        return self.base / "containers" / name

    def _natively(self, name: str, text: str) -> str:
        """Write host names, ports and paths over."""
        host, ports = "127.0.0.1", self.ports
        for old, new in (
            ("@postgres/", f"@{host}:{ports['postgres']}/"),
            ("@redis:6379", f"@{host}:{ports['redis']}"),
            ("//api-server:8080", f"//{host}:{ports['AIRFLOW_PORT']}"),
            ("//localhost:8080", f"//{host}:{ports['AIRFLOW_PORT']}"),
            ("//localhost:8974", f"//{host}:{ports['health']}"),
            ("redis-cli ", f"redis-cli -p {ports['redis']} "),
            ("redis-server ", f"redis-server --port {ports['redis']} --bind {host} "),
            ("dir /data", f"dir {self._root(name)}/data"),
            (":18EB ", f":{ports['redis']:04X} "),
            ("/run/secrets", str(self.secrets)),
        ):
            text = text.replace(old, new)
        return PATHS.sub(lambda match: f"{self._root(name)}{match[1]}", text)


def added(service: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return a service with an override, as Compose merges them."""
    volumes = {volume.split(":")[1]: volume for volume in service.get("volumes", ())}
    volumes |= {volume.split(":")[1]: volume for volume in more.get("volumes", ())}
    return {
        **service,
        "environment": {**service["environment"], **more["environment"]},
        "secrets": [*service["secrets"], *more["secrets"]],
        "volumes": list(volumes.values()),
    }


def services(file: Path, variables: Mapping[str, str]) -> dict[str, Any]:
    """Return the services of a file, its variables filled in."""
    read = yaml.safe_load(file.read_text(encoding="utf-8"))["services"]
    return dict(interpolated(read, variables))


def interpolated(read: Any, variables: Mapping[str, str]) -> Any:
    """Fill variables into what YAML read, as Compose does: one that is empty is an empty text.

    Raises:
        KeyError: one that has no default is not given.
    """
    if isinstance(read, dict):
        return {key: interpolated(value, variables) for key, value in read.items()}
    if isinstance(read, list):
        return [interpolated(value, variables) for value in read]
    if not isinstance(read, str):
        return read

    def value(match: re.Match[str]) -> str:
        name, default = match[1], match[2]
        is_needed = match[0].startswith(f"${{{name}:?")
        return variables[name] if is_needed else variables.get(name) or default

    return VARIABLE.sub(value, read)
