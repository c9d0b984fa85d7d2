"""Tasks that see raw data, and no others, go to the queue whose workers have a private zone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

DELETES_IT = {"delete_what_is_due"}
SEE_RAW_DATA = {"wait", "ask_revision", "ingest", "validate", "count", "reserve", "draw"}
ROOT = Path(__file__).resolve().parents[2]
# A step in a process of its own, as on a worker of its queue, that fails when it opens anything of
# the landing or private zone.
STEP = """
import sys
step, *closed = sys.argv[1:]
def door(event, arguments):
    if event in ("open", "os.mkdir", "os.listdir", "os.scandir", "os.rename", "os.remove"):
        path = arguments[0]
        if isinstance(path, (str, bytes)) and str(path).startswith(tuple(closed)):
            raise SystemExit(f"{step} opened {path}")
sys.addaudithook(door)
from turnstile.pipeline import steps
steps.step_named(step)("opal", "2016-W30", 0)
"""


def _queues(dag: Any) -> dict[str, str]:
    return {task.task_id: task.queue for task in dag.tasks}


def test_what_sees_raw_data_has_a_queue_of_its_own(bag: Any) -> None:
    for dag_id, dag in bag.dags.items():
        private = {name for name, queue in _queues(dag).items() if queue == "private"}
        expected = DELETES_IT if dag_id == "retention" else set()
        assert private == (SEE_RAW_DATA if dag_id.startswith("release_") else expected), dag_id
        assert set(_queues(dag).values()) <= {"private", "default"}


def _fails_behind_closed_doors(step: str, closed: tuple[Path, ...]) -> str:
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", STEP, step, *map(str, closed)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "include")},  # noqa: TID251 - handed on
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr if done.returncode else ""


@pytest.mark.long
def test_the_other_steps_open_nothing_private(deployment: Any, turnstile: Any) -> None:
    from turnstile.pipeline.steps import STEPS

    assert turnstile("sample", "opal", "--weeks", "2016-W30", "--rows", 2000, "--seed", 3) == 0
    closed = (deployment.home / "landing", deployment.home / "private")
    for step in STEPS:
        if step in SEE_RAW_DATA:
            assert "opened" in _fails_behind_closed_doors(step, closed), step
            assert _fails_behind_closed_doors(step, (deployment.home / "nowhere",)) == "", step
            continue
        elsewhere = [zone.rename(zone.with_suffix(".elsewhere")) for zone in closed]
        assert _fails_behind_closed_doors(step, closed) == "", step
        assert not any(zone.exists() for zone in closed), step
        for zone in elsewhere:
            zone.rename(zone.with_suffix(""))
