"""The same services without a container engine: three weeks, then kills. No backup, no upgrade."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import psutil
from compose_natively import HEALTHY_WITHIN_S, NativeCompose, missing
from story import FIRST_WEEK, Story

from turnstile_native.native_stack import _family

ROOT = Path(__file__).resolve().parents[2]


class Processes:
    """What an operator does to a deployment, done to processes.

    Args:
        compose: the running deployment.
    """

    def __init__(self, compose: NativeCompose) -> None:
        self.compose, self.address, self.secrets = compose, compose.address, compose.secrets

    def run(
        self, service: str, *command: str, given: bytes | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command in the place of a service."""
        return subprocess.run(
            self.compose._contained(service, command),
            env=self.compose.environment(service),
            input=given if given is not None else b"",
            capture_output=True,
            check=False,
            cwd="/",
        )

    def kill(self, service: str) -> None:
        """End a service and all its processes without a word."""
        if service == "postgres":
            self.compose._database.kill()  # type: ignore[union-attr] # it runs
            return
        process = self.compose._processes[service]
        for member in _family(process.pid):
            member.kill()
        process.wait()

    def up(self, *_: str) -> None:
        """Start what does not run, and wait until all of it is healthy."""
        if self.compose._database is not None:
            _start_again_if_down(self.compose._database.start_again)
        for name in list(self.compose._processes):
            if "healthcheck" in self.compose.services[name]:
                self.compose.wait_until(
                    lambda name=name: self._is_up(name),
                    what=f"health of {name}",
                    timeout_s=HEALTHY_WITHIN_S,
                )

    def _is_up(self, name: str) -> bool:
        """Ask for the health of a service, then start what has ended, as `restart: always` does."""
        is_healthy = self.compose.is_healthy(name)
        for other, process in list(self.compose._processes.items()):
            if process.poll() is not None:  # of a lost database a scheduler dies a moment later
                self.compose._processes[other], is_healthy = self.compose._begin(other), False
        return is_healthy

    def use(self, tag: str) -> None:
        """Processes have no image."""

    def down(self, *, removing: tuple[str, ...] = ()) -> None:
        """Everything ends with the context manager."""

    def run_alone(
        self, service: str, *command: str, given: bytes
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command as `run` does."""
        return self.run(service, *command, given=given)


def _start_again_if_down(start: Callable[[], None]) -> None:
    """Start a server; one that runs refuses a second one on its data."""
    try:
        start()
    except subprocess.CalledProcessError:
        return


def run_as_processes(
    base: Path, rows: int, kills: int, seed: int, say: Callable[[str], None]
) -> None:
    """Release three weeks of both programmes, then kill services at random moments."""
    if lacking := missing():
        raise SystemExit(f"nothing was tested: {lacking}")
    (base / "run").mkdir()
    with NativeCompose(ROOT, base / "run") as compose:
        say(f"every service is healthy ({psutil.cpu_count()} cores)")
        story = Story(Processes(compose), rows, say)
        story.deliver(FIRST_WEEK, 3 + kills)
        story.unpause()
        story.released([FIRST_WEEK.plus(n) for n in range(3)])
        chance = random.Random(seed)  # noqa: S311 - moments, not noise
        for number in range(kills):
            week = FIRST_WEEK.plus(3 + number)
            say(f"kill {number + 1} of {kills}: {story.killed(week, chance)}")
