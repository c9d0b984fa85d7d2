"""docker-compose.yaml in a container engine: what an operator does to it, as commands.

Compose v2 runs the file as it is. Version 1.29, the last that Debian 12 has, does not know `name`,
`start_interval` and a build's `secrets`: it is given a copy without them, and checks health every
ten seconds. Images are built by BuildKit, which Compose v2 brings along and Debian's docker.io has.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from patience import wait_for

from stores import OVERRIDE, Store, docker

ROOT = Path(__file__).resolve().parents[2]
STAND_INS = ROOT / "tests/containers/stand-ins.sh"
PULLED = ("python:3.11-slim-bookworm", "postgres:15", "redis:7.2-bookworm")
HEALTHY_WITHIN_S = 600
_SMALL = "small-disk"

Answer = subprocess.CompletedProcess[bytes]
Say = Callable[[str], None]


def engine_missing() -> str:
    """Say what this machine lacks to run containers; empty if nothing."""
    if shutil.which("docker") is None or _quiet("docker", "info"):
        return "no container engine answers (docker info)"
    if not compose_command():
        return "the engine has no Compose (docker compose, or docker-compose)"
    asked = ["docker", "build", "--help"]
    known = subprocess.run(asked, capture_output=True, check=False, env=_with_buildkit(os.environ))  # noqa: TID251
    if b"--secret" not in known.stdout:
        return "the engine has no BuildKit (docker buildx)"
    return ""


def _with_buildkit(environment: Mapping[str, str]) -> dict[str, str]:
    return {**environment, "DOCKER_BUILDKIT": "1"}


def compose_command() -> list[str]:
    """Return how Compose is called; empty where there is none."""
    if not _quiet("docker", "compose", "version"):
        return ["docker", "compose"]
    return ["docker-compose"] if shutil.which("docker-compose") else []


def _quiet(*command: str) -> int:
    return subprocess.run(command, capture_output=True, check=False).returncode


class Containers:
    """One deployment under a name of its own.

    Args:
        name: of the project; its volumes are removed at the end.
        base: folder for secrets and copies.
        port: of the loopback interface, for the web interface.
        say: takes a line of progress.
        store: that holds the zones; None: volumes do.
    """

    def __init__(
        self, name: str, base: Path, port: int, say: Say, store: Store | None = None
    ) -> None:
        self.name, self.base, self.say, self.store = name, base, say, store
        self.address = f"http://127.0.0.1:{port}"
        self.secrets = base / "secrets"
        subprocess.run([ROOT / "docker/make-secrets.sh", self.secrets], check=True)
        self.environment = {
            **os.environ,  # noqa: TID251 - handed on, not read
            "AIRFLOW_PORT": str(port),
            "SECRETS": str(self.secrets),
            "TURNSTILE_VERSION": f"{name}-1",
        }
        if store is not None:
            self.environment |= store.variables
        # An operator's own index, proxy or certificate; nothing of it may stand in a layer.
        self.pip_conf = base / "pip.conf"
        given = Path(os.environ.get("PIP_CONF", "/dev/null")).read_text()  # noqa: TID251
        self.mark = secrets.token_hex(16)
        self.pip_conf.write_text(f"{given}\n# {self.mark}\n")
        self.compose = compose_command()
        self.roots = dict[str, Path]()
        self.more: Path | None = None
        self.use("1")

    def build(self, tag: str, root: Path = ROOT) -> None:
        """Build the image of a checkout; the images it is made of are pulled or stood in for."""
        self.roots[tag] = root
        missing = [
            reference for reference in PULLED if _quiet("docker", "image", "inspect", reference)
        ]
        if any(_quiet("docker", "pull", "--quiet", reference) for reference in missing):
            self.say(f"no registry has {', '.join(missing)}: stand-ins of Debian's packages")
            subprocess.run([STAND_INS], check=True, stdout=subprocess.DEVNULL)
        image = f"turnstile-airflow:{self.name}-{tag}"
        command = ["docker", "build", "--network", "host", "--label", f"release={tag}",
                   "--secret", f"id=pip_conf,src={self.pip_conf}"]  # fmt: skip
        done = subprocess.run(
            [*command, "--tag", image, root],
            env=_with_buildkit(self.environment),
            capture_output=True,
            check=False,
        )
        if done.returncode:
            raise AssertionError(f"build: {done.stderr.decode(errors='replace')[-3000:]}")

    def use(self, tag: str) -> None:
        """Name the checkout and the image that `up` starts."""
        self.environment["TURNSTILE_VERSION"] = f"{self.name}-{tag}"
        self.root = self.roots.get(tag, ROOT)
        self.file = self.root / "docker-compose.yaml"
        self.services: Mapping[str, Any] = yaml.safe_load(self.file.read_text())["services"]
        if self.compose == ["docker-compose"]:
            self.file = self._for_version_1()

    def up(self, *services: str) -> None:
        """Start what does not run, and wait until all of it is healthy."""
        self._asked("up", "--detach", *services)
        if self.store is not None:
            self.store.connect()
        names = services or tuple(self.services)
        checked = [service for service in names if "healthcheck" in self.services[service]]
        sick = list[str]()

        def is_healthy() -> bool:
            sick[:] = [service for service in checked if self.health(service) != "healthy"]
            return not sick

        try:
            wait_for(is_healthy, "health", HEALTHY_WITHIN_S, self.say)
        except AssertionError as late:
            raise AssertionError(f"not healthy: {sick}; {late}\n{self.logs(*sick)}") from None

    def scale(self, service: str, number: int) -> None:
        """Run a service several times; `up` makes it one again."""
        self._asked("up", "--detach", "--no-recreate", "--scale", f"{service}={number}")

    def rest(self) -> None:
        """Stop all of it as before an upgrade: workers first, while the API server answers."""
        self._asked("stop", "--timeout", "3600", "worker-private", "worker")
        self._asked("stop")

    def down(self, *, removing: Sequence[str] = ()) -> None:
        """Stop everything; remove some volumes."""
        self._asked("stop")
        if self.store is not None:
            self.store.cut()
        self._asked("down")
        for volume in removing:
            docker("volume", "rm", f"{self.name}_{volume}")

    def remove(self) -> None:
        """Remove containers, volumes and images of this project."""
        if self.store is not None:
            self.store.remove()
        self._asked("down", "--volumes")
        for tag in self.roots:
            _quiet("docker", "image", "rm", f"turnstile-airflow:{self.name}-{tag}")

    def run(self, service: str, *command: str, given: bytes | None = None) -> Answer:
        """Run a command in a running service, as `docker compose exec` does."""
        return self._compose("exec", "-T", service, *command, given=given)

    def run_alone(self, service: str, *command: str, given: bytes) -> Answer:
        """Run a command in a new container of a service that does not run."""
        return self._compose("run", "--rm", "--no-deps", "-T", service, *command, given=given)

    def begin(
        self, service: str, *command: str, variables: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        """Begin a command in a new container of a service, with some variables of its own."""
        given = [word for name, value in variables.items() for word in ("-e", f"{name}={value}")]
        words = self._words("run", "--rm", "--no-deps", "-T", *given, service, *command)
        pipe = subprocess.PIPE
        return subprocess.Popen(words, env=self.environment, stdin=pipe, stdout=pipe, stderr=pipe)

    def shrink(self, service: str, folder: str, size: int) -> None:
        """Give a service a disk of some bytes in the place of a volume."""
        options = {"type": "tmpfs", "device": "tmpfs", "o": f"size={size},uid=50000,mode=0700"}
        more = {
            "services": {service: {"volumes": [f"{_SMALL}:{folder}"]}},
            "volumes": {_SMALL: {"driver": "local", "driver_opts": options}},
        }
        self.more = self.base / "docker-compose.small-disk.yaml"
        self.more.write_text(yaml.safe_dump(more))
        self.up()

    def widen(self) -> None:
        """Undo `shrink`."""
        self.more = None
        self.up()
        docker("volume", "rm", f"{self.name}_{_SMALL}")

    def memory(self, service: str) -> int:
        """Return the MiB that a service takes."""
        words = ("stats", "--no-stream", "--format", "{{.MemUsage}}")
        taken = docker(*words, self._container(service)).split(" ")[0]
        amount, is_gib = taken.rstrip("GMiB"), taken.endswith("GiB")
        return int(float(amount) * (1024 if is_gib else 1))

    def restarts(self, service: str) -> int:
        """Return how often the engine has started a service again by itself."""
        words = ("inspect", "--format", "{{.RestartCount}}")
        return int(docker(*words, self._container(service)))

    def bound(self, service: str, mib: int) -> None:
        """Bound the memory of a running service."""
        words = ("--memory", f"{mib}m", "--memory-swap", f"{mib}m")
        docker("update", *words, self._container(service))

    def kill(self, service: str) -> None:
        """End a service as a lack of memory would; cut the store off."""
        if service == "store" and self.store is not None:
            self.store.cut()
        else:
            docker("kill", self._container(service))

    def health(self, service: str) -> str:
        """Return what the engine knows of a service's health."""
        container = self._container(service)
        if not container:
            return "gone"
        state = docker("inspect", "--format", "{{.State.Status}} {{.State.Health.Status}}",
                             container)  # fmt: skip
        status, _, health = state.strip().partition(" ")
        return health if status == "running" else status

    def reaches_out(self, service: str) -> bool:
        """Return whether a running service has a network that is not internal."""
        container = self._container(service)
        names = self._networks(container) if container else {}
        closed = [docker("network", "inspect", "--format", "{{.Internal}}", network).strip()
                  for network in names]  # fmt: skip
        return "false" in closed

    def address_in(self, service: str, network: str) -> str:
        """Return the address of a service in a network."""
        networks = self._networks(self._container(service))
        return str(networks[f"{self.name}_{network}"]["IPAddress"])

    def _networks(self, container: str) -> Mapping[str, Any]:
        output = docker("inspect", "--format", "{{json .NetworkSettings.Networks}}", container)
        networks: Mapping[str, Any] = json.loads(output)
        return networks

    def logs(self, *services: str) -> str:
        """Return what some services said last."""
        return self._compose("logs", "--tail", "40", *services).stdout.decode(errors="replace")

    def all_logs(self) -> str:
        """Return everything that was said, and every task log."""
        said = self._compose("logs").stdout
        kept = self.run("worker", "sh", "-c", "cat $(find /opt/airflow/logs -type f)").stdout
        return (said + kept).decode(errors="replace")

    def image(self) -> str:
        """Return the name of the image that runs."""
        return f"turnstile-airflow:{self.environment['TURNSTILE_VERSION']}"

    def image_and_settings(self) -> str:
        """Return the layers of the image and the settings of every container."""
        tag = self.image()
        history = docker("history", "--no-trunc", tag)
        ids = docker("ps", "--all", "--quiet", "--filter",
                           f"label=com.docker.compose.project={self.name}").split()  # fmt: skip
        return history + docker("inspect", tag, *ids)

    def processes(self) -> str:
        """Return the command lines of every container's processes."""
        return "\n".join(
            docker("top", self._container(name), "-eo", "pid,args")
            for name, service in self.services.items()
            if "healthcheck" in service
        )

    def _container(self, service: str) -> str:
        labels = (f"project={self.name}", f"service={service}", "oneoff=False")
        filters = [
            word for label in labels for word in ("--filter", f"label=com.docker.compose.{label}")
        ]
        return docker("ps", "--all", "--quiet", *filters).strip()

    def _asked(self, *words: str) -> None:
        done = self._compose(*words)
        if done.returncode:
            raise AssertionError(f"compose {words}: {done.stderr.decode(errors='replace')[-3000:]}")

    def _words(self, *words: str) -> list[str]:
        store = self.root / OVERRIDE if self.store is not None else None
        files = [str(path) for path in (self.file, store, self.more) if path is not None]
        given = [word for file in files for word in ("--file", file)]
        return [*self.compose, "--project-name", self.name, *given,
                "--project-directory", str(self.root), *words]  # fmt: skip

    def _compose(self, *words: str, given: bytes | None = None) -> Answer:
        return subprocess.run(
            self._words(*words),
            env=self.environment,
            input=given if given is not None else b"",
            capture_output=True,
            check=False,
        )

    def _for_version_1(self) -> Path:
        text: dict[str, Any] = yaml.safe_load(self.file.read_text())
        known = {"services", "networks", "secrets", "volumes"}
        copy = {key: value for key, value in text.items() if key in known}
        for service in copy["services"].values():
            if check := service.get("healthcheck"):
                check.pop("start_interval", None)
                check["interval"] = "10s"
            if "build" in service:
                service["build"].pop("secrets", None)
        path = self.base / "docker-compose.yaml"
        path.write_text(yaml.safe_dump(copy, sort_keys=False))
        return path
