"""The stack leaves no process behind, says how a component died, and runs once per folder."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from turnstile.errors import TurnstileError
from turnstile.pipeline.draw import drawing_apart
from turnstile_native import native_stack
from turnstile_native.native_stack import NativeStack, free_port

# A stand-in for `python -m airflow`: a component has a child in a session of its own, and neither
# heeds SIGTERM, as Airflow's scheduler with a running task.
STAND_IN = """
import os, signal, subprocess, sys, time
name = sys.argv[1]
print("this is", name, flush=True)
if name == os.environ.get("DIES"):
    sys.exit("bad luck")
if name == "db":
    sys.exit(0)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
alone = "WORKERS_STAY" not in os.environ
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=alone)
time.sleep(600)
"""


BOUND_S = 600  # only a failure takes so long, however busy the machine is


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setattr(native_stack, "_GRACE_S", 0.5)
    monkeypatch.setattr(native_stack, "_POLL_S", 0.05)
    package = tmp_path / "stand_in/airflow"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(STAND_IN, encoding="utf-8")
    return {"PYTHONPATH": str(package.parent), "PATH": os.defpath, "MARK": str(tmp_path)}


def _left(mark: str) -> list[int]:
    """List the processes that carry the mark of this test."""
    pids = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("MARK") == mark:
                pids.append(process.pid)
        except psutil.Error:
            continue
    return pids


def _wait_for(count: int, mark: str) -> None:
    deadline = time.monotonic() + BOUND_S
    while len(_left(mark)) < count:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_nothing_is_left_however_the_block_is_left(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    def interrupted() -> None:
        with NativeStack(tmp_path / "home", environment) as stack:
            stack.start_scheduling()
            _wait_for(8, environment["MARK"])  # four components, each with a child
            raise SystemExit(130)

    with pytest.raises(SystemExit):
        interrupted()
    assert _left(environment["MARK"]) == []


@pytest.mark.parametrize("name", ["db", "scheduler"])
def test_a_component_that_dies_is_named_with_the_end_of_its_log(
    name: str, tmp_path: Path, environment: dict[str, str]
) -> None:
    def doomed() -> None:
        with NativeStack(tmp_path / "home", environment | {"DIES": name}) as stack:
            stack.start_scheduling()
            stack.wait_until(lambda: False, what="luck", timeout_s=BOUND_S)

    with pytest.raises(TurnstileError, match=rf"(?s)ended unexpectedly.*this is {name}\nbad luck"):
        doomed()
    assert _left(environment["MARK"]) == []


def test_a_scheduler_that_died_is_started_again_and_nothing_of_either_is_left(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    workers_stay = {"WORKERS_STAY": "in the session of their scheduler"}
    with NativeStack(tmp_path / "home", environment | workers_stay) as stack:
        stack.start_scheduling()
        _wait_for(8, environment["MARK"])
        assert not stack.revive_scheduler()
        died = stack._processes["scheduler"]
        died.kill()  # its worker lives on
        died.wait()
        assert stack.revive_scheduler()
        _wait_for(9, environment["MARK"])
        stack.check_alive()
        assert "this is scheduler" in (tmp_path / f"home/logs/scheduler-{died.pid}.log").read_text()
    assert _left(environment["MARK"]) == []


@pytest.mark.parametrize("asker", ["ends", "is stubborn"])
def test_a_draw_goes_to_its_seal_though_that_takes_longer_than_the_grace_of_others(
    asker: str, tmp_path: Path, environment: dict[str, str]
) -> None:
    sealed, begun, go_on = (tmp_path / name for name in ("sealed", "begun", "go_on"))
    draw = tmp_path / "draw.py"
    draw.write_text(
        "import pathlib, signal, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: None)\n"
        f"pathlib.Path({str(begun)!r}).touch()\n"
        f"while not pathlib.Path({str(go_on)!r}).exists(): time.sleep(0.05)\n"
        f"pathlib.Path({str(sealed)!r}).touch()\n",
        encoding="utf-8",
    )
    said: list[str] = []

    def hear(sentence: str) -> None:
        said.append(sentence)
        go_on.touch()

    with NativeStack(tmp_path / "home", environment, hear) as stack:
        command = [sys.executable, str(draw), drawing_apart.__name__]
        heeds = "SIG_DFL" if asker == "ends" else "SIG_IGN"
        task = (
            f"import signal, subprocess; signal.signal(signal.SIGTERM, signal.{heeds})\n"
            f"subprocess.run({command!r}, start_new_session=True)"
        )
        stack._processes["task"] = subprocess.Popen(  # noqa: S603 - our own interpreter
            [sys.executable, "-c", task], env=environment, start_new_session=True
        )
        stack.wait_until(begun.exists, what="the draw", timeout_s=BOUND_S)
    assert sealed.exists()
    assert said == ["a draw that is charged goes to its seal; then Airflow has stopped"]
    assert _left(environment["MARK"]) == []


def test_waiting_has_a_bound(tmp_path: Path, environment: dict[str, str]) -> None:
    with (
        pytest.raises(TurnstileError, match="luck took more than 0 s"),
        NativeStack(tmp_path / "home", environment) as stack,
    ):
        stack.wait_until(lambda: False, what="luck", timeout_s=0)


def test_a_second_stack_of_the_same_folder_is_refused(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    home = tmp_path / "home"
    with (
        NativeStack(home, environment),
        pytest.raises(TurnstileError, match=f"started by process {os.getpid()}"),
        NativeStack(home, environment),
    ):
        pass
    with NativeStack(home, environment):
        assert _left(environment["MARK"])


def test_a_number_that_another_process_has_by_now_is_not_named_as_who_started_it(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """People were sent to stop a process that was not ours."""
    home = tmp_path / "home"
    other = subprocess.Popen(["sleep", "600"])  # noqa: S607
    try:
        with NativeStack(home, environment):
            (home / "lock").write_text(str(other.pid))
            with pytest.raises(TurnstileError, match="stop it first"):  # negative control
                NativeStack(home, environment).__enter__()
            os.utime(home / "lock", (0, psutil.Process(other.pid).create_time() - 60))
            with pytest.raises(TurnstileError, match="which died"):
                NativeStack(home, environment).__enter__()
    finally:
        other.kill()
        other.wait()


def test_what_a_stack_left_that_was_killed_is_named_so_that_it_can_be_stopped(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    home = tmp_path / "home"
    started = (
        "import pathlib, sys, time; from turnstile_native.native_stack import NativeStack\n"
        f"with NativeStack(pathlib.Path({str(home)!r}), {environment!r}): time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", started]) as first:  # noqa: S603 - our own
        _wait_for(4, environment["MARK"])  # two readers, each with a child
        first.kill()
    with pytest.raises(TurnstileError, match="which died.*stop it: kill ") as refused:
        NativeStack(home, environment).__enter__()
    left = str(refused.value).partition(": kill ")[2].split()
    assert sorted(map(int, left)) == sorted(_left(environment["MARK"]))
    for pid in map(int, left):
        psutil.Process(pid).kill()
    while _left(environment["MARK"]):
        time.sleep(0.05)
    with NativeStack(home, environment):
        assert _left(environment["MARK"])


def test_a_busy_port_gives_way_to_a_free_one() -> None:
    # Another process may take a port between two looks at it, but hardly each of twenty.
    assert any(free_port(port) == port for port in (free_port(0) for _ in range(20)))
    with native_stack.socket.create_server(("127.0.0.1", 0)) as taken:
        first = taken.getsockname()[1]
        assert free_port(first) != first
