"""Two machines draw one key at the same moment: containers that share stores, and no folder."""

from __future__ import annotations

import subprocess

from engine import Containers
from story import Story

from turnstile.service_calendar import ServiceWeek

# Does some steps, says so, waits for a line, does the last step.
_STEPS = """
import sys
from turnstile.pipeline.steps import step_named
programme, week, *steps = sys.argv[1:]
for step in steps[:-1]:
    step_named(step)(programme, week, 0)
print("ready", flush=True)
sys.stdin.readline()
print(step_named(steps[-1])(programme, week, 0))
"""
_BEFORE = ("ingest", "validate", "plan", "count", "reserve")
_OURS = "turnstile.errors."


def draw_on_two_machines(place: Containers, story: Story, week: ServiceWeek) -> str:
    """Draw a week on two machines at once: one byte string is sealed, and who lost is told."""
    machines = [_begun(place, week, *steps, "draw") for steps in (_BEFORE, ("reserve",))]
    for machine in machines:
        assert machine.stdin is not None
        machine.stdin.write(b"\n")
        machine.stdin.flush()
    answers = [machine.communicate() for machine in machines]
    key = f"opal/{week}/r0"
    (sealed,) = [entry["body"]["artefact_digest"] for entry in story.entries()
                 if entry["kind"] == "sealed" and entry["body"]["key"] == key]  # fmt: skip
    told = list[str]()
    for machine, (printed, said) in zip(machines, answers, strict=True):
        if machine.returncode:
            told.append(_last_line(said))
            assert told[-1].startswith(_OURS), said.decode()
        else:
            assert printed.decode().split()[-1] == sealed
    assert len(told) < len(machines), told
    burned = story.count("burned", key)
    story.start([week], ["opal"])
    return f"{burned} draws burned, told {told}; {story.healed(week, 'opal')}"


def _begun(place: Containers, week: ServiceWeek, *steps: str) -> subprocess.Popen[bytes]:
    """Begin steps on a machine whose folders are new; return when only the last one is left."""
    words = ("python", "-c", _STEPS, "opal", str(week), *steps)
    # Below what every container has for itself: copies that are empty.
    machine = place.begin(
        "worker-private", *words, variables={"TURNSTILE_HOME": "/opt/airflow/machine"}
    )
    assert machine.stdout is not None
    if machine.stdout.readline().strip() != b"ready":
        raise AssertionError(machine.communicate()[1].decode(errors="replace"))
    return machine


def _last_line(said: bytes) -> str:
    lines = [line for line in said.decode(errors="replace").splitlines() if _OURS in line]
    return lines[-1].strip() if lines else ""
