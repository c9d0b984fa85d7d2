"""`make compose-test`: the deployment of docker-compose.yaml, from its build to its fifth week.

Builds the image, starts every service, releases three weeks of both programmes over Celery with a
PostgreSQL ledger, looks through doors that have to be closed, takes a backup that is older than the
last week, destroys every volume but the witness, recovers, releases the fourth week with two
schedulers, goes back to the version before with the fifth under way, upgrades with the sixth under
way, and stops. Then services are killed at random moments. With `--stores` the embargoed bucket is
also put back to before a week; with `--limits` beside it memory and disks run out, and two machines
draw one key. Without a container engine it says so, and runs the
same services as processes.

    python tests/containers/compose_test.py [--kills 3] [--only-kills] [--stores] [--limits]
                                            [--seed 1] [--rows 20000] [--processes]
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).parents[1] / "support")]

from doors import check_doors, check_secrets, check_store_doors  # noqa: E402 - found by the line above
from engine import Containers, engine_missing  # noqa: E402
from hard_limits import fill_disks, run_out_of_memory  # noqa: E402
from machines import draw_on_two_machines  # noqa: E402
from object_store import backup_of, objects_of, put_back  # noqa: E402
from ports import free_port  # noqa: E402
from story import FIRST_WEEK, ROOT, Story  # noqa: E402
from version_before import version_before  # noqa: E402

from stores import OVERRIDE, Store  # noqa: E402
from turnstile.service_calendar import ServiceWeek  # noqa: E402

LOST = ("postgres", "queue", "landing", "private", "failures", "public", "embargoed", "operations",
        "keys", "logs")  # fmt: skip
COPIES = ("embargoed-of-private", "public-of-private", "embargoed-of-page", "public-of-page")
_STORES = str(ROOT / "tests/deployment/test_compose_with_stores.py")
UNDER_WAY_AFTER_S = 20
BEGUN = time.monotonic()


def main() -> int:
    """Run all of it; return 0 if everything held."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=3, help="random kills (3; the full run: 20)")
    parser.add_argument(
        "--only-kills", action="store_true", help="no story before kills and limits"
    )
    parser.add_argument("--name", default="turnstile-test", help="of the deployment")
    parser.add_argument("--stores", action="store_true", help="zones in object storage")
    parser.add_argument(
        "--limits",
        action="store_true",
        help="memory and disks run out, two machines; needs --stores",
    )
    parser.add_argument("--seed", type=int, default=1, help="of the random moments (1)")
    parser.add_argument("--weeks", type=int, default=3, help="before the disaster, 2 or more (3)")
    parser.add_argument(
        "--rows", type=int, default=20_000, help="rows a week and programme (20000)"
    )
    parser.add_argument("--processes", action="store_true", help="without containers")
    asked = parser.parse_args()
    if asked.limits and not asked.stores:
        parser.error("--limits needs --stores: a zone's folder gives way to a small disk")
    missing = "--processes was asked for" if asked.processes else engine_missing()
    with tempfile.TemporaryDirectory(prefix="turnstile-compose-") as base:
        if missing:
            say(f"{missing}: the same services run as processes")
            from as_processes import run_as_processes

            run_as_processes(Path(base), asked.rows, asked.kills, asked.seed, say)
            if asked.stores:
                say("zones in object storage, and a bucket put back to yesterday")
                subprocess.run([sys.executable, "-m", "pytest", "-m", "long", _STORES], check=True)
        else:
            run_in_containers(Path(base), asked)
    say("everything held")
    return 0


def run_in_containers(base: Path, asked: argparse.Namespace) -> None:
    """Run the story in containers; remove what it made, however it ends."""
    store = Store(asked.name, base, free_port(0)) if asked.stores else None
    place = Containers(asked.name, base, free_port(18_480), say, store)
    story = Story(place, asked.rows, say, store)
    say("building the image")
    place.build("1")
    try:
        if store is not None:
            store.start(place.secrets)
        place.up()
        say("every service is healthy")
        if asked.only_kills:
            story.unpause()
        else:
            tell(story, place, asked.weeks)
        if store is not None:
            put_back_to_yesterday(story, place, store, FIRST_WEEK.plus(14))
        if asked.limits:
            limits(story, place)
        kills(story, asked.kills, asked.seed)
        begun = time.monotonic()
        place.down()
        say(f"stopped in {time.monotonic() - begun:.0f} s")
    finally:
        place.remove()


def tell(story: Story, place: Containers, before: int) -> None:
    """Some weeks, a disaster, a week, and a week with an upgrade in it."""
    weeks = [FIRST_WEEK.plus(n) for n in range(before + 3)]
    story.deliver(FIRST_WEEK, len(weeks))
    story.unpause()
    story.released(weeks[: before - 1])
    old = story.backup_of_ledger()
    story.released(weeks[before - 1 : before])
    check_doors(place)
    if place.store is not None:
        check_store_doors(place)
    check_secrets(place, {"budget page": page_of(story)})
    say("closed doors are closed; no secret in logs, settings, processes, image, page")
    zones, lost = story.backup_of_zones(), story.losses()

    place.down(removing=(*LOST, *COPIES) if story.store else LOST)
    story.restore(old, zones)
    behind = place.run("worker", "turnstile", "ledger", "verify")
    assert behind.returncode == 4, "a ledger that is older than its packages has to be seen"
    recover = ("turnstile", "ledger", "recover", "--person", "compose-test", "--reason", "a drill")
    assert place.run("worker", *recover).returncode == 2, "it knows no file of a lost release"
    if story.store is None:
        story.must("worker-private", *recover)
    else:  # whose user may not write what is public
        assert place.run("worker-private", *recover).returncode in {0, 4}
        story.must("worker", "turnstile", "ledger", "republish")
    assert story.losses() == lost, "what was spent before the disaster is spent"
    story.agrees(weeks[:before])
    say("destroyed, restored from copies that lacked a week, recovered: nothing is lost")
    story.unpause()
    place.scale("scheduler", 2)
    story.released(weeks[before : before + 1])
    assert story.schedulers() == 2
    say("two schedulers released that week")
    place.up()
    change_versions(story, place, weeks[-2:])


def change_versions(story: Story, place: Containers, weeks: list[ServiceWeek]) -> None:
    """Go back to the version before and upgrade again, each time with a week under way."""
    older = place.base / "before"
    older.mkdir()
    is_fit = version_before(older) and (not place.store or (older / OVERRIDE).exists())
    say(f"building {'the version before' if is_fit else 'the same version: none before fits'}")
    place.build("before", older if is_fit else ROOT)
    for tag, week in zip(("before", "1"), weeks, strict=True):
        story.start([week])
        time.sleep(UNDER_WAY_AFTER_S)
        place.rest()
        place.use(tag)
        place.up()
        story.until(lambda week=week: story.has_ended([week]), "the week under way", 1800)
        story.released([week])
        say(f"image {tag} took over while {week} was under way")


def put_back_to_yesterday(story: Story, place: Containers, store: Store, week: ServiceWeek) -> None:
    """Restore a bucket that lacks a week: services say so, charge nothing, and give it back."""
    root = store.client("root")
    story.deliver(week, 2)
    yesterday = backup_of(root, "embargoed")
    story.released([week])
    assert any(str(week) in name for name in objects_of(root, "embargoed"))
    lost = story.losses()
    put_back(root, "embargoed", yesterday)
    services = ("worker-private", "worker")
    for service in services:
        seen = place.run(service, "turnstile", "ledger", "verify")
        assert seen.returncode == 4, f"{service} has to see that the bucket is older"
        assert b"stores restore" in seen.stderr
        story.must(service, "turnstile", "stores", "restore")
    assert any(str(week) in name for name in objects_of(root, "embargoed"))
    for service in services:
        story.must(service, "turnstile", "ledger", "verify")
    assert story.losses() == lost, "a bucket that was put back costs nothing"
    story.released([week.plus(1)])
    say("the embargoed bucket was put back to before a week: seen, given back, nothing charged")


def limits(story: Story, place: Containers) -> None:
    """Let memory and disks run out in new weeks; let two machines draw one."""
    first = FIRST_WEEK.plus(15)
    story.deliver(first, 4)
    say(f"two machines: {draw_on_two_machines(place, story, first)}")
    say(run_out_of_memory(place, story, first.plus(1)))
    say(fill_disks(place, story, [first.plus(2), first.plus(3)]))


def kills(story: Story, number: int, seed: int) -> None:
    """Kill services at random moments of new weeks."""
    chance = random.Random(seed)  # noqa: S311 - moments, not noise
    first = FIRST_WEEK.plus(20)
    if number:
        story.deliver(first, number)
    for done in range(number):
        say(f"kill {done + 1} of {number}: {story.killed(first.plus(done), chance)}")


def page_of(story: Story) -> str:
    """Return the budget page as the administrator sees it."""
    import httpx

    api: Any = story.api()
    with httpx.Client(base_url=api.address, trust_env=False, timeout=90) as client:
        answer = client.get("/privacy-budget/", headers=api._authorization())
        answer.raise_for_status()
        return answer.text


def say(sentence: str) -> None:
    """Print a line with the seconds since the start."""
    sys.stdout.write(f"{time.monotonic() - BEGUN:6.0f} s  {sentence}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
