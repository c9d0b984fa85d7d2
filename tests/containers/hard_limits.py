"""A worker whose memory runs out in the middle of a week, and disks that are full before a step."""

from __future__ import annotations

import json

from engine import Containers
from story import Story

from turnstile.service_calendar import ServiceWeek

_ROOM_MIB = 40  # beside what an idle worker takes; a step needs several times that
_ENOUGH_MIB = 6144
_KILLS = "cat /sys/fs/cgroup/memory/memory.oom_control /sys/fs/cgroup/memory.events 2>/dev/null"
_FULL = {"private": 2**18, "embargoed": 2**24}
"""Zone to the bytes of the disk that it is given: too few for `count`, and for `draw`."""


def run_out_of_memory(place: Containers, story: Story, week: ServiceWeek) -> str:
    """Give the worker that sees raw data too little memory for a step, then enough."""
    room, before = place.memory("worker-private") + _ROOM_MIB, place.restarts("worker-private")
    place.bound("worker-private", room)
    story.start([week], ["opal"])
    story.until(lambda: _was_killed(place, before), "a lack of memory", 300)
    killed = "worker" if place.restarts("worker-private") > before else "step"
    place.bound("worker-private", _ENOUGH_MIB)
    place.up()
    return f"a {killed} killed at {room} MiB: {story.healed(week, 'opal')}"


def _was_killed(place: Containers, restarts: int) -> bool:
    """Return whether a process was killed: the worker, which begins anew, or a child of it."""
    if place.restarts("worker-private") > restarts:
        return True
    printed = place.run("worker-private", "sh", "-c", _KILLS).stdout.decode()
    return any(line.startswith("oom_kill ") and not line.endswith(" 0")
               for line in printed.splitlines())  # fmt: skip


def fill_disks(place: Containers, story: Story, weeks: list[ServiceWeek]) -> str:
    """Put a small disk in the place of a zone's copy: a step says so, and nothing is charged."""
    burned, told = story.count("burned"), list[str]()
    for week, (zone, size) in zip(weeks, _FULL.items(), strict=True):
        place.shrink("worker-private", f"/var/lib/turnstile/{zone}", size)
        story.start([week], ["opal"])
        story.until(lambda week=week: story.has_ended([week], ["opal"]), "the end", 900)
        journal = f"/var/lib/turnstile/operations/journal/opal/{week}.jsonl"
        last = json.loads(story.must("worker", "tail", "-n", "1", journal))["told"]
        assert "free space" in last["sentence"], last
        assert not story.count("draw_begun", f"opal/{week}/r0")
        place.widen()
        story.start([week], ["opal"])
        told.append(f"{zone} full in {last['step']}, then {story.healed(week, 'opal')}")
    assert story.count("burned") == burned
    return "; ".join(told)
