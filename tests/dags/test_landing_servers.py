"""Landing files by Airflow's own hooks, from a real server of each kind that can be started here.

The providers are no part of the lock; `make env-providers` makes an environment of theirs.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest
from landing_sources import PYTHON, SERVERS, clean_environment
from made_homes import ROOT

pytestmark = pytest.mark.long

FILES = {"a.csv": b"x,y\n1,2\n", "b.csv": b"x,y\n" + b"3,4\n" * 300_000, "2016-W30.done": b"."}


def fetch(address: str, given: dict[str, str], landing: Path) -> list[str]:
    """What the task does, in a process of the providers' environment."""
    connections = {
        f"AIRFLOW_CONN_{name}" if name == "AUTHORITY" else name: value
        for name, value in given.items()
    }
    done = subprocess.run(  # noqa: S603
        [PYTHON, ROOT / "tests/support/fetch_by_hook.py", address, landing],
        env=clean_environment()
        | connections
        | {
            "PYTHONPATH": f"{ROOT / 'include'}:{ROOT / 'plugins'}",
            "AIRFLOW_HOME": str(landing.parent / "airflow"),
            "TURNSTILE_HOME": str(landing.parent / "var"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [line.split()[1] for line in done.stdout.splitlines() if line.startswith("fetched ")]


@pytest.mark.parametrize("kind", SERVERS)
def test_a_week_comes_from_a_real_server(kind: str, tmp_path: Path) -> None:
    if not PYTHON.exists():
        pytest.skip("the providers are not here: make env-providers")
    landing, server_folder = tmp_path / "landing", tmp_path / "server"
    server_folder.mkdir()
    with SERVERS[kind](server_folder) as (address, given, put):
        put({"nothing.csv": b""})  # another folder's, by its name below
        first = fetch(address, given, landing)
        put(FILES)
        second = fetch(address, given, landing)
        third = fetch(address, given, landing)
        time.sleep(1.1)  # servers tell seconds
        put({"a.csv": b"x,y\n9,9\n"})
        fourth = fetch(address, given, landing)
        empty = fetch(address.replace("/out/", "/none/"), given, landing)
    assert first == ["opal/2016-W30/nothing.csv"]
    assert second == ["opal/2016-W30/a.csv", "opal/2016-W30/b.csv", "opal/2016-W30.done"]
    assert (third, empty) == ([], [])
    assert fourth == ["opal/2016-W30/a.csv"]
    assert (landing / "opal/2016-W30/b.csv").read_bytes() == FILES["b.csv"]
    assert (landing / "opal/2016-W30/a.csv").read_bytes() == b"x,y\n9,9\n"
    names = {path.name for path in landing.rglob("*") if path.is_file()}
    assert names == {"a.csv", "b.csv", "nothing.csv", "2016-W30.done"}
