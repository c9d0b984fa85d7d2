"""The processes of the native Airflow: started together, watched, and stopped without orphans.

`airflow standalone` leaves its children behind when it is terminated, and its log servers listen
on every interface; so the four components are started one by one, on the loopback interface only.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from turnstile.durable_files import exclusively
from turnstile.errors import TurnstileError

_READERS = (("api-server",), ("dag-processor",))
_SCHEDULING = (("scheduler", "--skip-serve-logs"), ("triggerer", "--skip-serve-logs"))
_GRACE_S = 10
_HELD_BACK = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_POLL_S = 1.0
_DRAWS = "turnstile.pipeline.draw.drawing_apart"
"""By name: only the pipeline may import what draws."""
_LAST_LINES = 25


class NativeStack:
    """A context manager: inside it Airflow's API server and DAG processor run, the rest on demand.

    Work is asked for before the scheduler starts: it would go on with what an interrupted run left
    in the metadata database, and SQLite knows one writer at a time.

    Args:
        home: folder of this Airflow; its lock lets one stack run at a time.
        environment: whole environment of the processes.
        say: told, in a sentence, what a stop waits for.
    """

    def __init__(
        self,
        home: Path,
        environment: Mapping[str, str],
        say: Callable[[str], object] = lambda _: None,
    ) -> None:
        self._home = home
        self._say = say
        self._environment = dict(environment)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._died: list[subprocess.Popen[bytes]] = []
        self._held = ExitStack()
        self._lock = -1

    def __enter__(self) -> Self:
        """Migrate the metadata database and start what reads the DAGs.

        Raises:
            TurnstileError: another stack uses the folder, or the database cannot be migrated.
        """
        (self._home / "logs").mkdir(parents=True, exist_ok=True)
        self._lock = self._locked()
        try:
            self._processes["migrate"] = self._start("db", "migrate", log="migrate")
            if self._processes["migrate"].wait() != 0:
                raise TurnstileError(self.failure("migrate"))
            del self._processes["migrate"]
            self._start_all(_READERS)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop everything, however the block was left."""
        self.stop()

    def start_scheduling(self) -> None:
        """Start the scheduler and the triggerer."""
        self._start_all(_SCHEDULING)

    def schedule_by_the_clock(self) -> None:
        """Start the scheduler anew so that DAGs run by their schedules, not only when asked for."""
        scheduler = self._processes["scheduler"]
        scheduler.terminate()
        scheduler.wait()
        self._environment["AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE"] = "True"
        self.revive_scheduler()

    def revive_scheduler(self) -> bool:
        """Start the scheduler again if it has died; return whether it had.

        On SQLite it can die of a backfill that is asked for while it runs: it meets rows that the
        API server then takes back.
        """
        scheduler = self._processes["scheduler"]
        if scheduler.poll() is None:
            return False
        self._died.append(scheduler)  # its workers may live on, and are ours to stop
        log = self._home / "logs" / "scheduler.log"
        log.replace(log.with_name(f"scheduler-{scheduler.pid}.log"))
        self._start_all(_SCHEDULING[:1])
        return True

    def wait_until(self, holds: Callable[[], bool], *, what: str, timeout_s: float) -> None:
        """Poll until a condition holds.

        Raises:
            TurnstileError: a component died, or the time is up.
        """
        deadline = time.monotonic() + timeout_s
        while not holds():
            self.check_alive()
            if time.monotonic() > deadline:
                raise TurnstileError(
                    f"{what} took more than {timeout_s:.0f} s; see {self._home}/logs"
                )
            time.sleep(_POLL_S)

    def check_alive(self) -> None:
        """Raise if a component is gone.

        Raises:
            TurnstileError: one died; the message ends with its last log lines.
        """
        for name, process in self._processes.items():
            if process.poll() is not None:
                raise TurnstileError(self.failure(name))

    def failure(self, log: str) -> str:
        """Say which process failed and how its log ends."""
        path = self._home / "logs" / f"{log}.log"
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join([f"airflow {log} ended unexpectedly; {path} ends:", *lines[-_LAST_LINES:]])

    def stop(self) -> None:
        """Terminate every process that was started and all their descendants; kill the stubborn.

        A draw ends by itself, at once before its charge, else at its seal. A signal that comes
        meanwhile is held back until nothing is left.
        """
        held = signal.pthread_sigmask(signal.SIG_BLOCK, _HELD_BACK)
        try:
            self._end_processes()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, held)

    def _end_processes(self) -> None:
        """Ask every process to end, then make it; again for one that was just being started.

        A draw goes to its seal: if it were killed after its charge, the next would charge again.
        """
        while family := self._alive():
            for process in family:
                _signal(process.terminate)
            psutil.wait_procs(family - _draws(family), timeout=_GRACE_S)
            for process in family - _draws(family):
                _signal(process.suspend)  # or it might start another, out of our sight
            family |= self._alive()
            doomed = family - _draws(family)
            for process in doomed:
                _signal(process.kill)
            psutil.wait_procs(doomed, timeout=_GRACE_S)
            if _draws(family):
                with suppress(OSError):  # whoever reads it may be gone: a terminal, `| tee`
                    self._say("a draw that is charged goes to its seal; then Airflow has stopped")
            while _draws(family):  # whose tasks are gone, so that they are nobody's children
                time.sleep(_POLL_S)
        for started in self._processes.values():
            started.wait()
        self._processes.clear()
        self._held.close()

    def _alive(self) -> set[psutil.Process]:
        """Return every living process of the sessions that were started, and their descendants."""
        started = (*self._processes.values(), *self._died)
        family = {member for process in started for member in _family(process.pid)}
        return {process for process in family if _is_alive(process)}

    def _start_all(self, commands: Iterable[tuple[str, ...]]) -> None:
        """Start components, each with a log of its own."""
        for name, *options in commands:
            self._processes[name] = self._start(name, *options, log=name)

    def _start(self, *arguments: str, log: str) -> subprocess.Popen[bytes]:
        """Start one Airflow command in a session of its own, so that Ctrl-C reaches us only."""
        with (self._home / "logs" / f"{log}.log").open("wb") as output:
            return subprocess.Popen(  # noqa: S603 - our own interpreter
                [sys.executable, "-m", "airflow", *arguments],
                env=self._environment,
                cwd=self._home,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=(self._lock,),  # the lock lasts as long as any component lives
            )

    def _locked(self) -> int:
        """Hold the lock of the folder; return its descriptor."""
        path = self._home / "lock"
        try:
            file = self._held.enter_context(exclusively(path, waits=False))
        except BlockingIOError:
            owner = path.read_text(encoding="utf-8").strip()
            lives = owner.isdecimal() and _wrote(int(owner), path)
            way = "); stop it first" if lives else f", which died); {self._what_is_left()}"
            raise TurnstileError(
                f"another Airflow uses {self._home} (started by process {owner}{way}"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()).encode())
        file.flush()
        return file.fileno()

    def _what_is_left(self) -> str:
        """Say how to end what a stack left that was killed; its draws end alone."""
        left = set[psutil.Process]()
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                is_part = "airflow" in " ".join(process.cmdline())
                if is_part and Path(process.cwd()) == self._home.resolve():
                    left |= _family(process.pid)
        others = sorted(str(process.pid) for process in left - _draws(left))
        if not others:
            return "what is left of it, such as a draw, ends by itself; start again in a minute"
        return f"stop it: kill {' '.join(others)}"


def free_port(preferred: int) -> int:
    """Return the preferred TCP port of the loopback interface if it is free, else another."""
    for port in (preferred, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise TurnstileError("no TCP port is free on 127.0.0.1")


def _family(leader: int) -> set[psutil.Process]:
    """Return a session's processes and all descendants, also where the leader is gone."""
    processes: set[psutil.Process] = set()
    for process in psutil.process_iter():
        try:
            if process.pid == leader or os.getsid(process.pid) == leader:
                processes |= {process, *process.children(recursive=True)}
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    return processes


def _wrote(number: int, path: Path) -> bool:
    """Return whether the process of a number lives, and began before a file was written last."""
    with suppress(psutil.Error):
        return psutil.Process(number).create_time() <= path.stat().st_mtime
    return False


def _draws(processes: set[psutil.Process]) -> set[psutil.Process]:
    """Return those that draw, apart from the tasks that asked for it."""
    draws = set()
    for process in processes:
        with suppress(psutil.Error):
            if _DRAWS in process.cmdline():
                draws.add(process)
    return draws


def _is_alive(process: psutil.Process) -> bool:
    """Return whether a process is more than an entry that waits to be read."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _signal(send: Callable[[], None]) -> None:
    """Send a signal to a process that may be gone already."""
    try:
        send()
    except psutil.NoSuchProcess:
        return
